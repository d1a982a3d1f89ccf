"""All tools, several agents, stale versions, replays and limits, against a nested-dict model."""

from hypothesis import HealthCheck, settings

from workspace_machine import Workspace


class OfNodes(Workspace):
    """The same where only what a call rests on makes its version stale."""

    concurrency = "node"


for machine, examples in ((Workspace, 60), (OfNodes, 60)):
    machine.TestCase.settings = settings(
        max_examples=examples, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
TestWorkspace = Workspace.TestCase
TestOfNodes = OfNodes.TestCase
