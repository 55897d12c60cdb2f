"""What the GPU does: kernels, copies, memsets and the CUDA calls that cause them, in the recording.

    marey.start("run.marey", gpu=True)        # all of the run; or `marey run --gpu -- python train.py`

    marey.gpu.start(wait=5, warmup=1, active=3, repeat=2)     # by iterations, see marey.iteration()
    marey.gpu.stop()

    marey.gpu.start(later=True)               # come back at once: a thread takes CUPTI, some milliseconds
    marey.gpu.stop(later=True)                # and gives it back, when the GPU has done what it was given

Work is on a track of its stream, and joined with the range that launched it. Nothing of CUDA is linked: the CUPTI that
the process has is used, or one that is found. CUPTI serves one tool at a time. torch.profiler goes first: while it
runs, tracing pauses by itself.
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

    With `active`, `wait` iterations are left out, in the next `warmup` tracing is on and its records are thrown away,
    and `active` ones are kept; and again, `repeat` times in all, 0 for ever. A process without CUDA so far is traced
    once it initializes CUDA. Where CUPTI is missing, too old or taken, MareyError says so; StateError when
    tracing is on already, or no recording is open.

    With `later` a thread takes CUPTI, and GPU activity is recorded from then on; settle() waits for that. Where
    CUPTI cannot be had, tracing is then off, and the sentence is said and noted in the recording.
    """
    for name, value in (("wait", wait), ("warmup", warmup), ("active", active), ("repeat", repeat)):
        if not 0 <= value < 1 << 32:
            raise ValueError(f"{name} counts iterations, not {value!r}")
    from marey import _torch_profiler

    _torch_profiler.watch()
    _native.gpu_start(wait, warmup, active, repeat, later)


def stop(*, later: bool = False) -> None:
    """Wait for the current device, take what is there, and give CUPTI back. Without tracing, do nothing.

    With `later` a thread does so. Calls of CUDA from now on are not recorded, nor is the work that they launch; what
    was launched before is, also if it runs later. marey.stop() and the end of the process wait for it.
    """
    if later:
        _native.gpu_stop_later()
    else:
        _native.gpu_stop()


def settle() -> None:
    """Wait until what was asked for with `later` is done."""
    _native.gpu_settle()


def is_settled() -> bool:
    """Whether nothing that was asked for with `later` is under way."""
    return _native.gpu_is_settled()


def is_on() -> bool:
    """Whether tracing is on, also in a pause and in iterations that its schedule leaves out."""
    return _native.gpu_is_on()


def counts() -> dict[str, int]:
    """How much was traced in this process so far, and how much is missing.

    The keys are kernels, copies, sets, syncs, memory_operations, calls; dropped are records that CUPTI had no room for,
    incomplete is work that had not ended when it was asked for, lost is what the recording had no room for.
    """
    return _native.gpu_counts()


class paused:
    """Let another tool use CUPTI in a `with` block, and resume afterwards.

    When that tool keeps CUPTI, tracing stays off, and a RuntimeWarning says so.
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
