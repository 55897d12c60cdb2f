"""Hooks that add the values of a torch model to the dump as they are computed: TensorDumper.dump_module().

Values come in the order of execution, with the phase they belong to: "forward", "backward" or "optimizer". The hooks
only read and change neither the graph nor numbers. Gradients are those of the normal backward pass.
"""

from __future__ import annotations

import sys

from marey import _native

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Any, Optional, Union

    from marey._dump_state import Type

    Parts = tuple[Union[str, int], ...]


class DumpHandle:
    """Installed hooks; remove() removes them, and so does leaving a `with` block."""

    def __init__(self) -> None:
        """Hold no hooks yet."""
        self._handles: list[Any] = []

    def remove(self) -> None:
        """Remove the hooks. A second call does nothing."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __enter__(self) -> DumpHandle:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.remove()

    def _keep(self, handle: Any) -> None:
        self._handles.append(handle)


def dump_module(
    model: Any,
    patterns: Union[str, Iterable[str]] = "*",
    *,
    inputs: bool = True,
    outputs: bool = True,
    params: bool = False,
    grads: bool = False,
    prefix: str = "",
    optimizer: Any = None,
    dump_type: Optional[Type] = None,
) -> DumpHandle:
    """Put hooks on the modules whose names match; the model itself is called "model"."""
    handle = DumpHandle()
    for name, module in _matching(model, patterns):
        watched = _Watched((*_split(prefix), *map(_apart, _split(name or "model"))), module, dump_type)
        watched.inputs, watched.outputs, watched.params, watched.grads = inputs, outputs, params, grads
        watched.hook(handle)
    if optimizer is not None:
        watched_optimizer = _Optimizer(_split(prefix), optimizer, dict(_parameter_names(model, patterns)), dump_type)
        watched_optimizer.params, watched_optimizer.grads = params, grads
        watched_optimizer.hook(handle)
    if not handle._handles:
        known = ", ".join(name for name, _ in model.named_modules() if name)
        raise ValueError(f"no module matches {patterns!r}; there are {known or 'none below the model'}")
    return handle


def dump_optimizer(
    optimizer: Any,
    model: Any = None,
    patterns: Union[str, Iterable[str]] = "*",
    *,
    params: bool = True,
    grads: bool = True,
    state: bool = False,
    prefix: str = "optimizer",
    dump_type: Optional[Type] = None,
) -> DumpHandle:
    """Put hooks on an optimizer. Parameters have their names in `model`, or else their positions."""
    names = dict(_parameter_names(model, patterns)) if model is not None else None
    watched = _Optimizer(_split(prefix), optimizer, names, dump_type)
    watched.params, watched.grads, watched.state = params, grads, state
    handle = DumpHandle()
    watched.hook(handle)
    return handle


def _split(name: str) -> tuple[str, ...]:
    return tuple(name.split(".")) if name else ()


# Reserved names below a module's path; a submodule with such a name gets an underscore: "attention.out_.in".
_OWN = frozenset(("in", "out", "param", "grad", "grad_in", "grad_out"))


def _apart(name: str) -> str:
    return f"{name}_" if name in _OWN else name


def _matching(model: Any, patterns: Union[str, Iterable[str]]) -> Iterator[tuple[str, Any]]:
    for name, module in model.named_modules():
        if _matches(name or "model", patterns):
            yield name, module


def _matches(name: str, patterns: Union[str, Iterable[str]]) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, pattern) for pattern in ((patterns,) if isinstance(patterns, str) else patterns))


def _parameter_names(model: Any, patterns: Union[str, Iterable[str]]) -> Iterator[tuple[int, str]]:
    """Names of the parameters of matching modules, by id()."""
    for name, module in _matching(model, patterns):
        for own, parameter in module.named_parameters(recurse=False):
            yield id(parameter), f"{name}.{own}" if name else own


def _in_backward() -> bool:
    """Whether autograd is running: a forward pass inside it is a recomputation."""
    torch = sys.modules["torch"]
    return bool(torch._C._current_graph_task_id() != -1)


def _is_wanted() -> bool:
    from marey import _dump_state

    return _native.TensorDumper().is_enabled and _dump_state.is_wanted()


def _add(tree: int, parts: Parts, value: Any, dump_type: Optional[Type], phase: str) -> None:
    from marey import _dump_walk

    _dump_walk.add_from_hook(tree, parts, value, dump_type, phase)


class _Watched:
    """A module with hooks. A path is added once per step; further calls get an additional level, such as call1."""

    inputs = outputs = params = grads = False

    def __init__(self, path: Parts, module: Any, dump_type: Optional[Type]) -> None:
        self.path = path
        self.module = module
        self.dump_type = dump_type
        self.added = _Once()

    def hook(self, handle: DumpHandle) -> None:
        if self.inputs or self.grads or self.params:
            handle._keep(self.module.register_forward_pre_hook(self.before, with_kwargs=True))
        if self.outputs or self.grads:
            handle._keep(self.module.register_forward_hook(self.after))
        if self.grads:
            for name, parameter in self.module.named_parameters(recurse=False):
                if parameter.requires_grad:
                    handle._keep(self.hook_parameter(name, parameter))

    def hook_parameter(self, name: str, parameter: Any) -> Any:
        def accumulated(parameter: Any) -> None:
            if parameter.grad is not None:
                self.add_gradient(("grad", name), parameter.grad)

        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            return parameter.register_post_accumulate_grad_hook(accumulated)
        return parameter.register_hook(lambda gradient: self.add_gradient(("grad", name), gradient))

    def before(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not _is_wanted():
            return
        if self.params:
            for name, parameter in module.named_parameters(recurse=False):
                if self.added.is_first(("param", name)):
                    self.add(("param", name), parameter)
        values: Any = list(args) if len(args) != 1 or kwargs else args[0]
        given = {"args": values, **kwargs} if kwargs else values
        if self.inputs:
            self.add(("in",), given)
        if self.grads:
            self.hook_gradients("grad_in", given)

    def after(self, module: Any, args: tuple[Any, ...], output: Any) -> None:
        if not _is_wanted():
            return
        if self.outputs:
            self.add(("out",), output)
        if self.grads:
            self.hook_gradients("grad_out", output)

    def add(self, below: tuple[str, ...], value: Any) -> None:
        phase = "backward" if _in_backward() else "forward"
        _add(0, self.added.path(self.path, below), value, self.dump_type, phase)

    def add_gradient(self, below: tuple[str, ...], value: Any) -> None:
        if _is_wanted():
            _add(1, self.added.path(self.path, below), value, self.dump_type, "backward")

    def hook_gradients(self, what: str, values: Any) -> None:
        """Put gradient hooks on the tensors in the value; they disappear with their tensors."""
        for place, tensor in _tensors(values, ()):
            if tensor.requires_grad:
                below = (what, *map(str, place))
                tensor.register_hook(lambda gradient, below=below: self.add_gradient(below, gradient))


def _tensors(values: Any, place: Parts) -> Iterator[tuple[Parts, Any]]:
    torch = sys.modules["torch"]
    if isinstance(values, torch.Tensor):
        yield place, values
    elif isinstance(values, (list, tuple)):
        for i, value in enumerate(values):
            yield from _tensors(value, (*place, i))
    elif isinstance(values, dict):
        for key, value in values.items():
            yield from _tensors(value, (*place, str(key)))


class _Once:
    """How often each path was added in the current step."""

    def __init__(self) -> None:
        self.step = -1
        self.counts: dict[tuple[str, ...], int] = {}

    def count(self, below: tuple[str, ...]) -> int:
        step = _native.TensorDumper().dump_count
        if step != self.step:
            self.step = step
            self.counts = {}
        number = self.counts.get(below, 0)
        self.counts[below] = number + 1
        return number

    def is_first(self, below: tuple[str, ...]) -> bool:
        return self.count(("first", *below)) == 0

    def path(self, path: Parts, below: tuple[str, ...]) -> Parts:
        """Return layer0.out, and for the second call in a step layer0.call1.out."""
        number = self.count(below)
        return (*path, *below) if number == 0 else (*path, f"call{number}", *below)


class _Optimizer:
    """An optimizer with hooks: gradients before its step, parameters and state after it."""

    params = grads = state = False

    def __init__(self, path: Parts, optimizer: Any, names: Optional[dict[int, str]], dump_type: Optional[Type]) -> None:
        self.path = path or ("optimizer",)
        self.optimizer = optimizer
        self.names = names
        self.dump_type = dump_type
        self.added = _Once()

    def hook(self, handle: DumpHandle) -> None:
        handle._keep(self.optimizer.register_step_pre_hook(self.before))
        handle._keep(self.optimizer.register_step_post_hook(self.after))

    def before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.grads and _is_wanted():
            for name, parameter in self.parameters():
                if parameter.grad is not None:
                    self.add(1, ("grad", *_split(name)), parameter.grad)

    def after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not _is_wanted():
            return
        for name, parameter in self.parameters():
            if self.params:
                self.add(0, ("param", *_split(name)), parameter)
            if self.state:
                for key, value in optimizer.state.get(parameter, {}).items():
                    self.add(0, ("state", *_split(name), str(key)), value)

    def add(self, tree: int, below: tuple[str, ...], value: Any) -> None:
        _add(tree, self.added.path(self.path, below), value, self.dump_type, "optimizer")

    def parameters(self) -> Iterator[tuple[str, Any]]:
        for g, group in enumerate(self.optimizer.param_groups):
            for i, parameter in enumerate(group["params"]):
                name = f"group{g}.{i}" if self.names is None else self.names.get(id(parameter))
                if name is not None:
                    yield name, parameter
