"""Random programs that know their own calls: what a call profile of them has to say.

A program is written twice from one seed: plain, to be profiled, and watched, where each function tells a Recorder
when it begins, waits, goes on and ends. Both make the same calls. As a script, on a Python without pytest:

    python random_program.py SEED [SEEDS]      check SEEDS programs (1) from SEED on; needs marey
    python random_program.py --show SEED       print the plain program
"""

from __future__ import annotations

import asyncio
import cProfile
import os
import random
import sys
import tempfile
import threading
import types
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from typing import Any, Optional

OUTSIDE = "outside"  # the standard library, or this file


class Oops(Exception):
    """What programs raise and catch."""


# ---- what programs use ----


@types.coroutine
def pause() -> Generator[None, None, None]:
    """Let others go on; for coroutines in a loop and for those that are sent to by hand."""
    yield


def run_async(coroutine: Any) -> None:
    """Run a coroutine and its tasks to their ends."""
    try:
        asyncio.run(coroutine)
    except Oops:
        return


def spawn(functions: list[Callable[[int], object]], n: int) -> None:
    """Call each function on a thread of its own, all at once; t0, t1, ..."""

    def begin(function: Callable[[int], object]) -> None:
        try:
            function(n)
        except Oops:
            return

    threads = [threading.Thread(target=begin, args=(f,), name=f"t{i}") for i, f in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- the programs' own account ----


class Recorder:
    """Counts calls by function, by caller and by thread, as watched programs tell of them."""

    def __init__(self) -> None:
        self.here = threading.local()
        self.all: list[Counter[tuple[str, str, str, bool, bool]]] = []  # one for each thread

    def _stack(self) -> list[str]:
        if not hasattr(self.here, "stack"):
            self.here.stack, self.here.counts = [OUTSIDE], Counter()
            self.all.append(self.here.counts)
        return self.here.stack  # type: ignore[no-any-return]

    def enter(self, name: str, resumes: bool = False) -> None:
        stack = self._stack()
        thread = threading.current_thread().name
        self.here.counts[thread, stack[-1], name, resumes, name not in stack] += 1
        stack.append(name)

    def resume(self, name: str) -> None:
        self.enter(name, True)

    def leave(self) -> None:
        self.here.stack.pop()

    def inside(self, name: str, work: Callable[[], Any]) -> Any:
        self.enter(name)
        try:
            return work()
        finally:
            self.leave()

    def builtin(self, function: Any, *args: Any, **named: Any) -> Any:
        """Call a function written in C."""
        return self.inside(name_of_builtin(function), lambda: function(*args, **named))

    def outside(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function that is not of the program, but may call it."""
        self._stack().append(OUTSIDE)
        try:
            return function(*args)
        finally:
            self.leave()

    def through(self, name: str, inner: Any) -> Through:
        return Through(self, name, inner)

    def sums(self) -> dict[str, Any]:
        """All there is to compare; see sums_of_profile()."""
        whole: Counter[Any] = sum(self.all, Counter())
        kinds = ("calls", "primitive", "resumes", "edges", "threads")
        sums: dict[str, Counter[Any]] = {kind: Counter() for kind in kinds}
        for (thread, caller, name, resumes, primitive), n in whole.items():
            sums["edges"][caller, name] += n
            if name[0] == "<":
                continue  # a built-in, which others call as well
            sums["calls"][name] += n
            sums["primitive"][name] += n * primitive
            sums["resumes"][name] += n * resumes
            sums["threads"][thread, name] += n
        return {key: dict(+counter) for key, counter in sums.items()}


class Through:
    """What `yield from` and `await` go through: the function waits while what is inside waits.

    As CPython has it, what is sent goes through the waiting function, and what is thrown goes past it: it goes on
    when the inner one is at its end.
    """

    def __init__(self, recorder: Recorder, name: str, inner: Any) -> None:
        self.recorder, self.name = recorder, name
        self.inner: Any = inner.__await__() if hasattr(inner, "__await__") else iter(inner)
        self.waits = False

    def __iter__(self) -> Iterator[Any]:
        return self

    __await__ = __iter__

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        if self.waits:
            self.recorder.resume(self.name)
        self.waits = False
        got = next(self.inner) if value is None else self.inner.send(value)
        self.waits = True
        self.recorder.leave()
        return got

    def throw(self, *what: Any) -> Any:
        try:
            return self.inner.throw(*what)
        except BaseException:
            self.recorder.resume(self.name)
            raise

    def close(self) -> None:
        try:
            self.inner.close()
        finally:
            self.recorder.resume(self.name)


def name_of_builtin(function: Any) -> str:
    """Name it as cProfile does."""
    if isinstance(function.__self__, types.ModuleType):
        return f"<built-in method {function.__self__.__name__}.{function.__name__}>"
    return f"<method '{function.__name__}' of '{type(function.__self__).__name__}' objects>"


# ---- writing programs ----


class Writer:
    """One program of a seed. What is drawn does not depend on whether it is watched."""

    def __init__(self, seed: int, watched: bool, single: bool) -> None:
        self.random, self.watched, self.single = random.Random(seed), watched, single
        self.lines: list[str] = []
        draw = self.random.randint
        self.functions = [f"f{i}" for i in range(draw(2, 5))]
        self.methods = [f"m{i}" for i in range(draw(1, 3))]
        self.lambdas = [f"l{i}" for i in range(draw(1, 3))]
        self.generators = [f"g{i}" for i in range(draw(1, 4))]
        self.coroutines = [f"c{i}" for i in range(draw(1, 3))]
        self.loops = [f"a{i}" for i in range(draw(1, 2))]

    def put(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def call(self, n: str = "n - 1") -> str:
        """Call any function that returns a number."""
        if self.chance(0.25):
            how = self.random.choice(["Thing().", "Thing.k", "Thing.s"])
            return f"{how}{self.random.choice(self.methods)}({n})"
        return f"{self.random.choice(self.functions + self.lambdas)}({n})"

    def builtin(self, function: str, args: str) -> str:
        return f"R.builtin({function}, {args})".replace(", )", ")") if self.watched else f"{function}({args})"

    def through(self, name: str, inner: str) -> str:
        return f"R.through({name!r}, {inner})" if self.watched else inner

    def outside(self, function: str, args: str) -> str:
        return f"R.outside({function}, {args})" if self.watched else f"{function}({args})"

    # Statements. Whatever is opened is closed at a place that is the same in both programs.

    def plain_call(self, depth: int) -> None:
        self.put(depth, f"acc += {self.call()}")

    def built_in_call(self, depth: int) -> None:
        which = self.random.choice(self.lambdas + self.functions)
        calls = [
            self.builtin("len", "[n, acc]"),
            self.builtin("abs", "acc - n"),
            self.builtin("divmod", "acc, n") + "[1]",
            self.builtin("sorted", f"range(n - 2, n), key={which}") + "[0]",
            self.builtin("max", f"range(n - 2, n), key={which}"),
            self.builtin("sum", f"map({which}, range(n - 2, n))"),
            f"list(map({which}, range(n - 2, n)))[0]",
        ]
        self.put(depth, f"acc += {self.random.choice(calls)}")

    def caught(self, depth: int) -> None:
        self.put(depth, "try:")
        self.put(depth + 1, f"acc += {self.call()}")
        if self.chance(0.5):
            self.put(depth + 1, "if n % 2:", "    raise Oops(n)")
        self.put(depth, "except Oops:")
        self.put(depth + 1, f"acc += {self.call('n - 2')}" if self.chance(0.5) else "acc += 1")
        if self.chance(0.5):
            self.put(depth, "finally:")
            self.put(depth + 1, f"acc += {self.call('n - 2')}")

    def raising(self, depth: int) -> None:
        self.put(depth, f"if (n + acc) % {self.random.randint(3, 6)} == 0:", "    raise Oops(n)")

    def a_loop_over_a_generator(self, depth: int) -> None:
        self.put(depth, f"it = {self.random.choice(self.generators)}(n - 1)", "try:", "    for x in it:")
        self.put(depth + 2, "acc += x")
        if self.chance(0.5):
            self.put(depth + 2, "if acc % 3 == 0:", "    break")
        self.put(depth, "finally:", f"    {self.builtin('it.close', '')}")

    def a_generator_by_hand(self, depth: int) -> None:
        self.put(depth, f"it = {self.random.choice(self.generators)}(n - 1)", "try:")
        self.put(depth + 1, f"acc += {self.builtin('next', 'it, 0')}")
        for _ in range(self.random.randint(0, 2)):
            send, throw = self.builtin("it.send", "n"), self.builtin("it.throw", "Oops(n)")
            self.put(depth + 1, self.random.choice([send, throw, f"acc += {self.builtin('next', 'it, 0')}"]))
        self.put(depth, "except (Oops, StopIteration):", "    acc += 1")
        self.put(depth, "finally:", f"    {self.builtin('it.close', '')}")

    def a_sum_of_a_generator(self, depth: int) -> None:
        self.put(depth, f"acc += {self.builtin('sum', self.random.choice(self.generators) + '(n - 1)')}")

    def a_coroutine_by_hand(self, depth: int) -> None:
        self.put(depth, f"co = {self.random.choice(self.coroutines)}(n - 1)", "try:")
        for _ in range(self.random.randint(1, 3)):  # closed before it began, it is a call to some Pythons
            self.put(depth + 1, self.builtin("co.send", "None"))
        self.put(depth + 1, "acc += 1")
        self.put(depth, "except (Oops, StopIteration):", "    acc += 1")
        self.put(depth, "finally:", f"    {self.builtin('co.close', '')}")

    def a_yield(self, depth: int, name: str) -> None:
        if not self.watched:
            self.put(depth, "acc += (yield acc % 7) or 0")
            return
        self.put(depth, "R.leave()", "try:", "    acc += (yield acc % 7) or 0", "finally:", f"    R.resume({name!r})")

    def a_yield_from(self, depth: int, name: str) -> None:
        inner = f"{self.random.choice(self.generators)}(n - 1)"
        self.put(depth, f"acc += (yield from {self.through(name, inner)}) or 0")

    def an_await(self, depth: int, name: str) -> None:
        inner = f"{self.random.choice(self.coroutines)}(n - 1)" if self.chance(0.6) else "pause()"
        self.put(depth, f"acc += (await {self.through(name, inner)}) or 0")

    def a_task(self, depth: int, name: str) -> None:
        self.put(depth, f"task = asyncio.ensure_future({self.random.choice(self.coroutines)}(n))")
        self.put(depth, f"await {self.through(name, 'pause()')}")
        if self.chance(0.4):
            self.put(depth, "task.cancel()")
        self.put(depth, "try:", f"    acc += await {self.through(name, 'task')}")
        self.put(depth, "except (Oops, asyncio.CancelledError):", "    acc += 1")

    def a_gathering(self, depth: int, name: str) -> None:
        some = ", ".join(f"{self.random.choice(self.coroutines + self.loops)}(n - 1)" for _ in range(2))
        self.put(depth, f"await {self.through(name, f'asyncio.gather({some}, return_exceptions=True)')}")

    # Functions.

    def statements(self, depth: int, name: str) -> None:
        own: list[Callable[[int, str], None]] = {
            "g": [self.a_yield, self.a_yield, self.a_yield_from],
            "c": [self.an_await, self.an_await],
            "a": [self.an_await, self.a_task, self.a_gathering],
        }.get(name[0], [])
        usual = [
            self.plain_call,
            self.caught,
            self.raising,
            self.built_in_call,
            self.a_loop_over_a_generator,
            self.a_generator_by_hand,
            self.a_sum_of_a_generator,
            self.a_coroutine_by_hand,
        ]
        for _ in range(self.random.randint(1, 3)):
            inner = depth
            if self.chance(0.3):
                self.put(depth, f"if n % {self.random.randint(2, 3)}:")
                inner += 1
            if own and self.chance(0.7):
                self.random.choice(own)(inner, name)
            else:
                self.random.choice(usual)(inner)

    def function(self, depth: int, name: str, head: str) -> None:
        self.put(depth, head)
        self.put(depth + 1, "acc = n % 5")
        if self.watched:
            self.put(depth + 1, f"R.enter({name!r})")
        self.put(depth + 1, "try:", "    if n <= 0:", "        return 1")
        self.statements(depth + 2, name)
        if name[0] == "g":
            self.a_yield(depth + 2, name)
        self.put(depth + 2, "return acc % 11")
        self.put(depth + 1, "finally:", "    R.leave()" if self.watched else "    acc = 0", "")

    def program(self) -> str:
        for name in self.functions + self.generators:
            self.function(0, name, f"def {name}(n):")
        for name in self.coroutines + self.loops:
            self.function(0, name, f"async def {name}(n):")
        self.put(0, "class Thing:")
        for name in self.methods:
            self.function(1, name, f"def {name}(self, n):")
            self.put(1, "@classmethod")
            self.function(1, f"k{name}", f"def k{name}(cls, n):")
            self.put(1, "@staticmethod")
            self.function(1, f"s{name}", f"def s{name}(n):")
        for name in self.lambdas:
            work = f"1 if n <= 0 else {self.call()}"
            self.put(0, f"{name} = lambda n: " + (f"R.inside({name!r}, lambda: {work})" if self.watched else work))
        self.main()
        return "\n".join(self.lines) + "\n"

    def main(self) -> None:
        self.put(0, "", "def main():")
        if self.watched:
            self.put(1, "R.enter('main')")
        for _ in range(4):
            self.put(1, "try:", f"    {self.call(str(self.random.randint(2, 5)))}", "except Oops:", "    pass")
        several = ", ".join(self.random.choice(self.functions + self.lambdas) for _ in range(3))
        if not self.single:
            self.put(1, self.outside("spawn", f"[{several}], {self.random.randint(2, 4)}"))
        for name in self.loops:
            self.put(1, self.outside("run_async", f"{name}({self.random.randint(2, 4)})"))
        if self.watched:
            self.put(1, "R.leave()")


def program_of(seed: int, watched: bool, single: bool) -> str:
    return Writer(seed, watched, single).program()


# ---- running and comparing them ----


def load(seed: int, single: bool, recorder: Optional[Recorder] = None) -> dict[str, Any]:
    """Make the functions of a program, watched if there is a recorder."""
    names: dict[str, Any] = {"asyncio": asyncio, "Oops": Oops, "pause": pause, "spawn": spawn, "run_async": run_async}
    names["R"] = recorder
    text = program_of(seed, recorder is not None, single)
    exec(compile(text, f"<random {seed}>", "exec"), names)
    return names


def places_of(names: dict[str, Any]) -> dict[int, str]:
    """Functions of a program by their first lines; lambdas have no other name."""
    found = {**vars(names["Thing"]), **names}
    functions = {name: getattr(f, "__func__", f) for name, f in found.items()}
    return {
        f.__code__.co_firstlineno: name
        for name, f in functions.items()
        if isinstance(f, types.FunctionType) and f.__code__.co_filename.startswith("<random")
    }


def sums_of_stats(stats: dict[Any, Any], places: dict[int, str], known: set[str]) -> dict[str, Any]:
    """Calls, primitive calls and callers in a table of cProfile's kind: of the program, and of built-ins it calls."""

    def name(label: Any) -> str:
        if label[0].startswith("<random"):
            return places.get(label[1], OUTSIDE)
        return label[2] if label[2] in known else OUTSIDE

    calls: Counter[str] = Counter()
    primitive: Counter[str] = Counter()
    edges: Counter[tuple[str, str]] = Counter()
    for label, (cc, nc, _, _, callers) in stats.items():
        callee = name(label)
        if callee == OUTSIDE:
            continue
        of_callers: Counter[tuple[str, str]] = Counter()
        for caller, sums in callers.items():
            of_callers[name(caller), callee] += sums[0]
        if callee[0] != "<":
            calls[callee] += nc
            primitive[callee] += cc
            of_callers[OUTSIDE, callee] += nc - sum(of_callers.values())  # who has no caller is called from outside
        else:
            of_callers.pop((OUTSIDE, callee), None)
        edges += of_callers
    return {"calls": dict(+calls), "primitive": dict(+primitive), "edges": dict(+edges)}


def sums_of_profile(profile: Any, places: dict[int, str], known: set[str]) -> dict[str, Any]:
    """What Recorder.sums() tells, of a profile; threads and resumes from the file that it saves."""
    import marey

    profile.create_stats()
    sums = sums_of_stats(profile.stats, places, known)
    resumes: Counter[str] = Counter()
    threads: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "random.klog")
        profile.save(file)
        functions, paths = marey.load(file).calls("function"), marey.load(file).calls("path")
    for row in functions:
        if row["file"].startswith("<random"):
            resumes[places[row["line"]]] += row["resumes"]
    for row in paths:
        if row["file"].startswith("<random"):
            threads[row["thread"], places[row["line"]]] += row["calls"]
    return {**sums, "resumes": dict(+resumes), "threads": dict(+threads)}


def recorded(seed: int, single: bool) -> dict[str, Any]:
    recorder = Recorder()
    load(seed, single, recorder)["main"]()
    return recorder.sums()


def differences(expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """One line for each number that is another."""
    return [
        f"{kind} of {key}: {expected[kind].get(key, 0)} by its own count, {got[kind].get(key, 0)} in the profile"
        for kind in got
        for key in sorted({*expected[kind], *got[kind]})
        if expected[kind].get(key, 0) != got[kind].get(key, 0)
    ]


def check(seed: int, single: bool = False, signatures: bool = False) -> list[str]:
    """Profile a program of its own account; what differs."""
    import marey

    expected = recorded(seed, single)
    names = load(seed, single)
    known = {callee for _, callee in expected["edges"] if callee[0] == "<"}
    profile = marey.Profile(signatures=signatures)
    profile.runcall(names["main"])
    return differences(expected, sums_of_profile(profile, places_of(names), known))


def check_beside_cprofile(seed: int) -> list[str]:
    """Let cProfile judge a program with one thread, and the programs' own account with it."""
    expected = recorded(seed, True)
    names = load(seed, True)
    known = {callee for _, callee in expected["edges"] if callee[0] == "<"}
    profile = cProfile.Profile()
    profile.runcall(names["main"])
    profile.create_stats()
    stats: dict[Any, Any] = profile.stats  # type: ignore[attr-defined]
    return differences(expected, sums_of_stats(stats, places_of(names), known))


def main() -> int:
    if sys.argv[1] == "--show":
        print(program_of(int(sys.argv[2]), False, False))
        return 0
    first, n = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    wrong = 0
    for seed in range(first, first + n):
        for line in [*check(seed), *check(seed, signatures=True), *check(seed, single=True)]:
            print(f"seed {seed}: {line}")
            wrong += 1
        for line in check_beside_cprofile(seed):
            print(f"seed {seed}, cProfile: {line}")
            wrong += 1
    print(f"{n} programs, {wrong} differences, Python {sys.version.split()[0]}")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
