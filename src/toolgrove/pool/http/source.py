"""An entry of `httpTools` as a source of the pool."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import anyio
import anyio.to_thread

from toolgrove.config import HttpToolConfig, PinMode
from toolgrove.errors import UpstreamFailed
from toolgrove.notation.json_schema import compiled
from toolgrove.notation.secret_names import names_a_secret
from toolgrove.pool.definition_lint import suspect
from toolgrove.pool.fair_shares import Overdue, share_of
from toolgrove.pool.host import private_kind
from toolgrove.pool.http.answer import result_of
from toolgrove.pool.http.dialer import Dialer, Network
from toolgrove.pool.http.documents import FetchedDocument
from toolgrove.pool.http.exchange import SourceConnections, exchange
from toolgrove.pool.http.host_shares import HostShares
from toolgrove.pool.http.openapi import read_document
from toolgrove.pool.http.openapi.document import read
from toolgrove.pool.http.operation import Body, HttpOperation, Input, Refused
from toolgrove.pool.http.request import HttpRequest, build_request, preview
from toolgrove.pool.http.single import read_single
from toolgrove.pool.http.status import status_error
from toolgrove.pool.metadata import check, definition_hash
from toolgrove.pool.offer import Offer, Unavailable
from toolgrove.pool.pin_policy import Listed, PinPolicy
from toolgrove.pool.secrets import Secrets
from toolgrove.store.state import Pins
from toolgrove.types import Call, Clock, Kind, Result, SystemClock, Tool, ToolSpec

log = logging.getLogger("toolgrove.pool")
_FOLLOW = 2.0
"""Seconds between two looks at a document's file, and at the pins while one waits."""
_PATIENCE = 2.0
"""Seconds that a changed document may take to be read before its tools are offered as they were."""
_Offered = tuple[Offer, HttpOperation | None]


class _Read(NamedTuple):
    """What a document offered when it was last read; `mark` tells whether it changed since."""

    mark: tuple[int, ...] | bytes | None
    offers: Sequence[_Offered]
    notice: str


