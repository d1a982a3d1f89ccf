from collections.abc import Callable
from pathlib import Path

import pytest

from toolgrove import Config
from toolgrove.config import ConfigError

Write = Callable[..., Path]
Refused = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Put a text into a project file."""

    def write(text: str, name: str = "toolgrove.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def refused(write: Write) -> Refused:
    """What is said of a file that cannot be used, without the folder it stands in."""

    def refused(text: str, name: str = "toolgrove.yaml") -> str:
        path = write(text, name)
        with pytest.raises(ConfigError) as caught:
            Config.load(path)
        return str(caught.value).replace(str(path), path.name)

    return refused
