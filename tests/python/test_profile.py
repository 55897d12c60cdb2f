"""Call profiles and cProfile: the same programs, the same tables; and calls that cProfile misses."""

from __future__ import annotations

import asyncio
import contextlib
import cProfile
import gc
import io
import json
import os
import pstats
import random
import re
import subprocess
import sys
import textwrap
import threading
import time
import tokenize
import types
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

import marey

Counts = dict[Any, tuple[int, int, dict[Any, tuple[int, int]]]]


def plain(*args: Any, **options: Any) -> marey.Profile:
    """A profile whose table is cProfile's."""
    return marey.Profile(*args, **{"signatures": False, **options})


# ---- programs ----


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def is_even(n: int) -> bool:
    return n == 0 or is_odd(n - 1)


def is_odd(n: int) -> bool:
    return n != 0 and is_even(n - 1)


def count_to(n: int) -> Generator[int, None, None]:
    yield from range(n)


def nested(depth: int) -> Iterator[int]:
    if depth > 0:
        yield depth
        yield from nested(depth - 1)


def run_generators() -> None:
    sum(count_to(10))
    list(nested(5))
    left = count_to(5)
    next(left)
    left.close()
    thrown = echo()
    next(thrown)
    thrown.send(1)
    with contextlib.suppress(KeyError):
        thrown.throw(KeyError("x"))


def echo() -> Generator[Any, Any, None]:
    got = None
    while True:
        try:
            got = yield got
        except ValueError:
            got = -1


def raise_at(n: int) -> None:
    if n == 0:
        raise LookupError("at the bottom")
    raise_at(n - 1)


def run_exceptions() -> None:
    for _ in range(3):
        with contextlib.suppress(LookupError):
            raise_at(4)
    with contextlib.suppress(ValueError):
        int("no number")
    with contextlib.suppress(TypeError):
        len(5)  # type: ignore[arg-type]


class Shape:
    def __init__(self, *sides: float) -> None:
        self.sides = list(sides)

    @property
    def around(self) -> float:
        return sum(self.sides)

    @classmethod
    def square(cls, side: float) -> Shape:
        return cls(side, side, side, side)

    @staticmethod
    def key(shape: Shape) -> float:
        return shape.around

    def __repr__(self) -> str:
        return f"Shape({', '.join(map(str, self.sides))})"


def run_classes() -> None:
    shapes = sorted((Shape.square(n) for n in range(5)), key=Shape.key)
    repr(shapes)
    letters = ["a"]
    letters.append("b")
    counted = dict.fromkeys("ab", 1)
    counted.get(",".join(letters))


def run_library() -> None:
    text = json.dumps({"a": [1, 2.5, None, {"b": "c" * 10}]}, indent=1)
    json.loads(text)
    re.sub(r"\d+", lambda m: m[0] * 2, "a1b22c333")
    list(tokenize.generate_tokens(io.StringIO("def f(a):\n    return a + 1\n").readline))
    textwrap.fill("word " * 40, 30)


async def tick(n: int) -> int:
    await asyncio.sleep(0)
    return n


