"""Hooks of auto mode in models: the outermost call of a model is the phase "forward".

Modules are registered when they are created. When an optimizer exists, the top-level modules that contain its
parameters get hooks; a global hook would slow down every call of every module. If a module is never called, because it
only holds others, its children get hooks instead.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any, Optional

    from marey._auto import Function

_auto: Any = sys.modules["marey._auto"]
_state = _auto.state
_torch = sys.modules["torch"]
_get_ident, _clock = _auto.get_ident, _auto.perf_counter_ns

_SEARCHES = 6  # after an optimizer was created
_FETCHES = 2  # at which models are searched if there is no optimizer
_MOST_HOOKS = 32
_EAGER_SEARCHES = 4  # when optimizers are created; a program with thousands of them searches in its first step instead
_TRIAL_CALLS = 64  # before a module is judged
_SHORT_NS = 400_000  # hooks cost too much for shorter calls if a step has many of them

# No WeakSet: its callbacks are in Python, so torch.compile would compile them.
_modules: set[weakref.ref[Any]] = set()
_hooked: dict[int, _Hook] = {}

# Wrappers of a model that may already have hooks.
_WRAPPERS = ("OptimizedModule", "DistributedDataParallel", "FullyShardedDataParallel", "DataParallel")


class _Progress:
    """Progress of the search for the trained modules."""

    def __init__(self) -> None:
        self.searches = 0
        self.eager_searches = 0
        self.is_compiling_used = False


_progress = _Progress()


# ---- calls ----


class _Hook:
    """The hooks before and after the calls of one module."""

    def __init__(self, module: Any) -> None:
        self.module = weakref.ref(module)
        self.calls = 0
        self.duration_ns = 0
        self.begun_ns = 0
        self.steps = _state.steps
        self.handles = (
            module.register_forward_pre_hook(_Before(self), prepend=True),
            module.register_forward_hook(_After(self), always_call=True),
        )

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def judge(self) -> None:
        """Remove the hooks if they cost too much: many short calls in each step."""
        n_steps = max(1, _state.steps - self.steps)
        if self.calls > 4 * n_steps and self.duration_ns < self.calls * _SHORT_NS:
            self.remove()


class _Callable:
    """A hook. A pickled or copied module gets a hook that does nothing, and needs no marey to load it."""

    def __init__(self, hook: _Hook) -> None:
        self.hook = hook
        self.__name__ = "marey_hook"

    def __reduce__(self) -> tuple[Function, tuple[Any, str]]:
        return getattr, (contextlib.nullcontext(), "__exit__")


class _Before(_Callable):
    def __call__(self, module: Any, inputs: Any) -> None:
        if _auto.is_compiling() or not _auto.trains():
            return
        hook = self.hook
        if _state.forward:
            if _state.forward[-1][0] is not hook:
                return  # inside another module
            close_stale(1)
            if _state.forward:
                return  # recursive
        hook.calls += 1
        if _state.backward:
            name = "recompute"
        elif module.training:
            name = "forward"  # also without gradients: rollouts of reinforcement learning, the fixed part of a GAN
        else:
            name = "evaluate"
        _state.forward.append((hook, _auto.begin(name)))
        hook.begun_ns = _clock()


class _After(_Callable):
    def __call__(self, module: Any, inputs: Any, output: Any) -> None:
        if _auto.is_compiling() or not _state.forward or _get_ident() != _state.trainer:
            return
        hook = self.hook
        if _state.forward[-1][0] is not hook:
            return
        hook.duration_ns += _clock() - hook.begun_ns
        _state.forward.pop()
        _auto.end()
        if hook.calls == _TRIAL_CALLS:
            hook.judge()


def close_stale(n_own: int = 0) -> None:
    """Close calls that ended without their hook, as by KeyboardInterrupt; `n_own` frames of the module are new."""
    hook = _state.forward[0][0]
    frame: Any = sys._getframe(1)
    calls = 0
    while frame is not None:
        if frame.f_code.co_name == "_call_impl" and frame.f_locals.get("self") is hook.module():
            calls += 1
        frame = frame.f_back
    if calls <= n_own:
        _auto.unwind(_state.forward[0][1])
        _state.forward.clear()


# ---- the search ----


def begin_search() -> None:
    """Search now, when an optimizer or a model wrapper is created, and in the next steps."""
    _state.is_searching = True
    _progress.searches = 0
    _progress.eager_searches += 1
    if _progress.eager_searches <= _EAGER_SEARCHES:
        _search(False, True)


def search(is_update: bool = False) -> None:
    """Hook the trained modules; without an optimizer, all top-level modules."""
    _progress.searches += 1
    if _progress.searches >= _SEARCHES:
        _state.is_searching = False
    if _progress.searches >= _FETCHES or len(_optimizers()):
        _search(is_update, not _progress.is_compiling_used)


def _optimizers() -> Any:
    hooks = sys.modules.get("marey._auto_torch")
    return hooks.optimizers if hooks is not None else ()


def _search(is_update: bool, is_early: bool) -> None:
    with contextlib.suppress(Exception):
        optimizers = [optimizer for optimizer in [each() for each in list(_optimizers())] if optimizer is not None]
        for root in _roots(_parameters(optimizers)):
            _hook(root, is_update, is_early)


def prepare_for_compiling() -> None:
    """Note that torch.compile is used. It treats torch's own modules differently if they have hooks."""
    _progress.is_compiling_used = True
    for hook in _hooked.values():
        if _is_of_torch(hook.module()):
            hook.remove()


