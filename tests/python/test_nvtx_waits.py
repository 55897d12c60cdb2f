"""Waiting for the GPU: the order of waits, pushes and pops, by a stand-in for CUDA's runtime and for torch.

tests/gpu/test_nvtx_sync.py shows the same with a real GPU.
"""

from __future__ import annotations

import pytest

PAIR = """
    import marey
    wrapper = marey.NVTXRangeWrapper({}, {}, {})
    wrapper.range_push("a")
    wrapper.range_pop("a")
    """


@pytest.mark.parametrize("is_tracked", [False, True])
@pytest.mark.parametrize(
    ("on_push", "on_pop", "expected"),
    [
        (False, False, ["push a", "pop"]),
        (True, False, ["sync", "push a", "pop"]),
        (False, True, ["push a", "sync", "pop"]),
        (True, True, ["sync", "push a", "sync", "pop"]),
    ],
)
def test_it_waits_before_push_and_pop_as_asked(listen, nvtx_tool, on_push, on_pop, is_tracked, expected):
    calls = listen(PAIR.format(on_push, on_pop, is_tracked), tool=nvtx_tool, cuda=True)
    assert calls.lines == expected
    assert calls.done.stderr == ""


def test_off_it_does_not_wait(listen, nvtx_tool):
    calls = listen(
        """
        import marey
        wrapper = marey.NVTXRangeWrapper()
        wrapper.range_push("a")
        wrapper.range_pop("a")
        with marey.range("b"):
            pass
        wrapper.enable(True, True, False)
        wrapper.disable()
        wrapper.range_push("a")
        wrapper.range_pop("a")
        """,
        tool=nvtx_tool,
        cuda=True,
    )
    assert calls.lines == ["push b", "pop"]


def test_only_the_wrapper_waits(listen):
    calls = listen(
        """
        import marey
        marey.NVTXRangeWrapper(True, True, False)
        with marey.range("block"):
            marey.push("a")
            marey.pop()
            marey.mark("here")
        """,
        cuda=True,
    )
    assert calls.lines == []


def test_it_waits_without_a_tool_and_without_a_recording(listen):
    assert listen(PAIR.format(True, True, False), cuda=True).lines == ["sync", "sync"]


@pytest.mark.parametrize("how", ["start", "environment", "run"])
def test_options_choose_the_waits(listen, marey_command, how):
    options = "nvtx.sync_on_pop=1,nvtx.sync_on_push=0"
    arguments = '**{"nvtx.sync_on_pop": True}' if how == "start" else ""
    calls = listen(
        f"""
        import marey
        if {how == "start"}:
            marey.start("run.marey", {arguments})
        wrapper = marey.NVTXRangeWrapper()
        wrapper.range_push("a")
        wrapper.range_pop("a")
        """,
        cuda=True,
        env={"MAREY_OPTIONS": options} if how == "environment" else None,
        command=[*marey_command, "run", "--only", "ranges", "-o", "run.marey", "--options", options, "--"]
        if how == "run"
        else None,
    )
    assert calls.lines == ["sync"]


def test_without_cuda_it_goes_on_and_says_so_once(listen):
    calls = listen(PAIR.format(True, True, True))
    assert calls.lines == []
    assert calls.done.stderr.count("uses no CUDA") == 1


def test_a_wait_that_fails_is_reported_once_and_changes_nothing(listen, nvtx_tool):
    calls = listen(PAIR.format(True, True, True), tool=nvtx_tool, cuda=True, env={"MAREY_TEST_CUDA_ERROR": "700"})
    assert calls.lines == ["sync", "push a", "sync", "pop"]
    assert calls.done.stderr.count("a test's error (CUDA error 700)") == 1


def test_with_the_driver_alone_the_runtime_is_opened(listen, nvtx_build):
    folder = nvtx_build / "cuda"
    calls = listen(
        PAIR.format(True, False, False),
        env={"LD_PRELOAD": str(folder / "libcuda.so.1"), "LD_LIBRARY_PATH": str(folder)},
    )
    assert calls.lines == ["sync"]


def test_a_runtime_that_is_loaded_later_is_found(listen, nvtx_build):
    calls = listen(
        f"""
        import ctypes
        import marey
        wrapper = marey.NVTXRangeWrapper(True, False, False)
        wrapper.range_push("before")
        ctypes.CDLL({str(nvtx_build / "cuda" / "libcudart.so.12")!r})
        wrapper.range_push("after")
        """
    )
    assert calls.lines == ["sync"]


