"""kymo.gpu, and torch.profiler beside it, on a machine without a GPU: by the stand-ins of tests/cupti.

What happens with a real GPU and a real Kineto is in tests/gpu/test_torch_profiler.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kymo

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

# Before kymo wraps them, torch's own functions take and keep CUPTI, as Kineto does where there is a GPU.
KINETO = """
import torch
profiler = torch.autograd.profiler
prepare, disable = profiler._prepare_profiler, profiler._disable_profiler
had_it = []

def kineto_prepares(*args, **kwargs):
    had_it.append(bool(cupti().kymo_test_cupti_take(NAME)) or bool(had_it))
    return prepare(*args, **kwargs)

def kineto_ends(*args, **kwargs):
    results = disable(*args, **kwargs)
    if os.environ.get("TEARDOWN_CUPTI") == "1":
        give_back()
    return results

def give_back():
    cupti().kymo_test_cupti_give()

profiler._prepare_profiler, profiler._disable_profiler = kineto_prepares, kineto_ends
"""

SENTENCE = "torch.profiler traces the GPU now"


@pytest.fixture(scope="session")
def standins() -> Path:
    folder = Path(os.environ.get("KYMO_BUILD", "")) / "tests" / "cupti"
    if not (folder / "cuda" / "libcupti.so.13").exists():
        pytest.skip("KYMO_BUILD names no build with tests/cupti; tools/test sets it")
    return folder


@pytest.fixture
def run_gpu(run_python, standins):
    """Run a script with the stand-ins; what it printed, and what it said."""

    def run(source, *, env=None, head=HEAD, **more):
        paths = {"LD_LIBRARY_PATH": str(standins / "cuda"), "TEARDOWN_CUPTI": "0"}
        return run_python(head + "\n" + source, env=paths | (env or {}), **more)

    return run


@pytest.fixture
def kernels(standins, tmp_path):
    """Names of the kernels in a recording, in the order of their beginnings."""

    def read(name="run.kymo"):
        done = subprocess.run([standins / "list_events", tmp_path / name], capture_output=True, text=True, check=True)
        rows = [line.split("\t") for line in done.stdout.splitlines() if line.startswith("work\t")]
        return [row[6] for row in sorted(rows, key=lambda row: int(row[4])) if row[7] == "kernel"]

    return read


# ---- on and off ----


def test_kernels_between_start_and_stop(run_gpu, kernels):
    done = run_gpu("""
import kymo
kymo.start("run.kymo")
launch("before")
kymo.gpu.start()
assert kymo.gpu.is_on()
with kymo.range("train"):
    launch("one"); launch("two")
kymo.gpu.stop()
assert not kymo.gpu.is_on()
launch("behind")
kymo.gpu.start()
launch("three")
kymo.stop()
assert not kymo.gpu.is_on()
print(kymo.gpu.counts()["kernels"], kymo.gpu.counts()["dropped"])
assert "torch" not in sys.modules
""")
    assert (done.stdout, done.stderr) == ("3 0\n", "")
    assert kernels() == ["one", "two", "three"]


def test_an_option_of_start_traces_all(run_gpu, kernels, tmp_path):
    run_gpu("""
import kymo
kymo.start("run.kymo", gpu=True)
launch("one")
kymo.stop()
""")
    assert kernels() == ["one"]
    ranges = kymo.load(tmp_path / "run.kymo").ranges
    assert "cudaLaunchKernel" in ranges["name"]


def test_a_schedule_by_iterations(run_gpu, kernels):
    run_gpu("""
import kymo
kymo.start("run.kymo")
kymo.gpu.start(wait=1, warmup=1, active=2, repeat=1)
for i in range(6):
    launch(f"k{i}")
    kymo.finish_iteration()
kymo.stop()
""")
    assert kernels() == ["k2", "k3"]


def test_what_does_not_fit_raises(run_gpu):
    done = run_gpu("""
import kymo
def kind(*args, **kwargs):
    try:
        kymo.gpu.start(*args, **kwargs)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
kind()
kymo.start("run.kymo")
kind(wait=-1)
kind(wait=1)
kind(active=1 << 32)
kymo.gpu.start(); kind()
""")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["StateError", *["ValueError"] * 3, "StateError"]


def test_a_refused_subscription_is_an_error_here_and_a_sentence_by_the_option(run_gpu):
    done = run_gpu(
        """
import kymo
launch("so that CUDA is there")
kymo.start("run.kymo", gpu=True)
assert not kymo.gpu.is_on()
try:
    kymo.gpu.start()
except kymo.KymoError as error:
    print(error)
""",
        env={"KYMO_TEST_CUPTI": "subscribe=39"},
    )
    assert "CUPTI for somebody" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert "CUPTI for somebody" in done.stderr


# ---- pauses ----


def test_another_tool_has_its_turn_in_a_pause(run_gpu, kernels):
    done = run_gpu("""
import kymo
kymo.start("run.kymo", gpu=True)
launch("before")
with kymo.gpu.paused():
    assert kymo.gpu.is_on()
    with kymo.gpu.paused():
        assert cupti().kymo_test_cupti_take(NAME)
        launch("in the pause")
        cupti().kymo_test_cupti_give()
    launch("still in it")
