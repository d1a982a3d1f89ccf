"""An agent at work: the tools that it was given, and the way to call them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from importlib import import_module
from math import inf
from typing import Any

from toolgrove.call.changed import marked
from toolgrove.call.ending import about, failed, started, succeeded
from toolgrove.call.ids import Ids
from toolgrove.call.run_events import RunEvents
from toolgrove.call.scrub import Scrubs
from toolgrove.errors import NAME, GroveError, brief
from toolgrove.events import ModelUsed, RunFinished, Text, ToolFailed, ToolProgress, ToolSucceeded
from toolgrove.notation.half_characters import whole_text
from toolgrove.pool.completions import Completions
from toolgrove.pool.discovery import meant
from toolgrove.pool.instructions import instructions
from toolgrove.pool.prompts import Prompts
from toolgrove.pool.receipt import Receipt
from toolgrove.pool.resolve import Toolset
from toolgrove.pool.resources import Resources, Watch
from toolgrove.types import (
    CALL_TOOL,
    COMPLETE,
    GET_PROMPT,
    READ_RESOURCE,
    SUBSCRIBE,
    Arguments,
    Bounds,
    Call,
    Caller,
    Client,
    Clock,
    ModelSettings,
    Next,
    Offered,
    Publish,
    Result,
    Tool,
    ToolSpec,
)


class Agent:
    """An agent of a project; its tools are fixed from the moment it was resolved.

    `publish` takes the events of a sub-agent's calls, for the stream of the run that they belong to; `patience` is how
    many seconds its calls may wait for a person. `settings` are for the runner that drives it.
    """

    def __init__(
        self,
        caller: Caller,
        toolset: Toolset,
        *,
        resources: Resources,
        prompts: Prompts,
        description: str,
        list_page: int | None = None,
        settings: ModelSettings,
        chain: Next,
        secrets: Scrubs,
        ids: Ids,
        clock: Clock,
        publish: Publish | None = None,
        patience: float = 0.0,
        hold: float = 0.0,
    ) -> None:
        self.hold = hold
        self.description = description
        self.list_page = list_page
        self.settings = settings
        self.resources = resources
        self.prompts = prompts
        self._caller = caller
        self._toolset = toolset
        self._chain = chain
        self._secrets = secrets
        self._speech = secrets.stream()
        self._ids = ids
        self._clock = clock
        self._publish = publish
        self._patience = patience

    @property
    def name(self) -> str:
        return self._caller.agent

    @property
    def depth(self) -> int:
        """How deep in a chain of sub-agents it works."""
        return self._caller.depth

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What it is shown; where that is not all, `find_tools` finds the rest."""
        return self._toolset.listed

    @property
    def granted(self) -> tuple[ToolSpec, ...]:
        """All that it can call, shown or not."""
        return self._toolset.specs

    @property
    def instructions(self) -> str:
        """How its tools are meant to be used, for its client."""
        return instructions(self._toolset.specs, self._toolset.listed)

    @property
    def receipt(self) -> Receipt:
        """Why each tool of the pool is or is not there."""
        return self._toolset.receipt

    @property
    def own_receipt(self) -> Receipt:
        """What the agent itself may read of it: what it has, and what only its role keeps away."""
        return self._toolset.receipt.about(self._toolset.callable)

    @property
    def approvals(self) -> Mapping[str, str]:
        """The tools whose every call a person must approve, and by which rule."""
        return self._toolset.approvals

    def may_speak(self, name: str) -> bool:
        """Whether a call of this tool can ask the agent's client, or log to it, before it answers."""
        tool = self._toolset.callable.get(name)
        return tool is None or tool.kind not in ("builtin", "http") or name == CALL_TOOL or name in self.approvals

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The limits that it and all agents above it put on those it spawns."""
        return self._toolset.bounds

    async def call(
        self,
        name: str,
        arguments: Arguments | None = None,
        *,
        client: Client | None = None,
        at_least: str | None = None,
    ) -> Result:
        """Call a tool; a failure is an answer with `error`, or an MCP tool's own with `isError`, never an exception.

        `at_least` is a version that the caller knows of: a replica that has not reached it waits.
        """
        call = self.begin(name, arguments, client)
        call.at_least = at_least
        return marked(call, await self.send(call))

    async def refuse(self, name: str, why: GroveError) -> Result:
        """Answer a call that cannot be made as it was asked for: it fails like any other, and is told and recorded."""
        call = self.begin(name)
        call.refusal = why
        return await self.send(call)

    async def read_resource(self, uri: str, *, client: Client | None = None) -> Result:
        """Read a resource of a server, or a subtree: `{"contents": […]}`, or an answer with `error`."""
        call = self.begin_reading(uri, client)
        result = marked(call, await self.send(call))
        return result if call.error is not None else self.resources.contents(uri, call, result)

    async def watch_resource(self, watch: Watch, *, client: Client | None = None) -> Result:
        """Hear of changes of a resource from now on, until `watch.end()`: `{}`, or an answer with `error`."""
        return await self.send(self.begin_watching(watch, client))

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, client: Client | None = None
    ) -> Result:
        """Get a prompt of a server: `{"messages": […]}`, or an answer with `error`."""
        call = self.begin_getting(name, arguments, client)
        return marked(call, await self.send(call))

    def begin(self, name: str, arguments: Arguments | None = None, client: Client | None = None) -> Call:
        """A call of this agent, not sent yet."""
        toolset = self._toolset
        if name == CALL_TOOL and name in toolset.callable and (call := meant(arguments)) is not None:
            name, arguments = call  # its gate, its limits and its record are those of the tool that is meant
        approval = toolset.approvals.get(name)
        # No tool has a name that long.
        if not name.isascii():
            name = whole_text(name)
        return self._begun(brief(name, NAME), toolset.callable.get(name), arguments, client, approval)

    def begin_reading(self, uri: str, client: Client | None = None) -> Call:
        """The reading of a resource by this agent, not sent yet; that of a subtree is a call of `get_subtree`."""
        if (of_tree := self.resources.of_tree(uri)) is not None:
            return self.begin(*of_tree, client)
        return self._begun(READ_RESOURCE, self.resources.reading(uri), {"uri": uri}, client)

    def begin_watching(self, watch: Watch, client: Client | None = None) -> Call:
        """The subscription of this agent to a resource, not sent yet; the watch begins with it."""
        return self._begun(SUBSCRIBE, self.resources.watching(watch), {"uri": watch.uri}, client)

    async def offers(self) -> list[Offered]:
        """The resources and prompts that it has, as servers list them now."""
        return [*await self.resources.offers(), *await self.prompts.offers()]

    def begin_getting(
        self, name: str, arguments: Mapping[str, str] | None = None, client: Client | None = None
    ) -> Call:
        """The getting of a prompt by this agent, not sent yet."""
        asked = {"name": name, **({} if arguments is None else {"arguments": dict(arguments)})}
        return self._begun(GET_PROMPT, self.prompts.getting(), asked, client)

    def begin_completing(self, asked: Arguments, client: Client | None = None) -> Call:
        """The completing of an argument, `{"ref": …, "argument": …}`, not sent yet."""
        return self._begun(COMPLETE, Completions(self.prompts, self.resources).completing(), asked, client)

    def _begun(
        self,
        name: str,
        tool: Tool | None,
        arguments: Arguments | None,
        client: Client | None,
        approval: str | None = None,
    ) -> Call:
        toolset = self._toolset
        return Call(
            id=self._ids.call(),
            name=name,
            tool=tool,
            arguments={} if arguments is None else arguments,
            caller=self._caller,
            approval=approval,
            grants=toolset.callable,
            rules=toolset.approvals,
            receipt=toolset.receipt.hash,
            bounds=toolset.bounds,
            publish=self._publish,
            client=client,
            patience=self._patience,
            for_model=self._publish is not None,
            known=toolset.names,
        )

    def in_session(self, session: str) -> Agent:
        """The same agent with another session's view of the tree."""
        if session == self._caller.session:
            return self
        other = copy(self)
        other._caller = replace(self._caller, session=session)
        return other

    def in_run(self, run_id: str, publish: Publish) -> Agent:
        """The same agent in a run, which hears of its calls; one that needs a person waits for them."""
        other = copy(self)
        other._caller = replace(self._caller, run_id=run_id)
        other._publish, other._patience = publish, inf
        other._speech = self._secrets.stream()
        return other

    def said(self, text: str) -> None:
        """Tell whoever follows the run what its model says, without secrets; half of one waits for the rest."""
        self._say(self._speech.feed(text))

    def heard_out(self) -> None:
        """Tell what waited: its model calls a tool now, or says no more."""
        self._say(self._speech.end())

    def cleaned(self, text: str) -> str:
        """What a model said, without secrets."""
        return self._secrets.scrub_text(text)

    def _say(self, text: str) -> None:
        if text:
            self._tell(Text, text=text)

    def used(self, model: str, *, input: int, output: int) -> None:
        """Count the tokens that a model read and wrote."""
        self._tell(ModelUsed, model=model, input=input, output=output)

    def _tell(self, kind: type[Text | ModelUsed], **facts: Any) -> None:
        if self._publish is not None:
            caller = self._caller
            run_id, above = caller.run_id or "", caller.parent_call_id
            now = self._clock.wall()
            self._publish(kind(chain=caller.chain, run_id=run_id, parent_call_id=above, timestamp=now, **facts))

    def send(self, call: Call) -> Awaitable[Result]:
        """Send a call that was begun; what it leaves on the call can be read afterwards."""
        return self._chain(call) if self._publish is None else self._published(call, self._publish)

    async def run(self, requests: Iterable[Any]) -> AsyncIterator[dict[str, Any]]:
        """Call tools one after the other, `{"tool": …, "arguments": {…}}` each, and yield what happens.

        Events of sub-agents at any depth are included. A call that fails is an event like any other; the rest goes on,
        and `run_finished` always comes last.
        """
        successes = failures = 0
        begun = self._clock.monotonic()
        events = RunEvents(self._caller.chain)
        run_id = self._caller.run_id or self._ids.run()
        caller = replace(self._caller, run_id=run_id)
        for request in requests:
            call = self._requested(request, caller, events)
            yield started(call, self._clock.wall()).to_json()
            work = asyncio.ensure_future(self._chain(call))
            work.add_done_callback(events.wake)
            try:
                while (event := await events.next(work)) is not None:
                    yield event
                end = self._ended(call, work.result())
            finally:
                work.cancel()
            successes, failures = successes + (call.error is None), failures + (call.error is not None)
            yield end.to_json()
        yield RunFinished(
            chain=caller.chain,
            run_id=run_id,
            parent_call_id=caller.parent_call_id,
            receipt=self.receipt.hash,
            outcome="failure" if failures else "success",
            succeeded=successes,
            failed=failures,
            delegated=events.delegated,
            tool_calls=successes + failures + sum(events.delegated.values()),
            seconds=round(self._clock.monotonic() - begun, 3),
            timestamp=self._clock.wall(),
        ).to_json()

    def _requested(self, request: Any, caller: Caller, events: RunEvents) -> Call:
        asked = request if isinstance(request, dict) else {}
        call = self.begin(str(asked.get("tool", "")), asked.get("arguments"))
        call.caller, call.publish = caller, events.publish
        call.client = _RunClient(call, self._clock, events.publish)
        return call

    async def _published(self, call: Call, publish: Publish) -> Result:
        """The result of a call that a run hears of: a sub-agent's without the result, its own with it."""
        self.heard_out()
        call.client = call.client or _RunClient(call, self._clock, publish)
        publish(started(call, self._clock.wall()))
        try:
            result = await self._chain(call)
        except asyncio.CancelledError:
            publish(failed(call, self._clock.wall()))
            raise
        publish(self._ended(call, None if call.caller.is_delegated else result))
        return result

    def _ended(self, call: Call, result: Result | None) -> ToolSucceeded | ToolFailed:
        now = self._clock.wall()
        shown = None if result is None else marked(call, result)
        if call.error is not None:
            return failed(call, now, shown if call.failed_by_itself else None)
        return succeeded(call, now, shown)

    def openai_tools(self, *, strict: bool = False, embed_annotations: bool = False) -> list[dict[str, Any]]:
        """The same tools as OpenAI tool definitions."""
        export = import_module(
            "toolgrove.openai_tools"
        ).openai_tools  # only those who export pay for the bridge's import
        tools: list[dict[str, Any]] = export(self.tools, strict=strict, embed_annotations=embed_annotations)
        return tools


class _RunClient:
    """The client of a call in a run: progress becomes an event, and there is no one to ask."""

    def __init__(self, call: Call, clock: Clock, publish: Publish) -> None:
        self._call, self._clock, self._publish = call, clock, publish

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        common = about(self._call, self._clock.wall())
        self._publish(ToolProgress(**common, progress=progress, total=total, message=message))

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        return None
