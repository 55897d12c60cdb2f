"""Triggers that open a window in addition to the schedule: a slow step, a signal, a file, a custom condition.

    ProfCallback(triggers=[SlowStep(2.0), OnSignal(signal.SIGUSR1), OnFile("profile.now"), When(lambda state: ...)])

Triggers are checked after each step. A trigger that cannot work prints a message and is ignored.
"""

from __future__ import annotations

import bisect
import collections
import os
import signal
import threading
from typing import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType
    from typing import Any, Optional, Protocol, Union

    class Trigger(Protocol):
        """Decides after each step whether to open a window."""

        def begin(self) -> Optional[str]:
            """Prepare for a training. Returns a message if the trigger cannot work."""

        def check(self, seconds: float, state: Any) -> Optional[str]:
            """Return the reason to open a window after a step of `seconds`, or None."""

        def end(self) -> None:
            """Undo begin()."""

    Shorthand = Union[Trigger, int, float, str, os.PathLike[str], Callable[[Any], object]]


class SlowStep:
    """A step that takes more than `factor` times the median of the last `memory` steps, at most `limit` times.

    A step lasts from the end of the previous one to its end, without evaluation, saving and logging between them.
    At least `least` steps are needed before any counts as slow.
    """

    def __init__(self, factor: float = 1.5, memory: int = 50, least: int = 10, limit: int = 3) -> None:
        """Raises ValueError if no step could be slow."""
        if not factor > 1:
            raise ValueError(f"the factor must be above 1, not {factor}")
        if not 1 <= least <= memory:
            raise ValueError(f"least={least} must be from 1 to memory={memory}")
        self.factor = factor
        self.memory = memory
        self.least = least
        self.limit = limit
        self._last: collections.deque[float] = collections.deque()
        self._sorted: list[float] = []
        self._n_found = 0

    def begin(self) -> Optional[str]:
        """Drop earlier steps."""
        self._last.clear()
        self._sorted.clear()
        self._n_found = 0
        return None

    def check(self, seconds: float, state: Any) -> Optional[str]:
        """Compare with earlier steps, and store this one."""
        n = len(self._sorted)
        median = self._sorted[n // 2] if n else 0.0
        is_slow = n >= self.least and seconds > self.factor * median and self._n_found < self.limit
        if n == self.memory:
            del self._sorted[bisect.bisect_left(self._sorted, self._last.popleft())]
        self._last.append(seconds)
        bisect.insort(self._sorted, seconds)
        if not is_slow:
            return None
        self._n_found += 1
        return f"a step took {seconds * 1e3:.1f} ms, {seconds / median:.1f} times the median of {median * 1e3:.1f} ms"

    def end(self) -> None:
        """Nothing to undo."""


class OnSignal:
    """A signal, SIGUSR1 by default: `kill -USR1 PID`. A previous handler still receives it."""

    def __init__(self, number: int = signal.SIGUSR1) -> None:
        """Raises ValueError if the signal does not exist."""
        self.signal = signal.Signals(number)
        self._is_received = False
        self._before: Any = None

    def begin(self) -> Optional[str]:
        """Install the handler, if possible."""
        name = self.signal.name
        if threading.current_thread() is not threading.main_thread():
            return f"{name} opens no window, because only the main thread may handle signals; train there"
        if self.signal in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
            return f"{name} opens no window, because it is blocked; unblock it by signal.pthread_sigmask"
        try:
            self._before = signal.signal(self.signal, self._receive)
        except OSError as error:
            return f"{name} opens no window: {error.strerror}; choose another signal"
        return None

    def _receive(self, number: int, frame: Optional[FrameType]) -> None:
        self._is_received = True
        if callable(self._before):
            self._before(number, frame)

    def check(self, seconds: float, state: Any) -> Optional[str]:
        """Whether the signal arrived."""
        is_received, self._is_received = self._is_received, False
        return f"{self.signal.name} came" if is_received else None

    def end(self) -> None:
        """Restore the previous handler, unless another one was installed since."""
        if signal.getsignal(self.signal) == self._receive:
            signal.signal(self.signal, self._before if self._before is not None else signal.SIG_DFL)


class OnFile:
    """A file that is created or touched: `touch FILE`. It is not deleted, so that all ranks see it."""

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        """Watch this file."""
        self.path = os.path.abspath(path)
        self._seen_ns = 0

    def _touched_ns(self) -> int:
        try:
            return os.stat(self.path).st_mtime_ns
        except OSError:
            return 0

    def begin(self) -> Optional[str]:
        """Ignore a file that already exists."""
        if not os.path.isdir(os.path.dirname(self.path)):
            return f"{self.path} opens no window, because its directory does not exist; create it first"
        self._seen_ns = self._touched_ns()
        return None

    def check(self, seconds: float, state: Any) -> Optional[str]:
        """Whether the file was touched since."""
        touched_ns = self._touched_ns()
        if touched_ns in (0, self._seen_ns):
            return None
        self._seen_ns = touched_ns
        return f"{self.path} was touched"

    def end(self) -> None:
        """Nothing to undo."""


class When:
    """A function of the trainer's state that returns True, or a reason; at most `limit` times."""

    def __init__(self, predicate: Callable[[Any], object], limit: int = 3) -> None:
        """Store the function."""
        self.predicate = predicate
        self.limit = limit
        self._n_found = 0

    def begin(self) -> Optional[str]:
        """Reset the count."""
        self._n_found = 0
        return None

    def check(self, seconds: float, state: Any) -> Optional[str]:
        """Call the function."""
        answer = self.predicate(state) if self._n_found < self.limit else None
        if not answer:
            return None
        self._n_found += 1
        return answer if isinstance(answer, str) else f"{getattr(self.predicate, '__name__', 'the condition')} was met"

    def end(self) -> None:
        """Nothing to undo."""


def as_trigger(given: Shorthand) -> Trigger:
    """Convert a signal, a number (times the median), a path or a function to a trigger."""
    if isinstance(given, signal.Signals):
        return OnSignal(given)
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return SlowStep(given)
    if isinstance(given, (str, os.PathLike)):
        return OnFile(given)
    if hasattr(given, "check"):
        return cast("Trigger", given)
    if callable(given):
        return When(given)
    raise TypeError(f"{given!r} is not a trigger: pass a SlowStep, OnSignal, OnFile or When")


class Triggers:
    """All triggers of a callback, during one training."""

    def __init__(self, triggers: Iterable[Trigger], say: Callable[[str], None]) -> None:
        """Return the triggers that work; `say` reports the others."""
        self._say = say
        self._triggers: list[Trigger] = []
        for trigger in triggers:
            reason = trigger.begin()
            if reason is None:
                self._triggers.append(trigger)
            else:
                say(reason)

    def __bool__(self) -> bool:
        """Whether any trigger is left."""
        return bool(self._triggers)

    def check(self, seconds: float, state: Any) -> Optional[str]:
        """Check all of them; returns the reason of the first that opens a window."""
        found = None
        for trigger in list(self._triggers):
            try:
                why = trigger.check(seconds, state)
            except Exception as error:
                self._say(f"a trigger is ignored, because it raised {type(error).__name__}: {error}")
                self._triggers.remove(trigger)
                continue
            found = found or why
        return found

    def end(self) -> None:
        """Undo begin() of all triggers."""
        for trigger in self._triggers:
            trigger.end()
        self._triggers.clear()
