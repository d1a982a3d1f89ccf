"""What an endpoint tells a client of the newer era about itself, before that asks for anything."""

from mcp_serve.parts import Parts
from mcp_serve.protocol import MODERN
from mcp_serve.table import Json


def announced(parts: Parts) -> Json:
    """What clients are told to ask for: only what there is."""
    resources, prompts = parts.resources, parts.prompts
    told: Json = {"tools": {"listChanged": True}}
    if resources.offered:
        told["resources"] = {"listChanged": True, "subscribe": resources.watchable}
    if prompts is not None and prompts.offered:
        told["prompts"] = {"listChanged": True}
    if prompts is not None and prompts.completes:
        told["completions"] = {}
    if parts.logs is not None and parts.logs():
        told["logging"] = {}
    return told


def discovered(capabilities: Json, instructions: str | None) -> Json:
    """The result of `server/discover`, in the form of the wire."""
    result: Json = {"cacheScope": "private", "capabilities": capabilities}
    if instructions is not None:
        result["instructions"] = instructions
    return {**result, "resultType": "complete", "supportedVersions": [MODERN], "ttlMs": 0}
