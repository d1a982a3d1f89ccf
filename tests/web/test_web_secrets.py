"""THREATS F over a real gateway: no secret comes out of any address, and nobody writes into the operator's papers."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.wire import ERAS, Handshake, call_body, modern_headers
from pool.canary.haul import spellings
from pool.canary.tattler import TELLING
from waiting import eventually
from web.gateway import AGENTS, PROJECT, Gateway, call, serving

pytestmark = pytest.mark.anyio
KEY = 'CaNaRy/7f+3q&9Z%4~"x=k'
TATTLER = Path(__file__).parent.parent / "pool" / "canary" / "tattler.py"
OURS = "sk-live-77aa/srv/app/secret.py"
BROKEN = f'''
from pydantic import BaseModel


class Words(BaseModel):
    text: str


class Broken:
    description = "Fails inside."
    input_schema = Words
    output_schema = Words

    def execute(self, inputs, context):
        raise RuntimeError("{OURS}\\n{{}} INFO approved".format(inputs["text"]))
'''


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "extensions" / "code").mkdir(parents=True)
    (folder / "extensions" / "code" / "broken.py").write_text(BROKEN)
    tattler = {
        "command": sys.executable,
        "args": ["-I", "-S", str(TATTLER)],
        "env": {"KEY": "${env:TOOLGROVE_CANARY}"},
        "protocol": "legacy",
    }
    config = {
        **PROJECT,
        "workspace": {**PROJECT["workspace"], "auditLog": "audit.jsonl"},
        "extensions": "extensions",
        "mcpServers": {"tattler": tattler},
        "httpTools": {"shut": {"url": "http://127.0.0.1:9/", "headers": {"X": "${env:TOOLGROVE_CANARY}"}}},
        "secrets": {"TOOLGROVE_CANARY": {"tools": ["tattler_*", "shut"]}},
        "approvals": {"hold": 0},
        "agents": {**AGENTS, "asking": {"role": "editor", "tools": ["*"], "approve": ["tattler_*"]}},
    }
    with serving(folder, config, environ={"TOOLGROVE_CANARY": KEY}, loud=True) as served:
        yield served


@asynccontextmanager
async def overhearing(gateway: Gateway) -> AsyncIterator[list[str]]:
    """The operator's live stream meanwhile."""
    told: list[str] = []
    async with (
        gateway.http("operator") as http,
        http.stream("GET", "/api/events") as stream,
        anyio.create_task_group() as group,
    ):

        async def listen() -> None:
            async for line in stream.aiter_lines():
                told.append(line)

        group.start_soon(listen)
        await eventually(lambda: told)
        yield told
        group.cancel_scope.cancel()


READ = [
    *("/api/project", "/api/pool", "/api/pins", "/api/approvals", "/api/audit?limit=1000", "/api/audit/verify"),
    *("/api/audit/export?limit=1000", "/api/audit/export?format=csv&limit=1000", "/metrics", "/health", "/console"),
    *("/agents/editor/receipt", "/agents/editor/openai-tools", "/agents/editor/openai-tools?strict=1"),
    *("/agents/nobody/receipt", "/api/approvals/none", "/api/audit?after=x"),
]


async def test_no_secret_comes_out_of_any_address(gateway: Gateway) -> None:
    texts: dict[str, str] = {}
    tools = [*(f"tattler_{way}" for way in TELLING), "shut", "code-broken"]
    async with overhearing(gateway) as told, gateway.http("editor") as http, gateway.http("asking") as asking:
        async with Handshake(http, gateway.address("editor")) as session:
            for tool in tools:
                arguments = {"text": "${env:TOOLGROVE_CANARY}"} if tool == "code-broken" else {}
                for agent, client in (("editor", http), ("asking", asking)):
                    progress = {"_meta": {"progressToken": 1}}
                    body = call_body(tool, arguments, **progress)
                    answer = await client.post(
                        f"/agents/{agent}/mcp", json=body, headers=modern_headers("tools/call", tool)
                    )
                    texts[f"{agent} {tool} 2026"] = answer.text
                legacy = await session.request("tools/call", {"name": tool, "arguments": arguments, **progress})
                texts[f"{tool} legacy"] = legacy.text
                run = await http.post("/agents/editor/runs", json={"calls": [{"tool": tool, "arguments": arguments}]})
                texts[f"{tool} run"] = run.text
        async with gateway.http("operator") as operator:
            for path in READ:
                answer = await operator.get(path)
                texts[path] = answer.text + json.dumps(list(answer.headers.items()))
        texts["events"] = "\n".join(told)
    texts["log"] = gateway.log
    for file in gateway.file.parent.rglob("*"):
        if file.is_file():
            texts[file.name] = file.read_bytes().decode("utf-8", "replace")
    found = [(way, shape) for way, text in texts.items() for shape, spelt in spellings(KEY).items() if spelt in text]
    assert found == []
    assert sum("[secret TOOLGROVE_CANARY]" in text for text in texts.values()) > len(TELLING), "the canary did sing"
    assert "approval_required" in texts["asking tattler_plain 2026"]


