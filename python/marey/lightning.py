"""Ranges for Lightning: a callback records the phases of each step, a profiler records all actions.

    from marey.lightning import Callback

    trainer = Trainer(callbacks=[Callback("run.marey")])

Both work with `lightning` and `pytorch_lightning`. Both write into the open recording, or into their own if they have a
path. They can be used together.

Lightning's hooks mark batches, backward passes and validation. For the rest, methods of the trainer and of its strategy
are wrapped during the fit, and restored at its end, also after an exception.
"""

from __future__ import annotations

import importlib
import sys

from marey import _native
from marey._needs import cannot_import
from marey._phases import phases
from marey._training import ModuleRanges, OwnRecording, Patches, batch_size, tell_rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, Optional

    from marey._training import Path

    Function = Callable[..., Any]

__all__ = ["Callback", "Profiler"]

DRIVER = "marey.lightning.Callback"
_NAMES = ("lightning.pytorch", "pytorch_lightning")


def _packages() -> list[ModuleType]:
    """Return the imported packages. Importing one takes seconds, so if none is imported, only the first available."""
    loaded = [sys.modules[name] for name in _NAMES if sys.modules.get(name) is not None]
    if loaded:
        return loaded
    for name in _NAMES:
        try:
            return [importlib.import_module(name)]
        except ModuleNotFoundError as error:
            why = error
    raise cannot_import("marey.lightning", why, "lightning", "torch") from why


_PACKAGES = _packages()


