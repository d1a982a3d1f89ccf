"""`python -m toolgrove.cli`."""

import sys

from toolgrove.cli.program import main

sys.exit(main())
