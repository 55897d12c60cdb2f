"""Faults around a call profile: hostile arguments, sudden exits, other tools, excessive sizes."""

from __future__ import annotations

import contextlib
import cProfile
import ctypes
import gc
import json
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from optional_parts import needs_viewer

import marey
from marey.profiler import register


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def down(n: int) -> int:
    return n if n == 0 else down(n - 1)


def plain(**options: Any) -> marey.Profile:
    return marey.Profile(signatures=False, **options)


def calls_of(profile: marey.Profile) -> dict[str, int]:
    """Calls by the name in the table, summed over functions of the same name."""
    profile.create_stats()
    counts: dict[str, int] = {}
    for label, sums in profile.stats.items():
        counts[label[2]] = counts.get(label[2], 0) + sums[1]
    return counts


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# ---- arguments ----


ASKED: list[str] = []


def asked(name: str) -> Any:
    """An attribute that records access, and returns wrong values."""

    def get(_: Any) -> Any:
        ASKED.append(name)
        return (1, 2, 3) if name == "shape" else int

    return property(get)


def hostile(own: str) -> Any:
    """An object that records every access."""

    def note(self: Any, *_: Any) -> Any:
        ASKED.append(own)
        raise RuntimeError(own)

    names = ("__getattr__", "__len__", "__iter__", "__eq__", "__repr__", "__str__", "__bool__", "__array__")
    return {
        **dict.fromkeys((*names, "__getitem__", "__index__", "__instancecheck__", "__torch_function__"), note),
        **{name: asked(name) for name in ("__class__", "dtype", "shape", "ndim", "device", "__array_interface__")},
        "__hash__": note,
    }


@pytest.mark.parametrize("level", ["types", "dtype", "shape", "layout"])
def test_arguments_are_never_executed(level: str) -> None:
    Lying = type("Lying", (), hostile("Lying"))
    Items = type("Items", (list,), hostile("Items"))
    Keys = type("Keys", (dict,), hostile("Keys"))
    values = [Lying(), Items([1, 2]), Keys(a=1)]

    def f(a: Any, *rest: Any, **more: Any) -> None:
        """Arguments are never accessed."""

    ASKED.clear()
    profile = marey.Profile(signatures=level)
    profile.enable()
    for value in values:
        f(value)
        f([value], value, named=value)
        f({1: value}, (value, [value]))
    profile.disable()
    assert ASKED == []
    counts = {name: n for name, n in calls_of(profile).items() if name.startswith("f(")}
    assert sum(counts.values()) == 9
    assert any("a:Lying" in name for name in counts)
    assert ASKED == []


def test_arguments_are_not_kept_alive_and_may_die_in_the_call() -> None:
    class Thing:
        """Dies while it is an argument."""

    born: list[Any] = []

    def f(box: Any, thing: Any) -> bool:
        box.clear()
        del thing
        gc.collect(0)
        return born[-1]() is None

    def died() -> list[bool]:
        results = []
        for _ in range(50):
            box = [Thing()]
            born.append(weakref.ref(box[0]))
            results.append(f(box, box.pop()))
        assert all(one() is None for one in born)
        return results

    without = died()  # up to Python 3.10 the caller keeps what it passes
    with marey.Profile() as profile:
        assert died() == without == [sys.version_info >= (3, 11)] * 50
    assert calls_of(profile)["f(box:list(len=0), thing:Thing)"] == 50


def test_ten_thousand_arguments() -> None:
    def some(*args: Any) -> int:
        return len(args)

    def named(**kwargs: Any) -> int:
        return len(kwargs)

    names: dict[str, Any] = {}
    parameters = ", ".join(f"p{i}" for i in range(10_000))
    exec(f"def many({parameters}): return p9999", names)
    many = names["many"]
    with marey.Profile(signatures="layout") as profile:
        for _ in range(3):
            assert some(*range(10_000)) == 10_000
            assert named(**{f"p{i}": i for i in range(10_000)}) == 10_000
            assert many(*range(10_000)) == 9999
    counts = calls_of(profile)
    for name in ("some", "named", "many"):
        rows = {row: n for row, n in counts.items() if row.startswith(f"{name}(")}
        assert list(rows.values()) == [3], rows
        assert all(len(row) < 10_000 for row in rows)


