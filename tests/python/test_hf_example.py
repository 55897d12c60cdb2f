"""examples/hf_trainer.py: it trains, and all listed files exist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import marey

pytest.importorskip("transformers", reason="transformers is not installed; tools/setup test installs it from 3.11 on")

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_what_it_names_is_there(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(EXAMPLES / "hf_trainer.py"), str(tmp_path / "out")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    phases = marey.load(tmp_path / "out" / "train.marey").table("phases")["name"]
    assert {"data", "forward", "backward", "optimizer", "evaluate"} <= set(phases)
    for phase in ("forward", "backward", "optimizer"):
        assert f"\n{phase} " in done.stdout
    (window,) = (tmp_path / "out" / "profiler_output").iterdir()
    assert f"in {window} as soon as" in done.stdout
    listed = done.stdout.partition("as soon as it is made:\n\n")[2].partition("\n\n")[0].splitlines()
    names = [line.split()[0] for line in listed]
    assert len(names) == 5
    for name in names:
        (found,) = window.glob(name)
        assert found.stat().st_size > 0
