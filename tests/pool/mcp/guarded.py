"""An MCP server that asks for a login, with its authorization server, on the SDK: `python guarded.py PORT [sse]`.

What a test needs besides stands under `/control`: it makes tokens void, names another authorization server, and lists
the requests that came.
"""

import base64
import json
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import build_metadata
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl

PORT = int(sys.argv[1])
BASE = f"http://127.0.0.1:{PORT}"
RESOURCE = f"{BASE}/{'sse' if 'sse' in sys.argv else 'mcp'}"
MACHINE = ("machine", "machine-Secret/9+x=7")
"""A client that was registered by hand."""
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Known(OAuthClientInformationFull):
    """A client that may come back to any port of its machine, as RFC 8252 wants it."""

    scope: str | None = "tools"

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        assert redirect_uri is not None
        return redirect_uri


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Everybody agrees to everything."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.resources: dict[str, str | None] = {}
        """What each refresh token is for; the SDK's own class says so only in newer versions."""

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if client_id == MACHINE[0]:
            return Known(
                client_id=client_id, client_secret=MACHINE[1], token_endpoint_auth_method="client_secret_basic"
            )
        if client_id.startswith("https://"):  # the document there is as good as any
            return Known(client_id=client_id, token_endpoint_auth_method="none")
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 300,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self.issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refresh[refresh_token.token]
        return self.issue(client.client_id, scopes, self.resources.pop(refresh_token.token))

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def issue(self, client: str, scopes: list[str], resource: str | None, *, lasting: bool = True) -> OAuthToken:
        token, again = f"at_{secrets.token_urlsafe(24)}", f"rt_{secrets.token_urlsafe(24)}"
        self.access[token] = AccessToken(token=token, client_id=client, scopes=scopes, resource=resource)
        if lasting:
            self.refresh[again] = RefreshToken(token=again, client_id=client, scopes=scopes)
            self.resources[again] = resource
        return OAuthToken(
            access_token=token, expires_in=3600, refresh_token=again if lasting else None, scope=" ".join(scopes)
        )


REGISTRATION = ClientRegistrationOptions(enabled=True, valid_scopes=["tools", "files:write"], default_scopes=["tools"])
METADATA = build_metadata(AnyHttpUrl(BASE), None, REGISTRATION, RevocationOptions(enabled=True)).model_dump(
    mode="json", exclude_none=True
) | {"issuer": BASE, "client_id_metadata_document_supported": True}
provider = Provider()
server = MCPServer(
    "guarded",
    auth_server_provider=provider,
    auth=AuthSettings(
        issuer_url=AnyHttpUrl(BASE),
        resource_server_url=AnyHttpUrl(RESOURCE),
        validate_token_resource=True,
        required_scopes=["tools"],
        client_registration_options=REGISTRATION,
        revocation_options=RevocationOptions(enabled=True),
    ),
)


@server.tool()
async def tell() -> str:
    """Says the token that it was called with."""
    token = get_access_token()
    return "nobody" if token is None else f"called with {token.token}"


@server.tool()
async def change() -> str:
    """Needs one scope more than the others."""
    return "changed"


class Front:
    """Keeps a list of what came, gives tokens to the machine, and does what a test asks for."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._seen: list[list[Any]] = []
        self._authority: str | None = None
        self._deaf = False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, query = scope["path"], parse_qs(scope["query_string"].decode())
        if path.startswith("/control/"):
            await _answer(send, self._control(path.rpartition("/")[2], query))
            return
        if self._authority is not None and path.startswith("/.well-known/oauth-protected-resource"):
            await _answer(send, {"resource": RESOURCE, "authorization_servers": [self._authority]})
            return
        if path == "/.well-known/oauth-authorization-server":
            await _answer(send, METADATA)
            return
        read = scope["method"] == "POST"
        body = await _body(receive) if read else b""
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()} if path != "/mcp" else {}
        self._seen.append([path, form.get("grant_type") or form.get("token_type_hint") or scope["method"]])
        if path == "/revoke" and self._deaf:
            await _answer(send, {}, 503)
            return
        if b'"change"' in body and not _may_change(scope):
            challenge = b'Bearer error="insufficient_scope", scope="tools files:write", error_description="more"'
            await _answer(send, {}, 403, [(b"www-authenticate", challenge)])
            return
        if form.get("grant_type") == "client_credentials":
            pair = base64.b64encode(":".join((MACHINE[0], "machine-Secret%2F9%2Bx%3D7")).encode()).decode()
            known = dict(scope["headers"]).get(b"authorization") == f"Basic {pair}".encode()
            token = provider.issue(MACHINE[0], ["tools"], form["resource"], lasting=False)
            await _answer(
                send,
                token.model_dump(exclude_none=True) if known else {"error": "invalid_client"},
                200 if known else 401,
            )
            return
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replayed() -> Message:
            return next(parts, None) or await receive()

        await self._app(scope, replayed if read else receive, send)

    def _control(self, what: str, query: dict[str, list[str]]) -> Any:
        if what in ("revoke", "revoke_all"):
            provider.access.clear()
        if what == "revoke_all":
            provider.refresh.clear()
        if what == "authority":
            self._authority = query["url"][0]
        self._deaf = self._deaf or what == "deaf"
        return {"seen": self._seen, "tokens": [*provider.access, *provider.refresh]}


def _may_change(scope: Message) -> bool:
    held = provider.access.get(dict(scope["headers"]).get(b"authorization", b"").decode().partition(" ")[2])
    return held is None or "files:write" in held.scopes


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        part = await receive()
        body += bytes(part.get("body", b""))
        if not part.get("more_body"):
            return body


async def _answer(send: Send, content: Any, status: int = 200, more: Any = ()) -> None:
    headers = [(b"content-type", b"application/json"), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(content).encode()})


if __name__ == "__main__":
    app = server.sse_app() if "sse" in sys.argv else server.streamable_http_app(stateless_http=True)
    uvicorn.run(Front(app), host="127.0.0.1", port=PORT, log_level="critical")