# ---- faulty formatters and clocks ----


@pytest.fixture
def formatter() -> Iterator[Callable[[type, Any], None]]:
    kinds: list[type] = []

    def add(kind: type, function: Any) -> None:
        kinds.append(kind)
        register(kind, function)

    yield add
    for kind in kinds:
        register(kind, None)


def test_a_formatter_that_raises_is_reported_once(formatter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Batch:
        """Its formatter fails."""

    def f(x: Any) -> None:
        """Takes a batch."""

    def g(x: Any) -> None:
        """Takes one as well."""

    def fails(batch: Any) -> str:
        raise LookupError("no text")

    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: told.append(info.exc_type))
    formatter(Batch, fails)
    with marey.Profile() as profile:
        for _ in range(100):
            f(Batch())
            g(Batch())
    counts = calls_of(profile)
    assert (counts["f(x:Batch)"], counts["g(x:Batch)"]) == (100, 100)
    assert told == [LookupError]


def test_a_formatter_that_disables_and_drops_its_profile(formatter: Any) -> None:
    class Batch:
        """Ends its profile."""

    def f(x: Any) -> int:
        return 5

    held: list[Any] = [marey.Profile()]
    died = weakref.ref(held[0])

    def ends(batch: Any) -> str:
        held.pop().disable()
        gc.collect()
        return "ended"

    formatter(Batch, ends)
    held[0].enable()
    assert f(Batch()) == 5
    assert held == []
    gc.collect()
    assert died() is None
    assert marey.Profile().runcall(f, 1) == 5


@pytest.mark.parametrize("reading", range(1, 9))
def test_a_clock_that_disables_and_drops_its_profile(reading: int) -> None:
    """At each of its readings in turn: when calls begin and end, of Python and C, and within disable()."""
    held: list[Any] = []
    readings = 0

    def clock() -> float:
        nonlocal readings
        readings += 1
        if readings == reading:
            held.pop().disable()
            gc.collect()
        return 1.0

    held.append(plain(timer=clock))
    died = weakref.ref(held[0])
    held[0].enable()
    down(1)
    len(held)
    if held:
        held[-1].disable()
    assert held == []
    gc.collect()
    assert died() is None


def test_clear_while_calls_are_open() -> None:
    profile = plain()

    def inner() -> None:
        profile.clear()
        fib(5)

    with profile:
        inner()
        fib(3)
    counts = calls_of(profile)
    assert counts["fib"] == 15 + 5
    assert "inner" not in counts


# ---- on and off ----


