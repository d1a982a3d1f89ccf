"""What to type, command by command; help ends with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

EXAMPLES: Mapping[str, Sequence[str]] = {
    "": ("toolgrove demo", "toolgrove init && toolgrove doctor", "toolgrove serve", "toolgrove COMMAND --help"),
    "demo": ("toolgrove demo", "toolgrove demo --port 9000 --no-browser"),
    "init": ("toolgrove init", "toolgrove init --config work.yaml"),
    "doctor": ("toolgrove doctor", "toolgrove doctor --no-start --json"),
    "serve": (
        "toolgrove serve",
        "toolgrove serve app.py",
        "toolgrove serve garden.yaml shop.yaml --port 9000",
        "toolgrove serve --wait",
    ),
    "open": ("toolgrove open",),
    "stdio": ("toolgrove stdio researcher",),
    "install": ("toolgrove install claude-code researcher --write", "toolgrove install claude-desktop app.py"),
    "tools": ("toolgrove tools researcher", "toolgrove tools app.py"),
    "explain": ("toolgrove explain researcher", "toolgrove explain researcher add_child"),
    "call": ("toolgrove call editor get_node nodeId=root", """toolgrove call editor get_node '{"nodeId": "root"}'"""),
    "repl": ("toolgrove repl editor", "toolgrove repl --sample"),
    "run": ("toolgrove run researcher 'Which beds need water?'",),
    "tree": ("toolgrove tree --depth 2", "toolgrove tree export.json"),
    "approvals": ("toolgrove approvals --watch", "toolgrove approvals approve ID --for 1h"),
    "pins": ("toolgrove pins diff", "toolgrove pins accept SERVER TOOL"),
    "tokens": ("toolgrove tokens", "toolgrove tokens new researcher --for 30d"),
    "login": ("toolgrove login SERVER",),
    "logout": ("toolgrove logout SERVER",),
    "audit": ("toolgrove audit --limit 20", "toolgrove audit -f --agent researcher", "toolgrove audit verify"),
    "backup": ("toolgrove backup garden.tgbackup",),
    "restore": ("toolgrove restore garden.tgbackup",),
    "migrate": ("toolgrove migrate sqlite:data/grove.db postgresql://grove@db/grove",),
    "schema": ("toolgrove schema > toolgrove.schema.json",),
    "completion": (
        "toolgrove completion bash >> ~/.bashrc",
        "toolgrove completion zsh >> ~/.zshrc",
        "toolgrove completion fish > ~/.config/fish/completions/toolgrove.fish",
    ),
}


def examples_of(command: str) -> str | None:
    """The end of a command's help."""
    lines = EXAMPLES.get(command)
    return None if lines is None else "\n".join(["Examples:", *(f"  {one}" for one in lines)])
