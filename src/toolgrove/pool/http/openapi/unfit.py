"""Why an operation cannot be a tool."""


class Unfit(ValueError):
    """An operation asks for something that cannot be sent; the message is for the operator."""
