"""A plain typed function is a tool: in a file, in a folder, and while the folder changes."""

import datetime
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from apcore import Executor, Registry

from apcore_files.app import registry_in
from apcore_files.folder import discovered
from apcore_files.watching import following
from waiting import wait_until

GARDEN = '''
from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass

from pydantic import BaseModel


class Bed(BaseModel):
    name: str
    length: float = 2.0


class Season(enum.Enum):
    SPRING = "spring"
    AUTUMN = "autumn"


@dataclass
class Plan:
    bed: str
    on: datetime.date


def plan(bed: Bed, on: datetime.date, season: Season = Season.SPRING) -> Plan:
    """Plan a bed.

    Args:
        on: the day to begin
    """
    assert isinstance(bed, Bed) and isinstance(on, datetime.date) and isinstance(season, Season)
    return Plan(bed=bed.name, on=on)


async def beds(names: set[str]) -> list[Bed]:
    """List beds."""
    return [Bed(name=name) for name in sorted(names)]


def water() -> None:
    pass


def _helper(x):
    return x
'''


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    numbers = iter(range(100))

    def write(code: str) -> Path:
        path = tmp_path / f"app_{next(numbers)}.py"
        path.write_text(code)
        return path

    return write


def call(registry: Registry | Executor, module_id: str, **arguments: Any) -> Any:
    executor = registry if isinstance(registry, Executor) else Executor(registry)
    return anyio.run(lambda: executor.call_async(module_id, arguments))


def definition(registry: Any, module_id: str) -> Any:
    return registry.get_definition(module_id)


def test_every_public_function_of_a_file_is_a_tool(written: Callable[[str], Path]) -> None:
    registry = registry_in(str(written(GARDEN)))
    assert isinstance(registry, Registry)
    assert registry.list() == ["beds", "plan", "water"]


def test_the_docstring_types_and_defaults_are_what_clients_see(written: Callable[[str], Path]) -> None:
    tool = definition(registry_in(str(written(GARDEN))), "plan")
    assert tool.description == "Plan a bed."
    assert tool.input_schema["required"] == ["bed", "on"]
    properties = tool.input_schema["properties"]
    assert properties["on"] == {"description": "the day to begin", "format": "date", "title": "On", "type": "string"}
    assert properties["season"]["default"] == "spring"
    assert tool.output_schema["properties"]["on"]["format"] == "date"


def test_a_function_is_called_with_values_of_its_types_and_answers_plain_json(written: Callable[[str], Path]) -> None:
    registry = registry_in(str(written(GARDEN)))
    today = datetime.date(2026, 4, 1).isoformat()
    assert call(registry, "plan", bed={"name": "north"}, on=today) == {"bed": "north", "on": today}
    answer = call(registry, "beds", names=["b", "a"])
    assert answer == {"result": [{"name": "a", "length": 2.0}, {"name": "b", "length": 2.0}]}
    assert json.dumps(answer)
    assert call(registry, "water") == {}


def test_a_function_without_a_docstring_is_described_by_its_name(written: Callable[[str], Path]) -> None:
    assert (
        definition(registry_in(str(written("def sow_seeds(n: int): return n"))), "sow_seeds").description == "Sow seeds"
    )


def test_a_function_whose_answer_is_not_of_its_type_fails(written: Callable[[str], Path]) -> None:
    registry = registry_in(str(written("def count() -> int:\n    return 'many'")))
    with pytest.raises(Exception, match="count"):
        call(registry, "count")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def add(a, b: int) -> int: ...", "add cannot be a tool yet: give 'a' a type, such as a: str."),
        ("def add(a, b): ...", "give 'a' and 'b' a type, such as a: str. To keep the function private, call it _add."),
        ("def add(a: int, /): ...", "its arguments come by name, so take the / out of its signature"),
        ("def add(a: 'Nowhere'): ...", "its type 'Nowhere' is not defined"),
        ("class Odd: ...\ndef add(a: Odd): ...", "Use types that JSON can write down"),
        ("X = 1", "has no tools: write a function with types, such as def add(a: int, b: int) -> int:"),
        ("import", "cannot be imported: invalid syntax, in line 1"),
        ("x = 1\nx / 0", "cannot be imported: ZeroDivisionError: division by zero, in line 2"),
    ],
)
def test_a_file_that_offers_no_tool_is_told_what_to_write(written: Callable[[str], Path], code: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"app_0\.py") as refused:
        registry_in(str(written(code)))
    assert said in str(refused.value)


