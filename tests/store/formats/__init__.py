"""Stored projects as releases wrote them: each must open, verify and go on in every later version."""
