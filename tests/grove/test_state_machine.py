"""All tools, several agents, stale versions, replays and limits, against a nested-dict model."""

import pytest
from hypothesis import HealthCheck, settings

from workspace_machine import Workspace


class OfNodes(Workspace):
    """The same where only what a call rests on makes its version stale."""

    concurrency = "node"


class InThreads(Workspace):
    """The same with every call that could be long in a thread, and every such change on a copy."""

    long_after = 0


for machine, examples in ((Workspace, 40), (OfNodes, 40), (InThreads, 15)):
    machine.TestCase.settings = settings(
        max_examples=examples, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
TestWorkspace = pytest.mark.long(Workspace.TestCase)
TestOfNodes = pytest.mark.long(OfNodes.TestCase)
TestInThreads = pytest.mark.long(InThreads.TestCase)
