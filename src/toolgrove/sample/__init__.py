"""The sample project of `toolgrove demo`: a kitchen garden, its agents, and a seed shop on loopback.

- ``folder``: the project's folder, written once
- ``hand``: the calls of one agent, with the version that they need
- ``order``: the order that waits for a person
- ``past``: a day of traffic before the first start
- ``season``: the past of the garden, so that there is a history to look at
- ``shop``: the seed shop, an HTTP API on loopback
- ``watering``: the sprinkler, an agent to watch at work
"""
