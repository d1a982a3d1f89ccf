"""Page tokens: where a page ended, signed for one agent and one question."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import zlib
from typing import Any

from toolgrove.errors import BadPageToken

_SIGNATURE = 12
_MAX_LENGTH = 64_000


class PageTokens:
    """Issues tokens and reads back its own."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def issue(self, question: str, place: Any) -> str:
        """A token for the place where a page of this question ended."""
        body = zlib.compress(json.dumps(place, separators=(",", ":")).encode())
        return base64.urlsafe_b64encode(self._sign(question, body) + body).decode().rstrip("=")

    def read(self, question: str, token: str) -> Any:
        """The place, provided that the token belongs to this question."""
        try:
            raw = base64.b64decode(token[:_MAX_LENGTH] + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise BadPageToken from None
        signature, body = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if not hmac.compare_digest(signature, self._sign(question, body)):
            raise BadPageToken
        return json.loads(zlib.decompress(body))

    def _sign(self, question: str, body: bytes) -> bytes:
        bound = question.encode("utf-8", "surrogatepass") + b"\0" + body
        return hmac.digest(self._secret, bound, hashlib.sha256)[:_SIGNATURE]
