"""GPU tracing when all is well and when it is not, on a GPU that is none: tests/cupti has the stand-ins.

The program does what its arguments say, so what the recording must hold is known. A failure is one sentence, and the
program goes on.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

KERNEL, COPY, SET, SYNC, MEMORY = "1", "2", "3", "5", "6"


class Found:
    """What is in a recording: the lines of list_events."""

    def __init__(self, text: str) -> None:
        rows = [line.split("\t") for line in text.splitlines()]
        self.work = sorted((row for row in rows if row[0] == "work"), key=lambda row: int(row[4]))
        self.ranges = sorted((row for row in rows if row[0] == "range"), key=lambda row: int(row[3]))
        self.streams = sorted((row[2], row[3]) for row in rows if row[0] == "stream")
        self.stream_names = {row[3]: row[4] for row in rows if row[0] == "stream"}
        self.processes = [row[1] for row in rows if row[0] == "process"]
        self.notes = [row[2] for row in rows if row[0] == "note"]

    def names(self, kind: str = KERNEL, stream: Optional[int] = None) -> list[str]:
        """Of work, in the order of its beginnings."""
        return [row[6] for row in self.work if row[8] == kind and stream in (None, int(row[3]))]

    def calls(self, name: str) -> list[list[str]]:
        return [row for row in self.ranges if row[5] == name]

    def launch_of(self, work: list[str]) -> list[str]:
        """The call that gave this work to the GPU."""
        [call] = [row for row in self.ranges if f"launch={work[9]}" in row[8].split()]
        return call


@pytest.fixture(scope="session")
def standins(build: Path) -> Path:
    return build / "tests" / "cupti"


@pytest.fixture
def environment(standins: Path) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": str(standins / "cuda"), "CUDA_INJECTION64_PATH": "", "KYMO": "", "KYMO_OPTIONS": ""}


@pytest.fixture
def found(standins: Path, run: Callable[..., Any]) -> Callable[[Path], Found]:
    def read(path: Path) -> Found:
        return Found(run([str(standins / "list_events"), str(path)]).stdout)

    return read


@pytest.fixture
def traced(
    tool: str, run: Callable[..., Any], standins: Path, environment: dict[str, str], tmp_path: Path
) -> Callable[..., Any]:
    """Run the program under `kymo run --gpu`; what it printed and said, without what kymo run says itself."""

    def trace(
        *acts: object, cupti: str = "", library: str = "", status: Optional[int] = 0, flags: tuple[str, ...] = ()
    ):
        env = environment | {"KYMO_TEST_CUPTI": cupti} | ({"KYMO_CUPTI_LIBRARY": library} if library else {})
        command = [tool, "run", "-q", "--gpu", *flags, "-o", str(tmp_path / "run.kymo"), "--"]
        return run([*command, str(standins / "gpu_work"), *" ".join(map(str, acts)).split()], env=env, status=status)

    return trace


@pytest.fixture
def alone(run: Callable[..., Any], standins: Path, environment: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """Run the program by itself, in the test's folder: it starts recordings as its arguments say."""

    def work(*acts: object, cupti: str = "", status: Optional[int] = 0):
        env = environment | {"KYMO_TEST_CUPTI": cupti}
        return run(
            [str(standins / "gpu_work"), *" ".join(map(str, acts)).split()], env=env, status=status, cwd=tmp_path
        )

    return work


def counts_in(text: str) -> dict[str, int]:
    words = text.split()
    return {key: int(value) for key, value in zip(words[::2], words[1::2])}


# ---- all is well ----

ALL = "begin train launch _Z3addPfS_i 7 driver plain 7 copy 4096 13 set 100 13 graph 3 9 take 512 ask end sync"


