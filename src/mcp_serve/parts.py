"""What an endpoint is made of: shared by the lane, and by the SDK once that is loaded."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_serve.answer import Answer
from mcp_serve.calls import Calls
from mcp_serve.listing import Listing
from mcp_serve.prompts import Prompts
from mcp_serve.resources import Resources
from mcp_serve.table import ToolTable
from mcp_serve.under_way import UnderWay

if TYPE_CHECKING:
    from mcp_serve.sessions import OpenSession


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """`sessions` are those of the older era, by their ids over HTTP; None is the one over stdio.

    `under_way` are the requests over stdio that the lane answers.
    """

    name: str
    version: str
    tools: ToolTable
    calls: Calls
    listing: Listing
    refuse: Callable[[str], Answer]
    resources: Resources
    watches: bool
    prompts: Prompts | None
    logs: Callable[[], bool] | None
    logger: logging.Logger
    state_key: bytes
    sessions: "dict[str | None, OpenSession]" = field(default_factory=dict)
    under_way: UnderWay = field(default_factory=UnderWay)
