"""marey report --energy, on a program that writes the counters itself: text, CSV, JSON, mistakes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

TABLES = ("runs", "repeats", "devices", "ranks", "nodes", "epochs", "iterations", "phases", "ranges", "notes")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


@pytest.fixture(scope="session")
def joules(compiled) -> Path:
    return compiled("joules.c")


@pytest.fixture
def run(marey, joules, tmp_path) -> Path:
    assert marey("run", "--only", "ranges", "-q", "-o", "loop.marey", "--", joules, 100).returncode == 0
    return tmp_path / "loop.marey"


def test_energy_is_power_times_time_and_epochs_add_up(marey, run):
    done = marey("report", run, "--energy", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert tuple(answer) == TABLES
    (whole,) = answer["runs"]
    assert (whole["kind"], whole["devices"], whole["measured_by"]) == ("gpu", 2, "counter and power")
    device = answer["devices"][0]
    assert (device["device"], device["name"], device["utilization"]) == ("GPU-test", "GPU 0", pytest.approx(0.75))
    # The program's clock and the recording's are read one after the other, which a busy machine may tear apart.
    assert abs(device["joules"] - device["duration_ns"] * 1e-7) <= device["plus_minus_j"] + 5
    assert [row["epoch"] for row in answer["epochs"]] == [0, 1]
    epochs = sum(row["joules"] for row in answer["epochs"])
    assert epochs <= whole["joules"] + 1e-6
    assert [row["samples"] for row in answer["epochs"]] == [80, 80]
    assert {row["name"]: row["count"] for row in answer["phases"]} == {"train": 2, "(no phase)": None}
    assert sum(row["duration_ns"] for row in answer["phases"]) == whole["duration_ns"]
    assert answer["iterations"][-1]["last"] == 19
    assert "the GPUs used by the processes are unknown: all measured GPUs are counted" in answer["notes"]


def test_the_answer_for_people_begins_with_joules(marey, run):
    done = marey("report", run, "--energy")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("energy, 2 GPUs: ")
    assert " J per training sample" in done.stdout.splitlines()[0]
    assert "\nepochs\n" in done.stdout


def test_a_usual_report_ends_with_energy_where_there_is_some(marey, run, recording):
    assert "\nenergy, 2 GPUs: " in marey("report", run).stdout
    assert "energy" not in marey("report", recording).stdout
    assert "energy, 2 GPUs" not in marey("report", run, "--tree").stdout


@pytest.mark.parametrize(
    "by,first",
    [
        ("run", "run,run_id,kind,"),
        ("device", "run,host,device,name,model,used,shared,ranks,kind,"),
        ("rank", "run,rank,host,shared,kind,"),
        ("node", "run,host,kind,"),
        ("epoch", "run,epoch,kind,"),
        ("iteration", "run,first,last,kind,"),
        ("phase", "run,name,kind,"),
        ("range", "run,name,kind,"),
    ],
)
def test_each_table_is_a_csv(marey, run, by, first):
    done = marey("report", run, "--energy", "--by", by, "--csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(first)
    assert rows(done.stdout)


def test_iterations_are_grouped_as_asked(marey, run):
    found = rows(marey("report", run, "--energy", "--by", "iteration", "--csv", "--group", 5).stdout)
    assert [(row["first"], row["last"]) for row in found] == [("0", "4"), ("5", "9"), ("10", "14"), ("15", "19")]


def test_repeats_are_runs_and_not_a_sum(marey, joules, tmp_path):
    assert marey("run", "--only", "ranges", "-q", "-o", "run.marey", "--repeat", 2, "--", joules, 100).returncode == 0
    answer = json.loads(marey("report", tmp_path / "run.marey", "--energy", "--json").stdout)
    assert [row["run"] for row in answer["runs"]] == [1, 2]
    (mean,) = answer["repeats"]
    assert mean["runs"] == 2
    assert mean["mean_j"] == pytest.approx(sum(row["joules"] for row in answer["runs"]) / 2)
    assert mean["low_j"] <= mean["mean_j"] <= mean["high_j"]


def test_carbon_is_what_the_user_says(marey, run):
    (row,) = rows(marey("report", run, "--energy", "--csv", "--co2", 360, "--pue", 1.5).stdout)
    assert float(row["co2_g"]) == pytest.approx(float(row["joules"]) / 3.6e6 * 360 * 1.5)


@pytest.mark.parametrize(
    "options,says",
    [
        (["--by", "epoch"], "--by goes with --epochs, --energy, --calls or --samples"),
        (["--energy", "--html", "page.html"], "--energy and --html exclude one another"),
        (["--energy", "--co2", "much"], "co2 takes a number of 0 or more, not 'much'"),
        (["--energy", "--co2", "1", "--pue", "0.5"], "pue takes a number of 1 or more, not '0.5'"),
        (["--energy", "--by", "day"], "energy takes by=run, repeat"),
    ],
)
def test_mistakes_are_sentences(marey, run, options, says):
    done = marey("report", run, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_recording_without_energy_says_how_to_get_it(marey, recording):
    done = marey("report", recording, "--energy")
    assert (done.returncode, done.stdout) == (2, "")
    assert "run.marey has no energy in it: 'marey run --energy' records it" in done.stderr


def test_what_marey_run_measures_is_reported(marey, compiled, build_dir, tmp_path):
    """From the reading of NVML (a stand-in) to joules: two GPUs of 300 W, of which the program sees one."""
    (tmp_path / "nvml.txt").write_text("gpus 2\nwatts 300 0 1\nbusy 60\n")
    env = {
        "MAREY_NVML_LIBRARY": str(build_dir / "tests" / "standin" / "nvml_standin.so"),
        "MAREY_STANDIN_NVML": str(tmp_path / "nvml.txt"),
        "MAREY_POWERCAP_ROOT": str(tmp_path / "no-powercap"),
        "CUDA_VISIBLE_DEVICES": "1",
    }
    iterate = compiled("iterate.c", "-pthread")
    done = marey("run", "-q", "--energy", "-o", "run.marey", "--", iterate, 4000, 0, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(marey("report", "run.marey", "--energy", "--json").stdout)
    (whole,) = answer["runs"]
    assert (whole["kind"], whole["devices"], whole["measured_by"], whole["note"]) == ("gpu", 1, "counter", "")
    for row in (whole, *answer["epochs"], *answer["iterations"]):
        assert abs(row["joules"] - 300 * row["duration_ns"] * 1e-9) <= row["plus_minus_j"]
    (device,) = answer["devices"]
    assert (device["name"], device["model"], device["used"], device["shared"]) == ("GPU 1", "Stand-in", True, False)
    assert all((row["joules"] is None) == (row["note"] == "too short to say") for row in answer["ranges"])
    assert next(row for row in answer["ranges"] if row["name"] == "log")["joules"] is None
    assert answer["notes"] == []
