"""The switch that sends every request through the SDK."""

import json

import pytest
from starlette.types import Message, Receive, Scope, Send

from lane.twins import MODERN, head_of, request, with_length
from mcp_serve.calls import User
from mcp_serve.eager import Work
from mcp_serve.lane import Lane
from mcp_serve.plain import Plain
from mcp_serve.switch import SWITCH

pytestmark = pytest.mark.anyio
BODY = json.dumps(request(MODERN, "tools/list", {})).encode()


class Line:
    """Answers everything."""

    def answer(self, request: Plain, user: User | None) -> Work[bytes] | None:
        async def answered() -> bytes:
            return b"by the lane"

        return answered


async def behind(scope: Scope, receive: Receive, send: Send) -> None:
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"behind it: " + message["body"]})


async def answer(body: bytes = BODY) -> bytes:
    said: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        said.append(message.get("body", b""))

    headers = with_length(head_of(MODERN, "tools/list"), body)
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    await Lane(behind, lambda scope: Line())(scope, receive, send)
    return b"".join(said)


async def test_plain_requests_take_the_lane_and_others_pass_it_untouched() -> None:
    assert await answer() == b"by the lane"
    assert await answer(b"[" + BODY + b"]") == b"behind it: [" + BODY + b"]"


@pytest.mark.parametrize("word", ["off", "OFF", "0", "false", "no"])
async def test_the_lane_can_be_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, word)
    assert await answer() == b"behind it: " + BODY
