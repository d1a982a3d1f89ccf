"""The modules that the tests serve. What they do is written to a journal that tests in any process can read."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from apcore import ModuleAnnotations, Registry
from apcore.errors import ModuleError
from pydantic import BaseModel, Field

from apcore_mcp import elicit, report_progress

SECRET = "sk-live-4242"
YES_OR_NO = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


class Journal:
    """Lines appended to a file, in the order they happened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, line: str) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    def __contains__(self, line: str) -> bool:
        return line in self.lines


class Anything(BaseModel):
    pass


class Keyed(BaseModel):
    key: str


class Sum(BaseModel):
    sum: int


class Pair(BaseModel):
    a: int
    b: int


class Text(BaseModel):
    text: str


class Nap(BaseModel):
    key: str
    seconds: float


class Values(BaseModel):
    values: list[float]
    total: float | None = None
    pause: float = 0


class Count(BaseModel):
    upto: int


class Module:
    """What every module here starts from."""

    description = "A module of the tests"
    input_schema: type[BaseModel] = Keyed
    output_schema: type[BaseModel] = Anything

    def __init__(self, journal: Journal) -> None:
        self.journal = journal


class Add(Module):
    description = "Add two integers"
    documentation: str | None = "# Add\n\nAdds two integers."
    tags = ("math", "public")
    annotations = ModuleAnnotations(readonly=True, idempotent=True)
    input_schema = Pair
    output_schema = Sum

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"sum": inputs["a"] + inputs["b"]}


class Shout(Module):
    description = "Say it louder"
    documentation = "Turns text into capitals."
    tags = ("text", "public")
    input_schema = Text
    output_schema = Text

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"text": inputs["text"].upper()}


class Vault(Module):
    description = "Not for everybody"
    documentation = f"The combination is {SECRET}."
    tags = ("private",)
    input_schema = Anything

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.journal.write("vault opened")
        return {"open": True}


class Hold(Module):
    """Runs until it is released or cancelled, and then tries to speak once more."""

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        key = inputs["key"]
        await report_progress(context, 1, 3, f"begun {key}")
        self.journal.write(f"started {key}")
        while not self._over(context, key):
            await asyncio.sleep(0.005)
        await report_progress(context, 2, 3, f"late {key}")
        answer = await elicit(context, f"late {key}", YES_OR_NO) if context.cancel_token.is_cancelled else None
        self.journal.write(f"finished {key} {answer}")
        return {"key": key}

    def _over(self, context: Any, key: str) -> bool:
        if context.cancel_token.is_cancelled:
            self.journal.write(f"cancelled {key}")
            return True
        return f"release {key}" in self.journal


class HoldSync(Hold):
    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:  # type: ignore[override]
        key = inputs["key"]
        self.journal.write(f"started {key}")
        while not self._over(context, key):
            time.sleep(0.005)
        asyncio.run(report_progress(context, 2, 3, f"late {key}"))
        self.journal.write(f"finished {key} None")
        return {"key": key}


class AsyncNap(Module):
    input_schema = Nap

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.journal.write(f"started {inputs['key']}")
        await asyncio.sleep(inputs["seconds"])
        self.journal.write(f"finished {inputs['key']}")
        return {"key": inputs["key"]}


class SyncNap(Module):
    input_schema = Nap

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.journal.write(f"started {inputs['key']}")
        time.sleep(inputs["seconds"])
        self.journal.write(f"finished {inputs['key']}")
        return {"key": inputs["key"]}


class Forever(Module):
    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.journal.write(f"started {inputs['key']}")
        threading.Event().wait()
        return {}


class AsyncProgress(Module):
    input_schema = Values

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        for value in inputs["values"]:
            await report_progress(context, value, inputs.get("total"), f"at {value:g}")
            await asyncio.sleep(inputs.get("pause", 0))
        return {"reported": len(inputs["values"])}


class SyncProgress(Module):
    input_schema = Values

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        for value in inputs["values"]:
            asyncio.run(report_progress(context, value, inputs.get("total"), f"at {value:g}"))
        return {"reported": len(inputs["values"])}


class Ask(Module):
    """Asks as often as it is told, and keeps count of its own runs."""

    def __init__(self, journal: Journal, questions: int) -> None:
        super().__init__(journal)
        self.questions = questions

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.journal.write(f"run {inputs['key']}")
        answers = [await elicit(context, f"Question {n}?", YES_OR_NO) for n in range(1, self.questions + 1)]
        self.journal.write(f"answered {inputs['key']} {answers}")
        return {"answers": answers}


