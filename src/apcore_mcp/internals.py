"""What we change inside apcore and pydantic; tests/unit/test_dependency_insides.py says what moved."""

import contextlib
import functools
import marshal
from typing import Any

from apcore.utils import redaction
from pydantic import BaseModel

REDACTOR = "_SchemaRedactor"
REDACT = "_redact_fields"
_MARKER = b"x-sensitive"
_MOST_SCHEMAS = 1_024


def remember_schemas(module: Any) -> None:
    """Make the module's pydantic models compute their JSON Schema once; apcore asks three times per call."""
    for model in (getattr(module, "input_schema", None), getattr(module, "output_schema", None)):
        if isinstance(model, type) and issubclass(model, BaseModel) and "model_json_schema" not in vars(model):
            _remember(model)


def _remember(model: Any) -> None:
    compute = model.model_json_schema.__func__
    with contextlib.suppress(Exception):  # no schema, or one that is not plain data: leave the model as it is
        model.model_rebuild()
        plain = marshal.dumps(compute(model))

        def model_json_schema(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if cls is not model or args or kwargs:
                return compute(cls, *args, **kwargs)
            return marshal.loads(plain)  # noqa: S302 - our own bytes

        model.model_json_schema = classmethod(model_json_schema)


def remember_redactors() -> None:
    """Make apcore look through a schema for sensitive fields once; it asks for them three times per call."""
    make, redact = getattr(redaction, REDACTOR, None), getattr(redaction, REDACT, None)
    if make is None or redact is None or hasattr(redact, "__wrapped__"):
        return
    known: dict[tuple[bytes, str], tuple[Any, Any]] = {}

    @functools.wraps(redact)
    def remembered(data: Any, schema: Any, *, token: str = redaction.REDACTED_VALUE) -> None:
        try:
            plain = marshal.dumps(schema, 2)  # in this version, equal schemas have equal bytes
        except ValueError:
            redact(data, schema, token=token)
            return
        found = known.get((plain, token))
        if found is None:
            if len(known) >= _MOST_SCHEMAS:
                known.clear()
            own = marshal.loads(plain)  # noqa: S302 - our own bytes; a redactor knows the parts of its schema by identity
            found = known[plain, token] = make(own, token), own
        if _MARKER in plain:
            redactor, own = found
            redactor.redact_fields(data, own)

    setattr(redaction, REDACT, remembered)