def test_on_in_one_thread_and_off_in_another_over_and_over() -> None:
    profile = plain()

    def other(work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    for _ in range(20):
        other(profile.enable)
        profile.enable()
        fib(5)
        other(profile.disable)
        fib(5)
    assert calls_of(profile)["fib"] == 20 * 15


def test_forks_with_threads_and_children_of_children() -> None:
    profile = marey.Profile()
    stop = threading.Event()

    def beside() -> None:
        while not stop.is_set():
            fib(3)

    def child() -> int:
        fib(4)
        empty = "fib(n:int)" not in calls_of(profile)
        profile.enable()
        fib(5)
        grandchild = os.fork()
        if grandchild == 0:
            fib(4)
            os._exit(0 if "fib(n:int)" not in calls_of(profile) else 1)
        profile.disable()
        ended = os.waitpid(grandchild, 0)[1]
        return 0 if empty and ended == 0 and calls_of(profile)["fib(n:int)"] == 15 else 1

    thread = threading.Thread(target=beside)
    thread.start()
    try:
        for _ in range(5):
            profile.enable()
            down(6)
            pid = os.fork()
            if pid == 0:
                os._exit(child())
            down(6)
            profile.disable()
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
    assert calls_of(profile)["down(n:int)"] == 5 * 2 * 7


ENDS = {
    "daemon threads": """
        def forever():
            while True:
                fib(4)
        for _ in range(4):
            threading.Thread(target=forever, daemon=True).start()
        marey.Profile().enable()
        fib(10)
    """,
    "sys.exit": """
        marey.Profile().enable()
        def leave():
            fib(5)
            sys.exit(3)
        leave()
    """,
    "sys.exit in a thread": """
        marey.Profile().enable()
        thread = threading.Thread(target=sys.exit)
        thread.start()
        thread.join()
        sys.exit(3)
    """,
    "an exception": """
        marey.Profile().enable()
        def leave():
            raise SystemExit(3)
        try:
            leave()
        finally:
            fib(5)
    """,
    "a profile on that only a cycle holds": """
        p = marey.Profile(timer=lambda: (p, 0)[1])
        p.itself = p
        p.enable()
        del p
        gc.collect()
    """,
    "destructors and callbacks at exit": """
        p = marey.Profile()
        class Late:
            def __del__(self):
                fib(5)
                p.disable()
                p.enable()
        keep = Late()
        sys.late = Late()
        atexit.register(lambda: p.enable())
        p.enable()
    """,
}


@pytest.mark.parametrize("how", ENDS)
def test_the_interpreter_ends_with_a_profile_on(how: str, run_python: Any) -> None:
    head = "import atexit, gc, sys, threading, marey\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
    done = run_python(head + textwrap.dedent(ENDS[how]), flags=("-X", "dev"), check=False)
    assert done.returncode == (3 if "3)" in ENDS[how] else 0), done.stderr
    if how != "a profile on that only a cycle holds":  # its clock is gone, and Python tells so
        assert done.stderr == ""


# ---- functions ----


def test_a_hundred_thousand_code_objects_come_and_go() -> None:
    code = compile("def f(x): return x", "<made>", "exec")
    inner = next(c for c in code.co_consts if hasattr(c, "co_code"))
    kinds = [inner.replace(co_name=f"f{i}", co_firstlineno=i + 1) for i in range(7)]
    function = type(lambda: None)
    profile = marey.Profile(builtins=False)
    profile.enable()

    def rounds(n: int) -> None:
        for i in range(n):
            function(kinds[i % 7].replace(), {})(1)

    rounds(20_000)
    before, size = resident(), profile._counts()["bytes"]
    rounds(80_000)
    grown = resident() - before
    profile.disable()
    counts = calls_of(profile)
    for i in range(7):
        assert counts[f"f{i}(x:int)"] == len(range(i, 20_000, 7)) + len(range(i, 80_000, 7))
    assert profile._counts()["functions"] < 30
    assert profile._counts()["bytes"] == size
    assert grown < 4 << 20


class MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@pytest.mark.parametrize("name", [None, b"", b"\xff\xfe no text", b"%s%n", b"x" * 100_000, "ä\U0001f600".encode()])
@pytest.mark.parametrize("owner", [None, "module", "object"])
def test_functions_of_c_with_odd_names_or_none(name: Any, owner: Any) -> None:
    METH_NOARGS = 4
    body = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)(lambda self, _: 7)
    definition = MethodDef(name, ctypes.cast(body, ctypes.c_void_p).value, METH_NOARGS, None)
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype = ctypes.py_object
    create.argtypes = [ctypes.POINTER(MethodDef), ctypes.c_void_p, ctypes.c_void_p]
    held = {None: None, "module": sys, "object": object()}[owner]
    function = create(ctypes.byref(definition), None if held is None else id(held), None)
    if held is not None:  # PyCFunction_NewEx takes a reference of its own
        assert function.__self__ is held
    with marey.Profile() as profile:
        for _ in range(5):
            assert function() == 7
    rows = [sums for label, sums in calls_rows(profile) if label[0] == "~" and sums[1] == 5]
    assert len(rows) == 1
    profile._kept = (function, definition, body)  # type: ignore[attr-defined]


