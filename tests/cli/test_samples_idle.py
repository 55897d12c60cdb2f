"""The first row of samples is work: no launcher, idle worker or importlib. Top-level code has its line.

Reports, comparisons, flame graphs and the page make the same choice; other exports have everything.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from page_decoder import Page, needs_viewer

LOOP = """
import time


end = time.perf_counter() + 0.8
while time.perf_counter() < end:
    sum(range(20000))  # hot
"""
HOT = 1 + next(i for i, line in enumerate(LOOP.splitlines()) if "# hot" in line)

# Waits for its child, as torchrun does, three times as long as the child works.
LAUNCHER = """
import subprocess, sys, time

def monitor():
    child = subprocess.Popen([sys.executable, "loop.py"])
    for _ in range(20):
        time.sleep(0.12)
    child.wait()

monitor()
"""

WORKERS = """
import multiprocessing, time

def idle(queue):
    queue.get()

def work():
    end = time.perf_counter() + 0.8
    while time.perf_counter() < end:
        sum(range(20000))

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=idle, args=(queue,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    work()
    for worker in workers:
        queue.put(None)
    for worker in workers:
        worker.join()
"""

# The main process waits for a worker that is too slow, as with a data loader.
STARVED = """
import multiprocessing, time

def produce(queue):
    end = time.perf_counter() + 0.8
    while time.perf_counter() < end:
        sum(range(20000))
    queue.put(None)

def train(queue):
    queue.get()

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    worker = context.Process(target=produce, args=(queue,))
    worker.start()
    train(queue)
    worker.join()
"""

LAZY = """
import sys, time

def load():
    end = time.perf_counter() + 0.8
    while time.perf_counter() < end:
        sys.modules.pop("small", None)
        import small

load()
"""

SLEEPS = """
import time

def rest():
    time.sleep(0.8)

rest()
"""


@pytest.fixture
def sampled(marey: Any, tmp_path: Path) -> Any:
    def run(source: str, name: str = "run.marey") -> str:
        (tmp_path / "loop.py").write_text(LOOP)
        (tmp_path / "small.py").write_text("x = [i for i in range(100)]\n")
        (tmp_path / "main.py").write_text(source)
        done = marey("run", "--force", "--sample", "-o", name, "--", sys.executable, "main.py")
        assert done.returncode == 0, done.stderr
        return done.stderr

    return run


def samples(marey: Any, *options: str) -> dict[str, Any]:
    done: subprocess.CompletedProcess[str] = marey("report", "run.marey", "--samples", "--json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def idle_notes(found: dict[str, Any]) -> list[str]:
    return [note for note in found["notes"] if "idle process" in note]


def top_five(stderr: str) -> list[str]:
    """The places in what `marey run --sample` prints at its end."""
    return [line.split()[-1] for line in stderr.splitlines() if line.endswith(")") and ":" in line.split()[-1]]


def test_top_level_code_has_the_line_that_ran(marey, sampled):
    printed = sampled(LOOP)
    first = samples(marey)["functions"][0]
    assert (first["function"], first["line"]) == ("<module>", HOT)
    assert top_five(printed)[0] == f"main.py:{HOT}(<module>)"


def test_a_launcher_that_waits_is_left_out(marey, sampled):
    printed = sampled(LAUNCHER)
    found = samples(marey)
    first = found["functions"][0]
    assert (first["function"], first["line"]) == ("<module>", HOT) and first["file"].endswith("loop.py")
    assert "monitor" not in {row["function"] for row in found["functions"]}
    [note] = idle_notes(found)
    assert "1 idle process," in note and "main.py" in note and "--idle shows it" in note
    assert top_five(printed)[0] == f"loop.py:{HOT}(<module>)"
    assert note in printed
    all_of_it = samples(marey, "--idle")
    assert "monitor" in {row["function"] for row in all_of_it["functions"]} and not idle_notes(all_of_it)


def test_workers_without_work_are_left_out(marey, sampled):
    sampled(WORKERS)
    found = samples(marey)
    assert found["functions"][0]["function"] == "work"
    assert len(found["processes"]) == 1
    [note] = idle_notes(found)
    assert "3 idle processes," in note
    # Who chooses a process gets it.
    assert len(samples(marey, "--process", "main.py")["processes"]) == 4


def test_imports_are_time_of_the_line_that_imports(marey, sampled):
    sampled(LAZY)
    found = samples(marey)
    assert not [row for row in found["functions"] + found["lines"] if "importlib" in row["file"]]
    assert found["functions"][0]["function"] == "load"
    assert [row for row in samples(marey, "--startup")["functions"] if "importlib" in row["file"]]
    # Call tables of samples, and the boxes of the page, are of the same frames.
    calls = json.loads(marey("report", "run.marey", "--calls", "--json").stdout)["functions"]
    assert calls[0]["function"] == "load"
    assert not [row for row in calls if "importlib" in row["file"]]


def test_a_program_that_only_sleeps_is_not_left_out(marey, sampled):
    sampled(SLEEPS)
    found = samples(marey)
    assert found["functions"][0]["function"] == "rest" and not idle_notes(found)


def test_a_program_that_waits_for_its_own_worker_stays(marey, sampled):
    sampled(STARVED)
    found = samples(marey)
    assert {"train", "produce"} <= {row["function"] for row in found["functions"]}
    assert not idle_notes(found)


def export(marey: Any, form: str, *options: str) -> tuple[str, str]:
    done: subprocess.CompletedProcess[str] = marey("export", "run.marey", "--to", form, "-o", "-", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("form", ["collapsed", "flamegraph"])
def test_a_flame_graph_has_no_launcher_and_names_the_line(marey, sampled, form):
    sampled(LAUNCHER)
    text, notes = export(marey, form)
    assert "monitor" not in text and f"loop.py:{HOT}" in text
    assert "of idle processes and workers; --idle includes them" in notes
    text, notes = export(marey, form, "--idle")
    assert "monitor" in text and "idle processes" not in notes


@pytest.mark.parametrize("form", ["pyspy", "callgrind", "speedscope", "chrome"])
@pytest.mark.parametrize("options", [(), ("--samples",)])
def test_other_exports_have_every_process(marey, sampled, form, options):
    sampled(LAUNCHER)
    assert "monitor" in export(marey, form, *options)[0]


def test_a_flame_graph_has_no_importlib(marey, sampled):
    sampled(LAZY)
    text, _ = export(marey, "collapsed")
    assert "load" in text and "_find_and_load" not in text
    assert "_find_and_load" in export(marey, "collapsed", "--startup")[0]
    assert "_find_and_load" in export(marey, "pyspy")[0]
    # A choice of imports is not one of processes.
    sampled(LAUNCHER)
    assert "monitor" not in export(marey, "collapsed", "--startup")[0]
    assert "monitor" not in {row["function"] for row in samples(marey, "--startup")["functions"]}


def compared(marey: Any, *options: str) -> tuple[set[str], list[str]]:
    done: subprocess.CompletedProcess[str] = marey("compare", "run.marey", "other.marey", "--json", *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {row["name"] for row in found["functions"] + found["only"]}, found["warnings"]


def test_functions_are_compared_without_the_launcher(marey, sampled):
    sampled(LAUNCHER)
    sampled(LAUNCHER, "other.marey")
    names, notes = compared(marey)
    assert "<module> (loop.py)" in names and "monitor (main.py)" not in names
    assert any("functions exclude idle processes" in note and "--idle shows them" in note for note in notes)
    names, notes = compared(marey, "--idle")
    assert "monitor (main.py)" in names and not any("idle processes" in note for note in notes)


def test_functions_are_compared_without_importlib(marey, sampled):
    sampled(LAZY)
    sampled(LAZY, "other.marey")
    names, _ = compared(marey)
    assert "load (main.py)" in names and not any("_bootstrap" in name for name in names)
    names, _ = compared(marey, "--startup")
    assert any("<frozen importlib._bootstrap" in name for name in names)


@needs_viewer
def test_the_flame_graph_of_the_page_has_no_launcher(marey, sampled, tmp_path):
    sampled(LAUNCHER)
    assert marey("report", "run.marey", "--html", "page.html").returncode == 0
    drawn = Page(tmp_path / "page.html").index["sample_calls"][0]
    functions = {(function[0], Path(function[2]).name, function[3]) for function in drawn["functions"]}
    assert ("<module>", "loop.py", HOT) in functions
    assert not [function for function in functions if function[0] == "monitor" or "importlib" in function[1]]


POOL = """
import multiprocessing, time

def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

if __name__ == "__main__":
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        for _ in range(4):
            list(pool.map(burn, [0.05, 0.05]))
            burn(0.2)
"""


def test_workers_that_wait_for_a_task_are_not_the_answer(marey, sampled):
    sampled(POOL)
    found = samples(marey)
    assert found["functions"][0]["function"] == "burn"
    assert not [row for row in found["stacks"] if "_process_worker" in row["stack"] and "Queue.get" in row["stack"]]
    assert [note for note in found["notes"] if "in which workers waited for their next task; --idle shows it" in note]
    shown = samples(marey, "--idle")
    assert [row for row in shown["stacks"] if "_process_worker" in row["stack"] and "Queue.get" in row["stack"]]
