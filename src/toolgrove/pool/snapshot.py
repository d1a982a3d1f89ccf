"""The pool at one moment: every tool of every source with its standing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from toolgrove.pool.offer import Offer
from toolgrove.types import OWN_TOOLS, Kind, ToolSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceState:
    """How a source stands; `problem` is empty while it is up, `notice` while nobody needs to do anything for it.

    Its `instructions` are a stranger's text for the operator, and not for a model.
    `takes_login` is whether a person can log in to it.
    """

    name: str
    kind: Kind
    tools: int = 0
    problem: str = ""
    notice: str = ""
    instructions: str = ""
    takes_login: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolSnapshot:
    """What there is.

    `revision` counts the moments, `content` is the hash of what an agent could tell apart.
    """

    revision: int
    offers: Mapping[str, Offer]
    rejected: Sequence[Offer]
    sources: Mapping[str, SourceState]
    content: str


def compose(
    revision: int,
    groups: Iterable[Sequence[Offer]],
    sources: Mapping[str, SourceState],
    holders: Mapping[str, str] | None = None,
) -> PoolSnapshot:
    """One snapshot of all sources, built-in ones first.

    A name that two sources claim stays with the one that had it before (`holders`), else with the first in the file.
    """
    offers: dict[str, Offer] = {}
    rejected: list[Offer] = []
    masked: list[Offer] = []
    for offer in (offer for group in groups for offer in group):
        if offer.standing == "masked":
            masked.append(offer)
            continue
        present = offers.get(offer.name)
        holder = present.source if present is not None else (holders or {}).get(offer.name, offer.source)
        if offer.name in OWN_TOOLS or (present is not None and present.kind == "builtin"):
            reason = f"{offer.name!r} is a built-in tool and cannot be taken over: rename {offer.source!r} or mask it"
            rejected.append(replace(offer, standing="unvalidated", reason=reason, tool=None))
        elif holder != offer.source:
            reason = f"{offer.name!r} is a tool of {holder!r} already, which keeps it: rename {offer.source!r}"
            rejected.append(replace(offer, standing="unvalidated", reason=reason, tool=None))
        elif present is None:
            offers[offer.name] = offer
        else:
            reason = f"{holder!r} offers {present.own_name!r} and {offer.own_name!r} under this one name"
            offers[offer.name] = replace(present, standing="unvalidated", reason=reason, tool=None)
    for offer in masked:  # which is there to be explained, and in nobody's way
        offers.setdefault(offer.name, offer)
    content = _content(offers, rejected, sources)
    return PoolSnapshot(revision=revision, offers=offers, rejected=tuple(rejected), sources=sources, content=content)


def _volatile(spec: ToolSpec) -> str:
    """What a definition's hash may leave out."""
    return spec.description if spec.as_given is None else f"{spec.description}\0{spec.as_given.get('title')}"


def _content(offers: Mapping[str, Offer], rejected: Iterable[Offer], sources: Mapping[str, SourceState]) -> str:
    digest = hashlib.sha256()
    for offer in rejected:
        digest.update(f"{offer.name}\0{offer.source}\0{offer.reason}\n".encode())
    for name in sorted(offers):
        offer = offers[name]
        tool = offer.tool
        mark = offer.reason if tool is None else f"{tool.definition} {tool.mutates} {_volatile(tool.spec)}"
        known_as = "\0".join((name, *offer.also, offer.formerly))
        digest.update(f"{known_as}\0{offer.source}\0{offer.standing}\0{mark}\n".encode())
    for name in sorted(sources):
        state = sources[name]
        digest.update(f"{name}\0{state.problem}\0{state.notice}\0{state.instructions}\n".encode())
    return digest.hexdigest()[:16]
