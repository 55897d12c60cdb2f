"""`marey report --samples`: of a real program with ranges and iterations of its own, and of a log made by hand."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = Path(__file__).parents[1] / "fuzz" / "corpus" / "samples" / "rounds.klog"

PROGRAM = """
import time
import marey

def compute(until):
    while time.perf_counter() < until:
        sum(range(2000))

def load(seconds):
    time.sleep(seconds)

for step in range(12):
    with marey.range("forward"):
        compute(time.perf_counter() + 0.06)
    with marey.range("data"):
        load(0.4 if step == 7 else 0.03)
    marey.finish_iteration()
"""


@pytest.fixture(scope="module")
def sampled(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of PROGRAM at 300 Hz."""
    folder = tmp_path_factory.mktemp("sampled")
    (folder / "train.py").write_text(PROGRAM)
    command = [
        program,
        "run",
        "-q",
        "--sample=300",
        "-o",
        folder / "run.marey",
        "--",
        sys.executable,
        folder / "train.py",
    ]
    subprocess.run([str(word) for word in command], check=True, timeout=60)
    return folder / "run.marey"


def tables(marey, path, *options):
    done = marey("report", path, "--samples", "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def share_of(table, name):
    return sum(row["share"] for row in table if row["function"] == name)


def test_a_range_chooses_what_was_seen_in_it(marey, sampled):
    forward = tables(marey, sampled, "--range", "forward")["functions"]
    data = tables(marey, sampled, "--range", "data")["functions"]
    assert share_of(forward, "compute") > 0.8 and share_of(forward, "load") < 0.1
    assert share_of(data, "load") > 0.8 and share_of(data, "compute") < 0.1


def test_the_slow_iteration_is_chosen_by_either_spelling(marey, sampled):
    slow = tables(marey, sampled, "--iterations=slow")
    assert "the slow ones (more than 1.5 times the median)" in slow["totals"][0]["what"]
    assert share_of(slow["functions"], "load") > 0.6
    assert slow == tables(marey, sampled, "--iterations", "slow")
    seventh = tables(marey, sampled, "--iterations=7")
    assert share_of(seventh["functions"], "load") > 0.6


def test_a_line_that_sleeps_says_so_and_is_on_no_processor(marey, sampled):
    lines = tables(marey, sampled)["lines"]
    sleeping = next(row for row in lines if row["function"] == "load")
    assert sleeping["waits"] == "sleep" and sleeping["cpu"] < 0.2
    assert sleeping["line"] == PROGRAM.splitlines().index("    time.sleep(seconds)") + 1
    on_cpu = tables(marey, sampled, "--mode", "cpu")["functions"]
    assert share_of(on_cpu, "load") < 0.1


def test_a_plain_report_has_a_section_and_counts_one_process(marey, sampled):
    plain = marey("report", sampled)
    assert plain.returncode == 0
    assert "1 process, 1 thread" in plain.stdout and "\nSamples  " in plain.stdout and "audit: " in plain.stdout
    for options in (["--tree"], ["--json"], ["--epochs"], ["--calls"]):
        assert "\nSamples  " not in marey("report", sampled, *options).stdout


def test_a_sampler_is_no_rank_of_other_commands(marey, sampled):
    assert marey("breakdown", sampled).returncode == 0
    same = marey("compare", sampled, sampled)
    assert same.returncode == 0 and "sampler" not in same.stdout
    energy = marey("report", sampled, "--energy")
    assert energy.returncode == 2 and "energy" in energy.stderr


def test_every_table_is_drawn_and_written(marey):
    names = [
        "functions",
        "lines",
        "files",
        "modules",
        "threads",
        "processes",
        "ranks",
        "stacks",
        "waits",
        "gil",
        "audit",
    ]
    for name in names:
        assert marey("report", ROUNDS, "--samples", "--table", name).returncode == 0
        done = marey("report", ROUNDS, "--samples", "--csv", "--table", name)
        assert done.returncode == 0 and next(csv.reader(io.StringIO(done.stdout)))
    contacts = marey("report", ROUNDS, "--samples", "--native", "--library", "torch").stdout
    assert "linear.py:10(Linear.forward)" in contacts and "train.py:4(main)" in contacts


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--samples", "--by", "shape"], "not 'shape'"),
        (["--samples", "--iterations"], "iterations takes a value: slow|A..B"),
        (["--samples", "--iterations=soon"], "'soon' does not select iterations"),
        (["--samples", "--range", "backward"], "has a range 'backward'"),
        (["--samples", "--rank", "7"], "no process of rank 7"),
        (["--samples", "--thread", "nobody"], "no thread called 'nobody'"),
        (["--samples", "--sort", "colour"], "cannot be sorted by 'colour'"),
        (["--samples", "--table", "nothing"], "no table 'nothing' of samples"),
        (["--samples", "--memory"], "--memory and --samples exclude one another"),
        (["--range", "forward"], "--range goes with --samples"),
        (["--iterations=slow"], "goes with --samples"),
    ],
)
def test_what_cannot_be_is_one_sentence(marey, options, says):
    done = marey("report", ROUNDS, *options)
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1


def test_without_a_sampler_it_says_how_to_get_one(marey, recording):
    done = marey("report", recording, "--samples")
    assert done.returncode == 2 and "marey run --sample" in done.stderr
