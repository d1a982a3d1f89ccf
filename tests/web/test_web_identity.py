"""THREATS C over a real gateway: a token is who one is, and what one may not see looks like what is not there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from prometheus_client.parser import text_string_to_metric_families

from e2e.wire import ERAS, Handshake, call_body, messages, modern_body, modern_headers
from faults.kit import fake
from faults.web import Web
from toolgrove.store.state import OPERATOR
from waiting import DEADLINE, eventually
from web.gateway import PROJECT, Gateway, call, events, serving, toolgrove

pytestmark = pytest.mark.anyio
LOOK = {"nodeId": "root"}
AGENTS: dict[str, Any] = {
    **PROJECT["agents"],
    "masked": {"role": "editor", "tools": ["up_*", "get_node"], "mcp": {"up": {"mask": ["erase"]}}},
    "denied": {"role": "editor", "tools": ["*"], "deny": ["up_erase"]},
}


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with Web().serving() as served:
        yield served


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, web: Web) -> Iterator[Gateway]:
    servers = {"up": fake(), "remote": {"url": web.url, "headers": {"Authorization": "Bearer ${env:OWN_KEY}"}}}
    config = {
        **PROJECT,
        "mcpServers": servers,
        "httpTools": {
            "look": {
                "url": f"http://127.0.0.1:{web.port}/look",
                "allowPrivate": True,
                "headers": {"X-Key": "${env:OWN_KEY}"},
            }
        },
        "secrets": {"OWN_KEY": {"tools": ["remote_*", "look"]}},
        "agents": AGENTS,
    }
    folder = tmp_path_factory.mktemp("project")
    with serving(folder, config, environ={"OWN_KEY": "own-key-of-the-gateway-4711"}) as served:
        yield served


ADDRESSES = [
    ("POST", "/agents/editor/mcp"),
    ("GET", "/agents/editor/mcp"),
    ("DELETE", "/agents/editor/mcp"),
    ("GET", "/agents/editor/openai-tools"),
    ("GET", "/agents/editor/receipt"),
    ("POST", "/agents/editor/runs"),
    ("GET", "/agents/nobody/receipt"),
]
OPERATORS = [
    ("GET", "/metrics"),
    ("GET", "/api/project"),
    ("GET", "/api/pool"),
    ("GET", "/api/events"),
    ("GET", "/api/approvals"),
    ("GET", "/api/approvals/x"),
    ("POST", "/api/approvals/x"),
    ("DELETE", "/api/approvals/x"),
    ("GET", "/api/pins"),
    ("POST", "/api/pins/up/echo"),
    ("GET", "/api/audit"),
    ("GET", "/api/audit/verify"),
    ("GET", "/api/audit/export"),
]
CREDENTIALS: dict[str, Any] = {
    "none": lambda gateway: {},
    "empty": lambda gateway: {"Authorization": ""},
    "no token": lambda gateway: {"Authorization": "Bearer"},
    "made up": lambda gateway: {"Authorization": "Bearer tg_" + "x" * 43},
    "cut": lambda gateway: {"Authorization": gateway.headers("editor")["Authorization"][:-1]},
    "longer": lambda gateway: {"Authorization": gateway.headers("editor")["Authorization"] + "A"},
    "other case": lambda gateway: {"Authorization": gateway.headers("editor")["Authorization"].swapcase()},
    "basic": lambda gateway: {"Authorization": gateway.headers("editor")["Authorization"].replace("Bearer", "Basic")},
    "bare": lambda gateway: {"Authorization": gateway.tokens["editor"]},
    "name": lambda gateway: {"Authorization": "Bearer editor"},
    "operator's name": lambda gateway: {"Authorization": f"Bearer {OPERATOR}"},
    "not ASCII": lambda gateway: {"Authorization": "Bearer tökén".encode()},
    "cookie": lambda gateway: {"Cookie": f"token={gateway.tokens['editor']}; Authorization=Bearer"},
    "other header": lambda gateway: {"X-Api-Key": gateway.tokens["editor"], "X-Forwarded-User": "editor"},
    "proxy": lambda gateway: {"Proxy-Authorization": gateway.headers("editor")["Authorization"]},
}


@pytest.mark.parametrize("credentials", CREDENTIALS.values(), ids=CREDENTIALS.keys())
async def test_nobody_comes_in_without_a_token_as_it_was_issued(gateway: Gateway, credentials: Any) -> None:
    headers = modern_headers("tools/call", "get_node") | credentials(gateway)
    async with gateway.http() as http:
        for method, path in (*ADDRESSES, *OPERATORS, ("GET", "/no/such/address")):
            body = json.dumps(call_body("get_node", LOOK)).encode() if method == "POST" else None
            refused = await http.request(method, path, content=body, headers=headers)
            assert refused.status_code == 401, path
            assert refused.headers["www-authenticate"].startswith("Bearer")
            assert refused.json()["error"]["code"] == "unauthenticated"


async def test_two_tokens_are_none(gateway: Gateway) -> None:
    both = [*gateway.headers("editor").items(), *gateway.headers("operator").items()]
    async with gateway.http() as http:
        assert (await http.get("/agents/editor/receipt", headers=both)).status_code == 401
        assert (await http.get("/agents/editor/receipt", headers=[both[0], both[0]])).status_code == 401


async def test_a_token_in_the_address_opens_nothing(gateway: Gateway) -> None:
    async with gateway.http() as http:
        for name in ("token", "access_token", "authorization", "api_key"):
            for value in (gateway.tokens[OPERATOR], f"Bearer {gateway.tokens[OPERATOR]}"):
                refused = await http.get("/api/project", params={name: value})
                assert refused.status_code == 401, name


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
async def test_another_agents_token_finds_no_agent(gateway: Gateway, method: str, path: str) -> None:
    """The very same answer as at the address of an agent that does not exist."""
    headers = modern_headers("tools/call", "get_node")
    body = json.dumps(call_body("get_node", LOOK)).encode() if method == "POST" else None
    async with gateway.http("researcher") as http:
        refused = await http.request(method, path, content=body, headers=headers)
        missing = await http.request(
            method, path.replace("editor", "nobody").replace("nobody", "absent"), content=body, headers=headers
        )
    assert refused.status_code == missing.status_code == 404
    assert refused.text.replace("editor", "absent").replace("nobody", "absent") == missing.text
    assert refused.headers.keys() == missing.headers.keys()


@pytest.mark.parametrize(("method", "path"), OPERATORS)
async def test_the_operators_addresses_are_the_operators(gateway: Gateway, method: str, path: str) -> None:
    async with gateway.http("editor") as http:
        body = b'{"approve": true}' if method == "POST" else None
        refused = await http.request(method, path, content=body, headers={"Content-Type": "application/json"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")


async def test_health_is_open_and_says_nothing_more(gateway: Gateway) -> None:
    async with gateway.http() as http:
        assert (await http.get("/health")).json() == {"status": "ok"}
        assert (await http.get("/ready")).json() == {"status": "ready", "troubles": []}


@pytest.mark.parametrize("era", ERAS)
async def test_what_a_client_calls_itself_changes_nothing(gateway: Gateway, era: str) -> None:
    """Neither its name nor anything it says in `_meta` or in headers is who it is."""
    posing = types.Implementation(name="(operator)", version="1", title="editor")
    async with gateway.connect("researcher", era, client_info=posing) as client:
        assert "add_child" not in [tool.name for tool in (await client.list_tools()).tools]
        refused = await client.call_tool("add_child", {"parentNodeId": "root", "payloadType": "Note"})
        assert refused.is_error
    meta = {"agent": "editor", "toolgrove/agent": "editor", "toolgrove/session": "editor", "role": "editor"}
    async with gateway.http("researcher") as http:
        answer = await call(
            http, "researcher", "add_child", {"parentNodeId": "root", "payloadType": "Note"}, _meta=meta
        )
    assert answer["error"]["code"] == "not_found"
    async with gateway.http("operator") as http:
        records = (await http.get("/api/audit", params={"tool": "add_child"})).json()["items"]
    assert {record["agent"] for record in records} == {"researcher"}


async def test_a_legacy_session_is_its_agents_own(gateway: Gateway) -> None:
    """Another agent can neither speak, listen nor end in it, at either address; afterwards it is as it was."""
    async with gateway.http("editor") as editor, Handshake(editor, gateway.address("editor")) as session:
        stolen = session.headers
        body = {"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}}
        async with gateway.http("researcher") as thief:
            for path in ("/agents/editor/mcp", "/agents/researcher/mcp"):
                assert (await thief.post(path, json=body, headers=stolen)).status_code == 404, path
                assert (await thief.get(path, headers=stolen)).status_code == 404, path
                assert (await thief.delete(path, headers=stolen)).status_code == 404, path
        async with gateway.http() as nobody:
            assert (await nobody.post("/agents/editor/mcp", json=body, headers=stolen)).status_code == 401
        assert (await session.request("tools/list")).status_code == 200


async def test_a_page_token_is_its_agents_own(gateway: Gateway) -> None:
    async with gateway.http("editor") as editor, gateway.http("denied") as other:
        for number in range(3):
            version = (await call(editor, "editor", "get_node", LOOK))["version"]
            added = {
                "parentNodeId": "root",
                "payloadType": "Note",
                "payloadProps": {"n": number},
                "versionToken": version,
            }
            assert "error" not in await call(editor, "editor", "add_child", added)
        first = await call(editor, "editor", "list_children", {"nodeId": "root", "limit": 1})
        token = first["nextPageToken"]
        page = {"nodeId": "root", "limit": 1, "pageToken": token}
        assert len((await call(editor, "editor", "list_children", page))["items"]) == 1
        flipped = ("A" if token[0] != "A" else "B") + token[1:]
        for http, agent, arguments in [
            (other, "denied", page),
            (editor, "editor", page | {"pageToken": flipped}),
            (editor, "editor", page | {"nodeId": "elsewhere"}),
        ]:
            refused = (await call(http, agent, "list_children", arguments))["error"]
            assert refused["code"] in ("invalid_argument", "not_found"), arguments
            assert "items" not in refused


def told(error: dict[str, Any], name: str, own: set[str]) -> dict[str, Any]:
    """An error without the name that was asked for; a hint may name only what the agent has."""
    message, _, hint = error["message"].partition(" Did you mean ")
    assert not hint or hint.strip("'?") in own
    return {**error, "message": message.replace(name, "X"), "tool": error["tool"].replace(name, "X")}


@pytest.mark.parametrize("agent", ["masked", "denied", "researcher"])
async def test_masked_denied_and_ungranted_tools_are_answered_like_unknown_ones(gateway: Gateway, agent: str) -> None:
    hidden, unknown = "up_erase", "up_eraze"
    async with gateway.http(agent) as http:
        exported = (await http.get(f"/agents/{agent}/openai-tools")).json()
        own = {tool["function"]["name"] for tool in exported}
        assert "get_node" in own
        assert hidden not in own
        headers = modern_headers("tools/list")
        listed = await http.post(f"/agents/{agent}/mcp", json=modern_body("tools/list"), headers=headers)
        assert {tool["name"] for tool in messages(listed)[0]["result"]["tools"]} == own
        answers = {name: (await call(http, agent, name, {}))["error"] for name in (hidden, unknown)}
        assert answers[hidden]["code"] == "not_found"
        assert told(answers[hidden], hidden, own) == told(answers[unknown], unknown, own)
        for name in (hidden, unknown):
            run = await http.post(f"/agents/{agent}/runs", json={"calls": [{"tool": name}]})
            assert events(run.text)[1]["error"] == {**answers[name], "retryable": False}


async def test_a_list_that_differs_by_agent_is_for_no_shared_cache(gateway: Gateway) -> None:
    async with gateway.http("researcher") as http:
        headers = modern_headers("tools/list")
        response = await http.post("/agents/researcher/mcp", json=modern_body("tools/list"), headers=headers)
        (message,) = messages(response)
        assert message["result"]["cacheScope"] == "private"
        headers = modern_headers("server/discover")
        response = await http.post("/agents/researcher/mcp", json=modern_body("server/discover"), headers=headers)
        (message,) = messages(response)
        assert message["result"].get("cacheScope", "private") == "private"


async def test_no_token_of_ours_ever_reaches_an_upstream(gateway: Gateway, web: Web) -> None:
    async with gateway.http("editor") as http:
        echoed = await call(http, "editor", "remote_echo", {"text": "hello"})
        assert echoed["content"][0]["text"] == "hello"
        await call(http, "editor", "look", {})
    assert web.counted("tools/call") >= 1
    for request in web.requests:
        sent = json.dumps(request.headers) + request.body.decode()
        assert not [token for token in gateway.tokens.values() if token in sent]
        own = request.headers.get("authorization") if request.path == "/mcp" else request.headers.get("x-key")
        assert own is not None
        assert "own-key-of-the-gateway-4711" in own


async def test_the_operator_may_act_as_any_agent_and_no_more_than_it(gateway: Gateway) -> None:
    async with gateway.http("operator") as http:
        assert (await call(http, "researcher", "get_node", LOOK))["nodeId"] == "root"
        refused = await call(http, "researcher", "add_child", {"parentNodeId": "root", "payloadType": "Note"})
        assert refused["error"]["code"] == "not_found"
        records = (await http.get("/api/audit", params={"agent": "researcher", "tool": "get_node"})).json()["items"]
        assert OPERATOR in {record["session"] for record in records}


async def test_its_own_receipt_tells_an_agent_of_no_tool_that_it_could_not_guess(gateway: Gateway) -> None:
    """THREATS C11: masked, denied and foreign names, and the sources of those alone, are the operator's to read."""
    for agent in AGENTS:
        async with gateway.http(agent) as http, gateway.http("operator") as operator:
            own = (await http.get(f"/agents/{agent}/receipt")).json()
            whole = (await operator.get(f"/agents/{agent}/receipt")).json()
            seen = {tool["function"]["name"] for tool in (await http.get(f"/agents/{agent}/openai-tools")).json()}
        by_role = {name for name, one in whole["tools"].items() if one["verdict"] == "restricted"}
        assert own["tools"] == {name: whole["tools"][name] for name in sorted(seen | by_role)}
        assert own["sources"].keys() == {one["source"] for one in own["tools"].values()} & whole["sources"].keys()
        assert (own["rejected"], own["warnings"], own["hash"]) == ([], [], whole["hash"])
        others = whole["tools"].keys() - seen - by_role
        assert not [name for name in others if f'"{name}"' in json.dumps(own)]
    assert {"up_erase"} <= others


