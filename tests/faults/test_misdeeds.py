"""What servers do against the protocol and are forgiven: counted in `/metrics`, and logged once."""

from __future__ import annotations

import logging

import httpx2
import pytest

from faults.kit import answers, fake, granted, running, text_of
from toolgrove import Grove

pytestmark = pytest.mark.anyio


async def counted(grove: Grove) -> dict[str, float]:
    """How often each kind of misdeed of server `bad` is counted."""
    app = grove.asgi_app(anonymous=True)
    transport = httpx2.ASGITransport(app=app)
    async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=transport) as http:
        text = (await http.get("http://127.0.0.1/metrics")).text
    begin = 'toolgrove_upstream_misdeeds_total{kind="'
    lines = [
        line.removeprefix(begin) for line in text.splitlines() if line.startswith(begin) and 'server="bad"' in line
    ]
    return {line.partition('"')[0]: float(line.rpartition(" ")[2]) for line in lines}


async def test_wrong_ids_double_answers_and_stray_lines_are_counted_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running({"bad": fake("json_noise_start"), "well": fake()}) as grove:
        agent = await granted(grove, "bad_echo")
        for _ in range(2):
            for tool in ("wrong_id", "duplicate", "noise"):
                text_of(await agent.call(f"bad_{tool}"))
        await answers(agent, "bad")
        assert await counted(grove) == {"wrong_id": 12, "repeated_answer": 2, "stray_line": 41, "unreadable": 1}
    told = [record.getMessage() for record in caplog.records if "is only counted" in record.getMessage()]
    assert len(told) == 4
    assert all(message.startswith("server bad ") for message in told)


async def test_an_answer_that_comes_after_we_gave_up_is_no_misdeed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with running({"bad": fake(timeout=1.0)}) as grove:
        agent = await granted(grove, "bad_echo")
        assert (await agent.call("bad_hang"))["error"]["reason"] == "timeout"
        await answers(agent, "bad")  # what was said before, the late answer among it, is heard by now
        assert await counted(grove) == {}
