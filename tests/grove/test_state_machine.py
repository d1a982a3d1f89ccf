"""All tools, several agents, stale versions, replays and limits, against a nested-dict model."""

from hypothesis import HealthCheck, settings

from workspace_machine import Workspace

Workspace.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestWorkspace = Workspace.TestCase
