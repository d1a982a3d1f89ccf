"""A checker of histories: clients, faults, and the proof that what was acknowledged stays.

It shares no assumption with the product. It knows the public way in (MCP in both eras, `/ready`, the operator's
commands, a fresh start) and replays the rows of the journal by code of its own.

- ``history``: what clients asked for and were told, and what is left in the end
- ``lines``: a client's connection to a replica, and what became of each call
- ``clients``: clients that draw what they do
- ``payments``: calls outside that need an approval, and who decides about them
- ``deployment``: replicas on one store, each behind a proxy of its own
- ``faults``: what is broken meanwhile
- ``stored``: the journal's rows, replayed
- ``run``: one run, from planting to the last look
- ``checks``: pure functions that say what is wrong with a history
- ``__main__``: ``python -m histories --seconds 600`` from this folder's parent
"""
