"""`jobs.render`: a slow job that says how far it is and stops when told to."""

import asyncio
import math
from collections.abc import Callable
from typing import Any, Literal

from apcore import ModuleAnnotations
from pydantic import BaseModel, Field

from apcore_mcp import report_progress

SHAPES: dict[str, Callable[[float], float]] = {
    "sine": math.sin,
    "triangle": lambda x: 2 / math.pi * math.asin(math.sin(x)),
}


class RenderInput(BaseModel):
    frames: int = Field(20, description="How many frames to draw", ge=1, le=200)
    seconds_per_frame: float = Field(0.15, description="How long to pretend each frame takes", ge=0, le=2)
    shape: Literal["sine", "triangle"] = Field("sine", description="The wave to draw")


class RenderOutput(BaseModel):
    frames: list[str] = Field(description="One line of text per frame")


class Render:
    description = "Draw a wave frame by frame. Slow on purpose; reports progress and can be cancelled."
    documentation = """
Watch the progress bar, or press **Cancel** while it runs.
The module looks at its `CancelToken` before every frame, so it stops within one frame.
"""
    tags = ["jobs", "slow"]
    annotations = ModuleAnnotations(readonly=True, idempotent=True, open_world=False)
    resources = {"timeout": 50_000}
    input_schema = RenderInput
    output_schema = RenderOutput

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        given = RenderInput.model_validate(inputs)
        frames = []
        for number in range(1, given.frames + 1):
            context.cancel_token.check()
            await asyncio.sleep(given.seconds_per_frame)
            frames.append(_frame(number, given.shape))
            await report_progress(context, number, given.frames, f"frame {number} of {given.frames}")
        return {"frames": frames}


def _frame(number: int, shape: str) -> str:
    return " " * round(16 + 15 * SHAPES[shape](number / 3)) + "●"
