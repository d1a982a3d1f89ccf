"""Upstreams that misbehave, and what must hold all the same."""
