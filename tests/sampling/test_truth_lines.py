"""The line of every instruction of the standard library matches the interpreter's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from long_run import IS_LONG
from watching import BUILD, PYTHONS


@pytest.mark.parametrize("version", PYTHONS)
def test_lines_are_those_of_the_interpreter(version: str) -> None:
    script = Path(__file__).parent / "line_oracle.py"
    command = [PYTHONS[version], "-W", "ignore", str(script), "1" if IS_LONG else "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as oracle:
        checker = BUILD / "tests" / "sampling" / "sampling_lines"
        done = subprocess.run([checker], stdin=oracle.stdout, capture_output=True, text=True, check=False)
    assert oracle.returncode == 0
    found = re.search(r"(\d+) code objects, (\d+) instructions, (\d+) wrong", done.stdout)
    assert found, done
    assert int(found[2]) > 1000
    assert int(found[3]) == 0, done.stdout
