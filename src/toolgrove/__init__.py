"""One governed tool surface for AI agents."""

from toolgrove.agent import Agent
from toolgrove.config import Config
from toolgrove.grove import Grove

__all__ = ["Agent", "Config", "Grove"]
