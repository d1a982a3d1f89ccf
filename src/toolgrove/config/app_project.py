"""The project of a single Python file: what it offers, for one agent."""

from __future__ import annotations

import json
import re
from pathlib import Path

from apcore_files.app_name import parts

AGENT = "assistant"


def project_of(app: Path) -> str:
    """The project file that `app.py` stands for; its agent has the tools of the file and nothing else."""
    file, _ = parts(app.name)
    project = {
        "project": re.sub(r"[^A-Za-z0-9_-]+", "-", file.stem) or "app",
        "workspace": False,
        "extensions": app.name,
        "agents": {AGENT: {"role": "editor", "tools": ["*"], "deny": ["spawn_agents", "list_available_agents"]}},
    }
    return json.dumps(project)