@pytest.mark.parametrize("era", ERAS)
async def test_what_fails_inside_is_told_to_the_operator_only(gateway: Gateway, era: str) -> None:
    async with gateway.connect("editor", era) as client:
        failed = await client.call_tool("code-broken", {"text": "x"})
    answer = failed.model_dump_json()
    assert failed.is_error
    for inside in ("sk-live", "/srv/app", "RuntimeError", "Traceback", ".py"):
        assert inside not in answer
    assert "sk-live" in gateway.log


async def test_every_line_of_the_log_is_one_record(gateway: Gateway) -> None:
    """Whoever puts line breaks into a name, an argument or an error forges none."""
    forged = '\n{"time": "2026-11-16", "level": "INFO", "logger": "toolgrove", "message": "approved by the operator"}\n'
    async with gateway.http("editor") as http:
        await call(http, "editor", "code-broken", {"text": forged})
        await http.post("/agents/editor/runs", json={"calls": [{"tool": f"no{forged}such"}]})
        await call(http, "editor", "get_node", {"nodeId": forged}, _meta={"toolgrove/session": forged[:100]})
        await http.get("/agents/editor%0Aapproved%0D%0Aby%20me/receipt")
    records = [json.loads(line) for line in gateway.log.splitlines()]
    assert records
    assert all({"time", "level", "logger", "message"} <= record.keys() for record in records)
    assert "approved by the operator" not in [record["message"] for record in records]
    audit = [json.loads(line) for line in (gateway.file.parent / "audit.jsonl").read_text().splitlines()]
    numbers = [line["number"] for line in audit if line.keys() != {"signedTo", "seal"}]
    assert numbers == list(range(1, len(numbers) + 1))


FORMULAS = ["=cmd()", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://evil")', "a\n=cmd()", 'x","=1']


async def test_a_spreadsheet_of_the_audit_log_runs_nothing(gateway: Gateway) -> None:
    async with gateway.http("editor") as http:
        for formula in FORMULAS:
            session = {"toolgrove/session": formula}
            await call(http, "editor", "get_node", {"nodeId": formula}, _meta=session)
            await http.post("/agents/editor/runs", json={"calls": [{"tool": formula}]})
    async with gateway.http("operator") as operator:
        exported = await operator.get("/api/audit/export", params={"format": "csv", "limit": 1000})
        page = (await operator.get("/api/audit", params={"limit": 1000})).json()["items"]
    assert exported.headers["content-type"].startswith("text/csv")
    assert exported.headers["content-disposition"] == 'attachment; filename="audit.csv"'
    rows = list(csv.reader(io.StringIO(exported.text)))
    # That the operator signed in is put on record beside the first request.
    assert [int(row[0]) for row in rows[1:]] == [one["number"] for one in page][: len(rows) - 1]
    assert len(rows) > 2 * len(FORMULAS)
    assert {len(row) for row in rows} == {len(rows[0])}
    cells = [cell for row in rows[1:] for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))] == []
    assert any("=cmd()" in cell for cell in cells), "it is there, as text"


async def test_the_audit_log_is_whole_filtered_and_paged(gateway: Gateway) -> None:
    async with gateway.http("editor") as http, gateway.http("operator") as operator:
        for number in range(7):
            await call(http, "editor", "get_path", {"nodeId": f"none-{number}"})
        assert (await operator.get("/api/audit/verify")).json()["whole"]
        seen: list[int] = []
        after = 0
        while True:
            query: dict[str, Any] = {"tool": "get_path", "outcome": "failure", "limit": 3, "after": after}
            page = (await operator.get("/api/audit", params=query)).json()
            seen += [record["number"] for record in page["items"]]
            if page["next"] is None:
                break
            after = page["next"]
        assert len(seen) == 7
        assert seen == sorted(set(seen))
        for odd in ("outcome=maybe", "limit=-1", "after=x", "limit=1e3", "after=" + "9" * 30):
            refused = await operator.get(f"/api/audit?{odd}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_argument"), odd
        assert (await operator.get("/api/audit/export?format=html")).status_code == 400
