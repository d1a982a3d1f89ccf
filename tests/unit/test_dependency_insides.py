"""What we rely on in other packages without a promise: each test says what moved, and who has to follow."""

import asyncio
import copy
import dataclasses
import inspect
import json
import signal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httptools
import mcp_types as types
import pydantic
import pytest
from apcore import Executor
from apcore.pipeline import PipelineContext
from apcore.registry import entry_point
from apcore.registry import registry as apcore_registry
from apcore.utils import redaction
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp_types.methods import serialize_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from packaging.version import Version
from starlette.authentication import AuthCredentials, SimpleUser
from starlette.types import Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from apcore_files import internals as file_internals
from apcore_files.folder import discovered
from apcore_files.module_runs import contain
from apcore_mcp import internals
from mcp_serve import protocol, quick_http, sdk_forms, sdk_internals, uvicorn_internals, uvicorn_server
from mcp_serve.connections import Connections
from mcp_serve.endpoint import Endpoint
from mcp_serve.http import StreamableHTTP
from mcp_serve.table import ToolEntry
from mcp_serve.wire import CALLED, LISTED, Writer
from toolgrove.pool.http.openapi.document import load
from toolgrove.web.identity import Principal
from toolgrove.web.session_room import SessionRoom
from toolgrove.web.sessions import Sessions

SDK = "The MCP SDK moved something: see mcp_serve/sdk_internals.py."
UVICORN = "uvicorn moved something: see mcp_serve/uvicorn_internals.py."
APCORE = "apcore moved something: see apcore_mcp/internals.py."


Json = dict[str, Any]


class Empty:
    """A table without tools."""

    def entries(self) -> dict[str, ToolEntry]:
        return {}

    def entry(self, name: str) -> ToolEntry | None:
        return None


async def nothing(name: str, arguments: Any, run: Any) -> Any:
    raise AssertionError("there is no tool to run")


