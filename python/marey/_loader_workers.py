"""Workers of torch's DataLoader, recorded with their number and the time of each batch.

A worker runs torch.utils.data._utils.worker._worker_loop, which a DataLoader looks up when it starts its workers. It is
replaced by a _Loop, which works in spawned and in forked workers. In a worker it records each fetch as a range, and the
loader of the worker; in the training process it does nothing.

`marey run` loads this file without the package around it, so it must not import the package.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    Function = Callable[..., Any]

_native = sys.modules["marey._native"]
_MODULE = "torch.utils.data._utils.worker"


class _Loop:
    """Wraps torch's worker loop."""

    def __init__(self, original: Function, rank: tuple[int, int]) -> None:
        self.original = original
        self.rank = rank  # of the training process

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _native.enabled():
            return self.original(*args, **kwargs)
        if self.rank[0] >= 0 and _native.rank()[0] < 0:
            _native.set_rank(*self.rank)
        _trace_fetches()
        try:
            return self.original(*args, **kwargs)
        finally:
            # Workers exit through os._exit, so flush here. A failed recording has been reported; training continues.
            with contextlib.suppress(_native.MareyError):
                _native.stop()

    def __reduce__(self) -> tuple[Function, tuple[tuple[int, int]]]:
        return _loop_of, (_native.rank(),)


def _loop_of(rank: tuple[int, int]) -> _Loop:
    """Restore the loop in a spawned worker, where torch's may already be replaced."""
    loop = importlib.import_module(_MODULE)._worker_loop
    return _Loop(loop.original if isinstance(loop, _Loop) else loop, rank)


def _trace_fetches() -> None:
    """Record each fetch of this process as a range. A worker does nothing else, so this is never undone."""
    fetch = importlib.import_module("torch.utils.data._utils.fetch")
    info = importlib.import_module(_MODULE).get_worker_info
    for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        kind.fetch = _traced(kind.fetch, info)


def _traced(original: Function, info: Function) -> Function:
    range_ = _native.range("fetch", category="data")
    is_registered = False

    @functools.wraps(original)
    def fetch(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_registered
        if not is_registered:
            is_registered = True
            _native.set_worker(info().id)
        with range_:
            return original(*args, **kwargs)

    return fetch


def _replace(module: ModuleType) -> None:
    """Replace torch's worker loop, if this torch has it."""
    loop = getattr(module, "_worker_loop", None)
    if loop is not None and not isinstance(loop, _Loop):
        module._worker_loop = _Loop(loop, (-1, -1))  # type: ignore[attr-defined]


def watch() -> None:
    """Record the workers of loaders from now on, or after torch is imported."""
    sys.modules["marey._imports"].when_imported(_MODULE, _replace)
