"""torch.profiler traces of a few steps of each epoch, named `worker_<rank>.<ns>.pt.trace.json` as in itwinai.

TensorBoard and Perfetto read these names. Each epoch starts a new schedule, so a window never reaches into the next
one. The first step, which waits for the loader to start, is left out if there are enough others.
"""

from __future__ import annotations

import os
import time

from marey._engine_torch import TorchEngine
from marey._schedule import Action
from marey._window import Driver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from marey._window import Window


class TraceEngine(TorchEngine):
    """torch.profiler with the settings of itwinai, keeping only the plain trace."""

    def __init__(self, folder: str) -> None:
        """Keep traces in `folder`."""
        super().__init__(cpu=True, cuda=True)
        self.folder = folder
        self.paths: list[str] = []

    def save(self, window: Window) -> None:
        """Write the trace under a temporary name first, so that readers only see complete files."""
        profile, self._profile = self._profile, None
        assert profile is not None
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, f"worker_{window.rank}.{time.time_ns()}.pt.trace.json")
        began_ns = time.perf_counter_ns()
        profile.export_chrome_trace(path + ".part")
        window.engine_ns += time.perf_counter_ns() - began_ns
        if not os.path.exists(path + ".part"):
            raise OSError(f"torch could not write {path}")
        os.replace(path + ".part", path)
        self.paths.append(path)


class _EpochSchedule:
    """One idle step, one warm-up step, then recorded steps; fewer if the epoch is known to be short."""

    def __init__(self, active: int, n_steps: Optional[int]) -> None:
        n = active + 2 if n_steps is None else n_steps
        self.wait = int(n >= active + 2)
        self.warmup = int(n >= 2)
        self.active = max(1, min(active, n - self.wait - self.warmup))

    def __call__(self, step: int) -> Action:
        first = self.wait + self.warmup
        if step < self.wait or step >= first + self.active:
            return Action.NONE
        if step < first:
            return Action.WARMUP
        return Action.RECORD if step < first + self.active - 1 else Action.RECORD_AND_SAVE


class Traces:
    """Receives epochs and steps, and records some of them."""

    def __init__(self, folder: str, wait_epochs: int, n_steps: int, active_epochs: Optional[int] = None) -> None:
        """After `wait_epochs`, record `n_steps` of each of `active_epochs`, or of all epochs."""
        self.engine = TraceEngine(folder)
        self._wait_epochs = wait_epochs
        self._end_epoch = None if active_epochs is None else wait_epochs + active_epochs
        self._n_steps_before: Optional[int] = None  # of the previous epoch
        self._n_steps = n_steps
        self._n_epochs = 0
        self.took_ns = 0  # training time spent on starting, stopping and writing
        self._driver: Optional[Driver] = None

    def begin(self, n_steps: Optional[int] = None) -> None:
        """Begin an epoch of `n_steps` steps, if known."""
        self.end()
        self._n_epochs += 1
        is_over = self._end_epoch is not None and self._n_epochs > self._end_epoch
        if self._n_epochs > self._wait_epochs and not is_over:
            self.start(n_steps if n_steps is not None else self._n_steps_before)

    def begin_next(self) -> None:
        """Begin the next epoch of a loop that only marks boundaries between epochs."""
        self._n_epochs = max(self._n_epochs, 1)  # the steps so far were the first epoch
        self.begin()

    def expect(self, n_steps: Optional[int]) -> None:
        """Set the number of steps of the current epoch, before its first step ends."""
        driver = self._driver
        if driver is not None and driver.is_running and driver.step_num == 0:
            driver.abandon()
            self.start(n_steps)

    def start(self, n_steps: Optional[int] = None) -> None:
        """Begin the schedule of an epoch, or of a training without epochs."""
        self._driver = Driver(
            _EpochSchedule(self._n_steps, n_steps), self.engine, self.engine.folder, on_saved=self._saved
        )
        self._driver.start()

    def _saved(self, window: Window) -> None:
        self.took_ns += window.wait_ns

    def step(self) -> None:
        """End a step."""
        if self._driver is not None:
            self._driver.step()

    def end(self, why: str = "the epoch ended before the window did") -> None:
        """End the epoch or the training; an open window is saved."""
        if self._driver is not None:
            if self._n_epochs > 0:  # otherwise these steps precede the first epoch
                self._n_steps_before = self._driver.step_num or None
            self._driver.stop(why)
            self._driver = None
