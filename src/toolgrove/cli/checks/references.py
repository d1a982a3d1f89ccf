"""The texts of a configuration that may hold a secret, and who would use it there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from toolgrove.config import Config, HttpToolConfig, McpServerConfig, OAuthConfig

REFERENCE = re.compile(r"\$\{(env|file|keyring):([^{}]*)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigText:
    """A text in the file: `field` is its path, `user` is who would get a secret that it refers to.

    `named`: the author of the file chose the `key`, as for a header or a variable.
    """

    field: str
    key: str
    value: str
    user: str
    named: bool = False

    @property
    def references(self) -> list[tuple[str, str]]:
        """The kind and name of each reference in it."""
        return REFERENCE.findall(self.value)


def config_texts(config: Config) -> Iterator[ConfigText]:
    """Every text that may hold a secret, in the order of the file."""
    for name, server in config.servers.items():
        yield from _of_server(f"mcpServers.{name}", f"{name}_*", server)
    for name, tool in config.http_tools.items():
        yield from _of_http(f"httpTools.{name}", f"{name}_*" if tool.openapi else name, tool)
    if config.workspace.audit_key is not None:
        yield ConfigText(
            field="workspace.auditKey", key="auditKey", value=config.workspace.audit_key, user="audit", named=True
        )
    if config.runner is not None and config.runner.api_key:
        yield ConfigText(field="runner.apiKey", key="apiKey", value=config.runner.api_key, user="runner", named=True)


def _of_server(section: str, user: str, server: McpServerConfig) -> Iterator[ConfigText]:
    for key, text in (("command", server.command), ("url", server.url)):
        if text is not None:
            yield ConfigText(field=f"{section}.{key}", key=key, value=text, user=user)
    for at, text in enumerate(server.args):
        yield ConfigText(field=f"{section}.args[{at}]", key="args", value=text, user=user)
    for group, texts in (("env", server.env), ("headers", server.headers)):
        for key, text in texts.items():
            yield ConfigText(field=f"{section}.{group}.{key}", key=key, value=text, user=user, named=True)
    if server.oauth is not None:
        yield from _of_oauth(section, user, server.oauth)


def _of_oauth(section: str, user: str, oauth: OAuthConfig) -> Iterator[ConfigText]:
    for key, text in (("clientId", oauth.client_id), ("clientSecret", oauth.client_secret)):
        if text is not None:
            yield ConfigText(
                field=f"{section}.oauth.{key}", key=key, value=text, user=user, named=key == "clientSecret"
            )


def _of_http(section: str, user: str, tool: HttpToolConfig) -> Iterator[ConfigText]:
    if tool.url is not None:
        yield ConfigText(field=f"{section}.url", key="url", value=tool.url, user=user)
    for key, text in tool.headers.items():
        yield ConfigText(field=f"{section}.headers.{key}", key=key, value=text, user=user, named=True)
