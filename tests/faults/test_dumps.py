"""Faults of dumps: kill -9, full disks, two processes in one directory, forks, exits without cleanup.

The files are only read with json and numpy, without marey.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from accidents import kill_after, random_moments
from long_run import IS_LONG

np = pytest.importorskip("numpy")

N_KILLS = 60 if IS_LONG else 8
SIZES = {"small": 300, "large": 700000, "list[0]": 5}


def read_step(manifest: Path) -> dict[str, Any]:
    """A step from its manifest: header, tensors by name, and whether it is marked complete."""
    lines = manifest.read_bytes().split(b"\n")
    assert lines.pop() == b"" or len(lines) >= 0  # a line without a newline is incomplete
    values = [json.loads(line) for line in lines]
    if not values:
        return {"header": None, "tensors": {}, "values": [], "is_complete": False}
    header, values = values[0], values[1:]
    is_complete = bool(values) and values[-1].get("end") is True
    values = values[:-1] if is_complete else values
    whole, part = manifest.with_suffix(".safetensors"), manifest.with_suffix(".part")
    assert not is_complete or whole.exists()
    file = whole if whole.exists() else part
    tensors = {}
    for value in values:
        if "offset" in value:
            start = header["data_start"] + value["offset"]
            data = np.fromfile(file, np.uint8, value["bytes"], offset=start)
            tensors[value["name"]] = data.view(np.float32).reshape(value["shape"])
    return {"header": header, "tensors": tensors, "values": values, "is_complete": is_complete}


def read_dump(folder: Path) -> list[dict[str, Any]]:
    return [read_step(manifest) for manifest in sorted(folder.glob("*.jsonl"))]


def assert_right(step: dict[str, Any]) -> None:
    for name, data in step["tensors"].items():
        assert data.shape == (SIZES[name],)
        assert (data == step["header"]["step"]).all(), f"{name} of step {step['header']['step']} is torn"


def assert_complete(step: dict[str, Any]) -> None:
    assert step["is_complete"]
    assert list(step["tensors"]) == list(SIZES)
    assert_right(step)


def test_every_tensor_with_a_line_survives_kill_9(program: Any, tmp_path: Path) -> None:
    n_partial = 0
    for i, after in enumerate(random_moments(N_KILLS, 0.1)):
        folder = tmp_path / f"dump{i}"
        kill_after(program("dump", folder, 0, "disable"), after, lambda folder=folder: any(folder.glob("*.jsonl")))
        steps = read_dump(folder)
        assert steps
        for step in steps:
            assert_right(step)
        for step in steps[:-1]:
            assert_complete(step)
        n_partial += not steps[-1]["is_complete"]
    assert n_partial > 0, "no kill met a step under way"


def test_a_step_that_has_its_name_is_read_by_safetensors(program: Any, run: Any, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    run(program("dump", tmp_path / "d", 2, "disable"))
    for i in range(2):
        tensors = safetensors.load_file(tmp_path / "d" / f"step-0000000{i}.safetensors")
        for name, n in SIZES.items():
            assert tensors[name].shape == (n,)
            assert (tensors[name] == i).all()


@pytest.mark.parametrize("how", ["disable", "exit", "_exit"])
def test_what_was_flushed_is_written_at_any_end(program: Any, run: Any, tmp_path: Path, how: str) -> None:
    run(program("dump", tmp_path / "d", 5, how))
    steps = read_dump(tmp_path / "d")
    assert [step["header"]["step"] for step in steps] == [0, 1, 2, 3, 4]
    for step in steps:
        assert_complete(step)
    if how != "_exit":
        assert not list((tmp_path / "d").glob(".*")), "locks and temporary files are taken away"


def test_an_earlier_run_is_replaced_and_told_once(program: Any, run: Any, tmp_path: Path) -> None:
    first = run(program("dump", tmp_path / "d", 3, "disable"))
    assert "earlier" not in first.stderr
    (tmp_path / "d" / "step-00000000").mkdir()
    (tmp_path / "d" / "step-00000000" / "stale.png").write_text("old")
    for path in (tmp_path / "d").iterdir():  # file times have steps of some milliseconds
        os.utime(path, (path.stat().st_mtime - 1,) * 2)
    second = run(program("dump", tmp_path / "d", 2, "disable"))
    assert second.stderr.count("earlier run") == 1
    assert not (tmp_path / "d" / "step-00000000").exists()
    steps = read_dump(tmp_path / "d")
    assert len({step["header"]["pid"] for step in steps}) == 2  # the third is still the first run's
    for step in steps:
        assert_complete(step)


def start_waiting(command: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
    """Start a dumping program, and return when it has written everything and waits."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **env}
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("steps")
    return process


