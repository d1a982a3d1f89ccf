"""The committed Explorer page and the policy beside it belong together."""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "explorer_policy.py"
PAGE = files("apcore_mcp.explorer")


@pytest.mark.requirement("FR-EXPLORER-005")
def test_the_policy_is_made_of_the_hashes_of_this_very_page() -> None:
    command = [sys.executable, str(TOOL), str(PAGE / "explorer.html")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == (PAGE / "explorer.csp").read_text(encoding="utf-8")


@pytest.mark.requirement("FR-EXPLORER-005")
def test_the_page_is_one_file_that_asks_for_nothing_else() -> None:
    html = (PAGE / "explorer.html").read_text(encoding="utf-8")
    assert html.count("<script") == html.count("<style") == 1
    assert ' src="' not in html.partition("<script")[0]
    assert "<link" not in html or 'href="data:' in html
