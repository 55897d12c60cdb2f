"""marey compare: verdicts, the gate, outputs, what is said about wrong input; marey run --repeat."""

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
    """Write a stats file: ranges with their times; the iteration is their sum."""

    def write(name: str, **ranges: list[float]) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps({"series": {**ranges, "(iteration)": [sum(t) for t in zip(*ranges.values())]}}))
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


# ---- the result ----


def test_the_sentence_comes_first_and_the_heaviest_range_leads_the_table(marey, sides):
    a, b = sides
    done = marey("compare", *a, "--", *b)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("B is 2.") and lines[0].endswith(").")
    assert " slower (" in lines[0]
    assert lines[2].split()[:3] == ["range", "A", "B"]
    assert lines[3].startswith("(iteration)")
    assert lines[4].startswith("forward") and " slower " in lines[4]
    assert lines[5].startswith("backward") and " same " in lines[5]


def test_json_has_the_promised_keys(marey, sides):
    a, b = sides
    found = compared(marey("compare", *a, "--", *b, "--json"))
    tables = {"summary", "iteration", "ranges", "program", "functions", "only", "runs", "findings"}
    assert set(found) == tables | {"warnings"}
    assert {"name", "change_percent", "low_percent", "high_percent", "verdict"} <= set(found["ranges"][0])
    forward = next(row for row in found["ranges"] if row["name"] == "forward")
    assert forward["verdict"] == "slower"
    assert forward["low_percent"] < 10 < forward["high_percent"]
    assert forward["low_percent"] <= forward["change_percent"] <= forward["high_percent"]
    assert forward["effect_percent"] == pytest.approx(2.5, abs=0.3)
    assert found["iteration"]["verdict"] == "slower"
    assert len(found["runs"]) == 10


def test_csv_is_the_ranges_and_markdown_is_a_table(marey, sides):
    a, b = sides
    rows = list(csv.DictReader(io.StringIO(marey("compare", *a, "--", *b, "--csv").stdout)))
    assert [row["name"] for row in rows] == ["forward", "backward"]
    assert rows[0]["verdict"] == "slower"
    text = marey("compare", *a, "--", *b, "--markdown").stdout
    assert text.startswith("**B is 2.")
    assert "\n| range | A | B | change | 95 % interval | verdict | of the iteration |\n|---" in text
    assert "\n| forward | " in text


def test_markdown_is_not_broken_by_names(marey, stats):
    path = stats("odd.json", **{"a|b <script> *x*": times(1e6)})
    text = marey("compare", path, path, "--markdown").stdout
    assert "| a\\|b \\<script\\> \\*x\\* |" in text


def test_the_same_side_twice_shows_no_difference(marey, sides):
    a, _ = sides
    found = compared(marey("compare", *a, "--", *a, "--json"))
    assert {row["verdict"] for row in found["ranges"]} == {"same"}
    assert found["summary"].startswith("No difference shown")


def test_noise_is_called_noise(marey, stats):
    a = [stats(f"a{i}.json", step=times(1e6 * (1 + 0.1 * (i % 3)), seed=i)) for i in range(5)]
    b = [stats(f"b{i}.json", step=times(1e6 * (1 + 0.1 * ((i + 1) % 3)), seed=9 + i)) for i in range(5)]
    found = compared(marey("compare", *a, "--", *b, "--json"))
    assert found["ranges"][0]["verdict"] == "unsure"
    assert found["summary"].startswith("It is unclear")


def test_ranges_of_one_side_are_named(marey, stats):
    done = marey(
        "compare", stats("a.json", x=times(1e6), old=times(1e5)), stats("b.json", x=times(1e6), new=times(1e5))
    )
    assert "only in A: old" in done.stdout
    assert "only in B: new" in done.stdout


def test_a_filter_leaves_the_iteration_and_what_matches(marey, sides):
    a, b = sides
    found = compared(marey("compare", *a, "--", *b, "--json", "--filter", "back*"))
    assert [row["name"] for row in found["ranges"]] == ["backward"]
    assert found["iteration"] is not None


def test_the_first_iterations_can_be_skipped(marey, stats):
    a = stats("a.json", x=[1e9] * 150 + times(1e6, noise=0.002))
    b = stats("b.json", x=[1e3] * 150 + times(1e6, noise=0.002, seed=2))
    assert compared(marey("compare", a, b, "--json", "--skip", 150))["ranges"][0]["verdict"] == "same"


def test_a_change_that_matters_can_be_said(marey, sides):
    a, _ = sides
    loose = compared(marey("compare", *a[:3], "--", *a[2:], "--json", "--smallest", "20%"))
    tight = compared(marey("compare", *a[:3], "--", *a[2:], "--json", "--smallest", "0.0001"))
    assert {row["verdict"] for row in loose["ranges"]} == {"same"}
    assert {row["verdict"] for row in tight["ranges"]} == {"unsure"}


# ---- the gate ----


@pytest.mark.parametrize("limit, status", [("2", 1), ("2%", 1), ("2.0 %", 1), ("3", 0), ("50%", 0)])
def test_the_gate_fails_with_1_when_the_iteration_is_slower(marey, sides, limit, status):
    a, b = sides
    done = marey("compare", *a, "--", *b, "--fail-if-slower", limit)
    assert done.returncode == status
    assert ("slower by more than" in done.stderr) == (status == 1)