@pytest.mark.parametrize("library", ["", "old/libcupti.so.12"])
def test_all_kinds_of_work_are_there_with_their_streams_and_details(traced, found, tmp_path, standins, library):
    """Also with a CUPTI as of CUDA 12.0, whose records are shorter."""
    done = traced(ALL, "counts", library=str(standins / library) if library else "")
    assert done.stderr == ""
    there = found(tmp_path / "run.kymo")
    assert there.names(stream=7) == ["add(float*, float*, int)", "plain"]
    assert there.names(stream=9) == ["in_a_graph"] * 3
    assert [(row[6], row[10]) for row in there.work if row[3] == "13"] == [
        ("Memcpy HtoD (Pageable -> Device)", "4096"),
        ("Memset (Device)", "100"),
    ]
    assert [(row[6], row[10], row[4] == row[5]) for row in there.work if row[8] == MEMORY] == [
        ("take Device memory", "512", True)
    ]
    assert {("0", "7"), ("0", "9"), ("0", "13")} <= set(there.streams)
    shapes = [row[11] for row in there.work if row[8] == KERNEL]
    assert all('"grid":[8,1,1],"block":[128,1,1],"registers per thread":32,"shared memory":1024' in s for s in shapes)
    nodes = [f'"graph id":3,"graph node id":{3 << 32 | node}' in shapes[1 + node] for node in (1, 2, 3)]
    assert nodes == [True] * 3
    assert "graph" not in shapes[0]


def test_work_is_joined_with_the_call_and_the_range_around_it(traced, found, tmp_path):
    traced(ALL)
    there = found(tmp_path / "run.kymo")
    [train] = there.calls("train")
    names = {
        "add(float*, float*, int)": "cudaLaunchKernel",
        "plain": "cuLaunchKernel",
        "in_a_graph": "cudaGraphLaunch",
        "Memcpy HtoD (Pageable -> Device)": "cudaMemcpyAsync",
        "Memset (Device)": "cudaMemsetAsync",
    }
    launched = [row for row in there.work if row[8] in (KERNEL, COPY, SET)]
    assert {row[6] for row in launched} == set(names)
    for row in launched:
        call = there.launch_of(row)
        assert call[5] == names[row[6]]
        assert call[6] == ("cuda_driver" if row[6] == "plain" else "cuda_runtime")
        assert int(train[3]) <= int(call[3]) <= int(row[4]), "in the range, and before the work"
        assert int(call[4]) <= int(train[4])
    assert len(there.calls("cuLaunchKernel")) == 1, "what the runtime calls is part of its own call"
    assert not there.calls("cudaGetDevice"), "calls that only ask are left out"
    assert len(there.calls("cudaDeviceSynchronize")) == 1


def test_kernels_are_counted_right_over_many_buffers(traced, found, tmp_path):
    done = traced("many 50000 7 many 3 8 counts gpu_stop counts")
    assert counts_in(done.stdout.splitlines()[-1])["kernels"] == 50003
    there = found(tmp_path / "run.kymo")
    assert len(there.names(stream=7)) == 50000
    assert there.names(stream=7)[:11] == [f"k{i % 10}" for i in range(11)]
    assert there.names(stream=8) == ["k0", "k1", "k2"]
    assert len(there.calls("cudaLaunchKernel")) == 50003


def test_threads_have_their_own_launches(traced, found, tmp_path):
    traced("launch here 7 thread launch there 7")
    there = found(tmp_path / "run.kymo")
    by_thread = {row[6]: there.launch_of(row)[2] for row in there.work if row[8] == KERNEL}
    assert set(by_thread) == {"here", "there"}
    assert by_thread["here"] != by_thread["there"]


def test_records_out_of_order_are_put_in_order(traced, found, tmp_path):
    traced("many 100 7 launch last 8", cupti="shuffle=1")
    there = found(tmp_path / "run.kymo")
    assert there.names(stream=7) == [f"k{i % 10}" for i in range(100)]
    assert there.names(stream=8) == ["last"]


def test_work_that_comes_after_later_work_is_kept(traced, found, tmp_path):
    """In another buffer, so that no sorting helps: it goes to another lane of its stream."""
    traced("launch second 7 gpu_stop gpu_start 0:0:0:0 sleep 1 launch third 7 late between 7")
    assert sorted(found(tmp_path / "run.kymo").names(stream=7)) == ["between", "second", "third"]


# ---- on and off ----


def test_stop_start_stop(traced, found, tmp_path):
    done = traced(
        "launch a 7 gpu_stop is_on launch b 7 gpu_start 0:0:0:0 is_on launch c 7 gpu_stop gpu_stop launch d 7"
    )
    assert done.stdout.split() == ["off", "on"]
    there = found(tmp_path / "run.kymo")
    assert there.names() == ["a", "c"]
    assert len({row[9] for row in there.work if row[8] == KERNEL}) == 2, "numbers that CUPTI gives anew stay apart"