launch("behind")
kymo.stop()
""")
    assert done.stderr == ""
    assert kernels() == ["before", "behind"]


def test_a_tool_that_keeps_cupti_is_warned_about(run_gpu, kernels):
    done = run_gpu("""
import kymo, warnings
kymo.start("run.kymo", gpu=True)
launch("before")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    with kymo.gpu.paused():
        assert cupti().kymo_test_cupti_take(NAME)
launch("behind")
print(seen[0].category.__name__, seen[0].filename == __file__, NAME.decode() in str(seen[0].message))
kymo.stop()
""")
    assert done.stdout == "RuntimeWarning True True\n"
    assert kernels() == ["before"]


def test_a_pause_that_ends_after_the_stop_starts_nothing(run_gpu, kernels):
    run_gpu("""
import kymo
kymo.start("run.kymo", gpu=True)
with kymo.gpu.paused():
    kymo.gpu.stop()
launch("behind")
assert not kymo.gpu.is_on()
kymo.stop()
""")
    assert kernels() == []


def test_what_starts_in_a_pause_begins_behind_it(run_gpu, kernels):
    run_gpu("""
import kymo
kymo.start("run.kymo")
launch("before")
with kymo.gpu.paused():
    kymo.gpu.start()
    launch("in it")
launch("behind")
kymo.stop()
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
    done = run_gpu(KINETO + "import kymo\nkymo.start('run.kymo', gpu=True)\n" + PROFILE + "kymo.stop()")
    assert done.stdout == "[True, True]\n"
    assert kernels() == ["before"]
    said = [line for line in done.stderr.splitlines() if line.startswith("kymo: ")]
    assert len(said) == 1
    assert SENTENCE in said[0]
    assert "TEARDOWN_CUPTI=1" in said[0]
    assert "kymo import" in said[0]
    assert SENTENCE in str(kymo.load(tmp_path / "run.kymo").report())


@pytest.mark.needs_torch
def test_tracing_goes_on_when_torch_gives_cupti_back(run_gpu, kernels):
    done = run_gpu(
        KINETO + "import kymo\nkymo.start('run.kymo', gpu=True)\n" + PROFILE + "kymo.stop()",
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
import kymo, threading
def give_back():
    threading.Timer(0.2, cupti().kymo_test_cupti_give).start()
kymo.start("run.kymo", gpu=True)
launch("before")
with torch.profiler.profile():
    pass
for _ in range(3000):
    launch("behind")
    if kymo.gpu.counts()["calls"] > 1:
        break
    time.sleep(0.01)
kymo.stop()
""",
        env={"TEARDOWN_CUPTI": "1"},
    )
    assert set(kernels()) == {"before", "behind"}


@pytest.mark.needs_torch
def test_a_schedule_of_torch_takes_turns_by_its_parts(run_gpu, kernels):
    run_gpu(
        KINETO
        + """
import kymo
kymo.start("run.kymo", gpu=True)
with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1)) as p:
    for i in range(5):
        launch(f"k{i}")
        p.step()
kymo.stop()
assert had_it == [True]
""",
        env={"TEARDOWN_CUPTI": "1"},
    )
    assert kernels() == ["k0", "k3", "k4"]


@pytest.mark.needs_torch
@pytest.mark.parametrize("is_first", [True, False])
def test_the_older_class_and_any_order_of_imports(run_gpu, kernels, is_first):
    start = "import kymo\nkymo.start('run.kymo')\nkymo.gpu.start()\n"
    done = run_gpu(
        (start if is_first else "import torch\n" + start)
        + """
import torch
launch("before")
with torch.autograd.profiler.profile():
    launch("during")
launch("behind")
print(torch.autograd.profiler._kymo_takes_turns)
kymo.stop()
"""
    )
    assert done.stdout == "True\n"
    assert kernels() == ["before", "behind"]


def test_a_program_that_knows_nothing_of_kymo(run_gpu, kernels, tmp_path):
    """By `kymo run --gpu`: the package is not imported, and the turns are taken all the same."""
    fake_torch(tmp_path)
    run_gpu(
        """
launch("before")
import torch.autograd.profiler as profiler
profiler.run(launch)
launch("behind")
assert "kymo" not in sys.modules
""",
        command=[sys.executable, "-m", "kymo", "run", "-q", "--gpu", "-o", str(tmp_path / "run.kymo"), "--"],
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
import kymo
kymo.start("run.kymo", gpu=True)
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
kymo.stop()
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
kymo.stop()
"""
    )
    assert kernels() == ["in it", "behind"]


def test_a_torch_without_these_functions_is_left_alone(run_gpu, kernels, tmp_path):
    fake_torch(tmp_path, "answer = 42")
    run_gpu(FAKE_START + "assert profiler.answer == 42\nlaunch('one')\nkymo.stop()")
    assert kernels() == ["one"]


def test_without_gpu_tracing_torch_is_not_touched(run_gpu, tmp_path):
    fake_torch(tmp_path)
    run_gpu("""
import kymo
kymo.start("run.kymo")
before = list(sys.meta_path)
import torch.autograd.profiler as profiler
assert profiler._prepare_profiler.__code__.co_filename == profiler.__file__
kymo.stop()
""")
