"""One thread that feeds all loggers.

The training thread appends to a queue without locks, files or waiting. Every few seconds, the loggers' thread passes
all queued entries on in one batch. It sleeps in between, because a thread that runs Python code holds the GIL.
"""

from __future__ import annotations

import atexit
import collections
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Optional, TypeVar

from marey._logging import Logger, Path, Point, log_each, tell

Entry = TypeVar("Entry")
Call = Callable[[Logger], object]


class _Queue(Generic[Entry]):
    """A queue that drops the oldest entries when it is full, and counts them.

    Any thread may call put(), one thread take(). Entries are numbered, so gaps are dropped entries.
    """

    def __init__(self, limit: int) -> None:
        self._entries: collections.deque[tuple[int, Entry]] = collections.deque(maxlen=limit)
        self._numbers = itertools.count(1)
        self._limit = limit
        self._n_taken = 0
        self._newest = 0

    def put(self, entry: Entry) -> None:
        self._entries.append((next(self._numbers), entry))

    def take(self) -> list[Entry]:
        taken: list[Entry] = []
        while self._entries and len(taken) < self._limit:
            number, entry = self._entries.popleft()
            self._newest = max(self._newest, number)
            taken.append(entry)
        self._n_taken += len(taken)
        return taken

    @property
    def dropped(self) -> int:
        return self._newest - self._n_taken


class Batched:
    """Loggers fed by a thread: `with Batched([CSVLogger("logs")]) as log: log.log_metrics({"loss": 0.5}, step=1)`.

    The constructor waits for the loggers to open: packages are imported and stores are created before training begins,
    not during its first steps. After that no call waits. Queued calls are passed on every `interval_s` seconds. At most
    `limit` calls are queued; then the oldest are dropped, and close() reports how many. A failing logger causes one
    warning and is not used again; the others continue. close(), or the end of the program, passes on the rest and waits
    for it, but no longer than `patience_s`. In a forked child, calls do nothing.
    """

    def __init__(
        self, loggers: Iterable[Logger], *, limit: int = 10_000, interval_s: float = 5.0, patience_s: float = 60.0
    ) -> None:
        """Open the loggers and start the thread."""
        if limit < 1:
            raise ValueError(f"limit is how many calls may wait, at least 1, not {limit}")
        self._loggers = list(loggers)
        self._points: _Queue[Point] = _Queue(limit)
        self._calls: _Queue[Call] = _Queue(limit)
        self._flushes: collections.deque[threading.Event] = collections.deque()
        self._interval_s = interval_s
        self._patience_s = patience_s
        self._pid = os.getpid()
        self._is_closed = False
        self._wake = threading.Event()
        is_open = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(is_open,), name="marey-loggers", daemon=True)
        self._thread.start()
        atexit.register(self.close)
        is_open.wait(patience_s)

    # ---- for the training thread ----

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Log numbers; they are copied, with the time of this call."""
        if self._takes():
            self._points.put(Point(time.time_ns(), step, dict(metrics)))

    def log_params(self, params: Mapping[str, object]) -> None:
        """Log the settings of the run."""
        if self._takes():
            given = dict(params)
            self._calls.put(lambda logger: logger.log_params(given))

    def log_artifact(self, path: Path, name: Optional[str] = None) -> None:
        """Log a file, which must exist until it is processed; flush() waits for that."""
        if self._takes():
            self._calls.put(lambda logger: logger.log_artifact(path, name))

    def flush(self) -> bool:
        """Wait until the loggers have received everything; False on timeout."""
        if not self._takes():
            return True
        done = threading.Event()
        self._flushes.append(done)
        self._wake.set()
        return done.wait(self._patience_s)

    def close(self) -> None:
        """Pass on the rest, close the loggers, and report dropped calls."""
        if not self._takes():
            return
        self._is_closed = True
        atexit.unregister(self.close)
        self._wake.set()
        self._thread.join(self._patience_s)
        if self._thread.is_alive():
            tell(f"the loggers did not finish within {self._patience_s:g} s: unwritten metrics are lost")
        if self.dropped:
            tell(
                f"{self.dropped} calls for the loggers were dropped, because more came than they could process in "
                f"{self._interval_s:g} s: log less often, or raise limit="
            )

    @property
    def dropped(self) -> int:
        """The number of dropped calls so far."""
        return self._points.dropped + self._calls.dropped

    @property
    def loggers(self) -> tuple[Logger, ...]:
        """The loggers that have not failed."""
        return tuple(self._loggers)

    def __enter__(self) -> Batched:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _takes(self) -> bool:
        """Whether this process started the thread and owns the loggers' connections."""
        return not self._is_closed and self._pid == os.getpid()

    # ---- the loggers' thread ----

    def _work(self, is_open: threading.Event) -> None:
        self._tell_each(_open)
        is_open.set()
        while not self._is_closed:
            self._wake.wait(self._interval_s)
            self._wake.clear()
            self._hand_over()
        self._hand_over()
        self._tell_each(lambda logger: logger.close())

    def _hand_over(self) -> None:
        # The caller of flush() has put its entries before, so one batch is enough.
        waiting = [self._flushes.popleft() for _ in range(len(self._flushes))]
        for call in self._calls.take():
            self._tell_each(call)
        points = self._points.take()
        if points:
            self._tell_each(lambda logger: getattr(logger, "log_points", lambda p: log_each(logger, p))(points))
        for done in waiting:
            done.set()

    def _tell_each(self, call: Call) -> None:
        for logger in tuple(self._loggers):
            try:
                call(logger)
            except Exception as error:
                self._loggers.remove(logger)
                tell(
                    f"{type(logger).__name__} failed and is not used again; other loggers continue: "
                    f"{type(error).__name__}: {error}"
                )


def _open(logger: Logger) -> None:
    opening = getattr(logger, "open", None)
    if opening is not None:
        opening()
