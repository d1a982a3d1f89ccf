"""The reference of the HTTP API: every address is in it and no other, and answers are what it says they are."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jsonschema
import pytest

from faults.kit import fake
from toolgrove import Config, Grove
from toolgrove.config import ConfigFile, HttpToolConfig
from toolgrove.pool.http.openapi import read_document
from toolgrove.pool.http.operation import HttpOperation
from toolgrove.store.state import OPERATOR
from toolgrove.web.open_addresses import OPEN
from toolgrove.web.openapi import document
from toolgrove.web.operations import OPERATIONS

pytestmark = pytest.mark.anyio
PROJECT: dict[str, Any] = {
    "mcpServers": {"up": fake()},
    "agents": {"editor": {"role": "editor", "tools": ["*"], "approve": ["remove_node"]}},
}


@asynccontextmanager
async def gateway(holder: str | None = OPERATOR) -> AsyncIterator[tuple[Grove, httpx2.AsyncClient]]:
    """A project in this process, and a client with somebody's token."""
    with anyio.fail_after(60):
        async with Grove(Config.model_validate(PROJECT)) as grove:
            app = grove.asgi_app()
            headers = {} if holder is None else {"Authorization": f"Bearer {grove.tokens.issue(holder)}"}
            async with app.router.lifespan_context(app):
                transport = httpx2.ASGITransport(app=app)
                async with httpx2.AsyncClient(
                    transport=transport, base_url="http://127.0.0.1", headers=headers
                ) as client:
                    yield grove, client


async def test_every_route_is_in_the_document_and_every_operation_is_a_route() -> None:
    async with gateway() as (grove, _):
        routes: list[Any] = grove.asgi_app().routes
    real = {(re.sub(r":path(?=\})", "", one.path), method) for one in routes for method in one.methods - {"HEAD"}}
    described = {(path, method.upper()) for path, item in document()["paths"].items() for method in item}
    assert described == real
    assert len(described) == len(OPERATIONS)


def test_no_token_is_needed_exactly_where_the_reference_says_so() -> None:
    assert {one.path for one in OPERATIONS if one.who == "everybody"} == OPEN


async def test_requests_that_come_while_the_routes_are_made_are_answered_by_one_set_of_them() -> None:
    async with Grove(Config()) as grove:
        app = grove.gateway(anonymous=True).app
        async with app.router.lifespan_context(app):
            transport = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
                assert app.routes == []
                answers = await asyncio.gather(*(http.get(path) for path in ("/health", "/api/project", "/none") * 5))
        assert [one.status_code for one in answers] == [200, 200, 404] * 5
        assert len(app.routes) == len(grove.asgi_app().routes)


async def test_the_document_is_open_and_the_same_everywhere() -> None:
    async with gateway(None) as (_, http):
        shown = await http.get("/api/openapi.json")
        assert (shown.status_code, shown.json()) == (200, json.loads(json.dumps(document())))
        assert (await http.get("/api/project")).status_code == 401


def references(form: Any) -> Iterator[str]:
    if isinstance(form, dict):
        yield from (value for key, value in form.items() if key == "$ref")
        for value in form.values():
            yield from references(value)
    elif isinstance(form, list | tuple):
        for value in form:
            yield from references(value)


def test_every_schema_is_sound_and_used() -> None:
    schemas = document()["components"]["schemas"]
    assert {reference.rpartition("/")[2] for reference in references(document())} == schemas.keys()
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_our_own_reader_of_openapi_takes_the_document() -> None:
    entry = HttpToolConfig.model_validate({"openapi": "openapi.json", "url": "http://127.0.0.1:8000"})
    found = read_document("gateway", entry, json.dumps(document()).encode()).operations
    assert [one for one in found if not isinstance(one, HttpOperation)] == []
    assert len(found) == len(OPERATIONS)


def check(name: str, response: httpx2.Response) -> None:
    """Hold an answer to what the document says about it."""
    (form,) = [one for item in document()["paths"].values() for one in item.values() if one["operationId"] == name]
    said = form["responses"][str(response.status_code)]
    media, _, _ = response.headers.get("content-type", "").partition(";")
    assert media in said["content"], (name, media)
    schema = said["content"][media].get("schema")
    if schema is not None:
        jsonschema.validate(response.json(), {**schema, "components": document()["components"]})


def an(name: str) -> str:
    """The address of an operation."""
    return next(one.path for one in OPERATIONS if one.name == name).replace("{agent}", "editor")


