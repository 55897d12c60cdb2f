"""The flight recorder's last chance: an exception that nobody catches writes what it keeps."""

from __future__ import annotations

import sys

from marey import _native

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from types import TracebackType
    from typing import Any, Optional


class _Watch:
    """The hook that was there before ours; None while ours is not in place."""

    before: Any = None


def watch() -> None:
    """Put our hook in front of sys.excepthook."""
    if _Watch.before is None:
        _Watch.before = sys.excepthook
        sys.excepthook = _hook


def unwatch() -> None:
    """Take it away, unless another one has been put in front of it: then it only passes on."""
    if _Watch.before is not None and sys.excepthook is _hook:
        sys.excepthook = _Watch.before
        _Watch.before = None


def _hook(kind: type[BaseException], value: BaseException, traceback: Optional[TracebackType]) -> None:
    try:
        if _native.TensorDumper().is_enabled:
            _native.dump_trigger(f"uncaught {kind.__name__}: {value}")
            if _native.dump_pending(0) or _native.dump_pending(1):
                _native.dump_flush()  # the step that it happened in
            _native.dump_wait()
    except Exception as error:
        print(f"marey: the flight recorder could not be written: {error}", file=sys.stderr)
    (_Watch.before or sys.__excepthook__)(kind, value, traceback)
