"""What the filters hide is hidden everywhere: from lists, calls, resources, changes and the Explorer."""

import json
from typing import Any

import httpx2
import pytest
from apcore import Registry
from mcp import Client
from mcp.shared.exceptions import MCPError

from e2e.modules import Add, Journal, Vault
from e2e.servers import serving
from e2e.wire import ERAS
from mcp_text import contents_of, text_of
from waiting import DEADLINE

pytestmark = pytest.mark.anyio

FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"tags": ["public"]}, ["math.add", "text.shout"]),
    ({"tags": ["public", "math"]}, ["math.add"]),
    ({"prefix": "text."}, ["text.shout"]),
    ({"tags": ["public"], "prefix": "math."}, ["math.add"]),
    ({"tags": ["nonexistent"]}, []),
    ({"prefix": "nonexistent."}, []),
]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("filters", "visible"), FILTERS, ids=[json.dumps(f) for f, _ in FILTERS])
@pytest.mark.requirement("FR-SERVER-008", "FR-SERVER-009", "FR-RESOURCE-001", "FR-EXPLORER-002", "FR-ERROR-001")
async def test_filters_hold_for_list_call_resources_and_explorer_alike(
    samples: Registry, journal: Journal, filters: dict[str, Any], visible: list[str], era: str
) -> None:
    with serving(samples, explorer=True, allow_execute=True, **filters) as address:
        async with Client(address.mcp, mode=era) as client, httpx2.AsyncClient(timeout=DEADLINE) as http:
            assert [tool.name for tool in (await client.list_tools()).tools] == visible
            assert [str(r.uri) for r in (await client.list_resources()).resources] == [f"docs://{n}" for n in visible]
            health = (await http.get(address / "health")).json()
            assert health["module_count"] == len(visible)
            listed = (await http.get(address / "explorer/tools")).json()
            assert [tool["name"] for tool in listed] == visible

            hidden = await client.call_tool("secret.vault")
            unknown = await client.call_tool("no.such")
            assert (hidden.is_error, text_of(hidden)) == (True, "Module not found: secret.vault")
            assert (unknown.is_error, text_of(unknown)) == (True, "Module not found: no.such")
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource("docs://secret.vault")
            assert (await http.get(address / "explorer/tools/secret.vault")).status_code == 404
            called = await http.post(address / "explorer/tools/secret.vault/call", json={})
            assert (called.status_code, called.json()) == (404, {"error": "Tool 'secret.vault' not found"})
    assert "vault opened" not in journal


@pytest.mark.requirement("FR-SERVER-008", "FR-DYNAMIC-001", "FR-DYNAMIC-002")
async def test_filters_hold_for_modules_that_come_later(samples: Registry, journal: Journal) -> None:
    with serving(samples, tags=["public"], prefix="math.") as address:
        async with Client(address.mcp, mode="legacy") as client:
            for name, module in {
                "math.more": Add(journal),
                "math.hidden": Vault(journal),
                "other.add": Add(journal),
            }.items():
                samples.register(name, module)
            assert [tool.name for tool in (await client.list_tools()).tools] == ["math.add", "math.more"]
            assert text_of(await client.call_tool("math.hidden")) == "Module not found: math.hidden"
            samples.unregister("math.more")
            assert [tool.name for tool in (await client.list_tools()).tools] == ["math.add"]


@pytest.mark.requirement("FR-SERVER-008", "FR-SERVER-011")
async def test_no_tags_is_no_filter(samples: Registry) -> None:
    with serving(samples, tags=[]) as address:
        async with Client(address.mcp, mode="legacy") as client:
            assert [t.name for t in (await client.list_tools()).tools] == samples.list()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-RESOURCE-001", "FR-RESOURCE-002")
async def test_documentation_is_served_as_resources(samples: Registry, journal: Journal, era: str) -> None:
    for name, documentation in {"doc.none": None, "doc.empty": "", "doc.some": "Text, ünïcode."}.items():
        module = Add(journal)
        module.documentation = documentation
        samples.register(name, module)
    with serving(samples, prefix="doc.") as address:
        async with Client(address.mcp, mode=era) as client:
            [resource] = (await client.list_resources()).resources
            assert str(resource.uri) == "docs://doc.some"
            content = contents_of(await client.read_resource("docs://doc.some"))
            assert content.text == "Text, ünïcode."
            assert content.mime_type == "text/plain"
            for uri in ("docs://doc.none", "docs://doc.empty", "docs://no.such", "file:///etc/passwd", "docs://../x"):
                with pytest.raises(MCPError, match="Resource not found"):
                    await client.read_resource(uri)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-SERVER-006", "FR-HEALTH-001")
async def test_an_empty_registry_serves_zero_tools(era: str, caplog: pytest.LogCaptureFixture) -> None:
    with serving(Registry()) as address:
        async with Client(address.mcp, mode=era) as client:
            assert (await client.list_tools()).tools == []
            assert text_of(await client.call_tool("x")) == "Module not found: x"
    assert "No modules registered; server starting with zero tools" in caplog.messages
