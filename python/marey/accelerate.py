"""Plain loops with accelerate as ranges.

    import marey.accelerate

    accelerator = Accelerator(gradient_accumulation_steps=4)
    with marey.accelerate.trace(accelerator, "run.marey"):
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(batch)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()

Prepared objects are instrumented: waiting for batches of loaders is "data", calls of models are "forward" ("evaluate"
for a model in eval mode), accelerator.backward() is "backward", optimizer steps and gradient clipping are "optimizer",
save_state() is "checkpoint", log() is "logging". Each optimizer step is an iteration; use marey.epoch() for epochs.
"""

from __future__ import annotations

from marey import _native
from marey._needs import cannot_import
from marey._phases import phases
from marey._training import OwnRecording, Patches, batch_size, tell_rank

try:
    from accelerate import Accelerator
except ImportError as error:
    raise cannot_import("marey.accelerate", error, "accelerate", "torch") from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any, Optional

    from marey._training import Path

    Function = Callable[..., Any]

__all__ = ["Tracing", "trace"]

DRIVER = "marey.accelerate"


def trace(accelerator: Accelerator, path: Optional[Path] = None) -> Tracing:
    """Record phases of all objects that `accelerator` prepares, until undo() or the end of a `with` block.

    With `path`, records into that directory; if a recording is already open, into that one.
    """
    if not isinstance(accelerator, Accelerator):
        raise TypeError(f"trace() takes an Accelerator, not {type(accelerator).__name__}")
    return Tracing(accelerator, path)


class Tracing:
    """The result of trace()."""

    def __init__(self, accelerator: Accelerator, path: Optional[Path] = None) -> None:
        """Install the wrappers."""
        self._accelerator = accelerator
        self._recording = OwnRecording(path)
        self._patches = Patches()
        self._hooks: list[Any] = []
        self._seen: set[int] = set()  # ids of wrapped objects, which the accelerator keeps alive
        self._loader_types: set[type] = set()
        self._depth = phases.depth
        self._has_gradients = False  # for the next optimizer step
        self._samples = 0
        self._is_on = phases.lead(self)
        if not self._is_on:
            return
        tell_rank(accelerator.process_index, accelerator.num_processes)
        self._recording.begin()
        wrap = self._patches.wrap
        wrap(accelerator, "prepare", self._prepare)
        wrap(accelerator, "backward", self._backward)
        wrap(accelerator, "clip_grad_norm_", self._phase("optimizer"))
        wrap(accelerator, "clip_grad_value_", self._phase("optimizer"))
        wrap(accelerator, "save_state", self._phase("checkpoint"))
        wrap(accelerator, "log", self._phase("logging"))
        self._watch_prepared()

    def undo(self) -> None:
        """Restore everything; end the recording if trace() started it. May be called twice."""
        if not self._is_on:
            return
        self._is_on = False
        self._patches.undo()
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        phases.unwind(self._depth)
        phases.follow(self)
        self._recording.end()

    def __enter__(self) -> Tracing:
        """Undo at the end of the block."""
        return self

    def __exit__(
        self,
        type: Optional[type[BaseException]] = None,
        value: Optional[BaseException] = None,
        traceback: Optional[TracebackType] = None,
    ) -> None:
        """Undo."""
        self.undo()

    # ---- prepared objects ----

    def _prepare(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        prepared = original(*args, **kwargs)
        if self._is_on:
            self._watch_prepared()
        return prepared

    def _watch_prepared(self) -> None:
        kinds: list[tuple[list[Any], Function]] = [
            (self._accelerator._models, self._watch_model),
            (self._accelerator._optimizers, self._watch_optimizer),
            (self._accelerator._dataloaders, self._watch_loader),
        ]
        for prepared, watch in kinds:
            for each in prepared:
                if id(each) not in self._seen:
                    self._seen.add(id(each))
                    watch(each)

    def _watch_model(self, model: Any) -> None:
        def begins(module: Any, *_: Any) -> None:
            phases.enter("forward" if module.training else "evaluate")

        def ends(*_: Any) -> None:
            phases.leave()

        self._hooks.append(model.register_forward_pre_hook(begins, prepend=True))
        self._hooks.append(model.register_forward_hook(ends, always_call=True))

    def _watch_optimizer(self, optimizer: Any) -> None:
        self._patches.wrap(optimizer, "step", self._step)

    def _watch_loader(self, loader: Any) -> None:
        """Wrap __iter__ in a subclass for this loader only, because iteration looks it up on the type."""
        if type(loader) not in self._loader_types:
            self._loader_types.add(type(loader))
            self._patches.wrap(type(loader), "__iter__", self._iterate)

    def _iterate(self, original: Function, loader: Any) -> Iterator[Any]:
        batches: Iterator[Any] = original(loader)
        return self._batches(batches) if id(loader) in self._seen else batches

    # ---- wrappers ----

    def _batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        while True:
            if self._is_on and not self._has_gradients:
                self._samples = 0
                _native.iteration_begin(DRIVER)
            try:
                with phases("data"):
                    batch = next(batches)
            except StopIteration:
                return
            self._samples += batch_size(batch)
            yield batch

    def _backward(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        self._has_gradients = True
        with phases("backward"):
            return original(*args, **kwargs)

    def _step(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        if not self._is_on or not self._accelerator.sync_gradients:
            return original(*args, **kwargs)
        with phases("optimizer"):
            result = original(*args, **kwargs)
        self._has_gradients = False
        _native.iteration_finish(self._samples, DRIVER)
        self._samples = 0
        return result

    def _phase(self, name: str) -> Function:
        block = phases(name)

        def wrapper(original: Function, *args: Any, **kwargs: Any) -> Any:
            with block:
                return original(*args, **kwargs)

        return wrapper
