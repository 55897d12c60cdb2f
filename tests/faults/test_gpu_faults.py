"""GPU tracing with and without faults, on the fake GPU of tests/cupti.

The program follows its arguments, so the expected recording is known. A failure gives one message, and the program
continues.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import pytest

KERNEL, COPY, SET, SYNC, MEMORY = "1", "2", "3", "5", "6"


class Found:
    """The content of a recording: the lines of list_events."""

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
    return {"LD_LIBRARY_PATH": str(standins / "cuda"), "CUDA_INJECTION64_PATH": "", "MAREY": "", "MAREY_OPTIONS": ""}


@pytest.fixture
def found(standins: Path, run: Callable[..., Any]) -> Callable[[Path], Found]:
    def read(path: Path) -> Found:
        return Found(run([str(standins / "list_events"), str(path)]).stdout)

    return read


@pytest.fixture
def traced(
    tool: str, run: Callable[..., Any], standins: Path, environment: dict[str, str], tmp_path: Path
) -> Callable[..., Any]:
    """Run the program under `marey run --gpu`; return its output without the messages of marey run."""

    def trace(
        *acts: object, cupti: str = "", library: str = "", status: Optional[int] = 0, flags: tuple[str, ...] = ()
    ):
        env = environment | {"MAREY_TEST_CUPTI": cupti} | ({"MAREY_CUPTI_LIBRARY": library} if library else {})
        command = [tool, "run", "-q", "--gpu", *flags, "-o", str(tmp_path / "run.marey"), "--"]
        return run([*command, str(standins / "gpu_work"), *" ".join(map(str, acts)).split()], env=env, status=status)

    return trace


@pytest.fixture
def alone(run: Callable[..., Any], standins: Path, environment: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """Run the program directly, in the test's folder; its arguments start recordings."""

    def work(*acts: object, cupti: str = "", status: Optional[int] = 0):
        env = environment | {"MAREY_TEST_CUPTI": cupti}
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
    there = found(tmp_path / "run.marey")
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
    there = found(tmp_path / "run.marey")
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
    there = found(tmp_path / "run.marey")
    assert len(there.names(stream=7)) == 50000
    assert there.names(stream=7)[:11] == [f"k{i % 10}" for i in range(11)]
    assert there.names(stream=8) == ["k0", "k1", "k2"]
    assert len(there.calls("cudaLaunchKernel")) == 50003


def test_threads_have_their_own_launches(traced, found, tmp_path):
    traced("launch here 7 thread launch there 7")
    there = found(tmp_path / "run.marey")
    by_thread = {row[6]: there.launch_of(row)[2] for row in there.work if row[8] == KERNEL}
    assert set(by_thread) == {"here", "there"}
    assert by_thread["here"] != by_thread["there"]


def test_records_out_of_order_are_put_in_order(traced, found, tmp_path):
    traced("many 100 7 launch last 8", cupti="shuffle=1")
    there = found(tmp_path / "run.marey")
    assert there.names(stream=7) == [f"k{i % 10}" for i in range(100)]
    assert there.names(stream=8) == ["last"]


def test_work_that_comes_after_later_work_is_kept(traced, found, tmp_path):
    """In another buffer, so that no sorting helps: it goes to another lane of its stream."""
    traced("launch second 7 gpu_stop gpu_start 0:0:0:0 sleep 1 launch third 7 late between 7")
    assert sorted(found(tmp_path / "run.marey").names(stream=7)) == ["between", "second", "third"]


# ---- on and off ----


def test_stop_start_stop(traced, found, tmp_path):
    done = traced(
        "launch a 7 gpu_stop is_on launch b 7 gpu_start 0:0:0:0 is_on launch c 7 gpu_stop gpu_stop launch d 7"
    )
    assert done.stdout.split() == ["off", "on"]
    there = found(tmp_path / "run.marey")
    assert there.names() == ["a", "c"]
    assert len({row[9] for row in there.work if row[8] == KERNEL}) == 2, "numbers that CUPTI gives anew stay apart"


def test_cupti_is_given_back_at_each_stop(alone, tmp_path, environment):
    environment["MAREY_TEST_CUPTI_LOG"] = str(tmp_path / "calls")
    alone("start run.marey gpu_start 0:0:0:0 launch a 7 gpu_stop gpu_start 0:0:0:0 launch b 7 stop")
    calls = [line.split()[0] for line in (tmp_path / "calls").read_text().splitlines()]
    assert [call for call in calls if call in ("subscribe", "finalize")] == ["subscribe", "finalize"] * 2


