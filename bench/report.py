"""Tables for people and JSON for machines, and the circumstances in which the figures came about."""

import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

STARTED = time.monotonic()
SUBJECTS = {
    "direct": "direct",
    "ours": "ours",
    "bare": "ours, net",
    "limit": "limit",
    "sdk": "bare SDK",
    "even": "SDK, our HTTP",
    "lean": "lean SDK",
    "peer": "peer",
    "fastmcp": "FastMCP",
    "mcp_proxy": "mcp-proxy",
    "forge": "ContextForge",
    "memory": "in memory",
    "sqlite": "SQLite",
    "postgres": "PostgreSQL",
    "one": "one replica",
    "two": "two replicas",
    "ten": "10",
    "hundred": "100",
    "alone": "alone",
    "uvicorn": "uvicorn",
}


def say(text: str) -> None:
    """Tell whoever waits how far the run is."""
    sys.stderr.write(f"[{time.monotonic() - STARTED:5.0f} s] {text}\n")


def circumstances(quick: bool, packages: Iterable[str], beside: str) -> dict[str, str]:
    """Where and with what the figures are measured; `beside` names what stands beside us."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": f"{os.cpu_count()} shared cores, {platform.machine()}, Linux, load {load} before the run",
        "versions": f"Python {platform.python_version()}, {versions}; {beside}",
        "effort": "quick" if quick else "full",
    }


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured question. `met` is None where nothing was promised."""

    what: str
    values: dict[str, float | None]
    ratio: float | None = None
    target: str = ""
    met: bool | None = None

    def cells(self, subjects: list[str]) -> list[str]:
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}×"
        return [self.what, *(number(self.values.get(name)) for name in subjects), ratio, self.target, verdict]


@dataclass
class Table:
    title: str
    rows: list[Row] = field(default_factory=list)

    def add(self, what: str, values: dict[str, float | None], **judgement: Any) -> None:
        self.rows.append(Row(what=what, values=values, **judgement))

    def lines(self) -> list[str]:
        """Markdown that reads as plain text."""
        subjects = [name for name in SUBJECTS if any(row.values.get(name) is not None for row in self.rows)]
        head = ["", *(SUBJECTS[name] for name in subjects), "ratio", "target", ""]
        cells = [head, *(row.cells(subjects) for row in self.rows)]
        widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
        lines = [
            "| "
            + " | ".join(_pad(cell, width, at) for at, (cell, width) in enumerate(zip(line, widths, strict=True)))
            + " |"
            for line in cells
        ]
        rule = "|" + "|".join("-" * (width + 1) + ("-" if not at else ":") for at, width in enumerate(widths)) + "|"
        return [f"### {self.title}", "", lines[0], rule, *lines[1:], ""]


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


@dataclass
class Report:
    facts: dict[str, str]
    tables: list[Table] = field(default_factory=list)

    def table(self, title: str) -> Table:
        self.tables.append(Table(title))
        return self.tables[-1]

    @property
    def missed(self) -> list[str]:
        """One line for each target that was not reached; a row that continues another is told with it."""
        lines = []
        for table in self.tables:
            subject = ""
            for row in table.rows:
                subject = subject if row.what.startswith("…") else row.what
                what = subject if subject == row.what else f"{subject} {row.what}"
                if row.met is False:
                    ratio = "" if row.ratio is None else f"ratio {row.ratio:.2f}, "
                    lines.append(f"{table.title}: {what}: {ratio}target {row.target}")
        return lines

    def text(self) -> str:
        facts = [f"{name}: {fact}" for name, fact in self.facts.items()]
        loud = [f"!!! TARGET MISSED – {each}" for each in self.missed] or ["Every target is met."]
        return "\n".join([*facts, "", *(line for table in self.tables for line in table.lines()), *loud])

    def finish(self, file: Path | None) -> None:
        """Print all, and keep it in a file if one is named."""
        load, cores = os.getloadavg()[0], os.cpu_count() or 1
        noisy = ": MORE THAN THE CORES, so times and rates tell little; CPU and ratios tell more"
        self.facts["load after"] = f"{load:.1f} on {cores} cores{noisy if load > cores else ''}"
        self.facts["duration"] = f"{time.monotonic() - STARTED:.0f} s"
        print(self.text())
        if file is not None:
            self._save(file)

    def _save(self, file: Path) -> None:
        tables = [asdict(table) for table in self.tables]
        file.write_text(json.dumps({"facts": self.facts, "tables": tables, "missed": self.missed}, indent=2) + "\n")
