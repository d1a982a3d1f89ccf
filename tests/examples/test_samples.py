"""What the sample modules do when a client calls them, in both protocol eras."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from apcore import CancelToken, ExecutionCancelledError, Registry

from apcore_mcp import MCP_PROGRESS_KEY
from examples.samples import Progress, User, connected, discovered, output
from mcp_text import text_of

pytestmark = pytest.mark.anyio

FAST_STORY = {"hero": "Bo", "plot": "found", "seconds_per_line": 0}
STORY = ["Bo finds a key.", "It fits no door.", "It fits a very small box.", "In the box: another key."]


@pytest.fixture
def registry() -> Registry:
    return discovered()


@pytest.fixture(params=["auto", "legacy"], ids=["2026", "handshake"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        ({"title": "  Ça va?  "}, "ca-va"),
        ({"title": "日本"}, ""),
        ({"title": "one two three", "max_length": 7}, "one-two"),
        ({"title": "one two three", "max_length": 6}, "one"),
        ({"title": "abcdefgh", "max_length": 3}, "abc"),
    ],
)
async def test_slugs_are_ascii_and_cut_at_a_hyphen(registry: Registry, arguments: Any, slug: str) -> None:
    async with connected(registry) as client:
        assert output(await client.call_tool("text.slugify", arguments)) == {"slug": slug}


async def test_every_kind_is_hidden_unless_told_otherwise(registry: Registry) -> None:
    given = "a@b.example, +49 30 1234567, 4111 1111 1111 1111 and 42"
    async with connected(registry) as client:
        everything = output(await client.call_tool("text.redact", {"text": given}))
        cards = output(await client.call_tool("text.redact", {"text": given, "kinds": ["card"]}))
    assert everything == {"text": "▇▇▇, ▇▇▇, ▇▇▇ and 42", "hidden": {"email": 1, "card": 1, "phone": 1}}
    assert cards == {"text": "a@b.example, +49 30 1234567, ▇▇▇ and 42", "hidden": {"card": 1}}


async def test_a_replacement_is_taken_literally(registry: Registry) -> None:
    async with connected(registry) as client:
        arguments = {"text": "a@b.example", "replacement": r"\g<0>"}
        assert output(await client.call_tool("text.redact", arguments))["text"] == r"\g<0>"


async def test_an_empty_text_counts_nothing(registry: Registry) -> None:
    async with connected(registry) as client:
        counted = output(await client.call_tool("text.count", {"text": ""}))
    assert counted == {"characters": 0, "words": 0, "lines": 0, "reading_seconds": 0, "top": []}


async def test_rendering_reports_every_frame(registry: Registry, era: str) -> None:
    progress = Progress()
    async with connected(registry, era) as client:
        arguments = {"frames": 3, "seconds_per_frame": 0, "shape": "triangle"}
        result = await client.call_tool("jobs.render", arguments, progress_callback=progress)
    assert len(output(result)["frames"]) == 3
    assert progress.seen == [(number, 3, f"frame {number} of 3") for number in (1, 2, 3)]


async def test_a_sync_module_reports_from_its_thread(registry: Registry, era: str) -> None:
    progress = Progress()
    async with connected(registry, era) as client:
        result = await client.call_tool("jobs.count_primes", {"below": 1000}, progress_callback=progress)
    assert output(result) == {"count": 168, "largest": 997}
    assert [(step, total) for step, total, _ in progress.seen] == [(step, 10) for step in range(1, 11)]


@pytest.mark.parametrize("below", [10, 11, 12, 50, 121, 122, 5000])
async def test_primes_are_counted_right(registry: Registry, below: int) -> None:
    primes = [n for n in range(2, below) if all(n % divisor for divisor in range(2, n))]
    async with connected(registry) as client:
        counted = output(await client.call_tool("jobs.count_primes", {"below": below}))
    assert counted == {"count": len(primes), "largest": primes[-1]}


async def test_rendering_stops_at_the_next_frame_once_it_is_cancelled(registry: Registry) -> None:
    token, frames = CancelToken(), []

    async def cancel_after_two(progress: float, total: float | None, message: str | None) -> None:
        frames.append(progress)
        if progress == 2:
            token.cancel()

    context = SimpleNamespace(cancel_token=token, data={MCP_PROGRESS_KEY: cancel_after_two})
    with pytest.raises(ExecutionCancelledError):
        await registry.get("jobs.render").execute({"seconds_per_frame": 0}, context)
    assert frames == [1, 2]


def test_counting_primes_stops_at_the_next_step_once_it_is_cancelled(registry: Registry) -> None:
    token, steps = CancelToken(), []

    async def cancel(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)
        token.cancel()

    context = SimpleNamespace(cancel_token=token, data={MCP_PROGRESS_KEY: cancel})
    with pytest.raises(ExecutionCancelledError):
        registry.get("jobs.count_primes").execute({"below": 100}, context)
    assert steps == [1]


async def test_a_story_arrives_line_by_line_for_a_client_that_wants_progress(registry: Registry, era: str) -> None:
    progress = Progress()
    token: Any = {"progressToken": "a-token"} if era == "auto" else None  # without a wire the newer client sends none
    async with connected(registry, era) as client:
        result = await client.call_tool("stories.tell", FAST_STORY, progress_callback=progress, meta=token)
    chunks = [json.loads(message or "") for _, _, message in progress.seen]
    assert chunks == [{"lines": {str(n): line}, "done": False} for n, line in enumerate(STORY, 1)] + [{"done": True}]
    assert [number for number, _, _ in progress.seen] == [1, 2, 3, 4, 5]
    assert output(result) == {"lines": {str(n): line for n, line in enumerate(STORY, 1)}, "done": True}


async def test_a_story_is_told_at_once_to_a_client_that_does_not(registry: Registry, era: str) -> None:
    async with connected(registry, era) as client:
        told = output(await client.call_tool("stories.tell", FAST_STORY))
    assert told == {"lines": {str(n): line for n, line in enumerate(STORY, 1)}, "done": True}


async def test_a_trip_follows_what_the_user_answers(registry: Registry, era: str) -> None:
    user = User("accept", pace="fast", early=True)
    async with connected(registry, era, elicitation_callback=user) as client:
        plan = output(await client.call_tool("trips.plan", {"city": "Kyoto", "days": 1}))
    assert plan == {
        "city": "Kyoto",
        "asked": True,
        "days": [{"day": 1, "start": "06:30", "sights": ["Fushimi Inari", "Nishiki Market", "Kinkaku-ji"]}],
    }
    (question,) = user.asked
    assert question.message == "How do you like to travel in Kyoto?"
    assert question.requested_schema["properties"]["pace"]["enum"] == ["slow", "steady", "fast"]


@pytest.mark.parametrize("client", [{"elicitation_callback": User("decline")}, {}], ids=["declines", "cannot be asked"])
async def test_a_trip_is_steady_if_the_user(registry: Registry, era: str, client: dict[str, Any]) -> None:
    async with connected(registry, era, **client) as connection:
        plan = output(await connection.call_tool("trips.plan", {"days": 6}))
    assert plan["asked"] is False
    assert [len(day["sights"]) for day in plan["days"]] == [2, 2, 2, 0, 0, 0]


async def test_the_trash_is_emptied_by_age_and_only_once(registry: Registry) -> None:
    async with connected(registry) as client:
        old = output(await client.call_tool("files.empty_trash", {"older_than_days": 100}))
        rest = output(await client.call_tool("files.empty_trash", {}))
        nothing = output(await client.call_tool("files.empty_trash", {}))
    assert old["removed"] == ["holiday-final.mp4", "holiday-final-2.mp4"]
    assert old["kept"] == rest["removed"] == ["thesis-old.docx", "screenshot 17.png"]
    assert old["freed_bytes"] == 734_003_200 + 734_003_712
    assert nothing == {"removed": [], "kept": [], "freed_bytes": 0}


async def test_an_order_has_a_form_with_everything_in_it(registry: Registry) -> None:
    async with connected(registry) as client:
        schema = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}["orders.quote"]
    item = schema["properties"]["items"]["items"]["properties"]
    courier, pickup = schema["properties"]["delivery"]["oneOf"]
    assert item["product"]["enum"] == ["tea", "mug", "teapot"]
    assert item["quantity"]["default"] == 1
    assert {each["type"] for each in item["engraving"]["anyOf"]} == {"string", "null"}
    assert courier["properties"]["address"]["properties"]["country"]["default"] == "DE"
    assert (courier["properties"]["method"]["const"], pickup["properties"]["method"]["const"]) == ("courier", "pickup")
    assert schema["required"] == ["items", "delivery"]


PICKUP = {"delivery": {"method": "pickup"}}


async def test_wrapping_and_a_coupon_change_the_price(registry: Registry) -> None:
    arguments = {"items": [{"product": "tea", "quantity": 10}], "gift": True, "coupon": "FRIENDS", **PICKUP}
    async with connected(registry) as client:
        quote = output(await client.call_tool("orders.quote", arguments))
    assert (quote["discount_cents"], quote["total_cents"]) == (950, 3800)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"items": [{"product": "tea"}], "coupon": "NOPE", **PICKUP}, "Invalid input: there is no coupon 'NOPE'"),
        (PICKUP, "- items: Field required"),
        ({"items": [], **PICKUP}, "- items: "),
        ({"items": [{"product": "tea", "quantity": 0}], **PICKUP}, "- items.0.quantity: "),
    ],
    ids=["coupon", "missing", "empty", "quantity"],
)
async def test_a_bad_order_is_told_what_is_wrong(registry: Registry, arguments: Any, problem: str) -> None:
    async with connected(registry) as client:
        result = await client.call_tool("orders.quote", arguments)
    assert result.is_error
    assert problem in text_of(result)


async def test_planets_are_rows_of_a_table(registry: Registry) -> None:
    async with connected(registry) as client:
        rows = output(await client.call_tool("planets.find", {}))["planets"]
        small = output(await client.call_tool("planets.find", {"kind": "rocky", "sort_by": "radius_km"}))["planets"]
    assert [row["name"] for row in rows][:3] == ["Mercury", "Venus", "Earth"]
    assert len({tuple(row) for row in rows}) == 1
    assert not any(isinstance(value, dict | list) for row in rows for value in row.values())
    assert [row["name"] for row in small] == ["Mercury", "Mars", "Venus", "Earth"]
