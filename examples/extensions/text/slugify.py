"""`text.slugify`: a title as the last part of an address."""

import re
import unicodedata
from typing import Any

from apcore import ModuleAnnotations, ModuleExample
from pydantic import BaseModel, Field


class SlugifyInput(BaseModel):
    title: str = Field(description="The title to shorten", min_length=1, examples=["Crème brûlée, step by step"])
    max_length: int = Field(60, description="Longest slug allowed", ge=1, le=200)


class SlugifyOutput(BaseModel):
    slug: str = Field(description="Lower-case ASCII letters, digits and single hyphens")


class Slugify:
    description = "Turn a title into a slug for an address: lower case, ASCII, hyphens."
    documentation = """
Accents are dropped, everything that is not a letter or a digit becomes one hyphen,
and a slug that is too long is cut at a hyphen where there is one.

| title | slug |
|---|---|
| `Hello, World!` | `hello-world` |
| `Crème brûlée` | `creme-brulee` |
"""
    tags = ["text", "pure"]
    annotations = ModuleAnnotations(readonly=True, idempotent=True, open_world=False)
    examples = [
        ModuleExample(title="A greeting", inputs={"title": "Hello, World!"}, output={"slug": "hello-world"}),
        ModuleExample(
            title="Accents and a limit",
            inputs={"title": "Crème brûlée, step by step", "max_length": 14},
            output={"slug": "creme-brulee"},
        ),
    ]
    input_schema = SlugifyInput
    output_schema = SlugifyOutput

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        given = SlugifyInput.model_validate(inputs)
        plain = unicodedata.normalize("NFKD", given.title).encode("ascii", "ignore").decode().lower()
        slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
        if len(slug) > given.max_length:
            cut = slug[: given.max_length + 1]
            slug = cut.rpartition("-")[0] or cut[:-1]
        return {"slug": slug}
