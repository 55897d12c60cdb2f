"""Training steps and phases of an unmodified program: the hooks of auto mode.

The hooks are installed when torch or a trainer is imported; a program without torch has only the one for garbage
collections. They send hints, from which steps are derived: an optimizer update, the loop requests a batch, a batch
arrives. They also enter and leave the phases of a step.

A hook changes no result, raises no exceptions, and does nothing while torch.compile traces it. Phases and hints are
recorded for the training thread only.

`marey run` loads this file and its parts, _auto_*.py, without the package around them, so they must not import it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
from _thread import get_ident
from time import perf_counter_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any

    Function = Callable[..., Any]

_native = sys.modules["marey._native"]

UPDATE, FETCH, BATCH = 1, 2, 3
_SLOW_COLLECTION_NS = 100_000

hint: Function = _native.step_hint
enter: Function = _native.phase_enter
leave: Function = _native.phase_leave
depth_of_phases: Function = _native.phase_depth


class State:
    """The state of the training thread. Other threads only read it."""

    __slots__ = (
        *("backward", "compiling", "fetching", "forward", "is_firm", "stepped_inside", "stepping", "trainer"),
        *("is_searching", "is_worker", "is_watching", "steps", "updates"),
    )

    def __init__(self) -> None:
        """Start before any training."""
        self.is_watching = False
        self.is_searching = True  # for the trained modules
        self.updates = 0  # attempted
        self.steps = 0  # updates and batches
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.trainer = 0  # the training thread; 0: unknown
        self.is_firm = False  # identified by training; otherwise only by loading data
        self.backward = 0  # nested runs of autograd
        self.compiling = 0
        self.fetching = 0
        self.is_worker = False  # a worker process that loads data
        self.forward: list[Any] = []  # model calls in progress
        self.stepping = False
        self.stepped_inside = False  # an optimizer stepped inside the current backward


state = State()


def never() -> bool:
    """Replace torch.compiler.is_compiling() until torch is imported."""
    return False


# torch.compile evaluates this while tracing, so the hooks do not become part of compiled code.
is_compiling: Function = never


# ---- the training thread ----


def trains() -> bool:
    """Whether this is the training thread; until that is known, the first thread that loads data."""
    ident = get_ident()
    return ident == state.trainer or _claim(ident, False)


def trains_firmly() -> bool:
    """Whether this is the training thread, called where that is certain: in an optimizer or a backward."""
    ident = get_ident()
    return (ident == state.trainer and state.is_firm) or _claim(ident, True)


def _claim(ident: int, is_firm: bool) -> bool:
    if ident != state.trainer:
        if is_of_autograd(ident):
            return False
        is_taken = state.trainer in sys.modules["threading"]._active if state.trainer else False
        if is_taken and (state.is_firm or not is_firm):
            return False
        state.clear()
        state.trainer = ident
    state.is_firm = state.is_firm or is_firm
    return True


def is_of_autograd(ident: int) -> bool:
    """Whether this is one of autograd's device threads, which run hooks while the training thread waits in backward."""
    if not state.backward or ident == state.trainer:
        return False
    threading = sys.modules["threading"]
    thread = threading._active.get(ident)
    return thread is None or isinstance(thread, threading._DummyThread)


# ---- phases ----


def begin(name: str) -> int:
    """Enter a phase; returns the depth to unwind to if an exception ends it."""
    try:
        depth: int = depth_of_phases()
        enter(name)
    except Exception:
        return 0  # cannot happen: the phase names are set, and memory is available
    return depth


def end() -> None:
    """Leave the innermost phase."""
    try:
        leave()
    except Exception:
        return


def unwind(depth: int) -> None:
    """Leave all phases that an exception left open."""
    with contextlib.suppress(Exception):
        while depth_of_phases() > depth:
            leave()


