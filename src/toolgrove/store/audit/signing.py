"""Signatures: what the audit log is sealed with, so that whoever has the public half can check and cannot forge.

A seal is an Ed25519 signature (RFC 8032) as 128 hexadecimal digits. It is made over the ASCII bytes of a short text
that says what is signed: `record HASH`, `part NUMBER:HASH` for a file that goes on from an earlier one, `end
NUMBER:HASH` for the end of a file, `floor EPOCH NUMBER:HASH` for what a store rests on. So a seal of one kind is none
of another.

The private half is made from the key of the project, `.toolgrove/audit.key` or `workspace.auditKey`: a keyed BLAKE2b
of 32 bytes. The same key always gives the same pair, and Ed25519 always gives the same signature of a text, so whoever
has the private half checks by signing again, in a third of the time.

A signature costs some 20 microseconds, so not every record has one: a signature covers all records before it, since
each record holds the hash of the one before. `cryptography` is imported when the first signature is made or checked,
which takes 40 ms: whoever signs on an event loop calls `load` in a thread before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b
from hmac import compare_digest
from importlib import import_module
from typing import Any

SIGNATURE = 128
"""How long a signature is; seals of before are shorter, and only the key that made them can check them."""
_NAME = "ed25519:"
_BYTES = 32
_ED25519 = "cryptography.hazmat.primitives.asymmetric.ed25519"
_PRIVATE = "Ed25519PrivateKey"
_CONTEXT = b"toolgrove audit log: signing key"


class SigningKey:
    """The private half; made of the bytes of the project's key when it is first used."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @property
    def is_loaded(self) -> bool:
        """Whether a signature is made at once."""
        return "_pair" in self.__dict__ or hasattr(sys.modules.get(_ED25519), _PRIVATE)

    def load(self) -> None:
        """Make ready to sign."""
        _ = self._pair

    def sign(self, text: str) -> str:
        """The signature of a text."""
        signature: bytes = self._pair.sign(text.encode())
        return signature.hex()

    def holds(self, text: str, seal: str) -> bool:
        """Whether a signature is one of this key for a text."""
        return compare_digest(self.sign(text).encode(), seal.encode())

    @cached_property
    def public(self) -> str:
        """The public half."""
        return f"{_NAME}{self._pair.public_key().public_bytes_raw().hex()}"

    @cached_property
    def _pair(self) -> Any:
        seed = blake2b(_CONTEXT, key=self._secret, digest_size=_BYTES).digest()
        return getattr(import_module(_ED25519), _PRIVATE).from_private_bytes(seed)


class PublicKeys:
    """Public halves, as `toolgrove audit key` prints them: they check signatures, and nothing else."""

    has_key = True

    def __init__(self, texts: Iterable[str]) -> None:
        """Raises ValueError where one is no such key, or there is none."""
        self.texts = tuple(texts)
        for text in self.texts or ("",):
            name, digits = text[: len(_NAME)], text[len(_NAME) :]
            if name != _NAME or len(digits) != 2 * _BYTES or not set(digits) <= set("0123456789abcdef"):
                raise ValueError(f"{text[:100]!r} is not a public key as 'toolgrove audit key' prints it")

    def can_check(self, seal: str) -> bool:
        """Whether a seal is a signature; one of before can be checked only with the key that made it."""
        return len(seal) == SIGNATURE

    def holds(self, text: str, seal: str) -> bool:
        """Whether a seal is a signature of one of these keys for a text."""
        try:
            signature = bytes.fromhex(seal)
        except ValueError:
            return False
        return signature.hex() == seal and any(self._verifies(key, signature, text.encode()) for key in self._keys)

    def _verifies(self, key: Any, signature: bytes, text: bytes) -> bool:
        try:
            key.verify(signature, text)
        except self._invalid:
            return False
        return True

    @cached_property
    def _invalid(self) -> Any:
        return import_module("cryptography.exceptions").InvalidSignature

    @cached_property
    def _keys(self) -> list[Any]:
        make = import_module(_ED25519).Ed25519PublicKey.from_public_bytes
        return [make(bytes.fromhex(text[len(_NAME) :])) for text in self.texts]
