"""How we log in to a server over HTTP that asks for OAuth."""

from __future__ import annotations

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from toolgrove.config.reference import Filled
from toolgrove.config.section import Section


class OAuthConfig(Section):
    """How we log in to a server over HTTP that asks for OAuth; nothing has to be set for most of them."""

    client_id: Filled | None = Field(
        default=None, description="The client that you registered with its authorization server."
    )
    client_secret: Filled | None = Field(
        default=None, repr=False, description="The secret of that client, as a reference such as `${env:NAME}`."
    )
    client_metadata_url: str | None = Field(
        default=None,
        description="Where a document describes us as a client; used where the authorization server takes such.",
    )
    issuer: str | None = Field(
        default=None,
        description="The only authorization server that may be asked; without it, the one that the server names. "
        "Set it with a `clientSecret`, which is sent there.",
    )
    scopes: tuple[str, ...] | None = Field(
        default=None, description="What to ask for; without it, what the server says that it needs."
    )
    grant: Literal["authorization_code", "client_credentials"] = Field(
        default="authorization_code",
        description="`authorization_code` is a person's login with `toolgrove login`; `client_credentials` uses "
        "`clientId` and `clientSecret` alone, at the start.",
    )

    @field_validator("client_metadata_url")
    @classmethod
    def _is_a_document(cls, url: str | None) -> str | None:
        parts = None if url is None else urlsplit(url)
        if parts is not None and (parts.scheme != "https" or not parts.hostname or parts.path in ("", "/")):
            raise ValueError("write an https address with a path, such as https://example.com/toolgrove.json")
        return url

    @model_validator(mode="after")
    def _client_is_whole(self) -> Self:
        if self.client_secret is not None and self.client_id is None:
            raise ValueError("clientSecret belongs to a clientId; set both")
        if self.grant == "client_credentials" and (self.client_id is None or self.client_secret is None):
            raise ValueError("grant client_credentials needs clientId and clientSecret")
        return self
