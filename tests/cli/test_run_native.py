"""marey run of programs without Python: native stacks, lines, and what the diagnosis says of them."""

from __future__ import annotations

import json
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


def findings(marey: Callable[..., Finished], recording: str) -> list[dict]:
    done = marey("report", recording, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["diagnosis"]["findings"]


@needs_libdw
def test_the_hot_function_is_named_with_its_line(marey: Callable[..., Finished], solver: Path) -> None:
    done = marey("run", "-o", "hot.marey", solver, "hot", 1.5)
    assert done.returncode == 7
    assert "relax (solver.c:" in done.stderr
    first = findings(marey, "hot.marey")[0]
    assert first["id"] == "hot-function"
    assert first["where"][0]["function"] == "relax"
    assert abs(first["where"][0]["line"] - line_of("hot line")) <= 1
    assert first["where"][0]["file"].endswith("solver.c")
    assert first["share"] > 0.7


@needs_libdw
def test_waits_for_a_lock_are_named_by_who_wants_it(marey: Callable[..., Finished], solver: Path) -> None:
    done = marey("run", "-o", "locks.marey", solver, "locks", 2)
    assert done.returncode == 7
    found = {finding["id"]: finding for finding in findings(marey, "locks.marey")}
    where = found["lock-contention"]["where"][0]
    assert where["function"] == "update"
    assert where["line"] == line_of("lock line")
    samples = marey("report", "locks.marey", "--samples", "--idle")
    assert "futex" in samples.stdout


def test_without_debug_information_functions_have_names(marey: Callable[..., Finished], bare: Path) -> None:
    done = marey("run", "-o", "bare.marey", bare, "hot", 1.5)
    assert done.returncode == 7
    assert "main (solver) is" in done.stderr
    assert findings(marey, "bare.marey")[0]["where"][0]["function"] == "main"


def test_a_launcher_is_not_the_program(marey: Callable[..., Finished], bare: Path) -> None:
    done = marey("run", "-o", "sh.marey", "sh", "-c", f"{bare} hot 1.5; exit 3")
    assert done.returncode == 3
    assert findings(marey, "sh.marey")[0]["share"] > 0.7


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
    found: list[dict] = []
    for _ in range(14):
        time.sleep(0.5)
        done = marey("report", "now.marey", "--json")
        found = json.loads(done.stdout).get("diagnosis", {}).get("findings", []) if done.returncode == 0 else []
        if found:
            break
    assert running.poll() is None
    assert found[0]["id"] == "hot-function"
    running.terminate()
    running.communicate()
