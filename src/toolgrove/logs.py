"""What a log may hold: no secret, and one line per record."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from toolgrove.notation.times import to_milliseconds
from toolgrove.notation.unseen_text import one_line

Scrub = Callable[[str], str]
_active: list[Scrub] = []


@contextmanager
def scrubbing(scrub: Scrub) -> Iterator[None]:
    """Clean every record of this process, not only ours: HTTP clients log addresses with keys in them.

    Records are cleaned where they are made, since a filter of a logger does not see those of its children.
    """
    if not isinstance(logging.getLogRecordFactory(), _Factory):
        logging.setLogRecordFactory(_Factory(logging.getLogRecordFactory()))
    _active.append(scrub)
    try:
        yield
    finally:
        _active.remove(scrub)
        factory = logging.getLogRecordFactory()
        if not _active and isinstance(factory, _Factory):
            logging.setLogRecordFactory(factory.inner)


class _Factory:
    def __init__(self, inner: Callable[..., logging.LogRecord]) -> None:
        self.inner = inner

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self.inner(*args, **kwargs)
        for scrub in _active:
            _clean(record, scrub)
        return record


def _clean(record: logging.LogRecord, scrub: Scrub) -> None:
    try:
        message = record.getMessage()
    except Exception:  # logging itself reports a bad format, with its arguments: those are cleaned instead
        record.args = tuple(scrub(repr(arg)) for arg in record.args or ())
        return
    clean = scrub(message)
    if clean != message:
        record.msg, record.args = clean, ()
    if record.exc_info and record.exc_info[0] is not None:
        text = logging.Formatter().formatException(record.exc_info)
        clean = scrub(text)
        if clean != text:  # a handler that formats the exception itself would find the secret again
            record.exc_info, record.exc_text = None, clean
    if record.stack_info:
        record.stack_info = scrub(record.stack_info)


_CONTINUED = "\n          "


class HumanLine(logging.Formatter):
    """Writes a record for a person: when, how bad if it is, and what."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s  %(message)s", "%H:%M:%S")
        self._bad = logging.Formatter("%(asctime)s  %(levelname)s: %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """With its level from warning on; further lines are indented, so that no quoted text can forge a record."""
        text = logging.Formatter.format(self if record.levelno < logging.WARNING else self._bad, record)
        return _CONTINUED.join(map(one_line, text.split("\n")))


class JsonLine(logging.Formatter):
    """Writes a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """When, how bad, from where, what; and the traceback of an exception."""
        facts = {
            "time": to_milliseconds(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_text is None and record.exc_info:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            facts["exception"] = record.exc_text
        return json.dumps(facts)
