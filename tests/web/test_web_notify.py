"""The webhook: it hears of a call that waits, signed, without arguments, again where it did not listen."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from runners.endpoint import Endpoint, Reply, scripted
from runners.endpoint import serving as listening
from toolgrove.notation.json_value import compact
from toolgrove.webhook import Webhook
from waiting import eventually
from web.operating import operating

pytestmark = pytest.mark.anyio
SECRET = "a-secret-that-signs"
AGENTS = {"gardener": {"role": "editor", "tools": ["*"], "approve": ["remove_*", "add_child"], "toolBudget": 20_000}}
CANARY = "nobody else's business"


def proven(request: Any) -> bool:
    """Whether a receiver that knows the secret finds the signature good."""
    parts = dict(part.split("=", 1) for part in request.headers["toolgrove-signature"].split(","))
    signed = f"{parts['t']}.{compact(request.body)}".encode()
    return hmac.compare_digest(hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest(), parts["v1"])


async def test_a_webhook_is_told_of_a_call_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    async with listening(lambda body: Reply(status=204)) as hook:
        notify = {"url": hook.url, "secret": "${env:HOOK_SECRET}", "console": "https://tools.example/"}
        project = {"project": "garden", "agents": AGENTS, "notify": notify, "workspace": {"allowUnknownTypes": True}}
        async with operating(project) as desk:
            props = {"name": "Herbs", "note": CANARY}
            await desk.change("gardener", "add_child", parentNodeId="root", payloadType="Bed", payloadProps=props)
            await eventually(lambda: hook.requests)
            waiting = await desk.waiting()
    (notice,) = hook.requests
    assert proven(notice)
    assert notice.headers["toolgrove-delivery"] == notice.body["id"] == waiting["id"]
    told = {name: notice.body[name] for name in ("type", "project", "agent", "tool", "effect", "link")}
    assert told == {
        "type": "approval_requested",
        "project": "garden",
        "agent": "gardener",
        "tool": "add_child",
        "effect": waiting["effect"],
        "link": f"https://tools.example/console#/approvals/{waiting['id']}",
    }
    assert "arguments" not in notice.body
    assert SECRET not in str(notice)


async def sent(hook: Endpoint, *, wanted: bool = True) -> bool:
    async def still() -> bool:
        return wanted

    webhook = Webhook(hook.url, SECRET, now=lambda: 1_800_000_000.0, delays=(0.0, 0.0))
    return await webhook.send(b'{"id":"ap_1"}', "ap_1", wanted=still)


@pytest.mark.parametrize(
    ("statuses", "wanted", "arrives", "attempts"),
    [
        ([503, 500, 200], True, True, 3),
        ([503, 503, 503], True, False, 3),
        ([429, 204], True, True, 2),
        ([400], True, False, 1),
        ([307], True, False, 1),
        ([503], False, False, 1),
    ],
    ids=["until it listens", "until no attempt is left", "later where it is busy", "not where it is refused",
         "not elsewhere", "not once it is decided"],
)  # fmt: skip
async def test_a_notice_is_sent_again_while_that_can_help(
    statuses: list[int], wanted: bool, arrives: bool, attempts: int
) -> None:
    away = {"Location": "http://127.0.0.1:9/elsewhere"}
    replies = [Reply(status=status, headers=away if status == 307 else {}) for status in statuses]
    async with listening(scripted(*replies)) as hook:
        assert await sent(hook, wanted=wanted) is arrives
    assert len(hook.requests) == attempts
    assert all(map(proven, hook.requests))
