"""CPU use of measured intervals, with the worker processes that data loaders have.

Work is measured in processor time, and compared with what the processes say of themselves: a busy machine makes these
tests slower and no less true.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import pytest

import marey


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def work(pipe: Connection) -> None:
    """Burn what is asked for and say what it took, until nothing is."""
    while (seconds := pipe.recv()) is not None:
        begin = time.process_time()
        burn(seconds)
        pipe.send(time.process_time() - begin)


@pytest.fixture
def stopwatch() -> Iterator[marey.Stopwatch]:
    watch = marey.Stopwatch()
    watch.enable()
    yield watch
    watch.disable()
    watch.reset()


def seconds_of(stopwatch: marey.Stopwatch, kind: str) -> float:
    """Processor seconds within "busy": busy processors times the time it lasted."""
    stats = stopwatch.stats()
    return float(stats.usage.row(name="busy")[kind]) * stats.intervals.row(name="busy")["total_ns"] / 1e9


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_two_busy_workers_read_as_the_sum_of_their_processor_time(stopwatch, method):
    context = multiprocessing.get_context(method)
    pipes, processes = [], []
    for _ in range(2):
        ours, theirs = context.Pipe()
        processes.append(context.Process(target=work, args=(theirs,), daemon=True))
        processes[-1].start()
        pipes.append(ours)
    for pipe in pipes:  # up and running, and with a past that does not count
        pipe.send(0.1)
        pipe.recv()
    stopwatch.set_cpu_usage_meas_name("busy", ("process", "tree"))
    begin = time.process_time()
    with stopwatch("busy"):
        for pipe in pipes:
            pipe.send(0.3)
        spent = sum(pipe.recv() for pipe in pipes)
        own = time.process_time() - begin
    for pipe, process in zip(pipes, processes):
        pipe.send(None)
        process.join()
    assert seconds_of(stopwatch, "tree_cpu") == pytest.approx(spent + own, rel=0.03, abs=0.005)
    assert seconds_of(stopwatch, "process_cpu") == pytest.approx(own, rel=0.03, abs=0.005)


def test_a_worker_that_comes_and_goes_within_is_counted(stopwatch):
    context = multiprocessing.get_context("fork")
    stopwatch.set_cpu_usage_meas_name("busy", "tree")
    begin = time.process_time()
    with stopwatch("busy"):
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs,))
        process.start()
        ours.send(0.3)
        spent = ours.recv()
        ours.send(None)
        process.join()
        own = time.process_time() - begin
    # What the child needs to begin and to end is counted as well.
    assert spent + own <= seconds_of(stopwatch, "tree_cpu") < (spent + own) * 1.03 + 0.1


def test_threads_are_of_the_process_and_the_thread_has_its_own(stopwatch):
    stopwatch.set_cpu_usage_meas_name("busy", ("thread", "process"))
    helper = threading.Thread(target=burn, args=(0.2,))
    begin, thread_begin = time.process_time(), time.thread_time()
    with stopwatch("busy"):
        helper.start()
        burn(0.1)
        helper.join()
        own, of_thread = time.process_time() - begin, time.thread_time() - thread_begin
    assert seconds_of(stopwatch, "process_cpu") == pytest.approx(own, rel=0.03, abs=0.005)
    assert seconds_of(stopwatch, "thread_cpu") == pytest.approx(of_thread, rel=0.03, abs=0.005)


def test_sleep_uses_no_processor(stopwatch):
    stopwatch.set_cpu_usage_meas_name("busy", ("thread", "process", "tree"))
    burn(0.1)
    with stopwatch("busy"):
        time.sleep(0.2)
    burn(0.1)
    for kind in ("thread_cpu", "process_cpu", "tree_cpu"):
        assert seconds_of(stopwatch, kind) < 0.02