def calls_rows(profile: marey.Profile) -> list[tuple[Any, Any]]:
    profile.create_stats()
    return list(profile.stats.items())


def test_names_that_are_no_text(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile("def f(): pass", "\udcff\ud800.py", "exec"), names)
    f = names["f"]
    f.__code__ = f.__code__.replace(co_name="\ud800\n\t" + "n" * 5000)
    f.__globals__["__name__"] = 5
    with marey.Profile() as profile:
        f()
    assert sum(n for name, n in calls_of(profile).items() if "nnnn" in name) == 1
    profile.save(tmp_path / "p.marey")
    assert any("nnnn" in str(row) for row in marey.load(tmp_path / "p.marey").calls())


def test_functions_whose_names_have_a_zero_are_distinguished(tmp_path: Path) -> None:
    """On one line of one file, so that only the name is another."""

    def f() -> None:
        pass

    def g() -> None:
        pass

    code = f.__code__
    f.__code__, g.__code__ = (code.replace(co_name=f"zero\0{name}") for name in "fg")
    with marey.Profile() as profile:
        f()
        g()
        g()
    profile.save(tmp_path / "p.marey")
    counts = {row["function"]: row["calls"] for row in marey.load(tmp_path / "p.marey").calls()}
    assert {name: n for name, n in counts.items() if "zero" in name} == {r"zero\x00f": 1, r"zero\x00g": 2}
    assert {name: n for name, n in calls_of(profile).items() if "zero" in name} == {
        r"zero\x00f()": 1,
        r"zero\x00g()": 2,
    }


# ---- deep ----


def test_recursion_to_the_limit() -> None:
    def forever(n: int) -> int:
        return forever(n + 1)

    profile = marey.Profile()
    with profile:
        for _ in range(3):
            with contextlib.suppress(RecursionError):
                forever(0)
        fib(5)
    counts = calls_of(profile)
    assert counts["forever(n:int)"] >= 3 * 500
    assert counts["forever(n:int)"] % 3 == 0
    assert counts["fib(n:int)"] == 15


DEEP = """
    import sys, threading, marey
    sys.setrecursionlimit(60_000)
    threading.stack_size(512 << 20)
    def down(n):
        return n if n == 0 else down(n - 1)
    def work():
        p.enable()
        down(50_000)
        p.disable()
    p = marey.Profile(builtins=False)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    p.create_stats()
    print([sums[:2] for label, sums in p.stats.items() if label[2].startswith("down")])
    p.save("deep.marey")
    rows = marey.load("deep.marey").calls()
    print([row["calls"] for row in rows if "down" in row["function"]])
    page = marey.plot(p, path="deep.html", open_browser=False)
"""


@needs_viewer
def test_fifty_thousand_calls_deep(run_python: Any, tmp_path: Path) -> None:
    done = run_python(DEEP)
    assert done.stdout.splitlines()[:2] == ["[(1, 50001)]", "[50001]"], done.stdout
    assert (tmp_path / "deep.html").stat().st_size > 1000


# ---- with other profilers ----


