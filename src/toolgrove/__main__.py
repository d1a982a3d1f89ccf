"""`python -m toolgrove`."""

import sys

from toolgrove.cli import main

sys.exit(main())
