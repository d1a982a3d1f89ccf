"""Logins to MCP servers that ask for OAuth; imported only where a server has an `oauth` block.

The formats and the rules of discovery are those of the `mcp` package; every request goes through our own connections,
which check each address.

- ``web``: single requests to whatever address a server names, all of them checked and bounded
- ``discovery``: who gives out the tokens for a server, and for what
- ``registration``: which client we are there
- ``grants``: from a code, a refresh token or a secret to a login
- ``target``: what a server's entry in the project file says about a login to it
- ``attempt``: a person's login that has begun, and what the answer to it is worth
- ``callback``: the address on this machine to which a browser comes back
- ``browser``: a person's login from a terminal
- ``ending``: telling an authorization server that a login is over
- ``bearer``: the token that a running gateway sends, renewed in time
"""