def phased(original: Function, name: str) -> Function:
    """Record calls of a function as a phase."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not trains():
            return original(*args, **kwargs)
        depth = begin(name)
        try:
            result = original(*args, **kwargs)
        except BaseException:
            unwind(depth)
            raise
        end()
        return result

    return call


def wrap(owner: Any, name: str, wrapper: Function, *args: Any) -> None:
    """Replace `owner.name` by wrapper(original, ...), once; do nothing if it does not exist."""
    original = getattr(owner, name, None)
    if original is None or "_marey_auto" in getattr(original, "__dict__", {}):
        return
    replacement = wrapper(original, *args)
    replacement._marey_auto = True
    is_static = isinstance(owner, type) and isinstance(vars(owner).get(name), staticmethod)
    setattr(owner, name, staticmethod(replacement) if is_static else replacement)


# ---- garbage collections ----

_collecting: dict[int, int] = {}  # start of the collection, by thread


def _on_collection(phase: str, info: dict[str, int]) -> None:
    ident = get_ident()
    if phase == "start":
        _collecting[ident] = perf_counter_ns()
        return
    begun = _collecting.pop(ident, 0)
    pause = perf_counter_ns() - begun
    if begun and pause >= _SLOW_COLLECTION_NS:
        with contextlib.suppress(Exception):
            _native.mark("gc", f'{{"generation":{info["generation"]},"pause_ns":{pause}}}')


# ---- where hooks are installed ----

# Foreign module, our file with its hooks, and the function that installs them.
_HOOKS = (
    ("torch.compiler", "_auto_torch", "hook_compiler"),
    ("torch.optim.optimizer", "_auto_torch", "hook_optimizers"),
    ("torch.amp.grad_scaler", "_auto_torch", "hook_scaler"),
    ("torch.autograd", "_auto_torch", "hook_autograd"),
    ("torch.utils.checkpoint", "_auto_torch", "hook_recompute"),
    ("torch.distributed.distributed_c10d", "_auto_torch", "hook_groups"),
    ("torch._dynamo.variables.optimizer", "_auto_compile", "hook_traced_optimizers"),
    ("torch._dynamo.output_graph", "_auto_compile", "hook_graphs"),
    ("torch._dynamo.eval_frame", "_auto_compile", "hook_frames"),
    ("torch._dynamo.callback", "_auto_compile", "hook_compilations"),
    ("torch.nn.modules.module", "_auto_models", "hook_modules"),
    ("torch.jit._recursive", "_auto_models", "hook_scripting"),
    ("torch.utils.data.dataloader", "_auto_loaders", "hook_loaders"),
    ("accelerate.data_loader", "_auto_loaders", "hook_accelerate"),
    ("lightning.pytorch.loops.fetchers", "_auto_loaders", "hook_lightning"),
    ("pytorch_lightning.loops.fetchers", "_auto_loaders", "hook_lightning"),
)

# Functions whose calls are phases; `*` is any text.
_PHASES = (
    ("torch.serialization", "save", "checkpoint"),
    ("torch.distributed.checkpoint.state_dict_saver", "save", "checkpoint"),
    ("safetensors.torch", "save*", "checkpoint"),
    ("transformers.trainer", "Trainer._save_checkpoint", "checkpoint"),
    ("transformers.trainer", "Trainer.evaluation_loop", "evaluate"),
    ("lightning.pytorch.loops.evaluation_loop", "_EvaluationLoop.run", "evaluate"),
    ("pytorch_lightning.loops.evaluation_loop", "_EvaluationLoop.run", "evaluate"),
    ("lightning.pytorch.strategies.strategy", "Strategy.training_step", "forward"),
    ("pytorch_lightning.strategies.strategy", "Strategy.training_step", "forward"),
    ("torch.utils.tensorboard.writer", "SummaryWriter.add_*", "logging"),
    ("tensorboardX.writer", "SummaryWriter.add_*", "logging"),
    ("wandb.sdk.wandb_run", "Run.log", "logging"),
    ("mlflow.tracking.fluent", "log_*", "logging"),
    ("mlflow.tracking.client", "MlflowClient.log_*", "logging"),
)


def part(name: str) -> ModuleType:
    """Load another file of this folder, when the first torch module is imported."""
    whole = f"marey.{name}"
    if whole not in sys.modules:
        from importlib import _bootstrap
        from importlib.machinery import PathFinder

        spec: Any = PathFinder.find_spec(whole, [os.path.dirname(__file__)])
        module = sys.modules[whole] = _bootstrap.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[whole]
            raise
    return sys.modules[whole]


def _hook(where: str, function: str, module: ModuleType) -> None:
    """Install the hooks of an imported module. If they do not fit this torch, leave it unchanged."""
    with contextlib.suppress(Exception):
        getattr(part(where), function)(module)
    with contextlib.suppress(Exception):
        _skip_frames()


def _hook_phases(attribute: str, name: str, module: ModuleType) -> None:
    with contextlib.suppress(Exception):
        owner: Any = module
        path, _, pattern = attribute.rpartition(".")
        owner = getattr(module, path) if path else module
        start, star, _ = pattern.partition("*")
        for each in [each for each in vars(owner) if each.startswith(start)] if star else [pattern]:
            if callable(getattr(owner, each, None)) and not isinstance(getattr(owner, each), type):
                wrap(owner, each, phased, name)


# ---- torch.compile ----

_skipped: set[CodeType] = set()


def _skip_frames() -> None:
    """Make torch.compile skip marey's frames, which run uncompiled. Functions they call are compiled as before."""
    torch_frames = sys.modules.get("torch._dynamo.eval_frame")
    if not hasattr(torch_frames, "skip_code"):
        return
    for name, module in list(sys.modules.items()):
        if name == "marey._auto" or name.startswith("marey._auto_"):
            for value in list(vars(module).values()):
                for function in [*vars(value).values(), value] if isinstance(value, type) else [value]:
                    code = getattr(function, "__code__", None)
                    if code is not None and code.co_filename == module.__file__:
                        _skip_code(code, torch_frames)


def _skip_code(code: CodeType, torch_frames: Any) -> None:
    if code in _skipped:
        return
    _skipped.add(code)
    if "original" in code.co_freevars or not hasattr(torch_frames, "FrameExecStrategy"):
        torch_frames.skip_code(code)
    else:  # and everything it calls
        skip = torch_frames.FrameAction.SKIP
        torch_frames.set_code_exec_strategy(code, torch_frames.FrameExecStrategy(skip, skip))
    for inner in code.co_consts:
        if isinstance(inner, type(code)):
            _skip_code(inner, torch_frames)


# ---- start and end ----


def watch() -> None:
    """Install hooks in modules already imported, and in others on import."""
    if state.is_watching:
        return
    state.is_watching = True
    part("_phase_names")
    gc.callbacks.append(_on_collection)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)
    when_imported = sys.modules["marey._imports"].when_imported
    for module, where, function in _HOOKS:
        when_imported(module, functools.partial(_hook, where, function))
    for module, attribute, name in _PHASES:
        when_imported(module, functools.partial(_hook_phases, attribute, name))


def _after_fork() -> None:
    """Reset in a forked child, which has not trained yet."""
    state.clear()
    unwind(0)
