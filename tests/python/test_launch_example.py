"""The example about launch overhead: without a GPU it says why, and shows a trace that has what it is about."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "launch_overhead.py"


def test_without_a_gpu_it_shows_a_trace():
    # Where there is a GPU, CUDA sees none.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    why, *_ = done.stdout.splitlines()
    assert why.endswith("is not here, so nothing can be launched.") or why == (
        "There is no GPU here, so nothing can be launched."
    )
    assert "\naten::eq  " in done.stdout
    # The GPU waits for 71 % of this range's time for the host, and for 26 % for launches.
    assert "recmetrics_update" not in done.stdout
