"""Nsight Systems: detection, an engine that emits ranges for it, and its command line.

Under nsys, another profiler would compete for CUPTI and record everything twice. So the engine writes no files: it
emits NVTX ranges for steps, phases, modules and operators, and starts and stops the capture according to the schedule,
for `nsys profile --capture-range=cudaProfilerApi`.
"""

from __future__ import annotations

import os
import shlex
import sys

from marey import _native, _phases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Optional

    from marey._window import Window

# Variables that NVIDIA's tools set for the programs they run.
_MARKS = (
    "NSYS_PROFILING_SESSION_ID",
    "NVPROF_ID",
    "NV_NSIGHT_INJECTION_TRANSPORT_TYPE",
    "NV_NSIGHT_INJECTION_PORT_BASE",
    "NV_COMPUTE_PROFILER_PERFWORKS_DIR",
)
_INJECTIONS = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD")
_TOOLS = ("nsight", "nsys", "toolsinjection", "libcuda-injection")


def tool_here(environment: Mapping[str, str] = os.environ) -> Optional[str]:
    """Return the variable that shows that an NVIDIA profiler runs this program, or None."""
    for name in _MARKS:
        if environment.get(name):
            return name
    for name in _INJECTIONS:
        value = environment.get(name, "").lower()
        if any(tool in value for tool in _TOOLS):
            return name
    return None


def command(output_file: str) -> str:
    """The command that runs this program under Nsight Systems."""
    original = getattr(sys, "orig_argv", [sys.executable, *sys.argv])
    return shlex.join(["nsys", "profile", "-o", output_file, "python", *original[1:]])


class NsightEngine:
    """Sends ranges to an NVTX tool and starts and stops CUDA's profiler; saves nothing."""

    def __init__(self, record_shapes: bool = False) -> None:
        """Create one. Call attach() before the first window."""
        self.record_shapes = record_shapes
        self._model: Any = None
        self._modules: Any = None
        self._operators: Any = None
        self._step: Optional[_native.Range] = None
        self._has_cuda = False

    def attach(self, model: Any) -> None:
        """Make each module of the model a range while a window is recorded."""
        self._model = model

    def prepare(self) -> None:
        """Check whether there is a GPU."""
        import torch

        self._has_cuda = torch.cuda.is_available()

    def start(self) -> None:
        """Start the capture, and ranges of phases, modules and operators."""
        import torch

        if self._has_cuda:
            torch.cuda.profiler.start()
            self._operators = torch.autograd.profiler.emit_nvtx(record_shapes=self.record_shapes)
            self._operators.__enter__()
        if not _native.enabled():  # phases of an open recording are emitted to the tool anyway
            _phases.annotate(_native.range)
        if self._model is not None:
            from marey._training import ModuleRanges

            self._modules = ModuleRanges(self._model)

    def step_begin(self, step: int) -> None:
        """Begin the range of a step."""
        self._step = _native.range(f"ProfilerStep#{step}", category="step")
        self._step.__enter__()

    def step_end(self) -> None:
        """End it."""
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def stop(self, window: Window) -> None:
        """Stop the capture."""
        self.discard()

    def save(self, window: Window) -> None:
        """Do nothing: the tool saves its own data."""

    def discard(self) -> None:
        """Stop the capture and the ranges."""
        _phases.annotate(None)
        if self._modules is not None:
            self._modules.remove()
            self._modules = None
        if self._operators is not None:
            import torch

            operators, self._operators = self._operators, None
            operators.__exit__(None, None, None)
            torch.cuda.profiler.stop()
