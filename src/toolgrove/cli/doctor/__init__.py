"""`toolgrove doctor`: is everything in order, and if not, what to do."""

from toolgrove.cli.doctor.command import add

__all__ = ["add"]
