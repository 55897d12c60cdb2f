"""The two decorators that itwinai has for the train() of a trainer, by their names.

    class Trainer:
        enable_torch_profiling = True

        @kymo.profile_torch_trainer
        @kymo.measure_gpu_utilization
        def train(self): ...

What the trainer's attributes say about the switches of kymo.TrainingMonitor counts; where it says nothing, a decorator
switches on what it is named for. Both together are one monitor. An epoch begins with each call of the trainer's
set_epoch(number), where it has one; else the loop tells of epochs by kymo.current_monitor().
"""

from __future__ import annotations

from kymo import _monitor_settings as settings_of
from kymo._monitor import TrainingMonitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, TypeVar

    Method = TypeVar("Method", bound=Callable[..., Any])

_WANTS = "_kymo_monitor_wants"
_running: list[TrainingMonitor] = []


def profile_torch_trainer(method: Method) -> Method:
    """Let each call of train() tell computation, communication and other of its rank."""
    return _decorate(method, "enable_torch_profiling")


def measure_gpu_utilization(method: Method) -> Method:
    """Let each call of train() measure energy and utilization of the GPUs."""
    return _decorate(method, "measure_gpu_data")


def current_monitor() -> Optional[TrainingMonitor]:
    """The monitor of the decorated train() that runs, for its loop to tell of epochs and batches; None outside."""
    return _running[-1] if _running else None


def _decorate(method: Method, switch: str) -> Method:
    import functools

    wants = {**getattr(method, _WANTS, {}), switch: True}
    original = getattr(method, "__wrapped__", method) if hasattr(method, _WANTS) else method

    @functools.wraps(original)
    def train(*args: Any, **kwargs: Any) -> Any:
        trainer = args[0] if args else None
        monitor = TrainingMonitor(**_said_by(trainer, wants))
        with monitor:
            undo = _follow(trainer, monitor)
            _running.append(monitor)
            try:
                return original(*args, **kwargs)
            finally:
                _running.pop()
                undo()

    setattr(train, _WANTS, wants)
    return train  # type: ignore[return-value]


def _said_by(trainer: Any, wants: dict[str, Any]) -> dict[str, Any]:
    """The trainer's attributes of our names, over what the decorators want."""
    said = dict(wants)
    for name in (*settings_of.KEYS, *settings_of.SPELLINGS):
        value = getattr(trainer, name, None)
        # A trainer's strategy is an object, and its loggers are not ours.
        if value is not None and name != "loggers" and (name != "strategy" or isinstance(value, str)):
            said[settings_of.SPELLINGS.get(name, name)] = value
    return said


def _follow(trainer: Any, monitor: TrainingMonitor) -> Callable[[], None]:
    """Have the trainer's set_epoch() tell the monitor."""
    from kymo._training import Patches

    patches = Patches()
    if callable(getattr(trainer, "set_epoch", None)):

        def set_epoch(original: Callable[..., Any], number: int, *args: Any, **kwargs: Any) -> Any:
            monitor.set_epoch(number)
            return original(number, *args, **kwargs)

        patches.wrap(trainer, "set_epoch", set_epoch)
    return patches.undo
