"""One gateway per module for the tests that leave it as they found it."""

from collections.abc import Iterator

import pytest

from web.gateway import Gateway, serving


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(tmp_path_factory.mktemp("project")) as served:
        yield served
