"""itwinai's files of GPU power and epoch times: read as joules of each run, and written from a recording."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

GPU = [
    "sample_idx",
    "utilization",
    "power",
    "local_rank",
    "node_idx",
    "num_global_gpus",
    "strategy",
    "probing_interval",
]
EPOCH = ["epoch_id", "time", "name", "nodes"]


def write(path: Path, columns, rows, index=False):
    """As pandas' to_csv does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([""] * index + columns)
        for i, row in enumerate(rows):
            writer.writerow([i] * index + row)


def power_rows(watts, n, gpus=2, interval=2, first=0):
    """Readings of each GPU: `watts` and 10 W more for each GPU."""
    return [
        [first + i, 50.0, float(watts + 10 * gpu), gpu, 0, gpus, "torch-ddp", interval]
        for i in range(n)
        for gpu in range(gpus)
    ]


def read(marey, *paths):
    done = marey("report", "--energy", "--json", *paths)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_run_is_for_itself_and_repeats_are_averaged(marey, tmp_path):
    root = tmp_path / "scalability-metrics"
    for run, watts in (("first", 200), ("second", 300)):
        write(root / run / "gpu-energy-data" / "torch-ddp_2.csv", GPU, power_rows(watts, 30))
        # Ten epochs of 6.6 s: readings that should be 2 s apart were 2.2 s apart.
        write(
            root / run / "epoch-time" / "epochtime_torch-ddp_1N.csv",
            EPOCH,
            [[i, 6.6, "torch-ddp", 1] for i in range(10)],
        )
    answer = read(marey, root)
    first, second = answer["runs"]
    assert (first["run"], first["strategy"], first["num_gpus"], first["nodes"]) == ("first", "torch-ddp", 2, 1)
    assert (first["readings"], first["measured_gpus"], first["interval_s"]) == (60, 2, 2)
    assert first["real_interval_s"] == pytest.approx(2.2)
    assert first["joules"] == pytest.approx((200 + 210) * 66)
    assert second["joules"] == pytest.approx((300 + 310) * 66)
    assert first["joules_per_epoch"] == pytest.approx((200 + 210) * 6.6)
    assert first["utilization"] == pytest.approx(0.5)
    assert abs(first["joules"] - (200 + 210) * 60) <= first["plus_minus_j"]
    (repeats,) = answer["repeats"]
    assert repeats["runs"] == 2
    assert repeats["mean_j"] == pytest.approx((first["joules"] + second["joules"]) / 2)
    # What itwinai would print: nominal interval, and both runs in one sum.
    assert repeats["itwinai_wh"] == pytest.approx((410 + 610) * 60 / 3600)
    assert first["itwinai_wh"] == pytest.approx(410 * 60 / 3600)


def test_readings_that_begin_anew_are_a_repeat(marey, tmp_path):
    path = tmp_path / "gpu-energy-data" / "torch-ddp_1.csv"
    write(path, GPU, power_rows(100, 10, gpus=1) + power_rows(300, 10, gpus=1), index=True)
    answer = read(marey, path)
    assert [(row["repeat"], row["joules"]) for row in answer["runs"]] == [(1, 2000), (2, 6000)]
    assert answer["repeats"][0]["mean_j"] == 4000
    assert answer["runs"][0]["note"] == "nominal interval: epoch times are unknown"


def test_missing_readings_are_no_zeroes(marey, tmp_path):
    rows = [row for row in power_rows(100, 20, gpus=1) if not 5 <= row[0] < 15]
    write(tmp_path / "a.csv", GPU, rows)
    (run,) = read(marey, "a.csv")["runs"]
    assert run["joules"] == pytest.approx(100 * 20 * 2)
    assert run["itwinai_wh"] == pytest.approx(100 * 10 * 2 / 3600)


def test_rows_that_lack_something_are_left_out_and_reported(marey, tmp_path):
    rows = [*power_rows(100, 4, gpus=1), [9, 50, "", 0, 0, 1, "torch-ddp", 2], [10, 50, "nan", 0, 0, 1, "torch-ddp", 2]]
    write(tmp_path / "a.csv", GPU, rows)
    done = marey("report", "--energy", "a.csv")
    assert done.returncode == 0
    assert done.stderr.startswith("marey: 2 rows without a power")
    assert done.stdout.startswith("runs\n")
    assert "repeats: mean of runs, and itwinai's sum" in done.stdout


@pytest.mark.parametrize(
    "text,says",
    [
        ("", "it is empty"),
        ("a,b\n1,2\n", "its first line has no column sample_idx"),
        ('sample_idx,power,strategy,num_global_gpus,probing_interval\n"0', "it ends within quotes"),
        ("epoch_id,time,name,nodes\n0,1.5,torch-ddp,1\n", "has no readings of GPU power"),
    ],
)
def test_other_files_are_distinguished(marey, tmp_path, text, says):
    (tmp_path / "a.csv").write_text(text)
    done = marey("report", "--energy", "a.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


@pytest.fixture
def run(marey, compiled, tmp_path) -> Path:
    assert marey("run", "--only", "ranges", "-q", "-o", "loop.marey", "--", compiled("joules.c"), 100).returncode == 0
    return tmp_path / "loop.marey"


def test_what_is_written_has_its_columns_and_its_energy(marey, run, tmp_path):
    done = marey("report", run, "--energy", "--json", "--write-itwinai", "out", "--strategy", "torch-ddp")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    gpu, epochs = (
        tmp_path / "out/gpu-energy-data/torch-ddp_2.csv",
        tmp_path / "out/epoch-time/epochtime_torch-ddp_1N.csv",
    )
    rows = list(csv.DictReader(gpu.open()))
    assert list(rows[0]) == GPU
    assert {(row["strategy"], row["num_global_gpus"], row["probing_interval"]) for row in rows} == {
        ("torch-ddp", "2", "1")
    }
    assert {row["local_rank"] for row in rows} == {"0", "1"}
    # Their formula, watts times the interval, gives the joules that were measured.
    assert sum(float(row["power"]) for row in rows) == pytest.approx(answer["runs"][0]["joules"], rel=1e-6)
    times = list(csv.DictReader(epochs.open()))
    assert list(times[0]) == EPOCH
    assert [float(row["time"]) for row in times] == pytest.approx(
        [row["duration_ns"] / 1e9 for row in answer["epochs"]]
    )


def test_pandas_reads_what_is_written(marey, run, tmp_path):
    import pandas

    assert marey("report", run, "--energy", "--write-itwinai", "out", "--strategy", "x/../y").returncode == 0
    table = pandas.read_csv(tmp_path / "out" / "gpu-energy-data" / "x____y_2.csv")
    assert (table["power"] * table["probing_interval"]).sum() > 0
    assert set(table["strategy"]) == {"x/../y"}


def test_several_runs_have_folders_of_their_own(marey, compiled, tmp_path):
    assert (
        marey(
            "run", "--only", "ranges", "-q", "--repeat", 2, "-o", "r.marey", "--", compiled("joules.c"), 100
        ).returncode
        == 0
    )
    assert marey("report", "r.marey", "--energy", "--write-itwinai", "out").returncode == 0
    assert len(list((tmp_path / "out").glob("*/gpu-energy-data/unknown_2.csv"))) == 2


def test_nothing_to_write_is_reported(marey, recording, run):
    done = marey("report", run, "--energy", "--write-itwinai", "/proc/nowhere")
    assert done.returncode == 2
    assert "make /proc/nowhere" in done.stderr
