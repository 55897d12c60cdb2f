"""Exports of samples: every format has the same samples, filters work, and times are on the clock of ranges."""

from __future__ import annotations

import json
import pstats
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from watching import MAREY, PATIENCE_S

import marey

PROGRAM = """
import os, threading, time
import marey

def forward(n):
    total = 0
    for i in range(n):
        total += i * i
    return total

def backward(n):
    total = 1
    while n > 0:
        n -= 1
        total ^= n
    return total

def step():
    with marey.range("forward"):
        forward(1500000)
    with marey.range("backward"):
        backward(1500000)

def load(stop):
    while not stop.wait(0.01):
        pass

stop = threading.Event()
threading.Thread(target=load, args=(stop,), name="loader", daemon=True).start()
print("ready", os.getpid(), flush=True)
end = time.monotonic() + 60
while time.monotonic() < end and not os.path.exists("enough"):
    with marey.iteration():
        step()
stop.set()
"""
BESIDE = 1 << 30  # numbers of tracks of samples lie above


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program's own recording, with samples added to it once it trains."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "train.py").write_text(PROGRAM)
    command = [MAREY, "run", "--only", "ranges", "-o", "run.marey", "--", sys.executable, "train.py"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        pid = program.stdout.readline().split()[1]
        attach = [MAREY, "attach", pid, "-q", "--rate", "200", "--duration", "1500ms", "-o", "run.marey", "--append"]
        done = subprocess.run(attach, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        (folder / "enough").touch()
    assert done.returncode == 0, done.stderr
    return folder / "run.marey"


def export(run: Path, *options: str) -> str:
    command = [MAREY, "export", "-q", str(run), *options, "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def totals(run: Path, *options: str) -> dict[str, Any]:
    command = [MAREY, "report", str(run), "--samples", "--native", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["totals"][0]


def collapsed(text: str) -> Counter[str]:
    return Counter({stack: int(n) for stack, _, n in (line.rpartition(" ") for line in text.splitlines())})


@pytest.mark.parametrize("chosen", [(), ("--idle",), ("--thread", "Main"), ("--mode", "cpu"), ("--range", "forward")])
def test_every_format_has_the_samples_of_the_report(run, chosen):
    whole = totals(run, *chosen)
    assert whole["samples"] > 10
    assert collapsed(export(run, "--samples", *chosen, "--to", "collapsed")).total() == whole["self_ns"]
    assert collapsed(export(run, *chosen, "--samples", "--to", "pyspy")).total() == whole["samples"]


def test_a_range_chooses(run):
    stacks = collapsed(export(run, "--range", "forward", "--to", "collapsed"))
    inside = sum(n for stack, n in stacks.items() if ";forward" in stack)
    assert inside / stacks.total() > 0.9
    assert not any(";backward" in stack and n / stacks.total() > 0.1 for stack, n in stacks.items())


def test_lines_are_those_of_the_program(run):
    lines = PROGRAM.splitlines()
    for stack in collapsed(export(run, "--samples", "--thread", "Main", "--to", "pyspy")):
        leaf = stack.rpartition(";")[2]
        if leaf.startswith("forward ("):
            assert lines[int(leaf.rpartition(":")[2][:-1]) - 1].strip() != ""


def test_pstats_has_the_time_of_samples(run, tmp_path):
    path = tmp_path / "run.prof"
    marey.load(run).export("pstats", path, samples=True)
    stats = pstats.Stats(str(path))
    whole = totals(run)
    assert sum(row[2] for row in stats.stats.values()) == pytest.approx(whole["self_ns"] / 1e9, rel=1e-6)


def test_samples_have_no_call_counts(run, tmp_path):
    """Not in text, JSON, CSV, Python, pstats or callgrind; times are there."""
    calls = marey.load(run).calls()
    assert max(calls["self_ns"]) > 0
    for name in ("calls", "primitive_calls", "resumes", "self_per_call_ns", "total_per_call_ns"):
        assert set(calls[name]) == {None}, name
    text = subprocess.run([MAREY, "report", "--calls", run], capture_output=True, text=True, check=True).stdout
    assert text.startswith("samples of ") and "which have no call counts" in text
    assert "calls" not in text.splitlines()[2].split()
    tables = json.loads(
        subprocess.run([MAREY, "report", "--calls", "--json", run], capture_output=True, check=True).stdout
    )
    counted = [row["calls"] for name in ("functions", "callers", "paths", "threads", "totals") for row in tables[name]]
    assert set(counted) == {None}
    for row in pstats_of(run, tmp_path).stats.values():
        assert row[:2] == (0, 0) and all(counts[:2] == (0, 0) for counts in row[4].values())
    callgrind = export(run, "--to", "callgrind", "--samples")
    assert "calls=0 " in callgrind and not re.search(r"^calls=[1-9]", callgrind, re.MULTILINE)


def pstats_of(run, tmp_path) -> pstats.Stats:
    path = tmp_path / "counts.prof"
    marey.load(run).export("pstats", path, samples=True)
    return pstats.Stats(str(path))


def test_samples_lie_beside_ranges_on_one_clock(run):
    events = [e for e in json.loads(export(run, "--to", "chrome"))["traceEvents"] if e["ph"] == "X"]
    ranges = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["name"] == "forward" and e["tid"] < BESIDE]
    boxes = [(e["ts"], e["dur"]) for e in events if e["name"].startswith("forward") and e["tid"] >= BESIDE]
    assert {e["pid"] for e in events if e["tid"] >= BESIDE} == {e["pid"] for e in events if e["name"] == "forward"}
    drawn = sum(duration for _, duration in boxes)
    inside = sum(max(0, min(b, t + d) - max(a, t)) for t, d in boxes for a, b in ranges)
    assert inside > 0.7 * drawn  # a box may begin a gap too early, or end one too late
    sampled = [e["ts"] for e in events if e["tid"] >= BESIDE]
    seen = [(a, b) for a, b in ranges if min(sampled) <= a and b <= max(sampled)]
    assert inside > 0.7 * sum(b - a for a, b in seen)


def test_speedscope_has_a_profile_for_each_thread(run):
    profiles = json.loads(export(run, "--idle", "--to", "speedscope"))["profiles"]
    assert any("loader" in profile["name"] for profile in profiles)


def test_a_baseline_shows_what_changed(run):
    lines = export(run, "--thread", "Main", "-b", str(run), "--to", "collapsed").splitlines()
    assert lines and all(line.split(" ")[-1] == line.split(" ")[-2] for line in lines)
    assert "<svg" in export(run, "--samples", "-b", str(run), "--to", "flamegraph")


def test_python_has_the_tables(run, tmp_path):
    recording = marey.load(run)
    functions = recording.samples()
    assert {"forward", "backward"} <= set(functions["function"])
    lines = recording.samples("line", thread="Main", range="backward")
    assert lines.row(function="backward")["samples"] > 0
    assert len(recording.samples("thread", idle=True)) >= 2
    assert recording.samples("audit")["rate_hz"][0] == 200
    recording.export("pyspy", tmp_path / "some.raw", samples={"iterations": "0..", "range": "forward"})
    assert 0 < collapsed((tmp_path / "some.raw").read_text()).total() < totals(run)["samples"]
    with pytest.raises(ValueError, match="samples does not take the setting colour"):
        recording.samples(colour="red")
    with pytest.raises(ValueError, match="mode may be one of"):
        recording.samples(mode="dreaming")
    with pytest.raises(ValueError, match="has no table by"):
        recording.samples("colour")


def test_plot_takes_a_sampled_run(run, tmp_path):
    for name, other in (("one.html", None), ("two.html", run)):
        marey.plot(run, other, path=tmp_path / name, open_browser=False)
        assert (tmp_path / name).stat().st_size > 1000


def test_what_cannot_be_is_one_sentence(run, tmp_path):
    def fail(*arguments: str) -> str:
        command = [MAREY, "export", *arguments, "-o", str(tmp_path / "out")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 2
        return done.stderr

    plain = tmp_path / "trace.json"
    plain.write_text('[{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]')
    assert "nothing was sampled" in fail(str(plain), "--samples", "--to", "chrome")
    assert "calls and samples need separate files" in fail(str(run), "--calls", "--idle")
    assert "has threads apart, and no rank" in fail(str(run), "--to", "pyspy", "--by", "rank")
