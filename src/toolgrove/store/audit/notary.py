"""The notary: the key of a project, which seals its audit log, and a mark outside of the log that says where it ended.

Both stand in the state folder, never in what they seal: whoever can write the log alone can neither make a seal nor
take a record off its end unseen. There are two kinds of seals. A signature is for everybody: whoever has the public
half of the key can check it. A stamp is for the project alone: a keyed BLAKE2b, which only the same key can check. It
costs half a microsecond, so the mark and the head of a store have one for each change. Records had stamps before there
were signatures, and those still hold for whoever has the key.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import Any

from toolgrove.errors import GroveError
from toolgrove.store.audit.chain import Place
from toolgrove.store.audit.signing import SIGNATURE, SigningKey
from toolgrove.store.private_file import take_name
from toolgrove.store.unusable import StoreUnusable

log = logging.getLogger("toolgrove.store")
_STAMP = 16
_SHORTEST = 16
_MARK = 256


class Notary:
    """Signs and stamps texts, and remembers the end of the chain; without a key it does the last only.

    `secret` gives a key that is kept elsewhere; else there is the file `key`, which `open` makes.
    """

    def __init__(self, *, key: Path, mark: Path, secret: Callable[[], str] | None = None) -> None:
        self.key = key
        self._mark = mark
        self._secret = secret
        self._bytes: bytes | None = None
        self._signing: SigningKey | None = None
        self._open: FileIO | None = None
        self._failed = False

    @property
    def has_key(self) -> bool:
        """Whether seals can be made and checked."""
        return self._bytes is not None

    def unmarked(self) -> Notary:
        """One with the same key that knows of no mark: to check a copy, which may end earlier."""
        one = Notary(key=self.key, mark=Path(os.devnull), secret=self._secret)
        one._bytes, one._signing = self._bytes, self._signing
        return one

    def open(self) -> None:
        """Have a key; the first time one is made."""
        if self._secret is None:
            self._make()
        try:
            self._take(self._text())
        except GroveError as error:
            raise self._unusable("is not there", error.message) from None

    def read(self) -> None:
        """Take the key if there is one, and make none: enough to check seals."""
        with suppress(GroveError, FileNotFoundError):
            self._take(self._text())

    def close(self) -> None:
        """Let go of the mark."""
        if self._open is not None:
            self._open.close()
            self._open = None

    @property
    def public(self) -> str:
        """The public half of the key, for those who check what it signed; empty without a key."""
        return "" if self._signing is None else self._signing.public

    @property
    def is_loaded(self) -> bool:
        """Whether it signs at once, if it has a key at all."""
        return self._signing is None or self._signing.is_loaded

    def load(self) -> None:
        """Make ready to sign; the first time that takes some 40 ms."""
        if self._signing is not None:
            self._signing.load()

    def sign(self, text: str) -> str:
        """The signature of a text; empty without a key."""
        return "" if self._signing is None else self._signing.sign(text)

    def stamp(self, text: str) -> str:
        """The stamp of a text; empty without a key."""
        return "" if self._bytes is None else blake2b(text.encode(), key=self._bytes, digest_size=_STAMP).hexdigest()

    def can_check(self, seal: str) -> bool:
        """Whether it could check a seal, of whichever kind."""
        return self.has_key

    def holds(self, text: str, seal: str) -> bool:
        """Whether a seal is a signature or a stamp of this key for this text."""
        if self._signing is not None and len(seal) == SIGNATURE:
            return self._signing.holds(text, seal)
        return self._bytes is not None and hmac.compare_digest(self.stamp(text).encode(), seal.encode())

    def note(self, place: Place) -> None:
        """Remember where the chain stands; whoever waits for the record need not fail if that cannot be written."""
        text = f'{{"number":{place.number},"hash":"{place.hash}","seal":"{self.stamp(f"mark {place}")}"}}'
        try:
            if self._open is None:
                self._mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._open = FileIO(private(self._mark, os.O_CREAT | os.O_WRONLY), "wb")  # what is there stays whole
            self._open.seek(0)
            self._open.write(text.ljust(_MARK).encode())  # of one length, so that nothing is left behind it
        except OSError as error:
            if not self._failed:
                log.error("The mark of the audit log cannot be written to %s: %s.", self._mark, error.strerror)
            self._failed = True
        else:
            self._failed = False

    def noted(self) -> Place | None:
        """Where the chain stood last; None where nothing was noted, or not by this key."""
        try:
            found: Any = json.loads(self._mark.read_bytes())
            place = Place(int(found["number"]), str(found["hash"]))
            seal = str(found["seal"])
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return place if self._bytes is None or self.holds(f"mark {place}", seal) else None

    def _take(self, text: str) -> None:
        if len(text) < _SHORTEST:
            raise self._unusable(f"is shorter than {_SHORTEST} characters", "Set a long random one.")
        self._bytes = blake2b(text.encode()).digest()
        self._signing = SigningKey(self._bytes)

    def _text(self) -> str:
        try:
            if self._secret is not None:
                return self._secret()
            return self.key.read_text("ascii").strip()
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise self._unusable(f"cannot be read: {why}", "Check who owns the file.") from None

    def _make(self) -> None:
        """Make a key unless there is one; it appears whole, since an empty one would keep the log from being opened."""
        try:
            if self.key.exists():
                if self.key.stat().st_size:
                    return
                self.key.unlink()  # an earlier version was cut off before it wrote one
            self.key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.key.parent, prefix=f".{self.key.name}-")
            try:
                with FileIO(descriptor, "wb") as file:
                    file.write(f"{secrets.token_hex(32)}\n".encode())
                    os.fsync(file.fileno())
                take_name(Path(name), self.key)
            finally:
                Path(name).unlink(missing_ok=True)
        except FileExistsError:
            return  # another process was quicker
        except OSError as error:
            raise self._unusable(f"cannot be made: {error.strerror}", "Check who owns its folder.") from None

    def another(self, kind: str, where: object) -> StoreUnusable:
        """What to say of a log that is sealed with another key."""
        return StoreUnusable(
            kind=kind,
            where=where,
            problem="has an audit log that another key sealed",
            advice="Give this project the key that the log was sealed with (workspace.auditKey, or "
            f"{self.key.name} in its state folder), or let the log go on under the key that it has now with 'toolgrove "
            "audit key --change'.",
        )

    def _unusable(self, problem: str, advice: str) -> StoreUnusable:
        where = self.key if self._secret is None else "in workspace.auditKey"
        return StoreUnusable(kind="key of the audit log", where=where, problem=problem, advice=advice)


def private(path: str | Path, flags: int) -> int:
    """Open a file; one that is made by it is its owner's alone."""
    return os.open(path, flags, 0o600)
