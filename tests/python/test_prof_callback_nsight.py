"""ProfCallback under Nsight Systems: what an NVTX tool hears, and how the tool is recognised."""

from __future__ import annotations

from pathlib import Path

import pytest
from nvtx_calls import is_balanced

pytest.importorskip("transformers", reason="transformers is not installed; tools/setup test installs it from 3.11 on")
pytest.importorskip("accelerate", reason="the Trainer needs accelerate; tools/setup test installs it from 3.11 on")

from marey import _nsight
from marey.hf import ProfCallback

SHARED = Path(__file__).parents[1] / "shared"


@pytest.mark.parametrize(
    ("environment", "mark"),
    [
        ({"NSYS_PROFILING_SESSION_ID": "7"}, "NSYS_PROFILING_SESSION_ID"),
        ({"NVPROF_ID": "1"}, "NVPROF_ID"),
        ({"NV_NSIGHT_INJECTION_TRANSPORT_TYPE": "1"}, "NV_NSIGHT_INJECTION_TRANSPORT_TYPE"),
        ({"NV_COMPUTE_PROFILER_PERFWORKS_DIR": "/opt/ncu"}, "NV_COMPUTE_PROFILER_PERFWORKS_DIR"),
        ({"CUDA_INJECTION64_PATH": "/opt/nvidia/nsight-systems/libToolsInjection64.so"}, "CUDA_INJECTION64_PATH"),
        ({"NVTX_INJECTION64_PATH": "/opt/nsight-compute/libcuda-injection.so"}, "NVTX_INJECTION64_PATH"),
        ({"NVTX_INJECTION64_PATH": "/opt/marey/libmarey-nvtx.so", "NSYS_PROFILING_SESSION_ID": ""}, None),
        ({}, None),
    ],
)
def test_nvidias_tools_are_known_by_what_they_leave_in_the_environment(environment, mark):
    assert _nsight.tool_here(environment) == mark


def test_under_nsys_there_is_a_profiler_and_a_word(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "7")
    callback = ProfCallback(output_dir=tmp_path, enable_nsight_systems=True, wait_steps=1)
    assert callback.prof is not None
    assert "Nsight Systems runs this program (NSYS_PROFILING_SESSION_ID)" in capsys.readouterr().err


def test_under_nsys_but_not_for_it_the_gpu_is_left_to_nsys(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "7")
    callback = ProfCallback(output_dir=tmp_path)
    assert not callback.settings["cuda"]
    assert "another profiler has the GPU (NSYS_PROFILING_SESSION_ID)" in capsys.readouterr().err


def test_a_tool_hears_of_steps_phases_and_modules_in_the_window_alone(listen, nvtx_tool, tmp_path):
    calls = listen(
        f"""
        import sys
        sys.path.insert(0, {str(SHARED)!r})
        from pathlib import Path
        from tiny_trainer import make_trainer
        from marey.hf import ProfCallback

        callback = ProfCallback(
            output_dir="out", wait_steps=1, warmup_steps=1, active_steps=2, num_cycles=1, enable_nsight_systems=True
        )
        make_trainer(Path("."), callback, steps=7).train()
        """,
        tool=nvtx_tool,
        env={"NSYS_PROFILING_SESSION_ID": "7"},
    )
    pushed = [call["message"] for call in calls.of("push")]
    step = ["marey:data", "marey:forward", "Perceptron", "hidden", "out", "marey:backward", "marey:optimizer"]
    assert pushed == ["ProfilerStep#2", *step, "ProfilerStep#3", *step]
    assert is_balanced(calls.every)
    assert list((tmp_path / "out").iterdir()) == []
