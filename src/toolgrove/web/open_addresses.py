"""The addresses that need no token: the table of operations says what is there, and nothing there is a secret."""

from __future__ import annotations

CALLBACK = "/oauth/callback"
OPEN = frozenset(("/", "/api/openapi.json", "/console", "/console/", "/health", "/ready", CALLBACK))
