"""Hooks of auto mode in data loaders: their settings, and the batches that the training loop receives."""

from __future__ import annotations

import collections
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


# ---- the loader of a batch, and its number of samples ----

_UNKNOWN = (0, 0.0)
_numbers: dict[str, int] = {}  # of loaders, by their description


class _Inner:
    """The loader that delivered a batch last, by its number, and the number of samples in the batch."""

    source = _UNKNOWN


def _taken(iterator: Any) -> None:
    """Note what a loader has delivered, unless it is one of those that wrap torch's."""
    sizes = getattr(iterator, "_marey_sizes", None)
    if sizes is not None:
        samples = float(sizes.popleft()) if sizes else 0.0
        if _auto.get_ident() == _state.trainer:
            _Inner.source = (iterator._marey_loader, samples)


def _starting(original: Function) -> Function:
    @functools.wraps(original)
    def init(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        self._marey_loader = getattr(loader, "_marey_loader", 0)
        self._marey_sizes = collections.deque()
        original(self, loader, *args, **kwargs)

    return init


def _resetting(original: Function) -> Function:
    @functools.wraps(original)
    def reset(self: Any, *args: Any, **kwargs: Any) -> None:
        getattr(self, "_marey_sizes", collections.deque()).clear()  # of an epoch that the program left early
        original(self, *args, **kwargs)

    return reset


def _indexing(original: Function) -> Function:
    """Note the length of each list of indices: batches arrive in this order, and collate functions return anything."""

    @functools.wraps(original)
    def next_index(self: Any) -> Any:
        index = original(self)
        sizes = getattr(self, "_marey_sizes", None)
        if sizes is not None:
            sizes.append(len(index) if isinstance(index, (list, tuple)) else 0)
        return index

    return next_index


# ---- batches ----


def _is_worker() -> bool:
    """Whether this process is a worker that loads data."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    return getattr(worker, "_worker_info", None) is not None


def _before(loader: int) -> int:
    """Called when the loop requests a batch."""
    if _state.forward:
        _auto.part("_auto_models").close_stale()
    if _state.is_searching:
        _auto.part("_auto_models").search()
    _state.fetching = 1
    _Inner.source = _UNKNOWN
    _hint(FETCH, loader, 0.0)
    depth: int = _begin("data")
    return depth


def _failed(depth: int) -> None:
    """Called instead of _after() on an exception or at the end of the data."""
    _state.fetching = 0
    _unwind(depth)


def _after(source: tuple[int, float], batch: Any) -> tuple[int, float]:
    """Called with the source of the batch before. Loaders that fetch ahead may deliver a batch without fetching one."""
    _state.fetching = 0
    _state.steps += 1
    _end()
    source = _Inner.source if _Inner.source is not _UNKNOWN else source
    loader, samples = source
    try:
        samples = samples or samples_of(batch)
    except Exception:  # a batch may be anything
        samples = 0.0
    _hint(BATCH, loader, samples)
    return source


def _is_ours() -> bool:
    """Whether the training loop makes the request, not an outer loader, another thread or a worker."""
    return not (_auto.is_compiling() or not _trains() or _state.fetching or _state.is_worker)


def _next(original: Function) -> Function:
    @functools.wraps(original)
    def next_(self: Any) -> Any:
        if not _is_ours():
            batch = original(self)
            _taken(self)
            return batch
        source = getattr(self, "_marey_source", _UNKNOWN)
        depth = _before(getattr(self, "_marey_loader", source[0]))
        try:
            batch = original(self)
        except BaseException:
            _failed(depth)
            raise
        _taken(self)
        self._marey_source = _after(source, batch)
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
        source = (getattr(self, "_marey_loader", 0), 0.0)
        while True:
            is_ours = _is_ours()
            depth = _before(source[0]) if is_ours else 0
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
                source = _after(source, batch)
            yield batch

    return generate


# ---- loaders ----


def _constructing(original: Function) -> Function:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        with contextlib.suppress(Exception):
            if not _is_worker():
                text = json.dumps(_description(self), separators=(",", ":"), default=str)
                number = _numbers.setdefault(text, len(_numbers) + 1)
                vars(self)["_marey_loader"] = number
                _auto._native.mark("DataLoader", f'{{"loader":{number},{text[1:]}')

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
    _auto.wrap(module._BaseDataLoaderIter, "__init__", _starting)
    _auto.wrap(module._BaseDataLoaderIter, "_reset", _resetting)
    _auto.wrap(module._BaseDataLoaderIter, "_next_index", _indexing)
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
