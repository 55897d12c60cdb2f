"""Which samples and calls a report has: of one process, without start-up; workers apart from their parent."""

from __future__ import annotations

import json
import sys

import pytest

WORKERS = """
import multiprocessing, time

def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

def load():
    burn(0.6)

def train_everything():
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=load) for _ in range(2)]
    for worker in workers:
        worker.start()
    burn(0.6)
    for worker in workers:
        worker.join()

train_everything()
"""

SLOW_MODULE = """
import time
def prepare():
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        pass
prepare()
"""

IMPORTS = """
import time
import slow_module

def work():
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end:
        pass

work()
"""

LAZY = """
import sys
def step():
    sys.modules.pop("slow_module", None)
    import slow_module
for _ in range(2):
    step()
"""


@pytest.fixture
def sampled(marey, tmp_path):
    def run(source: str, name: str = "run.marey", *options: str) -> str:
        (tmp_path / "slow_module.py").write_text(SLOW_MODULE)
        (tmp_path / "train.py").write_text(source)
        done = marey("run", "-q", *(options or ("--sample",)), "-o", name, "--", sys.executable, "train.py")
        assert done.returncode == 0, done.stderr
        return name

    return run


def samples(marey, *args) -> dict:
    done = marey("report", "--samples", *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def functions(found: dict) -> dict[str, float]:
    return {row["function"]: row["self_ns"] for row in found["functions"]}


def test_stacks_of_forked_workers_begin_with_the_worker(marey, sampled):
    stacks = [row["stack"] for row in samples(marey, sampled(WORKERS))["stacks"]]
    of_workers = [stack for stack in stacks if "load (train.py" in stack]
    assert of_workers
    assert not any("train_everything" in stack for stack in of_workers)
    assert all(stack.split(";")[0].startswith(("BaseProcess._bootstrap", "_bootstrap")) for stack in of_workers)
    assert any("train_everything" in stack for stack in stacks)  # the parent's own stay as they are


def test_a_process_can_be_chosen(marey, sampled):
    run = sampled(WORKERS)
    processes = samples(marey, run)["processes"]
    assert len(processes) == 3
    for row in processes:
        found = samples(marey, run, "--process", row["pid"])
        assert [one["pid"] for one in found["processes"]] == [row["pid"]]
        assert f"of process {row['pid']}" in found["totals"][0]["what"]
    assert len(samples(marey, run, "--process", "train.py")["processes"]) == 3
    done = marey("report", run, "--samples", "--process", "no-such-program")
    assert done.returncode == 2
    assert "no process 'no-such-program' was sampled" in done.stderr
    svg = marey("export", run, "--process", processes[0]["pid"], "--to", "collapsed", "-o", "-")
    assert svg.returncode == 0 and svg.stdout


def test_ranges_of_a_process_can_be_chosen(marey, emit, tmp_path):
    for _ in range(2):
        assert marey("run", "--only", "ranges", "-q", "--append", "-o", "run.marey", "--", emit, 5).returncode == 0
    whole = json.loads(marey("report", "run.marey", "--json").stdout)
    pid = whole["processes"][0]["pid"]
    part = json.loads(marey("report", "run.marey", "--json", "--process", pid).stdout)
    assert [row["pid"] for row in part["processes"]] == [pid]
    assert 2 * part["ranges"][0]["count"] == whole["ranges"][0]["count"]
    rows = marey("export", "run.marey", "--to", "csv", "-o", "-").stdout.count("\n")
    assert marey("export", "run.marey", "--to", "csv", "-o", "-", "--process", pid).stdout.count("\n") < rows
    for command in (
        ("report", "run.marey"),
        ("export", "run.marey", "-o", "x.pftrace"),
        ("report", "run.marey", "--html", "x"),
    ):
        done = marey(*command, "--process", "worker")
        assert done.returncode == 2
        assert "no process 'worker' is in run.marey" in done.stderr
        assert not (tmp_path / "x").exists()


def test_imports_at_start_up_are_left_out_and_named(marey, sampled):
    run = sampled(IMPORTS)
    found = samples(marey, run)
    assert "work" in functions(found) and "prepare" not in functions(found)
    assert not any("importlib" in row["file"] for row in found["functions"])
    (note,) = [note for note in found["notes"] if "start-up" in note]
    assert note.startswith("Left out: ") and note.endswith("--startup shows them.")
    whole = samples(marey, run, "--startup")
    assert {"work", "prepare"} <= set(functions(whole))
    assert not any("start-up" in note for note in whole["notes"])
    left_out = marey("export", run, "--to", "collapsed", "-o", "-")
    assert "prepare" not in left_out.stdout and "--startup includes them" in left_out.stderr
    assert "prepare" in marey("export", run, "--to", "collapsed", "-o", "-", "--startup").stdout
    assert "prepare" in marey("export", run, "--to", "pyspy", "-o", "-").stdout


def test_imports_that_a_function_makes_again_and_again_stay(marey, sampled):
    found = samples(marey, sampled(LAZY))
    assert "prepare" in functions(found)


def test_imports_are_left_out_of_call_reports(marey, sampled):
    run = sampled(IMPORTS, "calls.marey", "--calls")

    def names(*options: str) -> set[str]:
        done = marey("report", run, "--calls", "--json", *options)
        assert done.returncode == 0, done.stderr
        return {row["function"] for row in json.loads(done.stdout)["functions"]}

    assert "work" in names() and "prepare" not in names()
    assert {"work", "prepare"} <= names("--startup")
    assert "of imports at start-up; --startup shows them" in marey("report", run, "--calls").stdout


def test_samples_without_python_frames_are_explained(marey, sampled):
    """An interpreter that ends: threads without frames collect garbage."""
    source = """
import threading
class Heavy:
    def __init__(self):
        self.items = [[i] for i in range(2_000_000)]
        self.own = self
heavy = [Heavy() for _ in range(2)]
"""
    found = samples(marey, sampled(source))
    assert functions(found)["(no Python frames)"] > 0
    (note,) = [note for note in found["notes"] if note.startswith("(no Python frames)")]
    assert "garbage collection outside of Python code" in note or "starting or ending" in note


STEPS = """
import sys, time
import marey

def compute():
    end = time.perf_counter() + 0.03
    while time.perf_counter() < end:
        pass

def flush_logs():
    time.sleep(0.4)

def step(i):
    compute()
    if i % 10 == 9 and sys.argv[1] == "stall":
        flush_logs()

for i in range(40):
    with marey.iteration():
        step(i)
"""


@pytest.mark.parametrize("planted", [True, False])
def test_the_function_that_makes_slow_steps_slow_is_named(marey, tmp_path, planted):
    (tmp_path / "train.py").write_text(STEPS)
    argument = "stall" if planted else "none"
    done = marey("run", "-q", "--sample", "-o", "run.marey", "--", sys.executable, "train.py", argument)
    assert done.returncode == 0, done.stderr
    notes = [note for note in samples(marey, "run.marey")["notes"] if "slow step" in note]
    text = marey("report", "run.marey").stdout
    assert "no range in it accounts for that" not in text
    if planted:
        assert len(notes) == 1 and notes[0].startswith("flush_logs (train.py) takes ")
        assert "flush_logs (train.py) takes " in text
    else:
        assert not any("flush_logs" in note for note in notes)
