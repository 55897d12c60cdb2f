"""Stacks and profiles of other tools as recordings: cProfile, py-spy, viztracer, speedscope and collapsed stacks.

The tools write the files, which are also read independently here, by pstats, json or plain code.
"""

from __future__ import annotations

import gzip
import json
import marshal
import os
import pstats
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

Rows = dict[str, tuple[int, int, int]]  # count, total and self, by name


def report(marey, path: Path) -> Rows:
    done = marey("report", path, "--json")
    assert done.returncode == 0, done.stderr
    return {row["name"]: (row["count"], row["total_ns"], row["self_ns"]) for row in json.loads(done.stdout)["ranges"]}


def warnings(marey, path: Path) -> str:
    return "\n".join(json.loads(marey("report", path, "--json").stdout)["warnings"])


# ---- cProfile ----

# Functions that call each other in all ways except cycles: several callers, methods, generators, built-ins.
STRAIGHT = """
import cProfile, random, sys

class Shape:
    def __init__(self, n):
        self.points = [random.random() for _ in range(n)]
    def area(self):
        return sum(self.scaled(2))
    def scaled(self, factor):
        for point in self.points:
            yield scale(point, factor)

def scale(value, factor):
    return round(value * factor, 3)

def first(n):
    return sorted(Shape(n).points) + [Shape(2 * n).area()]

def second(n):
    return first(n) + first(n // 2) + [scale(n, 3)]

def main():
    for n in range(60):
        first(n)
        second(n)

profile = cProfile.Profile()
profile.runcall(main)
profile.dump_stats(sys.argv[1])
"""

# Recursion: of one function, of two, of the standard library's parsers.
CYCLES = """
import cProfile, json, sys

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def even(n):
    return n == 0 or odd(n - 1)

def odd(n):
    return n != 0 and even(n - 1)

def nested(depth):
    return [nested(depth - 1) for _ in range(3)] if depth else {"leaf": [depth]}

def main():
    fib(14)
    even(200)
    for indent in (1, 2):
        json.loads(json.dumps(nested(5), indent=indent))

profile = cProfile.Profile()
profile.runcall(main)
profile.dump_stats(sys.argv[1])
"""


def interpreters() -> list[str]:
    """Give this Python, and others that are at hand: each has its own way to write a profile."""
    found = [sys.executable]
    for name in ("python2.7", *(f"python3.{minor}" for minor in range(6, 15))):
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            found.append(path)
    return found


def profile(tmp_path: Path, text: str, python: str = sys.executable) -> Path:
    (tmp_path / "work.py").write_text(text)
    subprocess.run([python, "work.py", "work.prof"], cwd=tmp_path, check=True, timeout=60)
    return tmp_path / "work.prof"


def named(functions: dict[tuple[str, int, str], Any]) -> dict[str, Any]:
    """The entries by their names in a report: those of functions that share one have their place with it."""
    places = defaultdict(set)
    for file, line, name in functions:
        places[name].add((file, line))

    def short(file: str) -> str:
        return re.sub(r"^.*/(site-packages|dist-packages|lib/python3\.\d+)/", "", file)

    return {
        f"{name} ({short(file)}:{line})" if len(places[name]) > 1 and file != "~" else name: entry
        for (file, line, name), entry in functions.items()
    }


@pytest.mark.parametrize("text", [STRAIGHT, CYCLES], ids=["straight", "cycles"])
@pytest.mark.parametrize("python", interpreters())
def test_each_function_has_its_calls_and_its_own_time(marey, tmp_path, text, python):
    path = profile(tmp_path, text, python)
    rows = report(marey, path)
    if "2.7" in python:  # whose marshal holds bytes for this one
        assert rows["main"][0] == 1
        return
    expected = named(pstats.Stats(str(path)).stats)
    assert set(rows) == set(expected)
    for name, (_, calls, own, _, _) in expected.items():
        count, _, self_ns = rows[name]
        assert count == calls, name
        assert abs(self_ns - own * 1e9) <= 1, name


def test_totals_are_exact_where_nothing_recurs(marey, tmp_path):
    path = profile(tmp_path, STRAIGHT)
    rows = report(marey, path)
    expected = named(pstats.Stats(str(path)).stats)
    assert len(expected) > 10
    for name, (_, _, _, total, _) in expected.items():
        # A nanosecond for each path below it, at most.
        assert abs(rows[name][1] - total * 1e9) <= 2 * len(expected), name


def test_a_recursion_has_the_time_of_its_outermost_calls(marey, tmp_path):
    path = profile(tmp_path, CYCLES)
    rows = report(marey, path)
    expected = named(pstats.Stats(str(path)).stats)
    whole = rows["main"][1]
    for name in ("main", "fib", "even", "nested"):
        assert abs(rows[name][1] - expected[name][3] * 1e9) <= 0.01 * whole, name
    assert "no times" in warnings(marey, path)


