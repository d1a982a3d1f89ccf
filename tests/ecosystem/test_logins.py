"""The client scenarios of the official conformance suite about logins, with a project and a person who agrees."""

import json
import shlex
from pathlib import Path

import pytest

from e2e.node_tools import CONFORMANCE, NODE, node
from ecosystem.environments import require
from waiting import DEADLINE
from warm.command import python

pytestmark = [pytest.mark.ecosystem, pytest.mark.timeout(300)]
CLIENT = Path(__file__).with_name("login_client.py")
PASSED = (
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "basic-cimd",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-step-up",
    "scope-retry-limit",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "pre-registration",
    "resource-mismatch",
    "offline-access-scope",
    "offline-access-not-supported",
    "authorization-server-migration",
    "iss-supported",
    "iss-not-advertised",
    "iss-supported-missing",
    "iss-wrong-issuer",
    "iss-unexpected",
    "iss-normalized",
    "metadata-issuer-mismatch",
    "client-credentials-basic",
    "2025-03-26-oauth-metadata-backcompat",
)
"""docs/pool.md lists the same."""


@pytest.mark.parametrize("scenario", PASSED)
def test_a_login_is_as_the_official_suite_wants_it(scenario: str, tmp_path: Path) -> None:
    require(NODE, CONFORMANCE)
    command = shlex.join(map(str, python(CLIENT)))
    milliseconds = str(int(DEADLINE * 1000))
    words = ("--command", command, "--scenario", f"auth/{scenario}", "--timeout", milliseconds, "-o", str(tmp_path))
    done = node(CONFORMANCE, "client", *words)
    checks = [check for file in tmp_path.rglob("checks.json") for check in json.loads(file.read_text())]
    assert checks, (done.stdout + done.stderr)[-3000:]
    bad = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
    assert not bad, bad
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
