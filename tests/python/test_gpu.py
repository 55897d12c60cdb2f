"""marey.gpu and torch.profiler on a machine without a GPU, with the fakes of tests/cupti.

What happens with a real GPU and a real Kineto is in tests/gpu/test_torch_profiler.py.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import marey

# What each script begins with: the stand-in of a GPU, and of a tool that wants CUPTI as Kineto does.
HEAD = """
import ctypes, os, sys, time
cuda = ctypes.CDLL("libcudart.so.13")

names = {}  # which records point at

def launch(name, stream=7):
    cuda.gpu_launch(names.setdefault(name, name.encode()), stream, 8, 128)

def cupti():
    return ctypes.CDLL("libcupti.so.13")

NAME = b"CUPTI for <not provided>"
"""

# Before marey wraps them, torch's own functions take and keep CUPTI, as Kineto does where there is a GPU.
KINETO = """
import torch
profiler = torch.autograd.profiler
prepare, disable = profiler._prepare_profiler, profiler._disable_profiler
had_it = []

def kineto_prepares(*args, **kwargs):
    had_it.append(bool(cupti().marey_test_cupti_take(NAME)) or bool(had_it))
    return prepare(*args, **kwargs)

def kineto_ends(*args, **kwargs):
    results = disable(*args, **kwargs)
    if os.environ.get("TEARDOWN_CUPTI") == "1":
        give_back()
    return results

def give_back():
    cupti().marey_test_cupti_give()

profiler._prepare_profiler, profiler._disable_profiler = kineto_prepares, kineto_ends
"""

SENTENCE = "torch.profiler traces the GPU now"


@pytest.fixture(scope="session")
def standins() -> Path:
    folder = Path(os.environ.get("MAREY_BUILD", "")) / "tests" / "cupti"
    if not (folder / "cuda" / "libcupti.so.13").exists():
        pytest.skip("MAREY_BUILD names no build with tests/cupti; tools/test sets it")
    return folder


@pytest.fixture
def run_gpu(run_python, standins):
    """Run a script with the fakes; return its stdout and stderr."""

    def run(source, *, env=None, head=HEAD, **more):
        paths = {"LD_LIBRARY_PATH": str(standins / "cuda"), "TEARDOWN_CUPTI": "0"}
        return run_python(head + "\n" + source, env=paths | (env or {}), **more)

    return run


@pytest.fixture
def kernels(standins, tmp_path):
    """Names of the kernels in a recording, in the order of their beginnings."""

    def read(name="run.marey"):
        done = subprocess.run([standins / "list_events", tmp_path / name], capture_output=True, text=True, check=True)
        rows = [line.split("\t") for line in done.stdout.splitlines() if line.startswith("work\t")]
        return [row[6] for row in sorted(rows, key=lambda row: int(row[4])) if row[7] == "kernel"]

    return read


# ---- on and off ----


def test_kernels_between_start_and_stop(run_gpu, kernels):
    done = run_gpu("""
import marey
marey.start("run.marey")
launch("before")
marey.gpu.start()
assert marey.gpu.is_on()
with marey.range("train"):
    launch("one"); launch("two")
marey.gpu.stop()
assert not marey.gpu.is_on()
launch("behind")
marey.gpu.start()
launch("three")
marey.stop()
assert not marey.gpu.is_on()
print(marey.gpu.counts()["kernels"], marey.gpu.counts()["dropped"])
assert "torch" not in sys.modules
""")
    assert (done.stdout, done.stderr) == ("3 0\n", "")
    assert kernels() == ["one", "two", "three"]


def test_an_option_of_start_traces_all(run_gpu, kernels, tmp_path):
    run_gpu("""
import marey
marey.start("run.marey", gpu=True)
launch("one")
marey.stop()
""")
    assert kernels() == ["one"]
    ranges = marey.load(tmp_path / "run.marey").ranges
    assert "cudaLaunchKernel" in ranges["name"]


def test_gpu_time_stands_at_the_call_that_launched(run_gpu, tmp_path):
    """By path and thread: a call has the work that it launched, and that of what it called."""
    run_gpu("""
import marey, threading
def attend(n):
    for _ in range(n):
        cuda.gpu_launch(names.setdefault(f"attend {n}", b"attend %d" % n), 7, 8, 128)
