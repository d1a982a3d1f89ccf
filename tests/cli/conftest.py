import json
from pathlib import Path
from typing import Any

import pytest

from cli_kit import Project, Said, Toolgrove
from toolgrove.cli import main


@pytest.fixture
def toolgrove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Toolgrove:
    """Run a command in a folder of its own, as a shell would with its output in a pipe."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Said:
        code = main(words)
        return Said(code, *capsys.readouterr())

    return run


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Write the project file; JSON is YAML."""

    def write(**sections: Any) -> Path:
        path = tmp_path / "toolgrove.yaml"
        path.write_text(json.dumps(sections))
        return path

    return write
