"""The flight recorder's hook for uncaught exceptions, which writes the kept steps."""

from __future__ import annotations

import sys

from marey import _native

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from types import TracebackType
    from typing import Any, Optional


class _Watch:
    """The previous hook; None while marey's is not installed."""

    before: Any = None


def watch() -> None:
    """Install the hook in front of sys.excepthook."""
    if _Watch.before is None:
        _Watch.before = sys.excepthook
        sys.excepthook = _hook


def unwatch() -> None:
    """Remove it, unless another hook was installed in front of it: then it only calls the previous one."""
    if _Watch.before is not None and sys.excepthook is _hook:
        sys.excepthook = _Watch.before
        _Watch.before = None


def _hook(kind: type[BaseException], value: BaseException, traceback: Optional[TracebackType]) -> None:
    try:
        if _native.TensorDumper().is_enabled:
            _native.dump_trigger(f"uncaught {kind.__name__}: {value}")
            if _native.dump_pending(0) or _native.dump_pending(1):
                _native.dump_flush()  # the current step
            _native.dump_wait()
    except Exception as error:
        print(f"marey: the flight recorder could not be written: {error}", file=sys.stderr)
    (_Watch.before or sys.__excepthook__)(kind, value, traceback)
