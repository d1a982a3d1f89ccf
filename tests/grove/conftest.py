import pytest
from hypothesis import Phase, settings

# For runs that only ask whether a test fails: finding the smallest example takes minutes.
settings.register_profile("no-shrink", phases=[Phase.explicit, Phase.generate])


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
