"""The server in memory, through a real client of both protocol eras."""

import asyncio
import itertools
import json
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from apcore import ACL, ACLRule, Executor, ModuleAnnotations, Registry
from mcp import Client
from mcp.shared.exceptions import MCPError

import apcore_mcp
from apcore_mcp import MCP_ELICIT_KEY, MCP_PROGRESS_KEY, elicit, report_progress
from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from mcp_text import contents_of, text_of
from modules import CIRCULAR, Add, Sample, Streaming, echo, registry_of

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["auto", "legacy"], ids=["2026", "handshake"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def connected(
    source: Registry | Executor, era: str = "auto", client: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Client]:
    bridge = Bridge(source, Options(**options))
    async with bridge.running(), Client(bridge.endpoint.server, mode=era, **(client or {})) as connection:
        yield connection


async def tool_names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]


# FR-SERVER-004, 006, 011


@pytest.mark.requirement("FR-SERVER-004")
@pytest.mark.parametrize(
    ("options", "expected"),
    [({"name": "my-tools", "version": "2.0.0"}, ("my-tools", "2.0.0")), ({}, ("apcore-mcp", apcore_mcp.__version__))],
    ids=["given", "default"],
)
async def test_a_client_learns_name_and_version(era: str, options: dict[str, Any], expected: tuple[str, str]) -> None:
    async with connected(registry_of({"add": Add()}), era, **options) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == expected


@pytest.mark.requirement("FR-SERVER-006", "FR-LOG-001")
async def test_an_empty_registry_is_served_with_a_warning(era: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "apcore_mcp")
    async with connected(Registry(), era) as client:
        assert await tool_names(client) == []
    said = {record.message: record.levelname for record in caplog.records if record.name.startswith("apcore_mcp")}
    assert said["No modules registered; server starting with zero tools"] == "WARNING"
    assert said["apcore-mcp server started: 0 tools registered, transport=stdio"] == "INFO"


@pytest.mark.requirement("FR-LOG-001", "FR-LOG-004")
async def test_the_start_is_logged_with_the_number_of_tools(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "apcore_mcp")
    hidden = Sample(annotations=ModuleAnnotations(discoverable=False))
    async with connected(registry_of({f"m{i}": Sample() for i in range(5)} | {"hidden": hidden})):
        pass
    records = [record for record in caplog.records if record.name.startswith("apcore_mcp")]
    assert [(record.levelname, record.message) for record in records] == [
        ("INFO", "apcore-mcp server started: 5 tools registered, transport=stdio")
    ]


@pytest.mark.requirement("FR-SERVER-011", "NFR-REL-002")
async def test_a_client_sees_one_tool_per_module_that_can_be_one(era: str) -> None:
    modules = {
        "math.add": Add(),
        "bad": Sample(schema=CIRCULAR),
        "wipe": Sample(description="Wipe it", annotations=ModuleAnnotations(destructive=True)),
    }
    async with connected(registry_of(modules), era) as client:
        add, wipe = (await client.list_tools()).tools
    assert (add.name, add.description) == ("math.add", "Add two integers")
    assert add.input_schema["required"] == ["a", "b"]
    assert (wipe.name, wipe.description) == ("wipe", "Wipe it")
    assert wipe.annotations == types.ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    )


@pytest.mark.requirement("FR-SCHEMA-005", "FR-EXEC-002")
async def test_a_module_with_an_output_schema_gives_structured_content(era: str) -> None:
    async with connected(registry_of({"math.add": Add(), "plain": Sample(echo)}), era) as client:
        by_name = {tool.name: tool for tool in (await client.list_tools()).tools}
        result = await client.call_tool("math.add", {"a": 1, "b": 2})
        plain = await client.call_tool("plain", {"x": 1})
    declared = by_name["math.add"].output_schema
    assert declared is not None
    assert declared["properties"]["sum"]["type"] == "integer"
    assert by_name["plain"].output_schema is None
    assert result.structured_content == {"sum": 3} == json.loads(text_of(result))
    assert plain.structured_content is None
    assert json.loads(text_of(plain)) == {"x": 1}


# FR-FILTER


