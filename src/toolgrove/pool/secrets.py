"""Secrets: references in the configuration, read inside a call and scrubbed from every way out."""

from __future__ import annotations

import logging
import os
import re
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from toolgrove.config import SecretConfig
from toolgrove.errors import SecretOutOfScope, SecretUnset
from toolgrove.notation.secret_names import names_a_secret
from toolgrove.pool.globs import Globs, is_exact
from toolgrove.pool.scrubber import MessageScrubber, Scrubber, StreamScrubber
from toolgrove.pool.secret_encodings import MIN_LENGTH

log = logging.getLogger("toolgrove.pool")
SERVICE = "toolgrove"
MAX_FILE = 64 * 1024
_REFERENCE = re.compile(r"\$\{(env|file|keyring):([^{}]*)\}")
_MIN_CREDENTIAL = 12
"""Shorter values under such names are switches and limits more often than credentials."""


class Secrets:
    """Reads references and remembers what it read, so that it can be kept out of everything said later."""

    def __init__(
        self, scopes: Mapping[str, SecretConfig], *, environ: Mapping[str, str] = os.environ, folder: Path = Path(".")
    ) -> None:
        self._environ = environ
        self._folder = folder
        self._scrubber = Scrubber()
        self._keyring: dict[str, str] = {}
        self._lock = threading.Lock()
        self._readers: dict[str, Callable[[str], str]] = {
            "env": self._from_environment,
            "file": self._from_file,
            "keyring": self._from_keyring,
        }
        self.rescope(scopes)

    def rescope(self, scopes: Mapping[str, SecretConfig]) -> None:
        """Take the scopes of a changed configuration; what was read so far stays hidden."""
        self._scopes = {name: Globs(scope.tools) for name, scope in scopes.items()}
        for name in self._scopes:  # what is declared is hidden even before its first use
            if self._environ.get(name):
                self._learn(f"${{env:{name}}}", name, self._environ[name])

    def __repr__(self) -> str:
        return f"Secrets({', '.join(sorted(self._scopes))})"

    def fill(self, template: str, *, field: str, user: str, also: Sequence[str] = ()) -> str:
        """The template with every reference replaced by its value; `user` is the tool, or `<server>_*`.

        `also` are other names by which a scope may mean the same tool.
        """
        if "${" not in template:
            return template

        def value(found: re.Match[str]) -> str:
            return self._value(found, field, user, also)

        return _REFERENCE.sub(value, template)

    def hide(self, value: str, *, name: str) -> None:
        """Scrub a value that came another way, such as a key written into a server's settings."""
        self._learn(name, name, value)

    def hide_settings(self, settings: Mapping[str, str]) -> None:
        """Scrub what imported settings hold as plain text under the name of a credential."""
        for name, value in settings.items():
            word = value.rpartition(" ")[2]  # what follows Bearer or Basic
            if names_a_secret(name) and len(word) >= _MIN_CREDENTIAL and "${" not in value:
                self.hide(word, name=name)

    @property
    def known(self) -> bool:
        """Whether any secret was read so far."""
        return self._scrubber.known

    def scrub_text(self, text: str) -> str:
        """The text without any secret that was read so far, in whatever encoding."""
        return self._scrubber.text(text)

    def beginning(self, text: str, most: int) -> str:
        """At most so many characters of a text, scrubbed before the rest is cut off: half a secret is not found."""
        return self.scrub_text(text) if len(text) <= most else self.stream().feed(text[:most])

    def scrub(self, value: Any) -> Any:
        """The same for a JSON value, keys included."""
        return self._scrubber.value(value)

    def stream(self) -> StreamScrubber:
        """Scrubs one text that comes in chunks."""
        return StreamScrubber(self._scrubber)

    def messages(self) -> MessageScrubber:
        """Scrubs messages that follow each other and must not wait."""
        return MessageScrubber(self._scrubber)

    def _value(self, found: re.Match[str], field: str, user: str, also: Sequence[str]) -> str:
        scheme, name = found.groups()
        reference = found.group()
        if not name:
            raise SecretUnset(reference=reference, field=field, problem="it names nothing after the colon")
        scope = self._scopes.get(name)
        if scope is not None and not any(_covers(scope, name) for name in (user, *also)):
            raise SecretOutOfScope(reference=reference, field=field, user=user, allowed=scope.patterns)
        try:
            value = self._readers[scheme](name)
        except _Unreadable as error:
            raise SecretUnset(reference=reference, field=field, problem=str(error)) from None
        self._learn(reference, PurePath(name).name, value)
        return value

    def _learn(self, reference: str, label: str, value: str) -> None:
        with self._lock:
            hidden = self._scrubber.learn(value, label)
        if not hidden:
            log.warning(
                "%s has fewer than %d characters: it is too short to be scrubbed from results", reference, MIN_LENGTH
            )

    def _from_environment(self, name: str) -> str:
        value = self._environ.get(name)
        if not value:
            raise _Unreadable("that variable is not set" if value is None else "that variable is empty")
        return value

    def _from_file(self, name: str) -> str:
        path = self._folder / name
        try:
            # Not blocking: a pipe in the file's place must not hang the call.
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            raise _Unreadable(f"that file cannot be read ({error.strerror})") from None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _Unreadable("that is not a regular file")
            data = _all_of(handle)
        finally:
            os.close(handle)
        if len(data) > MAX_FILE:
            raise _Unreadable(f"that file is larger than {MAX_FILE // 1024} KiB")
        try:
            value = data.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise _Unreadable("that file is not UTF-8 text") from None
        if not value:
            raise _Unreadable("that file is empty")
        return value

    def _from_keyring(self, name: str) -> str:
        """Read once: a keyring may have to be unlocked by hand, and asks over the session bus."""
        known = self._keyring.get(name)
        if known is not None:
            return known
        try:
            import keyring  # noqa: PLC0415  (an optional dependency)
        except ImportError:
            raise _Unreadable("the package 'keyring' is missing: install toolgrove[keyring]") from None
        try:
            value = keyring.get_password(SERVICE, name)
        except Exception as error:  # its back-ends raise what they like, and their words may hold anything
            log.warning("the keyring cannot be read: %s", type(error).__name__)
            raise _Unreadable("the keyring cannot be read") from None
        if not value:
            raise _Unreadable(f"the keyring has no password of that name for service {SERVICE!r}")
        self._keyring[name] = value
        return value


def _all_of(handle: int) -> bytes:
    data = b""
    while len(data) <= MAX_FILE and (more := os.read(handle, MAX_FILE + 1)):
        data += more
    return data


class _Unreadable(Exception):
    """Why a reference leads to nothing; the words never hold a value."""


def _covers(scope: Globs, user: str) -> bool:
    """Whether a pattern names the tool, or every tool of the server."""
    if not user.endswith("*"):
        return scope.match(user) is not None
    stems = [pattern[:-1] for pattern in scope.patterns if pattern.endswith("*") and is_exact(pattern[:-1])]
    return user.startswith(tuple(stems))
