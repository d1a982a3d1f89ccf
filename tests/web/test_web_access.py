"""The console changes what an agent may use in the project file: after a look at it, that alone, and undoably."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from toolgrove import Grove
from toolgrove.config import ConfigFile
from toolgrove.reload import take_change
from toolgrove.store.state import OPERATOR

pytestmark = pytest.mark.anyio

PROJECT = """\
# The garden.
agents:
  reader:  # looks only
    tools: [get_*, "list_*"]  # what it needs
    deny: [list_tags]
  writer:
    role: editor
    tools:
      - get_node   # to look
      - add_child
      - remove_*

    # Removing is for good.
    approve: ["remove_*"]

  buyer:
    role: editor
    tools: ["order", get_node]

# Where we order.
httpTools:
  order:
    method: POST
    url: https://shop.example/orders
    headers: {Authorization: "Bearer s3cr3t-w0rd"}
"""


@pytest.fixture
def file(tmp_path: Path) -> ConfigFile:
    path = tmp_path / "toolgrove.yaml"
    path.write_text(PROJECT)
    return ConfigFile(path)


@pytest.fixture
async def grove(file: ConfigFile) -> AsyncIterator[Grove]:
    with anyio.fail_after(60):
        async with Grove(file.config) as grove:
            grove.file = file
            yield grove


@pytest.fixture
async def http(grove: Grove) -> AsyncIterator[httpx2.AsyncClient]:
    app = grove.asgi_app()
    headers = {"Authorization": f"Bearer {grove.tokens.issue(OPERATOR, by='the test')}"}
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client,
    ):
        yield client


async def preview(http: httpx2.AsyncClient, agent: str, tool: str, want: str) -> dict[str, Any]:
    response = await http.post("/api/access/preview", json={"agent": agent, "tool": tool, "want": want})
    answer: dict[str, Any] = response.json()
    return answer


async def change(http: httpx2.AsyncClient, agent: str, tool: str, want: str) -> dict[str, Any]:
    digest = (await preview(http, agent, tool, want))["digest"]
    body = {"agent": agent, "tool": tool, "want": want, "digest": digest}
    answer: dict[str, Any] = (await http.post("/api/access", json=body)).json()
    return answer


async def standing(grove: Grove, agent: str, tool: str) -> str:
    resolved = await grove.agent(agent)
    return "asks" if tool in resolved.approvals else resolved.receipt[tool].verdict


async def test_a_look_at_a_change_shows_its_lines_and_what_it_means_and_writes_nothing(
    http: httpx2.AsyncClient, file: ConfigFile
) -> None:
    told = await preview(http, "reader", "search", "grant")
    assert told["diff"].splitlines() == [
        "@@ -3,3 +3,3 @@",
        "   reader:  # looks only",
        '-    tools: [get_*, "list_*"]  # what it needs',
        '+    tools: [get_*, "list_*", search]  # what it needs',
        "     deny: [list_tags]",
    ]
    assert told["steps"] == ["Add search to tools."]
    assert told["effects"] == [{"tool": "search", "before": "denied", "after": "granted"}]
    assert (told["file"], told["writable"], told["why"]) == ("toolgrove.yaml", True, "")
    assert file.path.read_text() == PROJECT


async def test_a_grant_is_written_with_all_comments_kept_and_in_force_at_once(
    http: httpx2.AsyncClient, grove: Grove, file: ConfigFile
) -> None:
    assert (await change(http, "reader", "search", "grant"))["taken"]
    assert file.path.read_text() == PROJECT.replace('"list_*"]', '"list_*", search]')
    assert await standing(grove, "reader", "search") == "granted"


@pytest.mark.parametrize(
    ("agent", "tool", "want", "before", "after", "stands"),
    [
        ("reader", "list_tags", "grant", "deny: [list_tags]", "deny: []", "granted"),
        ("writer", "add_child", "ask", '["remove_*"]', '["remove_*", add_child]', "asks"),
        ("writer", "add_child", "hide", "      - add_child\n", "", "denied"),
        ("writer", "remove_node", "hide", '"remove_*"]\n', '"remove_*"]\n    deny: [remove_node]\n', "denied"),
        ("writer", "remove_node", "grant", 'approve: ["remove_*"]', "approve: []", "granted"),
        ("writer", "get_path", "ask", "- remove_*\n", "- remove_*\n      - get_path\n", "asks"),
    ],
)
async def test_each_wish_is_the_smallest_change_that_fulfils_it(
    http: httpx2.AsyncClient,
    grove: Grove,
    file: ConfigFile,
    agent: str,
    tool: str,
    want: str,
    before: str,
    after: str,
    stands: str,
) -> None:
    await change(http, agent, tool, want)
    wanted = PROJECT.replace(before, after)
    if tool == "get_path":
        wanted = wanted.replace('["remove_*"]', '["remove_*", get_path]')
    assert file.path.read_text() == wanted
    assert await standing(grove, agent, tool) == stands


async def test_a_reader_that_is_granted_a_changing_tool_becomes_an_editor_and_what_else_changes_is_told(
    http: httpx2.AsyncClient, grove: Grove
) -> None:
    await change(http, "reader", "tag_node", "grant")
    assert await standing(grove, "reader", "tag_node") == "granted"
    assert grove.config.agents["reader"].role == "editor"
    told = await preview(http, "writer", "remove_node", "grant")
    assert {one["tool"] for one in told["effects"]} == {"remove_node", "remove_bookmark"}


async def test_only_the_file_that_was_looked_at_is_written_over(http: httpx2.AsyncClient, file: ConfigFile) -> None:
    seen = (await preview(http, "reader", "search", "grant"))["digest"]
    newer = PROJECT.replace("# The garden.", "# The large garden.")
    file.path.write_text(newer)
    wish = {"agent": "reader", "tool": "search", "want": "grant", "digest": seen}
    refused = await http.post("/api/access", json=wish)
    assert refused.status_code == 409
    assert refused.json()["error"]["reason"] == "file_changed"
    assert file.path.read_text() == newer
    assert [one.name for one in file.path.parent.iterdir() if one.is_file() and one != file.path] == []


async def test_a_change_can_be_undone_until_someone_else_changes_the_file(
    http: httpx2.AsyncClient, grove: Grove, file: ConfigFile
) -> None:
    digest = (await change(http, "reader", "search", "grant"))["digest"]
    assert (await http.post("/api/access/undo", json={"digest": digest})).json()["taken"]
    assert file.path.read_text() == PROJECT
    assert await standing(grove, "reader", "search") == "denied"
    assert (await http.post("/api/access/undo", json={"digest": digest})).status_code == 404
    again = (await change(http, "reader", "search", "grant"))["digest"]
    file.path.write_text(file.path.read_text() + "# mine\n")
    refused = await http.post("/api/access/undo", json={"digest": again})
    assert refused.json()["error"]["reason"] == "file_changed"
    assert file.path.read_text().endswith("# mine\n")


async def test_every_change_and_every_undo_is_on_record_as_the_operators(
    http: httpx2.AsyncClient, grove: Grove
) -> None:
    digest = (await change(http, "writer", "add_child", "ask"))["digest"]
    await http.post("/api/access/undo", json={"digest": digest})
    records = (await http.get("/api/audit", params={"kind": "configuration"})).json()["items"]
    deeds = [one for one in records if one["operation"].startswith("access.")]
    assert [(one["operation"], one["by"], one["agent"], one["targets"]) for one in deeds] == [
        ("access.changed", "operator", "writer", ["add_child"]),
        ("access.undone", "operator", "writer", ["add_child"]),
    ]
    assert deeds[0]["details"]["want"] == "ask"
    assert '+    approve: ["remove_*", add_child]' in deeds[0]["details"]["diff"]


async def test_what_no_key_of_an_agent_decides_is_refused_with_the_reason(
    http: httpx2.AsyncClient, file: ConfigFile
) -> None:
    refused = (await preview(http, "buyer", "order", "grant"))["error"]
    assert refused["code"] == "invalid_argument"
    assert "Its source asks for an approval" in refused["message"]
    assert (await preview(http, "nobody", "order", "grant"))["error"]["code"] == "not_found"
    assert (await preview(http, "buyer", "nothing", "grant"))["error"]["code"] == "not_found"
    assert file.path.read_text() == PROJECT


@pytest.mark.parametrize(
    "body",
    [
        {"agent": "reader", "tool": "search", "want": "grant", "digest": "", "set": {"httpTools": {}}},
        {"agent": "reader", "tool": "search", "want": "command", "digest": ""},
        {"agent": "reader", "key": "mcpServers.x.command", "value": "sh", "digest": ""},
    ],
)
async def test_there_is_no_way_to_name_any_other_key(
    http: httpx2.AsyncClient, file: ConfigFile, body: dict[str, Any]
) -> None:
    assert (await http.post("/api/access", json=body)).status_code == 400
    assert file.path.read_text() == PROJECT


async def test_a_change_that_would_reach_beyond_the_agents_access_is_refused(
    http: httpx2.AsyncClient, grove: Grove, file: ConfigFile
) -> None:
    shared = PROJECT.replace("tools: [get_*", "tools: &names [get_*").replace('["order", get_node]', "*names")
    file.path.write_text(shared)
    refused = await preview(http, "reader", "search", "grant")
    assert refused["error"]["reason"] == "not_editable"
    assert "more than the access of this agent" in refused["error"]["message"]
    written = await http.post(
        "/api/access", json={"agent": "reader", "tool": "search", "want": "grant", "digest": file.text()[1]}
    )
    assert written.status_code == 400
    assert file.path.read_text() == shared


async def test_a_file_with_an_error_is_not_edited_and_the_error_is_told_with_its_line_until_it_is_mended(
    http: httpx2.AsyncClient, grove: Grove, file: ConfigFile
) -> None:
    file.path.write_text(PROJECT.replace("agents:", "agentz:"))
    assert not await take_change(file, grove)
    (problem,) = (await http.get("/api/project")).json()["configuration"]
    assert (problem["line"], problem["path"]) == (2, "agentz")
    assert "did you mean 'agents'" in problem["message"]
    refused = await preview(http, "reader", "search", "grant")
    assert refused["error"]["code"] == "conflict"
    file.path.write_text(PROJECT)
    await take_change(file, grove)
    assert (await http.get("/api/project")).json()["configuration"] == []


@pytest.mark.services
async def test_where_replicas_may_serve_the_change_is_shown_and_not_written(tmp_path: Path, database: str) -> None:
    path = tmp_path / "toolgrove.yaml"
    path.write_text(f"{PROJECT}workspace: {{store: {json.dumps(database)}}}\n")
    file = ConfigFile(path)
    with anyio.fail_after(60):
        async with Grove(file.config) as grove:
            grove.file = file
            app = grove.asgi_app()
            headers = {"Authorization": f"Bearer {grove.tokens.issue(OPERATOR, by='the test')}"}
            transport = httpx2.ASGITransport(app=app)
            async with (
                app.router.lifespan_context(app),
                httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http,
            ):
                before = path.read_text()
                told = await preview(http, "reader", "search", "grant")
                assert "search]" in told["diff"]
                assert (told["writable"], "where you deploy from" in told["why"]) == (False, True)
                refused = await change(http, "reader", "search", "grant")
                assert refused["error"]["reason"] == "not_written_here"
                undone = await http.post("/api/access/undo", json={"digest": told["digest"]})
                assert undone.status_code == 409
                assert path.read_text() == before


async def test_an_agent_can_neither_look_nor_write(grove: Grove, file: ConfigFile) -> None:
    app = grove.asgi_app()
    headers = {"Authorization": f"Bearer {grove.tokens.issue('writer')}"}
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http:
        for method, path in (
            ("POST", "/api/access/preview"),
            ("POST", "/api/access"),
            ("POST", "/api/access/undo"),
            ("GET", "/api/tokens"),
            ("POST", "/api/tokens"),
            ("DELETE", "/api/tokens/x"),
            ("GET", "/api/sources"),
            ("POST", "/api/sources/order/restart"),
        ):
            assert (await http.request(method, path, json={})).status_code == 403, path


async def test_tokens_of_agents_are_made_once_listed_without_themselves_and_revoked(
    http: httpx2.AsyncClient, grove: Grove
) -> None:
    made = (await http.post("/api/tokens", json={"agent": "reader", "days": 30})).json()
    assert made["token"].startswith("tg_")
    listed = (await http.get("/api/tokens")).json()["items"]
    assert made["token"] not in str(listed)
    mine, hers = listed
    assert (mine["holder"], mine["current"]) == ("operator", True)
    assert (hers["id"], hers["holder"], hers["standing"], hers["used"]) == (made["id"], "reader", "good", False)
    assert hers["expiresAt"] is not None
    own = {"Authorization": f"Bearer {made['token']}"}
    assert (await http.get("/agents/reader/receipt", headers=own)).status_code == 200
    assert (await http.delete(f"/api/tokens/{mine['id']}")).status_code == 409
    assert (await http.delete(f"/api/tokens/{made['id']}")).json() == {"id": made["id"]}
    assert (await http.delete(f"/api/tokens/{made['id']}")).status_code == 404
    assert [one["holder"] for one in (await http.get("/api/tokens")).json()["items"]] == ["operator"]
    for holder in ("operator", OPERATOR, "nobody"):
        assert (await http.post("/api/tokens", json={"agent": holder})).status_code == 404
    records = (await http.get("/api/audit", params={"kind": "token"})).json()["items"]
    assert [(one["operation"], one["by"]) for one in records if one["agent"] == "reader"][:1] == [
        ("token.made", "operator")
    ]


async def test_a_receipt_says_which_calls_a_person_approves(http: httpx2.AsyncClient) -> None:
    tools = (await http.get("/agents/writer/receipt")).json()["tools"]
    assert tools["remove_node"]["approval"] == "approve: remove_*"
    assert tools["add_child"]["approval"] is None
