"""When to record: torch.profiler's schedule, and the actions at each change of state.

A schedule returns for each step whether to do nothing, to warm up, to record, or to record and save at the end of the
step. `transition` returns the actions between two steps, and when the training ends.
"""

from __future__ import annotations

import enum
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


class Action(enum.Enum):
    """The action of a step. The numbers are those of torch.profiler.ProfilerAction."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3

    @property
    def is_recording(self) -> bool:
        """Whether events of such a step are kept."""
        return self in (Action.RECORD, Action.RECORD_AND_SAVE)


class Do(enum.Enum):
    """An action of an engine."""

    PREPARE = "prepare"
    START = "start"
    STOP = "stop"
    SAVE = "save"
    DISCARD = "discard"


class Schedule:
    """`wait` idle steps, `warmup` steps, `active` recorded steps; `repeat` times, or forever if 0.

    The first `skip_first` steps are skipped. With `skip_first_wait` the first cycle has no wait.
    """

    def __init__(
        self,
        wait: int,
        warmup: int,
        active: int,
        repeat: int = 0,
        skip_first: int = 0,
        skip_first_wait: int = 0,
    ) -> None:
        """ValueError if a number is invalid."""
        for name, value, least in (
            ("wait", wait, 0),
            ("warmup", warmup, 0),
            ("active", active, 1),
            ("repeat", repeat, 0),
            ("skip_first", skip_first, 0),
        ):
            if value < least:
                raise ValueError(f"a schedule cannot have {name}={value}: it must be at least {least}")
        if warmup == 0:
            warnings.warn(
                "a schedule without warm-up: the first recorded step includes the profiler's start-up",
                stacklevel=2,
            )
        self.wait = wait
        self.warmup = warmup
        self.active = active
        self.repeat = repeat
        self.skip_first = skip_first
        self.skip_first_wait = skip_first_wait

    @property
    def first(self) -> int:
        """The first recorded step."""
        return self.skip_first + (0 if self.skip_first_wait else self.wait) + self.warmup

    def __call__(self, step: int) -> Action:
        """Return the action of a step, counted from 0."""
        if step < 0:
            raise ValueError(f"there is no step {step}: steps are counted from 0")
        if step < self.skip_first:
            return Action.NONE
        step -= self.skip_first
        if self.skip_first_wait:
            step += self.wait
        n_steps = self.wait + self.warmup + self.active
        if self.repeat > 0 and step >= self.repeat * n_steps:
            return Action.NONE
        in_cycle = step % n_steps
        if in_cycle < self.wait:
            return Action.NONE
        if in_cycle < self.wait + self.warmup:
            return Action.WARMUP
        return Action.RECORD if in_cycle < n_steps - 1 else Action.RECORD_AND_SAVE


def never(_: int) -> Action:
    """The schedule without steps: only triggers open windows."""
    return Action.NONE


_BEGIN = (Do.PREPARE, Do.START)
_READY = (Do.STOP, Do.SAVE)
_DROP = (Do.STOP, Do.DISCARD)

# Actions from one state to the next; None is the end of the training. Other pairs need no action.
_TRANSITIONS: dict[tuple[Action, Optional[Action]], tuple[Do, ...]] = {
    (Action.NONE, Action.WARMUP): (Do.PREPARE,),
    (Action.NONE, Action.RECORD): _BEGIN,
    (Action.NONE, Action.RECORD_AND_SAVE): _BEGIN,
    (Action.WARMUP, Action.NONE): (Do.START, *_DROP),
    (Action.WARMUP, Action.RECORD): (Do.START,),
    (Action.WARMUP, Action.RECORD_AND_SAVE): (Do.START,),
    (Action.RECORD, Action.NONE): _DROP,
    (Action.RECORD, Action.WARMUP): _DROP,
    (Action.RECORD_AND_SAVE, Action.NONE): _READY,
    (Action.RECORD_AND_SAVE, Action.WARMUP): (*_READY, Do.PREPARE),
    (Action.RECORD_AND_SAVE, Action.RECORD): (*_READY, *_BEGIN),
    (Action.RECORD_AND_SAVE, Action.RECORD_AND_SAVE): (*_READY, *_BEGIN),
    (Action.WARMUP, None): (Do.START, *_DROP),
    (Action.RECORD, None): _READY,
    (Action.RECORD_AND_SAVE, None): _READY,
}

# Transitions that the schedules of this module never make, but a user's schedule might.
_DOUBTFUL = {(Action.WARMUP, Action.NONE), (Action.RECORD, Action.NONE), (Action.RECORD, Action.WARMUP)}


def transition(before: Action, after: Optional[Action]) -> tuple[Do, ...]:
    """Return the actions between two steps, in order; `after` is None at the end."""
    if (before, after) in _DOUBTFUL and after is not None:
        sentence = f"the schedule has {before.name} followed by {after.name}: what was recorded so far is dropped"
        warnings.warn(sentence, stacklevel=2)
    return _TRANSITIONS.get((before, after), ())
