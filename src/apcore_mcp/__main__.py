"""`python -m apcore_mcp`."""

import sys

from apcore_mcp.cli import main

sys.exit(main())
