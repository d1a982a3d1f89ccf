"""Clients and servers that other people wrote, each in an environment of its own (tools/ecosystem.sh)."""
