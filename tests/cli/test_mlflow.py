"""Runs in MLflow stores, of files and of SQLite, as measurements: kymo._mlflow_runs, and the commands that ask it.

The stores are real, made by plain calls to MLflow in itwinai's layout, and by kymo.loggers.MLflowLogger.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow_stores import Store

pytest.importorskip("mlflow", reason="mlflow is not installed; tools/setup test installs it from 3.11 on")

EPOCHS = {1: [24.0, 8.0, 8.0, 8.2], 2: [14.0, 4.4, 4.4, 4.6]}
WATTS = 100.0


def fill(uri: str, folder: Path) -> None:
    """Two numbers of workers, twice each under one name; a tuner of Ray, a run that stands alone, one of kymo."""
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

    from kymo.loggers import MLflowLogger

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


@pytest.fixture(scope="module", params=["files", "sqlite"])
def uri(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp(request.param)
    where = (folder / "store").as_uri() if request.param == "files" else f"sqlite:///{folder}/mlflow.db"
    fill(where, folder)
    return where


def rows_of(uri: str, tmp_path: Path, experiment: str | None = "scaling", names: list[str] | None = None):
    from kymo import _mlflow_runs

    n = _mlflow_runs.write(uri, str(tmp_path / "out.csv"), experiment, names or [])
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


def test_what_kymo_logged_is_read_the_same_way(uri, tmp_path):
    rows = chosen(rows_of(uri, tmp_path), strategy="fsdp")
    epochs = chosen(rows, measure="epoch_time_s")
    assert sorted((row["rank"], float(row["value"])) for row in epochs) == [("0", 2.0)] * 3 + [("1", 3.0)] * 3
    assert {(row["run"], row["workers"]) for row in rows} == {("ours", "2")}
    assert [row["value"] for row in chosen(rows, measure="energy_j")] == ["50.0"] * 3


def test_pages_and_experiments(uri, tmp_path, monkeypatch):
    from kymo import _mlflow_runs

    whole = rows_of(uri, tmp_path)
    monkeypatch.setattr(_mlflow_runs, "PAGE", 3)
    assert rows_of(uri, tmp_path) == whole
    assert rows_of(uri, tmp_path, experiment=None) == whole
    assert rows_of(uri, tmp_path, "empty") == []


def test_runs_by_name(uri, tmp_path, capsys):
    rows = rows_of(uri, tmp_path, names=["tuner", "alone", "missing"])
    assert {row["run"].split("/")[0] for row in rows} == {"tuner", "alone"}
    assert capsys.readouterr().err == "kymo: experiment 'scaling' has no run 'missing'\n"


def test_a_store_by_its_path(uri, tmp_path):
    from kymo import _mlflow_runs

    path = Path(uri.split("://", 1)[1] if uri.startswith("file:") else uri[len("sqlite:///") :])
    whole = rows_of(uri, tmp_path)
    assert rows_of(str(path), tmp_path) == whole
    if path.is_file():  # as MLflow 3.7 and later leave it in a folder
        assert rows_of(str(path.parent), tmp_path) == whole
        assert _mlflow_runs._store_of(f"sqlite:///{path}") == f"sqlite:///{path}"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda folder: folder / "missing", "kymo: there is no MLflow store at "),
        (lambda folder: f"sqlite:///{folder}/missing.db", "kymo: there is no MLflow store at "),
        (lambda folder: folder, "is no MLflow store: no folder in it has a meta.yaml"),
        (lambda folder: folder / "notes.db", "kymo: MLflow cannot read "),
    ],
)
def test_what_is_no_store_is_one_sentence_and_nothing_is_made(tmp_path, capsys, make, sentence):
    from kymo import _mlflow_runs

    (tmp_path / "notes.db").write_text("these are no tables")
    assert _mlflow_runs.main([str(make(tmp_path)), str(tmp_path / "out.csv")]) == 2
    said = capsys.readouterr().err
    assert sentence in said and len(said.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"notes.db", "out.csv"}


def test_an_experiment_that_is_not_there_is_told_with_those_that_are(uri, tmp_path, capsys):
    from kymo import _mlflow_runs

    assert _mlflow_runs.main([uri, str(tmp_path / "out.csv"), "--experiment", "none"]) == 2
    assert "has no experiment 'none'; there are: " in (said := capsys.readouterr().err) and "'scaling'" in said
    assert _mlflow_runs.main([uri, str(tmp_path / "out.csv"), "--experiment", "empty"]) == 4
    assert "has no run with epoch times" in capsys.readouterr().err


def test_without_mlflow_it_says_what_to_install(tmp_path):
    """In an interpreter that finds kymo, and no mlflow."""
    import kymo

    (tmp_path / "kymo").symlink_to(Path(kymo.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-S", "-m", "kymo._mlflow_runs", str(tmp_path), str(tmp_path / "out.csv")],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "it needs mlflow: pip install mlflow-skinny sqlalchemy alembic (or mlflow)" in done.stderr
