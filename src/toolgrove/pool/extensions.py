"""Python modules as tools: an apcore registry, called through its executor so that its own rules hold."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from apcore import CancelToken, Context, Executor, Identity, Registry
from apcore.errors import ACLDeniedError, InvalidInputError, ModuleError, ModuleTimeoutError, SchemaValidationError
from mcp_types import TextContent

from apcore_files.app import registry_in
from apcore_files.app_name import is_app
from apcore_files.budget import IMPORT_BUDGET
from apcore_files.folder import discovered
from apcore_files.module_runs import OCCUPIES, contain, ends_us, needs_thread, ordinary, with_text_keys
from apcore_files.watching import following
from apcore_mcp.adapters.errors import ErrorMapper, is_unexpected
from apcore_mcp.helpers import MCP_ELICIT_KEY, MCP_PROGRESS_KEY
from apcore_mcp.modules import registry_of
from apcore_mcp.server.factory import ModuleEntry
from apcore_mcp.server.listener import RegistryListener
from toolgrove.errors import Forbidden, GroveError, InvalidArgument, ShareSpent, UpstreamFailed
from toolgrove.notation.json_value import canonical, detached
from toolgrove.pool.fair_shares import FairShares, Overdue, share_of
from toolgrove.pool.module_threads import Occupied
from toolgrove.pool.naming import shortened
from toolgrove.pool.offer import Offer
from toolgrove.types import Annotations, Call, Client, Kind, Result, SystemClock, Tool, ToolSpec

log = logging.getLogger("toolgrove.pool")
NAME = "extensions"
_NESTING = 100
"""Levels of a result; the readers of many clients follow some two hundred, the envelope included."""
THREADS = min(32, (os.cpu_count() or 1) + 4)
"""How many calls of modules that are not async run at a time."""
_PATIENCE = 30.0
"""Seconds that a call waits for a thread."""


class ExtensionSource:
    """The modules of a registry; what is registered later shows at the next resolution."""

    name = NAME
    kind: Kind = "extension"

    def __init__(self, modules: Registry | Executor, *, watched: bool = False) -> None:
        self._registry = registry_of(modules)
        self._executor = modules if isinstance(modules, Executor) else Executor(self._registry)
        contain(self._executor)
        self._watched = watched
        self._modules = RegistryListener()
        self._threads = FairShares(THREADS, SystemClock(), of="The threads of Python modules")
        self._modules.start(self._registry)

    @classmethod
    def from_path(cls, path: Path, import_budget: float = IMPORT_BUDGET) -> ExtensionSource:
        """What the files of a folder bring, which are followed, or one file; each is imported within the budget."""
        if is_app(str(path)):
            return cls(registry_in(str(path), import_budget))
        if not path.is_dir():
            raise ValueError(f"extensions: there is no folder {path}; make it, or leave 'extensions' out")
        return cls(discovered(path, import_budget), watched=True)

    async def run(self, changed: Callable[[], None]) -> None:
        """Follow the registry, from whichever thread it changes."""
        loop = asyncio.get_running_loop()
        news = asyncio.Event()

        def tell() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(news.set)

        self._modules.on_change = tell
        try:
            with following(self._registry) if self._watched else nullcontext():
                while True:  # told by this task: a listener may start other tasks, which a bare callback cannot
                    await news.wait()
                    news.clear()
                    changed()
        finally:
            self._modules.stop()

    async def discover(self) -> Sequence[Offer]:
        """Every module that can be a tool."""
        return [self._offer(module_id, entry) for module_id, entry in self._modules.entries().items()]

    def last_known(self) -> Sequence[Offer]:
        """Nothing: a registry in this process always answers."""
        return ()

    def _offer(self, module_id: str, entry: ModuleEntry) -> Offer:
        name = shortened(module_id.replace(".", "-"))
        stated = entry.descriptor.annotations
        told = {field.name: getattr(stated, field.name) for field in fields(Annotations)} if stated else {}
        spec = ToolSpec(
            name=name,
            description=entry.tool.description or "",
            input_schema=entry.tool.input_schema,
            output_schema=entry.tool.output_schema or {"type": "object"},
            annotations=Annotations(**told),
            source=NAME,
        )
        definition = canonical([module_id, spec.description, spec.input_schema, spec.output_schema, told])
        tool = Tool(
            spec=spec,
            source=self,
            mutates=spec.annotations.readonly is not True or spec.annotations.destructive is True,
            reads_if=f"annotations = ModuleAnnotations(readonly=True) in module {module_id}",
            kind=self.kind,
            own_name=module_id,
            definition=hashlib.sha256(definition.encode()).hexdigest(),
            approval="requires_approval" if spec.annotations.requires_approval else None,
        )
        return Offer(name=name, own_name=module_id, source=NAME, kind=self.kind, tool=tool)

    async def call(self, call: Call) -> Result:
        """Run a module in apcore's whole pipeline; a caller who goes away cancels it."""
        module_id = call.granted.own_name
        token = CancelToken()
        data: dict[str, Any] = _capabilities(call.client) if call.client is not None else {}
        identity = Identity(id=call.caller.agent, roles=(call.caller.role,))
        context: Context[Any] = Context.create(identity=identity, cancel_token=token, data=data)
        try:
            async with self._room(call, module_id, data):
                output = await self._executor.call_async(module_id, call.arguments, context)
        except (ShareSpent, UpstreamFailed):
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                token.cancel()
            if ends_us(error):
                raise
            raise _failure(ordinary(error), call) from error
        with suppress(GroveError):
            plain: Result = detached(output, "", _NESTING)
            return plain
        try:
            plain = detached(with_text_keys(output), "", _NESTING)
        except (GroveError, RecursionError):
            raise UpstreamFailed(
                f"{call.name} answered something that is not plain JSON.", reason="bad_result"
            ) from None
        return plain

    @asynccontextmanager
    async def _room(self, call: Call, module_id: str, data: dict[str, Any]) -> AsyncIterator[None]:
        """A thread for a module that needs one; through the data of its context the call says when it is in use."""
        if not needs_thread(self._registry.get(module_id)):
            yield
            return
        try:
            occupied = Occupied(await self._threads.take(share_of(call), _PATIENCE))
        except Overdue:
            raise UpstreamFailed(
                f"{call.name} found no free thread within {_PATIENCE:g} s; it did not run. Try again in a moment.",
                reason="upstream_busy",
                retryable=True,
            ) from None
        data[OCCUPIES] = occupied.occupies()
        try:
            yield
        finally:
            occupied.leave()


