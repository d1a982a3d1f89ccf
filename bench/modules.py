"""The modules that every subject serves: one that adds two integers, and any number with ten properties."""

from typing import Any

from apcore import ModuleAnnotations, Registry
from pydantic import BaseModel, Field, create_model

ADD = "math.add"
TOTAL = "math.total"
"""The same, by a module that says that it only reads."""
TYPES = (int, str, float, bool, list[str])


class AddIn(BaseModel):
    a: int = Field(description="The first number")
    b: int = Field(description="The second number")


class AddOut(BaseModel):
    sum: int


class Add:
    description = "Add two integers"
    input_schema = AddIn
    output_schema = AddOut

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"sum": inputs["a"] + inputs["b"]}


class Total(Add):
    annotations = ModuleAnnotations(readonly=True)


def wide_module(number: int, properties: int = 10) -> Any:
    """A module of its own class and models, so that nothing is shared with the next one."""
    fields: dict[str, Any] = {
        f"field_{each}": (TYPES[each % len(TYPES)], Field(description=f"Property {each} of module {number}"))
        for each in range(properties)
    }
    members = {
        "description": f"Module number {number} of the benchmark",
        "input_schema": create_model(f"Input{number}", **fields),
        "output_schema": create_model(f"Output{number}", done=(bool, ...)),
        "execute": _execute,
    }
    return type(f"Wide{number}", (), members)()


async def _execute(self: Any, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    return {"done": True}


def registry_of_size(modules: int, *, with_add: bool = True) -> Registry:
    registry = Registry()
    if with_add:
        registry.register(ADD, Add())
    for number in range(modules - with_add):
        registry.register(f"wide.m{number:04}", wide_module(number))
    return registry