def test_cupti_is_given_back_at_each_stop(alone, tmp_path, environment):
    environment["KYMO_TEST_CUPTI_LOG"] = str(tmp_path / "calls")
    alone("start run.kymo gpu_start 0:0:0:0 launch a 7 gpu_stop gpu_start 0:0:0:0 launch b 7 stop")
    calls = [line.split()[0] for line in (tmp_path / "calls").read_text().splitlines()]
    assert [call for call in calls if call in ("subscribe", "finalize")] == ["subscribe", "finalize"] * 2


def test_two_recordings_in_a_process(alone, found, tmp_path):
    done = alone("start_gpu a.kymo launch one 7 stop is_on launch between 7 start_gpu b.kymo launch two 7 stop")
    assert done.stderr == ""
    assert found(tmp_path / "a.kymo").names() == ["one"]
    assert found(tmp_path / "b.kymo").names() == ["two"]


def test_a_schedule_by_iterations(traced, found, tmp_path):
    acts = " ".join(f"launch k{i} 7 iteration" for i in range(9))
    traced(acts, flags=("--gpu-schedule", "1:1:2:2"))
    assert found(tmp_path / "run.kymo").names() == ["k2", "k3", "k6", "k7"]


def test_a_pause_lets_another_tool_in(traced, found, tmp_path):
    done = traced(
        "launch a 7 pause Somebody_else_traces. is_on launch b 7 resume launch c 7 pause Again. resume resume"
    )
    assert done.stdout.split() == ["on"]
    there = found(tmp_path / "run.kymo")
    assert there.names() == ["a", "c"]
    assert there.notes == ["Somebody_else_traces.", "Again."]
    assert done.stderr.count("Somebody_else_traces.") == 1


def test_waits_of_streams_on_request(traced, found, tmp_path):
    traced("launch a 7 sync")
    assert found(tmp_path / "run.kymo").names(SYNC) == []
    traced("launch a 7 sync", flags=("--force", "--options", "gpu.syncs=1"))
    there = found(tmp_path / "run.kymo")
    assert "Context Sync" in there.names(SYNC)
    assert there.stream_names["-1"] == "all streams"
    assert there.stream_names["7"] == "stream 7"


# ---- one sentence, and the program goes on ----


def said(done: Any) -> str:
    [line] = done.stderr.splitlines()
    return line


def test_a_program_without_cuda_is_recorded_in_silence(traced, found, tmp_path):
    done = traced("begin a end is_on")
    assert (done.stdout, done.stderr) == ("on\n", "")
    assert [row[5] for row in found(tmp_path / "run.kymo").ranges] == ["a"]


