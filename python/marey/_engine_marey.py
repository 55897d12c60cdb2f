"""The engine "marey": records operators, shapes, annotations, phases, steps, and GPU activity through CUPTI.

torch.profiler converts its data to a trace when it stops. This engine writes a recording instead, a few dozen bytes per
operator, and the end of a window costs nothing: while training continues, a background process makes the trace and the
tables from the recording. Between windows no operators are recorded.

A recording takes about 5 ms to start, GPU tracing about 10, and stopping it waits until the GPU is idle, so threads do
this. They start with the warm-up, and the trace of a window is queued after GPU tracing has stopped. A window with too
short a warm-up waits at its start, and has a note about it.

If a recording is open, it is used. Otherwise the engine has its own, `marey_engine.marey` in the output directory, from
its first window until it is closed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import os
import threading
import time
import weakref

from marey import _background, _native
from marey._operators import Operators
from marey._window import say, who_am_i

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional, Union

    from marey._window import Window

_RECORDING = "marey_engine.marey"
_MADE = {"averages"}  # besides the trace; allocations and Python stacks are not recorded


class MareyEngine:
    """Records with marey. One object serves any number of windows, one at a time."""

    def __init__(
        self,
        output_dir: Union[str, os.PathLike[str]],
        cpu: bool = True,
        cuda: bool = True,
        profile_memory: bool = False,
        with_stack: bool = False,
        record_shapes: bool = False,
        with_flops: bool = False,
    ) -> None:
        """Configure what is recorded. Settings that this engine does not support are reported and ignored."""
        self.output_dir = os.fspath(output_dir)
        self._cuda = cuda
        self._operators, self._mistake = _make_operators(record_shapes) if cpu else (None, None)
        self._has_gpu = False  # this engine started GPU tracing
        self._beginning: Optional[_Beginning] = None  # of a recording, on a thread
        self._late_ns = 0  # how long the window waited for it
        self._launched_before = 0  # launches from this correlation on are after the window; 0: no GPU tracing
        self._log: Optional[str] = None
        self._step: Optional[_native.Range] = None
        self._from_ns = 0
        self._until_ns = 0
        asked = {"profile_memory": profile_memory, "with_stack": with_stack, "with_flops": with_flops}
        missing = [name for name, is_asked in asked.items() if is_asked]
        if missing and who_am_i()[0] == 0:
            say(
                f'engine="marey" records neither allocations nor Python stacks nor FLOPs, so {", ".join(missing)} '
                'give nothing; engine="torch" has them'
            )

    # ---- called by the driver ----

    def prepare(self) -> None:
        """Prepare. The first time, a thread does it, because starting a recording takes some milliseconds."""
        if self._mistake is not None:
            raise self._mistake
        self._late_ns = 0
        if _native.enabled() and _background.is_ready():
            self._get_ready()
        else:
            self._beginning = _Beginning(self._get_ready)

    def start(self) -> None:
        """Start recording operators."""
        self._await_recording()
        self._await_gpu()
        self._from_ns = time.monotonic_ns()
        if self._operators is not None:
            self._operators.start()

    def step_begin(self, step: int) -> None:
        """Begin the range of a step, with torch's name."""
        self._step = _native.range("ProfilerStep", category="step", payload=step)
        self._step.__enter__()

    def step_end(self) -> None:
        """End it."""
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def stop(self, window: Window) -> None:
        """Stop recording operators."""
        if self._operators is not None:
            self._operators.stop()
        self._end_gpu()
        self._until_ns = time.monotonic_ns()
        if self._late_ns:
            window.notes.append(f"{self._late_ns / 1e6:.0f} ms of waiting for the recording to begin")

    def save(self, window: Window) -> None:
        """Queue making the trace and the tables from the recording."""
        window.make_folder()
        trace = os.path.join(window.folder, window.trace_name())
        times = ["--from", f"{self._from_ns}ns", "--until", f"{self._until_ns}ns"]
        if self._launched_before:
            times += ["--launched-before", str(self._launched_before)]
        selection = ",".join(["trace", *sorted(window.selection & _MADE)])
        if window.roles:  # useless without allocations, and too long for a command line
            window = dataclasses.replace(window, roles=[])
        log = self._log or self._find_log()  # a recording started by the environment has a log after its first event
        if log is None:
            raise OSError("the recording has no log of this process")
        commands = (
            ["export", log, "--to", "kineto", *times, "--about", window.about(), "--quiet", "-o", trace],
            ["artifacts", trace, "-o", window.folder, "--rank", str(window.rank), "--only", selection, "--move"],
        )
        if self._launched_before:  # a thread first fetches the GPU activity
            _background.run_behind(_native.gpu_settle, *commands)
        else:
            _background.run(*commands)

    def discard(self) -> None:
        """Stop, in any state. Recorded data stays in the recording."""
        with contextlib.suppress(_native.MareyError, OSError):  # the data is no longer needed
            self._await_recording()
        self.step_end()
        if self._operators is not None:
            self._operators.stop()
        self._end_gpu()

    # ---- the recording ----

    def _get_ready(self) -> None:
        _background.ready()
        if not _native.enabled():
            self._begin_recording()
        self._log = self._find_log()
        self._begin_gpu()

    def _await_recording(self) -> None:
        beginning, self._beginning = self._beginning, None
        if beginning is not None:
            self._late_ns += beginning.wait()

    def _begin_recording(self) -> None:
        os.makedirs(self.output_dir, exist_ok=True)
        rank, world_size = who_am_i()
        if world_size > 1:
            _native.set_rank(rank, world_size)
        _native.start(os.path.join(self.output_dir, _RECORDING), "")
        weakref.finalize(self, _end_recording, os.getpid(), _native.recording_path())

    def _find_log(self) -> Optional[str]:
        """The log of this process, the newest if it has several; a recording may have logs of other ranks as well."""
        pattern = os.path.join(glob.escape(_native.recording_path()), f"r*-{os.getpid()}-*.klog")
        return max(map(os.path.abspath, glob.glob(pattern)), key=os.path.getmtime, default=None)

    # ---- GPU tracing ----

    def _begin_gpu(self) -> None:
        if not self._cuda or self._has_gpu or _native.gpu_is_on():
            return
        import torch

        from marey import gpu

        if not torch.cuda.is_available():
            self._cuda = False
            return
        _background.ready_behind()
        try:
            gpu.start(later=True)
            self._has_gpu = True
        except _native.MareyError as error:
            self._cuda = False
            say(str(error))

    def _await_gpu(self) -> None:
        if not self._has_gpu:
            return
        if not _native.gpu_is_settled():
            began_ns = time.perf_counter_ns()
            _native.gpu_settle()
            self._late_ns += time.perf_counter_ns() - began_ns
        # If it could not start, that was reported; the next window would fail the same way.
        self._has_gpu = self._cuda = _native.gpu_is_on()

    def _end_gpu(self) -> None:
        """Stop GPU tracing later. Kernels launched so far belong to the window, whenever they run."""
        self._launched_before = _native.gpu_stop_later() if self._has_gpu else 0
        self._has_gpu = False


class _Beginning:
    """A function that runs on another thread instead of the training thread."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin
        self._error: Optional[Exception] = None
        self._thread = threading.Thread(target=self._run, name="marey-begin")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._begin()
        except Exception as error:
            self._error = error

    def wait(self) -> int:
        """Wait for it. Returns the waiting time in ns; raises its exception."""
        is_late, began_ns = self._thread.is_alive(), time.perf_counter_ns()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return time.perf_counter_ns() - began_ns if is_late else 0


def _make_operators(shapes: bool) -> tuple[Optional[Operators], Optional[_native.MareyError]]:
    """Inspect this PyTorch before training begins. Errors are reported when a window is recorded."""
    try:
        operators = Operators(shapes)
    except _native.MareyError as error:
        return None, error
    if operators.missing is not None:
        say(operators.missing)
    return operators, None


def _end_recording(owner: int, path: str) -> None:
    """End the engine's recording, unless another recording replaced it."""
    if os.getpid() == owner and _native.enabled() and _native.recording_path() == path:
        with contextlib.suppress(_native.MareyError):
            _native.stop()
