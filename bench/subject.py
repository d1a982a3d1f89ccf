"""The process of one subject: `python -m bench.subject NAME http PORT TOOLS | stdio TOOLS | work TOOLS`.

Over HTTP it says on its first line of output how far it was before it began to serve. As a worker it does what
the lines of its input ask for, in its own process, and answers each with one line.
"""

import asyncio
import gc
import importlib
import json
import os
import sys
import time
import tracemalloc
from typing import Any

from apcore import CancelToken, Context, Executor

from bench.measure import resident_mb, timed
from bench.modules import ADD, registry_of_size

VARIANTS: dict[str, tuple[str, dict[str, bool]]] = {
    "ours": ("ours", {}),
    "bare": ("ours", {"bare": True}),
    "sdk": ("sdk", {}),
    "lean": ("sdk", {"lean": True}),
    "peer": ("peer", {}),
    "limit": ("limit", {}),
}


class Timed(Executor):
    """Knows how long its pipeline took."""

    inside = 0.0

    async def call_async(self, *args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return await super().call_async(*args, **kwargs)
        finally:
            self.inside = time.perf_counter() - started


class Worker:
    """In-process measurements of one subject; every method answers with plain JSON."""

    def __init__(self, subject: Any, connections: list[Any], registry: Any) -> None:
        self._subject, self._connections, self._registry = subject, connections, registry

    async def ask(self, connection: int, messages: list[dict[str, Any]], in_flight: int) -> dict[str, Any]:
        """Send the messages with so many on their way at a time."""
        put, take, wrap, unwrap = self._connections[connection]
        wrapped = [(message["id"], wrap(message)) for message in reversed(messages)]
        clock, put_at, answers = time.perf_counter, {}, []
        latencies: list[float] = []
        gc.collect()
        cpu, started = time.process_time(), clock()
        for _ in range(min(in_flight, len(wrapped))):
            number, message = wrapped.pop()
            put_at[number] = clock()
            await put(message)
        while len(latencies) < len(messages):
            answer = await take()
            latencies.append((clock() - put_at[getattr(answer.message, "root", answer.message).id]) * 1000)
            answers.append(answer)
            if wrapped:
                number, message = wrapped.pop()
                put_at[number] = clock()
                await put(message)
        seconds, cpu = clock() - started, time.process_time() - cpu
        plain = [unwrap(answer) for answer in answers]
        return {"latencies": latencies, "seconds": seconds, "cpu": cpu, "answers": plain}

    async def greet(self, connection: int, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """The handshake: a request and a notification."""
        put, take, wrap, _ = self._connections[connection]
        await put(wrap(messages[0]))
        await take()
        await put(wrap(messages[1]))
        return {}

    async def executor(self, calls: int) -> dict[str, Any]:
        """apcore's pipeline alone, with the context that the bridge gives it."""
        executor, latencies = Executor(self._registry), []
        contexts: list[Any] = [Context.create(cancel_token=CancelToken(), data={}) for _ in range(calls)]
        gc.collect()
        cpu, started = time.process_time(), time.perf_counter()
        for number, context in enumerate(contexts):
            begun = time.perf_counter()
            await executor.call_async(ADD, {"a": number, "b": 1}, context)
            latencies.append((time.perf_counter() - begun) * 1000)
        return {"latencies": latencies, "seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}

    async def router(self, calls: int) -> dict[str, Any]:
        """Each call's time outside the executor."""
        executor = Timed(self._registry)
        handle, outside, started = self._subject.handler(executor), [], time.perf_counter()
        for number in range(calls):
            begun = time.perf_counter()
            await handle(ADD, {"a": number, "b": 1})
            outside.append((time.perf_counter() - begun - executor.inside) * 1000)
        return {"latencies": outside, "seconds": time.perf_counter() - started}

    async def build(self, modules: int) -> dict[str, Any]:
        """Tools from fresh modules, and what apcore's definitions alone cost before and after them, on average."""
        registry = registry_of_size(modules, with_add=False)
        gc.collect()
        before = timed(lambda: [registry.get_definition(name) for name in registry.list()])
        gc.collect()
        tools = timed(lambda: self._subject.build_tools(registry))
        gc.collect()
        after = timed(lambda: [registry.get_definition(name) for name in registry.list()])
        definitions = (before + after) / 2
        return {"tools": tools, "definitions": definitions, "net": tools - definitions}

    async def weigh(self, modules: int) -> dict[str, Any]:
        """Megabytes that the tools of fresh modules take."""
        registry = registry_of_size(modules, with_add=False)
        for name in registry.list():
            registry.get_definition(name)
        gc.collect()
        tracemalloc.start()
        tools = self._subject.build_tools(registry)
        gc.collect()
        megabytes = tracemalloc.get_traced_memory()[0] / 2**20
        tracemalloc.stop()
        return {"tools": len(tools), "mb": megabytes}


async def work(subject: Any, options: dict[str, bool], tools: int) -> None:
    registry = registry_of_size(tools)
    async with subject.memory(registry, **options) as first, subject.memory(registry, **options) as second:
        worker = Worker(subject, [first, second], registry)
        for line in sys.stdin:
            order = json.loads(line)
            answer = await getattr(worker, order.pop("do"))(**order)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def main(name: str, how: str, *numbers: str) -> None:
    module, options = VARIANTS[name]
    subject = importlib.import_module(f"bench.subjects.{module}")
    imported = time.monotonic()
    if how == "work":
        asyncio.run(work(subject, options, int(numbers[0])))
    elif how == "stdio":
        subject.stdio(registry_of_size(int(numbers[0])), **options)
    else:
        registry = registry_of_size(int(numbers[1]))
        gc.collect()
        stages = {
            "imported": imported,
            "registered": time.monotonic(),
            "cpu": time.process_time(),
            "rss": resident_mb(),
        }
        sys.stdout.write(json.dumps(stages) + "\n")
        sys.stdout.flush()
        os.dup2(2, 1)  # nobody reads on, and one that logs to a full pipe would stop there
        subject.http(registry, int(numbers[0]), **options)


if __name__ == "__main__":
    main(*sys.argv[1:])
