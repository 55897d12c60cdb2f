"""marey.hf.Callback: the phases of transformers' Trainer as ranges.

The Trainer's hooks mark the start and end of a step and little in between. So while it trains, some
methods of this one Trainer are wrapped:

    get_batch_samples                              an iteration begins; "data"
      compute_loss                                 "forward"         for each of the micro-batches
      accelerator.backward                         "backward"
      _clip_grad_norm, or on_pre_optimizer_step    "optimizer" begins
      callback_handler.on_step_end                 it ends, and so does the iteration
    _maybe_log_save_evaluate, log                  "logging"
    evaluate                                       "evaluate"
    _save_checkpoint                               "checkpoint"
    _run_epoch                                     the epoch

No hook reports an exception. The wrappers of _run_epoch, _finalize_training and of methods called outside of them see
every exception that the Trainer does not catch, and restore everything.
"""

from __future__ import annotations

import warnings

from marey import _native
from marey._needs import cannot_import
from marey._phases import phases
from marey._training import ModuleRanges, OwnRecording, Patches, batch_size, find_self, tell_rank

try:
    import torch  # noqa: F401  # without torch, transformers imports, but its Trainer does nothing
    from transformers import Trainer, TrainerCallback
except ImportError as error:
    raise cannot_import("marey.hf", error, "transformers", "torch") from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional

    from marey._training import Path

    Function = Callable[..., Any]

DRIVER = "marey.hf.Callback"
_enter, _leave = phases.enter, phases.leave  # called in every step; `with phases(name)` would take twice as long