def test_a_file_that_serves_at_import_is_told_where_to_put_that(written: Callable[[str], Path]) -> None:
    with pytest.raises(ValueError, match="under if __name__ == '__main__'"):
        registry_in(str(written("import threading; threading.Event().wait()")), 0.05)


DECORATED = """
from apcore import Executor, Registry, module

first, second = Registry(), Registry()

@module(id="math.add", registry=first)
def add(a: int, b: int = 2) -> int:
    "Add."
    return a + b

@module(id="math.sub", registry=second)
def sub(a: int, b: int) -> int:
    "Subtract."
    return a - b
"""


def test_one_of_several_registries_is_chosen_by_its_name(written: Callable[[str], Path]) -> None:
    path = written(DECORATED)
    with pytest.raises(ValueError, match=r"app_0\.py has 2 registries; say which one: app_0\.py:first or app_0"):
        registry_in(str(path))
    with pytest.raises(ValueError, match="no registry called 'third'; registries in it: first, second"):
        registry_in(f"{path}:third")
    assert call(registry_in(f"{path}:first"), "math.add", a=1) == {"result": 3}


def test_the_executor_of_a_file_serves_its_registry_with_its_rules(written: Callable[[str], Path]) -> None:
    code = (
        DECORATED.replace(", second = Registry(), Registry()", " = second = Registry()")
        + "\nexecutor = Executor(first)\n"
    )
    assert isinstance(registry_in(str(written(code))), Executor)


def test_decorated_functions_are_served_without_a_registry_and_the_others_are_not(
    written: Callable[[str], Path],
) -> None:
    decorated = "from apcore.decorator import module\n@module(id='a.b')\ndef b(x: int) -> int: return x\n"
    code = decorated + "def helper(x): return x"
    registry = registry_in(str(written(code)))
    assert isinstance(registry, Registry)
    assert registry.list() == ["a.b"]


# A folder


def test_typed_functions_of_a_folder_are_tools_beside_modules(tmp_path: Path) -> None:
    (tmp_path / "math").mkdir()
    (tmp_path / "math" / "sums.py").write_text(
        "def add(a: int, b: int) -> int: return a + b\ndef total(xs: list[int]) -> int: return sum(xs)"
    )
    (tmp_path / "greet.py").write_text("def greet(name: str) -> str:\n    'Greet.'\n    return f'Hi {name}'")
    (tmp_path / "deco.py").write_text(
        "from apcore.decorator import module\n"
        "@module\ndef one() -> int: return 1\n"
        "@module(id='my.two')\ndef two() -> int: return 2"
    )
    registry = discovered(tmp_path)
    assert registry.list() == ["deco.one", "greet", "math.sums.add", "math.sums.total", "my.two"]
    assert call(registry, "greet", name="Ada") == {"result": "Hi Ada"}
    assert call(registry, "math.sums.add", a=1, b=2) == {"result": 3}
    assert definition(registry, "greet").description == "Greet."


def test_a_function_without_types_is_left_out_of_a_folder_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "sums.py").write_text("def add(a: int) -> int: return a\ndef sub(a, b): return a - b")
    with caplog.at_level(logging.WARNING):
        registry = discovered(tmp_path)
    assert registry.list() == ["sums.add"]
    assert "sums.py: sub cannot be a tool yet: give 'a' and 'b' a type" in caplog.text


def test_a_file_whose_functions_take_a_name_that_is_taken_is_left_out_whole(tmp_path: Path) -> None:
    decorated = "from apcore.decorator import module\n@module(id='{0}')\ndef f() -> int: return 1\n"
    for name in ("a", "b"):
        second = f"@module(id='{name}.own')\ndef g() -> int: return 2\n"
        (tmp_path / f"{name}.py").write_text(decorated.format("x.y") + second)
    (tmp_path / "c.py").write_text(decorated.format("c.own"))
    offered = discovered(tmp_path).list()
    assert offered in (["a.own", "c.own", "x.y"], ["b.own", "c.own", "x.y"])


def test_functions_follow_their_file_when_it_changes_and_goes(tmp_path: Path) -> None:
    file = tmp_path / "sums.py"
    file.write_text("def add(a: int) -> int: return a")
    registry = discovered(tmp_path)
    with following(registry):
        file.write_text("def sub(a: int) -> int: return -a")
        wait_until(lambda: registry.list() == ["sums.sub"])
        file.unlink()
        wait_until(lambda: registry.list() == [])
