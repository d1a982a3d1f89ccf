"""Variables of a company's network that a server does not get unless the project file says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolgrove.config import McpServerConfig
from toolgrove.notation.secret_names import names_a_secret

_PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_AUTHORITIES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT"),
    *("UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "NPM_CONFIG_CAFILE", "npm_config_cafile"),
)
_INDEXES = (
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONFIG_FILE"),
    *("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE"),
    *("NPM_CONFIG_REGISTRY", "npm_config_registry", "NPM_CONFIG_USERCONFIG", "npm_config_userconfig"),
    "npm_config__auth",
)
NAMES = (*_PROXY, *map(str.lower, _PROXY), *_AUTHORITIES, *_INDEXES)


def withheld(server: McpServerConfig, ours: Mapping[str, str]) -> list[str]:
    """Those of ours that are set and that it was not given."""
    given = {*server.env, *server.pass_env}
    return [] if server.command is None else [name for name in NAMES if ours.get(name) and name not in given]


def line_for(server: McpServerConfig, names: Sequence[str]) -> str:
    """What to write so that it gets them; what holds a secret goes by reference."""
    passed = [*server.pass_env, *(name for name in names if not names_a_secret(name))]
    secret = [name for name in names if names_a_secret(name)]
    lines = [f"passEnv: [{', '.join(passed)}]"] if len(passed) > len(server.pass_env) else []
    lines += [f'env: {{{name}: "${{env:{name}}}"}}' for name in secret]
    return " and ".join(lines)
