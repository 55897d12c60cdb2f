"""marey run --memory and marey report --memory: what real programs allocate, keep and leak."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built import BUILD, ROOT, Finished, cached

MIB = 1 << 20

pytestmark = pytest.mark.skipif(bool(cached("MAREY_SANITIZE")), reason="a sanitizer has a malloc of its own")


@pytest.fixture(scope="session")
def allocate(compiled: Callable[..., Path]) -> Path:
    """The program of allocate.c."""
    return compiled("allocate.c", "-O0", "-pthread")


@pytest.fixture
def measured(marey: Callable[..., Finished]) -> Callable[..., dict[str, Any]]:
    """Run a program with --memory, and give the report's tables."""

    def run(*program: object, sample: object = None, env: dict[str, str] | None = None) -> dict[str, Any]:
        how = [] if sample is None else ["--memory-sample", sample]
        done = marey("run", "-q", "--force", "-o", "run.marey", "--memory", *how, "--", *program, env=env)
        assert (done.returncode, done.stderr) == (0, "")
        return report(marey, "run.marey")

    return run


def report(marey: Callable[..., Finished], *paths: object) -> dict[str, Any]:
    done = marey("report", "--memory", "--json", *paths)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def by_function(rows: list[dict[str, Any]], function: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["stack"] and row["stack"].split(" < ")[0].startswith(function + " (")]


def test_a_planted_leak_is_found_exactly_when_every_allocation_is_reported(
    measured: Callable[..., dict[str, Any]], allocate: Path
) -> None:
    tables = measured(allocate, "leak", 60, 100_000, sample=1)
    (pool,) = tables["pools"]
    assert pool["source"] == "samples of malloc"
    assert pool["interval_bytes"] is None and pool["plus_minus_bytes"] is None and pool["dropped"] == 0
    (leak,) = by_function(tables["stacks"], "planted_leak")
    assert (leak["bytes"], leak["blocks"]) == (60 * 100_000, 60)
    assert 60 * 100_000 + 800_000 <= pool["peak_bytes"] < 60 * 100_000 + 800_000 + 100_000
    (grows,) = by_function(tables["growth"], "planted_leak")
    assert (grows["per"], grows["is_suspected"]) == ("iteration", True)
    assert grows["slope_bytes"] == grows["low_bytes"] == grows["high_bytes"] == 100_000
    (live,) = (row for row in tables["growth"] if row["what"] == "live")
    assert live["is_suspected"] and live["slope_bytes"] == pytest.approx(100_000, rel=0.01)
    assert by_function(tables["growth"], "planted_scratch") == []


def test_samples_estimate_the_same_within_what_they_say(
    measured: Callable[..., dict[str, Any]], allocate: Path
) -> None:
    tables = measured(allocate, "leak", 200, 200_000)
    (pool,) = tables["pools"]
    assert pool["interval_bytes"] == 512 << 10
    (leak,) = by_function(tables["stacks"], "planted_leak")
    # Five standard deviations: one run in a million is outside.
    assert abs(leak["bytes"] - 200 * 200_000) < 2.5 * leak["plus_minus_bytes"]
    assert 0 < pool["plus_minus_bytes"] < 0.5 * pool["peak_bytes"]
    (grows,) = by_function(tables["growth"], "planted_leak")
    assert grows["is_suspected"] and 100_000 < grows["slope_bytes"] < 300_000
    assert pool["cost_ns"] > 0


def test_a_program_that_frees_what_it_takes_is_not_suspected(
    measured: Callable[..., dict[str, Any]], allocate: Path
) -> None:
    tables = measured(allocate, "leak", 200, 1)
    assert not any(row["is_suspected"] for row in tables["growth"])


def test_the_peak_of_each_phase_is_reported(measured: Callable[..., dict[str, Any]], allocate: Path) -> None:
    tables = measured(allocate, "peak", 50 * MIB, sample=1)
    phases = {row["phase"]: row for row in tables["phases"]}
    assert phases["high"]["peak_bytes"] == pytest.approx(50 * MIB, rel=0.01)
    assert phases["low"]["peak_bytes"] == pytest.approx(5 * MIB, rel=0.05)
    (alive,) = by_function(tables["stacks"], "planted_scratch")
    assert alive["bytes"] == 50 * MIB
    assert len(tables["resident"]) >= 3 and all(row["bytes"] > 0 for row in tables["resident"])


