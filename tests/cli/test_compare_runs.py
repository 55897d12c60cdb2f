"""marey compare of programs that were not changed: wall time, CPU time, sampled and profiled functions."""

from __future__ import annotations

import json
import sys

import pytest

PROGRAM = """
import sys, time

def wait_for_data(seconds):
    time.sleep(seconds)

def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

compute(float(sys.argv[1]))
wait_for_data(float(sys.argv[2]))
sys.exit(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
"""


@pytest.fixture
def record(marey, tmp_path):
    """Run the program: seconds of computing, seconds of waiting, what else `marey run` is given."""
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)

    def run(name: str, compute: float, wait: float, *options: str, status: int = 0, check: int = 0):
        command = ["--", sys.executable, "train.py", str(compute), str(wait), str(status)]
        done = marey("run", "--only", "ranges", *options, "-o", name, *command)
        assert done.returncode == check, done.stderr
        return done

    return run


def compared(marey, *args) -> dict:
    done = marey("compare", *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def by_name(rows: list[dict]) -> dict[str, dict]:
    return {row["name"]: row for row in rows}


def test_single_runs_of_an_unmodified_program_have_no_interval(marey, record):
    record("a.marey", 0.1, 0.1)
    record("b.marey", 0.1, 0.9)
    found = compared(marey, "a.marey", "b.marey")
    assert (found["iteration"], found["ranges"], found["functions"]) == (None, [], [])
    wall = by_name(found["program"])["(wall time)"]
    assert wall["change_percent"] > 0
    assert (wall["low_percent"], wall["high_percent"], wall["verdict"]) == (None, None, "unsure")
    assert "one run on each side gives no interval" in wall["reason"]
    text = marey("compare", "a.marey", "b.marey").stdout
    assert text.startswith("(wall time): B was ")
    assert "one run on each side gives no interval" in text.splitlines()[0]
    assert "| (CPU time) |" in marey("compare", "a.marey", "b.marey", "--markdown").stdout


def test_a_gate_without_an_interval_is_an_error(marey, record):
    record("a.marey", 0.05, 0)
    done = marey("compare", "a.marey", "a.marey", "--fail-if-slower", "5")
    assert done.returncode == 2
    assert "one run on each side gives no confidence interval for the wall time" in done.stderr


def test_repeats_of_an_unmodified_program_have_intervals_and_a_gate(marey, record):
    record("a.marey", 0.02, 0.02, "--repeat", "4", "-q")
    record("b.marey", 0.02, 1.5, "--repeat", "4", "-q")
    wall = by_name(compared(marey, "a.marey", "b.marey")["program"])["(wall time)"]
    assert wall["verdict"] == "slower" and wall["low_percent"] > 20
    assert (wall["n_a"], wall["n_b"]) == (4, 4)
    done = marey("compare", "a.marey", "b.marey", "--fail-if-slower", "5%")
    assert done.returncode == 1
    assert done.stderr == "marey: the program is slower by more than 5 %\n"
    assert marey("compare", "a.marey", "b.marey", "--fail-if-slower", "5%", "--range", "(wall time)").returncode == 1
    # Taken away, there is silence: a recording is not slower than itself.
    assert marey("compare", "a.marey", "a.marey", "--fail-if-slower", "5%").returncode == 0


def test_sampled_functions_are_compared(marey, record):
    record("a.marey", 0.3, 0.1, "--sample", "--repeat", "4", "-q")
    record("b.marey", 0.3, 2.0, "--sample", "--repeat", "4", "-q")
    found = compared(marey, "a.marey", "b.marey")
    assert found["functions"][0]["name"] == "wait_for_data (train.py)"
    assert found["functions"][0]["verdict"] == "slower"
    assert found["functions"][0]["effect_percent"] > 0
    assert by_name(found["program"])["(wall time)"]["verdict"] == "slower"
    text = marey("compare", "a.marey", "b.marey").stdout
    assert "function (self time)" in text and "of the program" in text
    gate = ("--fail-if-slower", "5%", "--range", "wait_for_data (train.py)")
    assert marey("compare", "a.marey", "b.marey", *gate).returncode == 1
    same = compared(marey, "b.marey", "b.marey")
    assert {row["verdict"] for row in same["functions"]} <= {"same", "unsure"}


def test_functions_of_call_profiles_are_compared(marey, record):
    record("a.marey", 0.1, 0.1, "--calls")
    record("b.marey", 0.1, 0.6, "--calls")
    found = compared(marey, "a.marey", "b.marey", "-f", "train.py")
    assert "wait_for_data (train.py)" in by_name(found["functions"]) or "compute (train.py)" in by_name(
        found["functions"]
    )
    assert not any("call profile" in text for text in found["warnings"])


def test_one_side_sampled_and_one_profiled_is_noted(marey, record):
    record("a.marey", 0.2, 0.1, "--calls")
    record("b.marey", 0.2, 0.1, "--sample")
    assert any("record both sides the same way" in text for text in compared(marey, "a.marey", "b.marey")["warnings"])


def test_a_run_that_failed_is_noted(marey, record):
    record("a.marey", 0.02, 0)
    record("b.marey", 0.02, 0, status=3, check=3)
    notes = compared(marey, "a.marey", "b.marey")["warnings"]
    assert "1 of 1 runs of B failed (b.marey: exit status 3): they may have done less work" in notes
    assert not any("failed" in note for note in compared(marey, "a.marey", "a.marey")["warnings"])


def test_a_run_without_events_is_kept_with_its_times(marey, record, tmp_path):
    done = record("a.marey", 0.02, 0)
    assert "marey run --sample -- " in done.stderr and "train.py" in done.stderr
    assert "recorded wall time (" in done.stderr
    assert [path.suffix for path in (tmp_path / "a.marey").iterdir() if path.name != "meta.json"] == [".krun"]
    text = marey("report", "a.marey").stdout
    assert "No events were recorded." in text
    assert "run: wall time " in text and "exit status 0" in text


def test_the_program_is_compared_beside_its_ranges(marey, emit):
    for name in ("a.marey", "b.marey"):
        assert marey("run", "--only", "ranges", "-q", "-o", name, "--", emit, 50).returncode == 0
    found = compared(marey, "a.marey", "b.marey")
    assert found["ranges"] and [row["name"] for row in found["program"]] == ["(wall time)", "(CPU time)"]
