"""Signatures of real calls in a profile."""

from __future__ import annotations

import ast
import gc

import pytest
from test_signatures import NEVER, Meta, raising

import marey
from marey.profiler import register


def rows(profile: marey.Profile, name: str) -> list[str]:
    """Names of a function in the table, one for each signature, without places."""
    profile.create_stats()
    shown = [key[2] for key in profile.stats]
    return sorted(one for one in shown if one.split("(")[0].split(".")[-1] == name)


def calls_of(profile: marey.Profile) -> dict[str, int]:
    profile.create_stats()
    return {key[2]: row[1] for key, row in profile.stats.items()}


def test_the_documented_example():
    np = pytest.importorskip("numpy")

    def dot(a, b):
        total = 0
        for i in range(len(a)):
            total += a[i] * b[i]
        return total

    a = np.arange(16, dtype=np.float32)
    profile = marey.Profile()
    profile.enable()
    dot(a, a)
    profile.disable()
    counts = calls_of(profile)
    assert counts["dot(a:ndarray(dtype=float32, shape=(16,)), b:ndarray(dtype=float32, shape=(16,)))"] == 1
    assert counts["<built-in method builtins.len>"] == 1


def test_arguments_of_every_kind():
    def f(a, /, b, *args, c, d=None, **kwargs):
        """All kinds."""

    with marey.Profile() as profile:
        f(1, 2.0, "x", c=b"", z=1)
        f(1, b=2.0, c=b"")
    assert rows(profile, "f") == [
        "f(a:int, b:float, c:bytes, d:None, *args:tuple(), **kwargs:dict(len=0))",
        "f(a:int, b:float, c:bytes, d:None, *args:tuple(str), **kwargs:dict[str, int](len=1))",
    ]


def test_arguments_that_inner_functions_use():
    def outer(a, b, *, c):
        def inner():
            return a, c

        return inner

    with marey.Profile() as profile:
        outer(1, "b", c=[1.5])()
    assert rows(profile, "outer") == ["outer(a:int, b:str, c:list[float](len=1))"]


def test_a_cell_that_is_an_argument():
    def f(a):
        return lambda: a

    def g(a):
        return a

    cell = f(1).__closure__[0]
    with marey.Profile() as profile:
        f(cell)
        g(cell)
    assert rows(profile, "f") == ["f(a:cell)"]
    assert rows(profile, "g") == ["g(a:cell)"]


def test_a_generator_keeps_the_signature_that_it_began_with():
    def numbers(n):
        for i in range(n):
            n = str(i)
            yield n
        del n
        yield None

    with marey.Profile() as profile:
        assert len(list(numbers(3))) == 4
    assert rows(profile, "numbers") == ["numbers(n:int)"]


def test_methods_are_shown_by_their_class():
    class Model:
        def __init__(self, n):
            self.n = n

        def forward(self, x):
            """A method."""

    with marey.Profile() as profile:
        Model(3).forward(1.0)
    counts = calls_of(profile)
    assert counts["Model(n:int)"] == counts["Model.forward(x:float)"] == 1


def test_one_function_with_other_arguments_each_time():
    def f(x):
        return f(x - 1.5) if x > 1 else x

    with marey.Profile() as profile:
        f(2)
    assert rows(profile, "f") == ["f(x:float)", "f(x:int)"]


def test_hostile_objects_are_not_asked_anything():
    np = pytest.importorskip("numpy")
    hostile = dict(NEVER, __class__=property(raising), dtype=property(raising), shape=property(raising))
    Hostile = type.__new__(Meta, "Hostile", (), hostile)
    value = type.__call__(Hostile)
    array = np.zeros(2).view(type("Sub", (np.ndarray,), {"shape": property(raising), "dtype": property(raising)}))

    def f(x):
        """Arguments are never accessed."""

    with marey.Profile(signatures="layout") as profile:
        f(value)
        f(array)
        f([value])
        f(Hostile)
    assert rows(profile, "f") == [
        "f(x:Hostile)",
        "f(x:Meta[Hostile])",
        "f(x:Sub(dtype=float64, shape=(2,), order=C))",
        "f(x:list[Hostile](len=1))",
    ]