def test_cprofile_coverage_and_a_debugger_beside(run_python: Any) -> None:
    """Of two profilers the first is told off or both see all; tracers of lines see what they see alone."""
    done = run_python("""
        import sys, warnings, cProfile, marey
        warnings.simplefilter("ignore")
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)
        seen = {"debugger": 0, "local": 0}
        def debugger(frame, event, arg):
            seen["debugger"] += event == "call" and frame.f_code is fib.__code__
            def local(frame, event, arg):
                seen["local"] += event == "return" and frame.f_code is fib.__code__
                return local
            return local
        ours, theirs = marey.Profile(), cProfile.Profile()
        sys.settrace(debugger)
        theirs.enable()
        ours.enable()
        fib(5)
        sys.settrace(None)
        fib(5)
        ours.disable()
        fib(4)
        theirs.disable()
        ours.create_stats()
        theirs.create_stats()
        print(seen)
        print([sums[1] for label, sums in ours.stats.items() if label[2].startswith("fib")])
        theirs = [sums[1] for label, sums in theirs.stats.items() if label[2] == "fib"]
        print(theirs == ([9] if sys.version_info < (3, 12) else [39]), theirs)
    """)
    lines = done.stdout.splitlines()
    assert lines[0] == "{'debugger': 15, 'local': 15}"
    assert lines[1] == "[30]"
    assert lines[2].startswith("True"), lines


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring has room for several tools from 3.12 on")
def test_a_profiler_that_comes_after_is_not_disturbed() -> None:
    ours, theirs = plain(), cProfile.Profile()
    ours.enable()
    fib(5)
    theirs.enable()  # takes the hook
    fib(4)
    ours.disable()
    fib(4)
    theirs.disable()
    theirs.create_stats()
    assert [sums[1] for label, sums in theirs.stats.items() if label[2] == "fib"] == [18]
    assert calls_of(ours)["fib"] == 15
    assert sys.getprofile() is None


def test_a_warning_that_is_an_error_leaves_all_as_it_was(run_python: Any) -> None:
    if sys.version_info >= (3, 12):
        pytest.skip("nobody is in the way from 3.12 on")
    done = run_python("""
        import sys, threading, warnings, cProfile, marey
        warnings.simplefilter("error")
        theirs, ours = cProfile.Profile(), marey.Profile()
        def work(): pass
        theirs.enable()
        try:
            ours.enable()
        except RuntimeWarning as e:
            print("told")
        work()
        theirs.disable()
        theirs.create_stats()
        print([s[1] for label, s in theirs.stats.items() if label[2] == "work"])
        print(threading._profile_hook, sys.getprofile())
        ours.enable()
        work()
        ours.disable()
        ours.create_stats()
        print([s[1] for label, s in ours.stats.items() if label[2] == "work()"])
    """)
    assert done.stdout.splitlines() == ["told", "[1]", "None None", "[1]"]


def test_subinterpreters_are_reported(run_python: Any) -> None:
    """A profile is of the main interpreter; what others do neither counts nor harms."""
    name = "_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters"
    pytest.importorskip(name)
    done = run_python(f"""
        import {name} as interpreters, marey
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)
        p = marey.Profile()
        p.enable()
        source = "\\n".join([
            "def work():",
            "    pass",
            "work()",
            "try:",
            "    import marey",
            "    marey.Profile()",
            "except (ImportError, RuntimeError) as e:",
            "    print('told:', e, flush=True)",
            "work()",
        ])
        for _ in range(3):
            one = interpreters.create()
            interpreters.run_string(one, source)
            interpreters.destroy(one)
            fib(5)
        q = marey.Profile()
        q.runcall(fib, 3)
        p.disable()
        p.create_stats()
        print([s[1] for label, s in p.stats.items() if label[2].startswith("fib")])
        print([label for label in p.stats if label[2].startswith("work")])
    """)
    lines = done.stdout.splitlines()
    assert lines[-2:] == ["[50]", "[]"], done.stdout + done.stderr
    assert all(line.startswith("told:") for line in lines[:-2]) and len(lines) == 5