@pytest.fixture
def filtered() -> Registry:
    return registry_of(
        {
            "api.read": Sample(tags=["public", "stable"], documentation="How to read"),
            "api.write": Sample(tags=["public"], documentation="How to write"),
            "api.secret": Sample(documentation="Secret"),
            "other": Sample(tags=["public"]),
        }
    )


@pytest.mark.requirement("FR-FILTER-001", "FR-FILTER-002", "FR-FILTER-003", "FR-SERVER-008", "FR-SERVER-009")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["api.read", "api.secret", "api.write", "other"]),
        ({"tags": None, "prefix": None}, ["api.read", "api.secret", "api.write", "other"]),
        ({"tags": []}, ["api.read", "api.secret", "api.write", "other"]),
        ({"tags": ["public"]}, ["api.read", "api.write", "other"]),
        ({"tags": ["public", "stable"]}, ["api.read"]),
        ({"tags": ["nonexistent"]}, []),
        ({"prefix": "api."}, ["api.read", "api.secret", "api.write"]),
        ({"prefix": "nonexistent."}, []),
        ({"prefix": "api.", "tags": ["public"]}, ["api.read", "api.write"]),
        ({"prefix": "nonexistent.", "tags": ["public"]}, []),
        ({"prefix": "api.", "tags": ["nonexistent"]}, []),
    ],
    ids=str,
)
async def test_filters_select_what_is_listed_and_called(
    filtered: Registry, options: dict[str, Any], expected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(filtered, **options) as client:
        assert await tool_names(client) == expected
        for name in filtered.list():
            result = await client.call_tool(name, {})
            assert text_of(result) == ("{}" if name in expected else f"Module not found: {name}")
            assert result.is_error is (name not in expected)
    warned = any(record.message.startswith("No modules registered") for record in caplog.records)
    assert warned is (expected == [])


@pytest.mark.requirement("FR-FILTER-001", "FR-FILTER-002", "FR-RESOURCE-001")
async def test_filters_hold_for_resources(filtered: Registry) -> None:
    async with connected(filtered, tags=["public"], prefix="api.") as client:
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        assert listed == ["docs://api.read", "docs://api.write"]
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("docs://api.secret")


# FR-EXEC-005, NFR-SEC-001


@pytest.mark.requirement("FR-EXEC-005", "NFR-SEC-001")
async def test_the_executor_that_is_given_decides_who_may_call(era: str) -> None:
    rules = [ACLRule(callers=["*"], targets=["admin.*"], effect="deny")]
    executor = Executor(registry_of({"admin.wipe": Sample(), "add": Add()}), acl=ACL(rules, default_effect="allow"))
    async with connected(executor, era) as client:
        denied = await client.call_tool("admin.wipe", {})
        allowed = await client.call_tool("add", {"a": 1, "b": 1})
    assert (denied.is_error, text_of(denied)) == (True, "Access denied")
    assert allowed.is_error is False


# FR-DYNAMIC


@pytest.mark.requirement("FR-DYNAMIC-001", "FR-DYNAMIC-002")
async def test_a_running_server_follows_its_registry(era: str) -> None:
    registry = registry_of({"old.tool": Add()})
    async with connected(registry, era) as client:
        assert await tool_names(client) == ["old.tool"]
        thread = threading.Thread(target=registry.register, args=("new.tool", Add()))
        thread.start()
        thread.join()
        assert await tool_names(client) == ["new.tool", "old.tool"]
        assert (await client.call_tool("new.tool", {"a": 1, "b": 1})).is_error is False
        registry.unregister("old.tool")
        assert await tool_names(client) == ["new.tool"]
        assert text_of(await client.call_tool("old.tool", {"a": 1, "b": 1})) == "Module not found: old.tool"


@pytest.mark.requirement("NFR-REL-003", "FR-DYNAMIC-004")
async def test_calls_and_lists_stay_right_while_a_thousand_changes_go_on(era: str) -> None:
    registry = registry_of({"always.there": Add()})

    def change() -> None:
        for i in range(500):
            registry.register(f"m.n{i}", Sample())
            registry.unregister(f"m.n{i}")

    async with connected(registry, era) as client:
        changing = threading.Thread(target=change)
        changing.start()
        rounds = 0
        while changing.is_alive() or rounds < 5:
            rounds += 1
            names = await tool_names(client)
            assert "always.there" in names
            assert names == sorted(names)
            assert text_of(await client.call_tool("always.there", {"a": rounds, "b": 1})) == f'{{"sum": {rounds + 1}}}'
        changing.join()
        assert await tool_names(client) == ["always.there"]


@pytest.mark.requirement("FR-DYNAMIC-003")
async def test_a_client_of_the_handshake_era_is_told_of_a_change() -> None:
    told = asyncio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    registry = registry_of({"old.tool": Add()})
    async with connected(registry, "legacy", {"message_handler": on_message}) as client:
        await client.list_tools()
        registry.register("new.tool", Add())
        async with asyncio.timeout(10):
            await told.wait()
        assert await tool_names(client) == ["new.tool", "old.tool"]


# FR-RESOURCE


@pytest.mark.requirement("FR-RESOURCE-001", "FR-RESOURCE-002")
async def test_documentation_is_a_resource(era: str) -> None:
    modules = {
        "image.resize": Sample(documentation="# Resize\n\nMakes it smaller."),
        "none": Sample(documentation=None),
        "empty": Sample(documentation=""),
    }
    async with connected(registry_of(modules), era) as client:
        (resource,) = (await client.list_resources()).resources
        assert str(resource.uri) == "docs://image.resize"
        contents = contents_of(await client.read_resource("docs://image.resize"))
        assert contents.text == "# Resize\n\nMakes it smaller."
        assert contents.mime_type == resource.mime_type == "text/plain"


@pytest.mark.requirement("FR-RESOURCE-001", "FR-RESOURCE-002")
@pytest.mark.parametrize(
    "uri", ["docs://none", "docs://no.such", "docs://", "file:///etc/passwd", "http://image.resize"]
)
async def test_a_resource_that_does_not_exist_is_not_found(era: str, uri: str) -> None:
    modules = {"image.resize": Sample(documentation="Text"), "none": Sample()}
    async with connected(registry_of(modules), era) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
    assert caught.value.error.message == "Resource not found"


@pytest.mark.requirement("FR-RESOURCE-001")
async def test_resources_follow_the_registry() -> None:
    registry = registry_of({"a": Sample(documentation="A")})
    async with connected(registry) as client:
        registry.register("b", Sample(documentation="B"))
        registry.unregister("a")
        listed = await client.list_resources(cache_mode="bypass")
        assert [resource.uri for resource in listed.resources] == ["docs://b"]


# FR-STREAM-001


class Progress:
    """Keeps the progress notifications of one call."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float | None, str | None]] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.seen.append((progress, total, message))


async def streamed(client: Client, era: str, progress: Progress) -> types.CallToolResult:
    """Call `s` with a progress token; without a wire in between, the newer client sends none by itself."""
    meta: Any = {"progressToken": "a-token"} if era == "auto" else None
    return await client.call_tool("s", {}, progress_callback=progress, meta=meta)


@pytest.mark.requirement("FR-STREAM-001")
async def test_chunks_are_progress_and_the_result_is_whole(era: str) -> None:
    module = Streaming({"a": 1}, {"b": {"x": 1}}, {"b": {"y": 2}, "a": 3})
    progress = Progress()
    async with connected(registry_of({"s": module}), era) as client:
        result = await streamed(client, era, progress)
    assert [number for number, _, _ in progress.seen] == [1, 2, 3]
    assert [json.loads(message or "") for _, _, message in progress.seen] == list(module.chunks)
    assert result.is_error is False
    assert json.loads(text_of(result)) == {"a": 3, "b": {"x": 1, "y": 2}}


@pytest.mark.requirement("FR-STREAM-001")
async def test_without_a_progress_token_the_call_is_atomic(era: str) -> None:
    async with connected(registry_of({"s": Streaming({"a": 1})}), era) as client:
        assert json.loads(text_of(await client.call_tool("s", {}))) == {"atomic": True}


@pytest.mark.requirement("FR-STREAM-001")
async def test_a_module_that_does_not_declare_streaming_is_atomic(era: str) -> None:
    progress = Progress()
    async with connected(registry_of({"s": Streaming({"a": 1}, streaming=False)}), era) as client:
        result = await streamed(client, era, progress)
    assert json.loads(text_of(result)) == {"atomic": True}
    assert progress.seen == []


@pytest.mark.requirement("FR-STREAM-001")
async def test_an_executor_that_cannot_stream_is_called_atomically(era: str) -> None:
    class Atomic(Executor):
        @property
        def stream(self) -> Any:
            raise AttributeError("stream")

    progress = Progress()
    async with connected(Atomic(registry_of({"s": Streaming({"a": 1})})), era) as client:
        result = await streamed(client, era, progress)
    assert json.loads(text_of(result)) == {"atomic": True}
    assert progress.seen == []


@pytest.mark.requirement("FR-STREAM-001")
async def test_a_stream_without_chunks_is_an_empty_result(era: str) -> None:
    async with connected(registry_of({"s": Streaming()}), era) as client:
        result = await streamed(client, era, Progress())
    assert (result.is_error, text_of(result)) == (False, "{}")


@pytest.mark.requirement("FR-STREAM-001", "NFR-SEC-002")
async def test_a_stream_that_fails_midway_is_an_error(era: str) -> None:
    progress = Progress()
    module = Streaming({"a": 1}, RuntimeError("secret /etc/passwd"))
    async with connected(registry_of({"s": module}), era) as client:
        result = await streamed(client, era, progress)
    assert (result.is_error, text_of(result)) == (True, "Internal error occurred")
    assert [number for number, _, _ in progress.seen] == [1]


@pytest.mark.requirement("FR-STREAM-001")
async def test_a_chunk_that_json_does_not_know_is_written_as_its_string(era: str) -> None:
    progress = Progress()
    async with connected(registry_of({"s": Streaming({"a": {1}})}), era) as client:
        result = await streamed(client, era, progress)
    assert json.loads(text_of(result)) == {"a": "{1}"}
    assert json.loads(progress.seen[0][2] or "") == {"a": "{1}"}


# FR-EXT


@pytest.mark.requirement("FR-EXT-001")
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_a_module_reports_progress(era: str, sync: bool) -> None:
    async def execute(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        await report_progress(context, 50, total=100, message="Processing image...")
        await report_progress(context, 60)
        await report_progress(context, 70.5, total=50)
        return {}

    def execute_sync(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return asyncio.run(execute(inputs, context))

    progress = Progress()
    async with connected(registry_of({"p": Sample(execute_sync if sync else execute)}), era) as client:
        await client.call_tool("p", {}, progress_callback=progress)
    assert progress.seen == [(50, 100, "Processing image..."), (60, None, None), (70.5, 50, None)]


@pytest.mark.requirement("FR-EXT-001")
async def test_progress_never_falls_and_nonsense_is_not_sent(era: str) -> None:
    async def execute(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        for value in (5, 5, 1, float("nan"), float("inf"), 9):
            await report_progress(context, value)
        return {}

    progress = Progress()
    async with connected(registry_of({"p": Sample(execute)}), era) as client:
        assert (await client.call_tool("p", {}, progress_callback=progress)).is_error is False
    values = [value for value, _, _ in progress.seen]
    assert all(later > earlier for earlier, later in itertools.pairwise(values))
    assert (values[0], values[-1]) == (5, 9)


@pytest.mark.requirement("FR-EXT-001")
async def test_progress_that_nobody_asked_for_is_not_sent(era: str) -> None:
    async def execute(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        await report_progress(context, 1)
        return {"done": True}

    async with connected(registry_of({"p": Sample(execute)}), era) as client:
        assert json.loads(text_of(await client.call_tool("p", {}))) == {"done": True}


@pytest.mark.requirement("FR-EXT-001", "FR-EXT-002")
@pytest.mark.parametrize("context", [None, object(), {}, {"data": {}}], ids=["none", "object", "empty", "data"])
async def test_outside_mcp_the_helpers_do_nothing(context: Any) -> None:
    await report_progress(context, 1, total=2, message="x")
    assert await elicit(context, "Sure?") is None


@pytest.mark.requirement("FR-EXT-001", "FR-EXT-002")
async def test_in_a_direct_call_the_helpers_do_nothing() -> None:
    async def execute(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        await report_progress(context, 1)
        return {"answer": await elicit(context, "Sure?")}

    assert await Executor(registry_of({"x": Sample(execute)})).call_async("x", {}) == {"answer": None}


SCHEMA = {"type": "object", "properties": {"confirmed": {"type": "boolean"}}}


def asking(
    message: str = "Please confirm deletion", schema: dict[str, Any] | None = SCHEMA
) -> tuple[Sample, list[int]]:
    """A module that asks once, and the list of its runs."""
    runs: list[int] = []

    async def execute(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        runs.append(1)
        return {"answer": await elicit(context, message, schema)}

    return Sample(execute), runs


@pytest.mark.requirement("FR-EXT-002")
async def test_a_module_asks_and_the_user_answers(era: str) -> None:
    asked: list[Any] = []

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content={"confirmed": True})

    module, runs = asking()
    async with connected(registry_of({"ask": module}), era, {"elicitation_callback": answer}) as client:
        result = await client.call_tool("ask", {})
    assert json.loads(text_of(result)) == {"answer": {"confirmed": True}}
    assert [params.message for params in asked] == ["Please confirm deletion"]
    assert asked[0].requested_schema == SCHEMA
    assert runs == [1]


@pytest.mark.requirement("FR-EXT-002")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_who_declines_is_none(era: str, action: Any) -> None:
    async def answer(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action=action)

    module, runs = asking()
    async with connected(registry_of({"ask": module}), era, {"elicitation_callback": answer}) as client:
        assert json.loads(text_of(await client.call_tool("ask", {}))) == {"answer": None}
    assert runs == [1]


@pytest.mark.requirement("FR-EXT-002")
async def test_a_client_that_cannot_be_asked_is_none(era: str) -> None:
    module, runs = asking()
    async with connected(registry_of({"ask": module}), era) as client:
        assert json.loads(text_of(await client.call_tool("ask", {}))) == {"answer": None}
    assert runs == [1]


@pytest.mark.requirement("FR-EXT-002")
async def test_a_question_may_be_free_form_and_empty(era: str) -> None:
    asked: list[Any] = []

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content={"response": "hello"})

    module, _ = asking("", None)
    async with connected(registry_of({"ask": module}), era, {"elicitation_callback": answer}) as client:
        result = await client.call_tool("ask", {})
    assert json.loads(text_of(result)) == {"answer": {"response": "hello"}}
    assert asked[0].message == ""
    assert asked[0].requested_schema["type"] == "object"


@pytest.mark.requirement("FR-EXT-003")
async def test_the_capabilities_lie_in_the_context_under_the_documented_keys(era: str) -> None:
    assert (MCP_PROGRESS_KEY, MCP_ELICIT_KEY) == ("_mcp_progress", "_mcp_elicit")

    async def execute(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"callable": [callable(context.data.get(key)) for key in (MCP_PROGRESS_KEY, MCP_ELICIT_KEY)]}

    async with connected(registry_of({"x": Sample(execute)}), era) as client:
        assert json.loads(text_of(await client.call_tool("x", {}))) == {"callable": [True, True]}


# Errors keep their texts on the way to a client


@pytest.mark.requirement("FR-ERROR-001", "FR-ERROR-002", "FR-ERROR-011")
@pytest.mark.parametrize("validate_inputs", [False, True])
async def test_errors_reach_a_client_word_for_word(era: str, validate_inputs: bool) -> None:
    async with connected(registry_of({"add": Add()}), era, validate_inputs=validate_inputs) as client:
        unknown = await client.call_tool("foo.bar", {})
        missing = await client.call_tool("add", {"b": 1})
    assert (unknown.is_error, text_of(unknown)) == (True, "Module not found: foo.bar")
    assert missing.is_error is True
    first, line = text_of(missing).split("\n")
    assert first == "Input validation failed:"
    assert line.startswith("- a: ")
    assert line.endswith((" (required)", " (missing)"))  # apcore renamed the code in 0.32


# Hooks


@pytest.mark.requirement("FR-SERVER-005")
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_hooks_run_around_the_service(is_async: bool) -> None:
    seen: list[str] = []

    def hook(name: str) -> Any:
        async def later() -> None:
            seen.append(name)

        return later if is_async else lambda: seen.append(name)

    app = apcore_mcp.create_app(registry_of({"add": Add()}), on_startup=hook("startup"), on_shutdown=hook("shutdown"))
    async with app.router.lifespan_context(app):
        assert seen == ["startup"]
    assert seen == ["startup", "shutdown"]
