"""Sample apcore modules that tests register."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from apcore import ModuleAnnotations, ModuleDescriptor, Registry
from pydantic import BaseModel

Execute = Callable[[dict[str, Any], Any], Any]


def nothing(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    return {}


def echo(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    return inputs


class Sample:
    """A module that does what it is given; `schema` may be a dict or a pydantic model."""

    def __init__(
        self,
        execute: Execute = nothing,
        *,
        schema: Any = None,
        output: Any = None,
        description: str = "A sample module",
        documentation: str | None = None,
        tags: list[str] | None = None,
        annotations: ModuleAnnotations | None = None,
        timeout: int | None = None,
    ) -> None:
        self.execute = execute
        self.input_schema = {} if schema is None else schema
        self.output_schema = {} if output is None else output
        self.description = description
        self.documentation = documentation
        self.tags = tags or []
        self.annotations = annotations
        self.resources = {} if timeout is None else {"timeout": timeout}


class Streaming(Sample):
    """A module that streams the chunks it is given; an exception among them is raised in its place."""

    def __init__(self, *chunks: Any, streaming: bool = True, **options: Any) -> None:
        super().__init__(lambda inputs, context: {"atomic": True}, **options)
        self.annotations = ModuleAnnotations(streaming=streaming)
        self.chunks = chunks

    async def stream(self, inputs: dict[str, Any], context: Any) -> Any:
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield copy.deepcopy(chunk)


class AddInput(BaseModel):
    a: int
    b: int


class AddOutput(BaseModel):
    sum: int


class Add:
    """Two integers in, their sum out: pydantic models, a sync `execute`."""

    description = "Add two integers"
    input_schema = AddInput
    output_schema = AddOutput

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"sum": inputs["a"] + inputs["b"]}


class AsyncAdd(Add):
    """The same with an async `execute`."""

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:  # type: ignore[override]
        return {"sum": inputs["a"] + inputs["b"]}


CIRCULAR: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/A"}},
    "$defs": {
        "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}},
        "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
    },
}
"""A schema that cannot be inlined."""


def registry_of(modules: Mapping[str, Any]) -> Registry:
    registry = Registry()
    for module_id, module in modules.items():
        registry.register(module_id, module)
    return registry


def definition_of(registry: Registry, module_id: str) -> ModuleDescriptor:
    found = registry.get_definition(module_id)
    assert found is not None, module_id
    return found


EXTENSION = """
from pydantic import BaseModel

class Input(BaseModel):
    name: str

class Output(BaseModel):
    text: str

class Greet:
    description = "Greet somebody"
    input_schema = Input
    output_schema = Output

    def execute(self, inputs, context):
        return {"text": "Hello " + inputs["name"]}
"""
"""The source of a module that `Registry.discover` finds."""