def test_each_function_of_mallocs_family_is_seen(measured: Callable[..., dict[str, Any]], allocate: Path) -> None:
    tables = measured(allocate, "every", sample=1)
    rows = by_function(tables["stacks"], "every")
    assert sum(row["blocks"] for row in rows) == 10
    assert sum(row["bytes"] for row in rows) == 10 * 4096


def test_threads_are_added_up(measured: Callable[..., dict[str, Any]], allocate: Path) -> None:
    tables = measured(allocate, "threads", 8, 10_000, sample=1)
    (pool,) = tables["pools"]
    assert pool["dropped"] == 0
    # What is still there at the end is what each thread kept, and what libc keeps for itself.
    (leak,) = by_function(tables["stacks"], "planted_leak")
    assert leak["bytes"] <= 80_000
    assert 80_000 <= pool["end_bytes"] < 80_000 + 20_000


def test_a_forked_child_tells_of_its_own_blocks(measured: Callable[..., dict[str, Any]], allocate: Path) -> None:
    tables = measured(allocate, "fork", 900_000, sample=1)
    kept = sorted(row["bytes"] for row in by_function(tables["stacks"], "planted_leak"))
    assert kept == [300_000, 900_000]
    parent, child = sorted(tables["pools"], key=lambda row: row["peak_bytes"], reverse=True)
    assert parent["peak_bytes"] == pytest.approx(1_200_000, rel=0.02)
    assert child["peak_bytes"] == pytest.approx(900_000, rel=0.05)


def test_signal_handlers_that_record_do_no_harm(measured: Callable[..., dict[str, Any]], allocate: Path) -> None:
    tables = measured(allocate, "signals", sample="64KiB")
    assert tables["pools"][0]["samples"] > 0


def test_after_a_kill_nearly_all_is_there_and_the_rest_is_reported(
    marey: Callable[..., Finished], start: Callable[..., subprocess.Popen], allocate: Path, tmp_path: Path
) -> None:
    running = start("run", "-q", "-o", "run.marey", "--memory", "--memory-sample", 1, "--", allocate, "wait", 1_000_000)
    assert running.stdout is not None and running.stdout.readline() == "kept\n"
    (log,) = (tmp_path / "run.marey").glob("*.klog")
    os.kill(int(log.stem.split("-")[-2]), signal.SIGKILL)
    assert running.wait(timeout=30) == -signal.SIGKILL
    tables = report(marey, "run.marey")
    (leak,) = by_function(tables["stacks"], "planted_leak")
    assert leak["bytes"] == 1_000_000
    assert any("did not exit normally" in note for note in tables["notes"])


def test_a_full_disk_ends_the_recording_and_not_the_program(marey: Callable[..., Finished], allocate: Path) -> None:
    done = marey(
        "run", "-q", "-o", "run.marey", "--memory", "--memory-sample", 1, "--options", "disk=16KiB,pool=256KiB", "--",
        allocate, "loop", 100_000,
    )  # fmt: skip
    assert done.returncode == 0
    assert "budget" in done.stderr
    assert any("lost" in note and "look alive" in note for note in report(marey, "run.marey")["notes"])


def test_another_allocator_is_left_alone(
    measured: Callable[..., dict[str, Any]], allocate: Path, tmp_path: Path
) -> None:
    source = tmp_path / "other.c"
    source.write_text("int mallctl(void); int mallctl(void) { return 0; }")
    library = tmp_path / "libother.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    tables = measured(allocate, "peak", 20 * MIB, sample=1, env={"LD_PRELOAD": str(library)})
    assert tables["pools"][0]["source"] == "resident memory only"
    assert tables["pools"][0]["peak_resident_bytes"] > 0
    assert any("jemalloc" in note for note in tables["notes"])