async def silent(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that answers nobody."""


def endpoint() -> Endpoint:
    return Endpoint("insides", "1", Empty(), nothing)


# The MCP SDK


@pytest.mark.anyio
async def test_the_sdk_lets_us_hear_of_the_end_of_a_connection() -> None:
    ended = asyncio.Event()

    async def initialized(ctx: Any, params: Any) -> None:
        assert hasattr(ctx.session, "_connection"), f"{SDK} A session no longer knows its connection."
        sdk_internals.when_connection_ends(ctx.session, ended.set)

    server: Server[Any] = Server("insides")
    server.add_notification_handler("notifications/initialized", types.NotificationParams, initialized)
    async with Client(server, mode="legacy"):
        assert not ended.is_set(), f"{SDK} A connection's exit stack is left before its end."
    assert ended.is_set(), f"{SDK} The end of a connection no longer leaves its exit stack."


def test_the_sdk_has_one_middleware_of_its_own_and_that_is_its_tracing() -> None:
    names = [type(each).__name__ for each in Server("insides").middleware]
    assert names == ["OpenTelemetryMiddleware"], (
        f"{SDK} A server begins with the middleware {names}; decide which of it drop_idle_tracing may take out."
    )
    kept = [type(each).__name__ for each in endpoint().server.middleware]
    assert kept == ["RequestStateBoundary", "function"], f"{SDK} Tracing that nobody collects is not taken out: {kept}."


def test_the_sdk_asks_a_server_itself_what_to_say_at_the_handshake() -> None:
    first, *_ = list(inspect.signature(Server.create_initialization_options).parameters)[1:]
    assert first == "notification_options", f"{SDK} create_initialization_options begins with {first} now."
    capabilities = endpoint().server.create_initialization_options().capabilities
    assert capabilities.tools is not None
    assert capabilities.tools.list_changed, f"{SDK} Clients are not told any more that the list of tools may change."


def test_the_sdk_takes_a_lookup_of_schemas_from_2_3_on() -> None:
    taken = bool(sdk_internals.schema_lookup(Empty().entry))  # type: ignore[arg-type]
    assert taken == (Version(version("mcp")) >= Version("2.3")), (
        f"{SDK} Without get_tool_input_schema every call runs a whole tools/list."
    )


def test_the_words_that_the_lane_knows_before_the_sdk_is_loaded_are_the_sdks() -> None:
    ours = [getattr(protocol, name) for name in dir(protocol) if name.endswith("_META_KEY")]
    sdks = [getattr(types, name) for name in dir(protocol) if name.endswith("_META_KEY")]
    assert ours == sdks, f"{SDK} A key of _meta has another name."
    assert set(MODERN_PROTOCOL_VERSIONS) == protocol.STATELESS, f"{SDK} There is another stateless version."
    assert tuple(HANDSHAKE_PROTOCOL_VERSIONS) == protocol.HANDSHAKE, f"{SDK} There is another version with sessions."
    assert (protocol.INTERNAL_ERROR, protocol.REQUEST_CANCELLED) == (types.INTERNAL_ERROR, REQUEST_CANCELLED), SDK


@pytest.mark.parametrize("modern", [True, False])
def test_the_envelopes_that_the_lane_writes_before_the_sdk_is_loaded_are_the_sdks(modern: bool) -> None:
    version = protocol.MODERN if modern else protocol.LEGACY
    for cursor in (None, "next"):
        listed = types.ListToolsResult(tools=[], next_cursor=cursor)
        dumped = listed.model_dump(by_alias=True, mode="json", exclude_none=True)
        around = {key: value for key, value in {**LISTED[modern], "nextCursor": cursor}.items() if value is not None}
        written = serialize_server_result("tools/list", version, dumped)
        assert list(written.items()) == list(around.items()), f"{SDK} A list has other fields."
    called = serialize_server_result("tools/call", version, {"content": [], **CALLED[modern]})
    assert list(called.items()) == list(CALLED[modern].items()), f"{SDK} A result has other fields."
    stamp = endpoint().server.server_info_stamp
    assert Writer({"name": "insides", "version": "1"}).stamped({}) == {"_meta": {types.SERVER_INFO_META_KEY: stamp}}, (
        SDK
    )


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}])
def test_the_sdk_takes_a_simple_client_at_its_word(capabilities: Any) -> None:
    about = {"client": {"name": "a", "version": ""}}
    assert sdk_forms.can_answer(about, capabilities) is bool(capabilities), f"{SDK} It reads a client's word otherwise."


async def posted(mcp: StreamableHTTP | Sessions, user: Any, body: Any, session: bytes = b"") -> tuple[int, bytes]:
    """Status and session id of the answer to one POST of the handshake era."""
    headers = [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")]
    headers += [(b"mcp-session-id", session), (b"mcp-protocol-version", b"2025-06-18")] if session else []
    started: list[Message] = []
    messages = [{"type": "http.request", "body": json.dumps(body).encode()}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.append(message)

    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "query_string": b""}
    await mcp({**scope, "user": user, "auth": AuthCredentials([])}, receive, send)
    [start] = started
    return start["status"], dict(start["headers"]).get(b"mcp-session-id", b"")


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "insides", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@pytest.mark.anyio
async def test_the_sdk_keeps_a_session_for_the_user_that_opened_it_if_it_is_one_of_its_own_kind() -> None:
    user = sdk_internals.owned({"user": SimpleUser("ann")})["user"]
    assert isinstance(user, AuthenticatedUser), f"{SDK} It knows users of another kind now."
    mcp = StreamableHTTP(endpoint())
    async with mcp.running():
        status, session = await posted(mcp, SimpleUser("ann"), INITIALIZE)
        assert (status, bool(session)) == (200, True)
        assert (await posted(mcp, SimpleUser("ann"), LIST, session))[0] == 200
        assert (await posted(mcp, SimpleUser("bob"), LIST, session))[0] == 404, (
            f"{SDK} A session is open to users that did not open it."
        )


@pytest.mark.anyio
async def test_the_sdk_ends_a_session_when_a_bare_delete_comes() -> None:
    ann = Principal("ann")
    mcp = StreamableHTTP(endpoint())
    async with mcp.running():
        sessions = Sessions(mcp, SessionRoom())
        _, session = await posted(sessions, ann, INITIALIZE)
        moved = "The MCP SDK does not end a session by a DELETE without more: see toolgrove/web/sessions.py."
        assert await sessions.end(ann) == 1, moved
        assert (await posted(sessions, ann, LIST, session))[0] == 404, moved


# uvicorn and httptools


def test_uvicorn_reads_http_by_the_methods_that_we_add_to() -> None:
    both = {**vars(uvicorn_internals.StrictHttp), **vars(quick_http.QuickHttp)}
    ours = [name for name, value in both.items() if inspect.isfunction(value)]
    added = {"_feed", "_head_without_upgrade", "_write_whole", "_begin", "_end", "_write", "_close_if_idle"}
    added |= {"_take", "_wait", "_came", "_hand_over", "_no_longer_waits", "_start_clock", "_stop_clock"}
    added |= {"_go_on", "_read", "_too_late"}
    for name in {*ours, "_unset_keepalive_if_required", "send_400_response", "on_message_begin"} - added:
        assert callable(getattr(HttpToolsProtocol, name, None)), f"{UVICORN} HttpToolsProtocol has no {name} any more."
    for name in added:
        assert not hasattr(HttpToolsProtocol, name), f"{UVICORN} HttpToolsProtocol has a {name} of its own."


def test_uvicorn_knows_that_a_request_is_answered_by_what_we_set() -> None:
    written = inspect.getsource(RequestResponseCycle.send)
    for name in ("response_started", "response_complete", "waiting_for_100_continue", "message_event", "on_response"):
        assert f"self.{name}" in written, f"{UVICORN} An answer no longer sets {name}."
    for name in ("flow.write_paused", "flow.drain", "disconnected", "keep_alive", "default_headers"):
        assert f"self.{name}" in written, f"{UVICORN} An answer no longer looks at {name}."


def test_uvicorn_keeps_the_head_of_a_request_where_we_look() -> None:
    async def reading() -> None:
        setup = Config(silent, http=HttpToolsProtocol, ws="none", log_config=None, lifespan="off")
        reader = HttpToolsProtocol(config=setup, server_state=ServerState(), app_state={})
        for name in ("client", "cycle", "flow", "loop", "logger", "parser", "tasks", "timeout_keep_alive", "transport"):
            assert hasattr(reader, name), f"{UVICORN} A connection has no {name} any more."
        reader.on_message_begin()
        reader.on_url(b"/mcp")
        reader.on_header(b"Host", b"localhost")
        assert reader.url == b"/mcp", f"{UVICORN} The address of a request is elsewhere."
        assert reader.headers == [(b"host", b"localhost")], f"{UVICORN} The headers of a request are elsewhere."
        assert reader.scope["headers"] is reader.headers, f"{UVICORN} A trailer may reach the app now."

    asyncio.run(reading())


def test_uvicorn_leaves_signals_alone_and_listening_to_us() -> None:
    async def serving() -> None:
        before = signal.getsignal(signal.SIGTERM)
        server = uvicorn_server.HttpServer(silent, Connections(1))
        task = asyncio.create_task(server.serve(sockets=[]))
        while not server.started and not task.done():
            await asyncio.sleep(0)
        assert server.started, f"{UVICORN} It does not start: {task.exception()!r}."
        assert signal.getsignal(signal.SIGTERM) is before, f"{UVICORN} It takes the signals in another way."
        assert getattr(server, "servers", None) == [], f"{UVICORN} It listens although it was given no socket."
        assert isinstance(server.connection(), HttpToolsProtocol)
        server.should_exit = True
        await task

    asyncio.run(serving())


def test_httptools_says_where_it_stopped_at_an_upgrade() -> None:
    class Reader:
        def on_headers_complete(self) -> None:
            assert parser.should_upgrade(), "httptools tells of an upgrade later: see StrictHttp.on_headers_complete."

    parser = httptools.HttpRequestParser(Reader())
    head = b"POST / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 4\r\n\r\n"
    with pytest.raises(httptools.HttpParserUpgrade) as stopped:
        parser.feed_data(head + b"body")
    assert stopped.value.args == (len(head),), "httptools says something else at an upgrade: see StrictHttp._feed."
    assert (parser.get_method(), parser.get_http_version()) == (b"POST", "1.1")


# apcore and pydantic


def test_apcores_discovery_has_the_stages_that_follow_a_folder() -> None:
    lacking = [name for name in file_internals.STAGES if not hasattr(apcore_registry.Registry, name)]
    assert lacking == [], f"apcore moved something: see apcore_files/watching.py. Discovery has no {lacking}."


def test_apcores_steps_can_be_wrapped_where_modules_run_and_are_checked() -> None:
    executor = Executor(apcore_registry.Registry())
    contain(executor)
    wrapped = [step.name for step in executor.current_strategy.steps if hasattr(step.execute, "_is_contained")]
    moved = "apcore moved something: see apcore_files/module_runs.py."
    assert wrapped == ["execute", "output_validation"], f"{moved} Steps have other names: {wrapped}."
    assert {"module", "output", "stream"} <= {field.name for field in dataclasses.fields(PipelineContext)}, moved


def test_a_pydantic_model_can_be_made_to_remember_its_schema() -> None:
    class Model(pydantic.BaseModel):
        a: int

    class Module:
        input_schema = Model
        output_schema = None

    first = Model.model_json_schema()
    internals.remember_schemas(Module())
    moved = "pydantic makes schemas in another way: see remember_schemas in apcore_mcp/internals.py."
    assert "model_json_schema" in vars(Model), moved
    assert Model.model_json_schema() == first, moved
    assert Model.model_json_schema(by_alias=False) == first, moved


FIELDS: st.SearchStrategy[Json] = st.recursive(
    st.builds(dict, type=st.just("string"), **{"x-sensitive": st.booleans()}) | st.just({"$ref": "#/$defs/part"}),
    lambda inner: st.one_of(
        st.builds(dict, type=st.just("object"), properties=st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
        st.builds(dict, type=st.just("array"), items=inner),
        st.builds(dict, anyOf=st.lists(inner, min_size=1, max_size=2)),
    ),
    max_leaves=8,
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), FIELDS, max_size=3), FIELDS, st.lists(VALUES, min_size=1, max_size=3))
def test_apcore_redacts_the_same_where_a_schema_is_searched_once(fields: Json, part: Json, values: list[Any]) -> None:
    internals.remember_redactors()
    remembered = getattr(redaction, internals.REDACT)
    if not hasattr(redaction, internals.REDACTOR):
        assert Version(version("apcore")) < Version("0.32"), f"{APCORE} It redacts by something else."
        return
    original = remembered.__wrapped__
    for value in values:  # the first of them has the schema searched
        expected, found = ({"a": copy.deepcopy(value), "b": [value]} for _ in range(2))
        schema = {"type": "object", "properties": fields, "$defs": {"part": part}}
        original(expected, copy.deepcopy(schema), token="?")
        remembered(found, schema, token="?")
        assert found == expected
    apart = {"a": "x"}
    remembered(apart, {"properties": {"a": {"x-sensitive": True, "default": object()}}}, token="?")
    assert apart == {"a": "?"}


def test_apcore_imports_a_file_by_the_functions_that_we_changed(tmp_path: Path) -> None:
    moved = "apcore moved something: see apcore_files/internals.py."
    resolve = getattr(apcore_registry, file_internals.RESOLVE, None)
    assert resolve is not None, f"{moved} It finds classes by another function than {file_internals.RESOLVE}."
    assert "pre_approval_hook" in inspect.signature(resolve).parameters, f"{moved} A folder's loader has no way in."
    assert hasattr(entry_point, file_internals.IMPORT), f"{moved} It imports files by another function."
    (tmp_path / "exits.py").write_text("raise SystemExit(7)")
    assert discovered(tmp_path).count == 0, moved
    (tmp_path / "sums.py").write_text("def add(a: int) -> int:\n    return a\n")
    assert discovered(tmp_path).list() == ["sums.add"], moved


# What Toolgrove itself relies on


def test_pyyaml_reads_a_date_as_text_where_we_say_so(tmp_path: Path) -> None:
    document = tmp_path / "openapi.yaml"
    document.write_text("openapi: 3.1.0\ninfo: {title: t, version: 2026-01-01}\npaths: {}\n")
    assert load(document).whole["info"]["version"] == "2026-01-01", (
        "PyYAML looks its resolvers up elsewhere: see _Loader in toolgrove/pool/http/openapi/document.py."
    )
