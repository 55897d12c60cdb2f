"""Programs that close, reuse or limit the recording's resources: the program and its files have priority."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from accidents import PATIENCE_S, assert_whole, lanes_of, pools_in
from crc32c import crc32c

PLACES = ["dir", "shm"]
RANGES = 20000


def limit_files(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@contextmanager
def endless(command: list[str], acks: Path) -> Iterator[None]:
    """A program that records until it is killed, at the end of the block, from its first acknowledged range on."""
    with subprocess.Popen(command) as victim:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not (acks.exists() and any(acks.read_bytes())) and time.monotonic() < deadline:
                time.sleep(0.01)
            yield
        finally:
            victim.send_signal(signal.SIGKILL)


# ---- descriptors that the program uses ----


@pytest.mark.parametrize("place", PLACES)
def test_a_program_that_closes_all_descriptors_keeps_its_files(
    program: Any, run: Any, check: Any, tmp_path: Path, place: str
) -> None:
    path, mine = tmp_path / "run.marey", tmp_path / "userdata.txt"
    run(program("descriptors", "reuse", path, f"pool_in={place}", mine))
    assert mine.read_bytes() == b"mine"
    found = check(path)
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [2 * RANGES]
    assert pools_in(path) == []


def test_a_forked_child_closes_only_descriptors_of_the_recording(
    program: Any, run: Any, check: Any, tmp_path: Path
) -> None:
    path, mine = tmp_path / "run.marey", tmp_path / "userdata.txt"
    run(program("descriptors", "fork", path, "", mine))
    assert mine.read_bytes() == b"mine"
    assert_whole(check(path))


def test_a_log_that_cannot_be_opened_again_stops_the_recording_and_says_so(
    program: Any, run: Any, tmp_path: Path
) -> None:
    path, mine = tmp_path / "run.marey", tmp_path / "userdata.txt"
    done = run(program("descriptors", "moved", path, "", mine))
    assert "stopped" in done.stderr and "closed the descriptor of log" in done.stderr
    assert mine.read_bytes() == b"mine"


# ---- no standard streams ----


@pytest.mark.parametrize("place", PLACES)
def test_without_standard_streams_output_does_not_reach_the_recording(
    program: Any, run: Any, check: Any, tmp_path: Path, place: str
) -> None:
    path = tmp_path / "run.marey"
    run(program("descriptors", "closed", path, f"pool_in={place}"))
    assert_whole(check(path))


@pytest.mark.parametrize("redirection", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_marey_run_without_standard_streams(
    program: Any, run: Any, check: Any, tool: str, tmp_path: Path, redirection: str
) -> None:
    path = tmp_path / "run.marey"
    inner = map(str, program("descriptors", "output", path, "-"))
    command = shlex.join([tool, "run", "--only", "ranges", "-o", str(path), "--", *inner])
    run(["sh", "-c", f"{command} {redirection}"])
    found = check(path)
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [2 * RANGES]


def test_descriptors_of_a_recording_have_high_numbers_and_end_at_exec(program: Any, run: Any, tmp_path: Path) -> None:
    done = run(program("descriptors", "held", tmp_path / "run.marey", ""))
    held = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(held) >= 2
    assert all(fd > 100 and is_cloexec for fd, is_cloexec in held)


def test_they_are_above_the_standard_streams_where_no_more_are_allowed(
    program: Any, run: Any, check: Any, tmp_path: Path
) -> None:
    path = tmp_path / "run.marey"
    few = (16, 16)
    run(
        program("descriptors", "closed", path, ""),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few),
    )
    assert_whole(check(path))


# ---- a limit on the size of files ----


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("size", [1 << 20, 4 << 20])
def test_a_limit_on_file_size_does_not_kill_the_program(
    program: Any, run: Any, check: Any, tmp_path: Path, place: str, size: int
) -> None:
    path = tmp_path / "run.marey"
    run(program("finite", path, 1, 1000, f"pool_in={place}"), preexec_fn=limit_files(size))
    found = check(path)
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [1000]


def test_a_log_that_reaches_the_limit_stops_the_recording_alone(
    program: Any, run: Any, check: Any, tool: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.marey"
    done = run(program("descriptors", "names", path, ""), preexec_fn=limit_files(4 << 20))
    assert done.stdout == "alive\n"
    assert "stopped" in done.stderr and "ulimit -f" in done.stderr
    assert check(path)["processes"][0]["end"] == "write failed"
    report = run([tool, "report", str(path)]).stdout
    assert "lost: none" not in report
    assert "lost: all events after recording stopped in 1 process" in report
    assert re.search(r"recording stopped [\d.]+ s after the start: cannot write log .*: File too large", report)


# ---- copies ----


@pytest.mark.parametrize("place", PLACES)
def test_reading_a_copy_leaves_the_original_alone(
    program: Any, check: Any, run: Any, tool: str, tmp_path: Path, place: str
) -> None:
    path, copy, acks = tmp_path / "run.marey", tmp_path / "copy.marey", tmp_path / "acks"
    with endless(program("endless", path, acks, 1, f"pool=256M,policy=block,pool_in={place}"), acks):
        shutil.copytree(path, copy)
        run([tool, "report", str(copy)], status=None)
        assert len(pools_in(path)) == 1
    before = pools_in(path)
    run([tool, "report", str(copy)], status=None)
    assert pools_in(path) == before
    n = int.from_bytes(acks.read_bytes()[:8], "little")
    found = check(path)
    assert_whole(found)
    assert next(lane["ends"] for lane in lanes_of(found)) in (n, n + 1)


def make_older(path: Path) -> None:
    """A recording of an earlier version: pool and log have no id, and the pool does not refer to its log."""
    for pool in pools_in(path):
        with pool.open("r+b") as file:
            file.seek(48)
            file.write(bytes(16))
    log = next(path.glob("*.klog"))
    data = bytearray(log.read_bytes())
    packed = int.from_bytes(data[20:24], "little")
    at = data.index(b"pool_id", 48, 48 + packed)
    length = int.from_bytes(data[at - 4 : at], "little")
    data[at + 7 : at + 7 + length] = b"0" * length
    data[44:48] = bytes(4)
    data[44:48] = crc32c(bytes(data[: 48 + packed])).to_bytes(4, "little")
    with log.open("r+b") as file:
        file.write(data)


def test_reading_a_copy_of_an_earlier_version_leaves_the_original_alone(
    program: Any, check: Any, run: Any, tool: str, tmp_path: Path
) -> None:
    path, copy, acks = tmp_path / "run.marey", tmp_path / "copy.marey", tmp_path / "acks"
    with endless(program("endless", path, acks, 1, "pool=256M,policy=block,pool_in=shm"), acks):
        pass
    make_older(path)
    shutil.copytree(path, copy)
    before = pools_in(path)
    run([tool, "report", str(copy)], status=None)
    assert pools_in(path) == before and len(before) == 1
    n = int.from_bytes(acks.read_bytes()[:8], "little")
    report = json.loads(run([tool, "report", str(path), "--json"]).stdout)
    assert sum(row["count"] for row in report["ranges"]) in (n, n + 1)
    assert pools_in(path) == []


def test_a_symlinked_log_is_not_finished(program: Any, run: Any, tool: str, tmp_path: Path) -> None:
    """A recording of links to another recording's log, with a foreign pool."""
    path, other, acks = tmp_path / "run.marey", tmp_path / "other.marey", tmp_path / "acks"
    for each in (path, other):
        with endless(program("endless", each, acks, 1, "pool_in=dir"), acks):
            pass
        acks.unlink()
    log = next(path.glob("*.klog"))
    pool = next(path.glob("*.pool"))
    evil = tmp_path / "evil.marey"
    evil.mkdir()
    (evil / log.name).symlink_to(log)
    shutil.copy(next(other.glob("*.pool")), evil / f"{log.name}.pool")
    before = log.read_bytes()
    run([tool, "report", str(evil)], status=None)
    assert log.read_bytes() == before
    assert pool.exists()


def test_a_pool_of_another_user_is_not_joined(program: Any, run: Any, tool: str, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    path, acks = tmp_path / "run.marey", tmp_path / "acks"
    with endless(program("endless", path, acks, 1, "pool_in=dir"), acks):
        pass
    log, pool = next(path.glob("*.klog")), next(path.glob("*.pool"))
    os.chown(log, 12345, 12345)
    os.chown(pool, 54321, 54321)
    before = log.read_bytes()
    run([tool, "report", str(path)], status=None)
    assert log.read_bytes() == before and pool.exists()


# ---- deleted in the middle ----


@pytest.mark.parametrize("place", PLACES)
def test_a_recording_deleted_in_the_middle_is_written_again(
    program: Any, run: Any, check: Any, tmp_path: Path, place: str
) -> None:
    path = tmp_path / "run.marey"
    done = run(program("descriptors", "delete", path, f"pool_in={place}"))
    assert done.stderr.count("was deleted while the program runs") == 1
    found = check(path)
    assert_whole(found)
    assert [lane["ends"] for lane in lanes_of(found)] == [2 * RANGES]
    assert (path / "meta.json").exists()