@pytest.mark.parametrize("version", range(marshal.version + 1))
def test_every_version_of_marshal_is_read(marey, tmp_path, version):
    stats = pstats.Stats(str(profile(tmp_path, CYCLES))).stats
    path = tmp_path / "again.prof"
    path.write_bytes(marshal.dumps(stats, version))
    packed = tmp_path / "packed.prof.gz"
    packed.write_bytes(gzip.compress(marshal.dumps(stats, 4)))
    assert report(marey, path) == report(marey, packed)


def test_a_profile_of_the_module_profile_is_read(marey, tmp_path):
    text = STRAIGHT.replace("cProfile", "profile").replace("profile = profile.Profile", "prof = profile.Profile")
    path = profile(tmp_path, text.replace("profile.runcall", "prof.runcall").replace("profile.dump", "prof.dump"))
    rows = report(marey, path)
    for name, (_, calls, own, _, _) in named(pstats.Stats(str(path)).stats).items():
        if calls == 0:  # what stands for the profiler itself
            continue
        assert rows[name][0] == calls, name
        assert abs(rows[name][2] - max(own, 0) * 1e9) <= 1, name


def test_a_damaged_profile_is_refused(marey, tmp_path):
    path = profile(tmp_path, STRAIGHT)
    path.write_bytes(path.read_bytes()[:500])
    done = marey("report", path)
    assert done.returncode == 2
    assert "work.prof is not a profile of cProfile, or a damaged one: at byte " in done.stderr
    assert done.stdout == ""


# ---- py-spy ----

SPIN = """
import multiprocessing, threading, time

def inner(n):
    return sum(i * i for i in range(n))

def outer():
    end = time.time() + 1
    while time.time() < end:
        inner(20000)

def child():
    outer()

if __name__ == "__main__":
    thread = threading.Thread(target=outer, name="a; b")
    process = multiprocessing.get_context("spawn").Process(target=child)
    thread.start(), process.start()
    outer()
    thread.join(), process.join()
"""


