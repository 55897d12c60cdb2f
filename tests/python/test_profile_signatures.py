"""Tables of call profiles, split by what functions were called with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import marey


def test_the_documented_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np = pytest.importorskip("numpy")
    program = """
import numpy as np
import marey


def dot(a, b):
    sum = 0
    for i in range(len(a)):
        sum += a[i] * b[i]
    return sum


a = np.arange(16, dtype=np.float32)
b = np.arange(16, dtype=np.float32)
"""
    path = tmp_path / "dot.py"
    path.write_text(program)
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    assert np is names["np"]
    profile = marey.Profile()
    profile.enable()
    names["dot"](names["a"], names["b"])
    profile.disable()
    profile.print_stats()
    lines = capsys.readouterr().out.splitlines()
    arrays = "a:ndarray(dtype=float32, shape=(16,)), b:ndarray(dtype=float32, shape=(16,))"
    (row,) = [line for line in lines if "dot.py" in line]
    assert row.split(None, 5)[5] == f"dot.py:6(dot({arrays}))" and row.split()[0] == "1"
    (row,) = [line for line in lines if "builtins.len" in line]
    assert row.split()[0] == "1"


def labels(profile: marey.Profile) -> dict[str, tuple[int, int]]:
    profile.create_stats()
    return {label[2]: sums[:2] for label, sums in profile.stats.items() if label[0] == __file__}


class Account:
    def __init__(self, owner: str) -> None:
        self.owner = owner

    def add(self, amount: float, *more: float, note: Any = None, **rest: int) -> None:
        pass


def test_calls_are_split_by_what_they_are_called_with() -> None:
    with marey.Profile() as profile:
        account = Account("a")
        account.add(1)
        account.add(2.5, 1, note="x", c=3)
        account.add(3)
    found = labels(profile)
    assert found["Account(owner:str)"] == (1, 1)
    assert [sums for name, sums in found.items() if name.startswith("Account.add(amount:int,")] == [(2, 2)]
    assert sum(name.startswith("Account.add(amount:float") for name in found) == 1


def test_recursion_is_reported_by_signature() -> None:
    def down(n: Any) -> Any:
        return n if n <= 0 else down(float(n - 1) if isinstance(n, int) else int(n - 1))

    with marey.Profile(builtins=False) as profile:
        down(3)
    found = labels(profile)
    assert found["down(n:int)"] == (1, 2) and found["down(n:float)"] == (1, 2)


def test_a_generator_keeps_the_signature_it_began_with() -> None:
    def changing(n: Any) -> Iterator[Any]:
        for _ in range(3):
            yield n
            n = str(n)

    with marey.Profile(builtins=False) as profile:
        first, second = changing(1), changing(2.0)
        for _ in zip(first, second):
            pass
    found = labels(profile)
    assert found["changing(n:int)"] == (4, 4)
    assert found["changing(n:float)"] == (3, 3)
    assert not any("changing(n:str" in name for name in found)


def test_what_lies_is_not_asked() -> None:
    asked: list[str] = []

    def lie(self: Any) -> Any:
        asked.append("__class__")
        raise RuntimeError

    def tell(self: Any, name: str) -> Any:
        asked.append(name)
        raise RuntimeError(name)

    Liar = type("Liar", (), {"__class__": property(lie), "__getattr__": tell})

    def take(thing: Any) -> None:
        pass

    with marey.Profile() as profile:
        take(Liar())
    assert asked == []
    assert labels(profile)["take(thing:Liar)"] == (1, 1)


def test_formatters_of_the_user_are_not_profiled() -> None:
    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

    def helper(point: Point) -> str:
        return f"Point<{point.x}>"

    def where(point: Point) -> None:
        pass

    marey.profiler.register(Point, lambda point: helper(point))
    try:
        with marey.Profile() as profile:
            where(Point(3))
    finally:
        marey.profiler.register(Point, None)
    found = labels(profile)
    assert any("Point<3>" in name for name in found)
    assert not any(name.startswith("helper") for name in found)