def test_the_collector_runs_while_functions_are_met(run_python: Any) -> None:
    """Each new function and signature allocates; with a threshold of 1 the collector runs in nearly all of these.

    What destructors call while the collector runs within the hook is not seen: Python calls no hook within a hook.
    """
    done = run_python("""
        import gc, marey
        class Cycle:
            def __init__(self, kind):
                self.itself = self
                self.kind = kind
            def __del__(self):
                self.ended()
            def ended(self):
                counts[0] += 1
        counts = [0]
        gc.set_threshold(1, 1, 1)
        with marey.Profile() as p:
            for i in range(300):
                kind = type(f"K{i}", (Cycle,), {})
                kind(i)
                names = {}
                exec(f"def f{i}(x, y): return x\\nf{i}([object()], {{1: 2.0}})", names)
            del kind
            gc.collect()
        gc.set_threshold(700, 10, 10)
        p.create_stats()
        rows = {label[2]: s[1] for label, s in p.stats.items()}
        print(200 < sum(n for name, n in rows.items() if "ended" in name) <= counts[0] == 300)
        print(all(sum(n for name, n in rows.items() if name.startswith(f"f{i}(")) == 1 for i in range(300)))
    """)
    assert done.stdout.splitlines() == ["True", "True"], done.stdout


# ---- excessive sizes ----


def leaf() -> None:
    """Called by all."""


def wide(depth: int, way: int) -> None:
    """A separate path for each way."""
    leaf()
    if depth > 0:
        (left if way & 1 else right)(depth - 1, way >> 1)


def left(depth: int, way: int) -> None:
    wide(depth, way)


def right(depth: int, way: int) -> None:
    wide(depth, way)


def test_a_budget_that_is_spent_is_reported_and_counts_stay_exact(tmp_path: Path) -> None:
    now = [0]

    def clock() -> int:
        now[0] += 1
        return now[0]

    ways, depth = 512, 9

    def main() -> None:
        for way in range(ways):
            wide(depth, way)

    small, large = (plain(builtins=False, timer=clock, timeunit=1e-9, memory=m) for m in (128 << 10, 0))
    for profile in (small, large):
        now[0] = 0
        profile.runcall(main)
        profile.create_stats()
    exact = {label[2]: (sums[1], round(sums[2] * 1e9)) for label, sums in large.stats.items()}
    assert {label[2]: (sums[1], round(sums[2] * 1e9)) for label, sums in small.stats.items()} == exact
    assert exact["leaf"][0] == ways * (depth + 1)
    counts = small._counts()
    assert counts["other_paths"] > 0 == large._counts()["other_paths"]
    assert counts["bytes"] < 2 * (128 << 10)
    assert counts["paths"] < large._counts()["paths"]
    small.save(tmp_path / "p.marey")
    rows = {row["function"]: row["calls"] for row in marey.load(tmp_path / "p.marey").calls()}
    assert rows["leaf"] == ways * (depth + 1)
    report = [sys.executable, "-m", "marey", "report", "--calls", str(tmp_path / "p.marey")]
    assert "memory was full" in subprocess.run(report, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("signatures", [False, True])
def test_a_hundred_million_calls_stay_flat(signatures: bool, run_python: Any) -> None:
    """Neither the process nor the profile's reported memory grows with calls."""
    done = run_python(
        f"""
        import json, os, time, marey
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        def f(x):
            return x
        def rounds(n):
            for i in range(n):
                f(i)
        resident()
        p = marey.Profile(signatures={signatures})
        p.enable()
        rounds(1_000_000)
        begin = time.monotonic()
        before, size = resident(), p._counts()["bytes"]
        for _ in range({99 if not signatures else 29}):
            rounds(1_000_000)
        grown = resident() - before, p._counts()["bytes"] - size
        seconds = time.monotonic() - begin
        p.disable()
        p.create_stats()
        calls = [s[1] for label, s in p.stats.items() if label[2] in ("f", "f(x:int)")]
        print(json.dumps([calls, grown, seconds]))
    """,
        timeout=1200,
    )
    calls, grown, seconds = json.loads(done.stdout)
    print(f"{calls[0]} calls in {seconds:.0f} s, grown by {grown[0]} bytes, by its own account {grown[1]}")
    assert calls == [30_000_000 if signatures else 100_000_000]
    assert grown[1] == 0
    assert grown[0] < 1 << 20