def test_two_living_processes_do_not_share_names(program: Any, run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    with start_waiting(program("dump", folder, 2, "wait"), {}) as first:
        run(program("dump", folder, 2, "disable"))
        names = sorted(path.name for path in folder.glob("*.jsonl"))
        assert len(names) == 4
        assert re.fullmatch(r"step-00000000\.pid-\d+\.jsonl", names[1])
        first.communicate("\n")
    run(program("dump", folder, 2, "disable"))  # the plain names are free again
    assert len(list(folder.glob("*.jsonl"))) == 4
    for step in read_dump(folder):
        assert_complete(step)


def test_ranks_have_names_of_their_own(program: Any, run: Any, tmp_path: Path) -> None:
    threads = [
        threading.Thread(
            target=run,
            args=(program("dump", tmp_path / "d", 3, "disable"),),
            kwargs={"env": {"RANK": str(rank), "WORLD_SIZE": "3"}},
        )
        for rank in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = sorted(path.name for path in (tmp_path / "d").glob("*.jsonl"))
    assert names == sorted(f"step-0000000{i}.rank-{rank}.jsonl" for i in range(3) for rank in range(3))
    for step in read_dump(tmp_path / "d"):
        assert_complete(step)
        assert step["header"]["world"] == 3


def test_a_forked_child_dumps_beside_its_parent(program: Any, run: Any, tmp_path: Path) -> None:
    run(program("dump", tmp_path / "d", 3, "fork"))
    steps = read_dump(tmp_path / "d")
    assert sorted(step["header"]["step"] for step in steps) == [0, 1, 2, 1000, 1001, 1002]
    assert len({step["header"]["pid"] for step in steps}) == 2
    for step in steps:
        assert_complete(step)


def test_a_file_that_may_not_grow_loses_tensors_and_not_the_program(program: Any, run: Any, tmp_path: Path) -> None:
    done = run(program("dump", tmp_path / "d", 3, "fsize"))
    assert done.stderr.count("the program goes on") == 1
    assert "flush: cannot write all" in done.stdout or "end: cannot write all" in done.stdout
    assert "failed 3" in done.stdout
    for step in read_dump(tmp_path / "d"):
        assert step["is_complete"]
        assert list(step["tensors"]) == ["small", "list[0]"]
        assert_right(step)
        assert [value.get("missing") for value in step["values"]] == [None, "disk", None]
        assert step["values"][1]["stats"]["n"] == SIZES["large"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=False)


def test_a_full_disk_loses_tensors_and_not_the_program(program: Any, run: Any, small_disk: Path) -> None:
    done = run(program("dump", small_disk / "d", 6, "disable"), env={"MAREY_OPTIONS": "dump.disk=1T"})
    assert "No space left" in done.stderr
    steps = read_dump(small_disk / "d")
    assert_complete(steps[0])
    for step in steps:
        assert_right(step)
    assert any("large" not in step["tensors"] for step in steps)


def test_by_default_a_tenth_of_the_disk_is_left(program: Any, run: Any, small_disk: Path) -> None:
    done = run(program("dump", small_disk / "d", 6, "disable"))
    assert "limit of disk space" in done.stderr
    assert "No space left" not in done.stderr
    for step in read_dump(small_disk / "d"):
        assert step["is_complete"]
        assert_right(step)


def test_a_budget_of_disk_space_is_kept(program: Any, run: Any, tmp_path: Path) -> None:
    done = run(program("dump", tmp_path / "d", 4, "disable"), env={"MAREY_OPTIONS": "dump.disk=6M"})
    assert done.stderr.count("limit of disk space") == 1
    steps = read_dump(tmp_path / "d")
    assert ["large" in step["tensors"] for step in steps] == [True, True, False, False]
    assert all("small" in step["tensors"] for step in steps)


@pytest.mark.parametrize(("policy", "word", "count"), [("drop", "dropped", "dropped"), ("stats", None, "stats")])
def test_without_memory_the_policy_counts(
    program: Any, run: Any, tmp_path: Path, policy: str, word: str, count: str
) -> None:
    options = f"dump.memory=1M,dump.policy={policy}"
    done = run(program("dump", tmp_path / "d", 3, "disable"), env={"MAREY_OPTIONS": options})
    assert f"{count} 3" in done.stdout
    for step in read_dump(tmp_path / "d"):
        assert step["is_complete"]
        assert list(step["tensors"]) == ["small", "list[0]"]
        assert step["values"][1].get("missing") == word
        assert ("stats" in step["values"][1]) == (policy == "stats")


def test_a_step_larger_than_the_memory_is_whole(program: Any, run: Any, tmp_path: Path) -> None:
    """Each step has 2.8 MB; nothing could ever make room for it."""
    done = run(program("dump", tmp_path / "d", 4, "disable"), env={"MAREY_OPTIONS": "dump.memory=1M"})
    assert "failed 0 dropped 0" in done.stdout
    for step in read_dump(tmp_path / "d"):
        assert_complete(step)
    assert not list((tmp_path / "d").glob(".*"))


def flight_of(folder: Path) -> list[Path]:
    return list(folder.glob(".flight-*"))


def test_a_flight_recorder_leaves_nothing_if_nothing_happens(program: Any, run: Any, tmp_path: Path) -> None:
    run(program("dump", tmp_path / "d", 5, "disable"), env={"MAREY_OPTIONS": "dump.flight=2"})
    assert list((tmp_path / "d").iterdir()) == []


def test_a_trigger_publishes_the_last_steps(program: Any, run: Any, tmp_path: Path) -> None:
    run(program("dump", tmp_path / "d", 5, "trigger"), env={"MAREY_OPTIONS": "dump.flight=2"})
    assert not flight_of(tmp_path / "d")
    steps = read_dump(tmp_path / "d")
    assert [step["header"]["step"] for step in steps] == [3, 4]
    for step in steps:
        assert_complete(step)
        assert step["header"]["reason"] == "test"


@pytest.mark.parametrize("layout", ["marey", "accvlab"])
def test_the_last_steps_outlive_a_crash(program: Any, run: Any, tmp_path: Path, layout: str) -> None:
    options = f"dump.flight=3,dump.layout={layout}"
    run(program("dump", tmp_path / "d", 7, "abort"), env={"MAREY_OPTIONS": options}, status=-signal.SIGABRT)
    (folder,) = flight_of(tmp_path / "d")
    if layout == "accvlab":
        assert sorted(path.name for path in folder.iterdir()) == ["4", "5", "6"]
        assert json.loads((folder / "6" / "tensors.json").read_text())["small"] == [6.0] * SIZES["small"]
        return
    steps = read_dump(folder)
    assert [step["header"]["step"] for step in steps] == [4, 5, 6]
    for step in steps:
        assert_complete(step)


def test_a_flight_recorder_in_layout_accvlab_is_published_too(program: Any, run: Any, tmp_path: Path) -> None:
    options = "dump.flight=2,dump.layout=accvlab"
    run(program("dump", tmp_path / "d", 4, "trigger"), env={"MAREY_OPTIONS": options})
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["2", "3"]


def test_options_have_the_last_word(program: Any, run: Any, tmp_path: Path) -> None:
    options = f"dump.dir={tmp_path / 'wanted'},dump.mode=digests,dump.first=1,dump.every=2,dump.last=4"
    done = run(program("dump", tmp_path / "other", 6, "disable"), env={"MAREY_OPTIONS": options})
    assert "as set by options" in done.stderr
    assert not (tmp_path / "other").exists()
    steps = read_dump(tmp_path / "wanted")
    assert [step["header"]["step"] for step in steps] == [1, 3]
    assert steps[0]["header"]["mode"] == "digests"
    assert steps[0]["tensors"] == {}
    assert all(re.fullmatch("[0-9a-f]{32}", value["digest"]) for value in steps[0]["values"])
    assert len(steps[0]["values"][1]["blocks"]) == 3


def test_a_recording_s_dumps_lie_in_it(program: Any, run: Any, tmp_path: Path, tool: str) -> None:
    recording = tmp_path / "run.marey"
    command = [tool, "run", "--only", "ranges", "-o", str(recording), "--options", "dump.every=2", "--"]
    run([*command, *program("dump", "-", 4, "disable")])
    assert [step["header"]["step"] for step in read_dump(recording / "dumps")] == [0, 2]


def test_a_directory_that_the_program_names_wins_over_the_recording_s(program: Any, run: Any, tmp_path: Path) -> None:
    env = {"MAREY": str(tmp_path / "run.marey"), "MAREY_OPTIONS": "dump.every=2"}
    run(program("dump", tmp_path / "own", 4, "disable"), env=env)
    assert [step["header"]["step"] for step in read_dump(tmp_path / "own")] == [0, 2]
    assert not (tmp_path / "run.marey" / "dumps").exists()


def test_without_a_directory_and_a_recording_one_is_asked_for(program: Any, run: Any) -> None:
    done = run(program("dump", "-", 1, "disable"), status=2)
    assert "dump.dir=DIR" in done.stderr
