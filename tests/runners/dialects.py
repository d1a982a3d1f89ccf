"""How well-known endpoints speak chat completions: each asks for two calls and then answers, in its own manner.

What they have in common is little: ids may be missing or repeated, calls come whole or in pieces, usage in the last
piece, in one of its own or not at all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from runners.endpoint import Reply, choice, streamed

ARGUMENTS = json.dumps({"nodeId": "root"})
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The lines of the runner section that differ, what is answered, and whether tokens are told."""

    calls: Reply
    words: Reply
    runner: dict[str, Any]
    counts: bool = True


def piece(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        **more,
    }


def call(
    number: int, *, index: int | None, given: str | None, arguments: Any = ARGUMENTS, **more: Any
) -> dict[str, Any]:
    whole = {"type": "function", "function": {"name": "get_node", "arguments": arguments}, **more}
    marks = {"index": index, "id": given}
    return {**{name: value for name, value in marks.items() if value is not None}, **whole}


def openai() -> Dialect:
    """Arguments in pieces under an index; usage in a piece without choices."""
    begun = [
        {"index": at, "id": f"call_{at}", "type": "function", "function": {"name": "get_node", "arguments": ""}}
        for at in (0, 1)
    ]
    grown = [
        piece({"tool_calls": [{"index": at, "function": {"arguments": part}}]})
        for at in (0, 1)
        for part in (ARGUMENTS[:5], ARGUMENTS[5:])
    ]
    usage = {"choices": [], "usage": USAGE}
    return Dialect(
        runner={"apiKey": "${env:MODEL_KEY}"},
        calls=streamed(
            piece({"role": "assistant", "content": None, "tool_calls": [begun[0]]}, usage=None),
            *grown[:2],
            piece({"tool_calls": [begun[1]]}),
            *grown[2:],
            piece({}, "tool_calls"),
            usage,
        ),
        words=streamed(
            piece({"role": "assistant", "content": ""}),
            piece({"content": "All "}),
            piece({"content": "well."}),
            piece({}, "stop"),
            usage,
        ),
    )


def azure() -> Dialect:
    """The key in a header of its own, a version in the query, and a first piece about filters alone."""
    plain = openai()
    filters = {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    first = f"data: {json.dumps(filters)}\n\n".encode()
    return Dialect(
        runner={"headers": {"api-key": "${env:MODEL_KEY}"}, "query": {"api-version": "2024-10-21"}},
        calls=Reply(body=first + plain.calls.body, headers=plain.calls.headers),
        words=Reply(body=first + plain.words.body, headers=plain.words.headers),
    )


def anthropic() -> Dialect:
    """Whole calls under an index of their own; no usage in the stream."""
    return Dialect(
        runner={"apiKey": "${env:MODEL_KEY}"},
        counts=False,
        calls=streamed(
            piece({"role": "assistant", "content": "Let me look."}),
            *(piece({"tool_calls": [call(at, index=at, given=f"toolu_{at}")]}) for at in (0, 1)),
            piece({}, "tool_calls"),
        ),
        words=streamed(piece({"content": "All well."}), piece({}, "stop")),
    )


def gemini() -> Dialect:
    """All calls under the index 0, with a signature that must come back."""
    signed = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    return Dialect(
        runner={"apiKey": "${env:MODEL_KEY}"},
        calls=streamed(
            piece({"role": "assistant", "tool_calls": [call(0, index=0, given="function-call-1", **signed)]}),
            piece(
                {"role": "assistant", "tool_calls": [call(1, index=0, given="function-call-2")]},
                "tool_calls",
                usage=USAGE,
            ),
        ),
        words=streamed(piece({"role": "assistant", "content": "All well."}, "stop", usage=USAGE)),
    )


def ollama() -> Dialect:
    """Calls without ids and indexes, arguments as an object."""
    calls = [call(at, index=None, given=None, arguments=json.loads(ARGUMENTS)) for at in (0, 1)]
    return Dialect(
        runner={},
        calls=streamed(
            piece({"role": "assistant", "content": "", "tool_calls": calls}),
            piece({"content": ""}, "tool_calls"),
            {"choices": [], "usage": USAGE},
        ),
        words=streamed(
            piece({"role": "assistant", "content": "All well."}),
            piece({"content": ""}, "stop"),
            {"choices": [], "usage": USAGE},
        ),
    )


def vllm() -> Dialect:
    """Thoughts before the call, which want to be seen again; names that are null in later pieces."""
    begun = [
        {"index": at, "id": f"chatcmpl-tool-{at}", "type": "function", "function": {"name": "get_node"}}
        for at in (0, 1)
    ]
    rest = [{"index": at, "function": {"name": None, "arguments": ARGUMENTS}} for at in (0, 1)]
    return Dialect(
        runner={},
        calls=streamed(
            piece({"role": "assistant", "content": ""}),
            piece({"reasoning_content": "First I "}),
            piece({"reasoning_content": "look."}),
            *(piece({"tool_calls": [one]}) for pair in zip(begun, rest, strict=True) for one in pair),
            piece({"content": ""}, "tool_calls", usage=USAGE),
        ),
        words=streamed(piece({"content": "All well."}, "stop", usage=USAGE)),
    )


def openrouter() -> Dialect:
    """Comments that keep the connection alive."""
    plain = openai()
    comment = b": OPENROUTER PROCESSING\n\n"
    return Dialect(
        runner={"apiKey": "${env:MODEL_KEY}", "headers": {"X-Title": "Toolgrove"}},
        calls=Reply(body=comment + plain.calls.body.replace(b"\n\n", b"\n\n" + comment), headers=plain.calls.headers),
        words=Reply(body=comment + plain.words.body, headers=plain.words.headers),
    )


def litellm() -> Dialect:
    """CRLF, and no [DONE] where the provider behind it sent none."""
    plain = openai()
    cut = b"data: [DONE]\n\n"
    return Dialect(
        runner={"apiKey": "${env:MODEL_KEY}"},
        calls=Reply(body=plain.calls.body.removesuffix(cut).replace(b"\n", b"\r\n"), headers=plain.calls.headers),
        words=Reply(body=plain.words.body.removesuffix(cut).replace(b"\n", b"\r\n"), headers=plain.words.headers),
    )


def whole() -> Dialect:
    """No stream: an answer in one piece, with content in parts."""
    calls = [call(at, index=None, given="") for at in (0, 1)]
    return Dialect(
        runner={"stream": False},
        counts=False,
        calls=choice({"content": [{"type": "thinking", "thinking": []}], "tool_calls": calls}, "tool_calls"),
        words=choice({"content": [{"type": "text", "text": "All "}, {"type": "text", "text": "well."}]}),
    )


DIALECTS = {
    made.__name__: made() for made in (openai, azure, anthropic, gemini, ollama, vllm, openrouter, litellm, whole)
}
