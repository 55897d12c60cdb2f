"""fork, exec, clone, threads and all the ways a process can end."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from accidents import assert_whole, lanes_of, pools_in


@pytest.mark.parametrize("how", ["return", "exit", "_exit", "pthread_exit", "exec"])
def test_however_it_ends_nothing_is_lost(program: Any, run: Any, check: Any, tmp_path: Path, how: str) -> None:
    path = tmp_path / "run.marey"
    run(program("endings", path, how))
    found = check(path)
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [1000]
    assert pools_in(path) == []


def test_an_abort_loses_nothing(program: Any, run: Any, check: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.marey"
    run(program("endings", path, "abort"), status=-signal.SIGABRT)
    found = check(path)
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [1000]


def test_a_forked_child_has_a_log_of_its_own(program: Any, run: Any, check: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.marey"
    run(program("forks", path, "fork"))
    found = check(path)
    one, other = found["processes"]
    assert one["ppid"] == other["pid"] or other["ppid"] == one["pid"]
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [200, 200]


@pytest.mark.parametrize("how", ["exec", "clone"])
def test_a_child_that_may_not_record_does_not(program: Any, run: Any, check: Any, tmp_path: Path, how: str) -> None:
    path = tmp_path / "run.marey"
    # A sanitizer's search for leaks hangs in what a raw clone() made, on a lock that one of its parent's threads held.
    run(program("forks", path, how), env={"ASAN_OPTIONS": "detect_leaks=0"})
    found = check(path)
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [200]
    assert found["processes"][0]["end"] in ("stop", "exit")


def test_a_dead_process_is_finalized_while_its_clone_lives_on(
    program: Any, run: Any, check: Any, tmp_path: Path
) -> None:
    path = tmp_path / "run.marey"
    done = run(program("forks", path, "outlive"), status=-signal.SIGKILL)
    clone = int(done.stdout)
    try:
        found = check(path)
        assert found["processes"][0]["end"] == "unclosed"
        assert_whole(found)
        assert [lane["ends"] for lane in lanes_of(found)] == [200]
        assert pools_in(path) == []
    finally:
        os.kill(clone, signal.SIGKILL)


def test_a_storm_of_forks_among_busy_threads(program: Any, run: Any, check: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.marey"
    run(program("forks", path, "storm"))
    found = check(path)
    children = [process for process in found["processes"] if len(process["lanes"]) == 1]
    assert len(children) == 50
    for child in children:
        assert child["lost"] == 0 and [lane["ends"] for lane in child["lanes"]] == [10]
    for lane in lanes_of(found):
        assert lane["backwards"] == lane["unknown"] == 0
    assert pools_in(path) == []


def test_a_thousand_short_threads(program: Any, run: Any, check: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.marey"
    run(program("threads", path, 1000))
    found = check(path)
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [10] * 1000


def test_a_signal_handler_records_while_its_thread_does(program: Any, run: Any, check: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.marey"
    told = json.loads(run(program("handler", path, 1)).stdout)
    (lane,) = lanes_of(check(path))
    assert lane["backwards"] == lane["unknown"] == 0
    assert told["handled"] > 0 and lane["others"] > 0
    # The thread's own events always find room; those of a handler that came in the middle of one are counted as lost.
    assert lane["breaks"] == 0 and lane["ends"] == told["ranges"]
    assert told["handled"] * 2 - told["lost"] <= lane["others"] * 2 + 1