def embed():
    attend(2)
    cuda.gpu_launch(names.setdefault("embed", b"embed"), 7, 8, 128)
def idle():
    return None
def step():
    attend(3)
    embed()
    idle()
marey.start("run.marey", gpu=True, calls=True, calls_signatures="none")
step()
thread = threading.Thread(target=attend, args=(5,), name="other")
thread.start()
thread.join()
marey.stop()
""")
    recording = marey.load(tmp_path / "run.marey")
    assert {row["name"]: row["count"] for row in recording.gpu("kernels")} == {
        "attend 3": 3,
        "attend 2": 2,
        "embed": 1,
        "attend 5": 5,
    }
    took = {row["name"]: row["total_ns"] for row in recording.gpu("kernels")}
    functions, got = {0: "nobody"}, {}
    for row in recording.calls("path"):
        functions[row["node"]] = row["function"]
        if row["function"] in ("attend", "embed", "idle", "step"):
            got[row["thread"], functions[row["parent"]], row["function"]] = row["gpu_ns"]
    expected = {
        ("MainThread", "nobody", "step"): took["attend 3"] + took["attend 2"] + took["embed"],
        ("MainThread", "step", "attend"): took["attend 3"],
        ("MainThread", "step", "embed"): took["attend 2"] + took["embed"],
        ("MainThread", "embed", "attend"): took["attend 2"],
        ("MainThread", "step", "idle"): 0,
        ("other", "run", "attend"): took["attend 5"],
    }
    assert set(got) == set(expected)
    for path, ns in expected.items():
        assert got[path] == pytest.approx(ns, abs=10), path  # each piece of work is rounded to a nanosecond
    assert min(took.values()) > 100


def test_a_schedule_by_iterations(run_gpu, kernels):
    run_gpu("""
import marey
marey.start("run.marey")
marey.gpu.start(wait=1, warmup=1, active=2, repeat=1)
for i in range(6):
    launch(f"k{i}")
    marey.finish_iteration()
marey.stop()
""")
    assert kernels() == ["k2", "k3"]


STEPS = """
def steps(n, end_step):
    traced = []
    for i in range(n):
        before = marey.gpu.counts()["calls"]
        launch(f"k{i}")
        if marey.gpu.counts()["calls"] != before:
            traced.append(i)
        end_step()
    return traced
"""


def test_windows_are_at_the_same_steps_in_all_processes(run_gpu, tmp_path):
    """Also where steps are counted differently, and where CUDA comes later."""
    source = (
        STEPS
        + "import marey; from marey import _native\nmarey.start('NAME.marey', gpu=True, **{'gpu.windows': '4%'})\n"
    )
    hints = source + "print(steps(98, lambda: _native.step_hint(1, 1)))"
    iterations = source + "print(steps(98, marey.finish_iteration))"
    late = (
        source
        + "for i in range(10): _native.step_hint(1, 1)\n"
        + "print([i + 10 for i in steps(88, lambda: _native.step_hint(1, 1))])"
    )
    by_hints, again, by_iterations, without_first = (
        json.loads(run_gpu(text.replace("NAME", name)).stdout)
        for name, text in (("a", hints), ("b", hints), ("c", iterations), ("d", late))
    )
    assert by_hints[:5] == [5, 6, 7, 8, 9]
    assert len(by_hints) == 5 * 3  # one window in 31 steps
    assert by_hints == again == by_iterations
    assert without_first == by_hints[5:]


def test_the_diagnosis_has_why_the_gpu_is_idle(run_gpu, marey_command, tmp_path):
    """Of each step 4 ms load data, then 20 kernels are launched in 4 ms; the GPU has next to nothing to do."""
    run_gpu(
        """
import marey
from marey import _native
def spin(ms):
    until = time.perf_counter() + ms / 1e3
    while time.perf_counter() < until:
        pass
def load():
    _native.phase_enter("data")
    spin(4)
    _native.phase_leave()
for _ in range(60):
    _native.step_hint(2, 0)
    load()
    _native.step_hint(3, 0, 8.0)
    for _ in range(20):
        launch("kernel")
        spin(0.2)
    _native.step_hint(1, 1)
