"""How long the answers of the built-in tools may be."""

from __future__ import annotations

from pydantic import Field

from toolgrove.config.section import Section
from toolgrove.types import ANSWER_TOKENS


class AnswersConfig(Section):
    """The budget of an answer of a built-in tool; a call's own `maxTokens` wins."""

    max_tokens: int = Field(
        default=ANSWER_TOKENS,
        ge=200,
        description="About how many tokens (characters / 4) one answer has at most; the rest is cut and counted.",
    )
