"""serve: what it accepts, what it refuses, and in which words."""

import asyncio
import contextlib
import dataclasses
import inspect
import logging
import socket
import subprocess
import sys
import typing
from typing import Any

import pydantic
import pytest
from apcore import Executor, Registry
from hypothesis import given, settings
from hypothesis import strategies as st

import apcore_mcp
from apcore_mcp import async_serve, create_app, serve, serving, to_openai_tools
from apcore_mcp.options import Options
from modules import Add, registry_of

SPECIFIED = {
    "transport": "stdio",
    "host": "127.0.0.1",
    "port": 8000,
    "name": "apcore-mcp",
    "version": None,
    "on_startup": None,
    "on_shutdown": None,
    "tags": None,
    "prefix": None,
    "log_level": None,
    "dynamic": False,
    "validate_inputs": False,
    "explorer": False,
    "explorer_prefix": "/explorer",
    "allow_execute": False,
}


def refused(**options: Any) -> str:
    """What serve says when it refuses these options."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the callers check the text
        serve(Registry(), **options)
    return str(caught.value)


def accepted(**options: Any) -> None:
    """Check that the options are legal; an app is built, nothing is served."""
    create_app(Registry(), **options)


# The signature


@pytest.mark.requirement("FR-SERVER-001", "FR-SERVER-002", "FR-SERVER-004", "FR-EXPLORER-006")
@pytest.mark.parametrize("function", [serve, async_serve, create_app])
def test_the_options_and_their_defaults_show_in_the_signature(function: Any) -> None:
    first, *rest = inspect.signature(function).parameters.values()
    assert first.name == "registry_or_executor"
    assert first.default is inspect.Parameter.empty
    assert {parameter.kind for parameter in rest} == {inspect.Parameter.KEYWORD_ONLY}
    defaults = {parameter.name: parameter.default for parameter in rest}
    assert SPECIFIED.items() <= defaults.items()


@pytest.mark.requirement("NFR-MAINT-003")
@pytest.mark.parametrize("function", [serve, async_serve, create_app])
def test_types_at_run_time_are_those_of_the_options(function: Any) -> None:
    hints = typing.get_type_hints(function)
    assert hints.pop("registry_or_executor") == Registry | Executor
    hints.pop("return")
    assert hints == typing.get_type_hints(Options)


@pytest.mark.parametrize("function", [serve, async_serve, create_app])
def test_defaults_are_those_of_the_options(function: Any) -> None:
    _, *given = inspect.signature(function).parameters.values()
    expected = {option.name: option.default for option in dataclasses.fields(Options)}
    assert {parameter.name: parameter.default for parameter in given} == expected


@pytest.mark.requirement("FR-SERVER-001")
@pytest.mark.parametrize("function", [serve, async_serve, create_app])
def test_every_option_arrives_under_its_name(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {option.name: object() for option in dataclasses.fields(Options)}
    arrived: dict[str, Any] = {}

    def build(**options: Any) -> Options:
        arrived.update(options)
        raise ValueError("enough")

    monkeypatch.setattr(serving, "Options", build)
    with pytest.raises(ValueError, match="enough"):
        asyncio.run(function(Registry(), **given))
    assert arrived == given


@pytest.mark.parametrize("function", [serve, async_serve, create_app, to_openai_tools])
def test_a_function_is_called_what_it_is_called(function: Any) -> None:
    assert getattr(apcore_mcp, function.__name__) is function


@pytest.mark.requirement("FR-SERVER-001")
def test_options_are_given_by_name_only() -> None:
    with pytest.raises(TypeError):
        serve(Registry(), "streamable-http")  # type: ignore[call-arg]  # what the test is about


@pytest.mark.requirement("FR-SERVER-001")
def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        serve(Registry(), colour="red")  # type: ignore[call-arg]  # what the test is about


@pytest.mark.requirement("FR-OPENAI-001", "FR-OPENAI-003", "FR-OPENAI-004")
def test_the_options_of_to_openai_tools_are_those_of_the_specification() -> None:
    first, *rest = inspect.signature(to_openai_tools).parameters.values()
    assert first.name == "registry_or_executor"
    assert {parameter.kind for parameter in rest} == {inspect.Parameter.KEYWORD_ONLY}
    assert {parameter.name: parameter.default for parameter in rest} == {
        "embed_annotations": False,
        "strict": False,
        "tags": None,
        "prefix": None,
    }


# The source


@pytest.mark.requirement("FR-EXEC-005")
@pytest.mark.parametrize("source", [None, "registry", 7, {}, Registry, object()], ids=lambda s: type(s).__name__)
def test_anything_but_a_registry_or_executor_is_a_type_error(source: Any) -> None:
    message = f"^Expected Registry or Executor instance, got {type(source).__name__}$"
    for function in (serve, create_app):
        with pytest.raises(TypeError, match=message):
            function(source)


@pytest.mark.requirement("FR-EXEC-005")
@pytest.mark.parametrize("wrap", [Registry, lambda: Executor(Registry())], ids=["registry", "executor"])
def test_a_registry_and_an_executor_are_accepted(wrap: Any) -> None:
    create_app(wrap())


# Types

WRONG: list[Any] = [
    None, True, False, 0, 10, 5.5, "x", "", b"x", [], ["a"], [1], ["a", None], {}, {"a"}, object(), len,
]  # fmt: skip
HINTS = typing.get_type_hints(Options) | {"embed_annotations": bool, "strict": bool}
FUNCTIONS = {"embed_annotations": to_openai_tools, "strict": to_openai_tools}


def fits(value: Any, hint: Any) -> bool:
    """Whether the value is of the type, as pydantic judges it."""
    try:
        pydantic.TypeAdapter(hint).validate_python(value, strict=True)
    except pydantic.ValidationError:
        return False
    return True


@settings(max_examples=400)
@given(st.sampled_from(sorted(HINTS)), st.sampled_from(WRONG))
@pytest.mark.requirement("FR-SERVER-001", "FR-OPENAI-001")
def test_an_option_of_a_wrong_type_is_refused_by_its_name(name: str, value: Any) -> None:
    take = FUNCTIONS.get(name, create_app)
    if fits(value, HINTS[name]):
        with contextlib.suppress(ValueError):  # of the right type, and yet no good
            take(Registry(), **{name: value})
        return
    with pytest.raises((TypeError, ValueError)) as caught:
        take(Registry(), **{name: value})
    assert str(caught.value).startswith("Unknown transport: " if name == "transport" else f"{name} must be ")


# Transport, host and port


@pytest.mark.requirement("FR-SERVER-007")
@pytest.mark.parametrize("transport", ["websocket", "", "http", "stdio ", "streamable_http"])
def test_an_unknown_transport_is_refused(transport: str) -> None:
    assert refused(transport=transport) == (
        f"Unknown transport: '{transport}'. Must be one of: stdio, streamable-http, sse"
    )


@pytest.mark.requirement("FR-SERVER-007")
@pytest.mark.parametrize("transport", ["stdio", "STDIO", "streamable-http", "Streamable-HTTP", "sse", "SSE"])
def test_a_transport_is_known_in_any_case(transport: str) -> None:
    accepted(transport=transport)


@pytest.mark.requirement("FR-SERVER-002", "FR-SERVER-003", "FR-TRANSPORT-003")
@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
@pytest.mark.parametrize("port", [0, -1, 65536, 70000])
def test_a_port_out_of_range_is_refused(transport: str, port: int) -> None:
    assert refused(transport=transport, port=port) == f"Port must be between 1 and 65535, got {port}"


@pytest.mark.requirement("FR-SERVER-002", "FR-SERVER-003", "FR-TRANSPORT-003")
@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
@pytest.mark.parametrize("port", [1, 8000, 65535])
def test_a_port_in_range_is_accepted(transport: str, port: int) -> None:
    accepted(transport=transport, port=port)


@pytest.mark.requirement("FR-SERVER-002", "FR-SERVER-003")
@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
def test_an_empty_host_is_refused(transport: str) -> None:
    assert refused(transport=transport, host="") == "Host must not be empty"


@pytest.mark.requirement("FR-TRANSPORT-005")
@pytest.mark.parametrize("options", [{"host": "0.0.0.0", "port": 9000}, {"host": "", "port": 0}, {"port": -5}], ids=str)
def test_stdio_does_not_look_at_host_and_port(options: dict[str, Any]) -> None:
    accepted(transport="stdio", **options)


@pytest.mark.requirement("FR-SERVER-003", "FR-TRANSPORT-004")
def test_sse_is_deprecated_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    create_app(Registry(), transport="sse")
    (record,) = [record for record in caplog.records if record.name.startswith("apcore_mcp")]
    assert record.levelname == "WARNING"
    assert record.message == "SSE transport is deprecated; use streamable-http instead"


@pytest.mark.requirement("FR-TRANSPORT-004")
def test_streamable_http_is_not_deprecated(caplog: pytest.LogCaptureFixture) -> None:
    create_app(Registry(), transport="streamable-http")
    assert caplog.records == []


@pytest.mark.requirement("FR-SERVER-002", "FR-SERVER-003", "FR-TRANSPORT-003", "FR-TRANSPORT-004")
@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
def test_a_port_in_use_is_an_os_error(transport: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        serve(Registry(), transport=transport, port=taken.getsockname()[1])


@pytest.mark.requirement("FR-SERVER-001")
@pytest.mark.parametrize(("stream", "number"), [("stdin", 0), ("stdout", 1)])
def test_stdio_without_its_streams_is_a_runtime_error(stream: str, number: int) -> None:
    code = f"""
