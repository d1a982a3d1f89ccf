"""One governed tool surface for AI agents."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolgrove.agent import Agent
    from toolgrove.config import Config
    from toolgrove.grove import Grove

__all__ = ["Agent", "Config", "Grove"]


def __getattr__(name: str) -> object:
    """A name when it is first wanted: a command that needs less starts sooner."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{name.lower()}"), name)
