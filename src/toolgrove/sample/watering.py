"""The sprinkler goes round: so a person who watches the tree sees an agent at work."""

from __future__ import annotations

from itertools import cycle

import anyio

from toolgrove.grove import Grove
from toolgrove.notation.times import to_seconds
from toolgrove.sample.hand import Hand

PAUSE = 10.0
LITRES = 15


async def go_round(grove: Grove) -> None:
    """Water one bed after the other, for ever."""
    sprinkler = Hand(grove, "sprinkler")
    listed = await sprinkler.call("list_children", nodeId="beds", includedProperties=["name"])
    beds = [item["nodeId"] for item in listed.get("items", ())]
    for bed in cycle(beds):
        await anyio.sleep(PAUSE)
        await water(sprinkler, bed)


async def water(sprinkler: Hand, bed: str) -> None:
    """Give a bed what it needs; one that was removed stays dry."""
    found = await sprinkler.call("get_node", nodeId=bed)
    if "error" in found:
        return
    litres = found["payload"].get("litresToday", 0) + LITRES
    patch = {"litresToday": litres % 1000, "wateredAt": to_seconds(sprinkler.grove.clock.wall())}
    await sprinkler.call("update_payload", nodeId=bed, patch=patch, versionToken=found["version"])
