"""Hooks of auto mode in torch: updates by optimizers, runs of autograd, recomputation."""

from __future__ import annotations

import functools
import json
import sys
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from marey._auto import Function

_auto: Any = sys.modules["marey._auto"]
_state = _auto.state
_hint, _begin, _end, _unwind = _auto.hint, _auto.begin, _auto.end, _auto.unwind
_trains_firmly = _auto.trains_firmly
UPDATE = _auto.UPDATE

optimizers: set[weakref.ref[Any]] = set()


def hook_compiler(module: Any) -> None:
    """Start using torch.compiler.is_compiling()."""
    _auto.is_compiling = getattr(module, "is_compiling", None) or _auto.never


def updated(who: int) -> None:
    """Called when the training thread attempts an update."""
    _state.updates += 1
    _state.steps += 1
    _hint(UPDATE, who, 0.0)
    if _state.is_searching:
        _auto.part("_auto_models").search(is_update=True)
    now = _auto.perf_counter_ns()
    if now >= _allocator.next_ns:
        _allocator.next_ns = now + _PERIOD_NS
        _allocator.read()


# ---- optimizers ----


def _stepping(original: Function) -> Function:
    """Record optimizer steps as updates: the outermost one, also if it raises."""

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _auto.is_compiling() or not _counts():
            return original(self, *args, **kwargs)
        _state.stepping = True
        depth = _begin("optimizer")
        try:
            result = original(self, *args, **kwargs)
        except BaseException:
            _unwind(depth)
            _state.stepping = False
            updated(id(self))
            raise
        _end()
        _state.stepping = False
        updated(id(self))
        return result

    return step


def _counts() -> bool:
    """Whether a step counts as an update. Steps inside a backward, usually for one parameter, do not."""
    if not _trains_firmly():
        if _auto.is_of_autograd(_auto.get_ident()) and not _state.stepping:
            _state.stepped_inside = True
        return False
    if _state.stepping:
        return False
    if _state.backward:
        _state.stepped_inside = True
        return False
    return True


def _cover(kind: type) -> None:
    """Wrap the step of an optimizer class; torch.compile may have removed the wrapper."""
    step = getattr(kind, "step", None)
    if step is not None and "_marey_auto" not in getattr(step, "__dict__", {}) and hasattr(step, "__code__"):
        _auto.wrap(kind, "step", _stepping)


def _cover_all(kind: type) -> None:
    for each in kind.__subclasses__():
        if "step" in vars(each):
            _cover(each)
        _cover_all(each)


def hook_optimizers(module: ModuleType) -> None:
    """Wrap `step` of each optimizer class when its first object is created."""
    base: Any = module.Optimizer

    def patching(original: Function) -> Function:
        @functools.wraps(original)
        def patch(self: Any) -> None:
            original(self)
            _cover(type(self))
            optimizers.add(weakref.ref(self, optimizers.discard))

        return patch

    def making(original: Function) -> Function:
        @functools.wraps(original)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if not _auto.is_compiling():
                _auto.part("_auto_models").begin_search()

        return init

    # Called for each optimizer that is created or unpickled, after torch wrapped the step in its own hooks.
    _auto.wrap(base, "_patch_step_function", patching)
    _auto.wrap(base, "__init__", making)
    _cover_all(base)


def cover_again() -> None:
    """Wrap optimizers again after torch.compile unwrapped them."""
    _cover_all(sys.modules["torch.optim.optimizer"].Optimizer)


def hook_scaler(module: ModuleType) -> None:
    """Count updates that a GradScaler skips, because gradients are infinite or NaN."""

    def scaling(original: Function) -> Function:
        @functools.wraps(original)
        def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = _state.updates
            result = original(self, optimizer, *args, **kwargs)
            if _state.updates == before and not _state.stepping and not _state.backward and _trains_firmly():
                updated(id(optimizer))
            return result

        return step

    _auto.wrap(module.GradScaler, "step", scaling)


# ---- autograd ----


