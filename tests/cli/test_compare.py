"""kymo compare: verdicts, the gate, outputs, what is said about wrong input; kymo run --repeat."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

import pytest


def times(level: float, n: int = 200, noise: float = 0.01, seed: int = 1) -> list[float]:
    make = random.Random(seed)
    return [level * (1 + noise * make.gauss(0, 1)) for _ in range(n)]


@pytest.fixture
def stats(tmp_path):
    """Write a file of stats: regions with their times, the whole iteration their sum."""

    def write(name: str, **regions: list[float]) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps({"series": {**regions, "(iteration)": [sum(t) for t in zip(*regions.values())]}}))
        return path

    return write


@pytest.fixture
def sides(stats):
    """Five repeats on each side: forward is 10 % slower in B, backward as before."""

    def repeats(side: str, factor: float) -> list[Path]:
        return [
            stats(
                f"{side}{i}.json",
                forward=times(factor * 1e6, seed=10 * i + (side == "b")),
                backward=times(3e6, seed=500 + 10 * i + (side == "b")),
            )
            for i in range(5)
        ]

    return repeats("a", 1.0), repeats("b", 1.1)


def compared(done) -> dict:
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


# ---- the answer ----


def test_the_sentence_comes_first_and_the_heaviest_region_leads_the_table(kymo, sides):
    a, b = sides
    done = kymo("compare", *a, "--", *b)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("B is 2.") and lines[0].endswith(").")
    assert " slower (" in lines[0]
    assert lines[2].split()[:3] == ["region", "A", "B"]
    assert lines[3].startswith("(iteration)")
    assert lines[4].startswith("forward") and " slower " in lines[4]
    assert lines[5].startswith("backward") and " same " in lines[5]


def test_json_has_the_promised_keys(kymo, sides):
    a, b = sides
    found = compared(kymo("compare", *a, "--", *b, "--json"))
    assert set(found) == {"summary", "iteration", "regions", "program", "functions", "only", "runs", "warnings"}
    assert {"name", "change_percent", "low_percent", "high_percent", "verdict"} <= set(found["regions"][0])
    forward = next(row for row in found["regions"] if row["name"] == "forward")
    assert forward["verdict"] == "slower"
    assert forward["low_percent"] < 10 < forward["high_percent"]
    assert forward["low_percent"] <= forward["change_percent"] <= forward["high_percent"]
    assert forward["effect_percent"] == pytest.approx(2.5, abs=0.3)
    assert found["iteration"]["verdict"] == "slower"
    assert len(found["runs"]) == 10


def test_csv_is_the_regions_and_markdown_is_a_table(kymo, sides):
    a, b = sides
    rows = list(csv.DictReader(io.StringIO(kymo("compare", *a, "--", *b, "--csv").stdout)))
    assert [row["name"] for row in rows] == ["forward", "backward"]
    assert rows[0]["verdict"] == "slower"
    text = kymo("compare", *a, "--", *b, "--markdown").stdout
    assert text.startswith("**B is 2.")
    assert "\n| region | A | B | change | 95 % interval | verdict | of the iteration |\n|---" in text
    assert "\n| forward | " in text


def test_markdown_is_not_broken_by_names(kymo, stats):
    path = stats("odd.json", **{"a|b <script> *x*": times(1e6)})
    text = kymo("compare", path, path, "--markdown").stdout
    assert "| a\\|b \\<script\\> \\*x\\* |" in text


def test_the_same_side_twice_shows_no_difference(kymo, sides):
    a, _ = sides
    found = compared(kymo("compare", *a, "--", *a, "--json"))
    assert {row["verdict"] for row in found["regions"]} == {"same"}
    assert found["summary"].startswith("No difference shown")


def test_noise_is_called_noise(kymo, stats):
    a = [stats(f"a{i}.json", step=times(1e6 * (1 + 0.1 * (i % 3)), seed=i)) for i in range(5)]
    b = [stats(f"b{i}.json", step=times(1e6 * (1 + 0.1 * ((i + 1) % 3)), seed=9 + i)) for i in range(5)]
    found = compared(kymo("compare", *a, "--", *b, "--json"))
    assert found["regions"][0]["verdict"] == "unsure"
    assert found["summary"].startswith("It cannot be told")


def test_regions_of_one_side_are_named(kymo, stats):
    done = kymo("compare", stats("a.json", x=times(1e6), old=times(1e5)), stats("b.json", x=times(1e6), new=times(1e5)))
    assert "only in A: old" in done.stdout
    assert "only in B: new" in done.stdout


def test_a_filter_leaves_the_iteration_and_what_matches(kymo, sides):
    a, b = sides
    found = compared(kymo("compare", *a, "--", *b, "--json", "--filter", "back*"))
    assert [row["name"] for row in found["regions"]] == ["backward"]
    assert found["iteration"] is not None


def test_the_first_iterations_can_be_skipped(kymo, stats):
    a = stats("a.json", x=[1e9] * 150 + times(1e6, noise=0.002))
    b = stats("b.json", x=[1e3] * 150 + times(1e6, noise=0.002, seed=2))
    assert compared(kymo("compare", a, b, "--json", "--skip", 150))["regions"][0]["verdict"] == "same"


def test_a_change_that_matters_can_be_said(kymo, sides):
    a, _ = sides
    loose = compared(kymo("compare", *a[:3], "--", *a[2:], "--json", "--smallest", "20%"))
    tight = compared(kymo("compare", *a[:3], "--", *a[2:], "--json", "--smallest", "0.0001"))
    assert {row["verdict"] for row in loose["regions"]} == {"same"}
    assert {row["verdict"] for row in tight["regions"]} == {"unsure"}


# ---- the gate ----


@pytest.mark.parametrize("limit, status", [("2", 1), ("2%", 1), ("2.0 %", 1), ("3", 0), ("50%", 0)])
def test_the_gate_fails_with_1_when_the_iteration_is_slower(kymo, sides, limit, status):
    a, b = sides
    done = kymo("compare", *a, "--", *b, "--fail-if-slower", limit)
    assert done.returncode == status
    assert ("slower by more than" in done.stderr) == (status == 1)


def test_the_gate_lets_a_faster_one_pass(kymo, sides):
    a, b = sides
    assert kymo("compare", *b, "--", *a, "--fail-if-slower", "0").returncode == 0


def test_the_gate_can_look_at_one_region(kymo, sides):
    a, b = sides
    gate = ("compare", *a, "--", *b, "--fail-if-slower", "8%", "--region")
    assert kymo(*gate, "forward").returncode == 1
    assert kymo(*gate, "backward").returncode == 0
    done = kymo(*gate, "sideward")
    assert done.returncode == 2
    assert "no region 'sideward'" in done.stderr


def test_without_iterations_any_region_may_fail_the_gate(kymo, tmp_path):
    for name, level in (("a", 1e6), ("b", 1.2e6)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"series": {"x": times(level), "y": times(1e6)}}))
    assert kymo("compare", "a.json", "b.json", "--fail-if-slower", "2").returncode == 1
    assert kymo("compare", "b.json", "a.json", "--fail-if-slower", "2").returncode == 0


# ---- wrong input ----


@pytest.mark.parametrize(
    "text, words",
    [
        ('{"series": {"forward": [1.0, NaN]}}', "time 1 of region 'forward' is NaN"),
        ('{"series": {"forward": [-1.0]}}', "region 'forward' is negative"),
        ('{"series": {}}', "no times"),
        ('{"series": {"other": [1.0]}}', "no region is in both"),
        ('{"series": {"forward": [1.0', "no file of stats"),
    ],
)
def test_wrong_stats_are_told_in_one_sentence(kymo, stats, tmp_path, text, words):
    (tmp_path / "wrong.json").write_text(text)
    (tmp_path / "right.json").write_text(json.dumps({"series": {"forward": times(1e6)}}))
    done = kymo("compare", "right.json", "wrong.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("a.json",),
        ("a.json", "a.json", "a.json"),
        ("a.json", "--"),
        ("--", "a.json"),
        ("a.json", "a.json", "--json", "--csv"),
        ("a.json", "a.json", "--fail-if-slower", "much"),
        ("a.json", "a.json", "--fail-if-slower", "-1"),
        ("a.json", "a.json", "--region", "x"),
        ("a.json", "missing.kymo"),
    ],
)
def test_wrong_usage_ends_with_2(kymo, stats, args):
    stats("a.json", x=times(1e6))
    done = kymo("compare", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kymo: ") and done.stderr.count("\n") == 1


def test_an_empty_recording_is_named(kymo, emit, tmp_path):
    assert kymo("run", "-q", "-o", "full.kymo", "--", emit, 20).returncode == 0
    (tmp_path / "empty.kymo").mkdir()
    (tmp_path / "empty.kymo" / "meta.json").write_text((tmp_path / "full.kymo" / "meta.json").read_text())
    done = kymo("compare", "full.kymo", "empty.kymo")
    assert done.returncode == 2
    assert "empty.kymo (side B) has nothing to compare" in done.stderr


# ---- repeats ----


def test_repeats_are_runs_of_one_recording(kymo, emit):
    done = kymo("run", "--repeat", 3, "-o", "a.kymo", "--", emit, 50)
    assert done.returncode == 0
    assert "run 3 of 3 is done" in done.stderr
    assert "recorded 3 processes" in done.stderr
    assert kymo("run", "-q", "--repeat", 3, "-o", "b.kymo", "--", emit, 50).stderr == ""
    runs = compared(kymo("compare", "a.kymo", "b.kymo", "--json"))["runs"]
    assert [run["side"] for run in runs] == ["A"] * 3 + ["B"] * 3
    assert len({run["run_id"] for run in runs}) == 6
    assert "outer" in kymo("report", "a.kymo").stdout


def test_runs_that_were_appended_are_repeats_too(kymo, emit):
    for _ in range(2):
        assert kymo("run", "-q", "--append", "-o", "a.kymo", "--", emit, 50).returncode == 0
    assert len(compared(kymo("compare", "a.kymo", "a.kymo", "--json"))["runs"]) == 4


def test_repeating_ends_with_the_first_that_fails(kymo, emit, tmp_path):
    done = kymo("run", "--repeat", 3, "-o", "a.kymo", "--", emit, 2, "exit=7")
    assert done.returncode == 7
    assert "run 1 of 3 did not end well; the rest is not run" in done.stderr
    assert len(list((tmp_path / "a.kymo").glob("*.klog"))) == 1
    assert kymo("run", "--repeat", 0, "--", emit, 1).returncode == 2


def test_the_log_says_on_which_machine_it_was_made(kymo, emit, tmp_path):
    assert kymo("run", "-q", "-o", "a.kymo", "--", emit, 50).returncode == 0
    log = next((tmp_path / "a.kymo").glob("*.klog")).read_bytes()
    assert b"kernel" in log and b"load_percent" in log
    done = kymo("compare", "a.kymo", "a.kymo")
    assert "not the same in all runs" not in done.stdout


def test_a_damaged_recording_is_compared_as_far_as_it_goes(kymo, emit, tmp_path):
    for name in ("a.kymo", "b.kymo"):
        assert kymo("run", "-q", "-o", name, "--", emit, 3000).returncode == 0
    log = next((tmp_path / "b.kymo").glob("*.klog"))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    done = kymo("compare", "a.kymo", "b.kymo")
    assert done.returncode == 2
    assert "damaged" in done.stderr
