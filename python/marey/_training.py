"""Shared by the callbacks of trainers: their own recording, wrapping and restoring functions, batch sizes."""

from __future__ import annotations

import contextlib
import functools
import sys

from marey import _native, _start

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    import os
    from collections.abc import Callable
    from typing import Any, Optional, Union

    Path = Union[str, os.PathLike[str]]
    Function = Callable[..., Any]

_ABSENT = object()


class OwnRecording:
    """The recording that a callback starts and ends, if it has a path and no recording is open."""

    def __init__(self, path: Optional[Path]) -> None:
        self._path = path
        self._is_ours = False

    def begin(self) -> None:
        if self._path is None or _native.enabled():
            return
        _start.start(self._path)
        self._is_ours = True

    def end(self) -> None:
        if self._is_ours:
            self._is_ours = False
            _start.stop()


def tell_rank(rank: int, world_size: int) -> None:
    """Set the rank of this process, unless there is only one or it is set."""
    if world_size > 1 and _native.rank()[0] < 0:
        _native.set_rank(rank, world_size)


class Patches:
    """Methods of single objects, wrapped and later restored."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any, Any]] = []

    def wrap(self, owner: Any, name: str, wrapper: Function) -> bool:
        """Replace `owner.name(...)` by `wrapper(original, ...)`. Returns False if there is no such method."""
        original = getattr(owner, name, None)
        if original is None:
            return False

        wrapped: Any = functools.partial(wrapper, original)
        if isinstance(owner, type):  # a method must bind, which a function does and a partial does not
            wrapped = _function(wrapped)
        functools.update_wrapper(wrapped, original)
        self._undo.append((owner, name, wrapped, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, wrapped)
        return True

    def undo(self) -> None:
        """Restore all, the last one first. Later wrappers of other code remain and call marey's, which does nothing."""
        while self._undo:
            owner, name, wrapped, before = self._undo.pop()
            if vars(owner).get(name) is not wrapped:
                continue
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


def _function(call: Function) -> Function:
    def function(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return function


def batch_size(batch: Any) -> int:
    """The number of samples in a batch: the first dimension of its first tensor; 0 if unknown."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) > 0 else 0
    parts: Any = ()
    if hasattr(batch, "values"):  # a dict, or transformers' BatchEncoding
        parts = batch.values()
    elif isinstance(batch, (list, tuple)):
        parts = batch
    for part in parts:
        size = batch_size(part)
        if size > 0:
            return size
    return 0


def find_self(kind: type, is_it: Callable[[Any], bool]) -> Optional[Any]:
    """Find an object of `kind` among `self` of the calling frames, for callbacks that do not receive it."""
    frame = sys._getframe(1)
    while frame is not None:
        with contextlib.suppress(Exception):  # attribute access of foreign objects may fail
            candidate = frame.f_locals.get("self")
            if isinstance(candidate, kind) and is_it(candidate):
                return candidate
        frame = frame.f_back  # type: ignore[assignment]
    return None


class ModuleRanges:
    """A range around the forward of each module of a model, named by its path in the model."""

    def __init__(self, model: Any) -> None:
        self._handles: list[Any] = []
        for path, module in model.named_modules():
            range_ = _native.range(path or type(model).__name__, category="module")
            self._handles.append(module.register_forward_pre_hook(_calling(range_.__enter__), prepend=True))
            self._handles.append(module.register_forward_hook(_calling(range_.__exit__), always_call=True))

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


def _calling(function: Function) -> Function:
    def hook(*_: Any) -> None:
        function()

    return hook