def test_other_threads_run_while_it_waits(listen):
    """The stand-in's wait does not end before another Python thread has run."""
    calls = listen(
        """
        import ctypes, threading
        import marey
        runtime = ctypes.CDLL("libcudart.so.12")
        waits = threading.Event()

        def other():
            waits.wait(60)
            marey.mark("meanwhile")
            ctypes.c_int.in_dll(runtime, "marey_test_may_return").value = 1

        ctypes.c_int.in_dll(runtime, "marey_test_may_return").value = 0
        thread = threading.Thread(target=other)
        thread.start()
        wrapper = marey.NVTXRangeWrapper(True, True, False)
        waits.set()
        wrapper.range_push("a")
        thread.join()
        """,
        cuda=True,
    )
    assert calls.done.returncode == 0


# torch itself cannot be told to use a GPU that is not there, so its three functions are stood in for.
TORCH = """
    import sys, types
    import marey
    log = []
    cuda = types.ModuleType("torch.cuda")
    cuda.is_initialized = lambda: {is_initialized}
    cuda.is_current_stream_capturing = lambda: {is_capturing}
    def synchronize():
        marey.mark("torch waits")
        {ending}
    cuda.synchronize = synchronize
    sys.modules["torch"] = types.ModuleType("torch")
    sys.modules["torch.cuda"] = cuda
    wrapper = marey.NVTXRangeWrapper(True, True, True)
    """


def with_torch(rest: str, **facts: object) -> str:
    values = {"is_initialized": True, "is_capturing": False, "ending": "pass", **facts}
    return TORCH.format(**values) + rest


PUSH_AND_POP = """
    wrapper.range_push("a")
    wrapper.range_pop("a")
    """


def test_where_torch_uses_the_gpu_torch_waits(listen, nvtx_tool):
    calls = listen(with_torch(PUSH_AND_POP), tool=nvtx_tool, cuda=True)
    assert calls.lines == ["mark torch waits", "push a", "mark torch waits", "pop"]


def test_where_torch_uses_no_gpu_the_runtime_is_asked(listen, nvtx_tool):
    calls = listen(with_torch(PUSH_AND_POP, is_initialized=False), tool=nvtx_tool, cuda=True)
    assert calls.lines == ["sync", "push a", "sync", "pop"]


def test_while_a_graph_is_captured_nothing_waits(listen, nvtx_tool):
    calls = listen(with_torch(PUSH_AND_POP, is_capturing=True), tool=nvtx_tool, cuda=True)
    assert calls.lines == ["push a", "pop"]


def test_the_check_comes_before_torch_waits(listen, nvtx_tool):
    calls = listen(
        with_torch(
            """
    wrapper.range_push("a")
    try:
        wrapper.range_pop("b")
    except marey.RangeError:
        marey.mark("told")
    wrapper.range_pop("a")
    """
        ),
        tool=nvtx_tool,
    )
    assert calls.lines == ["mark torch waits", "push a", "mark told", "mark torch waits", "pop"]


def test_ranges_inside_torchs_own_wait_do_not_wait(listen, nvtx_tool):
    calls = listen(
        with_torch(PUSH_AND_POP, ending='wrapper.range_push("inside"); wrapper.range_pop("inside")'), tool=nvtx_tool
    )
    wait = ["mark torch waits", "push inside", "pop"]
    assert calls.lines == [*wait, "push a", *wait, "pop"]


def test_what_torch_raises_is_raised_and_leaves_ranges_balanced(listen, nvtx_tool):
    calls = listen(
        with_torch(
            """
    for call in (wrapper.range_push, wrapper.range_pop):
        try:
            call("a")
        except RuntimeError as error:
            marey.mark(str(error))
        cuda.synchronize = lambda: None
        if call == wrapper.range_push:
            wrapper.range_push("a")
            cuda.synchronize = synchronize
    """,
            ending='raise RuntimeError("device lost")',
        ),
        tool=nvtx_tool,
    )
    assert calls.lines == [
        *("mark torch waits", "mark device lost"),
        *("push a", "mark torch waits", "pop", "mark device lost"),
    ]


@pytest.mark.needs_torch
def test_with_a_torch_that_uses_no_gpu(listen, nvtx_tool):
    calls = listen("import torch" + PAIR.format(True, True, True).replace("\n    ", "\n"), tool=nvtx_tool)
    assert calls.lines == ["push a", "pop"]