def test_the_gate_lets_a_faster_one_pass(marey, sides):
    a, b = sides
    assert marey("compare", *b, "--", *a, "--fail-if-slower", "0").returncode == 0


def test_the_gate_can_look_at_one_range(marey, sides):
    a, b = sides
    gate = ("compare", *a, "--", *b, "--fail-if-slower", "8%", "--range")
    assert marey(*gate, "forward").returncode == 1
    assert marey(*gate, "backward").returncode == 0
    done = marey(*gate, "sideward")
    assert done.returncode == 2
    assert "no range 'sideward'" in done.stderr


def test_without_iterations_any_range_may_fail_the_gate(marey, tmp_path):
    for name, level in (("a", 1e6), ("b", 1.2e6)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"series": {"x": times(level), "y": times(1e6)}}))
    assert marey("compare", "a.json", "b.json", "--fail-if-slower", "2").returncode == 1
    assert marey("compare", "b.json", "a.json", "--fail-if-slower", "2").returncode == 0


# ---- wrong input ----


@pytest.mark.parametrize(
    "text, words",
    [
        ('{"series": {"forward": [1.0, NaN]}}', "time 1 of range 'forward' is NaN"),
        ('{"series": {"forward": [-1.0]}}', "range 'forward' is negative"),
        ('{"series": {}}', "no times"),
        ('{"series": {"other": [1.0]}}', "no range is in both"),
        ('{"series": {"forward": [1.0', "not a file of stats"),
    ],
)
def test_wrong_stats_are_reported_in_one_sentence(marey, stats, tmp_path, text, words):
    (tmp_path / "wrong.json").write_text(text)
    (tmp_path / "right.json").write_text(json.dumps({"series": {"forward": times(1e6)}}))
    done = marey("compare", "right.json", "wrong.json")
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
        ("a.json", "a.json", "--range", "x"),
        ("a.json", "missing.marey"),
    ],
)
def test_wrong_usage_ends_with_2(marey, stats, args):
    stats("a.json", x=times(1e6))
    done = marey("compare", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("marey: ") and done.stderr.count("\n") == 1


def test_an_empty_recording_is_named(marey, emit, tmp_path):
    assert marey("run", "--only", "ranges", "-q", "-o", "full.marey", "--", emit, 20).returncode == 0
    (tmp_path / "empty.marey").mkdir()
    (tmp_path / "empty.marey" / "meta.json").write_text((tmp_path / "full.marey" / "meta.json").read_text())
    done = marey("compare", "full.marey", "empty.marey")
    assert done.returncode == 2
    assert "empty.marey (side B) has nothing to compare" in done.stderr


# ---- repeats ----


def test_repeats_are_runs_of_one_recording(marey, emit):
    done = marey("run", "--only", "ranges", "--repeat", 3, "-o", "a.marey", "--", emit, 50)
    assert done.returncode == 0
    assert "run 3 of 3 is done" in done.stderr
    assert "recorded 3 processes" in done.stderr
    assert marey("run", "--only", "ranges", "-q", "--repeat", 3, "-o", "b.marey", "--", emit, 50).stderr == ""
    runs = compared(marey("compare", "a.marey", "b.marey", "--json"))["runs"]
    assert [run["side"] for run in runs] == ["A"] * 3 + ["B"] * 3
    assert len({run["run_id"] for run in runs}) == 6
    assert "outer" in marey("report", "a.marey").stdout


def test_runs_that_were_appended_are_repeats_too(marey, emit):
    for _ in range(2):
        assert marey("run", "--only", "ranges", "-q", "--append", "-o", "a.marey", "--", emit, 50).returncode == 0
    assert len(compared(marey("compare", "a.marey", "a.marey", "--json"))["runs"]) == 4


def test_repeating_ends_with_the_first_that_fails(marey, emit, tmp_path):
    done = marey("run", "--only", "ranges", "--repeat", 3, "-o", "a.marey", "--", emit, 2, "exit=7")
    assert done.returncode == 7
    assert "run 1 of 3 failed; the remaining runs are skipped" in done.stderr
    assert len(list((tmp_path / "a.marey").glob("*.klog"))) == 1
    assert marey("run", "--only", "ranges", "--repeat", 0, "--", emit, 1).returncode == 2


def test_the_log_says_on_which_machine_it_was_made(marey, emit, tmp_path):
    assert marey("run", "--only", "ranges", "-q", "-o", "a.marey", "--", emit, 50).returncode == 0
    log = next((tmp_path / "a.marey").glob("*.klog")).read_bytes()
    assert b"kernel" in log and b"load_percent" in log
    done = marey("compare", "a.marey", "a.marey")
    assert "not the same in all runs" not in done.stdout


def test_a_damaged_recording_is_compared_as_far_as_it_goes(marey, emit, tmp_path):
    for name in ("a.marey", "b.marey"):
        assert marey("run", "--only", "ranges", "-q", "-o", name, "--", emit, 3000).returncode == 0
    log = next((tmp_path / "b.marey").glob("*.klog"))
    data = bytearray(log.read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + 8):  # zeros between blocks are fewer
        data[at] ^= 0xFF
    log.write_bytes(data)
    done = marey("compare", "a.marey", "b.marey")
    assert done.returncode == 2
    assert "damaged" in done.stderr
