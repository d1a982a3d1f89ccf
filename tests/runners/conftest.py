"""Every runner that we ship, driven by a brain of the test's own."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from runners import adk_model, endpoint
from runners.brain import Brain
from toolgrove.runners import Runner
from toolgrove.runners.adk import AdkRunner
from toolgrove.runners.openai import OpenAIRunner

Driven = Callable[..., AbstractAsyncContextManager[Runner]]


@pytest.fixture(params=["openai", "adk"])
def driven(request: pytest.FixtureRequest) -> Driven:
    """A runner whose model thinks with the given brain; options are the runner's."""

    @asynccontextmanager
    async def runner(brain: Brain, **options: Any) -> AsyncIterator[Runner]:
        if request.param == "adk":
            yield AdkRunner(adk_model.thinking(brain), **options)
        else:
            async with endpoint.serving(endpoint.thinking(brain)) as served:
                yield OpenAIRunner(url=served.url, model="scripted", **options)

    return runner
