"""Whole sessions with servers that other people wrote."""
