"""One OpenTelemetry span per call, by the GenAI conventions; costs nothing while no one collects spans."""

from __future__ import annotations

from collections.abc import Awaitable

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from toolgrove.types import Call, Next, Result, Tool


class TraceStep:
    """Outside of everything, so that its span covers refusals too; it never holds arguments or results.

    Whether spans are collected is asked once, since each answer costs as much as the rest of a small call's gate.
    """

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("toolgrove")
        self._is_collected = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    def concerns(self, tool: Tool) -> bool:
        """All tools or none: whether spans are collected."""
        return self._is_collected

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        return self._traced(call, onward) if self._is_collected else onward(call)

    async def _traced(self, call: Call, onward: Next) -> Result:
        known = call.name if call.tool is not None else "unknown"  # a name that a caller made up is not one of ours
        about = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": known,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.agent.name": call.caller.agent,
            "toolgrove.receipt": call.receipt,
        }
        with self._tracer.start_as_current_span(
            f"execute_tool {known}", kind=SpanKind.INTERNAL, attributes=about
        ) as span:
            result = await onward(call)
            if call.error is not None:
                span.set_status(StatusCode.ERROR)
                span.set_attribute("error.type", str(call.error.get("reason") or call.error["code"]))
            return result