def _parameters(optimizers: list[Any]) -> set[int]:
    return {id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}


def _roots(parameters: set[int]) -> Iterable[Any]:
    """Find the top-level modules with one of the parameters, or all top-level modules if there are none."""
    modules = [module for module in [each() for each in list(_modules)] if module is not None]
    parents: dict[int, list[Any]] = {}
    for module in modules:
        for child in module._modules.values():
            if child is not None:
                parents.setdefault(id(child), []).append(module)
    turn = [
        module
        for module in modules
        if module._parameters and (not parameters or any(id(p) in parameters for p in module._parameters.values()))
    ]
    seen: dict[int, Any] = {}
    roots = []
    while turn:
        module = turn.pop()
        if id(module) in seen:
            continue
        seen[id(module)] = module
        above = parents.get(id(module))
        if above:
            turn.extend(above)
        else:
            roots.append(module)
    return roots


def _hook(module: Any, is_update: bool, is_early: bool, depth: int = 3) -> None:
    """Hook a module, or its children if it cannot have hooks or was not called for a step.

    Hooking a module that was already called in compiled code recompiles it; `is_early` is false if that is possible.
    """
    hook = _hook_of(module)
    if hook is None and not _is_refused(module):
        if len(_hooked) < _MOST_HOOKS and (is_early or type(module).__name__ == "OptimizedModule"):
            _hooked[id(module)] = _Hook(module)
    elif depth and (hook is None or not (hook.calls or _progress.is_compiling_used or not is_update)):
        for child in module._modules.values():
            if child is not None:
                _hook(child, is_update, is_early, depth - 1)


def _hook_of(module: Any) -> Optional[_Hook]:
    hook = _hooked.get(id(module))
    if hook is not None and hook.module() is not module:  # of a deleted module
        del _hooked[id(module)]
        return None
    return hook


def _is_of_torch(module: Any) -> bool:
    return type(module).__module__.startswith(("torch.nn.", "torch.ao."))


def _is_refused(module: Any) -> bool:
    """Whether hooks would change the behavior of a module: some take a faster path without hooks."""
    return (
        type(module).__name__ in ("TransformerEncoderLayer", "MultiheadAttention")
        or hasattr(module, "_c")  # TorchScript
        or (_progress.is_compiling_used and _is_of_torch(module))
    )


# ---- modules ----


def _note(module: Any) -> None:
    with contextlib.suppress(TypeError):  # not hashable
        _modules.add(weakref.ref(module, _modules.discard))
    if type(module).__name__ in _WRAPPERS:
        begin_search()


def hook_modules(module: ModuleType) -> None:
    """Register existing modules, and each one that is created or unpickled later."""
    kind: Any = module.Module

    def noting(original: Function) -> Function:
        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if not _auto.is_compiling():
                _note(self)
            return result

        return call

    _auto.wrap(kind, "__init__", noting)
    _auto.wrap(kind, "__setstate__", noting)
    if "torch.nn.modules" in sys.modules and hasattr(sys.modules.get("torch.nn"), "Linear"):
        for each in gc.get_objects():
            if issubclass(type(each), kind) and "_modules" in each.__dict__:
                _note(each)


def hook_scripting(module: ModuleType) -> None:
    """Remove our hooks while TorchScript compiles a module, because it compiles hooks, too."""

    def stubbing(original: Function) -> Function:
        @functools.wraps(original)
        def get_hook_stubs(nn_module: Any) -> Any:
            hook = _hook_of(nn_module)
            if hook is None:
                return original(nn_module)
            hook.remove()
            try:
                return original(nn_module)
            finally:
                with contextlib.suppress(Exception):
                    _hooked[id(nn_module)] = _Hook(nn_module)

        return get_hook_stubs

    _auto.wrap(module, "get_hook_stubs", stubbing)
