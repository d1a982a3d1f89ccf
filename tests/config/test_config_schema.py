"""The schema that editors use says the same as the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from toolgrove import Config

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMA = Config.json_schema()
PROJECTS = [path for path in sorted((ROOT / "examples").glob("*.yaml")) if "\nagents:" in path.read_text("utf-8")]
EXAMPLES = [*PROJECTS, ROOT / "src/toolgrove/cli/starter.yaml"]


def problems(form: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return [error.message for error in validator.iter_errors(form)]


def test_the_published_schema_is_current() -> None:
    published = json.loads((ROOT / "docs" / "toolgrove.schema.json").read_text(encoding="utf-8"))
    assert published == SCHEMA, "run python tools/config_reference.py"


def test_it_is_a_valid_schema_in_which_every_key_is_explained() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    sections = {"Config": SCHEMA, **SCHEMA["$defs"]}
    keys = {f"{name}.{key}": one for name, section in sections.items() for key, one in section["properties"].items()}
    assert [name for name, one in keys.items() if not one.get("description")] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_and_the_starter_file_fit_it(path: Path) -> None:
    assert problems(yaml.safe_load(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "form",
    [
        {"workspce": {}},
        {"agents": {"a": {"tolls": []}}},
        {"agents": {"a": {"role": "king"}}},
        {"agents": {"a b": {}}},
        {"mcpServers": {"a": {"command": ["x"]}}},
        {"startupBudget": 0},
    ],
)
def test_what_the_models_refuse_the_editor_underlines(form: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        Config.model_validate(form)
    assert problems(form)


def test_keys_of_other_clients_are_not_underlined() -> None:
    assert problems({"mcpServers": {"a": {"command": "x", "autoApprove": ["read"], "disabled": True}}}) == []
    assert problems({"servers": {"a": {"type": "http", "url": "https://x.example/mcp"}}, "inputs": []}) == []
