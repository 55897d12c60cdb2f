"""The first row of a report of samples is work: no launcher, idle worker or importlib; top-level code has its line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
def sampled(kymo: Any, tmp_path: Path) -> Any:
    def run(source: str) -> str:
        (tmp_path / "loop.py").write_text(LOOP)
        (tmp_path / "small.py").write_text("x = [i for i in range(100)]\n")
        (tmp_path / "main.py").write_text(source)
        done = kymo("run", "--force", "--sample", "-o", "run.kymo", "--", sys.executable, "main.py")
        assert done.returncode == 0, done.stderr
        return done.stderr

    return run


def samples(kymo: Any, *options: str) -> dict[str, Any]:
    done: subprocess.CompletedProcess[str] = kymo("report", "run.kymo", "--samples", "--json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def idle_notes(found: dict[str, Any]) -> list[str]:
    return [note for note in found["notes"] if "idle process" in note]


def top_five(stderr: str) -> list[str]:
    """The places in what `kymo run --sample` prints at its end."""
    return [line.split()[-1] for line in stderr.splitlines() if line.endswith(")") and ":" in line.split()[-1]]


def test_top_level_code_has_the_line_that_ran(kymo, sampled):
    printed = sampled(LOOP)
    first = samples(kymo)["functions"][0]
    assert (first["function"], first["line"]) == ("<module>", HOT)
    assert top_five(printed)[0] == f"main.py:{HOT}(<module>)"


def test_a_launcher_that_waits_is_left_out(kymo, sampled):
    printed = sampled(LAUNCHER)
    found = samples(kymo)
    first = found["functions"][0]
    assert (first["function"], first["line"]) == ("<module>", HOT) and first["file"].endswith("loop.py")
    assert "monitor" not in {row["function"] for row in found["functions"]}
    [note] = idle_notes(found)
    assert "1 idle process," in note and "main.py" in note and "--idle shows it" in note
    assert top_five(printed)[0] == f"loop.py:{HOT}(<module>)"
    assert note in printed
    all_of_it = samples(kymo, "--idle")
    assert "monitor" in {row["function"] for row in all_of_it["functions"]} and not idle_notes(all_of_it)


def test_workers_without_work_are_left_out(kymo, sampled):
    sampled(WORKERS)
    found = samples(kymo)
    assert found["functions"][0]["function"] == "work"
    assert len(found["processes"]) == 1
    [note] = idle_notes(found)
    assert "3 idle processes," in note
    # Who chooses a process gets it.
    assert len(samples(kymo, "--process", "main.py")["processes"]) == 4


def test_imports_are_time_of_the_line_that_imports(kymo, sampled):
    sampled(LAZY)
    found = samples(kymo)
    assert not [row for row in found["functions"] + found["lines"] if "importlib" in row["file"]]
    assert found["functions"][0]["function"] == "load"
    assert [row for row in samples(kymo, "--startup")["functions"] if "importlib" in row["file"]]


def test_a_program_that_only_sleeps_is_not_left_out(kymo, sampled):
    sampled(SLEEPS)
    found = samples(kymo)
    assert found["functions"][0]["function"] == "rest" and not idle_notes(found)


def test_a_program_that_waits_for_its_own_worker_stays(kymo, sampled):
    sampled(STARVED)
    found = samples(kymo)
    assert {"train", "produce"} <= {row["function"] for row in found["functions"]}
    assert not idle_notes(found)
