"""One governed tool surface for AI agents."""

from toolgrove.config import Config
from toolgrove.grove import Agent, Grove

__all__ = ["Agent", "Config", "Grove"]
