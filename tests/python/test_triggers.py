"""What opens windows besides a schedule."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from marey._triggers import OnFile, OnSignal, SlowStep, Triggers, When, as_trigger


def begun(trigger: Any) -> Any:
    assert trigger.begin() is None
    return trigger


def test_a_step_is_slow_against_the_median_of_those_before():
    trigger = begun(SlowStep(2.0, memory=5, least=3, limit=2))
    assert trigger.check(9.0, None) is None  # nothing to compare with
    for seconds in (1.0, 1.1, 0.9, 1.0, 1.0, 1.9):
        assert trigger.check(seconds, None) is None
    assert trigger.check(2.5, None) == "a step took 2500.0 ms, 2.5 times the median of 1000.0 ms"
    for seconds in (10.0, 10.0, 10.0, 10.0, 10.0):
        trigger.check(seconds, None)
    assert trigger.check(11.0, None) is None  # what was slow is usual now
    assert trigger.check(99.0, None) is None  # and it has said so twice


@pytest.mark.parametrize("bad", [{"factor": 1.0}, {"least": 0}, {"least": 60}])
def test_numbers_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match="must be"):
        SlowStep(**bad)


def test_a_signal_is_heard_and_given_back():
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        mine = signal.getsignal(signal.SIGUSR1)
        trigger = begun(OnSignal(signal.SIGUSR1))
        assert trigger.check(0, None) is None
        os.kill(os.getpid(), signal.SIGUSR1)
        assert trigger.check(0, None) == "SIGUSR1 came"
        assert trigger.check(0, None) is None
        assert heard == [signal.SIGUSR1]
        trigger.end()
        assert signal.getsignal(signal.SIGUSR1) is mine
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_that_cannot_be_had_is_one_sentence():
    told: list[str] = []
    thread = threading.Thread(target=lambda: Triggers([OnSignal()], told.append))
    thread.start()
    thread.join()
    Triggers([OnSignal(signal.SIGKILL)], told.append)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    try:
        triggers = Triggers([OnSignal(signal.SIGUSR2), When(lambda _: False)], told.append)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2])
    assert triggers  # the other one works
    assert [line.split(",")[0].split(":")[0] for line in told] == [
        "SIGUSR1 opens no window",
        "SIGKILL opens no window",
        "SIGUSR2 opens no window",
    ]


def test_a_file_counts_when_it_is_touched(tmp_path):
    path = tmp_path / "now"
    path.write_text("")
    trigger = begun(OnFile(path))
    assert trigger.check(0, None) is None  # it was there before
    os.utime(path, ns=(1, 1))
    assert trigger.check(0, None) == f"{path} was touched"
    assert trigger.check(0, None) is None
    path.unlink()
    assert trigger.check(0, None) is None
    path.write_text("")
    assert trigger.check(0, None) == f"{path} was touched"
    assert path.exists()  # other ranks look at it too
    assert "its directory does not exist" in str(OnFile(tmp_path / "a" / "b").begin())


def test_a_condition_says_yes_or_why_and_may_fail():
    def loss_is_high(state: Any) -> bool:
        return bool(state["loss"] > 1)

    trigger = begun(When(loss_is_high, limit=2))
    assert trigger.check(0, {"loss": 0.5}) is None
    assert trigger.check(0, {"loss": 2.0}) == "loss_is_high was met"
    assert trigger.check(0, {"loss": 2.0}) is not None
    assert trigger.check(0, {"loss": 2.0}) is None  # said twice
    assert begun(When(lambda state: "because")).check(0, None) == "because"
    told: list[str] = []
    triggers = Triggers([When(loss_is_high)], told.append)
    assert triggers.check(0, {}) is None
    assert triggers.check(0, {}) is None
    assert told == ["a trigger is ignored, because it raised KeyError: 'loss'"]


def test_shorthands():
    kinds = [
        type(as_trigger(given)) for given in (2.0, 3, signal.SIGUSR1, "now", Path("now"), lambda _: True, OnFile("x"))
    ]
    assert kinds == [SlowStep, SlowStep, OnSignal, OnFile, OnFile, When, OnFile]
    with pytest.raises(TypeError, match="is not a trigger"):
        as_trigger(True)
