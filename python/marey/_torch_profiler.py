"""Release CUPTI to torch.profiler while it runs: CUPTI serves one tool per process.

torch's profiler (Kineto) acquires CUPTI with the first profile of a process. If that fails, none of its profiles has
GPU activity, so marey's tracing releases CUPTI first. Kineto keeps CUPTI when a profile is over, unless
TEARDOWN_CUPTI=1 is in the environment; then tracing continues.

Each profile of torch calls _prepare_profiler and _disable_profiler of torch.autograd.profiler; emit_nvtx and emit_itt
do not prepare, and use no CUPTI. Those two are wrapped when torch is imported and tracing is on.

`marey run --gpu` loads this file without the package around it, so it must not import the package.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    Function = Callable[..., Any]

_native = sys.modules["marey._native"]
_MODULE = "torch.autograd.profiler"
_RETRY_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


def _gives_back() -> bool:
    """Whether torch releases CUPTI. torch itself may set this, if releasing it would be unsafe."""
    return os.environ.get("TEARDOWN_CUPTI", "0") not in ("", "0")


def _sentence() -> str:
    if _gives_back():
        return "torch.profiler traces the GPU now, so marey does not until that profile is over"
    return (
        "torch.profiler traces the GPU now and keeps CUPTI for itself: GPU work from here on is not in this recording. "
        "Set TEARDOWN_CUPTI=1 to have it again after the profile, or read torch's trace by 'marey import'"
    )


class _Turns:
    """Who uses CUPTI. Guarded by the lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_paused = False  # by this module; remains set if torch keeps CUPTI
        self.is_profiling = False

    def torch_begins(self) -> None:
        with self.lock:
            self.is_profiling = True
            if not self.is_paused:
                self.is_paused = True
                _native.gpu_pause(_sentence())

    def torch_ends(self) -> None:
        with self.lock:
            self.is_profiling = False
            goes_on = self._try_again()
        if not goes_on and _gives_back():
            # Kineto releases it later, during one of the next CUDA calls.
            threading.Thread(target=self._retry, name="marey-gpu-resume", daemon=True).start()

    def _try_again(self) -> bool:
        if self.is_paused and not self.is_profiling:
            try:
                _native.gpu_resume()
            except _native.MareyError:
                return False
            self.is_paused = False
        return True

    def _retry(self) -> None:
        for delay in _RETRY_S:
            time.sleep(delay)
            with self.lock:
                if self._try_again():
                    return


_turns = _Turns()


# ---- around torch's functions ----


def _preparing(original: Function) -> Function:
    @functools.wraps(original)
    def prepare(*args: Any, **kwargs: Any) -> Any:
        _turns.torch_begins()
        try:
            return original(*args, **kwargs)
        except BaseException:
            _turns.torch_ends()
            raise

    return prepare


def _disabling(original: Function) -> Function:
    @functools.wraps(original)
    def disable(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            _turns.torch_ends()

    return disable


def _wrap(module: ModuleType) -> None:
    """Wrap once. Without these functions, torch has no profiler that needs CUPTI."""
    names = {"_prepare_profiler": _preparing, "_disable_profiler": _disabling}
    if all(hasattr(module, name) for name in names) and not hasattr(module, "_marey_takes_turns"):
        for name, wrapper in names.items():
            setattr(module, name, wrapper(getattr(module, name)))
        module._marey_takes_turns = True  # type: ignore[attr-defined]


def watch() -> None:
    """Share CUPTI with torch.profiler from now on, or after torch is imported."""
    sys.modules["marey._imports"].when_imported(_MODULE, _wrap)
