"""Results that are larger than a model should read are cut by their structure, and can be read on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from grove_kit import ManualClock
from pool.mcp.test_fidelity import PIXEL, serving
from toolgrove import Agent, Config, Grove
from toolgrove.runners.model_text import model_text

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
INPUT = {"type": "object"}
ROWS = [{"id": number, "name": f"row {number}", "note": "words " * 20} for number in range(500)]
LINES = "\n".join(f"line {number} of the log" for number in range(3_000))
TOOLS = [
    {"name": "rows", "inputSchema": INPUT},
    {"name": "log", "inputSchema": INPUT},
    {
        "name": "both",
        "inputSchema": INPUT,
        "outputSchema": {"type": "object", "properties": {"rows": {"type": "array"}}},
    },
    {
        "name": "exact",
        "inputSchema": INPUT,
        "outputSchema": {"type": "object", "properties": {"rows": {"type": "array", "minItems": 500}}},
    },
    {"name": "picture", "inputSchema": INPUT},
    {"name": "small", "inputSchema": INPUT},
    {"name": "fails", "inputSchema": INPUT},
    {"name": "own", "inputSchema": {"type": "object", "properties": {"maxTokens": {"type": "integer"}}}},
]
RESULTS: Json = {
    "rows": {"content": [{"type": "text", "text": json.dumps(ROWS)}]},
    "log": {"content": [{"type": "text", "text": LINES}]},
    "both": {"content": [{"type": "text", "text": json.dumps({"rows": ROWS})}], "structuredContent": {"rows": ROWS}},
    "exact": {"content": [{"type": "text", "text": json.dumps({"rows": ROWS})}], "structuredContent": {"rows": ROWS}},
    "picture": {"content": [{"type": "image", "data": PIXEL * 500, "mimeType": "image/png"}]},
    "small": {"content": [{"type": "text", "text": "ok"}]},
    "fails": {"content": [{"type": "text", "text": LINES}], "isError": True},
    "own": {"content": [{"type": "text", "text": LINES}]},
}
LIMITED: Json = {"results": {"maxTokens": 500}}


def text_of(answer: Json) -> str:
    return "\n".join(block["text"] for block in answer["content"] if block["type"] == "text")


def cost(answer: Json) -> float:
    return len(text_of(answer)) / 4


async def test_texts_are_cut_by_structure_and_read_on_by_path_query_and_page(tmp_path: Path) -> None:
    async with serving(tmp_path, TOOLS, RESULTS, **LIMITED) as door:
        assert "read_result" in await door.tools()
        cut = await door.call("up_rows")
        assert cost(cut) <= 520
        told = cut["_meta"]["toolgrove/result"]
        assert cut["_meta"]["toolgrove/changed"] == ["cut"]
        assert told["resultId"] in text_of(cut)
        shown = json.loads(cut["content"][0]["text"])
        assert shown[0]["id"] == 0
        assert shown[-1].endswith("of 500")
        one = await door.call("read_result", resultId=told["resultId"], path="/499/name")
        assert one["structuredContent"]["text"] == "row 499"
        found = (await door.call("read_result", resultId=told["resultId"], query="row 321"))["structuredContent"]
        assert found["items"] == [{"index": 321, "value": ROWS[321]}]
        read: list[Json] = []
        page = pages = 1
        while page <= pages:
            part = await door.call("read_result", resultId=told["resultId"], page=page)
            assert cost(part) <= 520
            read += part["structuredContent"]["items"]
            page, pages = page + 1, part["structuredContent"]["pages"]
        assert read == ROWS
        beyond = await door.call("read_result", resultId=told["resultId"], page=pages + 1)
        assert beyond["isError"] is True


async def test_plain_text_is_cut_by_lines(tmp_path: Path) -> None:
    async with serving(tmp_path, TOOLS, RESULTS, **LIMITED) as door:
        cut = await door.call("up_log")
        assert text_of(cut).startswith("line 0 of the log\nline 1")
        assert "more of 3,000 lines" in text_of(cut)
        result_id = cut["_meta"]["toolgrove/result"]["resultId"]
        found = await door.call("read_result", resultId=result_id, query="line 2999")
        assert found["structuredContent"]["text"] == "3000: line 2999 of the log"


async def test_what_is_structured_is_cut_only_where_it_still_fits_the_schema(tmp_path: Path) -> None:
    async with serving(tmp_path, TOOLS, RESULTS, **LIMITED) as door:
        both, exact = await door.call("up_both"), await door.call("up_exact")
        assert 0 < len(both["structuredContent"]["rows"]) < 500
        assert both["structuredContent"]["rows"][0]["id"] == 0
        assert exact["structuredContent"] == {"rows": ROWS}, "fewer rows would break the promise of its schema"
        assert cost(exact) <= 520
        assert len(model_text(exact)) / 4 <= 520, "nor does a model get it whole after all"


async def test_pictures_do_not_count_and_small_results_and_own_budgets_pass_whole(tmp_path: Path) -> None:
    async with serving(tmp_path, TOOLS, RESULTS, **LIMITED) as door:
        for name in ("picture", "small"):
            assert await door.call(f"up_{name}") == RESULTS[name]
        assert await door.call("up_own", maxTokens=100_000) == RESULTS["own"]
        failed = await door.call("up_fails")
        assert failed["isError"] is True
        assert cost(failed) <= 520


async def test_without_the_setting_nothing_is_cut_and_there_is_no_such_tool(tmp_path: Path) -> None:
    agents = {"a": {"role": "editor", "tools": ["*"]}, "b": {"role": "editor", "tools": ["*"], **LIMITED}}
    async with serving(tmp_path, TOOLS, RESULTS, agents=agents) as door:
        assert await door.call("up_rows") == RESULTS["rows"]
        assert "read_result" not in await door.tools()
        limited = await door.grove.agent("b")
        assert "read_result" in {spec.name for spec in limited.tools}
        cut = await limited.call("up_rows")
        assert cost(cut) <= 520
        assert "toolgrove/result" in cut["_meta"]


async def test_a_result_is_kept_for_its_agent_and_session_alone(tmp_path: Path) -> None:
    agents = {"a": {"role": "editor", "tools": ["*"]}, "b": {"role": "editor", "tools": ["*"]}}
    async with serving(tmp_path, TOOLS, RESULTS, agents=agents, **LIMITED) as door:
        agent = await door.grove.agent("a")
        asked = {"resultId": (await agent.call("up_rows"))["_meta"]["toolgrove/result"]["resultId"]}
        assert "error" not in await agent.call("read_result", asked)
        for other in (agent.in_session("elsewhere"), await door.grove.agent("b")):
            assert (await other.call("read_result", asked))["error"]["code"] == "not_found"


async def test_what_is_kept_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "tk-4f81c0de9b7a2265"
    monkeypatch.setenv("LARGE_TOKEN", secret)
    said = {"log": {"content": [{"type": "text", "text": f"{LINES}\nthe token is {secret}"}]}}
    async with serving(tmp_path, TOOLS[1:2], said, secrets={"LARGE_TOKEN": {}}, **LIMITED) as door:
        cut = await door.call("up_log")
        asked = {"resultId": cut["_meta"]["toolgrove/result"]["resultId"], "query": "the token is"}
        found = await door.call("read_result", **asked)
        assert found["structuredContent"]["text"] == "3001: the token is [secret LARGE_TOKEN]"
        assert secret not in json.dumps([cut, found])


async def test_deny_removes_the_tool_and_then_nothing_is_kept(tmp_path: Path) -> None:
    agents = {"a": {"role": "editor", "tools": ["*"], "deny": ["read_result"]}}
    async with serving(tmp_path, TOOLS, RESULTS, agents=agents, **LIMITED) as door:
        cut = await door.call("up_rows")
        assert "resultId" not in cut["_meta"]["toolgrove/result"]
        assert "Ask for less" in text_of(cut)


async def grown(grove: Grove) -> Agent:
    agent = await grove.agent("a")
    version = (await agent.call("get_node", {"nodeId": "root"}))["version"]
    children = [{"payloadType": "t", "payload": {"name": f"node {number}"}, "children": []} for number in range(300)]
    document = {"payloadType": "t", "payload": {"name": "top"}, "children": children}
    done = await agent.call("import_merge", {"json": document, "strategy": "upsert", "versionToken": version})
    assert "error" not in done, done
    return agent


def tree_project(**more: Any) -> Config:
    agents = {"a": {"role": "editor", "tools": ["*"]}}
    return Config.model_validate({"agents": agents, "workspace": {"allowUnknownTypes": True}, **LIMITED, **more})


async def test_a_tree_tool_s_answer_is_cut_too_and_still_fits_its_schema() -> None:
    async with Grove(tree_project()) as grove:
        agent = await grown(grove)
        cut = await agent.call("select_nodes", {"queryDsl": "//*", "limit": 200})
        assert 0 < len(cut["items"]) < 200
        schema = next(dict(spec.output_schema) for spec in agent.tools if spec.name == "select_nodes")
        body = {key: value for key, value in cut.items() if key != "_meta"}
        assert jsonschema_rs.validator_for(schema).is_valid(body)
        result_id = cut["_meta"]["toolgrove/result"]["resultId"]
        rest = await agent.call("read_result", {"resultId": result_id, "path": "items"})
        assert rest["total"] > len(cut["items"])
        wrong = await agent.call("read_result", {"resultId": result_id, "path": "item"})
        assert "items" in wrong["error"]["message"]


async def test_what_is_kept_is_bounded_in_number_and_time() -> None:
    clock = ManualClock()
    async with Grove(tree_project(), clock=clock) as grove:
        agent = await grown(grove)

        async def asked() -> str:
            cut = await agent.call("select_nodes", {"queryDsl": "//*", "limit": 200})
            return str(cut["_meta"]["toolgrove/result"]["resultId"])

        ids = [await asked() for _ in range(17)]
        assert (await agent.call("read_result", {"resultId": ids[0]}))["error"]["code"] == "not_found"
        assert "error" not in await agent.call("read_result", {"resultId": ids[1]})
        clock.now += 3_601
        assert (await agent.call("read_result", {"resultId": ids[-1]}))["error"]["code"] == "not_found"