async def test_a_token_is_void_once_it_was_revoked_or_replaced(gateway: Gateway) -> None:
    """By the command line, while the gateway runs; who has the new one comes in."""

    def tokens(*words: str) -> Any:
        command = toolgrove("tokens", *words, "--config", str(gateway.file), "--json")
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=True)
        return json.loads(done.stdout)

    async def status(token: str) -> int:
        async with gateway.http() as http:
            answer = await http.get("/agents/masked/receipt", headers={"Authorization": f"Bearer {token}"})
            return answer.status_code

    first = gateway.tokens["masked"]
    assert await status(first) == 200
    second = (await anyio.to_thread.run_sync(tokens, "new", "masked"))["token"]
    with anyio.fail_after(DEADLINE):
        while await status(second) != 200:
            await anyio.sleep(0.05)
    assert await status(first) == 200, "one more token voids none"
    third = (await anyio.to_thread.run_sync(tokens, "new", "masked", "--replace"))["token"]
    with anyio.fail_after(DEADLINE):
        while await status(third) != 200:
            await anyio.sleep(0.05)
    assert (await status(first), await status(second)) == (401, 401)
    assert len((await anyio.to_thread.run_sync(tokens, "revoke", "masked"))["revoked"]) == 1
    with anyio.fail_after(DEADLINE):
        while await status(third) != 401:
            await anyio.sleep(0.05)
    assert await status(gateway.tokens["editor"]) == 404