def test_text_and_csv_have_the_answer(marey: Callable[..., Finished], allocate: Path) -> None:
    run = marey("run", "-o", "run.marey", "--memory", "--memory-sample", 1, "--", allocate, "leak", 40, 50_000)
    assert "next: marey report --memory run.marey" in run.stderr
    text = marey("report", "--memory", "run.marey").stdout
    assert "leak suspected: what this allocates grows by 50.0 kB each iteration" in text
    assert "planted_leak (allocate) < leak (allocate) < main (allocate)" in text
    lines = marey("report", "--memory", "--csv", "--table", "growth", "run.marey").stdout.splitlines()
    assert lines[0] == (
        "rank,pid,device,what,per,slope_bytes,low_bytes,high_bytes,total_bytes,points,is_suspected,where,stack"
    )
    filtered = marey("report", "--memory", "--csv", "-f", "planted_leak", "run.marey").stdout.splitlines()
    assert len(filtered) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "--memory-sample", "1MiB", "--", "true"], "--memory-sample needs --memory"),
        (["run", "--memory", "--memory-sample", "some", "--", "true"], "option memory.sample cannot be 'some'"),
        (["report", "--memory", "--energy", "x.marey"], "--energy and --memory exclude one another"),
        (["report", "--memory", "nothing.pickle"], "nothing.pickle"),
    ],
)
def test_wrong_usage_is_one_sentence(marey: Callable[..., Finished], arguments: list[str], sentence: str) -> None:
    done = marey(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_a_recording_without_memory_says_how_to_record_it(marey: Callable[..., Finished], recording: Path) -> None:
    done = marey("report", "--memory", recording)
    assert done.returncode == 2
    assert "marey run --memory" in done.stderr


# ---- Python ----

LEAKS = """
    import sys, time
    kept = []

    def keep_buffer():
        kept.append(bytearray(400_000))

    def keep_objects():
        kept.append([(i, float(i)) for i in range(4000)])

    for step in range(60):
        keep_buffer()
        keep_objects()
        bytearray(2_000_000)
        time.sleep(0.02)  # growth is told of a second or more
"""


@pytest.fixture
def python(environment: dict[str, str]) -> dict[str, str]:
    """What a Python program needs to find the package that was built."""
    return {"PYTHONPATH": str(BUILD / "python")}


def grown(tables: dict[str, Any], function: str) -> list[dict[str, Any]]:
    return [row for row in tables["growth"] if row["is_suspected"] and function in (row["stack"] or "")]


def test_leaks_of_a_python_program_have_its_stacks(
    measured: Callable[..., dict[str, Any]], python: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "leaks.py"
    script.write_text(textwrap.dedent(LEAKS))
    tables = measured(sys.executable, script, sample="64KiB", env=python)
    (pool,) = (row for row in tables["pools"] if row["peak_bytes"])
    assert pool["source"] == "samples of malloc and of Python's objects"
    categories = {row["category"]: row["bytes"] for row in tables["categories"]}
    # A tuple of 56 bytes, an int and a float of 28 and 24, and 8 in the list: half a megabyte in all, 60 times.
    assert 20e6 < categories["Python objects"] < 45e6
    assert categories["malloc"] > 60 * 400_000 * 0.9
    assert "keep_buffer (leaks.py:6)" in grown(tables, "keep_buffer")[0]["stack"]
    assert grown(tables, "keep_objects")


def test_without_the_hook_python_is_measured_alone_and_that_is_said(
    marey: Callable[..., Finished], python: dict[str, str], environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "alone.py"
    script.write_text("import marey\nmarey.start('alone.marey', memory=True)\n" + textwrap.dedent(LEAKS))
    subprocess.run([sys.executable, str(script)], check=True, cwd=tmp_path, env={**environment, **python})
    tables = report(marey, "alone.marey")
    assert tables["pools"][0]["source"] == "samples of Python's objects"
    assert grown(tables, "keep_buffer") and any("marey run --memory" in note for note in tables["notes"])


def test_the_example_finds_its_leak(measured: Callable[..., dict[str, Any]], python: dict[str, str]) -> None:
    tables = measured(sys.executable, ROOT / "examples" / "leak.py", 60, sample="64KiB", env=python)
    (leak,) = grown(tables, "remember")
    assert leak["per"] == "iteration" and leak["stack"].startswith("remember (leak.py:24)")
    assert leak["slope_bytes"] == pytest.approx(400_000, rel=0.1)


# ---- files of torch ----


def frame(name: str, line: int = 1) -> dict[str, Any]:
    return {"filename": "/home/me/model.py", "line": line, "name": name}


def snapshot() -> dict[str, Any]:
    """One device: 3 MiB were there before the history, 2 MiB leak, 8 MiB come and go; 20 MiB are reserved."""
    stacks = {name: [frame(name, 7), frame("train", 3)] for name in ("layer", "leak", "scratch")}
    base, events, time = 0x7F0000000000, [], 1_000_000

    def event(action: str, address: int, size: int, stack: str | None = None) -> None:
        nonlocal time
        time += 10
        frames = stacks[stack] if stack else []
        events.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": frames})

    event("segment_alloc", base, 20 * MIB)
    event("alloc", base + 3 * MIB, MIB, "leak")
    event("alloc", base + 5 * MIB, 8 * MIB, "scratch")
    event("free_requested", base + 5 * MIB, 8 * MIB)
    event("free_completed", base + 5 * MIB, 8 * MIB)
    event("alloc", base + 4 * MIB, MIB, "leak")
    blocks = [
        {"address": base, "size": 3 * MIB, "requested_size": 3 * MIB, "state": "active_allocated",
         "frames": stacks["layer"]},
        {"address": base + 3 * MIB, "size": MIB, "requested_size": MIB, "state": "active_allocated", "frames": []},
        {"address": base + 4 * MIB, "size": MIB, "requested_size": MIB, "state": "active_allocated", "frames": []},
        {"address": base + 5 * MIB, "size": 10 * MIB, "requested_size": 0, "state": "inactive", "frames": []},
        {"address": base + 15 * MIB, "size": 5 * MIB, "requested_size": 0, "state": "inactive", "frames": []},
    ]  # fmt: skip
    segment = {
        "device": 0, "address": base, "total_size": 20 * MIB, "allocated_size": 5 * MIB, "active_size": 5 * MIB,
        "requested_size": 5 * MIB, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
        "is_expandable": False, "frames": [], "blocks": blocks,
    }  # fmt: skip
    return {"segments": [segment], "device_traces": [events, []], "allocator_settings": {"max_split_size": -1}}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_cuda_snapshot_tells_peak_and_fragmentation(
    marey: Callable[..., Finished], tmp_path: Path, protocol: int
) -> None:
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(snapshot(), protocol=protocol))
    tables = report(marey, "snapshot.pickle")
    (pool,) = tables["pools"]
    assert (pool["device"], pool["peak_bytes"], pool["end_bytes"]) == ("cuda:0", 12 * MIB, 5 * MIB)
    assert pool["peak_reserved_bytes"] == 20 * MIB
    stacks = {row["stack"]: row["bytes"] for row in tables["stacks"]}
    assert stacks == {
        "scratch (model.py:7) < train (model.py:3)": 8 * MIB,
        "layer (model.py:7) < train (model.py:3)": 3 * MIB,
        "leak (model.py:7) < train (model.py:3)": 1 * MIB,
    }
    (state,) = tables["fragmentation"]
    assert (state["reserved_bytes"], state["allocated_bytes"], state["inactive_bytes"]) == (
        20 * MIB, 5 * MIB, 15 * MIB,
    )  # fmt: skip
    assert (state["largest_free_bytes"], state["free_blocks"]) == (10 * MIB, 2)
    # All of it lies beside blocks that are in use, in one segment.
    assert (state["whole_bytes"], state["split_bytes"], state["split_share"]) == (0, 15 * MIB, 0.75)
    assert any("no growth is reported: the history has 0 iterations" in note for note in tables["notes"])


# As torch 2.11 with CUDA told them on an H200, with `stacks="all"`: arguments shortened.
UNWINDER = [
    ("torch::unwind::unwind()", "??", 0),
    ("torch::CapturedTraceback::gather(bool, bool, bool)", "??", 0),
    ("torch::cuda::(anonymous namespace)::gather_with_cpp()", "memory_snapshot.cpp", 0),
    ("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long, CUstream_st*)",
     "CUDACachingAllocator.cpp", 0),
    ("c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)", "", 0),
    ("at::detail::empty_cuda(c10::ArrayRef<long>, c10::TensorOptions const&)", "??", 0),
]  # fmt: skip
ADAM = [
    ("at::native::zeros_like(at::Tensor const&, std::optional<c10::ScalarType>)", "??", 0),
    ("_init_group", "/opt/lib/python3.12/site-packages/torch/optim/adam.py", 178),
    ("_PyEval_EvalFrameDefault", "??", 0),
    ("step", "/opt/lib/python3.12/site-packages/torch/optim/adam.py", 238),
    ("wrapper", "/opt/lib/python3.12/site-packages/torch/optim/optimizer.py", 533),
    ("train", "/home/me/train.py", 27),
    ("<module>", "/home/me/train.py", 40),
]
BACKWARD = [
    ("at::(anonymous namespace)::structured_mm_out::set_output_raw_strided(long)", "RegisterCUDA_0.cpp", 0),
    ("at::meta::structured_mm::meta(at::Tensor const&, at::Tensor const&)", "??", 0),
    ("c10::impl::wrap_kernel_functor_unboxed_<c10::impl::detail::Wrap<at::Tensor (long)> >::call(long)", "", 0),
    ("torch::autograd::VariableType::(anonymous namespace)::mm(at::Tensor const&) [clone .isra.0]", "Type_3.cpp", 0),
    ("at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "??", 0),
    ("torch::autograd::generated::details::mm_mat1_backward(at::Tensor const&)", "", 0),
    ("torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor, std::allocator<long> >&&)", "", 0),
    ("torch::autograd::Node::operator()(std::vector<at::Tensor, std::allocator<at::Tensor> >&&)", "", 0),
]


def real_frames(frames: list[tuple[str, str, int]]) -> list[dict[str, Any]]:
    return [{"name": name, "filename": file, "line": line} for name, file, line in UNWINDER + frames]


def training_snapshot(n_steps: int, leaks_until: int) -> dict[str, Any]:
    """Steps of a training that keeps 2 MiB in each step up to one, Adam's state (two stacks) and a gradient."""
    events: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    base, time = 0x7F0000000000, 5_000_000
    other_caller = [*ADAM[:4], ("_use_grad", ADAM[1][1].replace("adam", "optimizer"), 81), *ADAM[4:]]

    def alloc(size: int, frames: list[tuple[str, str, int]]) -> None:
        nonlocal base
        events.append({"action": "alloc", "addr": base, "size": size, "stream": 0, "time_us": time,
                       "frames": real_frames(frames)})  # fmt: skip
        base += size

    alloc(3 * MIB, ADAM)
    alloc(MIB, other_caller)
    for step in range(n_steps):
        time += 1000
        marks.append({"stage": "START", "name": "marey:backward", "device": 0, "time_us": time})
        if step < leaks_until:
            alloc(2 * MIB, BACKWARD)
        time += 100
        marks.append({"stage": "END", "name": "marey:backward", "device": 0, "time_us": time})
        marks.append({"stage": "START", "name": "Optimizer.step#Adam.step", "device": 0, "time_us": time})
        time += 100
        marks.append({"stage": "END", "name": "Optimizer.step#Adam.step", "device": 0, "time_us": time})
    blocks = [{"address": 4096, "size": 7 * MIB, "state": "active_allocated", "frames": []}]
    segments = [{"device": 0, "address": 4096, "total_size": 7 * MIB, "blocks": blocks}]
    return {"segments": segments, "device_traces": [events], "external_annotations": marks}


def test_a_snapshot_shows_python_where_there_is_any_and_the_operator_elsewhere(
    marey: Callable[..., Finished], tmp_path: Path
) -> None:
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(training_snapshot(20, 20)))
    tables = report(marey, "snapshot.pickle")
    places = {row["where"]: (row["bytes"], row["blocks"]) for row in tables["stacks"]}
    assert places == {
        "at::meta::structured_mm::meta < torch::autograd::VariableType::mm < ... "
        "< torch::autograd::generated::AddmmBackward0::apply < ...": (40 * MIB, 20),
        "(allocated before recording)": (7 * MIB, 1),
        "_init_group (adam.py:178) < step (adam.py:238) < ... < train (train.py:27) < ...": (4 * MIB, 2),
    }
    adam = next(row for row in tables["stacks"] if row["where"].startswith("_init_group"))
    assert adam["stack"].startswith("torch::unwind::unwind() < torch::CapturedTraceback::gather(bool, bool, bool) < ")
    assert adam["stack"].endswith("train (train.py:27) < <module> (train.py:40)")
    drawn = marey("report", "--memory", "snapshot.pickle").stdout
    assert all(place in drawn for place in places) and "torch::unwind" not in drawn
    csv = marey("report", "--memory", "--csv", "--table", "stacks", "snapshot.pickle").stdout
    assert "torch::unwind::unwind()" in csv


def test_optimizer_steps_are_the_iterations_of_a_snapshot(marey: Callable[..., Finished], tmp_path: Path) -> None:
    (tmp_path / "leak.pickle").write_bytes(pickle.dumps(training_snapshot(20, 20)))
    (tmp_path / "warm.pickle").write_bytes(pickle.dumps(training_snapshot(40, 8)))
    (tmp_path / "short.pickle").write_bytes(pickle.dumps(training_snapshot(4, 4)))
    leak = report(marey, "leak.pickle")
    live, stack = leak["growth"]
    assert (live["what"], live["per"], live["points"], live["slope_bytes"]) == ("live", "iteration", 16, 2 * MIB)
    assert live["is_suspected"] and stack["is_suspected"] and "AddmmBackward0" in stack["where"]
    phases = {row["phase"]: (row["count"], row["peak_bytes"]) for row in leak["phases"]}
    assert phases == {"backward": (20, 51 * MIB), "Optimizer.step#Adam.step": (20, 51 * MIB)}
    assert not any(row["is_suspected"] for row in report(marey, "warm.pickle")["growth"])
    short = report(marey, "short.pickle")
    assert short["growth"] == [] and any("the history has 4 iterations in" in note for note in short["notes"])


class Evil:
    """What an unpickler that runs code would fall for."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("touch owned",))


def test_a_pickle_that_makes_objects_is_refused(marey: Callable[..., Finished], tmp_path: Path) -> None:
    (tmp_path / "evil.pickle").write_bytes(pickle.dumps({"segments": [Evil()]}))
    done = marey("report", "--memory", "evil.pickle")
    assert done.returncode == 2
    assert "it makes objects" in done.stderr
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("cut", [2, 50, 400])
def test_a_snapshot_that_is_cut_off_is_reported(marey: Callable[..., Finished], tmp_path: Path, cut: int) -> None:
    (tmp_path / "cut.pickle").write_bytes(pickle.dumps(snapshot(), protocol=4)[:cut])
    done = marey("report", "--memory", "cut.pickle")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "cut.pickle" in done.stderr


def test_a_trace_of_torch_tells_what_the_cpu_held(marey: Callable[..., Finished], tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(512, 512)
    kept = []
    activities = [torch.profiler.ProfilerActivity.CPU]
    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    with torch.profiler.profile(
        activities=activities, profile_memory=True, with_stack=True, experimental_config=verbose
    ) as profiler:
        for _ in range(3):
            with torch.profiler.record_function("marey:forward"):
                kept.append(layer(torch.ones(1024, 512)))
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    tables = report(marey, "trace.json")
    (pool,) = (row for row in tables["pools"] if row["device"] == "cpu")
    assert pool["source"] == "allocations in a trace of torch.profiler"
    # Three results of 2 MiB, and their inputs, which autograd keeps.
    assert pool["peak_bytes"] == 12 * MIB
    assert any("nn.Module" in (row["stack"] or "") for row in tables["stacks"])
    assert "Linear_0" in {row["module"] for row in tables["modules"]}
    assert [row["phase"] for row in tables["phases"]] == ["forward"]