""",
        command=[*marey_command, "run", "-q", "-o", "run.marey"],
        env={"MAREY_OPTIONS": "gpu=1,gpu.windows=20%"},
    )
    done = subprocess.run(
        [*marey_command, "report", tmp_path / "run.marey", "--diagnosis", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    diagnosis = json.loads(done.stdout)
    device, found = diagnosis["device"], {finding["id"]: finding for finding in diagnosis["findings"]}
    assert device["idle"] > 0.9
    assert sum(device[key] for key in ("compute", "communication", "copy", "idle")) == pytest.approx(1, abs=1e-3)
    assert set(found) == {"input-bound", "host-bound"}
    assert 0.3 < found["input-bound"]["share"] < 0.7
    assert 0.3 < found["host-bound"]["share"] < 0.7
    assert found["input-bound"]["share"] + found["host-bound"]["share"] <= 1
    assert "Kernels" not in found["host-bound"]["action"]  # gaps are longer than launches


@pytest.mark.parametrize("data_ms", [1, 6])
def test_a_gpu_that_is_not_traced_while_data_is_loaded(run_gpu, marey_command, tmp_path, data_ms):
    """Whether the GPU is idle meanwhile is unknown: only a long wait is a finding, and an upper bound."""
    run_gpu(
        f"""
import marey
from marey import _native
def spin(ms):
    until = time.perf_counter() + ms / 1e3
    while time.perf_counter() < until:
        pass
for i in range(60):
    _native.step_hint(2, 0)
    _native.phase_enter("data")
    spin({data_ms} if i > 30 else 0)
    _native.phase_leave()
    _native.step_hint(3, 0, 8.0)
    launch("kernel")
    spin(6 if i > 30 else 1)
    _native.step_hint(1, 1)
""",
        command=[*marey_command, "run", "-q", "-o", "run.marey"],
        env={"MAREY_OPTIONS": "gpu=1,gpu.windows=1%"},
    )
    done = subprocess.run(
        [*marey_command, "report", tmp_path / "run.marey", "--diagnosis", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    findings = json.loads(done.stdout)["findings"]
    if data_ms == 1:
        assert findings == []
    else:
        assert [each["id"] for each in findings] == ["input-bound"]
        assert "at most" in findings[0]["claim"] and "not traced" in findings[0]["claim"]
        assert findings[0]["confidence"] <= 0.5


def test_cupti_that_is_taken_is_reported_once(run_gpu):
    done = run_gpu(
        STEPS
        + """
import marey
marey.start("run.marey", gpu=True, **{"gpu.windows": "100%"})
assert steps(60, marey.finish_iteration) == []
marey.stop()
""",
        env={"MAREY_TEST_CUPTI": "subscribe=39"},
    )
    assert done.stderr.count("another tool in this process has CUPTI") == 1


def test_graphs_keep_cupti_initialized(run_gpu, tmp_path):
    """The hook in torch's class for graphs, with a stand-in of that class."""
    log = tmp_path / "calls"
    done = run_gpu(
        STEPS
        + """
import types
import marey
module = sys.modules["torch.cuda.graphs"] = types.ModuleType("torch.cuda.graphs")
class CUDAGraph:
    def capture_begin(self, fails=False):
        if fails:
            raise RuntimeError("refused")
    def capture_end(self): pass
module.CUDAGraph = CUDAGraph
marey.start("run.marey", gpu=True, **{"gpu.windows": "100%"})
graph = CUDAGraph()
try:
    graph.capture_begin(fails=True)
except RuntimeError as error:
    print(error)
graph.capture_begin()
graph.capture_end()
print(len(steps(53, marey.finish_iteration)))
marey.stop()
""",
        env={"MAREY_TEST_CUPTI_LOG": str(log)},
    )
    assert done.stdout.split() == ["refused", "15"]
    calls = [line.split()[0] for line in log.read_text().splitlines()]
    assert calls.count("subscribe") == calls.count("unsubscribe") == 3
    assert "finalize" not in calls


def test_what_does_not_fit_raises(run_gpu):
    done = run_gpu("""
import marey
def kind(*args, **kwargs):
    try:
        marey.gpu.start(*args, **kwargs)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
kind()
marey.start("run.marey")
kind(wait=-1)
kind(wait=1)
kind(active=1 << 32)
marey.gpu.start(); kind()
""")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["StateError", *["ValueError"] * 3, "StateError"]