async def ticks(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield await tick(i)


async def run_all() -> None:
    await asyncio.gather(*(tick(i) for i in range(5)))
    async for _ in ticks(4):
        pass


class Pause:
    def __await__(self) -> Generator[None, None, None]:
        yield


async def outer(depth: int) -> int:
    await Pause()
    got = await outer(depth - 1) if depth > 0 else 0
    await Pause()
    return got + 1


def run_coroutines() -> None:
    """Who awaits goes on with whom it awaits."""
    coroutine = outer(4)
    with contextlib.suppress(StopIteration):
        while True:
            coroutine.send(None)


def run_mutual() -> None:
    is_even(20)
    fib(8)


PROGRAMS = [run_generators, run_coroutines, run_exceptions, run_classes, run_library, run_mutual]


def counts_of(stats: dict[Any, Any]) -> Counts:
    """Calls by function and by caller, without times; the profilers' own methods under one name."""

    def name(label: Any) -> Any:
        return (label[0], label[1], re.sub(r"'(_lsprof|marey\._native)\.Profiler'", "'Profiler'", label[2]))

    return {
        name(label): (cc, nc, {name(caller): (sums[0], sums[1]) for caller, sums in callers.items()})
        for label, (cc, nc, _, _, callers) in stats.items()
    }


def profiled(profile: Any, program: Callable[[], object]) -> Counts:
    profile.enable()
    program()
    profile.disable()
    profile.create_stats()
    return counts_of(profile.stats)


# ---- the same as cProfile ----


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_table_is_that_of_cprofile(program: Callable[[], object]) -> None:
    program()  # caches are filled
    gc.disable()
    try:
        assert profiled(plain(), program) == profiled(cProfile.Profile(), program)
    finally:
        gc.enable()


@pytest.mark.parametrize("options", [{"builtins": False}, {"subcalls": False}])
def test_options_are_those_of_cprofile(options: dict[str, Any]) -> None:
    run_library()
    assert profiled(plain(**options), run_library) == profiled(cProfile.Profile(**options), run_library)


def test_the_printed_table_is_that_of_cprofile(capsys: pytest.CaptureFixture[str]) -> None:
    def table(profile: Any) -> str:
        profile.enable()
        run_classes()
        profile.disable()
        profile.print_stats("ncalls")
        text = re.sub(r"'(_lsprof|marey\._native)\.Profiler'", "'Profiler'", capsys.readouterr().out)
        return re.sub(r"\d+\.\d{3}", "0.000", text)

    run_classes()
    ours, theirs = table(plain()), table(cProfile.Profile())
    assert sorted(ours.splitlines()) == sorted(theirs.splitlines())
    assert "function calls" in ours


def test_entries_are_those_of_cprofile() -> None:
    def entries(profile: Any) -> dict[Any, Any]:
        profile.enable()
        run_mutual()
        profile.disable()
        return {
            e.code: (e.callcount, e.reccallcount, {s.code: (s.callcount, s.reccallcount) for s in e.calls or ()})
            for e in profile.getstats()
            if isinstance(e.code, types.CodeType)
        }

    ours = entries(plain())
    assert ours == entries(cProfile.Profile())
    assert ours[fib.__code__][0] > ours[fib.__code__][1] > 0


def test_run_and_its_kin(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    names: dict[str, Any] = {"fib": fib}
    assert plain().runcall(fib, 6) == 8
    marey.profiler.runctx("x = fib(5)", names, names)
    assert names["x"] == 5
    assert "(fib(n:int))" in capsys.readouterr().out
    marey.profiler.run("1 + 1", str(tmp_path / "out.prof"))
    assert getattr(pstats.Stats(str(tmp_path / "out.prof")), "total_calls") >= 2  # noqa: B009
    marey.profiler.runctx("raise SystemExit", names, names)
    with pytest.raises(ZeroDivisionError):
        marey.profiler.runctx("1 / 0", names, names)


def test_a_decorated_function_is_profiled_each_time() -> None:
    profile = plain()

    @profile
    def down(n: int) -> int:
        return n if n == 0 else down(n - 1)

    down(3)
    down(2)
    profile.create_stats()
    assert [sums[1] for label, sums in profile.stats.items() if label[2] == "down"] == [7]
    assert down.__name__ == "down"


# ---- calls that cProfile misses ----


def calls_of(profile: marey.Profile, name: str) -> tuple[int, int]:
    """Primitive calls and calls of functions of that name."""
    profile.create_stats()
    rows = [sums for label, sums in profile.stats.items() if label[2] == name]
    return sum(r[0] for r in rows), sum(r[1] for r in rows)


def test_threads_have_stacks_of_their_own() -> None:
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()  # all are within work() at once: no recursion
        fib(5)

    profile = plain()
    before = threading.Thread(target=work)
    with profile:
        threads = [before] + [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert calls_of(profile, "work") == (4, 4)
    assert calls_of(profile, "fib") == (4, 4 * 15)
    assert profile._counts()["threads"] == 5


def test_a_thread_that_runs_already_is_seen() -> None:
    asked, answered = threading.Event(), threading.Event()

    def serve() -> None:
        asked.wait()
        fib(5)
        answered.set()

    thread = threading.Thread(target=serve)
    thread.start()
    profile = plain()
    with profile:
        asked.set()
        answered.wait()
    thread.join()
    assert calls_of(profile, "fib") == (1, 15)


def test_enable_in_one_thread_and_disable_in_another() -> None:
    profile = plain()
    thread = threading.Thread(target=profile.enable)
    thread.start()
    thread.join()
    fib(5)
    profile.disable()
    fib(5)
    assert calls_of(profile, "fib") == (1, 15)


def test_tasks_of_asyncio_are_counted() -> None:
    profile = plain()
    with profile:
        asyncio.run(run_all())
    # Each of the nine begins once and goes on once; nothing is recursive.
    assert calls_of(profile, "tick") == (18, 18)
    assert calls_of(profile, "run_all")[0] == calls_of(profile, "run_all")[1]


def test_paths_are_exact(tmp_path: Path) -> None:
    def leaf() -> None:
        pass

    def one() -> None:
        leaf()

    def two() -> None:
        leaf()
        one()

    profile = plain(builtins=False)
    with profile:
        one()
        two()
    counts = profile._counts()
    # one, one/leaf, two, two/leaf, two/one, two/one/leaf, and __exit__
    assert counts["paths"] == 7
    profile.save(tmp_path / "p.marey")
    assert (tmp_path / "p.marey").stat().st_size > 100


# ---- time ----


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_own_times_sum_to_the_time_of_the_profile() -> None:
    def part(n: int) -> None:
        for _ in range(n):
            fib(6)

    def main() -> None:
        for n in range(200):
            part(n % 7)

    profile = plain(builtins=False)
    profile.runcall(main)
    profile.create_stats()
    rows = {label[2]: sums for label, sums in profile.stats.items()}
    whole = rows["main"][3]
    assert sum(sums[2] for sums in profile.stats.values()) == pytest.approx(whole, rel=0.01)
    assert rows["part"][3] <= whole


def test_the_users_clock_is_taken() -> None:
    now = [0]

    def clock() -> int:
        now[0] += 1
        return now[0]

    profile = plain(clock, 0.5)
    profile.runcall(fib, 1)
    profile.create_stats()
    rows = {label[2]: sums for label, sums in profile.stats.items()}
    assert rows["fib"][3] == 0.5
    assert "clock" not in rows

    seconds = plain(lambda: 2.0)
    seconds.runcall(fib, 1)
    seconds.create_stats()
    assert all(sums[3] == 0 for sums in seconds.stats.values())


def test_a_clock_that_fails_is_reported_and_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = plain(lambda: 1 // 0)
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: told.append(info.exc_type))
    assert profile.runcall(fib, 5) == 5
    assert calls_of(profile, "fib") == (1, 15)
    assert told and set(told) == {ZeroDivisionError}


def test_processor_time_leaves_sleep_out() -> None:
    profile = plain(cpu=True)
    with profile:
        time.sleep(0.2)
        busy(0.02)
    profile.create_stats()
    rows = {label[2]: sums for label, sums in profile.stats.items()}
    assert rows["<built-in method time.sleep>"][3] < 0.1
    assert rows["busy"][3] >= 0.02


# ---- accidents ----


def test_enabled_twice_is_enabled_once() -> None:
    profile = plain()
    profile.enable()
    profile.enable()
    fib(5)
    profile.disable()
    fib(5)
    profile.disable()
    assert calls_of(profile, "fib") == (1, 15)
    profile.clear()
    assert calls_of(profile, "fib") == (0, 0)


def test_two_profiles_at_once_see_the_same() -> None:
    outer, inner = plain(), plain(builtins=False)
    with outer:
        fib(3)
        with inner:
            fib(5)
    assert calls_of(outer, "fib") == (2, 15 + 5)
    assert calls_of(inner, "fib") == (1, 15)
    many = [plain() for _ in range(5)]
    with contextlib.ExitStack() as stack:
        for profile in many[:4]:
            stack.enter_context(profile)
        with pytest.raises(RuntimeError, match="4 call profiles are enabled already"):
            many[4].enable()


def test_code_objects_that_go_never_alias() -> None:
    profile = plain()
    with profile:
        for i in range(300):
            names: dict[str, Any] = {}
            exec(compile(f"def f{i % 3}(): pass\nf{i % 3}()", f"<made {i % 3}>", "exec"), names)
            del names
            gc.collect(0)
    for i in range(3):
        assert calls_of(profile, f"f{i}") == (100, 100)
    # What is defined again is the same function: memory does not grow with it.
    assert profile._counts()["functions"] < 40


def test_nothing_of_the_program_is_kept_alive() -> None:
    import weakref

    class Thing:
        def method(self) -> None:
            pass

    thing = Thing()
    died = weakref.ref(thing)
    profile = plain()
    with profile:
        thing.method()
        exec("def gone(): pass\ngone()", {})
        del thing
        assert died() is None


def test_a_forked_child_is_off_and_empty() -> None:
    profile = plain()
    profile.enable()
    fib(5)
    child = os.fork()
    if child == 0:
        fib(3)
        ok = calls_of(profile, "fib") == (0, 0)
        profile.enable()
        fib(3)
        profile.disable()
        os._exit(0 if ok and calls_of(profile, "fib") == (1, 5) else 1)
    profile.disable()
    assert os.waitpid(child, 0)[1] == 0
    assert calls_of(profile, "fib") == (1, 15)


def test_a_program_may_end_with_a_profile_on() -> None:
    program = """
        import atexit, marey, threading
        def work():
            pass
        def late():
            work()
        atexit.register(late)
        p = marey.Profile()
        p.enable()
        work()
        threading.Thread(target=lambda: [work() for _ in range(1000)], daemon=True).start()
        class Late:
            def __del__(self):
                work()
        late_one = Late()
        print("over")
    """
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(program)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")


def test_profiles_are_garbage_like_others() -> None:
    import weakref

    class Own(marey.Profile):
        itself: Any

    profile = Own(timer=lambda: 0)
    profile.itself = profile
    profile.runcall(fib, 3)
    died = weakref.ref(profile)
    del profile
    gc.collect()
    assert died() is None


def test_wrong_arguments_are_reported() -> None:
    with pytest.raises(TypeError, match="timer is a function"):
        plain(timer=5)
    with pytest.raises(TypeError, match="modules are names"):
        plain(modules=[5])
    with pytest.raises(ValueError, match="exclude one another"):
        plain(timer=time.time, cpu=True)
    with pytest.raises(RuntimeError, match="__init__ was not called"):
        marey.Profile.__new__(marey.Profile).enable()


# ---- with other tools ----


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring has room for several tools from 3.12 on")
def test_the_hook_of_another_is_reported_and_given_back() -> None:
    other = cProfile.Profile()
    other.enable()
    with pytest.warns(RuntimeWarning, match="another profiler held"):
        profile = plain()
        profile.enable()
    fib(5)
    profile.disable()
    fib(4)
    other.disable()
    other.create_stats()
    assert calls_of(profile, "fib") == (1, 15)
    assert [sums[1] for label, sums in other.stats.items() if label[2] == "fib"] == [9]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there is one profile hook before 3.12")
def test_cprofile_and_marey_see_the_same_at_once() -> None:
    other, profile = cProfile.Profile(), plain()
    other.enable()
    profile.enable()
    fib(5)
    profile.disable()
    other.disable()
    other.create_stats()
    assert calls_of(profile, "fib") == (1, 15)
    assert [sums[1] for label, sums in other.stats.items() if label[2] == "fib"] == [15]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is there from 3.12 on")
def test_taken_tool_ids_are_reported() -> None:
    monitoring = getattr(sys, "monitoring")  # noqa: B009  # what mypy reads is older
    taken = [i for i in range(6) if monitoring.get_tool(i) is None]
    for i in taken:
        monitoring.use_tool_id(i, "test")
    try:
        with pytest.raises(RuntimeError, match="all six tool ids"):
            plain().enable()
    finally:
        for i in taken:
            monitoring.free_tool_id(i)
    assert plain().runcall(fib, 5) == 5


def test_a_tracer_of_lines_goes_on() -> None:
    lines: list[int] = []

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if event == "line" and frame.f_code is fib.__code__:
            lines.append(frame.f_lineno)
        return trace

    profile = plain()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        profile.runcall(fib, 5)
    finally:
        sys.settrace(before)
    assert calls_of(profile, "fib") == (1, 15)
    assert len(lines) == 15


# ---- modules ----


def test_only_chosen_modules_are_counted() -> None:
    profile = plain(modules=["json"])
    with profile:
        fib(5)
        json.dumps([1])
        json.loads("[1]")
    profile.create_stats()
    names = {label[2] for label in profile.stats}
    assert {"dumps", "loads", "decode"} <= names
    assert "fib" not in names and "__exit__" not in names
    every = plain()
    with every:  # what the other one did not watch is seen again
        fib(5)
    assert calls_of(every, "fib") == (1, 15)
    with plain(modules="jso") as none:
        json.dumps([1])
    none.create_stats()
    assert none.stats == {}


# ---- random programs against a count of their own ----


def random_program(seed: int) -> tuple[str, int]:
    """Functions that call one another, recurse, yield, await, raise and start threads; each counts itself."""
    rng = random.Random(seed)
    n = rng.randint(3, 8)
    lines = ["import asyncio, threading", "lock = threading.Lock()", "def count(n):", "    with lock:"]
    lines += ["        counts[n] = counts.get(n, 0) + 1"]
    for i in range(n):
        kind = rng.choice(["plain", "generator", "coroutine", "raises", "recursive"])
        callees = [rng.randrange(i) for _ in range(rng.randint(0, 3))] if i else []
        head = "async def" if kind == "coroutine" else "def"
        lines += [f"{head} f{i}(d):", f"    count('f{i}')"]
        for callee in callees:
            lines += [f"    use(f{callee}, d)"]
        if kind == "generator":
            for _ in range(rng.randint(1, 3)):
                lines += ["    yield d", f"    count('f{i}')"]
        elif kind == "coroutine":
            lines += ["    await asyncio.sleep(0)", f"    count('f{i}')"]
        elif kind == "raises":
            lines += ["    raise KeyError(d)"]
        elif kind == "recursive":
            lines += [f"    if d > 0: use(f{i}, d - 1)"]
    return "\n".join(lines) + "\n", n


def use(f: Callable[..., Any], d: int) -> None:
    try:
        got = f(d)
        if isinstance(got, types.GeneratorType):
            for _ in got:
                pass
        elif isinstance(got, types.CoroutineType):
            # Driven by hand: a loop may be running, and this one waits for nothing.
            with contextlib.suppress(StopIteration):
                while True:
                    got.send(None)
    except KeyError:
        pass


async def ause(f: Callable[..., Any], d: int) -> None:
    try:
        got = f(d)
        if isinstance(got, types.GeneratorType):
            for _ in got:
                pass
        elif isinstance(got, types.CoroutineType):
            await got
    except KeyError:
        pass


@pytest.mark.parametrize("seed", range(25))
def test_counts_of_random_programs_are_their_own(seed: int) -> None:
    text, n = random_program(seed)
    counts: dict[str, int] = {}
    names: dict[str, Any] = {"counts": counts, "use": use, "ause": ause}
    exec(compile(text, f"<random {seed}>", "exec"), names)

    def main() -> None:
        workers = [threading.Thread(target=use, args=(names[f"f{i}"], 3)) for i in range(n)]
        for worker in workers:
            worker.start()
        for i in range(n):
            use(names[f"f{i}"], 2)
            asyncio.run(ause(names[f"f{i}"], 1))
        for worker in workers:
            worker.join()

    profile = plain()
    profile.runcall(main)
    profile.create_stats()
    seen = {label[2]: sums[1] for label, sums in profile.stats.items() if label[0] == f"<random {seed}>"}
    seen.pop("count")
    assert seen == counts


def test_what_a_call_costs_is_reported(tmp_path: Path) -> None:
    """A number of picoseconds in the block, between a tenth of a cheap call and what nobody would accept."""
    profile = plain()
    profile.runcall(fib, 5)
    profile.save(tmp_path / "p.klog")
    data = (tmp_path / "p.klog").read_bytes()
    at = data.index(b"P\x00" + bytes(8))  # profile 0, ticks of the log
    cost, shift, i = 0, 0, at + 2 + 8 + 1
    while True:
        cost |= (data[i] & 0x7F) << shift
        shift += 7
        if data[i] < 0x80:
            break
        i += 1
    assert 5_000 < cost < 100_000_000