class Callback(TrainerCallback):  # type: ignore[misc]  # mypy does not see transformers
    """The phases of a Trainer as ranges: `Trainer(..., callbacks=[marey.hf.Callback("run.marey")])`.

    data, forward, backward, optimizer, evaluate, checkpoint and logging are ranges; each optimizer step is an
    iteration, with its samples, and each epoch an epoch. With `path`, training is recorded into that directory; if a
    recording is already open (`marey run`, marey.start()), into that one. Without either it does nothing.

    `modules=True` adds a range for each module of the model, named by its path.

    When training ends, also by an exception, the Trainer and its model are restored.
    """

    def __init__(self, path: Optional[Path] = None, modules: bool = False) -> None:
        """Create one; it starts with the training."""
        self._recording = OwnRecording(path)
        self._wants_modules = modules
        self._modules: Optional[ModuleRanges] = None
        self._patches = Patches()
        self._trainer: Optional[Any] = None  # None: not training
        self._is_on = False
        self._has_epoch = False  # an epoch range is open
        self._in_epoch = False
        self._in_optimizer = False
        self._in_logging = False
        self._samples = 0
        self._depth = 0

    # ---- hooks of the Trainer ----

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start: wrap the methods."""
        self._end()  # a training may have been abandoned unseen, in the on_train_begin of another callback
        trainer = find_self(Trainer, self._is_called_by)
        if trainer is None:
            warnings.warn("marey.hf.Callback found no Trainer that calls it, so it records nothing", stacklevel=2)
            return
        leader = phases.leader
        if isinstance(leader, Callback) and leader._trainer is not trainer:
            leader._end()
        if not phases.lead(self):
            return
        self._trainer = trainer
        self._is_on = True
        tell_rank(args.process_index, args.world_size)
        self._recording.begin()
        self._depth = phases.depth
        self._wrap(trainer)
        if self._wants_modules:
            self._modules = ModuleRanges(trainer.model)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin the optimizer phase, unless gradient clipping began it."""
        self._begin_optimizer()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Restore everything; end the recording if this callback started it."""
        self._end()

    def _is_called_by(self, trainer: Any) -> bool:
        return self in trainer.callback_handler.callbacks

    # ---- wrapped methods ----

    def _wrap(self, trainer: Any) -> None:
        wrap = self._patches.wrap
        wrap(trainer, "get_batch_samples", self._fetch)
        wrap(trainer, "compute_loss", self._compute_loss)
        wrap(trainer.accelerator, "backward", self._phase("backward"))
        wrap(trainer, "_clip_grad_norm", self._clip)
        wrap(trainer.callback_handler, "on_step_end", self._end_step)
        wrap(trainer, "_maybe_log_save_evaluate", self._maybe_log)
        wrap(trainer, "log", self._log)
        wrap(trainer, "evaluate", self._outermost(self._phase("evaluate")))
        wrap(trainer, "_save_checkpoint", self._phase("checkpoint"))
        wrap(trainer.callback_handler, "on_epoch_begin", self._outermost(self._begin_epoch))
        wrap(trainer, "_run_epoch", self._run_epoch)
        wrap(trainer, "_finalize_training", self._finalize)

    def _phase(self, name: str) -> Function:
        def wrapper(original: Function, *args: Any, **kwargs: Any) -> Any:
            if not self._is_on:
                return original(*args, **kwargs)
            _enter(name)
            try:
                return original(*args, **kwargs)
            finally:
                _leave()

        return wrapper

    def _outermost(self, wrapper: Function) -> Function:
        """Return `wrapper` for methods that may run outside of epochs: an exception there ends the training."""

        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return wrapper(*args, **kwargs)
            except BaseException:
                if not self._in_epoch:
                    self._end()
                raise

        return guarded

    def _fetch(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        if not self._is_on:
            return original(*args, **kwargs)
        _native.iteration_begin(DRIVER)
        _enter("data")
        try:
            fetched = original(*args, **kwargs)
        finally:
            _leave()
        self._samples = sum(map(batch_size, fetched[0]))
        return fetched

    def _compute_loss(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        if not self._is_on or phases.now == "evaluate":
            return original(*args, **kwargs)
        _enter("forward")
        try:
            return original(*args, **kwargs)
        finally:
            _leave()

    def _begin_optimizer(self) -> None:
        if self._is_on and not self._in_optimizer:
            self._in_optimizer = True
            phases.enter("optimizer")

    def _clip(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        self._begin_optimizer()
        return original(*args, **kwargs)

    def _end_step(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        if self._in_optimizer:
            self._in_optimizer = False
            phases.leave()
        if self._is_on:
            _native.iteration_finish(self._samples, DRIVER)
        return original(*args, **kwargs)

    def _maybe_log(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        """Copying the loss to the host is part of logging, and happens before log()."""
        trainer = original.__self__  # type: ignore[attr-defined]
        if self._is_on and trainer.control.should_log and trainer.state.global_step > trainer._globalstep_last_logged:
            self._in_logging = True
            phases.enter("logging")
        try:
            return original(*args, **kwargs)
        finally:
            self._end_logging()

    def _end_logging(self) -> None:
        if self._in_logging:
            self._in_logging = False
            phases.leave()

    def _log(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        if not self._is_on:
            return original(*args, **kwargs)
        try:
            with phases("logging"):
                return original(*args, **kwargs)
        finally:
            self._end_logging()

    def _begin_epoch(self, original: Function, arguments: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        if self._is_on:
            self._has_epoch = True
            _native.epoch_begin(int(state.epoch or 0))
        return original(arguments, state, *args, **kwargs)

    def _run_epoch(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        self._in_epoch = True
        try:
            result = original(*args, **kwargs)
        except BaseException:
            self._end()
            raise
        self._in_epoch = False
        self._end_epoch()
        return result

    def _finalize(self, original: Function, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            self._end()

    # ---- the end ----

    def _end_epoch(self) -> None:
        if self._has_epoch:
            self._has_epoch = False
            _native.epoch_end()

    def _end(self) -> None:
        """Restore everything, if not done yet."""
        if not self._is_on:
            return
        self._is_on = self._in_epoch = self._in_optimizer = self._in_logging = False
        self._trainer = None
        self._patches.undo()
        if self._modules is not None:
            self._modules.remove()
            self._modules = None
        phases.unwind(self._depth)
        self._end_epoch()
        phases.follow(self)
        self._recording.end()
