"""The values that the parts of Toolgrove hand to each other; knows no tree, no pool and no transport."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from toolgrove.errors import GroveError
from toolgrove.notation.json_value import compact

Arguments = dict[str, Any]
Result = dict[str, Any]
Schema = Mapping[str, Any]
Role = Literal["reader", "editor"]
Concurrency = Literal["tree", "node"]
Kind = Literal["builtin", "extension", "mcp", "http"]
FIND_TOOLS = "find_tools"
CALL_TOOL = "call_tool"
READ_RESULT = "read_result"
"""The tools with which an agent finds and calls others, and reads on in a large result."""
RESULT_META = "toolgrove/result"
"""Where the `_meta` of an answer that was cut tells how to read on."""
OWN_TOOLS = frozenset((FIND_TOOLS, CALL_TOOL, READ_RESULT))
READ_RESOURCE = "resources/read"
GET_PROMPT = "prompts/get"
COMPLETE = "completion/complete"
SUBSCRIBE = "resources/subscribe"
"""What readings, prompts and the like are called where calls are; no tool has such a name."""
Listed = Literal["resources", "prompts"]
"""What servers list beside tools."""
ANSWER_TOKENS = 8_000
"""About how many tokens an answer of ours has at most, unless the project, the agent or the call says otherwise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotations:
    """What a tool does to the world, as far as anybody said; the names are apcore's, so that one mapper serves both.

    None is "not said". It stays unsaid on the way to a client, whose own default is the stricter one.
    """

    readonly: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    requires_approval: bool = False
    open_world: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ToolSpec:
    """A tool as an agent sees it; `as_given` is how an MCP server defines it, under the server's own name."""

    name: str
    description: str
    input_schema: Schema
    output_schema: Schema
    annotations: Annotations
    source: str
    as_given: Mapping[str, Any] | None = None

    @cached_property
    def listing(self) -> dict[str, Any]:
        """The tool as `tools/list` shows it: one of an MCP server as that server describes it."""
        shown: dict[str, Any] = {"name": self.name, "inputSchema": self.input_schema}
        if self.description:
            shown["description"] = self.description
        if self.as_given is not None:
            return {**self.as_given, **shown}
        if self.output_schema:
            shown["outputSchema"] = self.output_schema
        said = self.annotations
        hints = {"readOnlyHint": said.readonly, "openWorldHint": said.open_world}
        if not said.readonly:  # the others say nothing about a tool that only reads
            hints |= {"destructiveHint": said.destructive, "idempotentHint": said.idempotent}
        return {**shown, "annotations": {name: hint for name, hint in hints.items() if hint is not None}}

    @cached_property
    def tokens(self) -> int:
        """An estimate of what its listing costs a model: a quarter of the characters."""
        return _estimate(self.listing)

    @cached_property
    def lean_tokens(self) -> int:
        """The same without the output schema."""
        return _estimate({key: value for key, value in self.listing.items() if key != "outputSchema"})


