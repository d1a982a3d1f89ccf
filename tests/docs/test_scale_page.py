"""The page on scale shows the configuration that the journeys of replicas use."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_configuration_of_the_balancer_is_the_tested_one() -> None:
    shown = (ROOT / "docs" / "scale.md").read_text()
    assert (ROOT / "examples" / "haproxy.cfg").read_text() in shown
