"""Recorded windows of a training: engines, windows, and the driver of both.

    driver = Driver(Schedule(4, 4, 1, 1), engine, output_dir="profiler_output", selection={"averages"})
    driver.start()
    for batch in loader:
        train(batch)
        driver.step()
    driver.stop()

The driver counts steps, queries the schedule, and makes the engine do what torch.profiler would do at that step. It
runs on the training thread. Errors are printed, and training continues.
"""

from __future__ import annotations

import collections
import json
import os
import re
import sys
import time
from dataclasses import dataclass, field

from marey import _native
from marey._printable import printable
from marey._schedule import Action, Do, transition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any, Optional, Protocol, Union

    class Engine(Protocol):
        """A recording engine. All calls come from the training thread, in the order of `_schedule.transition`."""

        def prepare(self) -> None:
            """Prepare: slow initialization belongs here."""

        def start(self) -> None:
            """Start recording."""

        def stop(self, window: Window) -> None:
            """Stop recording; `window` is complete. The engine adds time spent in foreign code to `engine_ns`."""

        def save(self, window: Window) -> None:
            """Pass the data to a background process and return immediately. OSError: this window is lost."""

        def discard(self) -> None:
            """Discard the recorded data."""

        def step_begin(self, step: int) -> None:
            """Begin a recorded step, counted from 0."""

        def step_end(self) -> None:
            """End the current step, if any."""


_WINDOW_NAME = re.compile(r"iteration_\d+(?:\.(\d+))?")


@dataclass
class Window:
    """Steps that are recorded together, and where they are saved."""

    output_dir: str
    rank: int
    world_size: int
    selection: frozenset[str]  # artifacts besides the trace, by their names in `marey artifacts`
    first_step: int
    start_ns: int  # Unix time
    stop_ns: int = 0
    step_num: int = 0  # finished steps, as torch.profiler counts them
    run: int = 1  # number of this run among those with windows in this directory
    n_steps: int = 0  # complete steps
    is_partial: bool = False
    why: Optional[str] = None  # why it is partial, or what opened it, if not the schedule
    roles: list[list[Any]] = field(default_factory=list)  # roles of storages, for `marey artifacts`
    notes: list[str] = field(default_factory=list)  # other events in it: an evaluation, a checkpoint
    engine_ns: int = 0  # time of the profiler at its end
    wait_ns: int = 0  # total time that training waited at its end
    prepare_ns: int = 0  # time that training waited at the start of the warm-up
    begin_ns: int = 0  # and at the start of the window

    @property
    def folder(self) -> str:
        """The folder of its artifacts."""
        name = f"iteration_{self.step_num}"
        return os.path.join(self.output_dir, name if self.run == 1 else f"{name}.{self.run}")

    def make_folder(self) -> None:
        """Create the folder, with a note if the window is partial."""
        try:
            os.mkdir(self.folder)  # on the training thread, where makedirs() would take longer
        except OSError:
            os.makedirs(self.folder, exist_ok=True)
        if self.is_partial:
            path = os.path.join(self.folder, f"rank{self.rank}_partial.txt")
            with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"This window has {self.n_steps} whole steps, from step {self.first_step} on: {self.why}.\n")

    def trace_name(self) -> str:
        """Return the trace's name, as torch's TensorBoard handler names it and TensorBoard finds it."""
        now = time.localtime()
        minute = f"{now.tm_year}-{now.tm_mon}-{now.tm_mday}-{now.tm_hour}-{now.tm_min}"
        return f"rank{self.rank}-{minute}.{time.time_ns()}.pt.trace.json"

    def about(self) -> str:
        """Return the trace's member "marey": what `marey artifacts` cannot derive from the trace."""
        return json.dumps(
            {
                "version": 1,
                "rank": self.rank,
                "world_size": self.world_size,
                "step": self.step_num,
                "steps": self.n_steps,
                "partial": self.is_partial,
                "why": self.why,
                "notes": self.notes,
                "roles": self.roles,
            }
        )


def say(sentence: str) -> None:
    """Print a message for the user."""
    print(f"marey: {printable(sentence)}", file=sys.stderr, flush=True)


def next_run(output_dir: str) -> int:
    """Return the number of this run into the directory: one after the last that left windows there.

    No earlier run is overwritten. Ranks need no communication: a window ends after a step of all ranks, and each rank
    checks before its first window.
    """
    try:
        names = os.listdir(output_dir)
    except OSError:  # not created yet, or the writer will report the error
        return 1
    found = (_WINDOW_NAME.fullmatch(name) for name in names)
    return 1 + max((int(match[1] or 1) for match in found if match is not None), default=0)


