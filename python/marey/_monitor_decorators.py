"""itwinai's two decorators for the train() of a trainer, under the same names.

    class Trainer:
        enable_torch_profiling = True

        @marey.profile_torch_trainer
        @marey.measure_gpu_utilization
        def train(self): ...

The trainer's attributes are the settings of marey.TrainingMonitor; without them, a decorator enables the switch it is
named after. Both share one monitor. An epoch begins with each call of the trainer's set_epoch(), with or without a
number, or of its `profiler.step()`; other loops use marey.current_monitor().
"""

from __future__ import annotations

from marey import _monitor_settings as settings_of
from marey._monitor import TrainingMonitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional, TypeVar

    Method = TypeVar("Method", bound=Callable[..., Any])

_WANTS = "_marey_monitor_wants"
_running: list[tuple[Any, TrainingMonitor]] = []  # trainers whose train() is running, the innermost last


def profile_torch_trainer(method: Method) -> Method:
    """Break each call of train() down into computation, communication and other."""
    return _decorate(method, "enable_torch_profiling")


def measure_gpu_utilization(method: Method) -> Method:
    """Measure energy and utilization of the GPUs in each call of train()."""
    return _decorate(method, "measure_gpu_data")


def current_monitor() -> Optional[TrainingMonitor]:
    """Return the monitor of the running decorated train(); None outside."""
    return _running[-1][1] if _running else None


def _decorate(method: Method, switch: str) -> Method:
    import functools

    wants = {**getattr(method, _WANTS, {}), switch: True}

    @functools.wraps(method)
    def train(*args: Any, **kwargs: Any) -> Any:
        trainer = args[0] if args else None
        if any(running is trainer for running, _ in _running):
            return method(*args, **kwargs)  # the outer decorator, or the train() that calls super().train(), measures
        monitor = TrainingMonitor(**_settings_of(trainer, wants))
        with monitor:
            undo = _follow(trainer, monitor)
            _running.append((trainer, monitor))
            try:
                return method(*args, **kwargs)
            finally:
                _running.pop()
                undo()

    setattr(train, _WANTS, wants)
    return train  # type: ignore[return-value]


def _settings_of(trainer: Any, wants: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the trainer's attributes, completed by the decorators'."""
    found = dict(wants)
    for name in (*settings_of.KEYS, *settings_of.SPELLINGS):
        value = getattr(trainer, name, None)
        if name == "strategy":  # a name, or an object of itwinai
            value = value if isinstance(value, str) else getattr(value, "name", None)
            value = value if isinstance(value, str) else None
        if value is not None:
            found[settings_of.SPELLINGS.get(name, name)] = value
    return found


class _Follower:
    """Begins epochs as the trainer does. It replaces the `profiler` that itwinai's trainers have."""

    def __init__(self, trainer: Any, monitor: TrainingMonitor) -> None:
        self._trainer = trainer
        self._monitor = monitor
        self._next = 0
        self._has_epochs = False  # set_epoch() begins them

    def set_epoch(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Begin the epoch that an argument names, or trainer.current_epoch, or else the next one."""
        self._has_epochs = True
        numbers = (kwargs.get("epoch"), *args, *kwargs.values(), getattr(self._trainer, "current_epoch", None))
        known = (n for n in numbers if isinstance(n, int) and not isinstance(n, bool))
        number = next(known, self._next)
        self._next = number + 1
        self._monitor.set_epoch(number)
        return original(*args, **kwargs)

    def step(self) -> None:
        """Start the next epoch's trace, as itwinai's profiler does. An epoch may or may not end here."""
        if not self._has_epochs and self._monitor._traces is not None:
            self._monitor._traces.begin_next()


def _follow(trainer: Any, monitor: TrainingMonitor) -> Callable[[], None]:
    """Follow the trainer's set_epoch() and fill its `profiler`; call the returned function to undo this."""
    from marey._training import Patches

    patches = Patches()
    follower = _Follower(trainer, monitor)
    if callable(getattr(trainer, "set_epoch", None)):
        patches.wrap(trainer, "set_epoch", follower.set_epoch)
    fills = monitor.settings["enable_torch_profiling"] and getattr(trainer, "profiler", follower) is None
    if fills:
        trainer.profiler = follower

    def undo() -> None:
        patches.undo()
        if fills and trainer.profiler is follower:
            trainer.profiler = None

    return undo