def test_tokens_are_kept_as_hashes_in_a_file_of_the_owner(gateway: Gateway) -> None:
    folder = gateway.file.parent / ".toolgrove"
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    for file in files:
        data = file.read_bytes()
        assert not [token for token in gateway.tokens.values() if token.encode() in data], file
        assert file.stat().st_mode & 0o077 == 0, file
    assert not [token for token in gateway.tokens.values() if token in gateway.log]


def test_tokens_are_shown_once_and_work_after_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("twice")
    with serving(folder) as first:
        assert set(first.tokens) == {OPERATOR, "researcher", "editor"}
        assert len(set(first.tokens.values())) == 3
    with serving(folder) as second:
        assert second.tokens == {}
        assert "token" not in second.console
        headers = first.headers("editor")
        answer = httpx2.get(f"{second.base}/agents/editor/receipt", headers=headers, timeout=DEADLINE)
        assert answer.status_code == 200


async def test_made_up_names_never_become_labels_of_metrics(gateway: Gateway) -> None:
    async with gateway.http("editor") as http, gateway.http("operator") as operator:
        for number in range(5):
            await call(http, "editor", f"made-up-{number}", {})
        exposition = await operator.get("/metrics")
        assert exposition.headers["content-type"].startswith("text/plain")
        assert "made-up" not in exposition.text
        assert 'toolgrove_calls_total{agent="editor",outcome="not_found",tool=""}' in exposition.text
        assert not [token for token in gateway.tokens.values() if token in exposition.text]


