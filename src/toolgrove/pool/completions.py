"""What servers suggest for the arguments of the prompts and resource templates that an agent has."""

from __future__ import annotations

from typing import Any

from toolgrove.errors import PromptNotFound, ResourceNotFound
from toolgrove.pool.prompts import Prompts
from toolgrove.pool.resources import Resources
from toolgrove.types import COMPLETE, Annotations, Call, Result, Tool, ToolSpec

SOURCE = "completions"
_TARGET = 200


class Completions:
    """Suggestions for one agent; for what it does not have, there are none to get."""

    name = SOURCE

    def __init__(self, prompts: Prompts, resources: Resources) -> None:
        self._prompts = prompts
        self._resources = resources

    def completing(self) -> Tool:
        """The completing of one argument as the chain runs it."""
        return Tool(spec=_SPEC, source=self, mutates=False, kind="mcp", own_name=COMPLETE)

    async def call(self, call: Call) -> Result:
        """Ask the server whose prompt or template it is."""
        asked: dict[str, Any] = call.arguments
        ref = asked["ref"]
        if ref["type"] == "ref/prompt":
            call.targets = (ref["name"][:_TARGET],)
            prompt = await self._prompts.find(ref["name"])
            if prompt is None:
                raise PromptNotFound(ref["name"])
            return await prompt.server.complete(call, {**asked, "ref": {**ref, "name": prompt.own_name}})
        call.targets = (ref["uri"][:_TARGET],)
        server = await self._resources.holder(ref["uri"])
        if server is None:
            raise ResourceNotFound(ref["uri"])
        call.targets = (f"{server.name}:{ref['uri']}"[:_TARGET],)
        return await server.complete(call, asked)


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


_TEXT = {"type": "string"}
_SPEC = ToolSpec(
    name=COMPLETE,
    description="Suggest values for an argument.",
    input_schema=_object(
        ["ref", "argument"],
        ref={
            "anyOf": [
                _object(["type", "name"], type={"const": "ref/prompt"}, name=_TEXT),
                _object(["type", "uri"], type={"const": "ref/resource"}, uri=_TEXT),
            ]
        },
        argument=_object(["name", "value"], name=_TEXT, value=_TEXT),
        context=_object([], arguments={"type": "object", "additionalProperties": _TEXT}),
    ),
    output_schema={},
    annotations=Annotations(readonly=True),
    source=SOURCE,
)
