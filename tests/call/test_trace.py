"""Spans: one per call, by the GenAI conventions, and nothing of what was asked or answered in them."""

from __future__ import annotations

import json
import subprocess
import sys

# A process of its own: OpenTelemetry takes one provider per process, and for good.
SCRIPT = """
import asyncio, json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

from toolgrove import Grove


async def main():
    async with Grove() as grove:
        agent = await grove.agent("reader")
        with trace.get_tracer("test").start_as_current_span("parent"):
            await agent.call("get_node", {"nodeId": "root"})
        await agent.call("get_node", {"nodeId": "canary"})
        await agent.call("no_such_canary", {})
    spans = exporter.get_finished_spans()
    parents = {span.context.span_id: span.name for span in spans}
    print(json.dumps([
        {
            "name": span.name,
            "attributes": dict(span.attributes),
            "status": span.status.status_code.name,
            "parent": parents.get(span.parent.span_id) if span.parent else None,
        }
        for span in spans
    ]))


asyncio.run(main())
"""


def test_every_call_is_one_span_without_its_contents() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    assert "canary" not in done.stdout
    fine, _, missing, unknown = json.loads(done.stdout)
    assert fine["name"] == "execute_tool get_node"
    assert fine["parent"] == "parent"
    assert fine["status"] == "UNSET"
    assert fine["attributes"]["gen_ai.operation.name"] == "execute_tool"
    assert fine["attributes"]["gen_ai.tool.name"] == "get_node"
    assert fine["attributes"]["gen_ai.agent.name"] == "reader"
    assert fine["attributes"]["toolgrove.receipt"]
    assert (missing["status"], missing["attributes"]["error.type"]) == ("ERROR", "not_found")
    assert unknown["name"] == "execute_tool unknown"


UPSTREAM = """
import sys, json
for line in sys.stdin:
    message = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": message.get("id")}
    tools = [{"name": "echo", "inputSchema": {"type": "object"}}]
    match message["method"]:
        case "initialize":
            answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "up", "version": "1"}}
        case "tools/list":
            answer["result"] = {"tools": tools}
        case "tools/call":
            meta = message["params"].get("_meta", {})
            answer["result"] = {"content": [], "structuredContent": meta}
        case _:
            continue
    print(json.dumps(answer), flush=True)
"""

RELAY = """
import asyncio, json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

trace.set_tracer_provider(TracerProvider())

from toolgrove import Config, Grove

server = {"command": sys.executable, "args": ["-c", sys.argv[1]], "protocol": "legacy"}
agents = {"a": {"role": "editor", "tools": ["*"]}}
config = Config.model_validate({"mcpServers": {"up": server}, "agents": agents, "startupBudget": 30})


async def main():
    async with Grove(config) as grove:
        agent = await grove.agent("a")
        with trace.get_tracer("test").start_as_current_span("parent") as span:
            meta = await agent.call("up_echo", {})
        print(json.dumps([meta, f"{span.get_span_context().trace_id:032x}"]))


asyncio.run(main())
"""


def test_an_upstream_server_is_told_the_trace_that_its_call_belongs_to() -> None:
    command = [sys.executable, "-c", RELAY, UPSTREAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    answer, trace_id = json.loads(done.stdout)
    version, told, _, _ = answer["structuredContent"]["traceparent"].split("-")
    assert (version, told) == ("00", trace_id)
