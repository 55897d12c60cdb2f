"""kymo compare of programs that were not changed: wall time, CPU time, sampled and profiled functions."""

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
def record(kymo, tmp_path):
    """Run the program: seconds of computing, seconds of waiting, what else `kymo run` is given."""
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)

    def run(name: str, compute: float, wait: float, *options: str, status: int = 0, check: int = 0):
        command = ["--", sys.executable, "train.py", str(compute), str(wait), str(status)]
        done = kymo("run", *options, "-o", name, *command)
        assert done.returncode == check, done.stderr
        return done

    return run


def compared(kymo, *args) -> dict:
    done = kymo("compare", *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def by_name(rows: list[dict]) -> dict[str, dict]:
    return {row["name"]: row for row in rows}


def test_single_runs_of_an_unmodified_program_have_no_interval(kymo, record):
    record("a.kymo", 0.1, 0.1)
    record("b.kymo", 0.1, 0.9)
    found = compared(kymo, "a.kymo", "b.kymo")
    assert (found["iteration"], found["regions"], found["functions"]) == (None, [], [])
    wall = by_name(found["program"])["(wall time)"]
    assert wall["change_percent"] > 0
    assert (wall["low_percent"], wall["high_percent"], wall["verdict"]) == (None, None, "unsure")
    assert "one run on each side gives no interval" in wall["reason"]
    text = kymo("compare", "a.kymo", "b.kymo").stdout
    assert text.startswith("(wall time): B was ")
    assert "one run on each side gives no interval" in text.splitlines()[0]
    assert "| (CPU time) |" in kymo("compare", "a.kymo", "b.kymo", "--markdown").stdout


def test_a_gate_without_an_interval_is_an_error(kymo, record):
    record("a.kymo", 0.05, 0)
    done = kymo("compare", "a.kymo", "a.kymo", "--fail-if-slower", "5")
    assert done.returncode == 2
    assert "one run on each side gives no interval of the wall time" in done.stderr


def test_repeats_of_an_unmodified_program_have_intervals_and_a_gate(kymo, record):
    record("a.kymo", 0.02, 0.02, "--repeat", "4", "-q")
    record("b.kymo", 0.02, 1.5, "--repeat", "4", "-q")
    wall = by_name(compared(kymo, "a.kymo", "b.kymo")["program"])["(wall time)"]
    assert wall["verdict"] == "slower" and wall["low_percent"] > 20
    assert (wall["n_a"], wall["n_b"]) == (4, 4)
    done = kymo("compare", "a.kymo", "b.kymo", "--fail-if-slower", "5%")
    assert done.returncode == 1
    assert done.stderr == "kymo: the program is slower by more than 5 %\n"
    assert kymo("compare", "a.kymo", "b.kymo", "--fail-if-slower", "5%", "--region", "(wall time)").returncode == 1
    # Taken away, there is silence: a recording is not slower than itself.
    assert kymo("compare", "a.kymo", "a.kymo", "--fail-if-slower", "5%").returncode == 0


def test_sampled_functions_are_compared(kymo, record):
    record("a.kymo", 0.3, 0.1, "--sample", "--repeat", "4", "-q")
    record("b.kymo", 0.3, 2.0, "--sample", "--repeat", "4", "-q")
    found = compared(kymo, "a.kymo", "b.kymo")
    assert found["functions"][0]["name"] == "wait_for_data (train.py)"
    assert found["functions"][0]["verdict"] == "slower"
    assert found["functions"][0]["effect_percent"] > 0
    assert by_name(found["program"])["(wall time)"]["verdict"] == "slower"
    text = kymo("compare", "a.kymo", "b.kymo").stdout
    assert "function (self time)" in text and "of the program" in text
    gate = ("--fail-if-slower", "5%", "--region", "wait_for_data (train.py)")
    assert kymo("compare", "a.kymo", "b.kymo", *gate).returncode == 1
    same = compared(kymo, "b.kymo", "b.kymo")
    assert {row["verdict"] for row in same["functions"]} <= {"same", "unsure"}


def test_functions_of_call_profiles_are_compared(kymo, record):
    record("a.kymo", 0.1, 0.1, "--calls")
    record("b.kymo", 0.1, 0.6, "--calls")
    found = compared(kymo, "a.kymo", "b.kymo", "-f", "train.py")
    assert "wait_for_data (train.py)" in by_name(found["functions"]) or "compute (train.py)" in by_name(
        found["functions"]
    )
    assert not any("call profile" in text for text in found["warnings"])


def test_one_side_sampled_and_one_profiled_is_noted(kymo, record):
    record("a.kymo", 0.2, 0.1, "--calls")
    record("b.kymo", 0.2, 0.1, "--sample")
    assert any("record both sides the same way" in text for text in compared(kymo, "a.kymo", "b.kymo")["warnings"])


def test_a_run_that_failed_is_noted(kymo, record):
    record("a.kymo", 0.02, 0)
    record("b.kymo", 0.02, 0, status=3, check=3)
    notes = compared(kymo, "a.kymo", "b.kymo")["warnings"]
    assert "1 of 1 runs of B failed (b.kymo: exit status 3): they may have done less work" in notes
    assert not any("failed" in note for note in compared(kymo, "a.kymo", "a.kymo")["warnings"])


def test_a_run_without_events_is_kept_with_its_times(kymo, record, tmp_path):
    done = record("a.kymo", 0.02, 0)
    assert "kymo run --sample -- " in done.stderr and "train.py" in done.stderr
    assert "recorded wall time (" in done.stderr
    assert [path.suffix for path in (tmp_path / "a.kymo").iterdir() if path.name != "meta.json"] == [".krun"]
    text = kymo("report", "a.kymo").stdout
    assert "No events were recorded." in text
    assert "run: wall time " in text and "exit status 0" in text


def test_the_program_is_compared_beside_its_regions(kymo, emit):
    for name in ("a.kymo", "b.kymo"):
        assert kymo("run", "-q", "-o", name, "--", emit, 50).returncode == 0
    found = compared(kymo, "a.kymo", "b.kymo")
    assert found["regions"] and [row["name"] for row in found["program"]] == ["(wall time)", "(CPU time)"]