def test_a_refused_subscription_is_an_error_here_and_a_sentence_by_the_option(run_gpu):
    done = run_gpu(
        """
import marey
launch("so that CUDA is there")
marey.start("run.marey", gpu=True)
assert not marey.gpu.is_on()
try:
    marey.gpu.start()
except marey.MareyError as error:
    print(error)
""",
        env={"MAREY_TEST_CUPTI": "subscribe=39"},
    )
    assert "CUPTI for somebody" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert "CUPTI for somebody" in done.stderr


# ---- without waiting ----


def test_kernels_between_a_later_start_and_a_later_stop(run_gpu, kernels):
    """CUPTI does not answer before the gate is opened, so a call that waited for it would do so for ever."""
    done = run_gpu(
        """
import marey
launch("so that CUDA is there")
marey.start("run.marey")
marey.gpu.start(later=True)
assert marey.gpu.is_on() and not marey.gpu.is_settled()
cupti().marey_test_cupti_gate(0)
marey.gpu.settle()
launch("one")
cupti().marey_test_cupti_gate(1)
marey.gpu.stop(later=True)
assert not marey.gpu.is_on() and not marey.gpu.is_settled()
launch("behind")
cupti().marey_test_cupti_gate(0)
marey.stop()
assert marey.gpu.is_settled()
try:
    marey.gpu.start(later=True)
except marey.StateError as error:
    print(error)
""",
        env={"MAREY_TEST_CUPTI": "gate=5"},
    )
    assert "no recording is open" in done.stdout
    assert kernels() == ["one"]


# Windows by the engine of ProfCallback: each step launches a kernel that has its number.
WINDOWS = """
import torch
torch.cuda.is_available = lambda: True
from marey import _background, _native
from marey._engine_marey import MareyEngine
from marey._schedule import Schedule
from marey._window import Driver

def train(schedule, n_steps, at={}):
    driver = Driver(schedule, MareyEngine("out"), "out", {"averages"})
    driver.start()
    for i in range(n_steps):
        torch.ones(3).add(i)
        launch(f"k{i}", 7)
        at.get(i, lambda: None)()
        driver.step()
    return driver
"""


@pytest.fixture
def trace_of(tmp_path):
    """The kernels of a window's trace, by the step at its end."""

    def read(step):
        (path,) = (tmp_path / "out" / f"iteration_{step}").glob("*.pt.trace.json.gz")
        with gzip.open(path, "rt") as file:
            events = json.load(file)["traceEvents"]
        return [event["name"] for event in events if event.get("cat") == "kernel"]

    return read


@pytest.mark.needs_torch
def test_a_window_ends_before_cupti_does_and_has_its_kernels(run_gpu, trace_of):
    """Steps go on while CUPTI hangs in its last flush; the trace is made behind it, and has no later kernel."""
    run_gpu(
        WINDOWS
        + """
gate = lambda is_shut: cupti().marey_test_cupti_gate(is_shut)
launch("so that CUDA is there")
gate(0)
driver = train(Schedule(1, 1, 2, 1), 6, {3: lambda: gate(1)})
assert not _native.gpu_is_settled()
assert len(driver.windows) == 1
driver.stop()
gate(0)
_background.wait()
""",
        env={"MAREY_TEST_CUPTI": "gate=4"},
    )
    assert trace_of(4) == ["k2", "k3"]


@pytest.mark.needs_torch
def test_windows_without_anything_between_have_their_own_kernels(run_gpu, trace_of):
    """Nothing hides how long CUPTI takes to begin: each window waits for it, and tells."""
    run_gpu(
        WINDOWS
        + """
launch("so that CUDA is there")
driver = train(Schedule(0, 0, 1, 3), 4)
driver.stop()
for window in driver.windows:
    assert "of waiting for the recording to begin" in window.notes[0], window.notes
    assert window.begin_ns > 20_000_000
_background.wait()
""",
        env={"MAREY_TEST_CUPTI": "slow=20000"},
    )
    assert [trace_of(step) for step in (1, 2, 3)] == [["k0"], ["k1"], ["k2"]]


@pytest.mark.needs_torch
def test_a_program_that_ends_right_behind_a_window_has_its_trace(run_gpu, trace_of):
    run_gpu(
        WINDOWS + "launch('so that CUDA is there')\ntrain(Schedule(0, 1, 2, 1), 3)",
        env={"MAREY_TEST_CUPTI": "slow=20000"},
    )
    assert trace_of(3) == ["k1", "k2"]


