"""HTTP tools behind the whole gate: policy, approvals and secrets as an agent meets them."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from grove_kit import ManualClock
from mcp_text import told
from pool.http.http_kit import Seen, Send, answer, inputs, upstream
from pool.http.shop import DOCUMENT, TOKEN, Shop, open_shop
from toolgrove import Config, Grove
from toolgrove.events import Event
from toolgrove.web import schemas

pytestmark = pytest.mark.anyio
CANARY = "canary/7f3a+91c2&x"


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    with open_shop() as shop:
        yield shop


def project(http_tools: dict[str, Any], **sections: Any) -> Config:
    return Config.model_validate(
        {
            "httpTools": {name: {"allowPrivate": True, **entry} for name, entry in http_tools.items()},
            "agents": {
                "buyer": {"role": "editor", "tools": ["*"]},
                "looker": {"role": "reader", "tools": ["*"]},
                "other": {"role": "editor", "tools": ["*"]},
            },
            **sections,
        }
    )


def whole_shop(shop: Shop, folder: Path, **entry: Any) -> Config:
    document = folder / "shop.json"
    document.write_text(json.dumps(DOCUMENT))
    bearer = {"Authorization": "Bearer ${env:SHOP_TOKEN}"}
    return project(
        {
            "shop": {"openapi": str(document), "url": shop.base, "headers": bearer, **entry},
            "get_item": {"url": f"{shop.base}/items/{{id}}", "headers": bearer, "inputSchema": inputs("id")},
        },
        secrets={"SHOP_TOKEN": {"tools": ["get_item", "shop_*"]}},
    )


async def test_a_post_that_only_reads_runs_for_a_reader_without_an_approval(shop: Shop, tmp_path: Path) -> None:
    async with Grove(whole_shop(shop, tmp_path)) as grove:
        receipt = (await grove.agent("looker")).receipt
        assert receipt["shop_items_add"].verdict == "restricted"
        assert 'httpTools.shop.reads: ["items.add"]' in receipt["shop_items_add"].rule
    async with Grove(whole_shop(shop, tmp_path, reads=["items.add"])) as grove:
        looker = await grove.agent("looker")
        assert (await looker.call("shop_items_add", {"body": {"name": "chair"}}))["status"] == 201


@pytest.mark.requirement("CALL-003-05")
async def test_a_mutating_call_without_approval_is_blocked_and_nothing_is_sent(shop: Shop, tmp_path: Path) -> None:
    async with Grove(whole_shop(shop, tmp_path)) as grove:
        buyer = await grove.agent("buyer")
        order = {"body": {"name": "chair"}}
        refused = (await buyer.call("shop_items_add", order))["error"]
        assert (refused["code"], refused["reason"]) == ("forbidden", "approval_required")
        assert "HTTP POST" in refused["message"]
        assert shop.requests == []

        await grove.approvals.decide(refused["approvalId"], approve=True, by="a person")
        # Another agent, or other arguments, cannot use it.
        for agent, arguments in ((await grove.agent("other"), order), (buyer, {"body": {"name": "throne"}})):
            stranger = (await agent.call("shop_items_add", arguments))["error"]
            assert stranger["approvalId"] != refused["approvalId"]
        assert shop.requests == []

        done = await buyer.call("shop_items_add", order)
        assert (done["status"], done["body"]["name"]) == (201, "chair")
        assert (await buyer.call("shop_items_add", order))["error"]["reason"] == "approval_required"
        assert shop.requests == [("POST", "/v1/items")]


@pytest.mark.requirement("CALL-003-05")
@pytest.mark.parametrize("method", ["post", "PuT", "PATCH", "DELETE", "LINK", "OPTIONS"])
async def test_every_mutating_method_is_blocked(method: str) -> None:
    async with upstream(answer()) as server, Grove(project({"act": {"method": method, "url": server.base}})) as grove:
        refused = (await (await grove.agent("buyer")).call("act"))["error"]
        assert (refused["code"], refused["reason"]) == ("forbidden", "approval_required")
        assert server.connections == 0


async def test_a_get_runs_and_a_reader_never_sees_what_mutates(shop: Shop, tmp_path: Path) -> None:
    async with Grove(whole_shop(shop, tmp_path)) as grove:
        looker = await grove.agent("looker")
        names = {spec.name for spec in looker.tools if spec.source in ("shop", "get_item")}
        assert names == {"get_item", "shop_getItem", "shop_listItems"}
        assert (await looker.call("get_item", {"id": "1"}))["body"]["name"] == "lamp"
        assert (await looker.call("shop_items_add", {"body": {"name": "x"}}))["error"]["code"] == "forbidden"
        odd = await looker.call("shop_listItems", {"X-HTTP-Method-Override": "DELETE"})
        assert odd["error"]["code"] == "invalid_argument"
        assert [method for method, _ in shop.requests] == ["GET"]


async def test_an_approval_does_not_survive_a_changed_definition() -> None:
    async with upstream(answer()) as server:
        before = project({"act": {"method": "POST", "url": f"{server.base}/a"}})
        after = project({"act": {"method": "POST", "url": f"{server.base}/b"}})
        async with Grove(before) as grove:
            asked = (await (await grove.agent("buyer")).call("act"))["error"]
            await grove.approvals.decide(asked["approvalId"], approve=True, by="a person")
            await grove.reload(after)
            again = (await (await grove.agent("buyer")).call("act"))["error"]
            assert again["reason"] == "approval_required"
            assert again["approvalId"] != asked["approvalId"]
            assert server.seen == []


@pytest.mark.requirement("CALL-003-06")
async def test_a_tool_uses_a_secret_that_the_agent_never_sees(shop: Shop, tmp_path: Path) -> None:
    async with Grove(whole_shop(shop, tmp_path)) as grove:
        looker = await grove.agent("looker")
        result = await looker.call("shop_getItem", {"id": "1"})
        assert result["status"] == 200  # the shop answers 401 without the token
        seen = json.dumps([result, [repr(spec) for spec in looker.tools], schemas.Receipt.of(looker.receipt).to_json()])
        assert TOKEN not in seen


@pytest.mark.requirement("CALL-003-06")
async def test_a_secret_is_only_for_the_tools_that_it_names(shop: Shop, tmp_path: Path) -> None:
    config = whole_shop(shop, tmp_path).model_copy(
        update={"secrets": project({}, secrets={"SHOP_TOKEN": {"tools": ["shop_*"]}}).secrets}
    )
    async with Grove(config) as grove:
        looker = await grove.agent("looker")
        refused = (await looker.call("get_item", {"id": "1"}))["error"]
        assert (refused["code"], refused["reason"]) == ("forbidden", "secret_scope")
        assert "httpTools.get_item.headers.Authorization" in refused["message"]
        assert shop.requests == []
        assert (await looker.call("shop_getItem", {"id": "1"}))["status"] == 200


async def test_a_reload_that_narrows_the_scope_of_a_secret_takes_it_away(shop: Shop, tmp_path: Path) -> None:
    wide = whole_shop(shop, tmp_path)
    narrow = wide.model_copy(update={"secrets": project({}, secrets={"SHOP_TOKEN": {"tools": ["shop_*"]}}).secrets})
    async with Grove(wide) as grove:
        assert (await (await grove.agent("looker")).call("get_item", {"id": "1"}))["body"]["name"] == "lamp"
        await grove.reload(narrow)
        sent = len(shop.requests)
        looker = await grove.agent("looker")
        refused = (await looker.call("get_item", {"id": "1"}))["error"]
        assert (refused["code"], refused["reason"]) == ("forbidden", "secret_scope")
        assert len(shop.requests) == sent, "nothing is sent without the secret"
        assert (await looker.call("shop_getItem", {"id": "1"}))["status"] == 200


def echoing(seen: Seen) -> bytes:
    """Every way in which a careless server gives a key back."""
    key = seen.headers.get("x-key", "")
    forms = [key, base64.b64encode(key.encode()).decode(), quote(key, safe=""), key.encode().hex(), key.upper()]
    text = json.dumps({"you sent": forms, key: f"<{key}>"})
    table = {
        "/ok": answer(body=text.encode()),
        "/text": answer(body=f"{key}\n".encode(), content_type="text/plain"),
        "/header": answer(body=b"{}", link=f"<{quote(key)}>", location=key),
        "/gone": answer(404, text.encode()),
        "/late": answer(429, text.encode(), retry_after="5"),
        "/down": answer(500, b"." * 280 + key.encode(), "text/plain"),
        "/away": answer(302, b"", location=f"http://{quote(key, safe='')}.evil.example/"),
        "/bad": answer(body=b'{"' + key.encode()),
        "/noise": f"HTTP/1.1 2xx {key}\r\n{key}\r\n\r\n".encode(),
    }
    return table[seen.target.partition("?")[0]]


async def test_a_canary_stays_inside_however_the_call_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("CANARY", CANARY)

    async def reply(seen: Seen, send: Send) -> None:
        await send(echoing(seen))

    out: list[Any] = []
    events: list[Event] = []
    async with upstream(reply) as server:
        entry = {
            "url": f"{server.base}/{{way}}?k=${{env:CANARY}}",
            "headers": {"X-Key": "${env:CANARY}"},
            "inputSchema": inputs("way"),
        }
        small, slow = {**entry, "maxBytes": 3}, {**entry, "timeout": 0.000001}
        config = project(
            {"leak": entry, "small": small, "slow": slow}, secrets={"CANARY": {"tools": ["leak", "small", "slow"]}}
        )
        async with Grove(config, clock=ManualClock()) as grove:
            grove.listen(events.append)
            agent = await grove.agent("looker")
            ways = ("ok", "text", "header", "gone", "late", "down", "away", "bad", "noise", "..")
            for way in ways:
                out.append(await agent.call("leak", {"way": way}))
            out.append(await agent.call("small", {"way": "ok"}))
            out.append(await agent.call("slow", {"way": "ok"}))
            async for event in agent.run([{"tool": "leak", "arguments": {"way": way}} for way in ways]):
                out.append(event)
            out.extend(map(repr, grove.audit))
        assert server.seen[0].headers["x-key"] == CANARY
    told = "\n".join([json.dumps(out), repr(out), *map(repr, events), caplog.text])
    encoded = (base64.b64encode(CANARY.encode()).decode(), quote(CANARY, safe=""), quote(CANARY), CANARY.encode().hex())
    for form in (CANARY, CANARY.upper(), *encoded):
        assert form not in told, form
    assert CANARY[:6] not in told.replace("[secret CANARY]", "")


async def test_a_key_written_into_the_file_is_kept_back_too() -> None:
    async def reply(seen: Seen, send: Send) -> None:
        await send(answer(body=json.dumps(seen.headers["authorization"]).encode()))

    async with upstream(reply) as server:
        config = project({"get": {"url": server.base, "headers": {"Authorization": "Bearer sk-live-123456"}}})
        async with Grove(config) as grove:
            result = await (await grove.agent("looker")).call("get")
            assert "sk-live" not in json.dumps(result)


async def test_a_document_that_cannot_be_read_shows_in_the_receipt_and_harms_nothing(tmp_path: Path) -> None:
    async with upstream(answer()) as server:
        config = project({"shop": {"openapi": str(tmp_path / "none.json")}, "get": {"url": server.base}})
        async with Grove(config) as grove:
            agent = await grove.agent("looker")
            assert "cannot be read" in agent.receipt.sources["shop"].problem
            assert (await agent.call("get"))["status"] == 200


async def test_the_same_answer_over_mcp_fits_the_announced_schema(shop: Shop, tmp_path: Path) -> None:
    from mcp import Client

    from toolgrove.mcp_face import mcp_endpoint

    async with Grove(whole_shop(shop, tmp_path)) as grove:
        agent = await grove.agent("looker")
        async with Client(mcp_endpoint(agent, "1").server) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert listed["get_item"].annotations is not None
            assert listed["get_item"].annotations.open_world_hint is True
            good = await client.call_tool("shop_getItem", {"id": "1"})
            assert (good.is_error, good.structured_content["body"]["name"]) == (False, "lamp")
            bad = await client.call_tool("shop_getItem", {"id": "nope"})
            assert (bad.is_error, told(bad)["error"]["code"]) == (True, "not_found")
        strict = {tool["function"]["name"]: tool for tool in agent.openai_tools(strict=True)}
        assert "shop_getItem" in strict