async def test_answers_are_what_the_document_says() -> None:
    async with gateway() as (grove, http):
        editor = await grove.agent("editor")
        root = await editor.call("get_node", {"nodeId": "root"})
        added = await editor.call(
            "add_child", {"parentNodeId": "root", "payloadType": "Note", "versionToken": root["version"]}
        )
        gone = {"nodeId": added["nodeId"], "versionToken": added["version"]}
        waiting = (await editor.call("remove_node", gone))["error"]["approvalId"]
        await editor.call("get_nod", {})
        pin = grove.pins.list()[0]
        grove.pins.saw(pin.server, pin.own_name, "f" * 64, {"name": pin.own_name, "description": "Changed."})
        simple = [
            *("health", "ready", "console", "console_folder", "openapi", "openai_tools", "receipt", "project", "pool"),
            *("approvals", "pins", "audit", "verify", "export", "metrics", "traffic", "runs", "sources", "tokens"),
            "manual",
        ]
        for name in simple:
            answered = await http.get(an(name))
            assert answered.status_code == 200, name
            check(name, answered)
        check("export", await http.get("/api/audit/export?format=csv"))
        check("openai_tools", await http.get(an("openai_tools"), params={"strict": "1", "embedAnnotations": "1"}))
        assert (await http.get("/")).status_code == 307
        check(
            "run", await http.post(an("run"), json={"calls": [{"tool": "get_node", "arguments": {"nodeId": "root"}}]})
        )
        check("approval", await http.get(f"/api/approvals/{waiting}"))
        check("decide", await http.post(f"/api/approvals/{waiting}", json={"approve": True, "for": "1h"}))
        check("revoke", await http.delete(f"/api/approvals/{waiting}"))
        check("decide_pin", await http.post(f"/api/pins/{pin.server}/{pin.own_name}", json={"accept": "f" * 64}))
        (added,) = (await http.get("/api/audit?tool=add_child")).json()["items"]
        check("call", await http.get(f"/api/calls/{added['callId']}"))
        check("run_story", await http.get(f"/api/runs/{added['runId']}"))
        check("manual_page", await http.get("/api/docs/quickstart"))
        apart = {"home", "manual_page", "call", "run_story", "run", "approval", "decide", "revoke", "decide_pin"}
        elsewhere = {"mcp", "mcp_stream", "mcp_end", "events"}  # tests/web talks to these
        elsewhere |= {"begin_login", "login_answer"}  # and tests/pool/mcp to these
        elsewhere |= CHANGING  # and the next test to these
        assert {one.name for one in OPERATIONS} == {*simple, *apart, *elsewhere}


CHANGING = {"source", "restart_source", "preview_access", "change_access", "undo_access", "new_token", "revoke_token"}


async def test_answers_to_what_the_console_changes_are_what_the_document_says(tmp_path: Path) -> None:
    path = tmp_path / "toolgrove.yaml"
    path.write_text(json.dumps(PROJECT))
    async with gateway() as (grove, http):
        grove.file = ConfigFile(path)
        wish = {"agent": "editor", "tool": "get_node", "want": "hide"}
        seen = await http.post("/api/access/preview", json=wish)
        written = await http.post("/api/access", json={**wish, "digest": seen.json()["digest"]})
        token = await http.post("/api/tokens", json={"agent": "editor"})
        answers = {
            "preview_access": seen,
            "change_access": written,
            "undo_access": await http.post("/api/access/undo", json={"digest": written.json()["digest"]}),
            "new_token": token,
            "revoke_token": await http.delete(f"/api/tokens/{token.json()['id']}"),
            "source": await http.get("/api/sources/up"),
            "restart_source": await http.post("/api/sources/up/restart"),
        }
    assert answers.keys() == CHANGING
    for name, answered in answers.items():
        assert answered.status_code == 200, answered.text
        check(name, answered)


async def test_refusals_are_what_the_document_says() -> None:
    async with gateway() as (grove, http):
        editor = await grove.agent("editor")
        root = await editor.call("get_node", {"nodeId": "root"})
        note = {"parentNodeId": "root", "payloadType": "Note", "versionToken": root["version"]}
        gone = {"nodeId": (await editor.call("add_child", note))["nodeId"]}
        waiting = (await editor.call("remove_node", gone))["error"]["approvalId"]
        await grove.approvals.decide(waiting, approve=False, by="somebody")
        token = grove.tokens.issue("editor")
        cases: list[tuple[str, int, httpx2.Response]] = [
            ("approvals", 400, await http.get("/api/approvals?state=lost")),
            ("approval", 404, await http.get("/api/approvals/none")),
            ("decide", 400, await http.post(f"/api/approvals/{waiting}", json={"approve": 1})),
            ("decide", 404, await http.post("/api/approvals/none", json={"approve": True})),
            ("decide", 409, await http.post(f"/api/approvals/{waiting}", json={"approve": True})),
            ("decide", 415, await http.post(f"/api/approvals/{waiting}", content=b"approve=1")),
            ("revoke", 404, await http.delete("/api/approvals/none")),
            ("revoke", 409, await http.delete(f"/api/approvals/{waiting}")),
            ("decide_pin", 404, await http.post("/api/pins/up/none", json={"accept": "f" * 64})),
            ("audit", 400, await http.get("/api/audit?outcome=lost")),
            ("export", 400, await http.get("/api/audit/export?format=xml")),
            ("receipt", 404, await http.get("/agents/none/receipt")),
            ("run", 400, await http.post("/agents/editor/runs", json={"calls": 1})),
            ("run", 415, await http.post("/agents/editor/runs", content=b"{}")),
            ("project", 401, await http.get("/api/project", headers={"Authorization": ""})),
            ("project", 403, await http.get("/api/project", headers={"Authorization": f"Bearer {token}"})),
        ]
    for name, status, response in cases:
        assert response.status_code == status, name
        check(name, response)
