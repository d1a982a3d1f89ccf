"""Runners: what drives a sub-agent with exactly the tools that it was given."""

from toolgrove.runners.configured import from_config
from toolgrove.runners.runner import RunnableAgent, Runner

__all__ = ["RunnableAgent", "Runner", "from_config"]
