"""Ranges over what waits: coroutines, `async with`, async generators."""

from __future__ import annotations

import asyncio
import inspect

import pytest

import marey


def async_counts(path):
    table = marey.load(path).async_ranges
    return dict(zip(table["name"], table["count"]))


def test_a_coroutine_is_one_async_range_from_end_to_end(record):
    @marey.range("task")
    async def task(x):
        await asyncio.sleep(0.02)
        return x

    async def main():
        return await asyncio.gather(*(task(i) for i in range(5)))

    with record() as path:
        assert asyncio.run(main()) == [0, 1, 2, 3, 4]
    row = marey.load(path).async_ranges.row(name="task")
    assert row["count"] == 5
    assert row["min_ns"] >= 15_000_000
    assert len(marey.load(path).ranges) == 0


def test_they_are_still_what_they_were():
    @marey.range
    async def coroutine():
        """Wait."""

    @marey.range
    async def generator():
        yield

    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.isasyncgenfunction(generator)
    assert coroutine.__doc__ == "Wait."


def test_async_with_is_an_async_range(record):
    async def task(seconds):
        async with marey.range("waits") as given:
            assert given is None
            await asyncio.sleep(seconds)

    async def main():
        await asyncio.gather(task(0.05), task(0.01), task(0.03))

    with record() as path:
        asyncio.run(main())
    row = marey.load(path).async_ranges.row(name="waits")
    assert row["count"] == 3
    # Each end met its own beginning: they overlap, and end in another order than they began.
    assert 9_000_000 <= row["min_ns"] < 28_000_000
    assert row["max_ns"] >= 48_000_000


def test_async_with_nests_and_recurs(record):
    async def recur(n):
        async with marey.range("recur"), marey.range("inside"):
            await asyncio.sleep(0)
            if n:
                await recur(n - 1)

    with record() as path:
        asyncio.run(recur(4))
    assert async_counts(path) == {"recur": 5, "inside": 5}
    assert len(marey.load(path).open) == 0


def test_ranges_left_in_another_order_than_entered(record):
    async def main():
        first, second = marey.range("first"), marey.range("second")
        await first.__aenter__()
        await second.__aenter__()
        await first.__aexit__(None, None, None)
        await second.__aexit__(None, None, None)

    with record() as path:
        asyncio.run(main())
    assert async_counts(path) == {"first": 1, "second": 1}


def test_switching_on_in_between_keeps_pairs(tmp_path):
    async def main():
        async with marey.range("outer"):
            marey.start(tmp_path / "run.marey")
            async with marey.range("outer"):
                await asyncio.sleep(0)

    asyncio.run(main())
    marey.stop()
    assert async_counts(tmp_path / "run.marey") == {"outer": 1}


def test_a_long_chain_of_tasks_does_not_grow(record):
    async def link(n):
        async with marey.range("link"):
            if n:
                await asyncio.create_task(link(n - 1))

    with record() as path:
        asyncio.run(link(200))
    assert async_counts(path) == {"link": 201}


def test_exceptions_and_cancellation_end_the_range(record):
    @marey.range("cancelled")
    async def forever():
        async with marey.range("inside"):
            await asyncio.sleep(60)

    @marey.range("fails")
    async def fails():
        raise ValueError("as it should")

    async def main():
        task = asyncio.create_task(forever())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ValueError, match="as it should"):
            await fails()

    with record() as path:
        asyncio.run(main())
    assert async_counts(path) == {"cancelled": 1, "inside": 1, "fails": 1}


def test_async_generators_have_a_range_for_each_item(record):
    @marey.range("items")
    async def items(n):
        for i in range(n):
            await asyncio.sleep(0)
            got = yield i
            assert got is None

    async def main():
        return [i async for i in items(3)]

    with record() as path:
        assert asyncio.run(main()) == [0, 1, 2]
    assert async_counts(path) == {"items": 4}


def test_async_generators_take_values_exceptions_and_close():
    seen = []

    @marey.range("talks")
    async def talks():
        try:
            seen.append((yield "first"))
            try:
                yield "second"
            except KeyError:
                yield "caught"
        finally:
            await asyncio.sleep(0)
            seen.append("closed")

    async def main():
        generator = talks()
        assert await generator.__anext__() == "first"
        assert await generator.asend("sent") == "second"
        assert await generator.athrow(KeyError()) == "caught"
        await generator.aclose()
        assert seen == ["sent", "closed"]
        with pytest.raises(StopAsyncIteration):
            await generator.__anext__()

    asyncio.run(main())


def test_import_marey_does_not_import_asyncio(run_python):
    run_python("""
        import sys
        import marey
        heavy = {"asyncio", "inspect", "typing", "numpy", "torch", "pandas", "functools", "re", "html"}
        before_us = set(sys.modules) & heavy
        print(sorted(before_us))
        assert "asyncio" not in sys.modules and "inspect" not in sys.modules
        assert "torch" not in sys.modules and "numpy" not in sys.modules
    """)
