"""marey run of programs without Python: native stacks, lines, and what the diagnosis says of them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from built import Finished, cached

SOLVER = Path(__file__).parent / "solver.c"
needs_libdw = pytest.mark.skipif(cached("pkgcfg_lib_LIBDW_dw") == "", reason="this build has no libdw")


def line_of(comment: str) -> int:
    lines = SOLVER.read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if comment in line)


@pytest.fixture(scope="session")
def solver(compiled: Callable[..., Path]) -> Path:
    return compiled("solver.c", "-O2", "-g", "-lpthread", "-lm")


@pytest.fixture(scope="session")
def bare(compiled: Callable[..., Path]) -> Path:
    """Without debug information."""
    return compiled("solver.c", "-O2", "-g0", "-lpthread", "-lm")


def diagnosis(marey: Callable[..., Finished], recording: str) -> dict:
    done = marey("report", recording, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["diagnosis"]


def share_of(function: str, verdict: str) -> int:
    """The share of the CPU time in a verdict, in percent."""
    found = re.search(re.escape(function) + r" has (\d+) % of its CPU time\.", verdict)
    assert found, verdict
    return int(found[1])


@needs_libdw
def test_the_hot_function_is_named_with_its_line(marey: Callable[..., Finished], solver: Path) -> None:
    done = marey("run", "-o", "hot.marey", solver, "hot", 1.5)
    assert done.returncode == 7
    assert "relax (solver.c:" in done.stderr
    found = diagnosis(marey, "hot.marey")
    assert found["findings"] == [], "a function that does its work is a fact"
    lines = {line: f"relax (solver.c:{line})" for line in range(line_of("hot line") - 1, line_of("hot line") + 2)}
    (named,) = (text for text in lines.values() if text in found["verdict"])
    assert share_of(named, found["verdict"]) > 70


@needs_libdw
def test_waits_for_a_lock_are_named_by_who_wants_it(marey: Callable[..., Finished], solver: Path) -> None:
    done = marey("run", "-o", "locks.marey", solver, "locks", 2)
    assert done.returncode == 7
    found = {finding["id"]: finding for finding in diagnosis(marey, "locks.marey")["findings"]}
    where = found["lock-contention"]["where"][0]
    assert where["function"] == "update"
    assert where["line"] == line_of("lock line")
    samples = marey("report", "locks.marey", "--samples", "--idle")
    assert "futex" in samples.stdout


def test_without_debug_information_functions_have_names(marey: Callable[..., Finished], bare: Path) -> None:
    done = marey("run", "-o", "bare.marey", bare, "hot", 1.5)
    assert done.returncode == 7
    assert share_of("main (solver)", done.stderr) > 70


def test_a_launcher_is_not_the_program(marey: Callable[..., Finished], bare: Path) -> None:
    done = marey("run", "-o", "sh.marey", "sh", "-c", f"{bare} hot 1.5; exit 3")
    assert done.returncode == 3
    assert share_of("main (solver)", diagnosis(marey, "sh.marey")["verdict"]) > 70


def test_a_python_keeps_other_programs_out(marey: Callable[..., Finished], bare: Path, environment: dict) -> None:
    script = f"import subprocess, time; subprocess.run(['{bare}', 'hot', '0.7']); time.sleep(0.3)"
    done = marey("run", "-o", "py.marey", environment["MAREY_PYTHON"], "-c", script)
    assert done.returncode == 0
    assert "solver" not in marey("report", "py.marey", "--samples", "--idle").stdout


def test_a_short_program_keeps_its_exit_status(marey: Callable[..., Finished], bare: Path) -> None:
    done = marey("run", "-o", "short.marey", bare, "hot", 0.05)
    assert done.returncode == 7
    assert "next:" in done.stderr or "recorded to" in done.stderr


def test_an_unfinished_recording_has_a_diagnosis(marey: Callable[..., Finished], start, bare: Path) -> None:
    running = start("run", "-o", "now.marey", bare, "hot", 8)
    verdict = ""
    for _ in range(14):
        time.sleep(0.5)
        done = marey("report", "now.marey", "--json")
        verdict = json.loads(done.stdout).get("diagnosis", {}).get("verdict", "") if done.returncode == 0 else ""
        if "CPU time" in verdict:
            break
    assert running.poll() is None
    assert share_of("main (solver)", verdict) > 70
    running.terminate()
    running.communicate()
