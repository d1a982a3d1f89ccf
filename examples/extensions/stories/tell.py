"""`stories.tell`: a story that arrives line by line."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

from apcore import ModuleAnnotations
from pydantic import BaseModel, Field

PLOTS = {
    "lost": ["{hero} loses the way.", "The trees all look alike.", "A fox knows a path.", "{hero} is home for supper."],
    "found": ["{hero} finds a key.", "It fits no door.", "It fits a very small box.", "In the box: another key."],
    "storm": ["The sky turns green.", "{hero} ties down the boat.", "The roof goes anyway.", "The boat stays."],
}


class TellInput(BaseModel):
    hero: str = Field("Ada", description="Who the story is about", min_length=1, max_length=40)
    plot: Literal["lost", "found", "storm"] = Field("lost", description="What happens")
    seconds_per_line: float = Field(0.4, description="Pause before each line", ge=0, le=3)


class TellOutput(BaseModel):
    lines: dict[str, str] = Field(description="The lines by their number")
    done: bool = Field(description="Whether the story is complete")


class Tell:
    description = "Tell a very short story, line by line."
    documentation = """
A streaming module. A client that asks for progress sees each line as it is told:
every chunk is one progress message. The result is all chunks merged.
A client that does not ask for progress gets the whole story at once.
"""
    tags = ["stories", "streaming"]
    annotations = ModuleAnnotations(readonly=True, streaming=True, open_world=False)
    input_schema = TellInput
    output_schema = TellOutput

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"lines": dict(enumerate_lines(TellInput.model_validate(inputs))), "done": True}

    async def stream(self, inputs: dict[str, Any], context: Any) -> AsyncIterator[dict[str, Any]]:
        given = TellInput.model_validate(inputs)
        for number, line in enumerate_lines(given):
            await asyncio.sleep(given.seconds_per_line)
            yield {"lines": {number: line}, "done": False}
        yield {"done": True}


def enumerate_lines(given: TellInput) -> list[tuple[str, str]]:
    return [(str(number), line.format(hero=given.hero)) for number, line in enumerate(PLOTS[given.plot], 1)]