@pytest.fixture
def py_spy(tmp_path):
    """Sample a program with two processes and two threads into a file of some format."""
    program = shutil.which("py-spy", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("py-spy is not installed; tools/setup test installs it")

    def record(form: str, *options: str) -> Path:
        (tmp_path / "spin.py").write_text(SPIN)
        path = tmp_path / f"spin.{form}"
        command = [program, "record", "-f", form, "-o", path, *options, "--", sys.executable, "spin.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        if "Permission" in done.stderr:
            pytest.skip("this machine does not let py-spy look into other processes")
        assert done.returncode == 0, done.stderr
        return path

    return record


def read_raw(path: Path) -> tuple[int, Counter[str]]:
    """Samples in all, and by function how many had it at their end."""
    own: Counter[str] = Counter()
    lines = path.read_text().splitlines()
    for line in lines:
        stack, count = line.rsplit(" ", 1)
        frame = stack.rsplit(";", 1)[-1]
        found = re.match(r"(.*) \(.*\)$", frame)
        own[found.group(1) if found and not frame.startswith("thread (") else "(no frames)"] += int(count)
    return sum(own.values()), own


def test_samples_of_py_spy_are_all_there(marey, py_spy, tmp_path):
    path = py_spy("raw", "-s", "--threads")
    n_samples, own = read_raw(path)
    rows = report(marey, path)
    assert sum(self_ns for _, _, self_ns in rows.values()) == n_samples * 10_000_000
    got: Counter[str] = Counter()
    for name, (_, _, self_ns) in rows.items():
        got[re.sub(r" \(.*\)$", "", name) if name != "(no frames)" else name] += self_ns // 10_000_000
    assert +got == own
    assert rows["outer"][1] > n_samples * 10_000_000 / 2
    processes = json.loads(marey("report", path, "--json").stdout)["processes"]
    # py-spy may look at the program before that has its command line, and then writes an empty one.
    commands = set(re.findall(r'process \d+:"([^"]*)"', path.read_text()))
    assert any("spawn_main" in command for command in commands)
    assert commands <= {process["command"] for process in processes}
    done = marey("import", path, "-o", "faster.marey", "--rate", 1000)
    assert done.returncode == 0
    faster = report(marey, tmp_path / "faster.marey")
    assert {name: (count, total * 10, own * 10) for name, (count, total, own) in faster.items()} == rows


def test_py_spy_s_file_for_speedscope_has_its_times(marey, py_spy):
    path = py_spy("speedscope", "-s", "--threads")
    file = json.loads(path.read_text(), parse_float=Decimal)
    frames = file["shared"]["frames"]
    seconds: dict[str, Decimal] = defaultdict(Decimal)
    for profile_ in file["profiles"]:
        for stack, weight in zip(profile_["samples"], profile_["weights"]):
            for name in {frames[i]["name"] for i in stack}:
                seconds[name] += weight
    rows = report(marey, path)
    for name in ("outer", "inner", "child"):
        assert rows[name][1] == seconds[name] * 10**9
    assert not any(name.startswith(("process ", "thread ")) for name in rows)


# ---- viztracer ----

TRACED = """
import threading

def leaf(n):
    return sum(range(n))

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def work(n):
    for i in range(n):
        leaf(i)
    return fib(8)

thread = threading.Thread(target=work, args=(20,))
thread.start()
work(30)
thread.join()
"""


def nanoseconds(microseconds: Decimal | int) -> int:
    return int((Decimal(microseconds) * 1000).to_integral_value())


def add_up(events: list[dict[str, Any]]) -> Rows:
    """Counts, totals of outermost calls and self times of one thread's events."""
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    spans = [(nanoseconds(e["ts"]), nanoseconds(e["dur"]), re.sub(r" \(.*:\d+\)$", "", e["name"])) for e in events]
    stack: list[tuple[int, str]] = []
    for begin, duration, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        while stack and stack[-1][0] <= begin:
            stack.pop()
        row = rows[name]
        row[0] += 1
        row[1] += duration if all(name != around for _, around in stack) else 0
        row[2] += duration
        if stack:
            rows[stack[-1][1]][2] -= duration
        stack.append((begin + duration, name))
    return {name: (count, total, own) for name, (count, total, own) in rows.items()}


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_functions_of_viztracer_have_their_counts_and_times(marey, tmp_path, name):
    pytest.importorskip("viztracer", reason="viztracer is not installed; tools/setup test installs it")
    (tmp_path / "traced.py").write_text(TRACED)
    command = [sys.executable, "-m", "viztracer", "--quiet", "-o", name, "traced.py"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    path = tmp_path / name
    text = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    threads = defaultdict(list)
    for event in json.loads(text, parse_float=Decimal)["traceEvents"]:
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append(event)
    assert len(threads) == 2
    expected: Counter[tuple[str, int]] = Counter()
    for events in threads.values():
        for function, numbers in add_up(events).items():
            expected.update({(function, i): number for i, number in enumerate(numbers)})
    rows = report(marey, path)
    assert rows["fib"][0] == 2 * 67
    assert rows["leaf"][0] == 50
    assert set(rows) == {function for function, _ in expected}
    for function, numbers in rows.items():
        assert numbers == tuple(expected[function, i] for i in range(3)), function


# ---- what marey exports itself ----


@pytest.fixture
def recording(marey, emit, tmp_path) -> Path:
    assert marey("run", "--only", "ranges", "-q", "-o", "run.marey", emit, 50, "recurse=3", "thread", 3).returncode == 0
    return tmp_path / "run.marey"


def test_an_export_to_speedscope_comes_back_as_it_was(marey, recording, tmp_path):
    assert marey("export", recording, "--to", "speedscope", "-o", "run.speedscope.json").returncode == 0
    assert report(marey, tmp_path / "run.speedscope.json") == report(marey, recording)


def test_collapsed_stacks_come_back_as_they_were(marey, recording, tmp_path):
    assert marey("export", recording, "--to", "collapsed", "-o", "run.txt").returncode == 0
    lines = (tmp_path / "run.txt").read_text()
    assert marey("import", "run.txt", "--rate", 1_000_000_000, "-o", "again.marey").returncode == 0
    assert marey("export", "again.marey", "--to", "collapsed", "-o", "-").stdout == lines


def test_stacks_of_samples_come_back_in_units_of_their_samples(marey, tmp_path):
    (tmp_path / "perf.folded").write_text("a 1\na;b 2\na;b;a_[k] 30\nz;with blanks 4\n")
    done = marey("export", "perf.folded", "--to", "collapsed", "-o", "-")
    assert done.returncode == 0
    assert done.stdout == "a 10000000\na;b 20000000\na;b;a_[k] 300000000\nz;with blanks 40000000\n"


def test_a_file_that_is_nothing_is_refused(marey, tmp_path):
    (tmp_path / "letter.txt").write_text("Dear reader,\nthis is no profile.\n")
    done = marey("report", "letter.txt")
    assert done.returncode == 2
    assert "letter.txt" in done.stderr
    done = marey("report", "letter.txt", "--json")
    assert done.returncode == 2
    done = marey("import", "letter.txt", "--from", "collapsed")
    assert done.returncode == 2
    assert "letter.txt has no stacks: a line is frames with ; between, then a number" in done.stderr


def test_profiles_are_compared_by_the_time_of_the_whole_run(marey, tmp_path):
    for run, weight in (("before", 100), ("after", 150)):
        (tmp_path / f"{run}.folded").write_text(f"main;f {weight}\nmain;g 100\n")
    done = marey("compare", "before.folded", "after.folded", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    ranges = {row["name"]: row for row in result["ranges"]}
    assert round(ranges["f"]["change_percent"]) == 50
    assert round(ranges["main"]["change_percent"]) == 25
    assert any("both sides are profiles" in text for text in result["warnings"])
