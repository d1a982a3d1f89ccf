"""One governed tool surface for AI agents.

- ``access_plan``: what to write into the project file so that an agent has a tool, or not
- ``agent``: an agent at work: the tools that it was given, and the way to call them
- ``budgets``: how much may happen in a time: allowances that refill, windows that move
- ``call``: the gate around every call
- ``cli``: the command line
- ``config``: the project file
- ``control``: how commands reach the gateway that serves their project
- ``database``: where a project's database is, with the secrets of its address read
- ``errors``: every failure that an agent can meet
- ``events``: what happened, published to listeners
- ``giving_way``: how long work in a thread gives way to the event loop
- ``grove``: the composition root, which knows every part
- ``journals``: which journal a project has
- ``logs``: what a log may hold
- ``lookout``: looks again and again whether what a project keeps can be kept
- ``mcp_face``: an agent over MCP
- ``model_run``: a run with a model
- ``notation``: how things are written down: JSON and shared texts
- ``notary``: where the key of the audit log is
- ``notifier``: tells a webhook that a call waits for a person
- ``openai_tools``: an agent's tools as OpenAI definitions
- ``pool``: tools of many sources, resolved into one toolset per agent
- ``project_identity``: of which project this machine's files are
- ``project_state``: what a project keeps between runs: pins, approvals, tokens
- ``reload``: following the project file
- ``runners``: what drives a sub-agent
- ``sample``: the project of `toolgrove demo`
- ``server_logins``: logins to MCP servers that a person makes in a browser
- ``shared_limits``: where the calls of agents are counted, if not in this process alone
- ``sources``: the sources of a configuration
- ``store``: what outlives a call
- ``tools``: the tree tools
- ``tree``: the tree
- ``tree_shelf``: the tree as resources that can be read and watched
- ``types``: the values that parts hand to each other
- ``web``: the gateway over HTTP
- ``webhook``: one notice to one address: signed, and sent again while that can help
"""

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
