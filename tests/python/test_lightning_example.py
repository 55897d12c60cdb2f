"""examples/lightning_loop.py: the phases of a Lightning training, and its loader's workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from phase_events import counts

pytest.importorskip("lightning")

EXAMPLE = Path(__file__).parents[2] / "examples" / "lightning_loop.py"


def test_it_tells_phases_workers_and_actions(tmp_path):
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "run.marey"), "--actions"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "loader workers: 2, busy " in done.stdout
    found = counts(tmp_path / "run.marey")
    assert (
        found.items()
        >= {
            "data": 16,
            "fetch": 16,
            "decode": 128,
            "forward": 16,
            "backward": 16,
            "optimizer": 16,
        }.items()
    )
    assert found["run_training_batch"] == 16  # an action of Lightning's own
