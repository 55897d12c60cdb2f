"""Runs in MLflow stores, of files and of SQLite, as measurements: marey.itwinai, and the commands that run it.

The stores are real, made by plain calls to MLflow in itwinai's layout, and by marey.loggers.MLflowLogger.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest
from mlflow_stores import Store
from test_itwinai_commands import sections_of

pytest.importorskip("mlflow", reason="mlflow is not installed; tools/setup test installs it from 3.11 on")

EPOCHS = {1: [24.0, 8.0, 8.0, 8.2], 2: [14.0, 4.4, 4.4, 4.6]}
WATTS = 100.0


def fill(uri: str, folder: Path) -> None:
    """Two numbers of workers, twice each under one name; a tuner of Ray, a run that stands alone, one of marey."""
    store = Store(uri, "scaling", folder)
    for n, epochs in EPOCHS.items():
        for repeat in range(2):
            times = [epoch + 0.1 * repeat for epoch in epochs]
            store.workers(store.run("job"), "torch-ddp", n, times, WATTS, (60, 20, 20))
    tuner = store.run("tuner")
    for n in (1, 2):
        store.workers(store.run(f"trial_{n}", tuner), "ray-torch-ddp", n, [9.0 / n] * 3)
    alone = store.run("alone", params={"strategy": "horovod", "batch": 64, "nodes": 2})
    store.metrics(alone, "epoch_time_s", [5.0, 4.0])
    store.metrics(alone, "epoch_time_s", [6.0, 3.0], first_ms=1_700_000_100_000)  # once more, from a checkpoint

    from marey.loggers import MLflowLogger

    for rank in (0, 1):
        parent = (
            store.client.search_runs([store.experiment], "attributes.run_name = 'ours'")[0].info.run_id
            if rank
            else None
        )
        logger = MLflowLogger("scaling", "ours", uri, strategy="fsdp", rank=rank, world_size=2, parent_run_id=parent)
        logger.open()
        for epoch in range(3):
            logger.log_metrics({"epoch_time_s": 2.0 + rank, "samples_per_s": 100.0}, step=epoch)
            if rank == 0:
                logger.log_metrics({"energy_j": 50.0}, step=epoch)
        logger.close()
    store.client.create_experiment("empty")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("files")
    fill((folder / "store").as_uri(), folder)
    return (folder / "store").as_uri()


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("sqlite")
    fill(f"sqlite:///{folder}/mlflow.db", folder)
    return f"sqlite:///{folder}/mlflow.db"


@pytest.fixture(params=["files", "sqlite"])
def uri(request: pytest.FixtureRequest) -> str:
    store: str = request.getfixturevalue(request.param)
    return store


def rows_of(uri: str, tmp_path: Path, experiment: str | None = "scaling", names: list[str] | None = None):
    from marey.itwinai import _mlflow

    n = _mlflow.write(uri, str(tmp_path / "out.csv"), experiment, names or [])
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == n
    return rows


def chosen(rows, **wanted):
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def test_every_number_of_every_worker_is_a_row(uri, tmp_path):
    rows = rows_of(uri, tmp_path)
    ddp = chosen(rows, strategy="torch-ddp", workers="2")
    assert len({row["run"] for row in ddp}) == 2, "repeats under one name are two runs"
    first = chosen(ddp, run=ddp[0]["run"])
    epochs = chosen(first, measure="epoch_time_s")
    assert [(row["rank"], row["step"], float(row["value"])) for row in epochs] == [
        ("0", str(i), value) for i, value in enumerate(EPOCHS[2])
    ]
    assert [int(row["unix_ms"]) for row in epochs] == [1_700_000_000_000 + 1000 * i for i in range(4)]
    for measure, value in (("gpu_power_W", WATTS), ("gpu_utilization_percent", 80.0)):
        readings = chosen(first, measure=measure)
        assert [row["rank"] for row in readings] == ["0"] * 10 + ["1"] * 10
        assert {float(row["value"]) for row in readings} == {value}
    assert [row["value"] for row in chosen(first, measure="probing_interval")] == ["1", "1"]
    assert not chosen(rows, measure="train_loss")


def test_fractions_are_those_of_the_averages_of_all_ranks(uri, tmp_path):
    rows = chosen(rows_of(uri, tmp_path), strategy="torch-ddp")
    for measure, value in (("computation_fraction", 0.6), ("computation_vs_communication", 0.75)):
        found = chosen(rows, measure=measure)
        assert len(found) == 4 and len({row["run"] for row in found}) == 4
        assert [float(row["value"]) for row in found] == pytest.approx([value] * 4)
        assert {row["workers"] for row in found} == {"1", "2"} and {row["rank"] for row in found} == {""}


def test_trials_of_ray_are_runs_of_their_own(uri, tmp_path):
    rows = chosen(rows_of(uri, tmp_path), strategy="ray-torch-ddp")
    assert sorted({(row["run"].rsplit(" ", 1)[0], row["workers"]) for row in rows}) == [
        ("tuner/trial_1", "1"),
        ("tuner/trial_2", "2"),
    ]
    assert len(rows) == 6


def test_a_run_that_stands_alone_is_its_own_worker(uri, tmp_path):
    rows = chosen(rows_of(uri, tmp_path), run="alone")
    assert [(row["step"], row["value"]) for row in chosen(rows, measure="epoch_time_s")] == [("0", "6.0"), ("1", "3.0")]
    assert {(row["workers"], row["nodes"], row["strategy"]) for row in rows} == {("1", "2", "horovod")}
    assert [row["value"] for row in chosen(rows, measure="batch")] == ["64"]


def test_what_marey_logged_is_read_the_same_way(uri, tmp_path):
    rows = chosen(rows_of(uri, tmp_path), strategy="fsdp")
    epochs = chosen(rows, measure="epoch_time_s")
    assert sorted((row["rank"], float(row["value"])) for row in epochs) == [("0", 2.0)] * 3 + [("1", 3.0)] * 3
    assert {(row["run"], row["workers"]) for row in rows} == {("ours", "2")}
    assert [row["value"] for row in chosen(rows, measure="energy_j")] == ["50.0"] * 3


def test_pages_and_experiments(uri, tmp_path, monkeypatch):
    from marey.itwinai import _mlflow

    whole = rows_of(uri, tmp_path)
    monkeypatch.setattr(_mlflow, "PAGE", 3)
    assert rows_of(uri, tmp_path) == whole
    assert rows_of(uri, tmp_path, experiment=None) == whole
    assert rows_of(uri, tmp_path, "empty") == []


def test_runs_by_name(uri, tmp_path, capsys):
    rows = rows_of(uri, tmp_path, names=["tuner", "alone", "missing"])
    assert {row["run"].split("/")[0] for row in rows} == {"tuner", "alone"}
    assert capsys.readouterr().err == "marey: experiment 'scaling' has no run 'missing'\n"


def test_a_store_by_its_path(uri, tmp_path):
    from marey.itwinai import _mlflow

    path = Path(uri.split("://", 1)[1] if uri.startswith("file:") else uri[len("sqlite:///") :])
    whole = rows_of(uri, tmp_path)
    assert rows_of(str(path), tmp_path) == whole
    if path.is_file():  # as MLflow 3.7 and later leave it in a folder
        assert rows_of(str(path.parent), tmp_path) == whole
        assert _mlflow._store_of(f"sqlite:///{path}") == f"sqlite:///{path}"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda folder: folder / "missing", "marey: there is no MLflow store at "),
        (lambda folder: f"sqlite:///{folder}/missing.db", "marey: there is no MLflow store at "),
        (lambda folder: folder, "is not an MLflow store: no folder in it has a meta.yaml"),
        (lambda folder: folder / "notes.db", "marey: MLflow cannot read "),
    ],
)
def test_what_is_no_store_is_one_sentence_and_nothing_is_made(tmp_path, capsys, make, sentence):
    from marey.itwinai.__main__ import main

    (tmp_path / "notes.db").write_text("these are no tables")
    assert main(["mlflow", str(make(tmp_path)), str(tmp_path / "out.csv")]) == 2
    said = capsys.readouterr().err
    assert sentence in said and len(said.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"notes.db", "out.csv"}


def test_an_experiment_that_is_not_there_is_reported_with_those_that_are(uri, tmp_path, capsys):
    from marey.itwinai.__main__ import main

    assert main(["mlflow", uri, str(tmp_path / "out.csv"), "--experiment", "none"]) == 2
    assert "has no experiment 'none'; there are: " in (said := capsys.readouterr().err) and "'scaling'" in said
    assert main(["mlflow", uri, str(tmp_path / "out.csv"), "--experiment", "empty"]) == 2
    assert "has no run with epoch times" in capsys.readouterr().err


def test_without_mlflow_it_says_what_to_install(tmp_path):
    """In an interpreter that finds marey, and no mlflow."""
    import marey

    (tmp_path / "marey").symlink_to(Path(marey.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-S", "-m", "marey.itwinai", "mlflow", str(tmp_path), str(tmp_path / "out.csv")],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "it needs mlflow: pip install mlflow-skinny sqlalchemy alembic (or mlflow)" in done.stderr


# ---- the commands ----

ASKS = {"timeout": 600}  # MLflow takes seconds to import, of a processor
PICTURES = [
    "absolute_epoch_time",
    "computation_vs_communication_plot",
    "computation_vs_other_plot",
    "gpu_energy_plot",
    "relative_epoch_time_speedup",
    "utilization_plot",
]


def test_the_report_of_a_store(marey, uri, tmp_path):
    options = ["--tracking-uri", uri, "--experiment-name", "scaling", "--include-communication"]
    done = marey("generate-scalability-report", *options, "--plot-file-suffix", ".png", **ASKS)
    assert done.returncode == 0, done.stderr
    assert "plots are written as .svg, not as .png" in done.stderr
    sections = sections_of(done.stdout)
    assert list(sections) == ["Epoch Time", "GPU", "Computation", "Communication"]
    epochs = {(row[0], row[1]): row for row in sections["Epoch Time"][1:]}
    assert sections["Epoch Time"][0][:3] == ["strategy", "global_world_size", "avg_epoch_time"]
    # First epochs are left out; medians of 8.0, 8.0, 8.2 and the same a tenth later.
    assert epochs["torch-ddp", "1"][2] == "8.05 s" and epochs["torch-ddp", "2"][2] == "4.45 s"
    assert epochs["torch-ddp", "2"][-1] == "2" and epochs["torch-ddp", "2"][4] == "1.81"
    assert epochs["ray-torch-ddp", "2"][2] == "4.50 s" and epochs["ray-torch-ddp", "2"][4] == "2.00"
    # Of both ranks the slower one.
    assert epochs["fsdp", "2"][2] == "3.00 s"
    # Ten readings of 100 W, a second apart, on each worker: 1000 J for one, and repeats are not added up.
    gpus = {(row[0], row[1]): row for row in sections["GPU"][1:]}
    assert gpus["torch-ddp", "1"][2:4] == ["0.28 Wh", "80.00 %"] and gpus["torch-ddp", "2"][2] == "0.56 Wh"
    assert sections["Computation"][:2] == [
        ["strategy", "num_gpus", "computation_fraction"],
        ["torch-ddp", "1", "60.00 %"],
    ]
    assert sections["Communication"][2] == ["torch-ddp", "2", "75.00 %"]
    assert sorted(path.stem for path in (tmp_path / "plots").iterdir()) == PICTURES
    for path in (tmp_path / "plots").iterdir():
        assert path.suffix == ".svg" and xml.etree.ElementTree.parse(path).getroot().tag.endswith("svg")


def test_runs_by_name_without_what_is_to_be_known(marey, files, tmp_path):
    options = ["--tracking-uri", files, "--experiment-name", "scaling", "--run-names", "tuner,alone", "--no-warnings"]
    done = marey("generate-scalability-report", *options, "--plot-dir", "pictures", **ASKS)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "marey: wrote 2 plots into pictures\n"
    sections = sections_of(done.stdout)
    assert {row[0] for row in sections["Epoch Time"][1:]} == {"ray-torch-ddp", "horovod"}
    assert sections["GPU"] is None and "No GPU Data Found" in done.stdout and "Communication" not in sections
    assert sorted(path.stem for path in (tmp_path / "pictures").iterdir()) == [PICTURES[0], PICTURES[4]]


def test_nothing_found_is_no_success(marey, files, tmp_path):
    done = marey("generate-scalability-report", "--tracking-uri", files, "--experiment-name", "empty", **ASKS)
    assert done.returncode == 2
    assert sections_of(done.stdout) == {"Epoch Time": None, "GPU": None, "Computation": None}
    assert done.stdout.count(" Data Found") == 3
    assert "has no run with epoch times" in done.stderr
    assert not (tmp_path / "plots").exists()


def test_scale_reads_the_same_runs(marey, files):
    done = marey("scale", "--mlflow", files, "--experiment", "scaling", "--json", **ASKS)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    points = {(row["strategy"], row["workers"]): row for row in answer["points"]}
    assert points["torch-ddp", 2]["runs"] == 2
    assert points["torch-ddp", 2]["speedup"] == pytest.approx(8.05 / 4.45)
    assert points["fsdp", 2]["joules_per_epoch"] == 50.0
    assert {row["run"] for row in answer["runs"] if row["strategy"] == "fsdp"} == {"MLflow: ours"}


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What marey logs of perfect weak scaling, by two runs with one worker and two with eight."""
    from marey.loggers import MLflowLogger

    uri = f"sqlite:///{tmp_path_factory.mktemp('weak')}/mlflow.db"
    for workers in (1, 8):
        for repeat in range(2):
            parent = None
            for rank in range(workers):
                place = {"rank": rank, "world_size": workers, "parent_run_id": parent}
                logger = MLflowLogger("weak", f"{workers}-{repeat}", uri, strategy="torch-ddp", **place)
                logger.open()
                parent = logger.parent_run_id
                for epoch in range(3):
                    seconds = 10 + 0.01 * epoch + 0.02 * repeat
                    logger.log_metrics({"epoch_time_s": seconds, "samples_per_s": 1000 / seconds}, step=epoch)
                if rank == 0:
                    parts = {"compute_s": 0.06, "communication_s": 0.02, "memory_s": 0.0, "idle_s": 0.02}
                    logger.log_metrics(parts, step=0)
                logger.close()
    return uri


