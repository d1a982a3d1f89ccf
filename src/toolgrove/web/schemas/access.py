"""Changes of what an agent may use, as the console makes them in the project file; and tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from toolgrove.web.schemas.json_object import Answer, Body


class AccessWish(Body):
    """How an agent is to stand to a tool: has it, asks a person before each call, or does not see it."""

    agent: str
    tool: str
    want: Literal["grant", "ask", "hide"]


class AccessChange(AccessWish):
    """The same, to be written over the file that was looked at."""

    digest: str = Field(description="The digest of the preview: only over exactly that file is written.")


class AccessUndo(Body):
    """Takes the change back that made the file what it is."""

    digest: str = Field(description="The digest that the change answered.")


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessEffect(Answer):
    """A tool that the agent would stand to otherwise."""

    tool: str
    before: Annotated[str, Field(description="A verdict of the receipt, or asks.")]
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessPreview(Answer):
    """What a change would write, and what that would mean; nothing is written yet."""

    file: Annotated[str, Field(description="The name of the project file.")]
    digest: Annotated[str, Field(description="The SHA-256 of the file as it is.")]
    diff: Annotated[str, Field(description="The lines of the agent's section that change; empty if none has to.")]
    steps: list[str]
    effects: list[AccessEffect]
    writable: bool
    why: Annotated[str, Field(description="Why the console does not write it; empty if it does.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessWritten(Answer):
    """The file was written."""

    digest: Annotated[str, Field(description="The SHA-256 of the file as it is now.")]
    taken: Annotated[bool, Field(description="Whether it is in use; if not, GET /api/project has the problems.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenSummary(Answer):
    """A token, without the token."""

    id: str
    holder: Annotated[str, Field(description="An agent, or operator.")]
    standing: Annotated[Literal["good", "expired", "agent_gone"], Field(description="Whether somebody can use it.")]
    used: Annotated[bool, Field(description="Whether somebody came with it already.")]
    expires_at: Annotated[float | None, Field(description="Seconds since 1970; null without an end.")]
    current: Annotated[bool, Field(description="Whether this request came with it.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenList(Answer):
    """All tokens, by holder."""

    items: list[TokenSummary]


class TokenWish(Body):
    """A new token of an agent."""

    agent: str
    days: int | None = Field(default=None, ge=1, le=3650, description="Void after so many days; absent: never.")


@dataclass(frozen=True, kw_only=True, slots=True)
class NewToken(Answer):
    """A token, shown this once."""

    id: str
    holder: str
    token: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RevokedToken(Answer):
    """A token that is revoked now."""

    id: str
