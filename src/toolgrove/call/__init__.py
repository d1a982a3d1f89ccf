"""The gate around every call: small steps, folded into one chain; knows no pool and no transport.

`Grove` folds them in this order: trace, large_results, audit, in_flight, rate_limit, toolset, role, validate, parts,
idempotency, cut_off, approval, begun, scrub.

- ``abandoned``: approvals that a process claimed and did not live to use
- ``actor``: who makes a call, the agent itself or somebody who acts as it
- ``approval``: holds a call back until a person agreed to it
- ``audit``: turns failures into answers, and leaves one record of every call
- ``begun``: keeps a durable record before a call that changes something outside is sent
- ``bodies``: what is kept of a call's arguments and result
- ``chain``: folds steps into one function for each tool
- ``changed``: says in an answer which policies changed it
- ``claimant``: the process that claimed an approval, told apart from a later one of the same number
- ``cut_off``: stops the first repetition of a call that a crash cut off
- ``ending``: how a call ended, as an event
- ``idempotency``: answers a repeated request with the first result
- ``ids``: ids of calls and runs, which no other process gives out
- ``in_flight``: the calls under way, which the end of the project cuts off
- ``inbox``: the calls that wait for a person, and what was decided
- ``kept_results``: large results that were cut, kept for a while
- ``large_results``: cuts results that are larger than a model should read
- ``parts``: a call that stands for several needs what each of them needs
- ``rate_limit``: refuses an agent that calls too often, itself or through others
- ``reading_on``: the tool that reads on in a result that was cut
- ``recorder``: records what happens outside of calls
- ``role``: keeps readers from tools that change something
- ``run_events``: the events of one run on their way to its reader, within bounds
- ``scrub``: keeps secrets out of results, failures and progress; the only owner of that
- ``sensitive``: the arguments that a schema marks as sensitive
- ``shortening``: cuts a large value by its structure
- ``strip``: takes unseen characters out of foreign results, where the operator wants that
- ``toolset``: refuses a tool that the agent was not given
- ``trace``: one OpenTelemetry span per call
- ``validate``: checks the arguments against the tool's schema
"""

from toolgrove.call.chain import Chain, Only

__all__ = ["Chain", "Only"]
