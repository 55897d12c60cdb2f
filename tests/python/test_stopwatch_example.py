"""The example of the stopwatch: a program written for another one runs with one line changed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "stopwatch.py"


def test_the_example_reports_as_its_model_does():
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    reports, final = done.stdout.split("Final measurement:\n")
    assert re.findall(r"Num\. measured iterations: (\d+)", reports) == ["2", "4", "6", "8", "10"]
    assert re.findall(r"Num\. measured iterations: (\d+)", final) == ["11"]
    for heading in ("Average runtime per iteration:", "Average runtime per measured interval:", "Total runtime:"):
        section = final.split(heading)[1].split(". . .")[0]
        assert re.findall(r"`(\w+)`", section) == ["meas1", "meas2", "meas3"]
    assert re.search(r"Mean CPU usage during[^`]*`meas1`", final)
    once = final.split("One-time measurements:")[1]
    assert re.findall(r"`(\w+)`", once)[:2] == ["complete_run", "preparation"]
    assert "running" not in once
    assert "running" in reports


def test_only_the_import_differs_from_the_model():
    lines = EXAMPLE.read_text().splitlines()
    ours = [line for line in lines if "marey" in line and "import" in line]
    assert ours == ["from marey import Stopwatch  # was: from accvlab.optim_test_tools import Stopwatch"]


def test_without_the_line_that_enables_it_nothing_is_printed_but_what_the_program_prints(capsys):
    source = EXAMPLE.read_text()
    enabling = next(line for line in source.splitlines() if "stopwatch.enable(" in line)
    exec(compile(source.replace(enabling, ""), "off.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == "Final measurement:\n"
