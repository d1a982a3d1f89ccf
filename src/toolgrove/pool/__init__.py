"""The pool: tools of many sources, resolved into one fixed toolset per agent.

It knows no tree, no transport towards agents, and nothing of how a call is let through.

- ``address``: which network addresses may be reached
- ``compact_schema``: an input schema in few words
- ``completions``: what servers suggest for the arguments of prompts and templates
- ``coordination``: the tools with which an agent hands tasks to other agents
- ``definition_lint``: what in a definition is legal, but worth a look by a person
- ``discovery``: the tools with which an agent finds and calls others
- ``exposure``: which of its tools an agent is shown
- ``extensions``: modules of an apcore registry as tools
- ``fair_shares``: how many calls of one upstream run or wait at a time, and whose
- ``globs``: patterns that name tools
- ``host``: from the name of a host to addresses that were checked
- ``http``: HTTP calls and OpenAPI operations as tools
- ``instructions``: what an agent's client is told at the start
- ``mcp``: tools of external MCP servers
- ``metadata``: what a foreign definition must be like to enter the pool
- ``misdeeds``: what servers do against the protocol, counted
- ``module_threads``: whose the threads are in which modules run that are not async
- ``naming``: which names are legal, and how long ones are shortened
- ``offer``: what a source offers, and the protocol that every source follows
- ``offspring``: the processes that an instance of a project started, ended with it or at the next start
- ``pin_policy``: which foreign definitions are accepted without a person
- ``pool``: runs the sources and keeps one snapshot of what they offer
- ``prompts``: the prompts of servers that an agent is given
- ``ranking``: finds tools by words
- ``receipt``: why an agent has a tool, or has not
- ``resolve``: from a snapshot and an agent's definition to its toolset
- ``resources``: what an agent may read of the resources of servers
- ``schema_size``: how large a JSON Schema is with its references followed
- ``scrubber``: takes known secret values out of text
- ``secret_encodings``: the ways in which a secret may be written in a text
- ``secrets``: references to secrets: read, bound to their scope, remembered for scrubbing
- ``snapshot``: every tool of every source at one moment
- ``source_names``: what the tools of one source are called here
- ``toolsets``: what patterns and named sets name in the pool
"""
