"""Logins to an MCP server that asks for OAuth: its authorization server is the SDK's own, in a process beside."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import anyio
import httpx2
import pytest

from pool.canary.haul import hauling
from ports import free_port
from toolgrove import Config, Grove
from toolgrove.pool.mcp.scopes import missing_scopes
from toolgrove.project_state import ProjectState
from toolgrove.store.state import OPERATOR, Login
from waiting import DEADLINE, eventually, wait_until
from warm.command import Process, python

pytestmark = pytest.mark.anyio
GUARDED = Path(__file__).with_name("guarded.py")
SECRET = "machine-Secret/9+x=7"
MACHINE = {"clientId": "machine", "clientSecret": "${env:MACHINE_SECRET}", "grant": "client_credentials"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Upstream:
    """The server that asks for a login, and what it tells a test."""

    port: int
    path: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.path}"

    def control(self, what: str) -> dict[str, Any]:
        answer: dict[str, Any] = httpx2.get(f"http://127.0.0.1:{self.port}/control/{what}").json()
        return answer

    def grants(self) -> list[str]:
        return [how for path, how in self.control("seen")["seen"] if path == "/token"]


def _started(kind: str) -> Iterator[Upstream]:
    upstream = Upstream(port=free_port(), path=kind)
    with Process(python(GUARDED, str(upstream.port), kind)) as process:
        try:
            wait_until(lambda: _answers(upstream))
            yield upstream
        finally:
            process.kill()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    yield from _started("mcp")


def _answers(upstream: Upstream) -> bool:
    try:
        return bool(upstream.control("seen"))
    except httpx2.TransportError:
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A project file with the server in it."""

    folder: Path
    upstream: Upstream

    def write(self, **server: Any) -> Config:
        entry = {"url": self.upstream.url, "oauth": {}, **server}
        sections = {
            "mcpServers": {"web": entry},
            "agents": {"a": {"role": "editor", "tools": ["*"]}},
            "startupBudget": 20,
        }
        (self.folder / "toolgrove.yaml").write_text(json.dumps(sections))
        return Config.load(self.folder / "toolgrove.yaml")

    def login(self, *words: str) -> Process:
        return Process(
            python("-m", "toolgrove", "login", "web", "--no-browser", "--json", *words),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def logout(self) -> dict[str, Any]:
        words = python("-m", "toolgrove", "logout", "web", "--json")
        with Process(words, cwd=self.folder, stdout=subprocess.PIPE, text=True) as process:
            out, _ = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0
        told: dict[str, Any] = json.loads(out)
        return told

    def kept(self) -> Login | None:
        with ProjectState.of(Config.load(self.folder / "toolgrove.yaml")) as state:
            return state.logins.of("web")

    def change(self, **parts: Any) -> None:
        with ProjectState.of(Config.load(self.folder / "toolgrove.yaml")) as state:
            login = state.logins.of("web")
            assert login is not None
            state.logins.begin(replace(login, **parts))


@pytest.fixture
def project(upstream: Upstream, tmp_path: Path) -> Project:
    return Project(folder=tmp_path, upstream=upstream)


def _address(process: Process) -> str:
    """What the command asks a person to open."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("http"):
            return str(line).strip()
    raise AssertionError("it never named an address")


def _log_in(project: Project, *words: str) -> tuple[str, dict[str, Any], str]:
    """Log in as a browser does: open the address, and follow where it leads."""
    with project.login(*words) as process:
        address = _address(process)
        page = httpx2.get(address, follow_redirects=True, timeout=DEADLINE)
        out, err = process.communicate(timeout=DEADLINE)
    assert page.status_code == 200
    assert "Your answer has arrived" in page.text
    assert process.returncode == 0, (out, err)
    return address, json.loads(out), out + err


def _state(grove: Grove) -> str:
    return grove.pool.latest.sources["web"].problem or ""


def test_a_login_in_the_browser_keeps_tokens_that_only_the_owner_can_read(project: Project) -> None:
    project.write()
    address, answer, said = _log_in(project)
    asked = parse_qs(urlsplit(address).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["resource"] == [project.upstream.url]
    assert asked["scope"] == ["tools"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/callback", asked["redirect_uri"][0])
    assert (answer["server"], answer["scope"], answer["renewable"]) == ("web", "tools", True)
    login = project.kept()
    assert login is not None
    assert {login.access_token, login.refresh_token} == set(project.upstream.control("seen")["tokens"])
    assert login.access_token not in said + repr(login)
    assert str(login.refresh_token) not in said + repr(login)
    file = Config.load(project.folder / "toolgrove.yaml").state_file
    assert file is not None
    assert file.stat().st_mode & 0o077 == 0


def test_an_answer_with_another_state_is_turned_away_and_the_right_one_still_counts(project: Project) -> None:
    project.write()
    with project.login() as process:
        address = _address(process)
        answer = httpx2.get(address).headers["location"]
        parts = urlsplit(answer)
        forged = urlunsplit(parts._replace(query=f"code=stolen&state={quote('x' * 43)}"))
        assert httpx2.get(forged).status_code == 400
        assert httpx2.get(urlunsplit(parts._replace(query="code=stolen"))).status_code == 400
        assert project.kept() is None
        assert httpx2.get(answer).status_code == 200
        process.communicate(timeout=DEADLINE)
    assert process.returncode == 0
    assert project.upstream.grants() == ["authorization_code"]


def test_a_refusal_of_the_person_and_a_foreign_issuer_end_the_login(project: Project) -> None:
    project.write()
    for more, why in (
        ("error=access_denied", "refused the login (access_denied)"),
        ("code=x&iss=https://e", "another"),
    ):
        with project.login() as process:
            asked = parse_qs(urlsplit(_address(process)).query)
            page = httpx2.get(f"{asked['redirect_uri'][0]}?state={asked['state'][0]}&{more}")
            out, _ = process.communicate(timeout=DEADLINE)
        assert "did not succeed" in page.text
        assert process.returncode == 1
        assert why in json.loads(out)["error"]["message"]
    assert project.kept() is None
    assert project.upstream.grants() == []


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("https://10.0.0.1", "names an address for logins that leads to a private address"),
        ("https://169.254.169.254", "names an address for logins that leads to a link-local address"),
        ("http://example.com", "neither https nor on this machine"),
    ],
)
def test_an_authorization_server_at_an_address_that_is_not_reached_is_refused(
    project: Project, named: str, why: str
) -> None:
    project.write()
    project.upstream.control(f"authority?url={quote(named)}")
    with project.login() as process:
        out, _ = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert why in json.loads(out)["error"]["message"]


async def test_a_running_gateway_takes_up_a_login_and_a_logout(project: Project) -> None:
    async with Grove(project.write()) as grove:
        await eventually(lambda: "needs a login: log in with toolgrove login web" in _state(grove))
        await anyio.to_thread.run_sync(_log_in, project)
        await eventually(lambda: not _state(grove) and "web_tell" in grove.pool.latest.offers)
        agent = await grove.agent("a")
        said = json.dumps(await agent.call("web_tell", {}))
        assert "called with [secret web.access_token]" in said
        told = await anyio.to_thread.run_sync(project.logout)
        assert told == {"server": "web", "loggedOut": True, "revoked": True}
        assert project.upstream.control("seen")["tokens"] == []
        assert [how for path, how in project.upstream.control("seen")["seen"] if path == "/revoke"] == [
            "refresh_token",
            "access_token",
        ]
        refused = await agent.call("web_tell", {})
        assert "log in with toolgrove login web" in refused["error"]["message"]
        await eventually(lambda: "needs a login" in _state(grove))
        await eventually(lambda: _on_record(grove) == ["login.made", "login.forgotten"])


def test_a_logout_is_honest_about_a_server_that_could_not_be_told(project: Project) -> None:
    project.write()
    _log_in(project)
    project.upstream.control("deaf")
    told = project.logout()
    assert told["revoked"] is False
    assert "answered with HTTP 503" in told["problem"]
    assert project.kept() is None
    _log_in(project)
    project.change(revocation_endpoint=None)
    (project.folder / "toolgrove.yaml").write_text(json.dumps({"agents": {"a": {}}}))
    told = project.logout()
    assert "names no address for ending a login" in told["problem"]
    assert project.kept() is None


async def test_a_call_that_needs_more_rights_says_how_the_operator_gets_them(project: Project) -> None:
    config = project.write()
    await anyio.to_thread.run_sync(_log_in, project)
    async with Grove(config) as grove:
        agent = await grove.agent("a")
        refused = (await agent.call("web_change", {}))["error"]
        assert refused["code"] == "forbidden"
        assert (refused["reason"], refused["scopes"]) == ("insufficient_scope", ["tools", "files:write"])
        command = "toolgrove login web --scope 'tools files:write'"
        assert command in refused["message"]
        assert "do not retry" in refused["message"]
        await eventually(lambda: command in grove.pool.latest.sources["web"].notice)
        assert not _state(grove)
        assert "called with" in json.dumps(await agent.call("web_tell", {}))
        address, answer, _ = await anyio.to_thread.run_sync(_log_in, project, *shlex.split(command)[3:])
        assert parse_qs(urlsplit(address).query)["scope"] == ["tools files:write"]
        assert answer["scope"] == "tools files:write"
        await eventually(lambda: not grove.pool.latest.sources["web"].notice)
        assert "changed" in json.dumps(await agent.call("web_change", {}))
    again, _, _ = await anyio.to_thread.run_sync(_log_in, project)  # what was granted once is asked for again
    assert parse_qs(urlsplit(again).query)["scope"] == ["tools files:write"]


async def test_the_operator_logs_in_at_a_running_gateway_and_only_the_right_answer_counts(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    async with Grove(project.write()) as grove:
        await eventually(lambda: "needs a login" in _state(grove))
        assert grove.pool.latest.sources["web"].takes_login
        app = grove.asgi_app()
        operator = {"Authorization": f"Bearer {grove.tokens.issue(OPERATOR, by='the test')}"}
        agent = {"Authorization": f"Bearer {grove.tokens.issue('a', by='the test')}"}
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http,
            httpx2.AsyncClient() as browser,
        ):
            assert (await http.post("/api/logins/web")).status_code == 401
            assert (await http.post("/api/logins/web", headers=agent)).status_code == 403
            assert (await http.post("/api/logins/wbe", headers=operator)).status_code == 400
            begun = await http.post("/api/logins/web", headers={**operator, "Origin": "http://127.0.0.1:8000"})
            address = begun.json()["address"]
            asked = parse_qs(urlsplit(address).query)
            assert asked["redirect_uri"] == ["http://127.0.0.1:8000/oauth/callback"]
            back = (await browser.get(address)).headers["location"]
            for wrong in ("/oauth/callback", "/oauth/callback?code=x&state=y"):
                assert (await http.get(wrong)).status_code == 400
            foreign = await http.get(f"/oauth/callback?code=x&state={asked['state'][0]}&iss=https://evil.example")
            assert foreign.status_code == 400
            assert "another authorization server" in foreign.text
            assert (await http.get(back)).status_code == 400, "one question takes one answer"
            assert project.upstream.grants() == []
            begun = await http.post("/api/logins/web", headers=operator)
            back = (await browser.get(begun.json()["address"])).headers["location"]
            assert (await http.head(back)).status_code == 405
            done = await http.get(back)
            assert (done.status_code, done.headers["location"]) == (303, "/console")
            assert (await http.get(back)).status_code == 400
        await eventually(lambda: not _state(grove))
        login = project.kept()
        assert login is not None
        code = parse_qs(urlsplit(back).query)["code"][0]
        assert not any(secret in caplog.text for secret in (login.access_token, str(login.refresh_token), code))


def test_scopes_that_nobody_could_type_safely_are_not_shown() -> None:
    said = 'Bearer error="insufficient_scope", scope="a:b $(reboot) `x` ok/*; c"'
    assert missing_scopes(said) == ("a:b", "c")
    assert missing_scopes('Bearer error="invalid_token", scope="a"') is None


def _on_record(grove: Grove) -> list[str]:
    records = [json.loads(line) for line in grove.audit.lines()]
    return [record["operation"] for record in records if record.get("targets") == ["web"]]


@pytest.mark.parametrize(
    "oauth",
    [
        {"clientId": "machine", "clientSecret": "${env:MACHINE_SECRET}"},
        {"clientMetadataUrl": "https://example.com/toolgrove.json", "scopes": ["tools"]},
    ],
    ids=["given", "described"],
)
async def test_a_client_that_is_known_already_is_not_registered(
    project: Project, oauth: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MACHINE_SECRET", SECRET)
    config = project.write(oauth=oauth)
    address, _, _ = await anyio.to_thread.run_sync(_log_in, project)
    named = oauth.get("clientId") or oauth["clientMetadataUrl"]
    assert parse_qs(urlsplit(address).query)["client_id"] == [named]
    login = project.kept()
    assert login is not None
    assert login.client_secret is None
    assert "/register" not in [path for path, _ in project.upstream.control("seen")["seen"]]
    project.upstream.control("revoke")
    async with Grove(config) as grove:
        agent = await grove.agent("a")
        assert "called with" in json.dumps(await agent.call("web_tell", {}))
    assert project.upstream.grants() == ["authorization_code", "refresh_token"]


async def test_a_token_is_renewed_before_its_end_and_after_a_refusal_once_for_all_calls(project: Project) -> None:
    config = project.write()
    await anyio.to_thread.run_sync(_log_in, project)
    project.change(expires_at=1.0)
    async with Grove(config) as grove:
        agent = await grove.agent("a")
        assert "called with" in json.dumps(await agent.call("web_tell", {}))
        assert project.upstream.grants() == ["authorization_code", "refresh_token"]
        project.upstream.control("revoke")
        answers: list[str] = []

        async def call() -> None:
            answers.append(json.dumps(await agent.call("web_tell", {})))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(call)
        assert all("called with" in answer for answer in answers), answers
        assert project.upstream.grants() == ["authorization_code", "refresh_token", "refresh_token"]


async def test_who_revoked_everything_is_asked_to_log_in_again(project: Project) -> None:
    config = project.write()
    await anyio.to_thread.run_sync(_log_in, project)
    async with Grove(config) as grove:
        agent = await grove.agent("a")
        project.upstream.control("revoke_all")
        refused = await agent.call("web_tell", {})
        assert "log in with toolgrove login web" in refused["error"]["message"]
        await eventually(lambda: "log in with toolgrove login web" in _state(grove))
        assert project.upstream.grants().count("refresh_token") == 1
        await anyio.to_thread.run_sync(_log_in, project)
        await eventually(lambda: not _state(grove))
        assert "called with" in json.dumps(await agent.call("web_tell", {}))


async def test_a_token_is_not_sent_to_another_address_than_the_one_it_was_made_for(project: Project) -> None:
    project.write()
    await anyio.to_thread.run_sync(_log_in, project)
    async with Grove(project.write(url=project.upstream.url + "/")) as grove:
        await eventually(lambda: "needs a login" in _state(grove))


async def test_a_client_with_a_secret_logs_in_by_itself(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MACHINE_SECRET", SECRET)
    async with Grove(project.write(oauth=MACHINE)) as grove:
        agent = await grove.agent("a")
        assert "called with [secret" in json.dumps(await agent.call("web_tell", {}))
        project.upstream.control("revoke")
        assert "called with [secret" in json.dumps(await agent.call("web_tell", {}))
    assert project.upstream.grants() == ["client_credentials"] * 2
    assert project.kept() is None


async def test_a_secret_goes_to_no_other_authorization_server_than_the_issuer(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MACHINE_SECRET", SECRET)
    async with Grove(project.write(oauth={**MACHINE, "issuer": "https://login.example.com"})) as grove:
        await eventually(lambda: "names another authorization server than its oauth.issuer" in _state(grove))
    assert project.upstream.grants() == []
    async with Grove(project.write(oauth={**MACHINE, "issuer": f"http://127.0.0.1:{project.upstream.port}/"})) as grove:
        agent = await grove.agent("a")
        assert "called with [secret" in json.dumps(await agent.call("web_tell", {}))


async def test_a_server_without_the_block_says_what_to_add(project: Project) -> None:
    async with Grove(project.write(oauth=None)) as grove:
        await eventually(lambda: "add oauth: {} to mcpServers.web and log in with toolgrove login web" in _state(grove))


async def test_no_token_comes_out_anywhere(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    config = project.write()
    await anyio.to_thread.run_sync(_log_in, project)
    sections = {"mcpServers": {"web": config.mcp_servers["web"].model_dump(by_alias=True)}, "state": str(config.state)}
    async with hauling(sections, caplog) as haul:
        tokens = list(project.upstream.control("seen")["tokens"])
        await haul.call("web_tell")
        project.upstream.control("revoke")
        await haul.call("web_tell")
        tokens += project.upstream.control("seen")["tokens"]
        project.upstream.control("revoke_all")
        await haul.call("web_tell")
        await haul.gather()
        assert len(set(tokens)) >= 4
        for token in set(tokens):
            assert haul.found(token) == []
        assert haul.marked("result of web_tell")


async def test_the_old_transport_is_logged_in_to_as_well(tmp_path: Path) -> None:
    started = _started("sse")
    project = Project(folder=tmp_path, upstream=next(started))
    try:
        config = project.write(type="sse")
        await anyio.to_thread.run_sync(_log_in, project)
        project.upstream.control("revoke")
        async with Grove(config) as grove:
            agent = await grove.agent("a")
            assert "called with" in json.dumps(await agent.call("web_tell", {}))
    finally:
        started.close()  # type: ignore[attr-defined]