async def test_every_call_is_counted_and_timed(gateway: Gateway) -> None:
    async with gateway.http("editor") as http, gateway.http("operator") as operator:

        async def value(name: str, **labels: str) -> float:
            families = text_string_to_metric_families((await operator.get("/metrics")).text)
            samples = [sample for family in families for sample in family.samples if sample.name == name]
            return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())

        counted = {"agent": "editor", "tool": "get_node", "outcome": "success"}
        before = await value("toolgrove_calls_total", **counted)
        timed = await value("toolgrove_call_seconds_count", agent="editor")
        for _ in range(3):
            await call(http, "editor", "get_node", {"nodeId": "root"})
        assert await value("toolgrove_calls_total", **counted) == before + 3
        assert await value("toolgrove_call_seconds_count", agent="editor") == timed + 3
        assert await value("toolgrove_call_seconds_bucket", agent="editor", le="+Inf") == timed + 3
        assert await value("toolgrove_call_seconds_bucket", agent="editor", le="30") == timed + 3
        assert await value("toolgrove_call_seconds_sum", agent="editor") > 0


async def test_a_stream_of_events_is_for_the_operator_and_tells_of_every_call(gateway: Gateway) -> None:
    told: list[dict[str, Any]] = []
    async with (
        gateway.http("operator") as operator,
        gateway.http("researcher") as http,
        operator.stream("GET", "/api/events") as stream,
        anyio.create_task_group() as group,
    ):

        async def listen() -> None:
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    told.append(json.loads(line[6:]))

        group.start_soon(listen)
        await eventually(lambda: told)
        await call(http, "researcher", "get_node", {"nodeId": "nowhere"})
        await eventually(lambda: any(event["type"] == "tool_failed" for event in told))
        group.cancel_scope.cancel()
    (failed,) = [event for event in told if event["type"] == "tool_failed"]
    assert (failed["agent"], failed["tool"], failed["error"]["code"]) == ("researcher", "get_node", "not_found")
