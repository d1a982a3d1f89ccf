"""How fast the bridge is, beside what it builds on and what it competes with."""
