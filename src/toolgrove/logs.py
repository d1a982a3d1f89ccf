"""What a log may hold: no secret, and one line per record."""

from __future__ import annotations

import datetime
import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Scrub = Callable[[str], str]
_active: list[Scrub] = []
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


@contextmanager
def scrubbing(scrub: Scrub) -> Iterator[None]:
    """Clean every record of this process meanwhile, whoever logs it: HTTP clients log addresses with keys in them.

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


class OneLine(logging.Formatter):
    """Writes a record as one line: whoever is quoted in it cannot forge a second one."""

    def format(self, record: logging.LogRecord) -> str:
        """The whole record, its control characters escaped."""
        return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), super().format(record))


class JsonLine(logging.Formatter):
    """Writes a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """When, how bad, from where, what; and the traceback of an exception."""
        form = {
            "time": datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_text is None and record.exc_info:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            form["exception"] = record.exc_text
        return json.dumps(form)
