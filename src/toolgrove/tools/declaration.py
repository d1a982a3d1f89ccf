"""What a tool says about itself; the catalog, the gate, the docs and the tests all read it from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgrove.tools.brief import brief_input, brief_output
from toolgrove.tools.context import ToolContext
from toolgrove.tools.schema import CUT, DIFF, MAX_TOKENS, STRING, Schema, flag, record, text
from toolgrove.tree.footprint import EVERYTHING, Footprint
from toolgrove.tree.tree import Tree
from toolgrove.types import Annotations, Arguments, Result, ToolSpec

SOURCE = "workspace"
DEMANDS = ("versionToken",)
"""Required of every change; a call without it is a conflict that names the latest version."""
Run = Callable[[ToolContext, Arguments], Result]
Parts = Callable[[Arguments], Mapping[str, int]]
Rests = Callable[[Tree, Arguments], Footprint]

_READ_THEM = "It is done as the counts say; select_nodes and get_subtree show the nodes."
_WRITING: dict[str, Schema] = {
    "versionToken": text("The 'version' of your latest result; an older one is a conflict."),
    "idempotencyKey": text("Makes a retry safe for 24 hours: the same key and request give the first result again."),
    "dryRun": flag("Report what would change (wouldChange) and change nothing."),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Declaration:
    """A tool: its face, its effect, what it rests on, where the rest of a cut answer is, one example that works.

    `accepts` and `answer` are the schemas of its arguments and its result in full; its face tells them in few words.
    """

    spec: ToolSpec
    accepts: Schema
    answer: Schema
    run: Run
    mutates: bool
    rests_on: Rests | None
    targets: tuple[str, ...]
    rest: str
    example: Mapping[str, Any]
    stands_for: Parts | None = None


def everything(tree: Tree, arguments: Arguments) -> Footprint:
    """The footprint of a tool that may touch anything."""
    return EVERYTHING


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """Whether a tool changes something, and how badly."""

    mutates: bool
    destructive: bool = False
    idempotent: bool = True


READS = Effect(mutates=False)
WRITES = Effect(mutates=True, idempotent=False)
SETS = Effect(mutates=True)
DESTROYS = Effect(mutates=True, destructive=True, idempotent=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Collects the tools of one file."""

    tools: list[Declaration] = field(default_factory=list)

    def tool(
        self,
        effect: Effect,
        *,
        arguments: dict[str, Schema],
        required: tuple[str, ...] = (),
        returns: dict[str, Schema],
        optional: tuple[str, ...] = (),
        rests_on: Rests | None = everything,
        rest: str = "",
        example: Mapping[str, Any] | None = None,
        stands_for: Parts | None = None,
    ) -> Callable[[Run], Run]:
        """Declare the decorated function as a tool of its own name; its docstring is the description.

        `rests_on` tells beforehand what the call rests on; None where that is known only once it was made.
        """

        def declare(run: Run) -> Run:
            name = run.__name__
            accepts = _input(arguments, required, effect)
            answer = _output(returns, optional, effect)
            self.tools.append(
                Declaration(
                    spec=ToolSpec(
                        name=name,
                        description=_prose(run),
                        input_schema=brief_input(accepts, changes=effect.mutates),
                        output_schema=brief_output(answer),
                        annotations=Annotations(
                            readonly=not effect.mutates,
                            destructive=effect.destructive,
                            idempotent=effect.idempotent,
                            open_world=False,
                        ),
                        source=SOURCE,
                    ),
                    accepts=accepts,
                    answer=answer,
                    run=run,
                    mutates=effect.mutates,
                    rests_on=rests_on,
                    rest=rest or (_READ_THEM if effect.mutates else ""),
                    targets=tuple(key for key in arguments if key.endswith(("Id", "Ids"))),
                    example=example or {},
                    stands_for=stands_for,
                )
            )
            return run

        return declare


def _prose(run: Run) -> str:
    return " ".join((run.__doc__ or "").split())


def _input(arguments: dict[str, Schema], required: tuple[str, ...], effect: Effect) -> Schema:
    demanded = DEMANDS if effect.mutates else ()
    return record({**arguments, **(_WRITING if effect.mutates else {}), "maxTokens": MAX_TOKENS}, *required, *demanded)


def _output(returns: dict[str, Schema], optional: tuple[str, ...], effect: Effect) -> Schema:
    more: dict[str, Schema] = {"cut": CUT, "version": STRING}
    if effect.mutates:
        more |= {"dryRun": {"type": "boolean", "const": True}, "wouldChange": record(DIFF, *DIFF)}
    required = [name for name in returns if name not in optional and name != "cut"]
    return record({**returns, **more}, *required, "version")
