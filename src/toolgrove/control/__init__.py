"""How commands on this machine reach the gateway that serves their project.

A gateway leaves a note in the state folder and listens on a socket that only its own user can open. A message is one
line of JSON; a client of MCP over stdio is carried over the same socket. The modules that a quick command needs import
nothing beyond the standard library.

- ``client``: asks a gateway to do something, and hears how it goes
- ``door``: knocks at the socket that a note names
- ``note``: what a running gateway leaves for commands to find
- ``place``: where the socket is: a path that is short enough, or loopback with a token
- ``relay``: stdin and stdout, carried to the gateway
- ``server``: answers commands, and serves clients that are carried
- ``wire``: lines of JSON over a connection
"""
