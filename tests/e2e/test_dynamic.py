"""Modules that come and go while clients are connected."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from apcore import Registry
from mcp import Client
from mcp.client.sse import sse_client

from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from e2e.modules import Add, Journal
from e2e.servers import Address, cli_command, http_child, serving
from e2e.wire import ERAS, MODERN, modern_body, modern_headers
from mcp_text import text_of
from ports import free_port
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def served(registry: Registry) -> Iterator[Address]:
    with serving(registry) as address:
        yield address


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]


class Watcher:
    """A client that counts how often it was told that the tools changed."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.told = 0


@asynccontextmanager
async def watching(server: Any, era: str) -> AsyncIterator[Watcher]:
    """A connected client of either era that listens for changes."""
    watcher: Watcher

    async def on_message(message: Any) -> None:
        if era == "legacy" and isinstance(message, types.ToolListChangedNotification):
            watcher.told += 1

    async with Client(server, mode=era, message_handler=on_message) as client:
        watcher = Watcher(client)
        if era == "legacy":
            yield watcher
            return
        async with client.listen(tools_list_changed=True) as subscription, anyio.create_task_group() as group:

            async def count() -> None:
                async for _ in subscription:
                    watcher.told += 1

            group.start_soon(count)
            yield watcher
            group.cancel_scope.cancel()


def in_a_thread(function: Any, *args: Any) -> None:
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join(DEADLINE)
    assert not thread.is_alive()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-DYNAMIC-001", "FR-DYNAMIC-002", "FR-DYNAMIC-003")
async def test_a_module_registered_from_another_thread_appears_and_disappears(
    registry: Registry, served: Address, journal: Journal, era: str
) -> None:
    async with watching(served.mcp, era) as watcher:
        assert await names(watcher.client) == []
        in_a_thread(registry.register, "new.tool", Add(journal))
        await eventually(lambda: watcher.told == 1)
        assert await names(watcher.client) == ["new.tool"]
        result = await watcher.client.call_tool("new.tool", {"a": 1, "b": 2})
        assert result.structured_content == {"sum": 3}
        in_a_thread(registry.unregister, "new.tool")
        await eventually(lambda: watcher.told == 2)
        assert await names(watcher.client) == []
        gone = await watcher.client.call_tool("new.tool", {"a": 1, "b": 2})
        assert gone.is_error
        assert text_of(gone) == "Module not found: new.tool"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-DYNAMIC-003")
async def test_an_in_memory_client_is_told_as_well(registry: Registry, journal: Journal, era: str) -> None:
    bridge = Bridge(registry, Options())
    async with bridge.running(), watching(bridge.endpoint.server, era) as watcher:
        await names(watcher.client)
        in_a_thread(registry.register, "new.tool", Add(journal))
        await eventually(lambda: watcher.told == 1)
        assert await names(watcher.client) == ["new.tool"]


@pytest.mark.requirement("FR-DYNAMIC-003", "NFR-PERF-004")
async def test_every_live_client_of_either_era_is_told(registry: Registry, served: Address, journal: Journal) -> None:
    async with AsyncExitStack() as stack:
        watchers = [await stack.enter_async_context(watching(served.mcp, era)) for era in ERAS for _ in range(5)]
        for watcher in watchers:
            await names(watcher.client)  # a session that has answered has its stream open, or opens it now
        in_a_thread(registry.register, "new.tool", Add(journal))
        for watcher in watchers:
            await eventually(lambda watcher=watcher: watcher.told == 1)  # type: ignore[misc]
            assert await names(watcher.client) == ["new.tool"]