@pytest.mark.parametrize(
    ("cupti", "library", "words"),
    [
        ("", "/no/such/libcupti.so", ["KYMO_CUPTI_LIBRARY"]),
        ("subscribe=39", "", ["CUPTI for somebody", "TEARDOWN_CUPTI=1", "kymo import"]),
        ("subscribe=39", "old/libcupti.so.12", ["torch.profiler or Nsight, perhaps"]),
        ("subscribe=35", "", ["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "NVreg_RestrictProfilingToAdminUsers"]),
        ("subscribe=999", "", ["(999)", "kymo doctor"]),
        ("enable=35", "", ["error 35", "kymo doctor"]),
        ("version=17", "", ["API version 17", "older than CUDA 12.0"]),
        ("", "broken/libcupti.so.13", ["lacks cuptiFinalize"]),
    ],
)
def test_without_cupti_the_rest_is_recorded(traced, found, tmp_path, standins, cupti, library, words):
    library = str(standins / library) if library and library[0] != "/" else library
    done = traced("begin train launch a 7 end is_on counts", cupti=cupti, library=library)
    assert done.stdout.splitlines()[0] == "off"
    assert counts_in(done.stdout.splitlines()[1])["kernels"] == 0
    for word in words:
        assert word in said(done)
    there = found(tmp_path / "run.kymo")
    assert [row[5] for row in there.ranges] == ["train"]
    assert there.notes == [said(done).removeprefix("kymo: ")], "and in the recording"


def test_a_tool_that_waits_for_cuda_is_left_alone(run, tool, standins, environment, tmp_path):
    env = environment | {"CUDA_INJECTION64_PATH": "/another/tool.so"}
    command = [tool, "run", "-q", "--gpu", "-o", str(tmp_path / "run.kymo"), "--", str(standins / "gpu_work")]
    done = run([*command, "begin", "train", "launch", "a", "7", "end"], env=env, status=None)
    assert "/another/tool.so" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_records_that_cupti_drops_are_told(traced, found, tmp_path):
    done = traced("launch a 7 gpu_stop counts", cupti="dropped=5")
    assert counts_in(done.stdout)["dropped"] == 5
    there = found(tmp_path / "run.kymo")
    assert there.names() == ["a"]
    assert any("5 records of GPU work were dropped" in note for note in there.notes)


def test_a_cupti_that_gives_no_records_is_told(traced, found, tmp_path):
    done = traced("begin train launch a 7 end gpu_stop is_on", cupti="flush=7")
    assert done.stdout == "off\n"
    there = found(tmp_path / "run.kymo")
    assert there.names() == []
    assert len(there.calls("train")) == 1
    assert any("error 7" in note for note in there.notes)


# ---- ends ----


def test_work_that_still_runs_at_the_exit_is_told(traced, found, tmp_path):
    done = traced("launch done 7 hold launch runs 7")
    assert done.stderr == ""
    there = found(tmp_path / "run.kymo")
    assert there.names() == ["done"]
    assert any("1 pieces of work had not ended" in note for note in there.notes)


def test_a_stop_waits_for_work_that_runs(alone, found, tmp_path):
    alone("start_gpu run.kymo launch done 7 hold launch runs 7 stop")
    there = found(tmp_path / "run.kymo")
    assert there.names() == ["done", "runs"]
    assert there.notes == []


@pytest.mark.parametrize(("end", "status"), [("kill", None), ("quit", 0)])
def test_a_sudden_end_loses_a_buffer_at_most(traced, found, tmp_path, end, status):
    """A buffer holds some 20,000 kernels; what was handed out before is in the recording."""
    traced("many 50000 7", end, status=status)
    there = found(tmp_path / "run.kymo")
    names = there.names()
    assert 15000 < len(names) <= 50000
    assert names == [f"k{i % 10}" for i in range(len(names))], "those that were first"
    assert len(there.calls("cudaLaunchKernel")) == 50000


def test_a_forked_child_has_no_cuda_and_is_no_trouble(traced, found, tmp_path):
    done = traced("launch parent 7 fork begin child end gpu_stop gpu_start 0:0:0:0 is_on counts")
    lines = done.stdout.splitlines()
    assert "refused" in lines[0]
    assert "fork" in lines[0]
    assert lines[1] == "off"
    assert counts_in(lines[2])["kernels"] == 0
    there = found(tmp_path / "run.kymo")
    assert there.names() == ["parent"]
    assert len(there.processes) == 2
    assert len(there.calls("child")) == 1


def test_a_child_that_is_forked_before_cuda_is_traced(traced, found, tmp_path):
    traced("begin parent end fork launch child 7")
    there = found(tmp_path / "run.kymo")
    assert there.names() == ["child"]


def test_children_that_are_started_anew_are_traced(run, tool, standins, environment, found, tmp_path):
    work = str(standins / "gpu_work")
    script = f"'{work}' launch one 7; '{work}' launch two 7"
    run([tool, "run", "-q", "--gpu", "-o", str(tmp_path / "run.kymo"), "--", "/bin/sh", "-c", script], env=environment)
    there = found(tmp_path / "run.kymo")
    assert sorted(there.names()) == ["one", "two"]
    assert len(there.processes) == 2


def test_a_spent_budget_is_counted(traced, tmp_path):
    """The recording's pool is full, and nobody empties it."""
    done = traced("many 50000 7 gpu_stop counts", flags=("--options", "disk=64KiB"))
    counted = counts_in(done.stdout)
    assert counted["kernels"] == 50000
    assert os.path.isdir(tmp_path / "run.kymo")


def test_calls_that_other_threads_are_in_when_tracing_goes_on_and_off(traced, found, tmp_path):
    """Each range that begins ends (list_events looks for that), and no work is there twice."""
    done = traced("launch first 7 storm 2000 launch last 7")
    assert (done.stdout, done.stderr) == ("", "")
    there = found(tmp_path / "run.kymo")
    names = there.names()
    assert "first" in names
    assert "last" in names
    assert len(names) <= 6002
    assert len({row[9] for row in there.work if row[8] == KERNEL}) == len(names)
    assert len({row[8] for row in there.calls("cudaLaunchKernel")}) == len(there.calls("cudaLaunchKernel"))
