"""The diagnosis of `marey run`: a planted cause is found with its line, and the fixed program has no finding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
MAREY = Path(os.environ["MAREY_BUILD"], "cli", "marey")

HOT = """
import time

def score(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total

end = time.monotonic() + 1.5
while time.monotonic() < end:
    score(20_000)
"""


def diagnose(tmp_path: Path, *command: object) -> tuple[dict[str, Any], str]:
    """Run a program; return its diagnosis as data, and the final output."""
    tmp_path.mkdir(exist_ok=True)
    recording = tmp_path / "run.marey"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [MAREY, "run", "-o", recording, sys.executable, *command],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    report = subprocess.run([MAREY, "report", recording, "--json"], capture_output=True, check=True).stdout
    return json.loads(report)["diagnosis"], done.stderr


def line_of(path: Path, text: str) -> int:
    """The line of a program that contains a string."""
    return next(i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line)


@pytest.mark.needs_torch
def test_a_training_that_waits_for_its_data(tmp_path):
    program = ROOT / "examples" / "starved.py"
    diagnosis, printed = diagnose(tmp_path, program)
    finding = diagnosis["findings"][0]
    assert (diagnosis["schema"], diagnosis["steps"]["detected_by"]) == (1, "optimizer")
    assert diagnosis["steps"]["n"] + diagnosis["steps"]["warmup"] == 150
    assert (finding["id"], finding["phase"]) == ("input-bound", "data")
    where = finding["where"][0]
    assert (where["function"], Path(where["file"]).name) == ("augment", program.name)
    loop = line_of(program, "for value in row.tolist()")
    assert loop <= where["line"] <= loop + 2
    assert finding["gain"]["low"] <= finding["gain"]["at_most"] <= finding["gain"]["high"]
    assert "1  Input-bound: training waits for data" in printed and "num_workers=0" in printed


@pytest.mark.needs_torch
def test_with_the_suggested_fix_it_no_longer_waits(tmp_path):
    diagnosis, printed = diagnose(tmp_path, ROOT / "examples" / "starved.py", "--fixed")
    assert diagnosis["steps"]["n"] + diagnosis["steps"]["warmup"] == 150
    shares = [each["share"] for each in diagnosis["findings"] if each["id"] == "input-bound"]
    assert all(share < 0.1 for share in shares), printed  # some 2 %; findings begin at 3 %


def test_a_python_function_that_takes_most_of_the_time(tmp_path):
    program = tmp_path / "hot.py"
    program.write_text(HOT)
    diagnosis, printed = diagnose(tmp_path, program)
    assert [each["id"] for each in diagnosis["findings"]] == ["hot-function"]
    where = diagnosis["findings"][0]["where"][0]
    assert (where["function"], where["line"]) == ("score", line_of(program, "total += i"))
    assert diagnosis["steps"] is None and "score (hot.py:" in printed


STARTUP = """
import time
import slow_module

def build_model():
    time.sleep(1.0)

build_model()
import torch
weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(40):
    time.sleep(0.01)
    weight.sum().backward()
    optimizer.step()
"""


@pytest.mark.needs_torch
def test_start_up_by_module_and_line(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(STARTUP)
    (tmp_path / "slow_module.py").write_text("import time\nimport slow_part\n")
    (tmp_path / "slow_part.py").write_text("import time\ntime.sleep(2.0)\n")
    diagnosis, _ = diagnose(tmp_path, program)
    rows = {row["what"]: row for row in diagnosis["startup"]}
    line = line_of(program, "time.sleep(1.0)")
    assert {"import slow_module", "import torch", f"build_model (train.py:{line})"} <= set(rows)
    assert "import slow_part" not in rows  # the module that the program names counts
    assert rows["import slow_module"]["ns"] > rows[f"build_model (train.py:{line})"]["ns"] > 0
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1, abs=0.001)
    assert sum(row["ns"] for row in rows.values()) == pytest.approx(diagnosis["startup_ns"], rel=0.001)


def test_a_program_that_waits_has_no_finding(tmp_path):
    program = tmp_path / "idle.py"
    program.write_text("import time\nfor _ in range(15): time.sleep(0.1)\n")
    diagnosis, printed = diagnose(tmp_path, program)
    assert diagnosis["findings"] == [] and "No training steps were found" in printed
