"""`jobs.count_primes`: an ordinary sync function that reports progress from its thread."""

import asyncio
from typing import Any

from apcore import ModuleAnnotations, ModuleExample
from pydantic import BaseModel, Field

from apcore_mcp import report_progress

STEPS = 10


class CountPrimesInput(BaseModel):
    below: int = Field(1_000_000, description="Count the primes below this number", ge=10, le=5_000_000)


class CountPrimesOutput(BaseModel):
    count: int
    largest: int = Field(description="The largest prime found")


class CountPrimes:
    description = "Count the prime numbers below a limit, with progress."
    documentation = """
A sieve, written as an ordinary function. apcore runs it in a thread, so the server stays responsive,
and `asyncio.run(report_progress(…))` reaches the client from there.
"""
    tags = ["jobs", "slow", "pure"]
    annotations = ModuleAnnotations(readonly=True, idempotent=True, open_world=False)
    examples = [ModuleExample(title="Below a hundred", inputs={"below": 100}, output={"count": 25, "largest": 97})]
    input_schema = CountPrimesInput
    output_schema = CountPrimesOutput

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        below = CountPrimesInput.model_validate(inputs).below
        prime = bytearray([0, 0]) + bytearray([1]) * (below - 2)
        root = int(below**0.5) + 1
        for step in range(STEPS):
            context.cancel_token.check()
            for number in range(max(2, root * step // STEPS), root * (step + 1) // STEPS + 1):
                if prime[number]:
                    prime[number * number :: number] = bytes(len(range(number * number, below, number)))
            asyncio.run(report_progress(context, step + 1, STEPS, f"sieved by {root * (step + 1) // STEPS}"))
        return {"count": sum(prime), "largest": prime.rfind(1)}