class Callback(*(package.Callback for package in _PACKAGES)):  # type: ignore[misc]
    """The phases of a Trainer as ranges: data, forward, backward, optimizer, evaluate, checkpoint, logging.

    Each optimizer step is an iteration, with its samples, and each epoch an epoch. With `path`, training is recorded
    into that directory; if a recording is already open, into that one. Without either it does nothing. `modules=True`
    adds a range for each module of the model, named by its path.

    With manual optimization, everything in training_step outside backward passes and optimizer steps is "forward".
    """

    def __init__(self, path: Optional[Path] = None, modules: bool = False) -> None:
        """Create one; it starts with the trainer."""
        super().__init__()
        self._recording = OwnRecording(path)
        self._wants_modules = modules
        self._modules: Optional[ModuleRanges] = None
        self._patches = Patches()
        self._depth = 0
        self._is_on = False
        self._has_epoch = False
        self._has_iteration = False
        self._in_forward = False
        self._in_optimizer = False
        self._samples = 0
        self._step = 0

    # ---- start and end ----

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Start, for any task of the trainer."""
        self._end()
        if not phases.lead(self):
            return
        self._is_on = True
        self._depth = phases.depth
        tell_rank(trainer.global_rank, trainer.world_size)
        self._recording.begin()

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Wrap methods that have no hook."""
        if not self._is_on:
            return
        loop = trainer.fit_loop.epoch_loop
        wrap = self._patches.wrap
        wrap(loop, "_on_before_fetch", self._before_fetch)
        wrap(loop, "_on_after_fetch", self._after_fetch)
        wrap(trainer.strategy, "training_step", self._training_step)
        wrap(trainer.strategy, "optimizer_step", self._optimizer_step)
        wrap(trainer, "save_checkpoint", self._save_checkpoint)
        wrap(trainer._logger_connector, "log_metrics", self._log_metrics)
        if self._wants_modules:
            self._modules = ModuleRanges(pl_module)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Restore everything; end the recording if this callback started it."""
        self._end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Restore everything after an exception."""
        self._end()

    def _end(self) -> None:
        if not self._is_on:
            return
        self._is_on = self._in_forward = self._in_optimizer = False
        self._patches.undo()
        if self._modules is not None:
            self._modules.remove()
            self._modules = None
        phases.unwind(self._depth)
        self._end_epoch()
        phases.follow(self)
        self._recording.end()

    # ---- epochs and iterations ----

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the epoch."""
        if self._is_on:
            self._has_epoch = True
            self._has_iteration = False
            self._step = trainer.global_step
            _native.epoch_begin(trainer.current_epoch)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """End it."""
        self._end_epoch()

    def _end_epoch(self) -> None:
        if self._has_epoch:
            self._has_epoch = False
            _native.epoch_end()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Count its samples."""
        if self._is_on:
            self._samples += batch_size(batch)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """End the iteration, if the optimizer has stepped."""
        if self._is_on and trainer.global_step != self._step:
            self._step = trainer.global_step
            self._has_iteration = False
            _native.iteration_finish(self._samples, DRIVER)
            self._samples = 0

    # ---- phases ----

    def _before_fetch(self, original: Function) -> None:
        if self._is_on:
            if not self._has_iteration:
                self._has_iteration = True
                _native.iteration_begin(DRIVER)
            phases.enter("data")
        original()

    def _after_fetch(self, original: Function) -> None:
        original()
        if self._is_on:
            phases.leave()

    def _training_step(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        if not self._is_on:
            return original(*args, **kwargs)
        self._in_forward = True
        depth = phases.depth
        phases.enter("forward")
        try:
            return original(*args, **kwargs)
        finally:
            self._in_forward = False
            phases.unwind(depth)

    def _enter(self, name: str) -> None:
        """Begin a phase that may be nested in training_step, whose phase then pauses."""
        if self._in_forward:
            phases.leave()
        phases.enter(name)

    def _leave(self) -> None:
        phases.leave()
        if self._in_forward:
            phases.enter("forward")

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        """Begin the backward pass."""
        if self._is_on:
            self._enter("backward")

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        """End it."""
        if self._is_on:
            self._leave()

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Begin the optimizer phase: the step follows the closure with the passes of the model."""
        if self._is_on and not self._in_optimizer:
            self._in_optimizer = True
            self._enter("optimizer")

    def _optimizer_step(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            if self._in_optimizer:
                self._in_optimizer = False
                self._leave()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the evaluation."""
        if self._is_on:
            phases.enter("evaluate")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """End it."""
        if self._is_on:
            phases.leave()

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the evaluation."""
        self.on_validation_start(trainer, pl_module)

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        """End it."""
        self.on_validation_end(trainer, pl_module)

    def _save_checkpoint(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        with phases("checkpoint"):
            return original(*args, **kwargs)

    def _log_metrics(self, original: Function, metrics: Any, *args: Any, **kwargs: Any) -> Any:
        if not metrics or not original.__self__.trainer.loggers:  # type: ignore[attr-defined]
            return original(metrics, *args, **kwargs)
        with phases("logging"):
            return original(metrics, *args, **kwargs)


class Profiler(*(package.profilers.Profiler for package in _PACKAGES)):  # type: ignore[misc]
    """Lightning's actions as ranges of the category "lightning": `Trainer(profiler=Profiler("run.marey"))`.

    Lightning's actions are hooks of callbacks or of the model, fetching a batch, an epoch. With `path` they are
    recorded into that directory; if a recording is already open, into that one.
    """

    def __init__(self, path: Optional[Path] = None) -> None:
        """Create one; it starts with the trainer."""
        super().__init__(dirpath=None, filename=None)
        self._recording = OwnRecording(path)
        self._ranges: dict[str, _native.Range] = {}

    def setup(self, stage: str, local_rank: Optional[int] = None, log_dir: Optional[str] = None) -> None:
        """Begin."""
        super().setup(stage=stage, local_rank=local_rank, log_dir=log_dir)
        self._recording.begin()

    def start(self, action_name: str) -> None:
        """Begin the range of an action."""
        range_ = self._ranges.get(action_name)
        if range_ is None:
            range_ = self._ranges[action_name] = _native.range(action_name, category="lightning")
        range_.__enter__()

    def stop(self, action_name: str) -> None:
        """End it."""
        range_ = self._ranges.get(action_name)
        if range_ is not None:
            range_.__exit__()

    def summary(self) -> str:
        """Return nothing; use `marey report`."""
        return ""

    def teardown(self, stage: Optional[str]) -> None:
        """End the recording if this profiler started it."""
        super().teardown(stage=stage)
        self._recording.end()
