"""examples/energy_epochs.py: joules where something can be measured, else why not; it works in both cases."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "energy_epochs.py"


def test_it_tells_joules_or_why_there_are_none(tmp_path):
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "run.marey")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # it computes for five seconds
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second, *_ = done.stdout.splitlines()
    assert first.startswith("Two epochs on ")
    assert second.startswith(("epoch 0, ", "No energy was measured: "))
