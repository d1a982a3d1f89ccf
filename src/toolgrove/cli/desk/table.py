"""Every operation by its name; the gateway answers these and no others."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from toolgrove.errors import InvalidArgument
from toolgrove.notation.json_value import refuse_halves

if TYPE_CHECKING:
    from toolgrove.types import Client

OPERATIONS = MappingProxyType(
    {
        "agents": "access.agents",
        "tools": "access.tools",
        "explain": "access.explain",
        "call": "calls.call",
        "run": "calls.run",
        "doctor": "health.doctor",
        "approvals": "decisions.approvals",
        "approval": "decisions.approval",
        "approvals.watch": "decisions.watch",
        "decide": "decisions.decide",
        "revoke": "decisions.revoke",
        "pins": "decisions.pins",
        "pin": "decisions.pin",
        "pins.accept": "decisions.accept",
        "pins.refuse": "decisions.refuse",
        "pins.forget": "decisions.forget",
        "tokens": "keys.tokens",
        "tokens.new": "keys.new",
        "tokens.revoke": "keys.revoke",
        "sign_in": "keys.sign_in",
        "audit": "records.page",
        "audit.follow": "records.follow",
        "audit.verify": "records.verify",
        "audit.key": "records.key",
        "tree": "tree.tree",
    }
)
"""The module and function of each; imported when it is first asked for, so that a quick command stays quick."""


def begin(project: Any, what: str, given: Mapping[str, Any], client: Client) -> Any:
    """Begin an operation: an awaitable of its answer, or an async iterator of its events."""
    if what not in OPERATIONS:
        raise InvalidArgument(f"This gateway does not know {what!r}. It may be older than this command; restart it.")
    if what != "call":  # which is refused as a call, and recorded
        refuse_halves(dict(given))
    module, _, name = OPERATIONS[what].partition(".")
    return getattr(import_module(f"toolgrove.cli.desk.{module}"), name)(project, client, **given)
