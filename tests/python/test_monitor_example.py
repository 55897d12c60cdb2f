"""examples/monitor_loop.py: it trains, and says what an epoch takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "monitor_loop.py"


@pytest.mark.needs_torch
def test_it_tells_what_an_epoch_takes_and_what_computes(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), str(tmp_path)], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("an epoch takes ") and "(median of 3 of 4; " in done.stdout
    assert "rank 0: computation " in done.stdout
    assert len(list(tmp_path.glob("run-*.marey"))) == 1
