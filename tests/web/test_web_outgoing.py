"""The inbox of a gateway tells, over HTTP and on the command line, what an HTTP tool will send."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from waiting import DEADLINE
from web.gateway import PROJECT, call, serving, toolgrove

pytestmark = pytest.mark.anyio
KEY = "canary-of-the-shop-4711"
SCHEMA = {"type": "object", "properties": {"number": {"type": "string"}, "what": {"type": "string"}}}
ORDER = {"method": "PUT", "url": "https://shop.example/orders/{number}?key=${env:SHOP_KEY}", "inputSchema": SCHEMA}
SENDS = {"method": "PUT", "url": "https://shop.example/orders/7%2F8?key=[secret SHOP_KEY]"}


async def test_the_method_and_the_url_are_shown_and_secrets_only_named(tmp_path: Path) -> None:
    project: dict[str, Any] = {**PROJECT, "httpTools": {"order": ORDER}}
    with serving(tmp_path, project, environ={"SHOP_KEY": KEY}) as gateway:
        async with gateway.http("editor") as http:
            asked = (await call(http, "editor", "order", {"number": "7/8", "what": "seeds"}))["error"]
        assert "shop.example" not in json.dumps(asked)
        async with gateway.http("operator") as http:
            (listed,) = (await http.get("/api/approvals", params={"state": "pending"})).json()["items"]
            one = (await http.get(f"/api/approvals/{asked['approvalId']}")).json()
        assert listed == one
        assert (one["sends"], one["arguments"]) == (SENDS, {"number": "7/8", "what": "seeds"})

        def told(*words: str) -> str:
            line = toolgrove("approvals", *words, "--config", str(gateway.file))
            return subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE, check=True).stdout

        assert json.loads(told("show", one["id"], "--json")) == one
        shown = "".join(told("show", one["id"]).split())
        assert "PUThttps://shop.example/orders/7%2F8?key=[secretSHOP_KEY]" in shown
        assert KEY not in told("list", "--json")
        state = b"".join(file.read_bytes() for file in (tmp_path / ".toolgrove").iterdir() if file.is_file())
        assert b"shop.example" in state
        assert KEY.encode() not in state
