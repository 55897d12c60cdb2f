"""Hooks of auto mode in data loaders: their settings, and the batches that the training loop receives."""

from __future__ import annotations

import contextlib
import functools
import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, ModuleType
    from typing import Any, Optional

    from marey._auto import Function

_auto: Any = sys.modules["marey._auto"]
_state = _auto.state
_hint, _begin, _end, _unwind, _trains = _auto.hint, _auto.begin, _auto.end, _auto.unwind, _auto.trains
FETCH, BATCH = _auto.FETCH, _auto.BATCH

# Packages that create loaders on behalf of programs.
_BETWEEN = ("torch", "accelerate", "transformers", "lightning", "pytorch_lightning", "marey", "functools")


def samples_of(batch: Any, depth: int = 3) -> float:
    """Return the number of samples in a batch: the first dimension of its first tensor; 0 if unknown."""
    if isinstance(batch, (list, tuple)):
        parts: Any = batch
    elif hasattr(batch, "shape"):
        shape = batch.shape
        return float(shape[0]) if len(shape) else 0.0
    else:
        parts = batch.values() if hasattr(batch, "values") else ()
    if depth:
        for _, each in zip(range(4), parts):
            samples = samples_of(each, depth - 1)
            if samples:
                return samples
    return 0.0


# ---- batches ----


def _is_worker() -> bool:
    """Whether this process is a worker that loads data."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    return getattr(worker, "_worker_info", None) is not None


def _before(who: int) -> int:
    """Called when the loop requests a batch."""
    if _state.forward:
        _auto.part("_auto_models").close_stale()
    if _state.is_searching:
        _auto.part("_auto_models").search()
    _state.fetching = 1
    _hint(FETCH, who, 0.0)
    depth: int = _begin("data")
    return depth


def _failed(depth: int) -> None:
    """Called instead of _after() on an exception or at the end of the data."""
    _state.fetching = 0
    _unwind(depth)


def _after(who: int, batch: Any) -> None:
    _state.fetching = 0
    _state.steps += 1
    _end()
    try:
        samples = samples_of(batch)
    except Exception:  # a batch may be anything
        samples = 0.0
    _hint(BATCH, who, samples)


def _is_ours() -> bool:
    """Whether the training loop makes the request, not an outer loader, another thread or a worker."""
    return not (_auto.is_compiling() or not _trains() or _state.fetching or _state.is_worker)


def _next(original: Function) -> Function:
    @functools.wraps(original)
    def next_(self: Any) -> Any:
        if not _is_ours():
            return original(self)
        depth = _before(id(self))
        try:
            batch = original(self)
        except BaseException:
            _failed(depth)
            raise
        _after(id(self), batch)
        return batch

    return next_


def _iter(original: Function) -> Function:
    """Work before the first batch, such as starting workers, also counts as waiting for data, but not as a batch."""

    @functools.wraps(original)
    def iter_(self: Any) -> Any:
        _state.is_worker = _is_worker()
        if not _is_ours():
            return original(self)
        _state.fetching = 1
        depth = _begin("data")
        try:
            result = original(self)
        except BaseException:
            _failed(depth)
            raise
        _state.fetching = 0
        _end()
        return result

    return iter_


def _generate(original: Function) -> Function:
    """Wrap a loader that is a generator and prefetches: count the batches it yields, not those it fetches."""

    @functools.wraps(original)
    def generate(self: Any) -> Iterator[Any]:
        batches = original(self)
        while True:
            is_ours = _is_ours()
            depth = _before(id(batches)) if is_ours else 0
            try:
                batch = next(batches)
            except StopIteration:
                if is_ours:
                    _failed(depth)
                return
            except BaseException:
                if is_ours:
                    _failed(depth)
                raise
            if is_ours:
                _after(id(batches), batch)
            yield batch

    return generate


# ---- loaders ----


def _constructing(original: Function) -> Function:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        with contextlib.suppress(Exception):
            if not _is_worker():
                _auto._native.mark("DataLoader", json.dumps(_description(self), separators=(",", ":"), default=str))

    return init


def _description(loader: Any) -> dict[str, Any]:
    collate = getattr(loader, "collate_fn", None)
    code = _code_of(collate)
    frame = _caller()
    return {
        "num_workers": loader.num_workers,
        "prefetch_factor": loader.prefetch_factor,
        "persistent_workers": loader.persistent_workers,
        "pin_memory": bool(loader.pin_memory),
        "batch_size": loader.batch_size,
        "dataset": _name_of(type(loader.dataset)),
        "collate": _name_of(collate),
        "collate_at": f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None,
        "at": f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else None,
    }


def _name_of(value: Any) -> str:
    value = getattr(value, "func", value)  # functools.partial
    if not hasattr(value, "__qualname__"):
        value = type(value)
    return f"{value.__module__}.{value.__qualname__}"


def _code_of(function: Any) -> Any:
    function = getattr(function, "func", function)
    if not hasattr(function, "__code__") and not hasattr(function, "__func__"):
        function = vars(type(function)).get("__call__")  # a collating object
    return getattr(function, "__code__", None)


def _caller() -> Optional[FrameType]:
    """Find the creator of the loader: the innermost frame outside of frameworks, else the innermost one."""
    frame: Any = sys._getframe(1)
    first = None
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package != "marey" and first is None:
            first = frame
        if package not in _BETWEEN:
            found: FrameType = frame
            return found
        frame = frame.f_back
    return first


def hook_loaders(module: ModuleType) -> None:
    """Wrap torch's loaders."""
    _auto.wrap(module.DataLoader, "__init__", _constructing)
    _auto.wrap(module.DataLoader, "__iter__", _iter)
    _auto.wrap(module._BaseDataLoaderIter, "__next__", _next)


def hook_accelerate(module: ModuleType) -> None:
    """Wrap accelerate's loaders, which prefetch one batch."""
    for name in ("DataLoaderShard", "DataLoaderDispatcher", "SkipDataLoader"):
        _auto.wrap(getattr(module, name, None), "__iter__", _generate)


def hook_lightning(module: ModuleType) -> None:
    """Wrap Lightning's fetchers, which prefetch if a loader has no length."""
    for name in ("_PrefetchDataFetcher", "_DataLoaderIterDataFetcher"):
        kind = getattr(module, name, None)
        _auto.wrap(kind, "__iter__", _iter)
    _auto.wrap(getattr(module, "_PrefetchDataFetcher", None), "__next__", _next)
