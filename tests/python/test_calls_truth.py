"""Profiles of real programs, saved, read and written by the tools: cProfile says what is right."""

from __future__ import annotations

import cProfile
import inspect
import pstats
import threading
import time
from typing import Any

import pytest

import marey

# Signatures split functions; here the names are to be those of cProfile.
PLAIN: dict[str, Any] = {"signatures": False} if "signatures" in inspect.signature(marey.Profile).parameters else {}


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def is_even(n: int) -> bool:
    return n == 0 or is_odd(n - 1)


def is_odd(n: int) -> bool:
    return n != 0 and is_even(n - 1)


def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


def walk(tree: list[Any]) -> int:
    return 1 + sum(map(walk, tree))


def generators() -> int:
    def count(n: int) -> Any:
        yield from range(n)

    return sum(len(str(i)) for i in count(20))


def failing(n: int) -> None:
    if n == 0:
        raise KeyError(n)
    failing(n - 1)


def raising() -> None:
    for n in range(4):
        try:
            failing(n)
        except KeyError:
            continue


PROGRAMS = {
    "recursion": lambda: fib(12),
    "mutual recursion": lambda: is_even(9),
    "recursion in arguments": lambda: ackermann(2, 3),
    "recursion through built-ins": lambda: walk([[], [[], []], [[[]]]]),
    "generators": generators,
    "exceptions": raising,
}


def counts(stats: dict[Any, Any]) -> dict[Any, Any]:
    """Calls and primitive calls of each function and of each of its callers, without the profiler's own."""
    return {
        key: (cc, nc, {caller: from_there[:2] for caller, from_there in callers.items()})
        for key, (cc, nc, _own, _total, callers) in stats.items()
        if "disable" not in key[2]
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_pstats_made_of_a_recording_is_what_cprofile_dumps(tmp_path, name):
    reference, ours = cProfile.Profile(), marey.Profile(**PLAIN)
    reference.runcall(PROGRAMS[name])
    ours.runcall(PROGRAMS[name])
    reference.create_stats()
    ours.save(tmp_path / "saved.klog")
    marey.load(tmp_path / "saved.klog").export("pstats", tmp_path / "made.prof")
    assert counts(pstats.Stats(str(tmp_path / "made.prof")).stats) == counts(reference.stats)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", PROGRAMS)
def test_times_are_those_of_the_profiles_own_table(tmp_path, name):
    ours = marey.Profile(**PLAIN)
    ours.runcall(PROGRAMS[name])
    ours.create_stats()
    ours.save(tmp_path / "saved.klog")
    marey.load(tmp_path / "saved.klog").export("pstats", tmp_path / "made.prof")
    made: dict[Any, Any] = pstats.Stats(str(tmp_path / "made.prof")).stats  # type: ignore[attr-defined]
    assert set(made) == set(ours.stats)
    for key, values in ours.stats.items():
        assert made[key][:2] == values[:2]
        # A nanosecond for each node that is rounded, and what the clock's rate is known better by the file.
        assert made[key][2:4] == pytest.approx(values[2:4], rel=0.02, abs=5e-6)


def test_sums_hold(tmp_path):
    ours = marey.Profile(**PLAIN)

    def both() -> None:
        other = threading.Thread(target=fib, args=(10,), name="other")
        other.start()
        fib(11)
        time.sleep(0.05)
        other.join()

    ours.runcall(both)
    ours.save(tmp_path / "saved.klog")
    recording = marey.load(tmp_path / "saved.klog")
    paths = list(recording.calls("path"))
    (total,) = recording.calls("total")
    for by in ("function", "signature", "path", "thread"):
        assert sum(row["self_ns"] for row in recording.calls(by)) == total["self_ns"]
        assert sum(row["calls"] for row in recording.calls(by)) == total["calls"]
    below: dict[int, int] = {}
    for row in paths:
        below[row["parent"]] = below.get(row["parent"], 0) + row["total_ns"]
    for row in paths:  # what a path took in all is its own time and that of those below it
        assert row["self_ns"] + below.get(row["node"], 0) == pytest.approx(row["total_ns"], rel=1e-3, abs=1000)
    functions = {row["function"]: row for row in recording.calls()}
    assert functions["fib"]["calls"] == 177 + 287
    assert functions["fib"]["primitive_calls"] == 2  # one on each thread: no recursion between them
    assert functions["both"]["total_ns"] > 50e6 > functions["both"]["self_ns"]
    assert len(recording.calls("thread")) == 2


def test_the_slow_shape_that_was_planted_is_found(tmp_path):
    np = pytest.importorskip("numpy")

    def work(a: Any) -> float:
        if a.shape == (8, 8):
            time.sleep(0.2)
        return float(a.sum())

    work(np.ones(2, dtype=np.float32))  # what the first sum() takes is not of a shape
    profile = marey.Profile()
    with profile:
        for shape in ((8,), (8, 8), (64, 64)):
            work(np.ones(shape, dtype=np.float32))
    profile.save(tmp_path / "saved.klog")
    shapes = [row for row in marey.load(tmp_path / "saved.klog").calls("shape") if row["function"] == "work"]
    assert [row["elements"] for row in sorted(shapes, key=lambda row: row["elements"])] == [8, 64, 4096]
    slow = max(shapes, key=lambda row: row["ns_per_element"])
    assert slow["signature"] == "a:ndarray(dtype=float32, shape=(8, 8))"
    assert slow["times_best"] > 2 and slow["share"] > 0.5
