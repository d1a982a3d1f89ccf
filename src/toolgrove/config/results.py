"""What becomes of the results of foreign tools on their way to an agent."""

from __future__ import annotations

from pydantic import Field

from toolgrove.config.section import Section


class ResultsConfig(Section):
    """What is changed in the results of foreign tools; whatever is, is marked in `_meta["toolgrove/changed"]`."""

    strip_control: bool = Field(
        default=False,
        description="Whether control characters, text direction controls and invisible characters are taken out; "
        "line ends and tabs stay.",
    )
