"""The modules that the Explorer shows in these tests: ordinary, slow, curious, dangerous and hostile ones."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, ClassVar, Literal

from apcore import ModuleAnnotations, ModuleExample, Registry
from pydantic import BaseModel, Field, field_validator

from apcore_mcp import elicit, report_progress
from e2e.modules import Journal

EVIL = '<img src=x onerror="window.__pwned=1"></script><script>window.__pwned=1</script>'
HUGE = 123456789012345678901234567890
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Anything(BaseModel):
    pass


class Module:
    """What every module here starts from."""

    description = "A module of the tests"
    input_schema: ClassVar[Any] = Anything
    output_schema: ClassVar[Any] = Anything

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    async def told(self, line: str, context: Any) -> None:
        """Wait until the test wrote the line to the journal."""
        while line not in self.journal:
            context.cancel_token.check()
            await asyncio.sleep(0.005)


class Customer(BaseModel):
    name: str = Field(min_length=1)
    vip: bool = False


class Item(BaseModel):
    sku: str = Field(pattern=r"^[A-Z]{3}-\d+$")
    quantity: int = Field(1, ge=1)


class Card(BaseModel):
    method: Literal["card"]
    number: str


class Invoice(BaseModel):
    method: Literal["invoice"]
    days: int = 30


class Order(BaseModel):
    customer: Customer
    items: list[Item] = Field(min_length=1, description="What to send.")
    payment: Annotated[Card | Invoice, Field(discriminator="method")]
    priority: Literal["low", "normal", "high"] = "normal"
    discount: float | None = None
    labels: dict[str, str] = Field(default_factory=dict)


class CreateOrder(Module):
    description = "Create an order with items and a way to pay."
    documentation = "# Orders\n\nThe **payment** is one of two forms; see [the rules](https://example.org/rules)."
    tags: ClassVar = ["orders", "write"]
    annotations = ModuleAnnotations(open_world=False)
    input_schema = Order
    examples: ClassVar = [
        ModuleExample(
            title="One item on account",
            inputs={
                "customer": {"name": "Ada"},
                "items": [{"sku": "ABC-1", "quantity": 2}],
                "payment": {"method": "invoice"},
            },
            output={"id": "ord_1"},
        )
    ]

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.journal.write("order created")
        return {"id": "ord_1", "received": inputs}


class Quotient(BaseModel):
    dividend: float
    divisor: float

    @field_validator("divisor")
    @classmethod
    def not_thirteen(cls, value: float) -> float:
        if value == 13:
            raise ValueError("thirteen is not lucky")
        return value


class Divide(Module):
    description = "Divide one number by another"
    tags: ClassVar = ["math"]
    annotations = ModuleAnnotations(readonly=True, idempotent=True)
    input_schema = Quotient

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"quotient": inputs["dividend"] / inputs["divisor"]}


class Report(Module):
    """Says how far it is, and goes on only when the test lets it."""

    description = "Build a report, slowly"
    tags: ClassVar = ["reports"]

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        for chapter in (1, 2):
            await report_progress(context, chapter, 4, f"Chapter {chapter} written")
            await self.told(f"go on {chapter}", context)
        return {"pages": 24}


class Story(Module):
    """Streams, and goes on only when the test lets it."""

    description = "Tell a story line by line"
    annotations = ModuleAnnotations(streaming=True)

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"whole": True}

    async def stream(self, inputs: dict[str, Any], context: Any) -> AsyncIterator[dict[str, Any]]:
        for line in ("Once", "upon"):
            yield {"last": line, "lines": {line: True}}
            await self.told(f"after {line}", context)


class Wait(Module):
    """Runs until its token says to stop."""

    description = "Wait for ever"

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.journal.write("waiting")
        while not context.cancel_token.is_cancelled:
            await asyncio.sleep(0.005)
        self.journal.write("cancelled")
        return {}


class Trip(BaseModel):
    to: str


class Book(Module):
    description = "Book a trip; asks back"
    tags: ClassVar = ["travel"]
    input_schema = Trip

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.journal.write("booking")
        seat = {"type": "string", "enum": ["first", "second"], "description": "Class of travel"}
        schema = {"type": "object", "properties": {"seat": seat}, "required": ["seat"]}
        answer = await elicit(context, f"Which class to {inputs['to']}?", schema)
        if answer is None:
            return {"booked": False}
        sure = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
        confirmed = await elicit(context, "Really?", sure)
        return {"booked": True, "seat": answer["seat"], "confirmed": confirmed}


class Wipe(Module):
    description = "Delete everything. There is no way back."
    tags: ClassVar = ["danger"]
    annotations = ModuleAnnotations(destructive=True, requires_approval=True)

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.journal.write("wiped")
        return {"wiped": True}


class Table(Module):
    description = "Return rows"
    annotations = ModuleAnnotations(readonly=True)

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"rows": [{"name": f"row {number}", "square": number * number} for number in range(3)]}


def _hostile_schema() -> dict[str, Any]:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(60):
        deep = {"type": "object", "properties": {"next": deep}}
    properties: dict[str, Any] = {
        EVIL: {"type": "string", "default": EVIL, "description": EVIL, "title": EVIL},
        "__proto__": {"type": "string", "default": "polluted"},
        "constructor": {"type": "string", "default": "c"},
        "choice": {"enum": [EVIL, "javascript:alert(1)", HUGE], "default": EVIL},
        "slow": {"type": "string", "pattern": "^(a+)+$"},
        "broken": {"type": "string", "pattern": "(["},
        "number": {"type": "integer", "default": HUGE},
        "deep": deep,
    }
    return {"type": "object", "properties": properties}


class Hostile(Module):
    description = f"{EVIL} javascript:alert(1)"
    documentation = (
        f"# {EVIL}\n\n[click](javascript:window.__pwned=1) [data](data:text/html,<script>1</script>) "
        '![x](javascript:1)\n\n<a href="javascript:window.__pwned=1">a</a>\n\n[ok](https://example.org/)'
    )
    tags: ClassVar = [EVIL, "hostile"]
    input_schema = _hostile_schema()
    output_schema: ClassVar[Any] = {}
    examples: ClassVar = [ModuleExample(title=EVIL, description=EVIL, inputs={EVIL: EVIL}, output={EVIL: EVIL})]

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.journal.write(f"hostile {sorted(inputs)[:1]}")
        bottom: dict[str, Any] = {"bottom": True}
        for _ in range(200):
            bottom = {"next": bottom}
        return {
            EVIL: EVIL,
            "__proto__": {"polluted": True},
            "huge": HUGE,
            "link": "javascript:alert(1)",
            "props": {"dangerouslySetInnerHTML": {"__html": EVIL}},
            "images": [
                {"type": "image", "mimeType": 'image/png" onerror="window.__pwned=1', "data": "AAAA"},
                {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zy8+"},
                {"type": "image", "mimeType": "text/html", "data": "AAAA"},
                {"type": "image", "mimeType": "image/png", "data": "not base64"},
            ],
            "picture": {"type": "image", "mimeType": "image/png", "data": PICTURE},
            "deep": bottom,
        }


class HostileQuestion(Module):
    description = "Ask something nasty"

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        await report_progress(context, 1, None, EVIL)
        field = {"type": "string", "title": EVIL, "description": EVIL, "default": EVIL}
        return {"answer": await elicit(context, EVIL, {"type": "object", "properties": {"word": field}})}


class HostileFailure(Module):
    """Fails with markup in the one message that reaches the client."""

    class Input(BaseModel):
        word: str

        @field_validator("word")
        @classmethod
        def never(cls, value: str) -> str:
            raise ValueError(EVIL)

    description = "Fail with markup"
    input_schema = Input

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {}


def sample_registry(journal: Journal) -> Registry:
    registry = Registry()
    modules: dict[str, Module] = {
        "orders.create": CreateOrder(journal),
        "math.divide": Divide(journal),
        "reports.build": Report(journal),
        "stories.tell": Story(journal),
        "work.wait": Wait(journal),
        "travel.book": Book(journal),
        "files.wipe": Wipe(journal),
        "data.table": Table(journal),
        "hostile.markup": Hostile(journal),
        "hostile.question": HostileQuestion(journal),
        "hostile.failure": HostileFailure(journal),
    }
    for module_id, module in modules.items():
        registry.register(module_id, module)
    return registry