def test_two_recordings_in_a_process(alone, found, tmp_path):
    done = alone("start_gpu a.marey launch one 7 stop is_on launch between 7 start_gpu b.marey launch two 7 stop")
    assert done.stderr == ""
    assert found(tmp_path / "a.marey").names() == ["one"]
    assert found(tmp_path / "b.marey").names() == ["two"]


def test_a_schedule_by_iterations(traced, found, tmp_path):
    acts = " ".join(f"launch k{i} 7 iteration" for i in range(9))
    traced(acts, flags=("--gpu-schedule", "1:1:2:2"))
    assert found(tmp_path / "run.marey").names() == ["k2", "k3", "k6", "k7"]


def test_a_warm_up_behind_an_active_part_is_thrown_away_as_well(traced, found, tmp_path):
    acts = " ".join(f"launch k{i} 7 iteration" for i in range(5))
    traced(acts, flags=("--gpu-schedule", "0:1:1:2"))
    assert found(tmp_path / "run.marey").names() == ["k1", "k3"]


def test_a_pause_lets_another_tool_in(traced, found, tmp_path):
    done = traced(
        "launch a 7 pause Somebody_else_traces. is_on launch b 7 resume launch c 7 pause Again. resume resume"
    )
    assert done.stdout.split() == ["on"]
    there = found(tmp_path / "run.marey")
    assert there.names() == ["a", "c"]
    assert there.notes == ["Somebody_else_traces.", "Again."]
    assert done.stderr.count("Somebody_else_traces.") == 1


def test_a_pause_before_the_first_event_leaves_the_recording_alone(traced, found, tmp_path):
    """The note comes before the log exists."""
    done = traced("pause Somebody_else_traces. launch a 7 begin train resume launch b 7 end sync")
    assert "stopped" not in done.stderr
    there = found(tmp_path / "run.marey")
    assert there.names() == ["b"]
    assert there.notes == ["Somebody_else_traces."]


def test_waits_of_streams_on_request(traced, found, tmp_path):
    traced("launch a 7 sync")
    assert found(tmp_path / "run.marey").names(SYNC) == []
    traced("launch a 7 sync", flags=("--force", "--options", "gpu.syncs=1"))
    there = found(tmp_path / "run.marey")
    assert "Context Sync" in there.names(SYNC)
    assert there.stream_names["-1"] == "all streams"
    assert there.stream_names["7"] == "stream 7"


# ---- starts and stops by a thread, while the program continues ----
#
# The stand-in's gate is shut: CUPTI does not come back from the functions that are named, until the program opens it. A
# call that waited for them would wait for ever.

SUBSCRIBE, ENABLE, FLUSH, FINALIZE = 1, 2, 4, 8
NOW = "0:0:0:0"


@pytest.mark.parametrize("where", [SUBSCRIBE, ENABLE])
def test_a_start_later_does_not_wait(alone, found, tmp_path, where):
    done = alone(
        f"launch so_that_CUDA_is_there 7 start run.marey start_later {NOW} is_on is_settled launch early 7",
        "gate 0 settle is_settled launch one 7 stop",
        cupti=f"gate={where}",
    )
    assert (done.stdout.split(), done.stderr) == (["on", "pending", "settled"], "")
    there = found(tmp_path / "run.marey")
    assert there.names() == ["one"]
    assert len(there.calls("cudaLaunchKernel")) == 1


@pytest.mark.parametrize("where", [FLUSH, FINALIZE])
def test_a_stop_later_does_not_wait_and_parts_what_was_launched_before_it(alone, found, tmp_path, where):
    """Activity that runs at the stop is kept; later launches are not, although CUPTI is still attached."""
    done = alone(
        "start_gpu run.marey launch one 7 hold launch runs 7 stop_later is_on is_settled launch behind 7 driver too 8",
        "gate 0 settle is_settled counts stop",
        cupti=f"gate={where}",
    )
    assert done.stdout.split()[:3] == ["off", "pending", "settled"]
    assert done.stderr == ""
    assert counts_in(done.stdout.splitlines()[-1]) | {"memory": 0} == counts_in(
        "kernels 2 copies 0 sets 0 syncs 0 memory 0 calls 2 dropped 0 incomplete 0 lost 0"
    )
    there = found(tmp_path / "run.marey")
    assert there.names() == ["one", "runs"]
    assert len(there.calls("cudaLaunchKernel")) == 2
    assert not there.calls("cuLaunchKernel")
    assert there.notes == []


