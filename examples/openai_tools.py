"""Give the sample modules to an OpenAI-style API, and run what the model asks for."""

import asyncio
import json
from pathlib import Path
from typing import Any

from apcore import Executor, Registry

from apcore_mcp import to_openai_tools
from apcore_mcp.adapters.id_normalizer import ModuleIDNormalizer

registry = Registry(extensions_dir=str(Path(__file__).parent / "extensions"))
registry.discover()

tools = to_openai_tools(registry, prefix="text.", strict=True)
names = ModuleIDNormalizer()


async def answer(tool_call: dict[str, Any]) -> dict[str, Any]:
    """Run one entry of the model's `tool_calls` and make the message that answers it."""
    function = tool_call["function"]
    arguments = json.loads(function["arguments"])
    # A strict schema has no optional fields: null stands for one that was left out.
    given = {name: value for name, value in arguments.items() if value is not None}
    result = await Executor(registry).call_async(names.denormalize(function["name"]), given)
    return {"role": "tool", "tool_call_id": tool_call["id"], "content": json.dumps(result)}


if __name__ == "__main__":
    print(json.dumps(tools, indent=2))
    arguments = '{"title": "Hello, World!", "max_length": null}'
    asked = {"id": "call_1", "type": "function", "function": {"name": "text-slugify", "arguments": arguments}}
    print(asyncio.run(answer(asked)))
