"""Stopwatch: blocks and decorated functions."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

import marey
from marey import Stopwatch


def count(name: str) -> int:
    rows = [row for row in Stopwatch().stats().intervals if row["name"] == name]
    return rows[0]["count"] if rows else 0


def test_a_block_is_a_measurement():
    stopwatch = Stopwatch(0, strict=True)
    for _ in range(3):
        with stopwatch("block") as nothing, stopwatch(name="inner"):
            assert nothing is None
        stopwatch.finish_iter()
    assert (count("block"), count("inner")) == (3, 3)


def test_a_name_gives_the_same_object_which_says_what_it_is():
    stopwatch = Stopwatch()
    block = stopwatch("block")
    assert stopwatch("block") is block
    assert stopwatch("".join(["blo", "ck"])) is block
    assert isinstance(block, marey.Measurement)
    assert block.name == "block"
    assert repr(block) == "<marey.Stopwatch measurement 'block'>"
    with pytest.raises(TypeError, match="made by"):
        marey.Measurement()


def test_a_block_that_raises_ends_its_measurement_and_its_time_counts():
    stopwatch = Stopwatch(0, strict=True)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), stopwatch("fails"):
            raise ZeroDivisionError
        stopwatch.finish_iter()
    assert count("fails") == 2


def test_a_block_that_is_left_by_break_or_return_ends():
    stopwatch = Stopwatch(0, strict=True)

    def leave() -> None:
        for _ in range(3):
            with stopwatch("left"):
                break
        with stopwatch("left"):
            return

    leave()
    stopwatch.finish_iter()
    assert count("left") == 2


def test_a_block_within_one_of_its_name_measures_nothing_more():
    stopwatch = Stopwatch(0, strict=True)
    block = stopwatch("recursive")

    def descend(depth: int) -> None:
        with block:
            if depth:
                descend(depth - 1)
                descend(depth - 1)
            if depth == 3:
                assert stopwatch.stats().intervals.row(name="recursive")["running"]

    descend(3)
    stopwatch.finish_iter()
    descend(3)
    stopwatch.finish_iter()
    assert count("recursive") == 2
    assert len(stopwatch.stats().misuse) == 0


def test_recursion_in_one_name_does_not_end_another():
    stopwatch = Stopwatch(0, strict=True)
    a, b = stopwatch("a"), stopwatch("b")
    with a, b, a, a:
        pass
    stopwatch.finish_iter()
    assert (count("a"), count("b")) == (1, 1)


@pytest.mark.parametrize("decorated", [False, True])
def test_enabled_or_disabled_in_its_midst_it_is_no_misuse(decorated):
    stopwatch = Stopwatch()

    def enable() -> None:
        stopwatch.enable(strict=True)

    def disable() -> None:
        stopwatch.disable()

    for change in (enable, disable):
        if decorated:
            stopwatch("straddles")(change)()
        else:
            with stopwatch("straddles"):
                change()
    assert count("straddles") == 0
    stopwatch.enable(strict=True)
    with stopwatch("straddles"):
        pass
    assert count("straddles") == 1


def test_blocks_of_one_name_on_several_threads_are_apart():
    stopwatch = Stopwatch(0, strict=True)
    block = stopwatch("shared")
    together = threading.Barrier(2)

    def work() -> None:
        with block:
            together.wait()
            with block:
                together.wait()
            together.wait()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count("shared") == 2


# ---- functions ----


def test_a_decorated_function_is_measured_and_looks_as_before():
    stopwatch = Stopwatch(0, strict=True)

    @stopwatch("load")
    def load(a: int, *, b: int = 2) -> int:
        """Add."""
        return a + b

    assert load(1) == 3
    assert load(1, b=5) == 6
    assert (load.__name__, load.__doc__) == ("load", "Add.")
    assert list(inspect.signature(load).parameters) == ["a", "b"]
    assert repr(load).startswith("<marey.Stopwatch over <function")
    stopwatch.finish_iter()
    assert count("load") == 2


def test_a_decorated_function_that_raises_is_measured():
    stopwatch = Stopwatch(0, strict=True)

    @stopwatch("fails")
    def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        fails()
    assert count("fails") == 1


def test_a_recursive_function_counts_once():
    stopwatch = Stopwatch(0, strict=True)

    @stopwatch("sum")
    def add_up(n: int) -> int:
        return n + add_up(n - 1) if n else 0

    assert add_up(10) == 55
    assert count("sum") == 1


def test_methods_are_decorated_of_every_kind():
    stopwatch = Stopwatch(0, strict=True)

    class Model:
        @stopwatch("forward")
        def forward(self, x: int) -> int:
            return x

        @stopwatch("build")
        @classmethod
        def build(cls) -> type:
            return cls

        @stopwatch("static")
        @staticmethod
        def static(x: int) -> int:
            return x

    assert (Model().forward(2), Model.build(), Model.static(3)) == (2, Model, 3)
    assert (count("forward"), count("build"), count("static")) == (1, 1, 1)


def test_a_generator_is_measured_while_it_works():
    stopwatch = Stopwatch(0, strict=True)

    @stopwatch("data")
    def batches():
        yield from range(3)

    for _ in batches():
        assert not stopwatch.stats().intervals.row(name="data")["running"]
        stopwatch.finish_iter()
    assert count("data") == 4


def test_coroutines_are_refused_because_they_take_turns():
    async def task() -> None:
        await asyncio.sleep(0)

    async def items():
        yield 1

    for function in (task, items):
        with pytest.raises(TypeError, match=r"marey\.range"):
            Stopwatch()("task")(function)


def test_what_is_no_function_is_refused():
    block = Stopwatch()("a")
    for wrong in (1, "a", int):
        with pytest.raises(TypeError):
            block(wrong)
    with pytest.raises(TypeError):
        block()
