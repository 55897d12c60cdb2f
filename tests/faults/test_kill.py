"""kill -9 at any time: all ranges that ended before are in the recording, and nothing is torn."""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from accidents import assert_whole, kill_after, pools_in, random_moments
from long_run import IS_LONG

N_KILLS = 200 if IS_LONG else 20
ROOMY = "pool=256M,policy=block"


def read_acks(path: Path) -> list[int]:
    """How many ranges each thread had ended when it was killed."""
    if not path.exists() or path.stat().st_size < 8:
        return []
    data = path.read_bytes()
    return list(struct.unpack(f"{len(data) // 8}Q", data))


def assert_has(found: dict[str, Any], acks: list[int]) -> None:
    """Each thread's lane has at least what was acknowledged; one more may have ended without its acknowledgement."""
    ends = {lane["thread"]: lane["ends"] for process in found["processes"] for lane in process["lanes"]}
    for i, n in enumerate(acks):
        if n > 0:
            assert ends[f"w{i}"] in (n, n + 1)


@pytest.fixture
def kill(program: Callable[..., list[str]], tmp_path: Path) -> Callable[..., tuple[Path, list[int]]]:
    """Kill fault_endless `after` seconds from its first acknowledgement; the recording and the acknowledgements."""

    def kill_endless(after: float, threads: int, options: str, *how: str) -> tuple[Path, list[int]]:
        path, acks = tmp_path / "run.marey", tmp_path / "acks"
        acks.unlink(missing_ok=True)
        kill_after(program("endless", path, acks, threads, options, *how), after, lambda: any(read_acks(acks)))
        return path, read_acks(acks)

    return kill_endless


def remove(path: Path) -> None:
    for file in path.iterdir():
        file.unlink()
    path.rmdir()


@pytest.mark.parametrize("threads", [1, 3])
def test_every_ended_range_survives(kill: Any, check: Any, threads: int) -> None:
    for after in random_moments(N_KILLS // 2, 0.2):
        path, acks = kill(after, threads, ROOMY)
        found = check(path)
        assert found["processes"][0]["end"] == "unclosed"
        assert_whole(found)
        assert_has(found, acks)
        assert pools_in(path) == []
        remove(path)


@pytest.mark.parametrize("place", ["dir", "shm"])
def test_it_survives_wherever_the_pool_lies(kill: Any, check: Any, place: str) -> None:
    path, acks = kill(0.05, 2, f"{ROOMY},pool_in={place}")
    assert len(pools_in(path)) == 1
    found = check(path)
    assert_whole(found)
    assert_has(found, acks)
    assert pools_in(path) == []


def test_a_pool_in_plain_memory_says_that_it_dies_with_the_process(kill: Any, check: Any, tool: str, run: Any) -> None:
    path, _ = kill(0.05, 1, "pool_in=memory")
    for process in check(path)["processes"]:
        for lane in process["lanes"]:
            assert lane["breaks"] == 0 and lane["next"] == lane["ends"]
    assert "not kill-safe" in run([tool, "report", str(path)]).stdout


def test_nothing_is_torn_while_the_flush_thread_is_busy(kill: Any, check: Any) -> None:
    """Faster than the disk: events are lost and counted; kept events are intact."""
    for after in random_moments(N_KILLS // 10, 0.3):
        path, _ = kill(after, 3, "pool=2M", "busy")
        found = check(path)
        for lane in found["processes"][0]["lanes"]:
            assert lane["backwards"] == lane["unknown"] == 0
            assert lane["breaks"] == 0 or found["processes"][0]["lost"] > 0
        remove(path)


def test_the_flight_recorder_keeps_the_newest(kill: Any, check: Any) -> None:
    for after in random_moments(N_KILLS // 10, 0.3):
        path, acks = kill(after, 2, "pool=2M,policy=keep-newest", "busy")
        lanes = {lane["thread"]: lane for lane in check(path)["processes"][0]["lanes"]}
        for i in range(2):
            lane = lanes.get(f"w{i}")
            # A thread's newest go only when others have filled the whole ring since.
            if lane is not None and acks[i] > 0:
                assert lane["backwards"] == lane["unknown"] == 0
                # Behind a gap: an end without its begin, a name and a number that were not due.
                assert lane["breaks"] <= 3 * max(lane["gaps"], 1)
        known = [i for i in range(2) if f"w{i}" in lanes]
        assert any(lanes[f"w{i}"]["next"] in (acks[i], acks[i] + 1) for i in known)
        remove(path)


def test_killed_while_it_forks(kill: Any, check: Any) -> None:
    for after in random_moments(max(N_KILLS // 5, 4), 0.2):
        path, acks = kill(after, 2, ROOMY, "fork")
        found = check(path)
        parent = [process for process in found["processes"] if process["lanes"][0]["thread"].startswith("w")]
        assert_has({"processes": parent}, acks)
        # The last child may still be recording: it is whole, but need not have all of its fifty ranges.
        for process in found["processes"]:
            for lane in process["lanes"]:
                assert lane["breaks"] == lane["backwards"] == lane["unknown"] == 0
        wait_for_orphans(path, check)
        remove(path)


def wait_for_orphans(path: Path, check: Any) -> None:
    """Children that outlive their parent briefly; after all have ended, nothing remains to finalize."""
    deadline = time.monotonic() + 20
    while pools_in(path) and time.monotonic() < deadline:
        time.sleep(0.02)
        check(path)
    assert pools_in(path) == []


def test_killed_while_it_starts_or_stops(
    program: Callable[..., list[str]], check: Any, run: Any, tmp_path: Path
) -> None:
    for i, after in enumerate(random_moments(max(N_KILLS // 4, 5), 0.1)):
        folder, acks = tmp_path / f"runs{i}", tmp_path / f"acks{i}"
        folder.mkdir()
        kill_after(program("starts", folder, acks), after, lambda acks=acks: any(read_acks(acks)))
        (n_stopped,) = read_acks(acks)
        for path in folder.iterdir():
            if int(path.stem) < n_stopped:
                assert_whole(check(path))
                assert check(path)["processes"][0]["lanes"][0]["ends"] == 50
            elif (path / "meta.json").exists():
                assert_whole(check(path))
            assert pools_in(path) == []


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    """Each finalizer reads the clock once more, which moves nanoseconds about by a few."""
    for process in found["processes"]:
        del process["span_ns"], process["lost_ns"]
    return found


def test_a_killed_finalizer_leaves_work_for_the_next(
    kill: Any, check: Any, program: Any, run: Any, tmp_path: Path
) -> None:
    """If finalizing a full pool is killed anywhere, the next attempt neither duplicates nor loses events."""
    for after in random_moments(max(N_KILLS // 4, 5), 0.06):
        path, _ = kill(0.3, 2, "pool=32M,policy=keep-newest", "busy")
        copy = tmp_path / "copy.marey"
        subprocess.run(["cp", "-r", str(path), str(copy)], check=True)
        with subprocess.Popen(program("finalize", path)) as finalizer:
            time.sleep(after)
            finalizer.kill()
        run(program("finalize", copy))
        assert without_times(check(path)) == without_times(check(copy))
        assert pools_in(path) == []
        remove(path)
        remove(copy)


def test_two_finalizers_at_once_finalize_once(kill: Any, check: Any, program: Any, tmp_path: Path) -> None:
    path, acks = kill(0.2, 2, "pool=256M,policy=keep-newest")
    finalizers = [subprocess.Popen(program("finalize", path)) for _ in range(4)]
    assert [finalizer.wait() for finalizer in finalizers] == [0] * 4
    found = check(path)
    assert_whole(found)
    assert_has(found, acks)
