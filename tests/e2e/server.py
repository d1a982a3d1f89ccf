"""`python -m e2e.server OPTIONS JOURNAL`: the sample modules, served by `serve(registry, **OPTIONS)`."""

import json
import sys
from pathlib import Path

from apcore_mcp import serve
from e2e.modules import Journal, sample_registry

if __name__ == "__main__":
    journal = Journal(Path(sys.argv[2]))

    async def on_startup() -> None:
        journal.write("startup")

    def on_shutdown() -> None:
        journal.write("shutdown")

    serve(sample_registry(journal), on_startup=on_startup, on_shutdown=on_shutdown, **json.loads(sys.argv[1]))
    journal.write("returned")
