"""The page of faults is about the source and the tests as they are now."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_every_fault_fits_the_source_and_the_page_says_that_its_test_notices_it() -> None:
    command = [sys.executable, str(ROOT / "tools" / "mutate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
