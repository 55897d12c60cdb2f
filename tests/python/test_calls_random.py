"""Call profiles of random programs, which count their own calls; see random_program.py.

A few dozen programs in an ordinary run; MAREY_LONG=1 takes more.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
import random_program as programs
from long_run import IS_LONG

import marey

SEEDS = range(1000 if IS_LONG else 60)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_profile_says_what_the_program_counts(seed: int) -> None:
    """Calls, primitive calls, resumes, callers and threads."""
    assert programs.check(seed) == []


@pytest.mark.parametrize("seed", SEEDS[:: 1 if IS_LONG else 4])
def test_cprofile_is_of_one_mind_with_it(seed: int) -> None:
    assert programs.check(seed, single=True) == programs.check_beside_cprofile(seed) == []


@pytest.mark.parametrize("seed", SEEDS[:: 1 if IS_LONG else 4])
def test_signatures_change_no_count(seed: int) -> None:
    """But primitive calls, which are those of a signature."""
    assert [line for line in programs.check(seed, signatures=True) if not line.startswith("primitive")] == []


def test_programs_have_all_that_they_are_for() -> None:
    """The seeds of an ordinary run reach every kind of call; nothing is compared with nothing."""
    kinds, callers, threads, resumes, again = set(), set(), set(), 0, 0
    for seed in range(60):
        sums = programs.recorded(seed, False)
        kinds |= {name.rstrip("0123456789") for name in sums["calls"]}
        callers |= {caller for caller, _ in sums["edges"]}
        threads |= {thread for thread, _ in sums["threads"]}
        resumes += sum(sums["resumes"].values())
        again += sum(sums["calls"].values()) - sum(sums["primitive"].values())
    assert kinds == {"main", "f", "m", "km", "sm", "l", "g", "c", "a"}
    assert {programs.OUTSIDE, "<built-in method builtins.sorted>", "<method 'throw' of 'generator' objects>"} <= callers
    assert {"<method 'close' of 'generator' objects>", "<method 'close' of 'coroutine' objects>"} <= callers
    assert threads == {"MainThread", "t0", "t1", "t2"}
    assert resumes > 1000 and again > 1000


def test_a_count_that_is_wrong_is_found() -> None:
    expected = programs.recorded(1, False)
    wrong = {**expected, "calls": {**expected["calls"], "main": 2}, "edges": {}}
    lines = programs.differences(expected, wrong)
    assert lines[0] == "calls of main: 1 by its own count, 2 in the profile"
    assert len(lines) == 1 + len(expected["edges"])


# ---- times ----


def busy(n: int) -> int:
    return n if n < 2 else busy(n - 1) + busy(n - 2)


def work(seconds: float) -> float:
    """Compute for so long; return how long it was."""
    begin = now = time.perf_counter()
    while now < begin + seconds:
        busy(12)
        now = time.perf_counter()
    return now - begin


def test_times_sum_to_the_wall_time(tmp_path: Path) -> None:
    """A clock inside the program and one around it bound what the sums may be, however busy the machine is."""
    profile = marey.Profile(signatures=False, subcalls=False)
    clock = time.perf_counter_ns  # the program itself reads another
    profile.enable()
    begin = clock()
    inside = work(0.3)
    around = (clock() - begin) / 1e9
    profile.disable()
    profile.create_stats()
    rows = {label[2]: row for label, row in profile.stats.items()}
    own = sum(row[2] for name, row in rows.items() if "perf_counter_ns" not in name and "disable" not in name)
    assert own == pytest.approx(rows["work"][3], rel=1e-6)
    assert inside * 0.99 <= own <= around * 1.01
    profile.save(tmp_path / "saved.klog")
    recording = marey.load(tmp_path / "saved.klog")
    (total,) = recording.calls("total")
    functions = {row["function"]: row for row in recording.calls()}
    assert total["self_ns"] == sum(row["self_ns"] for row in functions.values())
    assert inside * 0.99 <= functions["work"]["total_ns"] / 1e9 <= around * 1.01


def test_times_of_a_clock_that_counts_sum_exactly() -> None:
    """Each look at this clock is a tick later: nothing that passes while the profile is on is lost or told twice."""
    ticks = itertools.count()
    profile = marey.Profile(lambda: next(ticks), 1e-6, signatures=False)
    profile.runcall(programs.load(3, True)["main"])
    profile.create_stats()
    (whole,) = (row[3] for label, row in profile.stats.items() if label[2] == "main")
    own = sum(row[2] for label, row in profile.stats.items() if "disable" not in label[2])
    assert whole > 0.001
    assert own == pytest.approx(whole, abs=2e-6)


@pytest.mark.parametrize("options", ["calls=1", "calls=1,clock=monotonic"])
def test_times_of_a_recording_that_opens_late(run_python, tmp_path: Path, options: str) -> None:
    """By the environment, as `marey run` does it, the profile is made before the recording has chosen its clock."""
    script = """
import marey, time
def work():
    begin = now = time.perf_counter()
    while now < begin + 0.2:
        now = time.perf_counter()
    return now - begin
begin = time.perf_counter_ns()
inside = work()
print(inside, (time.perf_counter_ns() - begin) / 1e9)
"""
    done = run_python(script, env={"MAREY": str(tmp_path / "run.marey"), "MAREY_OPTIONS": options})
    inside, around = map(float, done.stdout.split())
    (row,) = (row for row in marey.load(tmp_path / "run.marey").calls() if row["function"] == "work")
    assert inside * 0.99 <= row["total_ns"] / 1e9 <= around * 1.01
