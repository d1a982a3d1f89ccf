"""What a call answers: results with structure, errors that help and tell nothing about the inside."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from apcore import ACL, ACLRule, Config, Executor, Registry
from mcp import Client

from e2e.conftest import Connect
from e2e.modules import SECRET, Journal
from e2e.servers import Address, serving
from e2e.wire import ERAS, MODERN
from mcp_text import text_of
from waiting import DEADLINE

pytestmark = pytest.mark.anyio

INSIDE = [SECRET, "/srv/app", ".py", "Traceback", "ZeroDivisionError", "RuntimeError", "QUOTA:", "caller", "external"]


@pytest.mark.requirement("FR-SCHEMA-005", "FR-EXEC-002", "FR-SERVER-011", "FR-ANNOT-002")
async def test_a_result_has_its_structure_beside_its_text(connect: Connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        add = tools["math.add"]
        assert add.description == "Add two integers"
        assert add.input_schema["required"] == ["a", "b"]
        assert add.output_schema is not None
        assert add.output_schema["properties"]["sum"]["type"] == "integer"
        assert add.annotations is not None
        assert (add.annotations.read_only_hint, add.annotations.idempotent_hint) == (True, True)
        result = await client.call_tool("math.add", {"a": 1, "b": 2})
        assert not result.is_error
        assert result.structured_content == json.loads(text_of(result)) == {"sum": 3}
        nothing = await client.call_tool("give.nothing")
        assert json.loads(text_of(nothing)) == {}


ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "fail.leak": ({}, "Internal error occurred"),
    "fail.refuse": ({}, "Module error: QUOTA_EXCEEDED"),
    "give.list": ({}, "Internal error occurred"),
    "no.such": ({}, "Module not found: no.such"),
    "No-Such": ({}, "Module not found: No-Such"),
}


@pytest.mark.requirement("FR-ERROR-001", "FR-ERROR-009", "FR-ERROR-010", "NFR-SEC-002", "FR-EXEC-007")
async def test_errors_say_what_the_client_may_know_over_every_transport(connect: Connect) -> None:
    async with connect() as client:
        for name, (arguments, expected) in ERRORS.items():
            result = await client.call_tool(name, arguments)
            assert result.is_error, name
            assert text_of(result) == expected
            assert result.structured_content is None
            dumped = result.model_dump_json()
            assert [word for word in INSIDE if word in dumped] == []


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-ERROR-004", "FR-EXEC-005")
async def test_a_module_that_takes_too_long_is_timed_out(samples: Registry, era: str) -> None:
    executor = Executor(samples, config=Config(data={"executor": {"default_timeout": 50}}))
    with serving(executor) as address:
        async with Client(address.mcp, mode=era) as client:
            result = await client.call_tool("work.nap", {"key": "k", "seconds": 1.0})
    assert (result.is_error, text_of(result)) == (True, "Module timed out after 50ms")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-ERROR-002", "NFR-SEC-002", "NFR-SEC-003")
async def test_a_validation_error_names_the_field_and_not_the_secret(address: Address, era: str) -> None:
    async with Client(address.mcp, mode=era) as client:
        missing = await client.call_tool("math.add", {"a": 1})
        wrong = await client.call_tool("math.add", {"a": 1, "b": "two"})
        secret = await client.call_tool("fail.login", {"user": "u", "password": SECRET})
    assert text_of(missing).startswith("Input validation failed:\n- b: ")
    assert text_of(wrong).startswith("Input validation failed:\n- b: ")
    assert text_of(secret).startswith("Input validation failed")
    assert SECRET not in secret.model_dump_json()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-EXEC-002", "NFR-SEC-002")
async def test_output_that_json_cannot_carry_is_an_error_and_the_session_goes_on(address: Address, era: str) -> None:
    async with Client(address.mcp, mode=era) as client:
        for name in ("give.nan", "give.loop", "give.surrogate"):
            result = await client.call_tool(name)
            assert result.is_error, name
            assert [word for word in INSIDE if word in result.model_dump_json()] == []
        assert not (await client.call_tool("give.bytes")).is_error
        assert (await client.call_tool("math.add", {"a": 1, "b": 2})).structured_content == {"sum": 3}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-ERROR-003", "NFR-SEC-001", "NFR-SEC-002", "FR-EXEC-005")
async def test_the_acl_decides_and_its_refusal_names_nobody(samples: Registry, journal: Journal, era: str) -> None:
    acl = ACL([ACLRule(callers=["*"], targets=["math.*"], effect="allow")], default_effect="deny")
    with serving(Executor(samples, acl=acl), explorer=True, allow_execute=True) as address:
        async with Client(address.mcp, mode=era) as client, httpx2.AsyncClient(timeout=DEADLINE) as http:
            assert (await client.call_tool("math.add", {"a": 1, "b": 1})).structured_content == {"sum": 2}
            denied = await client.call_tool("secret.vault")
            explored = await http.post(address / "explorer/tools/secret.vault/call", json={})
    assert (denied.is_error, text_of(denied)) == (True, "Access denied")
    assert (explored.status_code, explored.json()) == (500, {"error": "Access denied"})
    assert "external" not in denied.model_dump_json()
    assert "vault opened" not in journal


@pytest.mark.requirement("NFR-SEC-002", "FR-ERROR-009")
async def test_the_cause_of_an_internal_error_is_in_the_log(address: Address, caplog: pytest.LogCaptureFixture) -> None:
    async with Client(address.mcp, mode=MODERN) as client:
        await client.call_tool("fail.leak")
    assert SECRET in caplog.text
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.requirement("NFR-SEC-002")
async def test_a_hostile_tool_name_cannot_forge_a_line_of_the_log(
    address: Address, caplog: pytest.LogCaptureFixture
) -> None:
    forged = "x\n2026-01-01 INFO approved"
    async with Client(address.mcp, mode="legacy") as client:
        result = await client.call_tool(forged)
    assert result.is_error
    assert all("\n2026" not in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("NFR-REL-002", "FR-CLI-001", "FR-CLI-002")
async def test_bad_extension_files_do_not_keep_the_good_ones_from_being_served(tmp_path: Path, era: str) -> None:
    good = (
        "from pydantic import BaseModel\n"
        "class In(BaseModel):\n    a: int\n"
        "class Out(BaseModel):\n    a: int\n"
        "class Good:\n"
        "    description = 'good'\n    input_schema = In\n    output_schema = Out\n"
        "    def execute(self, inputs, context):\n        return {'a': inputs['a']}\n"
    )
    files = {
        "good.py": good,
        "raises.py": "raise RuntimeError('at import')\n",
        "syntax.py": "def broken(:\n",
        "empty.py": "",
        "binary.py": "\x00\x01",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    registry = Registry(extensions_dir=str(tmp_path))
    registry.discover()
    with serving(registry) as address:
        async with Client(address.mcp, mode=era) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["good"]
            assert (await client.call_tool("good", {"a": 5})).structured_content == {"a": 5}
