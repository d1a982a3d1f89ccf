"""What becomes of results on their way to an agent."""

from __future__ import annotations

from pydantic import Field

from toolgrove.config.section import Section


class LargeResults(Section):
    """How large a result may be."""

    max_tokens: int | None = Field(
        default=None,
        ge=100,
        description="The tokens (characters / 4) that the text of one result may have; what is larger is cut by its "
        "structure, and `read_result` reads on. Absent: results pass whole.",
    )


class ResultsConfig(LargeResults):
    """What is changed in results; whatever is, is marked in `_meta["toolgrove/changed"]`."""

    strip_control: bool = Field(
        default=False,
        description="Of foreign tools: whether control characters, text direction controls and invisible characters "
        "are taken out; line ends and tabs stay.",
    )