def who_am_i() -> tuple[int, int]:
    """The rank and the number of ranks: from torch.distributed, else from the launcher, else 0 of 1."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    rank, world_size = _native.rank()
    return max(rank, 0), max(world_size, 1)


class Driver:
    """Counts steps and records some of them with an engine."""

    def __init__(
        self,
        schedule: Callable[[int], Action],
        engine: Engine,
        output_dir: Union[str, os.PathLike[str]],
        selection: Collection[str] = (),
        on_saved: Optional[Callable[[Window], None]] = None,
    ) -> None:
        """`on_saved` is called for each saved window."""
        self.schedule = schedule
        self.engine = engine
        self.output_dir = os.path.abspath(output_dir)  # the background process does not follow a chdir()
        self.selection = frozenset(selection)
        self.on_saved = on_saved
        self.step_num = 0
        self.action = Action.NONE
        self.window: Optional[Window] = None  # being recorded
        self.windows: collections.deque[Window] = collections.deque(maxlen=16)  # saved recently
        self.is_running = False
        self._run = 1
        self._opened: collections.deque[Action] = collections.deque()  # remaining steps of a window opened by a trigger
        self._opened_by: Optional[str] = None
        self._prepare_ns = 0

    # ---- steps ----

    def start(self) -> None:
        """Begin with step 0."""
        self.is_running = True
        self._run = next_run(self.output_dir)
        self.step_num = 0
        self.action = Action.NONE
        self._go_on(self.schedule(0))

    def step(self) -> None:
        """End a step and begin the next one."""
        if not self.is_running:
            return
        if self.window is not None:
            self._try(self.engine.step_end)
        self.step_num += 1
        self._go_on(self._opened.popleft() if self._opened else self.schedule(self.step_num))

    def stop(self, why: Optional[str] = None) -> None:
        """End the steps. An open window is saved and marked; `why` is the reason."""
        if not self.is_running:
            return
        if self.window is not None:
            self._try(self.engine.step_end)
            self.window.is_partial = True
            self.window.why = why or "the training ended before the window did"
        self._transit(None)
        self.is_running = False

    def abandon(self) -> None:
        """Stop without saving."""
        self.is_running = False
        self.window = None
        self.engine.discard()

    def open(self, why: str, warmup: int, active: int) -> bool:
        """Open a window with the next step: `warmup` steps, then `active` ones.

        Returns False if a window is open or the schedule would open one before this one ends.
        """
        following = range(self.step_num + 1, self.step_num + 1 + warmup + active)
        if not self.is_running or self.action is not Action.NONE or self._opened:
            return False
        if any(self.schedule(step) is not Action.NONE for step in following):
            return False
        actions = [Action.WARMUP] * warmup + [Action.RECORD] * (active - 1) + [Action.RECORD_AND_SAVE]
        self._opened.extend(actions)
        self._opened_by = why
        return True

    # ---- between steps ----

    def _go_on(self, after: Action) -> None:
        self._transit(after)
        if self.window is not None and self.is_running:
            number = self.step_num
            self._try(lambda: self.engine.step_begin(number))

    def _transit(self, after: Optional[Action]) -> None:
        before, self.action = self.action, after or Action.NONE
        for do in transition(before, after):
            if self.is_running:
                self._do(do)

    def _do(self, do: Do) -> None:
        if do is Do.PREPARE:
            began_ns = time.perf_counter_ns()
            self._try(self.engine.prepare)
            self._prepare_ns = time.perf_counter_ns() - began_ns
        elif do is Do.START:
            self._begin_window()
        elif do is Do.STOP:
            self._end_window()
        elif do is Do.SAVE:
            self._save_window()
        else:
            self.window = None
            self._try(self.engine.discard)

    def _begin_window(self) -> None:
        rank, world_size = who_am_i()
        self.window = Window(
            self.output_dir, rank, world_size, self.selection, first_step=self.step_num, start_ns=time.time_ns()
        )
        window = self.window
        window.why, self._opened_by = self._opened_by, None
        window.prepare_ns = self._prepare_ns
        began_ns = time.perf_counter_ns()
        self._try(self.engine.start)
        window.begin_ns = time.perf_counter_ns() - began_ns

    def _end_window(self) -> None:
        window = self.window
        if window is None:
            return
        if self.windows and self.windows[-1].step_num == self.step_num and self.windows[-1].run == self._run:
            self._run += 1  # work after the last step is not part of the window that ended with it
        window.step_num = self.step_num
        window.run = self._run
        window.n_steps = self.step_num - window.first_step
        window.stop_ns = time.time_ns()
        began_ns = time.perf_counter_ns()
        self._try(lambda: self.engine.stop(window))
        window.wait_ns += time.perf_counter_ns() - began_ns

    def _save_window(self) -> None:
        window, self.window = self.window, None
        if window is None:
            return
        began_ns = time.perf_counter_ns()
        try:
            self.engine.save(window)
        except OSError as error:
            say(f"the window of rank {window.rank} that ended with step {window.step_num} is lost: {error}")
            return
        except Exception as error:
            self._give_up(error)
            return
        finally:
            window.wait_ns += time.perf_counter_ns() - began_ns
            window.roles.clear()
        self.windows.append(window)
        if self.on_saved is not None:
            self.on_saved(window)

    # ---- errors ----

    def _try(self, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Stop profiling after an error, which must never end a training."""
        if not self.is_running:
            return
        self.is_running = False
        self.window = None
        reason = str(error) if isinstance(error, _native.MareyError) else f"{type(error).__name__}: {error}"
        say(f"profiling is off from step {self.step_num} on, training continues: {reason}")
        try:
            self.engine.discard()
        except Exception as second:
            say(f"the profiler could not be stopped either: {second}")