@pytest.mark.needs_torch
def test_windows_without_cupti_say_so_once(run_gpu, trace_of):
    done = run_gpu(
        WINDOWS + "launch('so that CUDA is there')\ntrain(Schedule(0, 1, 1, 2), 5).stop()\n_background.wait()",
        env={"MAREY_TEST_CUPTI": "subscribe=39"},
    )
    assert done.stderr.count("GPU work is not recorded") == 1
    assert trace_of(2) == trace_of(4) == []


# ---- pauses ----


def test_another_tool_has_its_turn_in_a_pause(run_gpu, kernels):
    done = run_gpu("""
import marey
marey.start("run.marey", gpu=True)
launch("before")
with marey.gpu.paused():
    assert marey.gpu.is_on()
    with marey.gpu.paused():
        assert cupti().marey_test_cupti_take(NAME)
        launch("in the pause")
        cupti().marey_test_cupti_give()
    launch("still in it")
launch("behind")
marey.stop()
""")
    assert done.stderr == ""
    assert kernels() == ["before", "behind"]


def test_a_tool_that_keeps_cupti_is_warned_about(run_gpu, kernels):
    done = run_gpu("""
import marey, warnings
marey.start("run.marey", gpu=True)
launch("before")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    with marey.gpu.paused():
        assert cupti().marey_test_cupti_take(NAME)
launch("behind")
print(seen[0].category.__name__, seen[0].filename == __file__, NAME.decode() in str(seen[0].message))
marey.stop()
""")
    assert done.stdout == "RuntimeWarning True True\n"
    assert kernels() == ["before"]


def test_a_pause_that_ends_after_the_stop_starts_nothing(run_gpu, kernels):
    run_gpu("""
import marey
marey.start("run.marey", gpu=True)
with marey.gpu.paused():
    marey.gpu.stop()
launch("behind")
assert not marey.gpu.is_on()
marey.stop()
""")
    assert kernels() == []


def test_what_starts_in_a_pause_begins_behind_it(run_gpu, kernels):
    run_gpu("""
import marey
marey.start("run.marey")
launch("before")
with marey.gpu.paused():
    marey.gpu.start()
    launch("in it")
launch("behind")
marey.stop()
""")
    assert kernels() == ["behind"]


# ---- torch.profiler ----

PROFILE = """
launch("before")
for i in range(2):
    with torch.profiler.profile() as found:
        launch(f"during {i}")
        torch.ones(3) + 1
    assert any("add" in event.name for event in found.events())
    launch(f"behind {i}")
print(had_it)
"""


@pytest.mark.needs_torch
def test_torch_has_cupti_in_its_profiles_and_keeps_it(run_gpu, kernels, tmp_path):
    done = run_gpu(KINETO + "import marey\nmarey.start('run.marey', gpu=True)\n" + PROFILE + "marey.stop()")
    assert done.stdout == "[True, True]\n"
    assert kernels() == ["before"]
    said = [line for line in done.stderr.splitlines() if line.startswith("marey: ")]
    assert len(said) == 1
    assert SENTENCE in said[0]
    assert "TEARDOWN_CUPTI=1" in said[0]
    assert "marey import" in said[0]
    assert SENTENCE in str(marey.load(tmp_path / "run.marey").report())


@pytest.mark.needs_torch
def test_tracing_goes_on_when_torch_gives_cupti_back(run_gpu, kernels):
    done = run_gpu(
        KINETO + "import marey\nmarey.start('run.marey', gpu=True)\n" + PROFILE + "marey.stop()",
        env={"TEARDOWN_CUPTI": "1"},
    )
    assert kernels() == ["before", "behind 0", "behind 1"]
    assert len([line for line in done.stderr.splitlines() if SENTENCE in line]) == 1


@pytest.mark.needs_torch
def test_tracing_goes_on_when_torch_gives_cupti_back_late(run_gpu, kernels):
    """Kineto does so behind the program's back, with one of its next calls of CUDA."""
    run_gpu(
        KINETO
        + """
import marey, threading
def give_back():
    threading.Timer(0.2, cupti().marey_test_cupti_give).start()
marey.start("run.marey", gpu=True)
launch("before")
with torch.profiler.profile():
    pass
for _ in range(3000):
    launch("behind")
    if marey.gpu.counts()["calls"] > 1:
        break
    time.sleep(0.01)
marey.stop()
""",
        env={"TEARDOWN_CUPTI": "1"},
    )
    assert set(kernels()) == {"before", "behind"}


