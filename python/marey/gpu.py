"""GPU tracing: kernels, copies, memsets and the CUDA calls that launch them, in the recording.

    marey.start("run.marey", gpu=True)        # all of the run; or `marey run --gpu -- python train.py`

    marey.gpu.start(wait=5, warmup=1, active=3, repeat=2)     # by iterations, see marey.iteration()
    marey.gpu.stop()

    marey.gpu.start(later=True)               # returns immediately: a thread acquires CUPTI in some milliseconds
    marey.gpu.stop(later=True)                # and releases it, when the GPU is idle

Activity is on the track of its stream, and linked to the range that launched it. marey does not link CUDA: it uses the
CUPTI of the process, or finds one. CUPTI serves one tool at a time; tracing pauses while torch.profiler runs.
"""

from __future__ import annotations

from marey import _native

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from types import TracebackType
    from typing import Optional

__all__ = ["counts", "is_on", "is_settled", "paused", "settle", "start", "stop"]


def start(wait: int = 0, warmup: int = 0, active: int = 0, repeat: int = 0, *, later: bool = False) -> None:
    """Trace from now on, or by iterations.

    With `active`, `wait` iterations are skipped, the next `warmup` iterations are traced and their records discarded,
    and `active` ones are kept; this repeats `repeat` times, or forever if 0. If the process has not used CUDA yet,
    tracing starts once it initializes CUDA. MareyError if CUPTI is missing, too old or in use; StateError if tracing is
    already on, or no recording is open.

    With `later` a thread acquires CUPTI, and GPU activity is recorded from then on; settle() waits for that. If CUPTI
    is not available, tracing is off, and a message is printed and added to the recording.
    """
    for name, value in (("wait", wait), ("warmup", warmup), ("active", active), ("repeat", repeat)):
        if not 0 <= value < 1 << 32:
            raise ValueError(f"{name} counts iterations, not {value!r}")
    from marey import _torch_profiler

    _torch_profiler.watch()
    _native.gpu_start(wait, warmup, active, repeat, later)


def stop(*, later: bool = False) -> None:
    """Wait for the current device, collect the records, and release CUPTI. Does nothing without tracing.

    With `later` a thread does so. CUDA calls from now on are not recorded, nor is the activity that they launch;
    activity launched before is recorded, even if it runs later. marey.stop() and the end of the process wait for it.
    """
    if later:
        _native.gpu_stop_later()
    else:
        _native.gpu_stop()


def settle() -> None:
    """Wait until all starts and stops with `later` are done."""
    _native.gpu_settle()


def is_settled() -> bool:
    """Whether all starts and stops with `later` are done."""
    return _native.gpu_is_settled()


def is_on() -> bool:
    """Whether tracing is on, including pauses and iterations that its schedule skips."""
    return _native.gpu_is_on()


def counts() -> dict[str, int]:
    """Return the number of traced and missing records of this process so far.

    The keys are kernels, copies, sets, syncs, memory_operations, calls; "dropped" counts records that CUPTI had no room
    for, "lost" those that the recording had no room for, "incomplete" activity that had not ended when queried.
    """
    return _native.gpu_counts()


class paused:
    """Let another tool use CUPTI in a `with` block, and resume afterwards.

    If that tool keeps CUPTI, tracing stays off, with a RuntimeWarning.
    """

    def __enter__(self) -> None:
        _native.gpu_pause(None)

    def __exit__(
        self,
        type: Optional[type[BaseException]] = None,
        value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
    ) -> None:
        try:
            _native.gpu_resume()
        except _native.MareyError as error:
            import warnings

            warnings.warn(str(error), RuntimeWarning, stacklevel=2)
