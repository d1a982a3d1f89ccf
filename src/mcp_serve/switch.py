"""The switch of the lane, for diagnosis."""

import os

SWITCH = "MCP_SERVE_LANE"


def is_open() -> bool:
    """Whether there is a lane at all; `MCP_SERVE_LANE=off` sends every request through the SDK."""
    return os.environ.get(SWITCH, "on").lower() not in ("off", "0", "false", "no")
