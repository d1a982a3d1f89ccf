"""`orders.quote`: a rich nested schema, to see what a form can show."""

from typing import Annotated, Any, Literal

from apcore import ModuleAnnotations, ModuleExample
from apcore.errors import InvalidInputError
from pydantic import BaseModel, Field

PRICES = {"tea": 450, "mug": 1290, "teapot": 3900}
DISCOUNTS = {"SPRING": 10, "FRIENDS": 20}
COURIER = {"standard": 490, "express": 1490}


class Item(BaseModel):
    product: Literal["tea", "mug", "teapot"] = Field(description="What to order")
    quantity: int = Field(1, description="How many", ge=1, le=99)
    engraving: str | None = Field(None, description="A short text on it, or nothing", max_length=24)


class Address(BaseModel):
    street: str = Field(min_length=1)
    city: str = Field(min_length=1)
    postcode: str = Field(pattern=r"^[A-Z0-9][A-Z0-9 -]{2,9}$", description="Capital letters, digits, spaces, hyphens")
    country: Literal["DE", "FR", "NL", "PT"] = Field("DE", description="Where we deliver")


class Courier(BaseModel):
    """Delivered to the door."""

    method: Literal["courier"]
    speed: Literal["standard", "express"] = Field("standard", description="Express arrives the next day")
    address: Address


class Pickup(BaseModel):
    """Collected in the shop."""

    method: Literal["pickup"]
    shop: Literal["harbour", "old town"] = Field("harbour", description="Where to collect it")


class QuoteInput(BaseModel):
    items: list[Item] = Field(description="What to order", min_length=1, max_length=10)
    delivery: Annotated[Courier | Pickup, Field(discriminator="method")] = Field(description="How it gets to you")
    coupon: str | None = Field(None, description="A code such as SPRING, or nothing")
    gift: bool = Field(False, description="Wrap it")


class Line(BaseModel):
    product: str
    quantity: int
    unit_cents: int
    cents: int


class QuoteOutput(BaseModel):
    lines: list[Line]
    delivery_cents: int
    discount_cents: int
    total_cents: int


class Quote:
    description = "Work out the price of an order from the tea shop. Nothing is bought."
    documentation = """
All amounts are in cents. Engraving costs 5.00 for each piece, wrapping 2.50 for each order.
Collecting in the shop is free. A coupon applies to the goods, not to the delivery.

Try a postcode in lower case, or a coupon that does not exist, to see the messages.
"""
    tags = ["orders", "pure"]
    annotations = ModuleAnnotations(readonly=True, idempotent=True, open_world=False)
    examples = [
        ModuleExample(
            title="One teapot, collected",
            inputs={"items": [{"product": "teapot"}], "delivery": {"method": "pickup"}},
            output={
                "lines": [{"product": "teapot", "quantity": 1, "unit_cents": 3900, "cents": 3900}],
                "delivery_cents": 0,
                "discount_cents": 0,
                "total_cents": 3900,
            },
        ),
        ModuleExample(
            title="Two engraved mugs by express",
            inputs={
                "items": [{"product": "mug", "quantity": 2, "engraving": "Ada"}],
                "delivery": {
                    "method": "courier",
                    "speed": "express",
                    "address": {"street": "Long Lane 1", "city": "Porto", "postcode": "4000-001", "country": "PT"},
                },
                "coupon": "SPRING",
            },
            output={
                "lines": [{"product": "mug", "quantity": 2, "unit_cents": 1790, "cents": 3580}],
                "delivery_cents": 1490,
                "discount_cents": 358,
                "total_cents": 4712,
            },
        ),
    ]
    input_schema = QuoteInput
    output_schema = QuoteOutput

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        order = QuoteInput.model_validate(inputs)
        if order.coupon and order.coupon not in DISCOUNTS:
            raise InvalidInputError(message=f"there is no coupon {order.coupon!r}; known are {', '.join(DISCOUNTS)}")
        lines = []
        for item in order.items:
            unit = PRICES[item.product] + (500 if item.engraving else 0)
            lines.append(
                Line(product=item.product, quantity=item.quantity, unit_cents=unit, cents=unit * item.quantity)
            )
        goods = sum(line.cents for line in lines) + (250 if order.gift else 0)
        delivery = COURIER[order.delivery.speed] if isinstance(order.delivery, Courier) else 0
        discount = goods * DISCOUNTS.get(order.coupon or "", 0) // 100
        quote = QuoteOutput(
            lines=lines, delivery_cents=delivery, discount_cents=discount, total_cents=goods - discount + delivery
        )
        return quote.model_dump()
