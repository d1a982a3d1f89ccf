"""A project that follows its file: what cannot be put to use leaves everything as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolgrove import Config, Grove
from toolgrove.config import ConfigFile
from toolgrove.errors import AgentNotFound, SecretOutOfScope
from toolgrove.reload import take_change

pytestmark = pytest.mark.anyio
AGENTS = {"editor": {"role": "editor", "tools": ["*"]}, "reader": {"tools": ["get_node"]}}
UNUSABLE = {"extensions": "nowhere"}
"""It can be read, and fails when it is put to use."""


def write(path: Path, **sections: Any) -> None:
    path.write_text(json.dumps({"agents": AGENTS, **sections}))


@pytest.fixture
def file(tmp_path: Path) -> ConfigFile:
    path = tmp_path / "toolgrove.yaml"
    write(path)
    return ConfigFile(path)


async def names(grove: Grove, agent: str) -> set[str]:
    return {spec.name for spec in (await grove.agent(agent)).tools}


async def test_a_good_change_is_taken(file: ConfigFile) -> None:
    async with Grove(file.config) as grove:
        write(file.path, agents={**AGENTS, "reader": {"tools": ["get_node", "list_children"]}})
        assert await take_change(file, grove)
        assert await names(grove, "reader") == {"get_node", "list_children"}


async def test_a_file_that_says_the_same_is_no_change(file: ConfigFile) -> None:
    async with Grove(file.config) as grove:
        file.path.write_text(file.path.read_text())
        assert not await take_change(file, grove)
        assert grove.config is file.config


async def test_a_change_that_fails_is_taken_back_whole(file: ConfigFile, caplog: pytest.LogCaptureFixture) -> None:
    async with Grove(file.config) as grove:
        before = {agent: await names(grove, agent) for agent in AGENTS}
        write(file.path, **UNUSABLE, agents={"reader": {"tools": ["list_children"]}, "newcomer": {"tools": ["*"]}})
        assert not await take_change(file, grove)
        assert {agent: await names(grove, agent) for agent in AGENTS} == before
        with pytest.raises(AgentNotFound):
            await grove.agent("newcomer")
    assert "nowhere" in caplog.text
    assert caplog.text.count("stays in use") == 1


async def test_a_change_that_fails_gives_no_tool_a_secret(file: ConfigFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "the-token-value")
    write(file.path, secrets={"TOKEN": {"tools": ["one"]}})
    async with Grove(file.reload().config) as grove:
        write(file.path, **UNUSABLE, secrets={"TOKEN": {"tools": ["*"]}})
        assert not await take_change(file, grove)
        assert grove.secrets.fill("${env:TOKEN}", field="headers.x", user="one") == "the-token-value"
        with pytest.raises(SecretOutOfScope):
            grove.secrets.fill("${env:TOKEN}", field="headers.x", user="two")


async def test_after_a_change_that_failed_the_next_good_one_is_taken(file: ConfigFile) -> None:
    async with Grove(file.config) as grove:
        write(file.path, **UNUSABLE)
        assert not await take_change(file, grove)
        write(file.path, agents={"newcomer": {"tools": ["get_node"]}})
        assert await take_change(file, grove)
        assert await names(grove, "newcomer") == {"get_node"}


class Stubborn:
    """A project that can go on with nothing, not even with what it had."""

    def __init__(self, config: Config) -> None:
        self.config = config
        grove = Grove(config)
        self.recorder, self.clock, self.tell, self.took = grove.recorder, grove.clock, grove.tell, grove.took

    async def reload(self, config: Config) -> None:
        raise RuntimeError("out of order")


async def test_a_change_that_cannot_even_be_taken_back_ends_nothing_and_is_told(
    file: ConfigFile, caplog: pytest.LogCaptureFixture
) -> None:
    write(file.path, agents={})
    assert not await take_change(file, Stubborn(file.config))
    assert "cannot be taken back" in caplog.text
    assert "stays in use" not in caplog.text
