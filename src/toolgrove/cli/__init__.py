"""The command line: start a project, check it, ask why, and call tools by hand."""

from toolgrove.cli.arguments import read_arguments
from toolgrove.cli.program import main
from toolgrove.cli.repl import Conversation

__all__ = ["Conversation", "main", "read_arguments"]