def test_samples_that_marey_logged_tell_weak_scaling(marey, weak):
    done = marey("scale", "--mlflow", weak, **ASKS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "torch-ddp scales to 8 workers, the most that were measured: 8 workers do 8 times the "
    )
    points = json.loads(marey("scale", "--mlflow", weak, "--json", **ASKS).stdout)["points"]
    assert [(row["kind"], row["samples"]) for row in points] == [("weak", 1000.0), ("weak", 8000.0)]
    assert points[1]["efficiency"] == pytest.approx(1.0)
    assert points[1]["throughput"] == pytest.approx(800, rel=0.01)


def test_computation_that_marey_measured_is_in_the_report(marey, weak, tmp_path):
    options = ["--tracking-uri", weak, "--experiment-name", "weak", "--include-communication"]
    done = marey("generate-scalability-report", *options, **ASKS)
    assert done.returncode == 0, done.stderr
    sections = sections_of(done.stdout)
    assert sections["Computation"][1:] == [["torch-ddp", "1", "60.00 %"], ["torch-ddp", "8", "60.00 %"]]
    assert sections["Communication"][2] == ["torch-ddp", "8", "75.00 %"]
    assert "as 'marey breakdown' measures it." in done.stdout and "counts time two and three times" not in done.stdout
    for picture in ("computation_vs_other_plot", "computation_vs_communication_plot"):
        assert "as itwinai counts" not in (tmp_path / "plots" / f"{picture}.svg").read_text()
