"""Calls that change something outside and need a person: agents that pay, a person who decides, and who is paid.

What is paid counts every payment that arrives, by a purpose that no other payment has. An agent repeats a payment until
it is told what became of it, now and then at all replicas at once, and now and then once more after it was told. The
person looks at any replica, and approves or rejects as the draw has it; sometimes two decide at the same moment.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

import anyio
import httpx2

from histories.history import Arrival, Call, Decision, History, Payment, Told
from histories.lines import Lines, Served

PAY = "pay"
_TRIES = 12
_PAUSE = 0.4
"""Seconds between two tries, and between two looks of the person, on average."""
_SECONDS = (0.0, 0.0, 0.0, 0.2, 1.0)
"""How long who is paid takes to answer; longer ones meet more faults."""
_OK = 200


class Paid:
    """A server that is paid; close it."""

    def __init__(self, history: History) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                history.arrivals.append(Arrival(purpose=form["purpose"], at=time.monotonic()))
                closed.wait(form["seconds"])
                body = b'{"paid": true}'
                with suppress(OSError):
                    self.send_response(_OK)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._closed = closed = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def tools(self) -> dict[str, Any]:
        """The tool that pays, as a project has it."""
        schema = {
            "type": "object",
            "properties": {"purpose": {"type": "string"}, "seconds": {"type": "number"}},
            "required": ["purpose", "seconds"],
        }
        url = f"http://127.0.0.1:{self._server.server_port}/"
        return {PAY: {"description": "Pay.", "method": "POST", "url": url, "allowPrivate": True, "inputSchema": schema}}


class Payer:
    """An agent that pays; `work` until it is told to stop."""

    def __init__(
        self,
        name: str,
        era: str,
        token: str,
        history: History,
        numbers: itertools.count[int],
        replicas: Sequence[Served],
    ) -> None:
        self._name = name
        self._draw = Random(f"{history.seed}/{name}")
        self._history, self._numbers, self._replicas = history, numbers, replicas
        self._lines = Lines(name, era, token)
        self._stopped = False

    def stop(self) -> None:
        """Let it end what it is at."""
        self._stopped = True

    async def work(self) -> None:
        try:
            while not self._stopped:
                await anyio.sleep(self._draw.uniform(0, _PAUSE))
                await self._pay()
        finally:
            with anyio.CancelScope(shield=True):
                await self._lines.close()

    async def _pay(self) -> None:
        number = next(self._numbers)
        purpose = f"{self._name}-{number}"
        arguments = {"purpose": purpose, "seconds": self._draw.choice(_SECONDS)}
        calls: list[Call] = []
        for _ in range(_TRIES):
            everywhere = self._draw.random() < 0.3
            replicas = self._replicas if everywhere else [self._draw.choice(self._replicas)]
            answers = await self._called(replicas, arguments)
            calls += answers
            told = {call.told if call.told == "success" else call.error for call in answers}
            is_over = "success" in told or "forbidden approval_rejected" in told
            if self._stopped or (is_over and self._draw.random() < 0.7):
                break
            await anyio.sleep(self._draw.uniform(0, 2 * _PAUSE))
        payment = Payment(number=number, client=self._name, purpose=purpose, calls=calls)
        self._history.payments.append(payment)

    async def _called(self, replicas: Sequence[Served], arguments: Mapping[str, Any]) -> list[Call]:
        calls: list[Call] = []

        async def send(replica: Served) -> None:
            answer = await self._lines.to(replica).call(PAY, arguments)
            error = f"{answer.error.get('code', '')} {answer.error.get('reason', '')}".strip()
            calls.append(
                Call(replica=replica.name, began=answer.began, ended=answer.ended, told=answer.told, error=error)
            )

        async with anyio.create_task_group() as tasks:
            for replica in replicas:
                tasks.start_soon(send, replica)
        return calls


class Person:
    """Decides about what waits, at any replica, until told to stop."""

    def __init__(self, token: str, history: History, replicas: Sequence[Served]) -> None:
        self._draw = Random(f"{history.seed}/person")
        self._history, self._replicas = history, replicas
        self._headers = {"Authorization": f"Bearer {token}"}
        self._stopped = False

    def stop(self) -> None:
        """Decide nothing more."""
        self._stopped = True

    async def work(self) -> None:
        async with httpx2.AsyncClient(headers=self._headers, timeout=3.0, verify=False) as http:
            while not self._stopped:
                await anyio.sleep(self._draw.uniform(0, 2 * _PAUSE))
                with suppress(httpx2.TransportError, ValueError, KeyError):
                    for waiting in await approvals(http, self._draw.choice(self._replicas), state="pending"):
                        await self._decide(http, waiting)

    async def _decide(self, http: httpx2.AsyncClient, waiting: Mapping[str, Any]) -> None:
        chance = self._draw.random()
        verdicts = [chance < 0.8] if chance < 0.9 else [True, False]
        async with anyio.create_task_group() as tasks:
            for approve in verdicts:
                tasks.start_soon(self._say, http, self._draw.choice(self._replicas), waiting, approve)

    async def _say(self, http: httpx2.AsyncClient, replica: Served, waiting: Mapping[str, Any], approve: bool) -> None:
        began = time.monotonic()
        told: Told = "unknown"
        with suppress(httpx2.TransportError):
            answer = await http.post(f"{_api(replica)}/approvals/{waiting['id']}", json={"approve": approve})
            told = "success" if answer.status_code == _OK else "refused" if answer.is_client_error else "unknown"
        purpose = str(waiting["arguments"]["purpose"])
        self._history.decisions.append(
            Decision(approval=waiting["id"], purpose=purpose, approve=approve, told=told, began=began)
        )


async def approvals(http: httpx2.AsyncClient, replica: Served, **query: str) -> list[dict[str, Any]]:
    """What the inbox of a replica holds."""
    answer = await http.get(f"{_api(replica)}/approvals", params=query)
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def unfinished(http: httpx2.AsyncClient, replica: Served) -> set[str]:
    """The newest payments that began, and of which no record says how they ended."""
    query = {"tool": PAY, "kind": "call", "newest": "1", "limit": "1000"}
    answer = await http.get(f"{_api(replica)}/audit", params=query)
    records = answer.json()["items"]
    ended = {one["callId"] for one in records if one["outcome"] != "begun"}
    return {one["callId"] for one in records} - ended


def _api(replica: Served) -> str:
    return f"http://127.0.0.1:{replica.port}/api"