def _running(original: Function) -> Function:
    """Record the outermost run of autograd as the phase "backward"."""

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        if _auto.is_compiling() or _state.compiling or not _trains_firmly() or _state.backward:
            return original(*args, **kwargs)
        _state.backward = 1
        depth = _begin("backward")
        try:
            result = original(*args, **kwargs)
        except BaseException:
            _unwind(depth)
            _ran()
            raise
        _end()
        _ran()
        return result

    return run


def _ran() -> None:
    _state.backward = 0
    if _state.stepped_inside:
        _state.stepped_inside = False
        if not _state.stepping:
            updated(0)


def hook_autograd(module: ModuleType) -> None:
    """Wrap the function behind Tensor.backward(), torch.autograd.backward() and torch.autograd.grad()."""
    graph: Any = sys.modules.get("torch.autograd.graph")
    if hasattr(module, "_engine_run_backward"):
        _auto.wrap(module, "_engine_run_backward", _running)
        graph._engine_run_backward = module._engine_run_backward
    else:  # torch before 2.4
        _auto.wrap(module, "backward", _running)
        _auto.wrap(module, "grad", _running)


# ---- recomputation ----


def _recomputing(original: Function) -> Function:
    """Record recomputation by activation checkpointing, which may run on a thread of autograd."""

    @functools.wraps(original, updated=())
    def recompute(*args: Any, **kwargs: Any) -> Any:
        ident = _auto.get_ident()
        if not _state.backward or not (ident == _state.trainer or _auto.is_of_autograd(ident)):
            return original(*args, **kwargs)
        depth = _begin("recompute")
        try:
            result = original(*args, **kwargs)
        except BaseException:
            _unwind(depth)  # stopping a recomputation early also raises an exception
            raise
        _end()
        return result

    return recompute


def hook_recompute(module: ModuleType) -> None:
    """Wrap the function that torch.utils.checkpoint keeps for the backward."""

    def framing(original: Function) -> Function:
        @functools.wraps(original)
        def init(self: Any, recompute_fn: Function, *args: Any, **kwargs: Any) -> None:
            original(self, _recomputing(recompute_fn), *args, **kwargs)

        return init

    def forwarding(original: Function) -> Function:
        @functools.wraps(original)
        def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(ctx, *args, **kwargs)
            if callable(getattr(ctx, "run_function", None)):
                ctx.run_function = _recomputing(ctx.run_function)
            return result

        return forward

    _auto.wrap(getattr(module, "_CheckpointFrame", None), "__init__", framing)
    _auto.wrap(getattr(module, "CheckpointFunction", None), "forward", forwarding)


# ---- ranks ----


def hook_groups(module: ModuleType) -> None:
    """Take the rank from torch where the environment does not have it."""

    def initializing(original: Function) -> Function:
        @functools.wraps(original)
        def init(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if _auto._native.rank()[0] < 0:
                _auto._native.set_rank(module.get_rank(), module.get_world_size())
            return result

        return init

    _auto.wrap(module, "init_process_group", initializing)


# ---- the allocator ----

_PERIOD_NS = 5_000_000_000


class _Allocator:
    """Records the memory statistics of torch's caching allocator."""

    def __init__(self) -> None:
        self.next_ns = 0

    def read(self) -> None:
        cuda = sys.modules.get("torch.cuda")
        if cuda is None or not cuda.is_initialized():
            return
        try:
            _auto._native.mark("cuda.allocator", json.dumps(_statistics(cuda), separators=(",", ":")))
        except Exception:
            self.next_ns = 1 << 63  # this torch lacks these statistics


def _statistics(cuda: Any) -> dict[str, Any]:
    device = cuda.current_device()
    all_ = cuda.memory_stats_as_nested_dict(device)
    return {
        "device": device,
        "allocated": all_["allocated_bytes"]["all"]["current"],
        "allocated_peak": all_["allocated_bytes"]["all"]["peak"],
        "reserved": all_["reserved_bytes"]["all"]["current"],
        "inactive_split": all_["inactive_split_bytes"]["all"]["current"],
        "retries": all_["num_alloc_retries"],
        "ooms": all_["num_ooms"],
        "device_allocs": all_.get("num_device_alloc"),
        "device_frees": all_.get("num_device_free"),
        "total": cuda.get_device_properties(device).total_memory,
    }


_allocator = _Allocator()
