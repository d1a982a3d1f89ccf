"""Configuration: what it accepts, and how it says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from grove_kit import hand
from toolgrove import Config, Grove

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"agents": {"a": {"rateLimit": "often"}}}, "not a rate like 60/minute"),
        ({"agents": {"a": {"role": "king"}}}, "reader"),
        ({"agents": {"a": {"colour": "red"}}}, "colour"),
        ({"workspace": {"rulesets": {"r": [{"id": "x"}]}}}, "needs exactly one of"),
        ({"workspace": {"rulesets": {"r": [{"required": ["a"], "typo": 1}]}}}, "typo is not known"),
        ({"workspace": {"rulesets": {"r": [{"required": ["a"], "severity": "loud"}]}}}, "error or warning"),
        ({"workspace": {"rulesets": {"r": [{"format": {"path": "a", "is": "pretty"}}]}}}, "pretty"),
        ({"workspace": {"payloadTypes": {"T": {"schema": {"type": "nonsense"}}}}}, "nonsense"),
        ({"workspace": {"limits": {"nodeIds": 0}}}, "greater than or equal to 1"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(form: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Config.model_validate(form)
    assert told in str(caught.value)


async def test_a_project_is_read_from_yaml_in_either_spelling(tmp_path: Path) -> None:
    file = tmp_path / "toolgrove.yaml"
    file.write_text(
        """
project: demo
workspace:
  payload_types:
    Day: {schema: {properties: {date: {type: string}}}}
  rulesets:
    dates: [{id: iso, format: {path: date, is: [isoDate, nonEmpty]}}]
agents:
  editor: {role: editor, tools: ["*"], rateLimit: 100/minute}
"""
    )
    editor = await hand(Grove(Config.load(file)))
    for date in ("2026-02-29", "2026-03-01"):
        await editor.ok("add_child", parentNodeId="root", payloadType="Day", payloadProps={"date": date})
    violations = (await editor.ok("validate_tree", rulesetId="dates"))["violations"]
    assert [(one["nodeId"], one["message"]) for one in violations] == [("n1", "is not a date like 2026-01-31")]
    assert Config.load(tmp_path / "toolgrove.yaml").project == "demo"


async def test_an_empty_file_is_the_default_project(tmp_path: Path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("")
    assert set(Config.load(file).agents) == {"editor", "reader"}


async def test_the_root_keeps_its_type_where_types_are_registered() -> None:
    editor = await hand(Grove(Config.model_validate({"workspace": {"payloadTypes": {"T": {}}}})))
    types = await editor.ok("list_payload_types")
    assert ([item["name"] for item in types["items"]], types["allowUnknownTypes"]) == (["Root", "T"], False)
    await editor.ok("update_payload", nodeId="root", patch={"name": "top"})
