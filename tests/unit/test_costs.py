"""What the speed and the memory of the bridge come from; the times themselves are measured by `make bench`."""

import gc
import tracemalloc
from typing import Any

import pytest
from apcore import Executor, Registry
from mcp import Client
from pydantic import BaseModel, create_model

from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from apcore_mcp.server.factory import MCPServerFactory
from apcore_mcp.server.router import ExecutionRouter
from modules import Add, Sample, registry_of

MEBIBYTE = 1024 * 1024


def ten_properties(number: int) -> type[BaseModel]:
    fields: dict[str, Any] = {f"field_{i}": (int if i % 2 else str, ...) for i in range(10)}
    return create_model(f"Input{number}", **fields)


def hundred_modules() -> dict[str, Sample]:
    return {f"m.n{i}": Sample(schema=ten_properties(i), description="A tool " * 10) for i in range(100)}


class Counting(Registry):
    """Counts how often a definition is made, which is nearly all that start-up costs."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[str] = []

    def get_definition(self, module_id: str, *args: Any, **kwargs: Any) -> Any:
        self.made.append(module_id)
        return super().get_definition(module_id, *args, **kwargs)


@pytest.mark.requirement("NFR-PERF-001")
def test_a_hundred_modules_are_converted_from_one_definition_each() -> None:
    registry = Counting()
    for module_id, module in hundred_modules().items():
        registry.register(module_id, module)
    registry.made.clear()
    assert len(MCPServerFactory().build_tools(registry)) == 100
    assert sorted(registry.made) == registry.list()


class CountingExecutor(Executor):
    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self.calls = 0

    async def call_async(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        self.calls += 1
        return await super().call_async(*args, **kwargs)


@pytest.mark.anyio
@pytest.mark.requirement("NFR-PERF-002", "NFR-SEC-001")
async def test_a_call_is_one_run_of_the_pipeline_and_makes_no_definition() -> None:
    registry = Counting()
    registry.register("add", Add())
    executor = CountingExecutor(registry)
    registry.made.clear()
    result = await ExecutionRouter(executor).handle_call("add", {"a": 1, "b": 2})
    assert result.is_error is False
    assert executor.calls == 1
    assert registry.made == []


@pytest.mark.anyio
@pytest.mark.requirement("NFR-PERF-002")
async def test_a_running_server_makes_no_definition_to_list_or_call() -> None:
    registry = Counting()
    registry.register("add", Add())
    bridge = Bridge(registry, Options())
    async with bridge.running(), Client(bridge.endpoint.server) as client:
        registry.made.clear()
        for _ in range(3):
            await client.list_tools(cache_mode="bypass")
            await client.call_tool("add", {"a": 1, "b": 2})
        assert registry.made == []


@pytest.mark.requirement("NFR-PERF-003")
def test_a_hundred_tools_take_less_than_ten_mebibytes() -> None:
    registry = registry_of(hundred_modules())
    MCPServerFactory().build_tools(registry)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tools = MCPServerFactory().build_tools(registry)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(tools) == 100
    assert after - before < 10 * MEBIBYTE
