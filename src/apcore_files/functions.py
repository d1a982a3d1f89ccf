"""Typed functions as apcore modules: the signature is the schema, the docstring the description."""

import copy
import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from apcore import FunctionModule
from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, create_model, validate_call
from pydantic_core import to_jsonable_python

Function = Callable[..., Any]
_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class NotATool(ValueError):
    """A function that cannot be a tool as it is; the message says what to write."""


class Nothing(BaseModel):
    """No input, or no output."""


def decorated(loaded: ModuleType) -> dict[str, FunctionModule]:
    """What apcore's `@module` made of functions in a file, by the functions' names."""
    made = {name: getattr(value, "apcore_module", None) for name, value in vars(loaded).items() if callable(value)}
    return {name: module for name, module in made.items() if isinstance(module, FunctionModule)}


def plain(loaded: ModuleType) -> dict[str, Function]:
    """The public functions that a file defines itself; with `__all__`, only those it names."""
    public = getattr(loaded, "__all__", None)
    return {name: function for name, function in _functions(loaded) if public is None or name in public}


def _functions(loaded: ModuleType) -> Iterator[tuple[str, Function]]:
    for name, value in vars(loaded).items():
        if inspect.isfunction(value) and value.__module__ == loaded.__name__ and not name.startswith("_"):
            yield name, value


def module_of(function: Function, module_id: str) -> FunctionModule:
    """A function as a module: called with values of its types, and answering plain JSON; or `NotATool`."""
    name = function.__name__
    hints = _hints(function)
    _check_parameters(function, hints)
    returned = hints.get("return", Any)
    try:
        schema, is_object = _answer_schema(returned)
        config = ConfigDict(arbitrary_types_allowed=True)
        checked = validate_call(config=config, validate_return="return" in hints)(function)
        description = None if function.__doc__ else name.replace("_", " ").capitalize()
        run = _answering(function, checked, is_object=is_object)
        return FunctionModule(run, module_id, description=description, output_schema=_documented(schema))
    except PydanticUserError as error:
        what = str(error).partition("\n")[0]
        raise NotATool(f"{name} cannot be a tool: {what} Use types that JSON can write down.") from None


def identifier(name: str) -> str:
    """A Python name as a part of a module id: `getUser` is `get_user`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _hints(function: Function) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise NotATool(f"{function.__name__} cannot be a tool: its type {error.name!r} is not defined.") from None


def _check_parameters(function: Function, hints: dict[str, Any]) -> None:
    name, parameters = function.__name__, inspect.signature(function).parameters
    untyped = [each for each, about in parameters.items() if each not in hints and about.kind not in _MANY]
    if untyped:
        listed = " and ".join(f"'{each}'" for each in untyped)
        raise NotATool(
            f"{name} cannot be a tool yet: give {listed} a type, such as {untyped[0]}: str. "
            f"To keep the function private, call it _{name}."
        )
    if any(about.kind is _POSITIONAL for about in parameters.values()):
        raise NotATool(f"{name} cannot be a tool: its arguments come by name, so take the / out of its signature.")


def _answer_schema(returned: Any) -> tuple[dict[str, Any], bool]:
    """The JSON Schema of what a function answers, and whether that is an object as it is."""
    if returned is None or returned is type(None):
        return {"type": "object"}, True
    if returned is Any:
        return {"type": "object", "properties": {"result": {}}, "required": ["result"]}, False
    own = TypeAdapter(returned).json_schema(mode="serialization")
    if own.get("type") == "object":
        return own, True
    return create_model("Output", result=(returned, ...)).model_json_schema(mode="serialization"), False


def _documented(schema: dict[str, Any]) -> type[BaseModel]:
    """A model that says the schema and lets everything through: the function's own type was checked before."""

    class Output(BaseModel):
        model_config = ConfigDict(extra="allow")

        @classmethod
        def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
            return copy.deepcopy(schema)

    return Output


def _answering(function: Function, checked: Function, *, is_object: bool) -> Function:
    def answer(value: Any) -> Any:
        plain = to_jsonable_python(value)
        return plain if is_object else {"result": plain}

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run_async(**arguments: Any) -> Any:
            return answer(await checked(**arguments))

        return run_async

    @functools.wraps(function)
    def run(**arguments: Any) -> Any:
        return answer(checked(**arguments))

    return run
