"""One governed tool surface for AI agents."""
