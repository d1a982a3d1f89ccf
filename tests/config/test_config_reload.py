"""Reading a project file again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from toolgrove.config import ConfigError, ConfigFile

Write = Callable[..., Path]


def test_a_changed_file_is_read_again(write: Write) -> None:
    file = ConfigFile(write("project: one"))
    assert not file.touched()
    write("project: another")
    assert file.touched()
    again = file.reload()
    assert (again.changed, again.problem, again.config.project) == (True, "", "another")
    assert not file.touched()
    assert file.config is again.config


def test_an_untouched_file_gives_the_same_configuration(write: Write) -> None:
    file = ConfigFile(write("project: one"))
    before = file.config
    write("project: one")
    again = file.reload()
    assert (again.changed, again.config is before) == (False, True)


@pytest.mark.parametrize("text", ["project: [", "agents: {a: {tolls: []}}", "- a"])
def test_a_bad_file_leaves_the_last_good_one_in_force_and_says_why(write: Write, text: str) -> None:
    file = ConfigFile(write("project: good"))
    write(text)
    again = file.reload()
    assert (again.changed, again.config.project) == (False, "good")
    assert again.problem.startswith(str(file.path))
    assert again.problem.endswith("The configuration that was read before stays in use.")
    write("project: mended")
    assert file.reload().config.project == "mended"


def test_a_file_that_is_gone_leaves_the_last_good_one_in_force(write: Write) -> None:
    file = ConfigFile(write("project: good"))
    file.path.unlink()
    assert file.touched()
    assert "there is no such file" in file.reload().problem
    assert file.config.project == "good"


def test_going_back_to_the_good_text_clears_the_problem(write: Write) -> None:
    file = ConfigFile(write("project: good"))
    write("project: [")
    assert file.reload().problem
    write("project: good")
    assert file.reload().problem == ""


def test_the_first_reading_must_succeed(write: Write) -> None:
    with pytest.raises(ConfigError):
        ConfigFile(write("project: ["))
