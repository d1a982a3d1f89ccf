"""What the sample modules say about themselves, read as a client reads it."""

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from apcore import Registry

from examples.samples import EXTENSIONS, connected, discovered, output

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, kw_only=True)
class Declared:
    """The annotations and tags of one sample."""

    tags: tuple[str, ...]
    readonly: bool = True
    destructive: bool = False
    idempotent: bool = True
    requires_approval: bool = False
    open_world: bool = False
    streaming: bool = False


SAMPLES = {
    "files.empty_trash": Declared(
        tags=("files", "danger"), readonly=False, destructive=True, idempotent=False, requires_approval=True
    ),
    "jobs.count_primes": Declared(tags=("jobs", "slow", "pure")),
    "jobs.render": Declared(tags=("jobs", "slow")),
    "orders.quote": Declared(tags=("orders", "pure")),
    "planets.find": Declared(tags=("planets", "pure")),
    "stories.tell": Declared(tags=("stories", "streaming"), idempotent=False, streaming=True),
    "text.count": Declared(tags=("text", "pure")),
    "text.redact": Declared(tags=("text", "privacy")),
    "text.slugify": Declared(tags=("text", "pure")),
    "trips.plan": Declared(tags=("trips", "asks"), idempotent=False),
}
FILES = sorted(EXTENSIONS.rglob("*.py"))
EXAMPLES = [
    (name, example) for name in SAMPLES for example in getattr(discovered().get_definition(name), "examples", ())
]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return discovered()


def test_discovery_finds_every_file_and_nothing_else(registry: Registry) -> None:
    assert registry.list() == sorted(SAMPLES)
    assert [".".join(path.relative_to(EXTENSIONS).with_suffix("").parts) for path in FILES] == sorted(SAMPLES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_holds_one_module_class(path: Path) -> None:
    classes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    modules = [
        node for node in classes if any(getattr(child, "name", "") == "execute" for child in ast.iter_child_nodes(node))
    ]
    assert len(modules) == 1


@pytest.mark.parametrize("name", SAMPLES)
async def test_a_client_sees_the_annotations(registry: Registry, name: str) -> None:
    declared = SAMPLES[name]
    async with connected(registry) as client:
        tool = next(tool for tool in (await client.list_tools()).tools if tool.name == name)
    assert tool.annotations is not None
    assert tool.annotations.model_dump(exclude_none=True) == {
        "read_only_hint": declared.readonly,
        "destructive_hint": declared.destructive,
        "idempotent_hint": declared.idempotent,
        "open_world_hint": declared.open_world,
    }
    definition = registry.get_definition(name)
    assert definition is not None
    assert definition.annotations is not None
    assert definition.annotations.requires_approval is declared.requires_approval
    assert definition.annotations.streaming is declared.streaming
    assert tuple(definition.tags) == declared.tags


@pytest.mark.parametrize("name", SAMPLES)
async def test_a_client_can_read_what_a_sample_does_takes_and_gives(registry: Registry, name: str) -> None:
    async with connected(registry) as client:
        tool = next(tool for tool in (await client.list_tools()).tools if tool.name == name)
        (documentation,) = (await client.read_resource(f"docs://{name}")).contents
    assert tool.description
    assert tool.description.endswith(".")
    assert len(getattr(documentation, "text", "")) > 40
    assert tool.output_schema
    assert tool.output_schema["properties"]
    undescribed = [key for key, schema in tool.input_schema["properties"].items() if "description" not in schema]
    assert undescribed == []


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[f"{name}: {each.title}" for name, each in EXAMPLES])
async def test_an_example_gives_what_it_promises(registry: Registry, name: str, example: Any) -> None:
    async with connected(registry) as client:
        assert output(await client.call_tool(name, example.inputs)) == example.output


def test_there_are_examples() -> None:
    assert {"text.slugify", "text.count", "orders.quote", "planets.find"} <= {name for name, _ in EXAMPLES}