def test_orders_are_done_in_turn(alone, found, tmp_path, environment):
    """A start after a pending stop, and a stop after that start, which cancels it."""
    environment["MAREY_TEST_CUPTI_LOG"] = str(tmp_path / "calls")
    done = alone(
        f"start_gpu run.marey launch one 7 stop_later start_later {NOW} is_on start_later {NOW} launch between 7",
        f"stop_later stop_later is_on start_later {NOW} is_on gate 0 settle launch two 7 stop",
        cupti=f"gate={FLUSH}",
    )
    assert [line for line in done.stdout.splitlines() if "refused" not in line] == ["on", "off", "on"]
    assert done.stdout.count("refused: GPU tracing is on already") == 1
    assert found(tmp_path / "run.marey").names() == ["one", "two"]
    calls = [line.split()[0] for line in (tmp_path / "calls").read_text().splitlines()]
    assert [call for call in calls if call in ("subscribe", "finalize")] == ["subscribe", "finalize"] * 2


def test_a_stop_while_cupti_is_being_taken_keeps_nothing(alone, found, tmp_path):
    done = alone(
        f"launch first 7 start run.marey start_later {NOW} stop_later launch one 7",
        "gate 0 settle is_on launch two 7 stop",
        cupti=f"gate={ENABLE}",
    )
    assert (done.stdout, done.stderr) == ("off\n", "")
    there = found(tmp_path / "run.marey")
    assert there.names() == []
    assert not there.calls("cudaLaunchKernel")


@pytest.mark.parametrize("end", ["stop", "gpu_stop stop", "pause x stop", ""])
def test_what_comes_behind_waits_for_the_thread(alone, found, tmp_path, end):
    """Also the end of the process: all of the work is in the recording."""
    done = alone(f"start_gpu run.marey many 500 7 hold launch runs 8 stop_later {end}", cupti="slow=20000")
    assert (done.stdout, done.stderr) == ("", "")
    there = found(tmp_path / "run.marey")
    assert len(there.names(stream=7)) == 500
    assert there.names(stream=8) == ["runs"]


@pytest.mark.parametrize(
    ("end", "names"),
    [("stop", []), ("gpu_stop", []), ("pause x launch a 7 resume launch b 7 stop", ["b"]), ("", [])],
)
def test_a_start_that_is_under_way_is_waited_for(alone, found, tmp_path, end, names):
    done = alone(f"launch first 7 start run.marey start_later {NOW} {end}", cupti="slow=20000")
    assert done.stdout == ""
    there = found(tmp_path / "run.marey")
    assert there.names() == names
    assert there.notes == (["x"] if names else [])


def test_a_pause_and_a_start_later_in_it(alone, found, tmp_path):
    alone(f"start run.marey launch a 7 pause x start_later {NOW} settle launch b 7 resume launch c 7 stop")
    assert found(tmp_path / "run.marey").names() == ["c"]


@pytest.mark.parametrize("orders", [f"start_later {NOW}", f"start_later {NOW} settle launch one 7 stop_later"])
def test_a_fork_beside_the_thread(alone, found, tmp_path, orders):
    """The child has no thread, no CUDA, and waits for nothing."""
    done = alone(
        f"launch first 7 start run.marey {orders} fork",
        f"settle is_settled is_on start_later {NOW} stop_later gpu_stop stop",
        cupti="slow=20000",
    )
    words = done.stdout.splitlines()
    assert words[:2] == ["settled", "off"]
    assert "refused" in words[2]
    assert "fork" in words[2]
    assert done.stderr == ""


def test_what_keeps_cupti_from_a_later_start_is_said_once(alone, found, tmp_path):
    done = alone(
        f"launch a 7 start run.marey start_later {NOW} settle is_on start_later {NOW} settle is_on stop",
        cupti="subscribe=39",
    )
    assert done.stdout.split() == ["off", "off"]
    assert "CUPTI for somebody" in said(done)
    assert said(done).removeprefix("marey: ") in found(tmp_path / "run.marey").notes


def test_what_is_wrong_with_a_later_start_is_reported_at_once(alone):
    done = alone(f"start_later {NOW} start run.marey start_later 1:0:0:0 stop")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["refused", "refused"]
    assert done.stderr == ""


