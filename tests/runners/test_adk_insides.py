"""What the ADK runner relies on without a promise: the test says what moved."""

from typing import Any, cast

import pytest
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.genai import types

MOVED = "ADK asks a tool for its declaration in another way: see _get_declaration in toolgrove/runners/adk.py."


class Declared(BaseTool):
    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(name=self.name, description=self.description)


@pytest.mark.anyio
async def test_adk_asks_a_tool_for_its_own_declaration() -> None:
    assert hasattr(BaseTool, "_get_declaration"), MOVED
    request = LlmRequest()
    tool = Declared(name="dig", description="Digs.")
    await tool.process_llm_request(tool_context=cast("Any", None), llm_request=request)
    [offered] = request.config.tools or []
    [declaration] = cast("types.Tool", offered).function_declarations or []
    assert (declaration.name, declaration.description) == ("dig", "Digs."), MOVED
