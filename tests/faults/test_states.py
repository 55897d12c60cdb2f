"""Recordings in sequence, nested, in impossible places, and over their budget."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from accidents import assert_whole, lanes_of, pools_in
from long_run import IS_LONG

N_RESTARTS = 1000 if IS_LONG else 200


def words_of(ranges: int) -> int:
    """Events that `ranges` ranges of the sequence are: two each, and a mark in each sixteenth."""
    return 2 * ranges + (ranges + 15) // 16


# ---- one after the other ----


def test_start_and_stop_again_and_again_while_threads_record(
    program: Any, run: Any, check: Any, tmp_path: Path
) -> None:
    """The main thread stops and records; its events must be complete, those of others must not be torn."""
    run(program("restarts", tmp_path, N_RESTARTS, 3))
    paths = sorted(tmp_path.glob("*.marey"))
    assert len(paths) == N_RESTARTS
    for path in paths:
        found = check(path)
        main = [lane for lane in lanes_of(found) if lane["thread"].startswith("fault_restarts") and lane["ends"] == 50]
        assert found["processes"][0]["end"] == "stop"
        assert len(main) >= 1 or found["processes"][0]["lost"] > 0
        for lane in lanes_of(found):
            assert lane["backwards"] == lane["unknown"] == 0
        assert pools_in(path) == []


def test_a_second_start_is_refused_and_harmless(program: Any, run: Any, check: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "first.marey", tmp_path / "second.marey"
    done = run(program("nested", first, second))
    assert done.stdout.startswith("MAREY_ESTATE") and str(first) in done.stdout
    assert not second.exists()
    found = check(first)
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [200]


def test_a_stop_makes_as_many_system_calls_in_a_directory_of_a_thousand_logs(
    program: Any, run: Any, tmp_path: Path
) -> None:
    """Each process of a job stops; what one does for each log of the directory, the job does for each pair."""
    counts = []
    for n in (10, 1000):
        path = tmp_path / f"{n}.marey"
        path.mkdir()
        for i in range(n):
            (path / f"r{i}-host-{i}-00000000.klog").touch()
        done = run(program("stop_calls", path), status=None)
        if done.returncode == 77:
            pytest.skip("tracing a child is not permitted here")
        assert done.returncode == 0, done.stderr
        counts.append(int(done.stdout))
    assert counts[0] > 5, "it counts"
    assert abs(counts[1] - counts[0]) < 10, counts  # threads that wait for one another vary by a few


# ---- instruments that fail before there is a log ----


def test_gpu_tracing_that_fails_leaves_the_recording_alone(
    program: Any, run: Any, check: Any, tool: str, tmp_path: Path
) -> None:
    """The message comes before the first event, which opens the log."""
    path = tmp_path / "run.marey"
    done = run(
        program("environment", 1000),
        env={"MAREY": str(path), "MAREY_OPTIONS": "gpu=1", "CUDA_INJECTION64_PATH": "/another/tool.so"},
    )
    assert "GPU work is not recorded: another tool waits for CUDA" in done.stderr
    assert "stopped" not in done.stderr
    found = check(path)
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [1000]
    assert "GPU work is not recorded" in run([tool, "report", str(path)]).stdout


@pytest.mark.parametrize(
    "option", ["energy=1", "memory=1", "calls=1", "stopwatch.print_every=1", "dump.dir=/nowhere/at/all"]
)
def test_no_instrument_ends_a_recording_that_has_no_log_yet(
    program: Any, run: Any, check: Any, tmp_path: Path, option: str
) -> None:
    path = tmp_path / "run.marey"
    done = run(program("environment", 1000), env={"MAREY": str(path), "MAREY_OPTIONS": option})
    assert "stopped" not in done.stderr and "nothing is recorded" not in done.stderr
    assert 1000 in [lane["ends"] for lane in lanes_of(check(path))]


# ---- impossible places ----


def test_a_missing_folder_is_reported(program: Any, run: Any, tmp_path: Path) -> None:
    done = run(program("finite", tmp_path / "no" / "run.marey", 1, 10, ""), status=1)
    assert str(tmp_path / "no") in done.stderr and "No such file" in done.stderr


def test_a_file_in_its_place_is_reported(program: Any, run: Any, tmp_path: Path) -> None:
    (tmp_path / "run.marey").write_text("something else")
    done = run(program("finite", tmp_path / "run.marey", 1, 10, ""), status=1)
    assert "is not a directory" in done.stderr
    assert (tmp_path / "run.marey").read_text() == "something else"


def test_an_unwritable_folder_is_reported(program: Any, run: Any, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    if os.access(closed, os.W_OK):  # root writes anywhere but here
        closed = Path("/proc")
    done = run(program("finite", closed / "run.marey", 1, 10, ""), status=1)
    assert str(closed) in done.stderr


def test_by_environment_an_impossible_path_stops_nothing(program: Any, run: Any, tmp_path: Path) -> None:
    """MAREY=... set and no way to record: one sentence, and the program runs as ever."""
    env = {"MAREY": str(tmp_path / "no" / "run.marey")}
    done = run(program("environment", 100000), env=env)
    assert done.stderr.count("\n") == 1 and "nothing is recorded" in done.stderr


def test_by_environment_a_wrong_option_stops_nothing(program: Any, run: Any, tmp_path: Path) -> None:
    env = {"MAREY": str(tmp_path / "run.marey"), "MAREY_OPTIONS": "polcy=block"}
    done = run(program("environment", 1000), env=env)
    assert done.stderr.count("\n") == 1 and "polcy" in done.stderr and "policy" in done.stderr
    assert not (tmp_path / "run.marey").exists()


def test_by_environment_it_records(program: Any, run: Any, check: Any, tmp_path: Path) -> None:
    env = {"MAREY": str(tmp_path / "run.marey"), "MAREY_OPTIONS": "clock=monotonic"}
    run(program("environment", 1000), env=env)
    found = check(tmp_path / "run.marey")
    assert_whole(found)
    assert found["processes"][0]["clock"] == "monotonic"
    assert [lane["ends"] for lane in lanes_of(found)] == [1000]


# ---- larger than they may be ----


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four mebibytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    for pool in pools_in(folder / "run.marey"):  # events that did not fit on a full disk remain for readers
        pool.unlink()
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("place", ["auto", "shm", "memory"])
def test_a_full_disk_ends_the_recording_and_not_the_program(
    program: Any, run: Any, check: Any, tool: str, small_disk: Path, place: str
) -> None:
    path = small_disk / "run.marey"
    done = run(program("finite", path, 2, 8_000_000, f"pool_in={place},disk=1G,policy=block"))
    assert done.stderr.count("\n") == 1, done.stderr
    assert "No space left" in done.stderr and "the program goes on" in done.stderr
    told = json.loads(done.stdout)
    assert told["stop"] == "MAREY_EIO" and told["enabled"] == 0
    found = check(path)
    lanes = lanes_of(found)
    assert sum(lane["ends"] for lane in lanes) > 10_000
    for lane in lanes:
        assert lane["backwards"] == lane["unknown"] == 0
    report = run([tool, "report", str(path)]).stdout
    assert "lost: all events after recording stopped in 1 process" in report
    assert "No space left on device" in report
    if place == "memory":  # what was in the pool is lost with it, and counted
        assert re.search(r"lost: .*, and [\d.]+ [kM] events between", report), report


def test_a_disk_that_is_full_from_the_start_is_reported(program: Any, run: Any, small_disk: Path) -> None:
    with (small_disk / "ballast").open("wb") as ballast, pytest.raises(OSError):
        while True:
            ballast.write(b"\0" * 65536)
            ballast.flush()
    done = run(program("finite", small_disk / "run.marey", 1, 10, ""), status=1)
    assert "No space left" in done.stderr
    assert pools_in(small_disk / "run.marey") == []


def kept_and_lost(found: dict[str, Any]) -> tuple[int, int]:
    (process,) = found["processes"]
    kept = sum(lane["begins"] + lane["ends"] + lane["numbers"] for lane in process["lanes"])
    return kept, process["lost"]


@pytest.mark.parametrize("policy", ["keep-oldest", "keep-newest"])
def test_what_is_kept_and_what_is_lost_add_up(program: Any, run: Any, check: Any, tmp_path: Path, policy: str) -> None:
    path, ranges = tmp_path / "run.marey", 1_000_000
    # The disk budget is spent at once, so that the pool is all there is.
    run(program("finite", path, 2, ranges, f"pool=2M,disk=64K,policy={policy}"))
    found = check(path)
    kept, lost = kept_and_lost(found)
    assert lost > 0
    assert kept + lost == 2 * words_of(ranges)
    first, last = found["processes"][0]["lost_ns"]
    assert 0 < first < last
    nexts = [lane["next"] for lane in lanes_of(found)]
    if policy == "keep-newest":
        assert max(nexts) == ranges
    else:
        assert max(nexts) < ranges


def test_blocking_loses_nothing_while_the_disk_keeps_up(program: Any, run: Any, check: Any, tmp_path: Path) -> None:
    path, ranges = tmp_path / "run.marey", 1_000_000
    run(program("finite", path, 2, ranges, "pool=2M,policy=block"))
    found = check(path)
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [ranges] * 2


def test_a_spent_disk_budget_is_reported_and_kept(program: Any, run: Any, check: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.marey"
    done = run(program("finite", path, 1, 1_000_000, "pool=2M,disk=256K"))
    assert done.stderr.count("\n") == 1 and "budget" in done.stderr
    # What was in memory when it ended is written all the same.
    assert json.loads(done.stdout)["log_bytes"] < 256 * 1024 + 2 * 1024 * 1024
    assert check(path)["processes"][0]["lost"] > 0


@pytest.mark.parametrize("clock", ["auto", "monotonic"])
def test_both_clocks_tell_the_same_time(program: Any, run: Any, check: Any, tmp_path: Path, clock: str) -> None:
    path = tmp_path / "run.marey"
    before = monotonic_ns()
    run(program("finite", path, 1, 100_000, f"clock={clock}"))
    first, last = check(path)["processes"][0]["span_ns"]
    assert before < first < last < monotonic_ns()


def monotonic_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