def test_a_process_without_cuda_is_traced_from_its_first_call(alone, found, tmp_path):
    done = alone(f"start run.marey start_later {NOW} is_settled launch one 7 stop_later launch two 7 stop")
    assert done.stdout == "settled\n"
    assert found(tmp_path / "run.marey").names() == ["one"]


def test_a_schedule_holds_nothing_up(alone, found, tmp_path):
    """The active iterations begin when CUPTI is attached; later iterations run while it is released."""
    alone(
        "launch first 7 start run.marey gpu_start 1:1:1:0 launch k0 7 iteration",
        "launch k1 7 gate 0 iteration launch k2 7 gate 1 iteration launch k3 7 gate 0 iteration",
        "launch k4 7 iteration launch k5 7 iteration launch k6 7 stop",
        cupti=f"gate={SUBSCRIBE | FLUSH}",
    )
    assert found(tmp_path / "run.marey").names() == ["k2", "k5"]


def test_orders_while_other_threads_launch(traced, found, tmp_path):
    """Each range that begins ends, no work is there twice, and all of it has its launch."""
    done = traced("launch first 7 storm_later 3000 launch last 7", cupti="slow=300")
    assert (done.stdout, done.stderr) == ("", "")
    there = found(tmp_path / "run.marey")
    names = there.names()
    assert "first" in names
    assert "last" in names
    numbers = [row[9] for row in there.work if row[8] == KERNEL]
    assert len(set(numbers)) == len(numbers)
    launched = [word for row in there.calls("cudaLaunchKernel") for word in row[8].split()]
    assert len(set(launched)) == len(launched)


# ---- one message, and the program continues ----


def said(done: Any) -> str:
    [line] = done.stderr.splitlines()
    return line


def test_a_program_without_cuda_is_recorded_in_silence(traced, found, tmp_path):
    done = traced("begin a end is_on")
    assert (done.stdout, done.stderr) == ("on\n", "")
    assert [row[5] for row in found(tmp_path / "run.marey").ranges] == ["a"]


