"""Stopwatch: when it waits for the GPU, by a stand-in for CUDA's runtime and for torch."""

from __future__ import annotations

import pytest

import marey

LOOP = """
    import marey
    stopwatch = marey.Stopwatch({})
    for i in range(3):
        stopwatch.start_meas("a")
        stopwatch.end_meas("a")
        with stopwatch("b"):
            pass
        stopwatch.finish_iter()
    """


@pytest.mark.parametrize(
    ("arguments", "n_waits"),
    [
        ("0, None, False", 0),
        ("0, None, True", 12),
        ("2, None, True", 4),
        ("3, None, True", 0),
        ("1, gpu='sync'", 8),
        ("1", 0),
    ],
)
def test_it_waits_at_both_ends_of_a_measurement_after_warmup_when_asked(listen, arguments, n_waits):
    assert listen(LOOP.format(arguments), cuda=True).lines == ["sync"] * n_waits


@pytest.mark.parametrize("how", ["start", "environment", "run"])
def test_options_make_it_wait(listen, marey_command, how):
    options = "stopwatch.warmup=1,stopwatch.cuda_sync=1"
    arguments = '**{"stopwatch.warmup": 1, "stopwatch.cuda_sync": True}' if how == "start" else ""
    calls = listen(
        f"""
        import marey
        if {how == "start"}:
            marey.start("run.marey", {arguments})
        """
        + LOOP.format("").replace("\n    ", "\n        "),
        cuda=True,
        env={"MAREY": "run.marey", "MAREY_OPTIONS": options} if how == "environment" else None,
        command=[*marey_command, "run", "--only", "ranges", "-o", "run.marey", "--options", options, "--"]
        if how == "run"
        else None,
    )
    assert calls.lines == ["sync"] * 8


@pytest.mark.parametrize(("sync_one_time", "n_waits"), [(False, 0), (True, 2)])
def test_one_time_measurements_wait_when_asked(listen, sync_one_time, n_waits):
    calls = listen(
        f"""
        import marey
        stopwatch = marey.Stopwatch(5, None, True, sync_one_time={sync_one_time})
        stopwatch.start_one_time_measurement("setup")
        stopwatch.end_one_time_measurement("setup")
        """,
        cuda=True,
    )
    assert calls.lines == ["sync"] * n_waits


TORCH = """
    import sys, types
    calls = []
    torch = types.ModuleType("torch")
    cuda = torch.cuda = types.ModuleType("torch.cuda")
    cuda.is_initialized = lambda: True
    cuda.is_current_stream_capturing = lambda: capturing
    def synchronize():
        calls.append("torch")
        if failing:
            raise RuntimeError("a kernel failed")
    cuda.synchronize = synchronize
    sys.modules["torch"], sys.modules["torch.cuda"] = torch, cuda
    capturing = failing = False
    """


def test_where_torch_uses_the_gpu_torch_waits(listen):
    calls = listen(TORCH + LOOP.format("1, None, True") + "print(*calls)", cuda=True)
    assert calls.lines == []
    assert calls.done.stdout.split() == ["torch"] * 8


def test_while_a_graph_is_captured_nobody_waits(listen):
    calls = listen(TORCH + "capturing = True" + LOOP.format("0, None, True") + "print(*calls)", cuda=True)
    assert (calls.lines, calls.done.stdout.split()) == ([], [])


def test_what_torch_raises_while_waiting_comes_through_and_leaves_nothing_running(listen):
    calls = listen(
        TORCH
        + """
    import marey
    stopwatch = marey.Stopwatch(0, None, True, strict=True)
    failing = True
    for call in (stopwatch.start_meas, stopwatch.end_meas):
        try:
            call("a")
        except RuntimeError as error:
            print(error)
        except marey.StateError:
            print("not started")
    failing = False
    stopwatch.finish_iter()
    try:
        with stopwatch("b"):
            failing = True
            raise KeyError("mine")
    except (KeyError, RuntimeError) as error:
        print(type(error).__name__)
    failing = False
    with stopwatch("b"):
        pass
    stopwatch.finish_iter()
    """,
        cuda=True,
    )
    assert calls.done.stdout.splitlines()[0] == "a kernel failed"
    assert calls.done.returncode == 0


def test_without_cuda_asking_to_wait_gives_one_sentence_and_the_loop_goes_on(run_python):
    done = run_python(LOOP.format("0, 3, True"))
    assert "Num. measured iterations: 3" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert "CUDA" in done.stderr


def test_without_cuda_asking_for_events_gives_one_clear_sentence(run_python):
    done = run_python(
        """
        import marey
        try:
            marey.Stopwatch(0, gpu="events")
        except marey.MareyError as error:
            print(error)
        stopwatch = marey.Stopwatch()
        if stopwatch.is_enabled:
            stopwatch.disable()
        """
    )
    said = done.stdout + done.stderr
    assert len(said.splitlines()) == 1
    assert "CUDA" in said


@pytest.mark.needs_torch
def test_with_a_torch_that_has_no_gpu_it_measures_all_the_same():
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU; tests/gpu has this with one")
    stopwatch = marey.Stopwatch(0, None, True)
    with stopwatch("matmul"):
        torch.ones(16, 16) @ torch.ones(16, 16)
    stopwatch.finish_iter()
    assert stopwatch.stats().intervals.row(name="matmul")["count"] == 1
