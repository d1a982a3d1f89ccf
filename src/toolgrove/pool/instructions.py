"""What an agent's client is told at the start: how its tools are meant to be used, in at most 200 tokens."""

from __future__ import annotations

from collections.abc import Sequence

from toolgrove.types import CALL_TOOL, FIND_TOOLS, READ_RESULT, ToolSpec

_TREE = "workspace"
_VERSION = (
    "Every answer about the tree has a version. Give the latest as versionToken with each change; a conflict tells the "
    "newer one. dryRun tells what would change; every change also takes an idempotencyKey, which makes a retry safe."
)
_OUTLINE = (
    "format: outline is the cheapest way to look around; maxTokens, limit and includedProperties keep answers small."
)


def instructions(granted: Sequence[ToolSpec], listed: Sequence[ToolSpec]) -> str:
    """The instructions for an agent that has these tools; empty where the tools say it all."""
    tree = {spec.name: spec for spec in granted if spec.source == _TREE}
    names = {spec.name for spec in granted}
    said: list[str] = []
    if FIND_TOOLS in names:
        shown = len(listed)
        calling = f"call it with {CALL_TOOL}" if CALL_TOOL in names else "call it by its name"
        said.append(
            f"You are shown {shown} of {len(granted)} tools. Say to {FIND_TOOLS} what you need, then {calling}."
        )
    if "describe_tree" in tree:
        said.append("describe_tree tells what kinds of nodes there are, before you read them.")
    if "get_subtree" in tree or "get_view" in tree:
        said.append(_OUTLINE)
    if any("versionToken" in spec.input_schema.get("required", ()) for spec in tree.values()):
        said.append(_VERSION)
    batch = next((name for name in ("apply_changes", "update_nodes") if name in tree), None)
    if batch is not None:
        said.append(f"Make many changes in one call: {batch}.")
    if READ_RESULT in names:
        said.append(f"An answer that was cut names a resultId: read on with {READ_RESULT}.")
    return " ".join(said)
