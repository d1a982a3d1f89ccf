"""Write the table of options in docs/serving.md from `apcore_mcp.options.Options`.

python docs/gen_options.py            write the table
python docs/gen_options.py --check    exit 1 if the table is not what would be written
"""

import dataclasses
import sys
from pathlib import Path
from typing import Any

from apcore_mcp.cli import _parser
from apcore_mcp.options import Options

PAGE = Path(__file__).resolve().parent / "serving.md"
START, END = "<!-- options: written by docs/gen_options.py -->\n", "<!-- end of options -->\n"

# What the options that are no flags do.
IN_CODE = {
    "on_startup": "called, or awaited, once the server answers",
    "on_shutdown": "called, or awaited, before the server stops answering",
    "cache_schemas": "compute each pydantic model's JSON Schema once instead of three times per call",
}


def table() -> str:
    flags = {action.dest: action for action in _parser()._actions}
    rows = ["| option | flag | default | meaning |", "|---|---|---|---|"]
    for option in dataclasses.fields(Options):
        flag = flags.get(option.name)
        star = "*" if option.metadata.get("action") == "append" else ""
        spelled = f"`{flag.option_strings[0]}`{star}" if flag else "–"
        meaning = option.metadata.get("help") or IN_CODE[option.name]
        choices = option.metadata.get("choices")
        meaning += f": {', '.join(f'`{choice}`' for choice in choices)}" if choices else ""
        rows.append(f"| `{option.name}` | {spelled} | {_default(option, flag)} | {meaning} |")
    return "\n".join(rows) + "\n"


def _default(option: Any, flag: Any) -> str:
    if option.name == "version":
        return "the package's version"
    in_code = f"`{option.default!r}`".replace("'", '"')
    same = flag is None or flag.default == option.default
    return in_code if same else f"{in_code}; as a flag `{flag.default}`"


def page(text: str) -> str:
    """The page with the current table in it."""
    before, _, rest = text.partition(START)
    return before + START + "\n" + table() + "\n" + END + rest.partition(END)[2]


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv:
        return int(page(text) != text)
    PAGE.write_text(page(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
