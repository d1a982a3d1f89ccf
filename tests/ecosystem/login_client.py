"""A project with one server, as the conformance suite starts it: `python login_client.py URL`.

It is the person, too: it agrees to every login, and to one with more rights where a call needs them. Which client was
registered by hand for a scenario, the suite says in the environment.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2

from toolgrove import Config, Grove
from toolgrove.errors import GroveError

REDIRECT = "http://127.0.0.1:8000/oauth/callback"
DOCUMENT = "https://conformance-test.local/client-metadata.json"
_MOST = 3
"""Logins, after which a person would wonder."""
_PATIENCE = 8.0


def _oauth() -> dict[str, Any]:
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    oauth: dict[str, Any] = {"clientMetadataUrl": DOCUMENT}
    if "client_id" in given:
        oauth = {"clientId": given["client_id"]}
    if "client_secret" in given:
        oauth["clientSecret"] = given["client_secret"]
    if given.get("name", "").startswith("auth/client-credentials"):
        oauth["grant"] = "client_credentials"
    return oauth


async def _log_in(grove: Grove) -> None:
    question = await grove.server_logins.begin("web", REDIRECT)
    async with httpx2.AsyncClient() as browser:
        answer = await browser.get(question)
    await grove.server_logins.finish(parse_qs(urlsplit(answer.headers["location"]).query), by="the person")


async def _settled(grove: Grove, before: str = "not asked yet") -> str:
    """What is wrong with the server, as soon as that is something else; empty if it is well."""
    with anyio.move_on_after(_PATIENCE):
        while grove.pool.latest.sources["web"].problem == before:
            await anyio.sleep(0.02)
    return grove.pool.latest.sources["web"].problem


async def main(url: str) -> str:
    config = Config.model_validate(
        {
            "mcpServers": {"web": {"url": url, "oauth": _oauth()}},
            "agents": {"a": {"role": "editor", "tools": ["*"]}},
            "startupBudget": _PATIENCE,
        }
    )
    async with Grove(config) as grove:
        problem, logins = await _settled(grove), 0
        while problem and logins < _MOST:
            await _log_in(grove)
            problem, logins = await _settled(grove, problem), logins + 1
        agent = await grove.agent("a")
        for tool in [spec.name for spec in agent.tools if spec.name.startswith("web_")]:
            answer = await agent.call(tool, {})
            while answer.get("error", {}).get("reason") == "insufficient_scope" and logins < _MOST:
                await _log_in(grove)
                logins += 1
                answer = await agent.call(tool, {})
            problem = answer.get("error", {}).get("message", "")
        return problem


if __name__ == "__main__":
    try:
        sys.exit(anyio.run(main, sys.argv[1]) or 0)
    except GroveError as error:
        sys.exit(error.message)
