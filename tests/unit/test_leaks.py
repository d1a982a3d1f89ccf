"""What a client and a log must never be told."""

import logging
from pathlib import Path
from typing import Any

import pytest
from apcore import ACL, ACLRule, Executor, Registry
from mcp import Client
from pydantic import BaseModel, Field, SecretStr, field_validator

from apcore_mcp import to_openai_tools
from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from apcore_mcp.server.factory import MCPServerFactory
from apcore_mcp.server.router import ExecutionRouter
from mcp_text import text_of
from modules import EXTENSION, Sample, Streaming, echo, registry_of

pytestmark = pytest.mark.anyio

SECRET = "hunter2-correct-horse"
PATH = "/srv/private/keys.pem"


async def error_text(module: Any, arguments: dict[str, Any] | None = None, **options: Any) -> str:
    router = ExecutionRouter(Executor(registry_of({"sample.tool": module}), **options))
    result = await router.handle_call("sample.tool", arguments or {})
    assert result.is_error is True
    assert result.structured_content is None
    return text_of(result)


class SecretError(Exception):
    """An exception of the module's own."""


def failing(error: Exception) -> Sample:
    def execute(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        raise error

    return Sample(execute)


@pytest.mark.requirement("NFR-SEC-002", "FR-ERROR-009")
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(f"cannot read {PATH}: password {SECRET}"),
        FileNotFoundError(2, "No such file", PATH),
        SecretError(SECRET),
        ValueError({"token": SECRET}),
        ExceptionGroup(SECRET, [RuntimeError(PATH)]),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_modules_own_exception_stays_inside(error: Exception) -> None:
    message = await error_text(failing(error))
    assert message == "Internal error occurred"


@pytest.mark.requirement("NFR-SEC-002", "FR-LOG-003")
async def test_the_log_has_what_the_client_has_not(caplog: pytest.LogCaptureFixture) -> None:
    await error_text(failing(SecretError("the disk is full")))
    assert "the disk is full" in caplog.text
    assert "SecretError" in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.requirement("NFR-SEC-002", "FR-ERROR-003")
async def test_a_denied_call_names_neither_caller_nor_target() -> None:
    deny = ACL([ACLRule(callers=["*"], targets=["*"], effect="deny")])
    assert await error_text(Sample(), acl=deny) == "Access denied"


SENSITIVE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "password": {"type": "string", "minLength": 50, "x-sensitive": True},
        "pin": {"type": "integer", "x-sensitive": True},
        "kind": {"enum": ["a", "b"], "x-sensitive": True},
        "nested": {"type": "object", "properties": {"token": {"type": "integer", "x-sensitive": True}}},
    },
    "additionalProperties": False,
}


@pytest.mark.requirement("NFR-SEC-002", "NFR-SEC-003")
@pytest.mark.parametrize(
    "arguments",
    [
        {"password": SECRET},
        {"pin": SECRET},
        {"kind": SECRET},
        {"nested": {"token": SECRET}},
        {"nested": [SECRET]},
        {"password": {"inside": SECRET}},
    ],
    ids=["too short", "wrong type", "not in the enum", "nested", "wrong container", "wrong shape"],
)
async def test_an_invalid_value_is_never_repeated(arguments: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "apcore_mcp")
    message = await error_text(Sample(echo, schema=SENSITIVE), arguments)
    assert message.startswith("Input validation failed")
    assert SECRET not in message
    assert not any(SECRET in record.getMessage() for record in caplog.records if record.name.startswith("apcore_mcp"))


PIN: dict[str, Any] = {"type": "integer", "x-sensitive": True}
PLAIN: dict[str, Any] = {"type": "integer"}
HARD_TO_FOLLOW: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a map": ({"m": {"type": "object", "additionalProperties": PIN}}, {"m": {"k": SECRET}}),
    "a map of maps": ({"m": {"additionalProperties": {"additionalProperties": PIN}}}, {"m": {"k": {"l": SECRET}}}),
    "a map by pattern": ({"m": {"patternProperties": {"^k": PIN}}}, {"m": {"k": SECRET}}),
    "a map whose keys have dots": (
        {"m": {"properties": {"a": {"properties": {"b": PLAIN}}}, "additionalProperties": PIN}},
        {"m": {"a.b": SECRET}},
    ),
    "all of": ({"x": {"allOf": [{"properties": {"pin": PIN}}]}}, {"x": {"pin": SECRET}}),
    "all of, itself": ({"x": {"allOf": [{"enum": ["a"], "x-sensitive": True}]}}, {"x": SECRET}),
    "one of": ({"x": {"oneOf": [{"properties": {"pin": PIN}}, {"type": "null"}]}}, {"x": {"pin": SECRET}}),
    "then": ({"x": {"if": {"required": ["pin"]}, "then": {"properties": {"pin": PIN}}}}, {"x": {"pin": SECRET}}),
    "a name with a dot": ({"user.pin": PIN}, {"user.pin": SECRET}),
    "a name with a dot beside a path that is spelled alike": (
        {"user.pin": PIN, "user": {"type": "object", "properties": {"pin": PLAIN}}},
        {"user.pin": SECRET},
    ),
    "a name with a slash": ({"user/pin": PIN}, {"user/pin": SECRET}),
    "a place in a list": ({"x": {"prefixItems": [PLAIN, PIN]}}, {"x": [1, SECRET]}),
    "an item": ({"x": {"items": {"anyOf": [PIN, {"type": "null"}]}}}, {"x": [SECRET]}),
    "inside of what is sensitive as a whole": (
        {"x": {"x-sensitive": True, "properties": {"pin": PLAIN}}},
        {"x": {"pin": SECRET}},
    ),
}


