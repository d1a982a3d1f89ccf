"""RegistryListener: the live tool table."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from apcore import ModuleDescriptor, Registry

from apcore_mcp.server.listener import RegistryListener
from modules import CIRCULAR, Add, Sample, registry_of


@pytest.fixture
def listening() -> Iterator[Any]:
    """Start listeners that are stopped at the end."""
    started: list[RegistryListener] = []

    def start(registry: Registry, on_change: Any = None, **options: Any) -> RegistryListener:
        listener = RegistryListener()
        if on_change is not None:
            listener.on_change = on_change
        listener.start(registry, **options)
        started.append(listener)
        return listener

    yield start
    for listener in started:
        listener.stop()


@pytest.mark.requirement("FR-DYNAMIC-001")
def test_a_module_registered_later_is_a_tool(listening: Any) -> None:
    registry = registry_of({"old.tool": Add()})
    listener = listening(registry)
    assert list(listener.tools) == ["old.tool"]
    registry.register("new.tool", Sample(description="brand new"))
    assert list(listener.tools) == ["new.tool", "old.tool"]
    assert listener.tools["new.tool"].description == "brand new"


@pytest.mark.requirement("FR-DYNAMIC-001")
def test_modules_registered_in_rapid_succession_are_all_tools(listening: Any) -> None:
    registry = Registry()
    listener = listening(registry)
    for i in range(200):
        registry.register(f"m.n{i}", Sample())
    assert list(listener.tools) == registry.list()


@pytest.mark.requirement("FR-DYNAMIC-001")
def test_a_module_that_is_registered_again_has_its_new_definition(listening: Any) -> None:
    registry = registry_of({"x": Sample(description="first")})
    listener = listening(registry)
    registry.unregister("x")
    registry.register("x", Sample(description="second"))
    assert listener.tools["x"].description == "second"


@pytest.mark.requirement("FR-DYNAMIC-001")
def test_a_new_version_under_the_same_id_replaces_the_old(listening: Any) -> None:
    registry = Registry()
    registry.register("x", Sample(description="first"), version="1.0.0")
    listener = listening(registry)
    registry.register("x", Sample(description="second"), version="2.0.0")
    assert listener.tools["x"].description == "second"


@pytest.mark.requirement("FR-DYNAMIC-001")
def test_a_module_without_a_definition_is_not_added(listening: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Racing(Registry):
        def get_definition(self, module_id: str, version_hint: str | None = None) -> ModuleDescriptor | None:
            return None if module_id == "gone" else super().get_definition(module_id, version_hint)

    registry = Racing()
    listener = listening(registry)
    registry.register("gone", Add())
    registry.register("here", Add())
    assert list(listener.tools) == ["here"]
    assert [record.levelname for record in caplog.records if record.name.startswith("apcore_mcp")] == ["WARNING"]


@pytest.mark.requirement("FR-DYNAMIC-001")
def test_a_module_that_cannot_be_a_tool_is_not_added(listening: Any, caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    listener = listening(registry)
    registry.register("bad", Sample(schema=CIRCULAR))
    registry.register("good", Add())
    assert list(listener.tools) == ["good"]
    assert [record.levelname for record in caplog.records if record.name.startswith("apcore_mcp")] == ["WARNING"]


@pytest.mark.requirement("FR-DYNAMIC-002")
def test_an_unregistered_module_is_no_tool(listening: Any) -> None:
    registry = registry_of({"old.tool": Add(), "other": Add()})
    listener = listening(registry)
    registry.unregister("old.tool")
    assert list(listener.tools) == ["other"]


@pytest.mark.requirement("FR-DYNAMIC-002")
def test_unregistering_what_was_no_tool_is_ignored(listening: Any) -> None:
    registry = registry_of({"bad": Sample(schema=CIRCULAR), "good": Add()})
    listener = listening(registry)
    registry.unregister("bad")
    registry.unregister("never.there")
    assert list(listener.tools) == ["good"]


@pytest.mark.requirement("FR-DYNAMIC-003")
def test_every_change_is_announced(listening: Any) -> None:
    changes: list[bool] = []
    registry = registry_of({"old": Add()})
    listening(registry, on_change=lambda: changes.append(True))
    assert changes == []
    registry.register("new", Add())
    registry.unregister("old")
    assert len(changes) == 2


@pytest.mark.requirement("FR-DYNAMIC-003", "FR-FILTER-001", "FR-FILTER-002")
def test_what_the_filters_hide_is_neither_added_nor_announced(listening: Any) -> None:
    changes: list[bool] = []
    registry = Registry()
    listener = listening(registry, tags=["public"], prefix="api.", on_change=lambda: changes.append(True))
    registry.register("api.hidden", Sample())
    registry.register("other", Sample(tags=["public"]))
    registry.unregister("api.hidden")
    assert listener.tools == {}
    assert changes == []
    registry.register("api.seen", Sample(tags=["public"]))
    assert list(listener.tools) == ["api.seen"]
    assert changes == [True]


@pytest.mark.requirement("FR-DYNAMIC-001")
def test_a_stopped_listener_follows_no_more() -> None:
    registry = Registry()
    listener = RegistryListener()
    listener.start(registry)
    listener.stop()
    registry.register("late", Add())
    assert "late" not in listener.tools


@pytest.mark.requirement("FR-DYNAMIC-004")
def test_what_a_reader_holds_does_not_change_under_it(listening: Any) -> None:
    registry = registry_of({"a": Add()})
    listener = listening(registry)
    held = listener.tools
    registry.register("b", Add())
    assert list(held) == ["a"]


@pytest.mark.long
@pytest.mark.requirement("FR-DYNAMIC-004", "NFR-REL-003")
def test_a_thousand_changes_from_many_threads_leave_a_consistent_table(listening: Any) -> None:
    registry = registry_of({"always.there": Sample()})
    listener = listening(registry)
    failures: list[BaseException] = []
    done = threading.Event()

    def change(worker: int) -> None:
        try:
            for i in range(125):
                registry.register(f"w{worker}.m{i}", Sample(description=f"{worker} {i}"))
                if i % 2:
                    registry.unregister(f"w{worker}.m{i}")
        except BaseException as error:
            failures.append(error)

    def read() -> None:
        try:
            while not done.is_set():
                tools = listener.tools
                assert "always.there" in tools
                assert all(name == tool.name for name, tool in tools.items())
                assert list(tools) == sorted(tools)
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=change, args=(worker,)) for worker in range(8)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in [*readers, *writers]:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert failures == []
    assert list(listener.tools) == registry.list()
    assert len(listener.tools) == 1 + 8 * 63


@pytest.mark.requirement("FR-DYNAMIC-004", "NFR-REL-003")
def test_threads_that_fight_over_one_id_leave_what_the_registry_holds(listening: Any) -> None:
    registry = Registry()
    listener = listening(registry)

    def fight() -> None:
        for _ in range(50):
            try:
                registry.register("prize", Sample())
            except Exception:  # another thread was first
                registry.unregister("prize")

    threads = [threading.Thread(target=fight) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(listener.tools) == registry.list()


@pytest.mark.requirement("FR-DYNAMIC-004", "NFR-REL-003", "FR-DYNAMIC-001")
def test_a_module_that_is_registered_again_is_never_absent_in_between(listening: Any) -> None:
    """Each definition is looked at while it is made: the table must still have the one before."""
    seen: list[Any] = []

    class Looking(Registry):
        def get_definition(self, module_id: str, *args: Any, **kwargs: Any) -> ModuleDescriptor | None:
            if seen:
                seen.append(listener.entry(module_id))
            return super().get_definition(module_id, *args, **kwargs)

    registry = Looking()
    registry.register("x", Sample(description="1"), version="1.0.0")
    listener = listening(registry)
    seen.append("started")
    for number in range(2, 5):
        registry.register("x", Sample(description=str(number)), version=f"{number}.0.0")
    assert [entry.tool.description for entry in seen[1:]] == ["1", "2", "3"]
    assert listener.tools["x"].description == "4"


@pytest.mark.requirement("FR-DYNAMIC-004", "NFR-REL-003")
def test_readers_in_other_threads_always_find_a_module_that_is_registered_again(listening: Any) -> None:
    registry = Registry()
    registry.register("x", Sample(), version="1.0.0")
    listener = listening(registry)
    absent: list[int] = []
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            if listener.entry("x") is None or "x" not in listener.entries():
                absent.append(1)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(2, 60):
        registry.register("x", Add(), version=f"{number}.0.0")
    is_over.set()
    for reader in readers:
        reader.join()
    assert absent == []


@pytest.mark.requirement("FR-DYNAMIC-002", "NFR-REL-002")
def test_a_module_whose_new_definition_cannot_be_a_tool_is_gone(listening: Any) -> None:
    registry = Registry()
    registry.register("x", Sample(), version="1.0.0")
    listener = listening(registry)
    registry.register("x", Sample(schema=CIRCULAR), version="2.0.0")
    assert listener.entry("x") is None
