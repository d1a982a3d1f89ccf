"""The sample project of `toolgrove demo`: a kitchen garden, its agents, and a seed shop on loopback."""
