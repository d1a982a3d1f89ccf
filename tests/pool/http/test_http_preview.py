"""What a person is shown of an HTTP call before it is sent: to the letter what will be sent, but for secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pool.http.http_kit import always, answer, inputs, upstream
from toolgrove import Config, Grove
from toolgrove.web import schemas

pytestmark = pytest.mark.anyio
KEY = "canary/7f3a+91c2&x"
NAMED = "[secret SHOP_KEY]"
ENCODED = "canary%2F7f3a%2B91c2%26x"
DOCUMENT = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": "1"},
    "paths": {
        "/shelves/{shelf}/items": {
            "delete": {
                "operationId": "clear",
                "parameters": [
                    {"name": "shelf", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "X-Why", "in": "header", "schema": {"type": "string"}},
                ],
                "responses": {"200": {"description": "ok"}},
            }
        }
    },
}
ARGUMENTS: list[dict[str, Any]] = [
    {"id": "7", "note": ""},
    {"id": "a b/c?d#e", "note": "ü"},
    {"id": "x", "note": "</a>[secret OTHER]"},
]


def project(**http_tools: Any) -> Config:
    return Config.model_validate(
        {
            "httpTools": {name: {"allowPrivate": True, **entry} for name, entry in http_tools.items()},
            "secrets": {"SHOP_KEY": {"tools": ["*"]}},
            "agents": {"buyer": {"role": "editor", "tools": ["*"]}},
        }
    )


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", KEY)


async def shown(grove: Grove, tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The approval that a call needs, and what it says will be sent."""
    refused = (await (await grove.agent("buyer")).call(tool, arguments))["error"]
    assert refused["reason"] == "approval_required", refused
    approval = await grove.approvals.get(refused["approvalId"])
    assert KEY not in json.dumps(schemas.Approval.of(approval).to_json())
    assert ENCODED not in json.dumps(schemas.Approval.of(approval).to_json())
    return approval.id, schemas.Approval.of(approval).to_json()["sends"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
@pytest.mark.parametrize("arguments", ARGUMENTS)
async def test_the_url_that_is_shown_is_the_one_that_is_sent(method: str, arguments: dict[str, Any]) -> None:
    async with upstream(always(answer())) as shop:
        url = f"{shop.base}/keys/${{env:SHOP_KEY}}/orders/{{id}}?key=${{env:SHOP_KEY}}&v=1"
        entry = {"url": url, "method": method, "inputSchema": inputs("id", "note")}
        async with Grove(project(order=entry)) as grove:
            approval, sends = await shown(grove, "order", arguments)
            assert shop.seen == []
            await grove.approvals.decide(approval, approve=True, by="a person")
            assert (await (await grove.agent("buyer")).call("order", arguments))["status"] == 200
        (seen,) = shop.seen
        assert sends["method"] == seen.method == method
        assert sends["url"].count(NAMED) == 2
        assert sends["url"].replace(NAMED, ENCODED) == f"{shop.base}{seen.target}"


async def test_an_operation_of_a_document_is_shown_with_its_query_and_without_its_headers(tmp_path: Path) -> None:
    document = tmp_path / "shop.json"
    document.write_text(json.dumps(DOCUMENT))
    async with upstream(always(answer())) as shop:
        headers = {"Authorization": "Bearer ${env:SHOP_KEY}"}
        async with Grove(project(shop={"openapi": str(document), "url": shop.base, "headers": headers})) as grove:
            arguments = {"shelf": "top 1", "tag": ["a", "b&c"], "X-Why": "old"}
            _, sends = await shown(grove, "shop_clear", arguments)
    assert sends == {"method": "DELETE", "url": f"{shop.base}/shelves/top%201/items?tag=a&tag=b%26c"}


async def test_a_secret_that_an_argument_holds_is_not_shown_in_the_url() -> None:
    entry = {"url": "https://shop.example/orders/{id}", "method": "PUT", "inputSchema": inputs("id")}
    async with Grove(project(order=entry)) as grove:
        _, sends = await shown(grove, "order", {"id": f"x{KEY}y"})
    assert NAMED in sends["url"]


async def test_a_file_is_named_without_its_folder() -> None:
    entry = {"url": "https://shop.example/o?k=${file:keys/shop.key}", "method": "PUT", "inputSchema": inputs()}
    async with Grove(project(order=entry)) as grove:
        _, sends = await shown(grove, "order", {})
    assert sends["url"] == "https://shop.example/o?k=[secret shop.key]"


@pytest.mark.parametrize("climbing", ["..", ".", "../x", "a\nb"])
async def test_what_cannot_be_sent_is_put_before_nobody(climbing: str) -> None:
    entry = {"url": "https://shop.example/orders/{id}", "method": "DELETE", "inputSchema": inputs("id")}
    async with Grove(project(order=entry)) as grove:
        refused = (await (await grove.agent("buyer")).call("order", {"id": climbing}))["error"]
        assert (refused["code"], refused["reason"]) == ("invalid_argument", "path_argument")
        assert await grove.approvals.list() == []


async def test_other_tools_send_no_request_that_could_be_shown() -> None:
    config = Config.model_validate({"agents": {"a": {"role": "editor", "tools": ["*"], "approve": ["tag_node"]}}})
    async with Grove(config) as grove:
        agent = await grove.agent("a")
        refused = (await agent.call("tag_node", {"nodeId": "root", "tags": ["x"]}))["error"]
        approval = await grove.approvals.get(refused["approvalId"])
    assert schemas.Approval.of(approval).to_json()["sends"] is None
