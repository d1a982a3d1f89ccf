"""The sample project: what the first minute of the demo shows is really there."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from toolgrove import Config, Grove
from toolgrove.sample import folder
from toolgrove.sample.folder import shop_socket, write
from toolgrove.sample.hand import Hand
from toolgrove.sample.order import ask, follow
from toolgrove.sample.season import lay_out
from toolgrove.sample.shop import DOCUMENT, Shop, shop_open
from toolgrove.sample.watering import water
from toolgrove.store.audit import AuditQuery
from toolgrove.web import schemas

pytestmark = pytest.mark.anyio
DEADLINE = 60.0


@asynccontextmanager
async def sample(path: Path) -> AsyncIterator[Grove]:
    """The sample with its shop, in this process."""
    file = write(path)
    with shop_socket(file, near=0) as listening, anyio.fail_after(DEADLINE):
        async with Grove(Config.load(file)) as grove, shop_open(listening):
            yield grove


async def test_the_garden_is_laid_out_once_with_a_history(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with sample(tmp_path) as grove:
        assert await lay_out(grove)
        assert not await lay_out(grove)
        assert not caplog.records
        researcher = Hand(grove, "researcher")
        first, second = (await researcher.call("snapshot_list"))["items"]
        assert 80 <= first["nodeCount"] <= 120
        assert (first["label"], second["label"]) == ("Spring plan", "Midsummer")
        diff = await researcher.call("snapshot_diff", a=first["snapshotId"], b=second["snapshotId"])
        assert all(diff[kind] for kind in ("added", "removed", "moved", "changed"))
        found = (await researcher.call("validate_tree", rulesetId="garden"))["violations"]
        assert Counter(one["ruleId"] for one in found) == {"crop-spacing": 2, "bed-mixed": 1}
        records = (await grove.audit_log.records(AuditQuery(limit=1000))).records
        assert {record["outcome"] for record in records} == {"success", "failure", "refused", "waiting", "replayed"}
        assert {record["agent"] for record in records} == {"researcher", "gardener", "sprinkler"}
        (decided,) = await grove.approvals.list()
        assert (decided.request.tool, decided.state, decided.decided_by) == ("remove_node", "used", "demo")


async def test_its_agents_have_different_rights(tmp_path: Path) -> None:
    async with sample(tmp_path) as grove:
        tools = {name: {spec.name for spec in (await grove.agent(name)).tools} for name in grove.config.agents}
        receipts = {name: (await grove.agent(name)).receipt for name in grove.config.agents}
    assert {"shop_list_seeds", "time_get_current_time", "get_node", "search"} <= tools["researcher"]
    assert tools["researcher"].isdisjoint({"shop_place_order", "add_child", "remove_node"})
    verdicts = schemas.Receipt.of(receipts["researcher"]).to_json()["tools"]
    masked = [name for name, one in verdicts.items() if one["verdict"] == "masked"]
    assert masked == ["time_convert_time"]
    assert {"shop_place_order", "add_child", "remove_node", "time_convert_time"} <= tools["gardener"]
    assert tools["sprinkler"] == {"get_node", "list_children", "update_payload"}
    assert "spawn_agents" in tools["coordinator"]
    assert {name: receipt.warnings for name, receipt in receipts.items() if receipt.warnings} == {}


@pytest.mark.parametrize(("approve", "kind"), [(True, "Order"), (False, "Note")])
async def test_an_order_waits_and_the_gardener_acts_on_the_decision(tmp_path: Path, approve: bool, kind: str) -> None:
    async with sample(tmp_path) as grove:
        await lay_out(grove)
        waiting = await ask(grove)
        assert waiting is not None
        assert await ask(grove) == waiting
        (pending,) = await grove.approvals.list("pending")
        assert (pending.request.agent, pending.request.rule) == ("gardener", "HTTP POST")
        await grove.approvals.decide(waiting, approve=approve, by="a person", reason="next year")
        await follow(grove, waiting)
        found = await Hand(grove, "researcher").call("list_children", nodeId="shed")
        last = found["items"][-1]
        assert last["payloadType"] == kind
        assert ("next year" in json.dumps(last)) is not approve


async def test_the_sprinkler_waters_a_bed_and_cannot_do_anything_else(tmp_path: Path) -> None:
    async with sample(tmp_path) as grove:
        await lay_out(grove)
        sprinkler = Hand(grove, "sprinkler")
        await water(sprinkler, "bed-roots")
        assert (await sprinkler.call("get_node", nodeId="bed-roots"))["payload"]["litresToday"] == 15
        refused = await sprinkler.change("update_payload", nodeId="n-water", patch={"text": "Every day."})
        assert refused["error"]["code"] == "forbidden"
        await water(sprinkler, "bed-that-is-gone")


async def test_without_the_clock_the_project_has_no_trace_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "find_spec", lambda name: None)
    async with sample(tmp_path) as grove:
        assert grove.config.servers == {}
        assert (await grove.agent("researcher")).receipt.warnings == ()
        assert await lay_out(grove)


def test_the_folder_keeps_what_a_person_changed(tmp_path: Path) -> None:
    file = write(tmp_path / "new" / "folder")
    with shop_socket(file, near=0) as listening:
        port = listening.getsockname()[1]
    text = file.read_text("utf-8")
    assert f"http://127.0.0.1:{port}" in text
    file.write_text(text.replace("kitchen garden", "my garden"), "utf-8")
    assert write(file.parent) == file
    with shop_socket(file, near=0) as listening:
        assert listening.getsockname()[1] == port
        with shop_socket(file, near=0) as elsewhere:  # as if another program had the port
            moved = elsewhere.getsockname()[1]
    assert f"http://127.0.0.1:{moved}" in file.read_text("utf-8")
    file.write_text(file.read_text("utf-8").replace(str(moved), "0"), "utf-8")
    with shop_socket(file, near=65_536) as listening:  # next to the last port there is
        assert listening.getsockname()[1] > 0
    assert Config.load(file).project == "my garden"


async def test_the_shop_does_what_its_document_says() -> None:
    document = json.loads(DOCUMENT.read_text("utf-8"))
    described = {(path, method.upper()) for path, item in document["paths"].items() for method in item}
    app = Shop().app()
    routes: list[Any] = app.routes
    assert described == {(route.path, method) for route in routes for method in route.methods - {"HEAD"}}
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        listed = (await http.get("/seeds", params={"month": 9})).json()["seeds"]
        assert [seed["sku"] for seed in listed] == ["lam-vit", "spi-mat"]
        assert (await http.get("/seeds", params={"text": "dill"})).json()["seeds"][0]["stock"] == 30
        placed = await http.post("/orders", json={"sku": "dil-mam", "packets": 2})
        assert (placed.status_code, placed.json()) == (
            201,
            {"order": 1001, "sku": "dil-mam", "packets": 2, "total": 3.4},
        )
        assert (await http.get("/seeds/dil-mam")).json()["stock"] == 28
        assert (await http.get("/seeds/none")).status_code == 404
        assert (await http.post("/orders", json={"sku": "none", "packets": 1})).status_code == 404
        assert (await http.post("/orders", json={"sku": "dil-mam", "packets": 29})).status_code == 409
        assert (await http.post("/orders", content=b"[1]", headers=JSON)).status_code == 400
        assert (await http.post("/orders", content=b"sku=dil-mam")).status_code == 415
        assert (await http.get("/seeds", headers={"Host": "shop.example"})).status_code == 421


JSON = {"Content-Type": "application/json"}


def test_a_node_of_the_garden_has_one_id_and_a_name() -> None:
    nodes = re.findall(r'"nodeId": "([^"]+)", "payloadType": "\w+", "payload": \{"name": "[^"]+"', TREE)
    assert len(nodes) == len(set(nodes)) == TREE.count('"nodeId"')


TREE = (Path(folder.__file__).parent / "tree.json").read_text("utf-8")
