"""The schedule against torch's own, and the driver that runs an engine by it."""

from __future__ import annotations

import itertools
import os
import warnings
from typing import Any, Optional

import pytest

from marey._schedule import Action, Do, Schedule, never, transition
from marey._window import Driver, Window

pytestmark = pytest.mark.filterwarnings("ignore:Profiler won't be using warmup", "ignore:a schedule without warm-up")


def torch_profiler() -> Any:
    return pytest.importorskip("torch.profiler")


def small_tuples() -> list[tuple[int, ...]]:
    return list(itertools.product((0, 1, 3), (0, 1, 2), (1, 2, 3), (0, 1, 2), (0, 1, 4), (0, 1)))


@pytest.mark.needs_torch
def test_each_step_is_what_torch_says_it_is():
    profiler = torch_profiler()
    names = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
    for numbers in small_tuples():
        settings = dict(zip(names, numbers))
        ours, theirs = Schedule(**settings), profiler.schedule(**settings)
        for step in range(40):
            assert ours(step).name == theirs(step).name, (settings, step)


@pytest.mark.parametrize("bad", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"repeat": -1}, {"skip_first": -1}])
def test_numbers_that_do_not_fit_are_named(bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))}="):
        Schedule(**{"wait": 1, "warmup": 1, "active": 1, **bad})
    with pytest.raises(ValueError, match="counted from 0"):
        Schedule(1, 1, 1)(-1)


def test_no_warm_up_is_a_warning():
    with pytest.warns(UserWarning, match="without warm-up"):
        Schedule(1, 0, 1)


@pytest.mark.needs_torch
def test_each_transition_is_torchs():
    """Step torch's profiler, with its actions replaced by a log."""
    profiler = torch_profiler()

    class Written(profiler.profile):  # type: ignore[misc,name-defined]
        def __init__(self, **settings: Any) -> None:
            self.done: list[Do] = []
            super().__init__(**settings)

        def prepare_trace(self) -> None:
            self.done.append(Do.PREPARE)

        def start_trace(self) -> None:
            self.done.append(Do.START)

        def stop_trace(self) -> None:
            self.done.append(Do.STOP)

        def _trace_ready(self) -> None:
            self.done.append(Do.SAVE)

    def ours(before: Action, after: Optional[Action]) -> list[Do]:
        return [do for do in transition(before, after) if do is not Do.DISCARD]

    def torchs(action: Action) -> Any:
        return profiler.ProfilerAction[action.name]

    for before, after in itertools.product(Action, Action):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            profile = Written(schedule=lambda step, pair=(before, after): torchs(pair[min(step, 1)]))
            profile.start()
            assert profile.done == ours(Action.NONE, before)
            profile.done.clear()
            profile.step()
            n_reported = len(told)
            assert profile.done == ours(before, after), (before, after)
            assert len(told) == 2 * n_reported  # they warn, and so do we
            profile.done.clear()
            profile.stop()
            assert profile.done == ours(after, None)