@pytest.mark.parametrize(
    ("cupti", "library", "words"),
    [
        ("", "/no/such/libcupti.so", ["MAREY_CUPTI_LIBRARY"]),
        ("subscribe=39", "", ["CUPTI for somebody", "TEARDOWN_CUPTI=1", "marey import"]),
        ("subscribe=39", "old/libcupti.so.12", ["torch.profiler or Nsight, perhaps"]),
        ("subscribe=35", "", ["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "NVreg_RestrictProfilingToAdminUsers"]),
        ("subscribe=999", "", ["(999)", "marey doctor"]),
        ("enable=35", "", ["error 35", "marey doctor"]),
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
    there = found(tmp_path / "run.marey")
    assert [row[5] for row in there.ranges] == ["train"]
    assert there.notes == [said(done).removeprefix("marey: ")], "and in the recording"


def test_a_tool_that_waits_for_cuda_is_left_alone(run, tool, standins, environment, tmp_path):
    env = environment | {"CUDA_INJECTION64_PATH": "/another/tool.so"}
    command = [tool, "run", "-q", "--gpu", "-o", str(tmp_path / "run.marey"), "--", str(standins / "gpu_work")]
    done = run([*command, "begin", "train", "launch", "a", "7", "end"], env=env, status=None)
    assert "/another/tool.so" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_records_that_cupti_drops_are_reported(traced, found, tmp_path):
    done = traced("launch a 7 gpu_stop counts", cupti="dropped=5")
    assert counts_in(done.stdout)["dropped"] == 5
    there = found(tmp_path / "run.marey")
    assert there.names() == ["a"]
    assert any("5 records of GPU work were dropped" in note for note in there.notes)


def test_a_cupti_that_gives_no_records_is_reported(traced, found, tmp_path):
    done = traced("begin train launch a 7 end gpu_stop is_on", cupti="flush=7")
    assert done.stdout == "off\n"
    there = found(tmp_path / "run.marey")
    assert there.names() == []
    assert len(there.calls("train")) == 1
    assert any("error 7" in note for note in there.notes)


# ---- ends ----


def test_work_that_still_runs_at_the_exit_is_reported(traced, found, tmp_path):
    done = traced("launch done 7 hold launch runs 7")
    assert done.stderr == ""
    there = found(tmp_path / "run.marey")
    assert there.names() == ["done"]
    assert any("1 pieces of work had not ended" in note for note in there.notes)


def test_a_stop_waits_for_work_that_runs(alone, found, tmp_path):
    alone("start_gpu run.marey launch done 7 hold launch runs 7 stop")
    there = found(tmp_path / "run.marey")
    assert there.names() == ["done", "runs"]
    assert there.notes == []


@pytest.mark.parametrize(("end", "status"), [("kill", None), ("quit", 0)])
def test_a_sudden_end_loses_a_buffer_at_most(traced, found, tmp_path, end, status):
    """A buffer has about 20,000 kernels; earlier buffers are in the recording."""
    traced("many 50000 7", end, status=status)
    there = found(tmp_path / "run.marey")
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
    there = found(tmp_path / "run.marey")
    assert there.names() == ["parent"]
    assert len(there.processes) == 2
    assert len(there.calls("child")) == 1


def test_a_child_that_is_forked_before_cuda_is_traced(traced, found, tmp_path):
    traced("begin parent end fork launch child 7")
    there = found(tmp_path / "run.marey")
    assert there.names() == ["child"]


def test_children_that_are_started_anew_are_traced(run, tool, standins, environment, found, tmp_path):
    work = str(standins / "gpu_work")
    script = f"'{work}' launch one 7; '{work}' launch two 7"
    run([tool, "run", "-q", "--gpu", "-o", str(tmp_path / "run.marey"), "--", "/bin/sh", "-c", script], env=environment)
    there = found(tmp_path / "run.marey")
    assert sorted(there.names()) == ["one", "two"]
    assert len(there.processes) == 2


def test_a_spent_budget_is_counted(traced, tmp_path):
    """The recording's pool is full and not emptied."""
    done = traced("many 50000 7 gpu_stop counts", flags=("--options", "disk=64KiB"))
    counted = counts_in(done.stdout)
    assert counted["kernels"] == 50000
    assert os.path.isdir(tmp_path / "run.marey")


def test_calls_that_other_threads_are_in_when_tracing_goes_on_and_off(traced, found, tmp_path):
    """Each range that begins ends (list_events looks for that), and no work is there twice."""
    done = traced("launch first 7 storm 2000 launch last 7")
    assert (done.stdout, done.stderr) == ("", "")
    there = found(tmp_path / "run.marey")
    names = there.names()
    assert "first" in names
    assert "last" in names
    assert len(names) <= 6002
    assert len({row[9] for row in there.work if row[8] == KERNEL}) == len(names)
    assert len({row[8] for row in there.calls("cudaLaunchKernel")}) == len(there.calls("cudaLaunchKernel"))


TRACED_NS = 20000  # what the stand-in of the driver adds to a traced call: MEMSET_TRACED_NS


def cost_of(run: Callable[..., Any], tool: str, path: Path) -> dict[str, Any]:
    return json.loads(run([tool, "report", str(path), "--json"]).stdout)["cost"]


@pytest.mark.parametrize("start", ["injected", "later in the program"])
def test_the_cost_of_tracing_is_measured_in_the_program(traced, alone, run, tool, tmp_path, start):
    if start == "injected":
        traced("launch a 7 launch a 7 launch b 7 sync")
    else:
        alone("launch before 7 start run.marey gpu_start 0:0:0:0 launch a 7 launch a 7 launch b 7 sync gpu_stop stop")
    cost = cost_of(run, tool, tmp_path / "run.marey")
    assert cost["share"] * cost["program_ns"] >= 4 * TRACED_NS / 2
    [part] = cost["parts"]
    assert (part["instrument"], part["count"], part["unknown"]) == ("gpu", 4, 0)
    assert part["high_ns"] >= part["low_ns"] >= 4 * TRACED_NS / 2
    assert cost["high_ns"] >= part["high_ns"]
    text = run([tool, "report", str(tmp_path / "run.marey")]).stdout
    assert "4 CUDA calls x " in text
    assert "not included: slower kernels" in text


def test_a_cost_that_nobody_could_write_down_is_unknown(traced, run, tool, tmp_path):
    traced("launch a 7 sync kill", status=None)
    [part] = cost_of(run, tool, tmp_path / "run.marey")["parts"]
    assert (part["instrument"], part["unknown"], part["high_ns"]) == ("gpu", 1, 0)
    assert "not included: GPU tracing" in run([tool, "report", str(tmp_path / "run.marey")], status=None).stdout