import os, sys
os.close({number})
sys.{stream} = sys.__{stream}__ = None
from apcore import Registry
from apcore_mcp import serve
try:
    serve(Registry())
except RuntimeError as error:
    sys.stderr.write(f"refused: {{error}}")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=30
    )
    assert "refused: " in done.stderr


# Identity


@pytest.mark.requirement("FR-SERVER-004")
def test_a_name_has_one_to_255_characters() -> None:
    assert refused(name="") == "name must not be empty"
    assert refused(name="n" * 256) == "name must not exceed 255 characters"
    accepted(name="n")
    accepted(name="n" * 255)


@pytest.mark.requirement("FR-SERVER-004")
def test_an_empty_version_is_refused() -> None:
    assert refused(version="") == "version must not be empty"
    accepted(version=None)
    accepted(version="2.0.0")


# Filters


@pytest.mark.requirement("FR-SERVER-008")
@pytest.mark.parametrize("tags", [[""], ["public", ""]])
def test_an_empty_tag_is_refused(tags: list[str]) -> None:
    assert refused(tags=tags) == "Tag values must not be empty"


@pytest.mark.requirement("FR-SERVER-009")
def test_an_empty_prefix_is_refused() -> None:
    assert refused(prefix="") == "prefix must not be empty"


@pytest.mark.requirement("FR-SERVER-008", "FR-SERVER-009")
def test_absent_filters_are_accepted() -> None:
    accepted(tags=None, prefix=None)
    accepted(tags=[])