def test_what_is_dropped_is_discarded():
    for pair in itertools.product(Action, (*Action, None)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = transition(*pair)
        for i, do in enumerate(done):
            if do is Do.STOP:
                assert done[i + 1] in (Do.SAVE, Do.DISCARD)


# ---- the driver ----


class Notebook:
    """An engine that logs its calls."""

    def __init__(self, fails_at: str = "", failure: Optional[Exception] = None) -> None:
        self.lines: list[str] = []
        self.fails_at = fails_at
        self.failure = failure or RuntimeError("no")

    def note(self, line: str) -> None:
        self.lines.append(line)
        if line.split()[0] == self.fails_at:
            raise self.failure

    def prepare(self) -> None:
        self.note("prepare")

    def start(self) -> None:
        self.note("start")

    def stop(self, window: Window) -> None:
        self.note(f"stop {window.step_num}")

    def save(self, window: Window) -> None:
        self.note(f"save {window.n_steps}{' partial' if window.is_partial else ''}")

    def discard(self) -> None:
        self.note("discard")

    def step_begin(self, step: int) -> None:
        self.note(f"begin {step}")

    def step_end(self) -> None:
        self.note("end")


def drive(driver: Driver, n_steps: int) -> None:
    driver.start()
    for _ in range(n_steps):
        driver.step()


def test_windows_are_where_the_schedule_has_them(tmp_path):
    engine = Notebook()
    driver = Driver(Schedule(1, 1, 2, 2), engine, tmp_path)
    drive(driver, 10)
    driver.stop()
    one = ["prepare", "start", "begin 2", "end", "begin 3", "end", "stop 4", "save 2"]
    two = ["prepare", "start", "begin 6", "end", "begin 7", "end", "stop 8", "save 2"]
    assert engine.lines == one + two
    assert [w.folder for w in driver.windows] == [str(tmp_path / "iteration_4"), str(tmp_path / "iteration_8")]
    assert not any(w.is_partial for w in driver.windows)


@pytest.mark.parametrize(
    ("n_steps", "lines"),
    [
        (0, []),
        (1, ["prepare", "start", "stop 1", "discard"]),
        (2, ["prepare", "start", "begin 2", "end", "stop 2", "save 0 partial"]),
        (3, ["prepare", "start", "begin 2", "end", "begin 3", "end", "stop 3", "save 1 partial"]),
        (4, ["prepare", "start", "begin 2", "end", "begin 3", "end", "stop 4", "save 2"]),
    ],
)
def test_stopped_in_each_state(tmp_path, n_steps, lines):
    engine = Notebook()
    driver = Driver(Schedule(1, 1, 2, 1), engine, tmp_path)
    drive(driver, n_steps)
    driver.stop("because")
    driver.stop("again")
    assert engine.lines == lines
    assert [w.why for w in driver.windows if w.is_partial] == ["because"] * (n_steps in (2, 3))


def test_windows_side_by_side(tmp_path):
    engine = Notebook()
    driver = Driver(Schedule(0, 0, 1), engine, tmp_path)
    drive(driver, 2)
    driver.stop()
    one = ["prepare", "start", "begin 0", "end", "stop 1", "save 1"]
    two = ["prepare", "start", "begin 1", "end", "stop 2", "save 1"]
    assert engine.lines == [*one, *two, "prepare", "start", "begin 2", "end", "stop 2", "save 0 partial"]
    names = [os.path.basename(w.folder) for w in driver.windows]
    assert names == ["iteration_1", "iteration_2", "iteration_2.2"]  # the last has what came behind step 2


@pytest.mark.parametrize(
    ("there", "name"),
    [
        ((), "iteration_2"),
        (("iteration_9",), "iteration_2.2"),
        (("iteration_2", "iteration_4.2", "iteration_9.10"), "iteration_2.11"),
        (("iteration_x", "iteration_2.old", "my_iteration_2", "marey_engine.marey"), "iteration_2"),
    ],
)
def test_a_run_into_a_directory_with_windows_has_names_of_its_own(tmp_path, there, name):
    for earlier in there:
        (tmp_path / earlier).mkdir()
    driver = Driver(Schedule(0, 1, 1, 1), Notebook(), tmp_path)
    drive(driver, 3)
    assert [w.folder for w in driver.windows] == [str(tmp_path / name)]


def test_a_trigger_opens_a_window_of_its_own(tmp_path):
    engine = Notebook()
    driver = Driver(never, engine, tmp_path)
    drive(driver, 5)
    assert driver.open("slow", warmup=1, active=2)
    assert not driver.open("again", warmup=1, active=2)
    for _ in range(5):
        driver.step()
    assert engine.lines == ["prepare", "start", "begin 7", "end", "begin 8", "end", "stop 9", "save 2"]
    assert driver.windows[-1].why == "slow"
    assert driver.open("once more", warmup=0, active=1)


def test_a_trigger_gives_way_to_the_schedule(tmp_path):
    driver = Driver(Schedule(5, 1, 1, 1), Notebook(), tmp_path)
    drive(driver, 2)
    assert not driver.open("slow", warmup=2, active=2)
    assert driver.open("slow", warmup=1, active=1)


@pytest.mark.parametrize("where", ["prepare", "start", "begin", "end", "stop", "save"])
def test_an_engine_that_fails_is_switched_off_with_a_sentence(tmp_path, capsys, where):
    engine = Notebook(where)
    driver = Driver(Schedule(1, 1, 1, 2), engine, tmp_path)
    drive(driver, 10)
    driver.stop()
    assert engine.lines[-1] == "discard"
    assert engine.lines.count("prepare") == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert "training continues: RuntimeError: no" in told[0]


def test_a_window_that_cannot_be_saved_does_not_stop_the_next(tmp_path, capsys):
    engine = Notebook("save", OSError(28, "No space left on device"))
    driver = Driver(Schedule(0, 1, 1, 2), engine, tmp_path)
    drive(driver, 5)
    driver.stop()
    assert [line.split()[0] for line in engine.lines].count("save") == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert "ended with step 2 is lost" in told[0]
    assert "No space left" in told[0]