class HttpSource:
    """One call, or all operations of a document, which is a file or is fetched."""

    kind: Kind = "http"

    def __init__(
        self,
        name: str,
        config: HttpToolConfig,
        secrets: Secrets,
        *,
        network: Network | None = None,
        clock: Clock | None = None,
        hosts: HostShares | None = None,
        pins: Pins | None = None,
        pin_mode: PinMode = "firstUse",
    ) -> None:
        self.name = name
        self._config = config
        self._secrets = secrets
        self._clock: Clock = clock or SystemClock()
        network = network or Network()
        dialer = Dialer(network, entry=f"httpTools.{name}", allow_private=config.allow_private)
        self._connections = SourceConnections(dialer, network.tls)
        self._hosts = hosts or HostShares(self._clock)
        self._operations: dict[str, HttpOperation] = {}
        self._answers: dict[str, Any] = {}
        self._offers: Sequence[Offer] = ()
        self._read: _Read | None = None
        self._refused: tuple[tuple[int, ...] | bytes | None, str] | None = None
        self._reading = Lock()
        self._missed = False
        self._fetched: FetchedDocument | None = None
        self._policy: PinPolicy | None = None
        self._waiting: Mapping[str, Listed] = {}
        if isinstance(config.openapi, str):
            self._fetched = FetchedDocument(
                f"httpTools.{name}",
                config.openapi,
                connections=self._connections,
                timeout=config.timeout,
                refresh=config.refresh,
                clock=self._clock,
            )
            if pins is not None:
                self._policy = PinPolicy(name, pins=pins, mode=pin_mode, clock=self._clock)
        self._asks_keyring = "${keyring:" in config.model_dump_json()
        for header, value in config.headers.items():
            if names_a_secret(header) and "${" not in value:  # a key that stands in the file as it is
                secrets.hide(value.rpartition(" ")[2], name=header)

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep connections for the next call, and follow the document."""
        async with anyio.create_task_group() as tasks:
            if self._config.openapi is not None:
                tasks.start_soon(self._follow, changed)
            await self._connections.keep()

    @property
    def notice(self) -> str:
        """What the operator should mend: a closed address, missing credentials, patterns that match nothing."""
        read = self._read.notice if self._read is not None else ""
        return " ".join(filter(None, (self._closed_address(), read)))

    def _closed_address(self) -> str:
        hosts = () if self._config.allow_private else {one.url.origin.host for one in self._operations.values()}
        for host in sorted(hosts):
            if kind := private_kind(host):
                where = f"httpTools.{self.name}.allowPrivate: true"
                return f"Every call to {host} will be refused, since that is a {kind} address. Add {where} to allow it."
        return ""

    @property
    def takes_login(self) -> bool:
        """No: credentials stand in the project file."""
        return False

    async def discover(self) -> Sequence[Offer]:
        """Every operation, and those that cannot be tools with the reason."""
        place = self._config.openapi
        if place is None:
            offers = self._offered(read_single(self.name, self._config))
        else:
            try:
                data = None if self._fetched is None else await self._fetched.get()
                offers = await self._latest(place, data)
            except anyio.get_cancelled_exc_class():
                self._missed = True
                raise
        self._offers = [offer for offer, _ in offers]
        self._operations = {
            offer.tool.definition: operation
            for offer, operation in offers
            if offer.tool is not None and operation is not None
        }
        self._answers = {}
        return self._offers

    async def _latest(self, place: Path | str, data: bytes | None) -> Sequence[_Offered]:
        """The operations of the document; while one that changed takes long to read, those from before."""
        known = self._read
        if known is None:
            return await anyio.to_thread.run_sync(self._read_document, place, data, abandon_on_cancel=True)
        if not self._reading.locked():
            with anyio.move_on_after(_PATIENCE):
                return await anyio.to_thread.run_sync(self._read_document, place, data, abandon_on_cancel=True)
        self._missed = True
        return await anyio.to_thread.run_sync(self._judged, known, abandon_on_cancel=True)

    def _judged(self, known: _Read) -> Sequence[_Offered]:
        return known.offers if self._policy is None else self._held(self._policy, known.offers)

    def _read_document(self, place: Path | str, fetched: bytes | None) -> Sequence[_Offered]:
        """The operations of a document as it is now; kept for the next caller, since this one may stop waiting."""
        with self._reading:
            mark, known = fetched or _mark(Path(place)), self._read
            if known is None or known.mark != mark:
                known = self._read = self._fresh(place, fetched, mark, known)
            return self._judged(known)

    def _fresh(
        self, place: Path | str, fetched: bytes | None, mark: tuple[int, ...] | bytes | None, known: _Read | None
    ) -> _Read:
        """What a document offers that was not read yet; one that cannot be used leaves the last good one in use."""
        if self._refused is not None and self._refused[0] == mark:
            raise Unavailable(self._refused[1])  # it is not read twice
        home = "" if isinstance(place, Path) else place
        data = read(Path(place)) if fetched is None else fetched
        try:
            found = read_document(self.name, self._config, data, home)
        except Unavailable as problem:
            if known is None:
                self._refused = (mark, str(problem))
                raise
            log.warning("httpTools.%s: the document is used as it was: %s", self.name, problem)
            return known._replace(mark=mark, notice=f"The document is used as it was before it changed: {problem}.")
        return _Read(mark=mark, offers=self._offered(found.operations), notice=found.notice)

    def _held(self, policy: PinPolicy, offers: Sequence[_Offered]) -> Sequence[_Offered]:
        """The operations of a foreign document against their pins: what changed or is new waits for a person."""
        early = policy.is_first_contact()
        listed = {
            operation.own_name: _listed(operation, early=early)
            for offer, operation in offers
            if operation is not None and offer.tool is not None
        }
        pins = policy.judge(listed)
        held: list[_Offered] = []
        waiting: dict[str, Listed] = {}
        for offer, operation in offers:
            one = listed.get(offer.own_name) if offer.tool is not None else None
            if one is not None:
                standing, reason = policy.standing(one, pins.get(offer.own_name))
                if standing != "ready":
                    waiting[offer.own_name] = one
                    offer, operation = replace(offer, standing=standing, reason=reason, tool=None), None
            held.append((offer, operation))
        self._waiting = waiting
        return held

    async def _follow(self, changed: Callable[[], None]) -> None:
        """Tell when the document changed, when a person accepted a part of it, or when a discovery missed it."""
        place = self._config.openapi
        seen = _mark(place) if isinstance(place, Path) else None
        while True:
            await anyio.sleep(_FOLLOW)
            now = _mark(place) if isinstance(place, Path) else None
            is_new = self._fetched is not None and await self._fetched.renewed()
            is_missed = self._missed and not self._reading.locked()  # else it is being read still
            if now != seen or is_missed or is_new or await self._is_decided():
                seen, self._missed = now, False
                changed()

    async def _is_decided(self) -> bool:
        policy, waiting = self._policy, self._waiting
        if policy is None or not waiting:
            return False
        try:
            return await anyio.to_thread.run_sync(policy.is_decided, waiting)
        except Exception as problem:
            log.error("httpTools.%s: its pins cannot be read: %s", self.name, problem)
            return False

    def _offered(self, found: Sequence[HttpOperation | Refused]) -> Sequence[_Offered]:
        return [(self._offer(one), None if isinstance(one, Refused) else one) for one in found]

    def last_known(self) -> Sequence[Offer]:
        """The tools of the last time that the file could be read."""
        return [
            offer if offer.standing == "masked" else replace(offer, standing="unavailable", tool=None)
            for offer in self._offers
        ]

    async def call(self, call: Call) -> Result:
        """Send the request and read the answer within the tool's time, which begins when the host has room for it."""
        operation = self._operation(call)
        request = await self._request(operation, call)
        try:
            async with self._hosts.of(request.origin).place(share_of(call), self._config.timeout):
                with anyio.fail_after(self._config.timeout):
                    answer = await exchange(
                        self._connections,
                        request,
                        tool=operation.name,
                        max_bytes=self._config.max_bytes,
                        mutates=operation.mutates,
                    )
        except Overdue:
            raise UpstreamFailed(
                f"The server of {operation.name} has too many calls waiting; nothing was sent. Try again in a moment.",
                reason="upstream_busy",
                retryable=True,
            ) from None
        except TimeoutError:
            advice = "Whether it took effect is unknown: look first." if operation.mutates else "Try again later."
            raise UpstreamFailed(
                f"The server of {operation.name} did not answer within {self._config.timeout:g} s. {advice}",
                reason="timeout",
                retryable=not operation.mutates,
            ) from None
        if answer.status >= 400:
            raise status_error(answer, operation, self._secrets.beginning, self._clock.wall())
        result = result_of(answer, tool=operation.name, head=operation.method == "HEAD")
        self._hold(operation, call, result)
        return result

    def preview(self, call: Call) -> dict[str, str]:
        """The method and the URL that a call would be sent with; what cannot be sent is refused here already."""
        return preview(self._operation(call), call.arguments)

    async def _request(self, operation: HttpOperation, call: Call) -> HttpRequest:
        def fill(template: str, field: str) -> str:
            return self._secrets.fill(template, field=field, user=operation.name, also=operation.known_as)

        if self._asks_keyring:  # which may have to be unlocked by hand, while the others go on
            return await anyio.to_thread.run_sync(build_request, operation, call.arguments, fill)
        return build_request(operation, call.arguments, fill)

    def _operation(self, call: Call) -> HttpOperation:
        operation = self._operations.get(call.granted.definition)
        if operation is None:
            raise UpstreamFailed(
                f"The definition of {call.name} changed after this agent got its tools. The next run can use it.",
                reason="definition_changed",
            )
        return operation

    def _hold(self, operation: HttpOperation, call: Call, result: Result) -> None:
        """Clients refuse a result that breaks the announced schema; better to say what is wrong."""
        if operation.answer is None:
            return
        key = call.granted.definition
        validator = self._answers.get(key)
        if validator is None:
            validator = self._answers[key] = compiled(operation.output_schema)
        error = next(validator.iter_errors(result), None)
        if error is not None:
            where = ".".join(map(str, error.instance_path))
            raise UpstreamFailed(
                f"The answer to {operation.name} does not match its announced schema, at {where!r} "
                f"({error.kind.name}). Tell the operator to correct the output schema; do not retry.",
                reason="output_schema",
                status=result["status"],
            )

    def _offer(self, found: HttpOperation | Refused) -> Offer:
        problem = found.reason if isinstance(found, Refused) else _problem(found)
        offer = Offer(
            name=found.name,
            own_name=found.own_name,
            source=self.name,
            kind=self.kind,
            also=found.also,
            formerly=found.formerly,
        )
        if isinstance(found, Refused) and found.is_left_out:
            return replace(offer, standing="masked", reason=problem)
        if problem or isinstance(found, Refused):
            return replace(offer, standing="unvalidated", reason=problem)
        spec = ToolSpec(
            name=found.name,
            description=found.description,
            input_schema=found.input_schema,
            output_schema=found.output_schema,
            annotations=found.annotations,
            source=self.name,
        )
        tool = Tool(
            spec=spec,
            source=self,
            mutates=found.mutates,
            reads_if=found.reads_if,
            kind=self.kind,
            own_name=found.own_name,
            definition=found.definition(),
            approval=found.approval,
        )
        return replace(offer, tool=tool)


def _raw(operation: HttpOperation) -> dict[str, Any]:
    return {
        "name": operation.own_name,
        "description": operation.description,
        "inputSchema": dict(operation.input_schema),
        "outputSchema": operation.output_schema,
    }


def _problem(operation: HttpOperation) -> str:
    return "; ".join(check(_raw(operation)))


def _listed(operation: HttpOperation, *, early: bool) -> Listed:
    """An operation as it is pinned: what a model reads, and where it is sent."""
    sent = {
        "method": operation.method,
        "url": operation.url.text,
        "parameters": list(map(_said, operation.inputs or ())),
    }
    raw = {**_raw(operation), **sent, "body": None if operation.body is None else _said(operation.body)}
    digest = definition_hash(raw)
    return Listed(whole=digest, digest=digest, raw=raw, instructing=suspect(_raw(operation)).instructing, early=early)


def _said(value: Input | Body) -> dict[str, Any]:
    """What differs from the default: a pin outlives a version that can say more."""
    return {each.name: told for each in fields(value) if (told := getattr(value, each.name)) != each.default}


def _mark(path: Path) -> tuple[int, ...] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return (state.st_mtime_ns, state.st_size, state.st_ino)
