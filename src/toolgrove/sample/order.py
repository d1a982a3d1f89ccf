"""The order that waits for a person: the gardener asks, hears the decision, and acts on it."""

from __future__ import annotations

from typing import Any

import anyio

from toolgrove.grove import Grove
from toolgrove.sample.hand import Hand

LOOK = 1.0
_ORDER = {"sku": "lam-vit", "packets": 3, "note": "For the bed where the lettuce was."}


async def ask(grove: Grove) -> str | None:
    """Ask for the order unless something waits already; returns the id under which it waits."""
    waiting = [one for one in await grove.approvals.list("pending") if one.request.tool == "shop_place_order"]
    if waiting:
        return waiting[0].id
    asked = await Hand(grove, "gardener").call("shop_place_order", body=_ORDER)
    identity: str | None = asked.get("error", {}).get("approvalId")
    return identity


async def follow(grove: Grove, approval_id: str) -> None:
    """Wait for the decision, wherever it is made; then make the same call again, and note what came of it."""
    while (approval := await grove.approvals.get(approval_id)).state == "pending":  # noqa: ASYNC110
        await anyio.sleep(LOOK)  # a decision in another process publishes no event here
    if approval.state not in ("approved", "rejected"):
        return
    gardener = Hand(grove, "gardener")
    answer = await gardener.call("shop_place_order", **approval.request.arguments)
    kind, payload = _noted(answer)
    await gardener.do("add_child", parentNodeId="shed", payloadType=kind, payloadProps=payload)


def _noted(answer: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if "error" in answer:
        return "Note", {"name": "An order that was not placed", "text": answer["error"]["message"]}
    order = answer["body"]
    return "Order", {"name": f"Order {order['order']}", **order}
