"""The faults that are planted for the checker still fit the source; `python tools/plant.py` has it find them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_fault_that_can_be_planted_fits_the_source() -> None:
    done = subprocess.run(
        [sys.executable, "tools/plant.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
