"""Runners: what drives a sub-agent with exactly the tools that it was given.

- ``adk``: drives an agent with Google's ADK
- ``chat``: what a chat-completions endpoint answers
- ``completions``: asks such an endpoint over HTTP
- ``configured``: the runner that a project's file asks for
- ``model_text``: what a model reads of a result
- ``openai``: drives an agent with any OpenAI-compatible endpoint
- ``pieces``: an answer that comes piece by piece
- ``runner``: the protocol that every runner follows
"""

from toolgrove.runners.configured import from_config
from toolgrove.runners.runner import RunnableAgent, Runner

__all__ = ["RunnableAgent", "Runner", "from_config"]
