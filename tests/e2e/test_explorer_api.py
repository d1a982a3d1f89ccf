"""The JSON that the Explorer page lives on."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from apcore import Registry

from apcore_mcp import __version__
from e2e.modules import Add, Journal
from e2e.servers import Address, serving
from waiting import DEADLINE


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=DEADLINE) as opened:
        yield opened


@pytest.fixture
def exploring(samples: Registry) -> Iterator[Address]:
    with serving(samples, explorer=True, allow_execute=True) as address:
        yield address


@pytest.mark.requirement("FR-EXPLORER-001", "FR-EXPLORER-005")
def test_the_page_is_one_file_without_foreign_requests(exploring: Address, client: httpx2.Client) -> None:
    page = client.get(exploring / "explorer/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "<script src" not in page.text
    assert '<link rel="stylesheet"' not in page.text
    without_slash = client.get(exploring / "explorer")
    assert without_slash.status_code in (200, 307)
    assert client.get(exploring / "explorer", follow_redirects=True).text == page.text


@pytest.mark.requirement("FR-EXPLORER-002")
def test_the_list_has_one_summary_per_tool(exploring: Address, client: httpx2.Client, samples: Registry) -> None:
    tools = client.get(exploring / "explorer/tools").json()
    assert [tool["name"] for tool in tools] == samples.list()
    [add] = [tool for tool in tools if tool["name"] == "math.add"]
    assert add["description"] == "Add two integers"
    assert add["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": True,
    } | {key: value for key, value in add["annotations"].items() if key == "title"}
    assert all(isinstance(tool["annotations"]["readOnlyHint"], bool) for tool in tools)


@pytest.mark.requirement("FR-EXPLORER-003")
def test_the_detail_has_the_schema_and_an_unknown_tool_is_404(exploring: Address, client: httpx2.Client) -> None:
    add = client.get(exploring / "explorer/tools/math.add").json()
    assert {"name", "description", "annotations", "inputSchema"} <= set(add)
    assert add["inputSchema"]["required"] == ["a", "b"]
    assert add["outputSchema"]["properties"]["sum"]["type"] == "integer"
    assert add["documentation"].startswith("# Add")
    for name in ("no.such", "No-Such", "math", "math.add.more", "%00", "..%2Ftools"):
        missing = client.get(exploring / f"explorer/tools/{name}")
        assert missing.status_code == 404, name
    assert client.get(exploring / "explorer/tools/no.such").json() == {"error": "Tool 'no.such' not found"}


@pytest.mark.requirement("FR-EXPLORER-001")
def test_the_info_says_what_the_page_needs(samples: Registry, client: httpx2.Client) -> None:
    cases: list[tuple[dict[str, Any], tuple[str, str], bool]] = [
        ({"allow_execute": True, "name": "n", "version": "3"}, ("n", "3"), True),
        ({}, ("apcore-mcp", __version__), False),
    ]
    for options, name, allowed in cases:
        with serving(samples, explorer=True, **options) as address:
            info = client.get(address / "explorer/info").json()
        assert (info["name"], info["version"]) == name
        assert info["allowExecute"] is allowed


@pytest.mark.requirement("FR-EXPLORER-004", "FR-EXEC-003")
def test_a_call_answers_the_result_or_a_fitting_error(exploring: Address, client: httpx2.Client) -> None:
    def call(name: str, arguments: Any) -> tuple[int, Any]:
        response = client.post(exploring / f"explorer/tools/{name}/call", json=arguments)
        return response.status_code, response.json()

    assert call("math.add", {"a": 1, "b": 2}) == (200, {"result": {"sum": 3}})
    assert call("no.such", {}) == (404, {"error": "Tool 'no.such' not found"})
    assert call("fail.leak", {}) == (500, {"error": "Internal error occurred"})
    assert call("fail.refuse", {}) == (500, {"error": "Module error: QUOTA_EXCEEDED"})
    status, body = call("math.add", {"a": 1})
    assert status == 400
    assert body["error"].startswith("Input validation failed")
    for odd in ([], "text", 5, [{"a": 1}]):
        status, body = call("math.add", odd)
        assert (status, set(body)) == (400, {"error"}), odd


@pytest.mark.requirement("FR-EXPLORER-004")
def test_without_permission_nothing_runs(samples: Registry, client: httpx2.Client, journal: Journal) -> None:
    with serving(samples, explorer=True) as address:
        for name in ("secret.vault", "no.such"):
            refused = client.post(address / f"explorer/tools/{name}/call", json={})
            assert (refused.status_code, refused.json()) == (403, {"error": "Tool execution is disabled"})
        assert client.get(address / "explorer/tools/secret.vault").status_code == 200
        assert client.get(address / "explorer/tools/secret.vault/call").status_code == 405
    assert "vault opened" not in journal


@pytest.mark.requirement("FR-EXPLORER-004")
def test_other_pages_cannot_run_tools(exploring: Address, client: httpx2.Client, journal: Journal) -> None:
    url = exploring / "explorer/tools/secret.vault/call"
    # Another page on this machine is another origin too: its port differs.
    for origin in ("http://evil.com", "null", "http://localhost:1", f"http://127.0.0.1:{exploring.port + 1}"):
        assert client.post(url, json={}, headers={"Origin": origin}).status_code == 403, origin
    for site in ("cross-site", "same-site"):  # what a browser says where it says no Origin
        assert client.post(url, json={}, headers={"Sec-Fetch-Site": site}).status_code == 403, site
    simple = {
        "text/plain": b"{}",
        "application/x-www-form-urlencoded": b"a=1",
        "multipart/form-data; boundary=x": b"--x--",
    }
    for content_type, body in simple.items():
        assert client.post(url, content=body, headers={"Content-Type": content_type}).status_code in (400, 415)
    assert client.post(url, content=b"{}").status_code == 415
    assert "vault opened" not in journal
    own = {"Origin": f"http://127.0.0.1:{exploring.port}", "Sec-Fetch-Site": "same-origin"}
    assert client.post(url, json={}, headers=own).json() == {"result": {"open": True}}
    typed = own | {"Content-Type": "application/json; charset=utf-8"}
    assert client.post(url, content=b"{}", headers=typed).status_code == 200


@pytest.mark.parametrize("prefix", ["/custom", "/custom/", "/a/b"])
@pytest.mark.requirement("FR-EXPLORER-006")
def test_the_prefix_moves_every_endpoint(samples: Registry, client: httpx2.Client, prefix: str) -> None:
    with serving(samples, explorer=True, allow_execute=True, explorer_prefix=prefix) as address:
        base = prefix.strip("/")
        assert client.get(address / f"{base}/").status_code == 200
        assert client.get(address / f"{base}", follow_redirects=True).status_code == 200
        assert client.get(address / f"{base}/tools").status_code == 200
        assert client.get(address / f"{base}/tools/math.add").status_code == 200
        called = client.post(address / f"{base}/tools/math.add/call", json={"a": 1, "b": 2})
        assert called.json() == {"result": {"sum": 3}}
        for path in ("explorer", "explorer/", "explorer/tools"):
            assert client.get(address / path).status_code == 404


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
@pytest.mark.requirement("FR-EXPLORER-001")
def test_the_explorer_is_there_only_when_asked_for(samples: Registry, client: httpx2.Client, transport: str) -> None:
    with serving(samples, transport=transport) as address:
        for path in ("explorer", "explorer/", "explorer/tools", "explorer/info"):
            assert client.get(address / path).status_code == 404
    with serving(samples, transport=transport, explorer=True) as address:
        assert client.get(address / "explorer/").status_code == 200
        assert client.get(address / "explorer/tools").status_code == 200


@pytest.mark.requirement("FR-EXPLORER-002", "FR-DYNAMIC-001")
def test_the_list_follows_the_registry(
    exploring: Address, client: httpx2.Client, samples: Registry, journal: Journal
) -> None:
    samples.register("later.add", Add(journal))
    assert client.get(exploring / "explorer/tools/later.add").status_code == 200
    samples.unregister("later.add")
    assert client.get(exploring / "explorer/tools/later.add").status_code == 404


@pytest.mark.requirement("FR-EXPLORER-002", "NFR-SEC-002")
def test_answers_are_not_cached_and_not_sniffed(exploring: Address, client: httpx2.Client) -> None:
    for path in ("explorer/", "explorer/info", "explorer/tools", "explorer/tools/math.add", "explorer/tools/no.such"):
        headers = client.get(exploring / path).headers
        assert headers["cache-control"] == "no-store", path
        assert headers["x-content-type-options"] == "nosniff", path
