"""The gate around every call: small steps, folded into one chain."""

from toolgrove.call.chain import fold

__all__ = ["fold"]