@pytest.mark.requirement("FR-DYNAMIC-003", "FR-SERVER-003")
async def test_an_old_sse_client_is_told_as_well(registry: Registry, journal: Journal) -> None:
    with serving(registry, transport="sse") as address:
        async with watching(sse_client(address / "sse"), "legacy") as watcher:
            assert await names(watcher.client) == []
            in_a_thread(registry.register, "new.tool", Add(journal))
            await eventually(lambda: watcher.told == 1)
            assert await names(watcher.client) == ["new.tool"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-DYNAMIC-003")
async def test_clients_are_promised_that_they_will_be_told(served: Address, era: str) -> None:
    mode = "auto" if era == MODERN else era
    async with Client(served.mcp, mode=mode) as client:
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed is True


@pytest.mark.requirement("FR-DYNAMIC-003")
async def test_a_client_that_left_does_not_disturb_those_that_stay(
    registry: Registry, served: Address, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    async with watching(served.mcp, "legacy") as staying:
        for era in ERAS:
            async with watching(served.mcp, era) as leaving:
                await names(leaving.client)
        await names(staying.client)
        in_a_thread(registry.register, "new.tool", Add(journal))
        await eventually(lambda: staying.told == 1)
    assert "could not be told" not in caplog.text


@pytest.mark.requirement("FR-DYNAMIC-001", "FR-DYNAMIC-003", "FR-DYNAMIC-004")
async def test_a_burst_of_a_thousand_is_coalesced_and_loses_nothing(
    registry: Registry, served: Address, journal: Journal
) -> None:
    module = Add(journal)

    def burst() -> None:
        for number in range(1000):
            registry.register(f"burst.n{number}", module)

    async with watching(served.mcp, MODERN) as modern, watching(served.mcp, "legacy") as legacy:
        await names(legacy.client)
        await anyio.to_thread.run_sync(burst)
        expected = sorted(f"burst.n{number}" for number in range(1000))
        for watcher in (modern, legacy):
            await eventually(lambda watcher=watcher: watcher.told)  # type: ignore[misc]
            assert await names(watcher.client) == expected
            assert watcher.told < 1000


@pytest.mark.requirement("FR-DYNAMIC-003")
async def test_what_is_listed_after_a_notification_is_never_older_than_it(
    registry: Registry, served: Address, journal: Journal
) -> None:
    module = Add(journal)
    async with watching(served.mcp, MODERN) as watcher:
        for number in range(50):
            told = watcher.told
            await anyio.to_thread.run_sync(registry.register, f"step.n{number}", module)
            await eventually(lambda told=told: watcher.told > told)  # type: ignore[misc]
            assert len(await names(watcher.client)) == number + 1


@pytest.mark.requirement("FR-DYNAMIC-004", "NFR-REL-003")
async def test_a_storm_of_registrations_during_lists_and_calls_stays_consistent(
    registry: Registry, served: Address, journal: Journal
) -> None:
    module = Add(journal)
    registry.register("steady.add", module)
    over = threading.Event()
    failures: list[BaseException] = []

    def storm(number: int) -> None:
        try:
            for _ in range(250):
                registry.register(f"storm.n{number}", module)
                registry.unregister(f"storm.n{number}")
        except BaseException as error:
            failures.append(error)

    def all_storms() -> None:
        threads = [threading.Thread(target=storm, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        over.set()

    async with Client(served.mcp, mode=MODERN) as modern, Client(served.mcp, mode="legacy") as legacy:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, all_storms)
            lists = 0
            while not over.is_set() or lists < 10:
                for client in (modern, legacy):
                    listed = await names(client)
                    assert "steady.add" in listed
                    assert set(listed) <= {"steady.add", *(f"storm.n{n}" for n in range(4))}
                    result = await client.call_tool("steady.add", {"a": lists, "b": 1})
                    assert result.structured_content == {"sum": lists + 1}
                lists += 1
        assert failures == []
        assert await names(modern) == await names(legacy) == ["steady.add"]


@pytest.mark.requirement("FR-DYNAMIC-001")
async def test_a_module_replaced_under_its_id_is_served_with_its_new_definition(
    registry: Registry, served: Address, journal: Journal
) -> None:
    registry.register("some.tool", Add(journal), version="1.0.0")
    replacement = Add(journal)
    replacement.description = "Adds better"
    async with watching(served.mcp, MODERN) as watcher:
        in_a_thread(lambda: registry.register("some.tool", replacement, version="2.0.0"))
        await eventually(lambda: watcher.told >= 1)
        [tool] = (await watcher.client.list_tools(cache_mode="bypass")).tools
        assert tool.description == "Adds better"


class Unconvertible(Add):
    """A module whose definition cannot be read."""

    @property
    def input_schema(self) -> Any:  # type: ignore[override]  # reading it must fail, which an attribute cannot
        raise RuntimeError("no schema today")


@pytest.mark.requirement("FR-DYNAMIC-001", "NFR-REL-002")
async def test_a_module_that_cannot_be_a_tool_does_not_disturb_the_others(
    registry: Registry, served: Address, journal: Journal
) -> None:
    looped: dict[str, Any] = {
        "$defs": {"a": {"$ref": "#/$defs/a"}},
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/a"}},
    }
    broken = Add(journal)
    broken.input_schema = looped  # type: ignore[assignment]
    async with Client(served.mcp, mode=MODERN) as client:
        in_a_thread(registry.register, "good.one", Add(journal))
        in_a_thread(registry.register, "broken.one", broken)
        in_a_thread(registry.register, "good.two", Add(journal))
        assert [name for name in await names(client) if name.startswith("good")] == ["good.one", "good.two"]
        assert (await client.call_tool("good.two", {"a": 1, "b": 1})).structured_content == {"sum": 2}


MODULE = """
from pydantic import BaseModel


class In(BaseModel):
    name: str


class Out(BaseModel):
    greeting: str


class Greet:
    description = "Greets, version {version}"
    input_schema = In
    output_schema = Out

    def execute(self, inputs, context):
        return {{"greeting": "{greeting} " + inputs["name"]}}
"""


@pytest.mark.requirement("FR-DYNAMIC-001", "FR-DYNAMIC-002", "FR-DYNAMIC-003")
async def test_dynamic_serves_what_changes_in_the_extensions_directory(tmp_path: Path) -> None:
    extensions = tmp_path / "extensions"
    extensions.mkdir()
    (extensions / "hello.py").write_text(MODULE.format(version=1, greeting="Hello"))
    registry = Registry(extensions_dir=str(extensions))
    registry.discover()
    with serving(registry, dynamic=True) as address:
        async with watching(address.mcp, MODERN) as modern, watching(address.mcp, "legacy") as legacy:
            assert await names(modern.client) == await names(legacy.client) == ["hello"]
            # Written elsewhere and moved in whole, as an editor or a package manager does.
            (tmp_path / "bye.py").write_text(MODULE.format(version=1, greeting="Bye"))
            (tmp_path / "bye.py").rename(extensions / "bye.py")
            await eventually(lambda: modern.told and legacy.told)
            assert await names(modern.client) == await names(legacy.client) == ["bye", "hello"]
            result = await modern.client.call_tool("bye", {"name": "you"})
            assert result.structured_content == {"greeting": "Bye you"}
            told = modern.told
            (extensions / "hello.py").unlink()
            await eventually(lambda: modern.told > told)
            assert await names(modern.client) == ["bye"]


@pytest.mark.requirement("FR-DYNAMIC-001", "FR-DYNAMIC-002", "FR-CLI-001")
async def test_the_command_serves_a_file_that_is_replaced_and_renamed(tmp_path: Path) -> None:
    extensions = tmp_path / "extensions"
    extensions.mkdir()
    (extensions / "hello.py").write_text(MODULE.format(version=1, greeting="Hello"))
    port = free_port()
    command = cli_command(extensions, "--dynamic", "--transport", "streamable-http", "--port", str(port))
    with http_child(command, port) as (_, address):
        async with Client(address.mcp, mode=MODERN) as client:
            assert await names(client) == ["hello"]
            (tmp_path / "new.py").write_text(MODULE.format(version=2, greeting="Welcome"))
            (tmp_path / "new.py").replace(extensions / "hello.py")

            async def greeting() -> str:
                return text_of(await client.call_tool("hello", {"name": "you"}))

            with anyio.fail_after(DEADLINE):
                while await greeting() != '{"greeting": "Welcome you"}':
                    await anyio.sleep(0.02)
                (extensions / "hello.py").rename(extensions / "welcome.py")
                while await names(client) != ["welcome"]:
                    await anyio.sleep(0.02)


@pytest.mark.requirement("FR-DYNAMIC-001")
async def test_dynamic_serves_a_file_that_is_written_in_place_and_slowly(tmp_path: Path) -> None:
    """As `cp` and most editors do it: the file is there before its content is."""
    source = MODULE.format(version=1, greeting="Hello").encode()
    registry = Registry(extensions_dir=str(tmp_path))
    with serving(registry, dynamic=True) as address:
        async with watching(address.mcp, MODERN) as watcher:
            with (tmp_path / "hello.py").open("wb", buffering=0) as file:
                for start in range(0, len(source), 100):
                    file.write(source[start : start + 100])
                    await anyio.sleep(0.01)  # the pace of the writer
            await eventually(lambda: watcher.told)
            with anyio.fail_after(DEADLINE):
                while await names(watcher.client) != ["hello"]:  # apcore reloads it at each event: out, and in again
                    await anyio.sleep(0.02)


@pytest.mark.requirement("FR-DYNAMIC-003")
async def test_a_listening_client_that_reads_nothing_does_not_hold_the_others(
    registry: Registry, served: Address, journal: Journal
) -> None:
    body = modern_body("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    headers = modern_headers("subscriptions/listen")
    async with (
        httpx2.AsyncClient(timeout=DEADLINE) as raw,
        raw.stream("POST", served.mcp, json=body, headers=headers) as unread,
    ):
        assert unread.status_code == 200
        async with watching(served.mcp, MODERN) as watcher:
            in_a_thread(registry.register, "new.tool", Add(journal))
            await eventually(lambda: watcher.told == 1)
