"""`python -m apcore_mcp`."""

from apcore_mcp.cli import main

raise SystemExit(main())