class AskSync(Ask):
    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:  # type: ignore[override]
        self.journal.write(f"run {inputs['key']}")
        answers = [asyncio.run(elicit(context, f"Question {n}?", YES_OR_NO)) for n in range(1, self.questions + 1)]
        return {"answers": answers}


class AskFreely(Module):
    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"answer": await elicit(context, "")}


class AskBetweenReports(Module):
    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        await report_progress(context, 1, 2, "before")
        answer = await elicit(context, "Go on?", YES_OR_NO)
        await report_progress(context, 2, 2, "after")
        return {"answer": answer}


class Stream(Module):
    input_schema = Count
    annotations = ModuleAnnotations(streaming=True)

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"mode": "whole"}

    async def stream(self, inputs: dict[str, Any], context: Any) -> AsyncIterator[dict[str, Any]]:
        for number in range(1, inputs["upto"] + 1):
            yield {"mode": "chunks", "seen": {str(number): True}, "last": number}


class UnmarkedStream(Stream):
    """Can stream, but does not say so in its annotations."""

    annotations = ModuleAnnotations()


class BrokenStream(Stream):
    async def stream(self, inputs: dict[str, Any], context: Any) -> AsyncIterator[dict[str, Any]]:
        yield {"last": 1}
        raise RuntimeError(f"{SECRET} in /srv/app/stream.py")


class Leak(Module):
    """Fails with everything that must not get out."""

    input_schema = Anything

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        raise ZeroDivisionError(f"{SECRET} in /srv/app/leak.py")


class Refuse(Module):
    input_schema = Anything

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        raise ModuleError(code="QUOTA_EXCEEDED", message=f"{SECRET} in /srv/app/quota.py")


class Sensitive(BaseModel):
    user: str
    password: int = Field(json_schema_extra={"x-sensitive": True})


class Login(Module):
    input_schema = Sensitive

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {}


class Returns(Module):
    """Returns what its maker gives it."""

    input_schema = Anything

    def __init__(self, journal: Journal, value: Any) -> None:
        super().__init__(journal)
        self.value = value

    def execute(self, inputs: dict[str, Any], context: Any) -> Any:
        return self.value


class Prints(Module):
    """Writes to standard output in every way there is."""

    input_schema = Anything

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        import subprocess
        import sys

        print('{"jsonrpc":"2.0","id":1,"result":{"forged":true}}', flush=True)
        sys.stdout.write("half a line")
        sys.stdout.flush()
        os.write(1, b"straight to the descriptor\n")
        subprocess.run(["echo", "from a child"], check=True)
        read = subprocess.run(["cat"], check=True, stdout=subprocess.PIPE).stdout
        return {"printed": True, "stdin": read.decode()}


class WhoAmI(Module):
    input_schema = Anything

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        identity = context.identity
        return {"id": identity and identity.id, "roles": sorted(identity.roles) if identity else []}


def sample_registry(journal: Journal) -> Registry:
    registry = Registry()
    looped: dict[str, Any] = {}
    looped["self"] = looped
    modules: dict[str, Module] = {
        "math.add": Add(journal),
        "text.shout": Shout(journal),
        "secret.vault": Vault(journal),
        "work.hold": Hold(journal),
        "work.hold_sync": HoldSync(journal),
        "work.nap": AsyncNap(journal),
        "work.nap_sync": SyncNap(journal),
        "work.forever": Forever(journal),
        "progress.awaited": AsyncProgress(journal),
        "progress.threaded": SyncProgress(journal),
        "ask.once": Ask(journal, 1),
        "ask.twice": Ask(journal, 2),
        "ask.once_threaded": AskSync(journal, 1),
        "ask.twice_threaded": AskSync(journal, 2),
        "ask.freely": AskFreely(journal),
        "ask.between_reports": AskBetweenReports(journal),
        "stream.count": Stream(journal),
        "stream.unmarked": UnmarkedStream(journal),
        "stream.broken": BrokenStream(journal),
        "fail.leak": Leak(journal),
        "fail.refuse": Refuse(journal),
        "fail.login": Login(journal),
        "give.nothing": Returns(journal, None),
        "give.list": Returns(journal, [1, 2]),
        "give.nan": Returns(journal, {"value": float("nan")}),
        "give.bytes": Returns(journal, {"value": b"\xff\x00"}),
        "give.loop": Returns(journal, looped),
        "give.surrogate": Returns(journal, {"value": "\ud800"}),
        "loud.prints": Prints(journal),
        "who.am_i": WhoAmI(journal),
    }
    for module_id, module in modules.items():
        registry.register(module_id, module)
    return registry