@pytest.mark.requirement("NFR-SEC-002", "NFR-SEC-003")
@pytest.mark.parametrize("way", HARD_TO_FOLLOW)
async def test_whatever_the_path_a_sensitive_value_is_not_repeated(way: str) -> None:
    properties, arguments = HARD_TO_FOLLOW[way]
    message = await error_text(Sample(echo, schema={"type": "object", "properties": properties}), arguments)
    assert message.startswith("Input validation failed")
    assert SECRET not in message


@pytest.mark.requirement("NFR-SEC-002", "FR-ERROR-004")
async def test_what_is_not_sensitive_is_still_explained_beside_what_is() -> None:
    schema = {"type": "object", "properties": {"pin": PIN, "nested": {"properties": {"n": PLAIN}}}}
    assert "'twelve' is not of type 'integer'" in await error_text(
        Sample(echo, schema=schema), {"pin": 1, "nested": {"n": "twelve"}}
    )


class Pin(BaseModel):
    pin: str = Field(json_schema_extra={"x-sensitive": True})

    @field_validator("pin")
    @classmethod
    def refuse(cls, value: str) -> str:
        raise ValueError(f"bad pin {value}")


class Card(BaseModel):
    pin: str


class Wallet(BaseModel):
    first: Pin | None = None
    either: Card | Pin | None = None
    by_name: dict[str, Pin] = {}
    listed: list[Pin] = []


@pytest.mark.requirement("NFR-SEC-002", "NFR-SEC-003")
@pytest.mark.parametrize(
    "arguments",
    [
        {"first": {"pin": SECRET}},
        {"either": {"pin": [SECRET]}},
        {"by_name": {"k": {"pin": SECRET}}},
        {"listed": [{"pin": SECRET}]},
    ],
    ids=lambda arguments: str(next(iter(arguments))),
)
async def test_a_sensitive_field_of_a_nested_model_is_not_repeated(arguments: dict[str, Any]) -> None:
    message = await error_text(Sample(echo, schema=Wallet), arguments)
    assert message.startswith("Input validation failed")
    assert SECRET not in message


class Login(BaseModel):
    password: SecretStr = Field(json_schema_extra={"x-sensitive": True})
    pin: int = Field(json_schema_extra={"x-sensitive": True}, default=1)
    word: str = Field(json_schema_extra={"x-sensitive": True}, default="")

    @field_validator("word")
    @classmethod
    def not_a_secret(cls, value: str) -> str:
        if value:
            raise ValueError(f"{value} is not a good word")
        return value


@pytest.mark.requirement("NFR-SEC-002", "NFR-SEC-003")
@pytest.mark.parametrize("arguments", [{"password": [SECRET]}, {"password": "x", "pin": SECRET}], ids=["list", "type"])
async def test_pydantic_never_repeats_an_invalid_value(
    arguments: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    message = await error_text(Sample(echo, schema=Login), arguments)
    assert message.startswith("Input validation failed")
    assert SECRET not in message
    assert not any(SECRET in record.getMessage() for record in caplog.records if record.name.startswith("apcore_mcp"))


@pytest.mark.requirement("NFR-SEC-002")
async def test_a_sensitive_value_in_a_validators_own_words_is_not_repeated() -> None:
    message = await error_text(Sample(echo, schema=Login), {"password": "x", "word": SECRET})
    assert message.startswith("Input validation failed")
    assert SECRET not in message


@pytest.mark.requirement("NFR-SEC-002")
async def test_a_wrong_output_is_not_described() -> None:
    class Output(BaseModel):
        sum: int

    message = await error_text(Sample(lambda inputs, context: {"sum": SECRET}, output=Output))
    assert message == "Output validation failed"


@pytest.mark.requirement("NFR-SEC-003")
async def test_a_tool_definition_says_what_the_schema_says_and_no_value() -> None:
    registry = registry_of({"login": Sample(schema=SENSITIVE)})
    (tool,) = MCPServerFactory().build_tools(registry)
    assert tool.input_schema == SENSITIVE
    (definition,) = to_openai_tools(registry)
    assert definition["function"]["parameters"] == SENSITIVE


@pytest.mark.requirement("NFR-SEC-002", "NFR-REL-002")
async def test_a_module_that_cannot_be_imported_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text(EXTENSION)
    (tmp_path / "broken.py").write_text(f"raise RuntimeError({SECRET!r})")
    registry = Registry(extensions_dir=str(tmp_path))
    registry.discover()
    router = ExecutionRouter(Executor(registry))
    assert [tool.name for tool in MCPServerFactory().build_tools(registry)] == ["greet"]
    assert '"Hello you"' in text_of(await router.handle_call("greet", {"name": "you"}))
    assert text_of(await router.handle_call("broken", {})) == "Module not found: broken"


@pytest.mark.requirement("NFR-SEC-001")
async def test_streaming_passes_the_acl_too() -> None:
    ran: list[bool] = []

    class Spy(Streaming):
        async def stream(self, inputs: dict[str, Any], context: Any) -> Any:
            ran.append(True)
            yield {}

    deny = ACL([ACLRule(callers=["*"], targets=["*"], effect="deny")])
    bridge = Bridge(Executor(registry_of({"s": Spy()}), acl=deny), Options())

    async def progress(progress: float, total: float | None, message: str | None) -> None: ...

    async with bridge.running(), Client(bridge.endpoint.server, mode="legacy") as client:
        result = await client.call_tool("s", {}, progress_callback=progress)
    assert (result.is_error, text_of(result)) == (True, "Access denied")
    assert ran == []