# Explorer


@pytest.mark.requirement("FR-EXPLORER-006")
@pytest.mark.parametrize("prefix", ["explorer", "", "http://elsewhere/"])
def test_an_explorer_prefix_starts_with_a_slash(prefix: str) -> None:
    assert "explorer_prefix" in refused(explorer_prefix=prefix)


@pytest.mark.requirement("FR-EXPLORER-006")
@pytest.mark.parametrize("prefix", ["/explorer", "/explorer/", "/a/b"])
def test_an_explorer_prefix_may_end_with_a_slash(prefix: str) -> None:
    accepted(explorer=True, transport="streamable-http", explorer_prefix=prefix)


# Logging


@pytest.mark.requirement("FR-SERVER-010")
@pytest.mark.parametrize("level", ["TRACE", "", "verbose", "CRITICAL", "10"])
def test_an_unknown_log_level_is_refused(level: str) -> None:
    assert refused(log_level=level) == (f"Unknown log level: '{level}'. Must be one of: DEBUG, INFO, WARNING, ERROR")


@pytest.mark.requirement("FR-SERVER-010", "FR-LOG-005")
def test_a_log_level_is_set_in_any_case() -> None:
    code = """
import logging
from apcore import Registry
from apcore_mcp import create_app
for level in ("DEBUG", "INFO", "WARNING", "ERROR", "debug", "Warning"):
    create_app(Registry(), log_level=level)
    print(logging.getLevelName(logging.getLogger("apcore_mcp.server.router").getEffectiveLevel()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["DEBUG", "INFO", "WARNING", "ERROR", "DEBUG", "WARNING"]


@pytest.mark.requirement("FR-SERVER-010", "FR-LOG-005")
def test_without_a_log_level_logging_is_left_alone() -> None:
    logger = logging.getLogger("apcore_mcp")
    before = (logger.level, list(logger.handlers), logging.root.level, list(logging.root.handlers))
    create_app(registry_of({"add": Add()}))
    assert (logger.level, list(logger.handlers), logging.root.level, list(logging.root.handlers)) == before


# The package


@pytest.mark.requirement("FR-EXT-003")
def test_the_public_names_are_the_documented_ones() -> None:
    assert sorted(apcore_mcp.__all__) == [
        "MCP_ELICIT_KEY",
        "MCP_PROGRESS_KEY",
        "__version__",
        "async_serve",
        "create_app",
        "elicit",
        "report_progress",
        "serve",
        "to_openai_tools",
    ]
    assert all(hasattr(apcore_mcp, name) for name in apcore_mcp.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        apcore_mcp.nonsense  # noqa: B018


@pytest.mark.requirement("FR-SERVER-008", "FR-SERVER-009", "FR-SERVER-005", "FR-SERVER-007")
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"tags": "public"}, "tags must be a list of strings, got 'public'"),
        ({"tags": [3]}, r"tags must be a list of strings, got \[3\]"),
        ({"prefix": 3}, "prefix must be a string, got 3"),
        ({"on_startup": 3}, "on_startup must be callable, got 3"),
        ({"on_shutdown": "later"}, "on_shutdown must be callable, got 'later'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_has_the_wrong_type_is_refused_at_the_call(wrong: dict[str, Any], text: str) -> None:
    for way in (serve, create_app):
        with pytest.raises(TypeError, match=text):
            way(Registry(), **wrong)
    if wrong.keys() <= {"tags", "prefix"}:
        with pytest.raises(TypeError, match=text):
            to_openai_tools(Registry(), **wrong)


@pytest.mark.requirement("FR-SERVER-007")
def test_no_transport_is_an_unknown_transport() -> None:
    with pytest.raises(ValueError, match="Unknown transport: 'none'"):
        Options(transport=None)  # type: ignore[arg-type]