@pytest.mark.needs_torch
def test_a_schedule_of_torch_takes_turns_by_its_parts(run_gpu, kernels):
    run_gpu(
        KINETO
        + """
import marey
marey.start("run.marey", gpu=True)
with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1)) as p:
    for i in range(5):
        launch(f"k{i}")
        p.step()
marey.stop()
assert had_it == [True]
""",
        env={"TEARDOWN_CUPTI": "1"},
    )
    assert kernels() == ["k0", "k3", "k4"]


@pytest.mark.needs_torch
@pytest.mark.parametrize("is_first", [True, False])
def test_the_older_class_and_any_order_of_imports(run_gpu, kernels, is_first):
    start = "import marey\nmarey.start('run.marey')\nmarey.gpu.start()\n"
    done = run_gpu(
        (start if is_first else "import torch\n" + start)
        + """
import torch
launch("before")
with torch.autograd.profiler.profile():
    launch("during")
launch("behind")
print(torch.autograd.profiler._marey_takes_turns)
marey.stop()
"""
    )
    assert done.stdout == "True\n"
    assert kernels() == ["before", "behind"]


def test_a_program_that_knows_nothing_of_marey(run_gpu, kernels, tmp_path):
    """By `marey run --gpu`: the package is not imported, and the turns are taken all the same."""
    fake_torch(tmp_path)
    run_gpu(
        """
launch("before")
import torch.autograd.profiler as profiler
profiler.run(launch)
launch("behind")
assert "marey" not in sys.modules
""",
        command=[sys.executable, "-m", "marey", "run", "-q", "--gpu", "-o", str(tmp_path / "run.marey"), "--"],
    )
    assert kernels() == ["before", "behind"]


# ---- a torch of any version ----

# The same in all versions from 2.1 to 2.13: two functions of this module, which its own code calls by their names.
FAKE = """
def _prepare_profiler(config, activities, **filters):
    if filters.get("fails"):
        raise RuntimeError("no")

def _enable_profiler(config, activities):
    pass

def _disable_profiler():
    return "results"

def run(launch, **filters):
    _prepare_profiler(None, set(), **filters)
    _enable_profiler(None, set())
    launch("during")
    return _disable_profiler()
"""


def fake_torch(folder, source=FAKE):
    (folder / "torch" / "autograd").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text("")
    (folder / "torch" / "autograd" / "__init__.py").write_text("")
    (folder / "torch" / "autograd" / "profiler.py").write_text(source)


FAKE_START = """
import marey
marey.start("run.marey", gpu=True)
import torch.autograd.profiler as profiler
"""


def test_results_and_failures_pass_through(run_gpu, kernels, tmp_path):
    fake_torch(tmp_path)
    run_gpu(
        FAKE_START
        + """
assert profiler.run(launch) == "results"
launch("behind")
try:
    profiler.run(launch, fails=True)
except RuntimeError:
    launch("and on")
assert profiler._prepare_profiler.__name__ == "_prepare_profiler"
marey.stop()
"""
    )
    assert kernels() == ["behind", "and on"]


def test_ranges_for_nvtx_need_no_turn(run_gpu, kernels, tmp_path):
    """emit_nvtx enables and disables, and prepares nothing."""
    fake_torch(tmp_path)
    run_gpu(
        FAKE_START
        + """
profiler._enable_profiler(None, set())
launch("in it")
profiler._disable_profiler()
launch("behind")
marey.stop()
"""
    )
    assert kernels() == ["in it", "behind"]


def test_a_torch_without_these_functions_is_left_alone(run_gpu, kernels, tmp_path):
    fake_torch(tmp_path, "answer = 42")
    run_gpu(FAKE_START + "assert profiler.answer == 42\nlaunch('one')\nmarey.stop()")
    assert kernels() == ["one"]


def test_without_gpu_tracing_torch_is_not_touched(run_gpu, tmp_path):
    fake_torch(tmp_path)
    run_gpu("""
import marey
marey.start("run.marey")
before = list(sys.meta_path)
import torch.autograd.profiler as profiler
assert profiler._prepare_profiler.__code__.co_filename == profiler.__file__
marey.stop()
""")