def test_an_object_that_dies_in_the_call():
    class Short:
        """Made for one call."""

    def f(x):
        del x
        gc.collect(0)

    with marey.Profile() as profile:
        for i in range(200):
            f(type(f"T{i % 3}", (Short,), {})())
    assert rows(profile, "f") == ["f(x:T0)", "f(x:T1)", "f(x:T2)"]


def test_ten_thousand_shapes_stay_bounded():
    np = pytest.importorskip("numpy")
    base = np.zeros(10_000, "i1")

    def f(x):
        """Any length."""

    with marey.Profile() as profile:
        for n in range(10_000):
            f(base[:n])
    counts = {name: n for name, n in calls_of(profile).items() if name.startswith("f(")}
    assert sum(counts.values()) == 10_000
    assert len(counts) <= 82
    assert counts["f(x:ndarray(dtype=int8, shape=(8192..16383,)))"] == 10_000 - 8192


def test_what_a_formatter_calls_is_not_in_the_profile():
    class Batch:
        """With a formatter."""

    def helper():
        return "helped"

    def f(x):
        """Takes a batch."""

    register(Batch, lambda batch: f"Batch {helper()}")
    try:
        with marey.Profile() as profile:
            f(Batch())
    finally:
        register(Batch, None)
    assert rows(profile, "f") == ["f(x:Batch helped)"]
    assert rows(profile, "helper") == []


VECTOR = "ndarray(dtype=float32, shape=(16,))"

# What numba tells profilers of: always before Python 3.12, and from there on when it is asked to before it is imported.
TOLD = """
import os
os.environ["NUMBA_ENABLE_SYS_MONITORING"] = "1"
import marey, numba, numpy as np

@numba.njit
def dot(a, b):
    return (a * b).sum()

@numba.njit
def scale(x, by=2.0, *more):
    return x * by + len(more)

@numba.njit
def nothing():
    return 1

a = np.zeros(16, "f4")
def use():
    b = "not what dot is called with"
    dot(a, a), dot(b=a, a=a), scale(a), scale(by=3, x=a), scale(a, 1.0, 1, 2), nothing()
use()
"""


@pytest.mark.needs_numba
def test_functions_that_numba_has_compiled(run_python):
    """Arguments by place, by name, by default; never what the caller has under the parameters' names."""
    done = run_python(
        TOLD
        + """
with marey.Profile() as profile:
    use()
profile.create_stats()
for label, row in sorted(profile.stats.items(), key=lambda item: item[0][2]):
    if label[2].split("(")[0] in ("dot", "scale", "nothing"):
        print(label[2], row[1])
assert "__call__" not in vars(type(dot))  # numba is as it was
"""
    )
    assert done.stdout.splitlines() == [
        f"dot(a:{VECTOR}, b:{VECTOR}) 2",
        "nothing() 1",
        f"scale(x:{VECTOR}, by:float, *more:tuple()) 1",
        f"scale(x:{VECTOR}, by:float, *more:tuple(int, int)) 1",
        f"scale(x:{VECTOR}, by:int, *more:tuple()) 1",
    ]


@pytest.mark.needs_numba
def test_numba_that_is_imported_while_a_profile_is_on(run_python):
    """From the second call on, and no call gets what is not its own."""
    done = run_python(
        "import marey\nprofile = marey.Profile()\nprofile.enable()\n"
        + TOLD
        + """
use()
profile.disable()
profile.create_stats()
print({label[2]: row[1] for label, row in profile.stats.items() if label[2].split("(")[0] == "dot"})
"""
    )
    counts = ast.literal_eval(done.stdout)
    assert set(counts) <= {"dot", f"dot(a:{VECTOR}, b:{VECTOR})"}
    assert counts[f"dot(a:{VECTOR}, b:{VECTOR})"] >= 2 and sum(counts.values()) == 4


def test_a_formatter_that_ends_the_profile():
    class Batch:
        """With a formatter."""

    def f(x):
        """Takes a batch, or anything."""

    profiles = [marey.Profile()]

    def formatter(batch):
        if profiles:
            profiles.pop().disable()
        return "ended"

    register(Batch, formatter)
    try:
        profiles[0].enable()
        f(1)  # known from now on
        f(Batch())
        assert profiles == []
        profile = marey.Profile()
        profile.enable()
        f(Batch())
        profile.disable()
    finally:
        register(Batch, None)
    assert rows(profile, "f") == ["f(x:ended)"]
