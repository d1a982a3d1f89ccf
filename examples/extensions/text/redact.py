"""`text.redact`: hide what should not travel further."""

import re
from typing import Any, Literal

from apcore import ModuleAnnotations, ModuleExample
from pydantic import BaseModel, Field

Kind = Literal["email", "phone", "card"]

PATTERNS: dict[Kind, str] = {
    "email": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "card": r"\b\d{4}(?:[ -]?\d{4}){3}\b",
    "phone": r"(?<!\w)\+?\d(?:[ ()/-]?\d){6,14}\b",
}


class RedactInput(BaseModel):
    text: str = Field(description="The text to clean")
    kinds: list[Kind] = Field(list(PATTERNS), description="What to hide", min_length=1)
    replacement: str = Field("▇▇▇", description="What to put in its place", max_length=20)


class RedactOutput(BaseModel):
    text: str = Field(description="The cleaned text")
    hidden: dict[str, int] = Field(description="How many of each kind were hidden")


class Redact:
    description = "Hide e-mail addresses, phone numbers and card numbers in a text."
    documentation = """
Made for a demonstration: it recognises common shapes, not every one.

- `email`: `someone@example.org`
- `card`: four groups of four digits
- `phone`: seven to fifteen digits, with spaces, hyphens, slashes or brackets between them
"""
    tags = ["text", "privacy"]
    annotations = ModuleAnnotations(readonly=True, idempotent=True, open_world=False)
    examples = [
        ModuleExample(
            title="An address",
            inputs={"text": "Write to someone@example.org.", "kinds": ["email"], "replacement": "***"},
            output={"text": "Write to ***.", "hidden": {"email": 1}},
        )
    ]
    input_schema = RedactInput
    output_schema = RedactOutput

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        given = RedactInput.model_validate(inputs)
        text, hidden = given.text, {}
        for kind, pattern in PATTERNS.items():  # cards before phones: a card number looks like a long phone number
            if kind in given.kinds:
                text, hidden[kind] = re.subn(pattern, lambda _: given.replacement, text)
        return {"text": text, "hidden": hidden}
