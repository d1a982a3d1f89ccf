"""The examples for whoever runs a gateway (alerts, a systemd unit, a Kubernetes manifest), held against a real one."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from toolgrove.config import Config
from toolgrove.web.schemas import TroubleWord
from waiting import DEADLINE, eventually
from web.gateway import Gateway, started

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
STOP = 5.0
"""Seconds in which a gateway ends once it stops serving."""
OF_PROMETHEUS = {"up"}
WORDS = {"by", "on", "or", "and", "unless", "max", "increase", "delta", "min_over_time"}


def parsed(name: str) -> list[Any]:
    return list(YAML(typ="safe", pure=True).load_all((EXAMPLES / name).read_text("utf-8")))


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = [one for one in parsed("kubernetes.yaml") if one["kind"] == kind]
    return dict(found)


@pytest.fixture(scope="module")
def container() -> dict[str, Any]:
    (found,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(found)


@pytest.fixture(scope="module")
def project() -> str:
    return str(of_kind("ConfigMap")["data"]["toolgrove.yaml"])


@pytest.fixture
def pod(tmp_path: Path, database: str, container: dict[str, Any], project: str) -> Iterator[Gateway]:
    """A gateway as the manifest starts it, with a port, an address, a state folder and secrets of this machine."""
    command, file, *flags = container["args"]
    assert (command, file) == ("serve", "/project/toolgrove.yaml")
    flags = [str(flag) for flag in flags]
    for option, here in (("--host", "127.0.0.1"), ("--port", "0")):
        flags[flags.index(option) + 1] = here
    (tmp_path / "state").mkdir()
    address = urlsplit(database)
    text = project
    for theirs, ours in (
        ("state: /state", f"state: {tmp_path / 'state'}"),
        ("//grove_app:", f"//{address.username}:"),
        ("/grove?sslmode=verify-full", f"{address.path}?{address.query}"),
    ):
        assert theirs in text
        text = text.replace(theirs, ours)
    secrets = {
        "database": f"{address.hostname}:{address.port}",
        "database-password": "trusted",
        "audit-key": "a key of this test alone",
    }
    keys = {one["name"]: one["valueFrom"]["secretKeyRef"]["key"] for one in container["env"]}
    assert set(of_kind("Secret")["stringData"]) == set(keys.values()) == set(secrets)
    with started(tmp_path, text, *flags, environ={name: secrets[key] for name, key in keys.items()}) as gateway:
        yield gateway


# Alerts ---------------------------------------------------------------------------------------------


def rules() -> list[dict[str, Any]]:
    (document,) = parsed("prometheus-alerts.yaml")
    return [rule for group in document["groups"] for rule in group["rules"]]


async def test_each_alert_asks_only_for_what_a_gateway_tells(pod: Gateway) -> None:
    async with pod.http("operator") as http:
        text = (await http.get("/metrics")).text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    labels: dict[str, set[str]] = {}
    for sample in samples:
        labels.setdefault(sample.name, set()).update(sample.labels)
    for rule in rules():
        bare = re.sub(r"\{[^}]*\}|\[\w+\]|\"[^\"]*\"|\((?:instance|trouble|mark|, )*\)", "", rule["expr"])
        names = set(re.findall(r"[a-z_]{2,}", bare)) - WORDS
        assert names, rule
        assert names - OF_PROMETHEUS <= set(labels), rule["alert"]
        for name, wanted in re.findall(r"(\w+)\{([^}]*)\}", rule["expr"]):
            for label, value in re.findall(r'(\w+)=~?"([^"]*)"', wanted):
                if name not in OF_PROMETHEUS:
                    told = {sample.labels.get(label) for sample in samples if sample.name == name}
                    assert set(value.split("|")) <= told, (rule["alert"], label, value)


def test_each_trouble_that_a_gateway_may_name_has_an_alert() -> None:
    asked = [re.findall(r'trouble=~?"([^"]+)"', rule["expr"]) for rule in rules() if "Not" not in rule["alert"]]
    assert {word for found in asked for one in found for word in one.split("|")} == set(get_args(TroubleWord))


def test_each_alert_has_a_name_of_its_own_a_severity_and_a_summary() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names) > 10
    for rule in rules():
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), rule
        assert rule["annotations"]["summary"], rule
        assert re.fullmatch(r"\d+m", rule.get("for", "1m")), rule


def test_the_page_on_operations_names_every_alert_and_every_file() -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    assert set(re.findall(r"`(Toolgrove[A-Z]\w+)`", page)) == {rule["alert"] for rule in rules()}
    for name in ("prometheus-alerts.yaml", "toolgrove.service", "kubernetes.yaml"):
        assert f"`examples/{name}`" in page


# A unit ---------------------------------------------------------------------------------------------


def unit() -> RawConfigParser:
    found = RawConfigParser(strict=True)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string((EXAMPLES / "toolgrove.service").read_text("utf-8"))
    return found


def test_the_unit_starts_a_gateway_and_gives_it_time_to_end(tmp_path: Path) -> None:
    service = unit()["Service"]
    program, command, file, *flags = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("toolgrove", "serve")
    assert Path(file).parent == Path(service["WorkingDirectory"]) == Path("/var/lib", service["StateDirectory"])
    flags[flags.index("--port") + 1] = "0"
    assert float(service["TimeoutStopSec"]) > STOP + 10, "with ten seconds of `drain`"
    with started(tmp_path, {"agents": {"editor": {"tools": ["*"]}}}, *flags) as gateway:
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(DEADLINE) == 0


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd's own tool")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = (EXAMPLES / "toolgrove.service").read_text("utf-8")
    file = tmp_path / "toolgrove.service"
    file.write_text(text.replace("/opt/toolgrove/bin/toolgrove", str(Path(sys.executable))), "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True)
    told = [line for line in done.stderr.splitlines() if "toolgrove.service" in line]
    assert (done.returncode, told) == (0, [])


# A manifest -----------------------------------------------------------------------------------------


async def test_the_probes_of_the_manifest_ask_a_gateway_and_see_that_it_stops(
    pod: Gateway, container: dict[str, Any]
) -> None:
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    flags = container["args"]
    assert ports == {"http": int(flags[flags.index("--port") + 1])}
    probes = {name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe", "startupProbe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "livenessProbe": "/health",
        "readinessProbe": "/ready",
        "startupProbe": "/health",
    }
    async with pod.http() as http:

        async def status(name: str) -> int:
            probe = probes[name]
            assert probe["port"] in ports
            headers = {one["name"]: one["value"] for one in probe["httpHeaders"]}
            return (await http.get(probe["path"], headers=headers)).status_code

        assert [await status(name) for name in probes] == [200, 200, 200]
        refused = await http.get("/ready", headers={"Host": "10.1.2.3:8000"})
        assert refused.status_code != 200, "so a probe without a Host header would fail"
        pod.process.send_signal(signal.SIGTERM)

        async def is_unready() -> bool:
            return await status("readinessProbe") == 503

        await eventually(is_unready)
        assert await status("livenessProbe") == 200
        pod.process.send_signal(signal.SIGTERM)  # which ends the wait
    assert pod.process.wait(DEADLINE) is not None


def test_the_manifest_gives_a_gateway_time_to_end_and_no_more_rights_than_it_needs(
    container: dict[str, Any], project: str
) -> None:
    spec = of_kind("Deployment")["spec"]["template"]["spec"]
    config = Config.model_validate(YAML(typ="safe", pure=True).load(project))
    probe = container["readinessProbe"]
    assert config.drain > probe["periodSeconds"] * (probe["failureThreshold"] + 1), "a balancer notices the end"
    assert spec["terminationGracePeriodSeconds"] >= config.drain + STOP
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    volumes = {one["name"]: one for one in spec["volumes"]}
    mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
    assert {one["name"] for one in mounts.values()} == set(volumes)
    assert "emptyDir" in volumes[mounts["/state"]["name"]], "the state folder is all that it writes"
    assert str(config.state) == "/state"
    assert volumes[mounts["/project"]["name"]]["configMap"]["name"] == of_kind("ConfigMap")["metadata"]["name"]
    assert {one["valueFrom"]["secretKeyRef"]["name"] for one in container["env"]} == {
        of_kind("Secret")["metadata"]["name"]
    }


def test_the_service_of_the_manifest_leads_to_its_pods(container: dict[str, Any]) -> None:
    service, deployment = of_kind("Service")["spec"], of_kind("Deployment")["spec"]
    assert service["selector"] == deployment["selector"]["matchLabels"] == deployment["template"]["metadata"]["labels"]
    assert {one["targetPort"] for one in service["ports"]} <= {one["name"] for one in container["ports"]}
