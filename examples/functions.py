"""Plain functions with types: apcore-mcp functions.py serves them as they are."""

from datetime import date


def days_between(first: date, last: date) -> int:
    """Count the days from one date to another."""
    return (last - first).days


def plan_beds(length: float, spacing: float = 0.25) -> dict[str, int]:
    """Say how many plants fit into a bed.

    Args:
        length: the length of the bed in metres
        spacing: metres from plant to plant
    """
    return {"plants": int(length // spacing) + 1}
