"""Exports of a registry to other tool formats."""
