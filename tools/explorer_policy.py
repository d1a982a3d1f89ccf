"""The Content-Security-Policy of the built Explorer page: its own script and style, known by their hashes.

`python tools/explorer_policy.py PAGE.html` prints it; the build keeps it beside the page.
"""

import base64
import hashlib
import re
import sys
from pathlib import Path


def policy(html: str) -> str:
    inline = re.findall(r"<(script|style)[^>]*>(.*?)</\1>", html, re.DOTALL)
    digests = {tag: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for tag, text in inline}
    return (
        f"default-src 'none'; script-src 'sha256-{digests['script']}'; style-src 'sha256-{digests['style']}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


if __name__ == "__main__":
    print(policy(Path(sys.argv[1]).read_text(encoding="utf-8")))