def _estimate(listing: Mapping[str, Any]) -> int:
    return -(-len(compact(listing)) // 4)


class Offered(NamedTuple):
    """What an agent has beside tools, and of which server; the `address` of a prompt is its name."""

    kind: Literal["resource", "template", "prompt"]
    address: str
    source: str


class PromptGrant(NamedTuple):
    """The prompts that an agent is given, by their names here; `servers` are those that it selects (None: all)."""

    patterns: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    servers: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """The limits that one agent puts on those below it: whatever it spawns may do no more than it may itself.

    `tools` are the names that it has, `may_delegate` the names that it lends beyond them and nothing else,
    `may_spawn` the agents that it may start (None: every other one), `receipt` the hash of its own resolution,
    `resources` the patterns of what it may read of the servers that it selects, `prompts` which ones it is given.
    """

    agent: str
    tools: frozenset[str]
    may_delegate: tuple[str, ...]
    may_spawn: tuple[str, ...] | None
    approve: tuple[str, ...]
    role: Role
    read_only: bool
    write_root: str | None
    receipt: str
    resources: tuple[str, ...] = ()
    prompts: PromptGrant = PromptGrant()

    def lets_spawn(self, agent: str) -> bool:
        """Whether this agent, or one below it, may start the other."""
        return agent != self.agent if self.may_spawn is None else agent in self.may_spawn


class WriteRoot(NamedTuple):
    """The node at and below which an agent, and all below it, may write."""

    agent: str
    node_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who calls, on whose behalf, and what all of them together may do.

    `chain` names the agents from the outermost to this one. A delegated one works for the call `parent_call_id`;
    `run_id` is the outermost run, None outside of one. `answer_tokens` is the budget of an answer to it.
    """

    agent: str
    session: str
    chain: tuple[str, ...] = ()
    depth: int = 0
    role: Role = "reader"
    read_only: bool = False
    write_roots: tuple[WriteRoot, ...] = ()
    concurrency: Concurrency = "tree"
    parent_call_id: str | None = None
    run_id: str | None = None
    answer_tokens: int = ANSWER_TOKENS

    def __post_init__(self) -> None:
        if not self.chain:
            object.__setattr__(self, "chain", (self.agent,))

    @classmethod
    def bound_by(
        cls,
        bounds: Sequence[Bounds],
        *,
        session: str | None,
        depth: int,
        concurrency: Concurrency,
        answer_tokens: int = ANSWER_TOKENS,
        parent: Call | None = None,
    ) -> Caller:
        """The last of a chain, with what all of it together may do; `parent` is the call that it works for."""
        agent = bounds[-1].agent
        return cls(
            agent=agent,
            session=session or agent,
            chain=tuple(one.agent for one in bounds),
            depth=depth,
            role="editor" if all(one.role == "editor" for one in bounds) else "reader",
            read_only=any(one.read_only for one in bounds),
            write_roots=tuple(WriteRoot(one.agent, one.write_root) for one in bounds if one.write_root is not None),
            concurrency=concurrency,
            answer_tokens=answer_tokens,
            parent_call_id=parent.id if parent is not None else None,
            run_id=parent.run_id if parent is not None else None,
        )

    @property
    def may_write(self) -> bool:
        """Whether any mutating tool is open to this caller."""
        return self.role == "editor" and not self.read_only

    @property
    def is_delegated(self) -> bool:
        """Whether another agent's call sent it."""
        return self.parent_call_id is not None


@dataclass(frozen=True, kw_only=True, slots=True, weakref_slot=True)
class Tool:
    """A tool as the chain runs it.

    `definition` is the hash of all that its source says about it, `approval` the rule of the source by which
    every call needs one. `mutates` is the word of somebody responsible, never that of a foreign server alone;
    `reads_if` is the line with which the operator can say that it only reads, where that is still open. `demands` are
    required arguments that the source itself asks for, since its refusal says more than the schema could. `accepts` is
    the schema that arguments are held against, where the one that models see says less. One that is
    `for_apps` is called by the page of an MCP App, never by a model. `stands_for` names the tools that a call
    takes the place of, each with the first of its parts that does, whatever the arguments look like.
    """

    spec: ToolSpec
    source: Source
    mutates: bool
    reads_if: str = ""
    kind: Kind = "builtin"
    own_name: str = ""
    definition: str = ""
    approval: str | None = None
    targets: tuple[str, ...] = ()
    demands: tuple[str, ...] = ()
    accepts: Schema | None = None
    for_apps: bool = False
    stands_for: Callable[[Arguments], Mapping[str, int]] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSettings:
    """How the model of an agent is asked; None is the runner's own.

    `prompt` is what the operator tells it, `deadline` how many seconds a run may take in all.
    """

    prompt: str = ""
    model: str | None = None
    temperature: float | None = None
    max_turns: int | None = None
    max_output_tokens: int | None = None
    deadline: float | None = None


class Client(Protocol):
    """The side that waits for the result: hears of progress and, where there is a person, can be asked."""

    async def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None: ...


LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""From the least to the most important."""


@runtime_checkable
class Counterpart(Client, Protocol):
    """A client to which a server's own words can be passed on: what it logs while it works, and what it asks.

    `log_level` is the least level that it asked for, None if it asked for none. `answers` says whether a person can be
    asked in a mode, `form` or `url`. `ask` takes a question as MCP writes it, and gives the answer in the same way;
    None if nobody answered.
    """

    @property
    def log_level(self) -> str | None: ...

    def answers(self, mode: str) -> bool: ...

    async def log(self, level: str, data: Any, logger: str) -> None: ...

    async def ask(self, question: dict[str, Any]) -> dict[str, Any] | None: ...


class Shortened(NamedTuple):
    """How a result that was cut is told: the text in its place, where that is one, and the facts for `_meta`."""

    text: str
    meta: Mapping[str, Any]


class Written(NamedTuple):
    """A result, and its JSON in ASCII."""

    result: Result
    text: str


class EarlierCall(NamedTuple):
    """A call that asked for the same and was cut off; nobody knows whether it ran, or that became known later."""

    call_id: str
    begun_at: str
    became: str | None = None

    def __str__(self) -> str:
        ran = "may have run" if self.became is None else f"its outcome became known later: {self.became}"
        return f"{self.call_id}, begun at {self.begun_at}, was cut off and {ran}"


@dataclass(kw_only=True, slots=True)
class Call:
    """One call on its way through the chain: what is asked for, and what the steps leave on it for each other.

    Asked for, set by `Agent.begin`:

    - `id`, `name`, `caller`: which call, of which tool, by whom.
    - `tool`, `known`: the tool, None where the agent has none of that name, and the names that it has. Behind
      `toolset_step`, which refuses those calls, `granted` is the tool.
    - `approval`: the rule by which a person must agree first; None where no rule says so.
    - `grants`, `rules`: all tools that the agent can call, and by which rule one of them needs an approval; for a call
      that stands for several (`Tool.stands_for`), which `parts_step` gives the approval of its parts.
    - `receipt`: the hash of the resolution that gave the agent its tools.
    - `bounds`: the limits that the agent and all above it put on those that this call spawns.
    - `publish`: hands events of what they do to the stream of the run; None where there is none.
    - `arguments`: as given, until `ValidateStep` puts in a copy that fits the schema and that no one else holds.
    - `client`: who waits. In a run, `Agent.run` puts in one that turns progress into events. While the source
      works, `ScrubStep` puts in one that hears no secret.
    - `patience`: how many seconds it may wait for a person who must agree first.
    - `refusal`: why it cannot be made as it was asked for, such as a model's arguments that are no JSON; `ValidateStep`
      raises it, so that the call is counted, recorded and told like any other.
    - `at_least`: a version of the tree that the caller knows of; a replica that has not reached it waits.
    - `for_model`: whether a model reads the answer, over MCP or in a run; it gets no document whole unless it says so.

    Left on it by the steps:

    - `started`, `settle`: by `AuditStep`, on the way in. The first to have the result awaits `settle`: the
      workspace for a write, `IdempotencyStep` for a call with a key, `AuditStep` for all others.
    - `idempotency`, `replayed`: by `IdempotencyStep`, the claim of its key, and whether an earlier result answers.
    - `request`, `earlier`: by `CutOffStep`, on a call that changes something outside: its fingerprint, and the
      earlier one whose outcome is unknown.
    - `begun`: by `BegunStep`, whether a record says so, since the call changes something outside.
    - `cut_off`: by `InFlightStep`, whether the project ended while it was under way.
    - `used_approval`: by `ApprovalStep`, the approval that let it through, and who gave it.
    - `footprint`: by `ApprovalStep`, all that the call may remove or overwrite; None where nobody was asked about it.
    - `targets`: by the workspace, the nodes that a write changed, or whatever else it was about.
    - `in_thread`: by the workspace, that it ran in a thread for its length. Its record may be made in one too, since no
      other write has its place in the journal before it.
    - `overdue`: by the workspace, that other replicas were quicker several times.
    - `written`: by the workspace, its result as text, since the record and the answer need that too.
    - `changed`: by the source, `ScrubStep` and `LargeResultStep`, the policies that changed what the tool answered.
    - `shortened`: by `LargeResultStep`, how a result that was cut is told.
    - `duration`, `settled`: by `AuditStep`, with the record in the journal; a settled call gets no second one.
    - `error`: by `AuditStep`, why the call failed, and whether trying again can help.
    - `failed_by_itself`: by `AuditStep`, whether the tool said so in a result of its own, which is the answer then.
    """

    id: str
    name: str
    caller: Caller
    tool: Tool | None
    arguments: Arguments
    known: tuple[str, ...] = ()
    approval: str | None = None
    grants: Mapping[str, Tool] | None = None
    rules: Mapping[str, str] | None = None
    receipt: str = ""
    bounds: tuple[Bounds, ...] = ()
    publish: Publish | None = None
    client: Client | None = None
    patience: float = 0.0
    at_least: str | None = None
    for_model: bool = False
    refusal: GroveError | None = None

    started: float = 0.0
    settle: Settle | None = None
    idempotency: IdempotencyClaim | None = None
    replayed: bool = False
    request: str = ""
    earlier: EarlierCall | None = None
    begun: bool = False
    cut_off: bool = False
    used_approval: UsedApproval | None = None
    footprint: str | None = None
    targets: tuple[str, ...] = ()
    in_thread: bool = False
    overdue: bool = False
    written: Written | None = None
    changed: tuple[str, ...] = ()
    shortened: Shortened | None = None
    duration: float = 0.0
    settled: bool = False
    error: Mapping[str, Any] | None = None
    failed_by_itself: bool = False

    def text_of(self, result: Result) -> str | None:
        """The text of this very result, if it is written already."""
        written = self.written
        return written.text if written is not None and written.result is result else None

    def note_change(self, policy: str) -> None:
        """Say that a policy changed the result."""
        if policy not in self.changed:
            self.changed = (*self.changed, policy)

    @property
    def granted(self) -> Tool:
        """The tool, for all behind `toolset_step`, which lets no call through without one."""
        if self.tool is None:
            raise RuntimeError(f"no tool was found for {self.id}, and yet it was let through")
        return self.tool

    @property
    def run_id(self) -> str:
        """The outermost run; a call outside of one is its own."""
        return self.caller.run_id or self.id


@dataclass(frozen=True, kw_only=True, slots=True)
class IdempotencyClaim:
    """The key of a call, where its result is kept, and the hash of what it asks for."""

    key: str
    kept_as: str
    request: str


class UsedApproval(NamedTuple):
    """An approval that a call used up, and who gave it."""

    id: str
    by: str


class Foreseen(NamedTuple):
    """What a call would do: `effect` in names, and the hash of what it would remove or overwrite, empty for nothing."""

    effect: str
    footprint: str


Publish = Callable[[Any], None]
"""Takes an event; it neither waits nor fails."""
Settle = Callable[["Call", Result, Any], Awaitable[None]]
Next = Callable[[Call], Awaitable[Result]]
Step = Callable[[Call, Next], Awaitable[Result]]


class Source(Protocol):
    """Where tools come from; `call` runs one that the chain let through.

    It returns the result, or raises a GroveError that says what to do next. The result of an MCP server's tool is
    `{content, structuredContent?, isError?, _meta?}`, as the server gave it; one with `isError` is raised as ToolError.
    """

    @property
    def name(self) -> str: ...

    async def call(self, call: Call) -> Result: ...


class Clock(Protocol):
    """Wall time for records, monotonic time for durations and windows."""

    def wall(self) -> float: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's own clock."""

    wall = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
