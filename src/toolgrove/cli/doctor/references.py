"""Every place in a configuration where a secret may stand, and who would use it there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from toolgrove.config import Config, HttpToolConfig, McpServerConfig

REFERENCE = re.compile(r"\$\{(env|file|keyring):([^{}]*)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A text in the file: `field` is its path, `user` who would be given the value.

    `named` tells that whoever wrote the file chose the `key`, as for a header or a variable.
    """

    field: str
    key: str
    text: str
    user: str
    named: bool = False

    @property
    def references(self) -> list[tuple[str, str]]:
        """The kind and name of each reference in it."""
        return REFERENCE.findall(self.text)


def places(config: Config) -> Iterator[Place]:
    """All of them, in the order of the file."""
    for name, server in config.servers.items():
        yield from _of_server(f"mcpServers.{name}", f"{name}_*", server)
    for name, tool in config.http_tools.items():
        yield from _of_http(f"httpTools.{name}", f"{name}_*" if tool.openapi else name, tool)
    if config.runner is not None and config.runner.api_key:
        yield Place(field="runner.apiKey", key="apiKey", text=config.runner.api_key, user="runner", named=True)


def _of_server(section: str, user: str, server: McpServerConfig) -> Iterator[Place]:
    for key, text in (("command", server.command), ("url", server.url)):
        if text is not None:
            yield Place(field=f"{section}.{key}", key=key, text=text, user=user)
    for at, text in enumerate(server.args):
        yield Place(field=f"{section}.args[{at}]", key="args", text=text, user=user)
    for group, texts in (("env", server.env), ("headers", server.headers)):
        for key, text in texts.items():
            yield Place(field=f"{section}.{group}.{key}", key=key, text=text, user=user, named=True)


def _of_http(section: str, user: str, tool: HttpToolConfig) -> Iterator[Place]:
    if tool.url is not None:
        yield Place(field=f"{section}.url", key="url", text=tool.url, user=user)
    for key, text in tool.headers.items():
        yield Place(field=f"{section}.headers.{key}", key=key, text=text, user=user, named=True)