def _failure(error: Exception, call: Call) -> GroveError:
    """What went wrong, in the bridge's own words, which give nothing of the inside away."""
    [content] = ErrorMapper().to_mcp_error(error, dict(call.granted.spec.input_schema), call.arguments).content
    text = content.text if isinstance(content, TextContent) else ""
    message = f"{call.name}: {text}."
    if isinstance(error, SchemaValidationError | InvalidInputError) and not text.startswith("Output"):
        return InvalidArgument(message, reason="schema")
    if isinstance(error, ACLDeniedError):
        return Forbidden(message, reason="acl")
    if isinstance(error, ModuleTimeoutError):
        return UpstreamFailed(message, reason="timeout", retryable=True)
    if is_unexpected(error) or not isinstance(error, ModuleError):
        log.error("module %s failed in call %s", call.name, call.id, exc_info=error)
        return UpstreamFailed(f"{call.name} failed inside; the operator's log has the detail.", reason="module_error")
    return UpstreamFailed(message, reason="module_error")


def _capabilities(client: Client) -> dict[str, Any]:
    """What a module may ask of the client, from whichever loop and thread it runs in."""
    home = asyncio.get_running_loop()

    async def at_home(work: Coroutine[Any, Any, Any]) -> Any:
        if asyncio.get_running_loop() is home:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, home))

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        await at_home(client.progress(progress, total, message))

    async def elicit(message: str, schema: dict[str, Any] | None) -> Any | None:
        return await at_home(client.elicit(message, schema))

    return {MCP_PROGRESS_KEY: progress, MCP_ELICIT_KEY: elicit}
