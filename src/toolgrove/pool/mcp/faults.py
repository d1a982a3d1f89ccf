"""What can go wrong with a server; the message is fit for a receipt: short, no path, no secret.

Fault
├── Rejected     it answered with a JSON-RPC error
├── Nonsense     its answer cannot be read; that answer is lost
├── Unsent       the request did not reach it
│   └── Gone     it had ended before
├── Broken       it went away while we waited: the request may have run
├── Expired      it refused the request because its session is over; nothing ran
├── Busy         it asked us to come back later; nothing ran
└── Misconfigured       the operator's settings for it do not work
    ├── Unauthorized    it refused our credentials; nothing ran
    └── ScopeMissing    our login lacks a right that the request needs; nothing ran
"""

from __future__ import annotations


class Fault(Exception):
    """A server did not do its part; the message continues a sentence that began with its name."""


class Rejected(Fault):
    """A JSON-RPC error; its text is the server's own."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"answered with error {code}")
        self.code = code
        self.text = text


class Nonsense(Fault):
    """An answer that is malformed, oversized or not what was asked for."""


class Unsent(Fault):
    """A request that surely did not arrive."""


class Gone(Unsent):
    """A request to a process that had ended; the message says how it ended."""


class Broken(Fault):
    """A connection that ended before the answer came."""


class Expired(Fault):
    """A session that the server no longer knows."""


class Busy(Fault):
    """A server that sheds load; `retry_after` is how many seconds it asked for."""

    def __init__(self, retry_after: float | None) -> None:
        super().__init__("is busy")
        self.retry_after = retry_after


class Misconfigured(Fault):
    """Settings that cannot work before someone changes them."""


class Unauthorized(Misconfigured):
    """A request that the server did not take from us, so that it surely did not run."""


class ScopeMissing(Misconfigured):
    """A request that needs more rights than our login has; `scopes` are those that the server names."""

    def __init__(self, message: str, scopes: tuple[str, ...]) -> None:
        super().__init__(message)
        self.scopes = scopes
