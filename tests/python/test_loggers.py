"""Loggers: what each one writes, read back by the package it is for."""

from __future__ import annotations

import csv
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import marey
from marey.loggers import Batched, CSVLogger, Logger, MLflowLogger, TensorBoardLogger, by_name

EPOCHS = (
    {"epoch_time_s": 2.5, "gpu_power_W": 301.25, "gpu_utilization_percent": 97.0},
    {"epoch_time_s": 1.5, "gpu_power_W": 305.5, "gpu_utilization_percent": 98.5},
)
PARAMS = {"lr": 0.001, "precision": "bf16", "shuffle": True}


def log_a_run(logger: Logger, artifact: Path) -> None:
    """Metrics of a small training, through the loggers' thread."""
    artifact.write_text("name,value\n")
    with Batched([logger]) as log:
        log.log_params(PARAMS)
        for epoch, metrics in enumerate(EPOCHS):
            log.log_metrics(metrics, step=epoch)
        log.log_artifact(artifact, "averages")


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


# ---- CSV ----


def test_csv_has_a_line_for_each_number(tmp_path: Path) -> None:
    log_a_run(CSVLogger(tmp_path / "logs"), tmp_path / "averages.csv")
    rows = rows_of(tmp_path / "logs" / "metrics.csv")
    assert [(row["rank"], row["step"], row["name"], float(row["value"])) for row in rows] == [
        ("0", str(epoch), name, value) for epoch, metrics in enumerate(EPOCHS) for name, value in metrics.items()
    ]
    times = [int(row["unix_ns"]) for row in rows]
    assert times == sorted(times)
    params = {row["name"]: row["value"] for row in rows_of(tmp_path / "logs" / "params.csv")}
    assert params == {"lr": "0.001", "precision": "bf16", "shuffle": "True"}
    (artifact,) = rows_of(tmp_path / "logs" / "artifacts.csv")
    assert (artifact["name"], artifact["path"]) == ("averages", str(tmp_path / "averages.csv"))


@pytest.mark.needs_pandas
def test_pandas_reads_metrics_as_numbers(tmp_path: Path) -> None:
    import pandas as pd

    log_a_run(CSVLogger(tmp_path), tmp_path / "a")
    table = pd.read_csv(tmp_path / "metrics.csv").pivot(index="step", columns="name", values="value")
    assert table.loc[1, "gpu_power_W"] == 305.5
    assert list(table.columns) == ["epoch_time_s", "gpu_power_W", "gpu_utilization_percent"]


def test_csv_bears_any_name_and_any_number(tmp_path: Path) -> None:
    logger = CSVLogger(tmp_path)
    given = {'a,"b"\nc': 1e300, "nan": math.nan, "inf": math.inf, "größe": -0.0, "lone \ud800": 1}
    logger.log_metrics(given, step=-1)
    rows = rows_of(logger.path())
    assert [row["name"] for row in rows][:4] == ['a,"b"\nc', "nan", "inf", "größe"]
    values = [float(row["value"]) for row in rows]
    assert values[0] == 1e300 and math.isnan(values[1]) and values[2:] == [math.inf, 0.0, 1.0]
    assert {row["step"] for row in rows} == {"-1"}


def test_csv_of_ranks_is_a_file_each(tmp_path: Path) -> None:
    for rank in (0, 1):
        CSVLogger(tmp_path, rank=rank, world_size=2).log_metrics({"x": rank}, step=0)
    for rank in (0, 1):
        (row,) = rows_of(tmp_path / f"rank{rank}_metrics.csv")
        assert (row["rank"], row["value"]) == (str(rank), str(rank))


def test_csv_goes_on_where_a_run_ended_and_where_one_was_cut(tmp_path: Path) -> None:
    CSVLogger(tmp_path).log_metrics({"x": 1}, step=0)
    path = tmp_path / "metrics.csv"
    path.write_bytes(path.read_bytes()[:-4])
    CSVLogger(tmp_path).log_metrics({"x": 2}, step=1)
    rows = rows_of(path)
    assert rows[-1]["value"] == "2" and rows[-1]["step"] == "1" and len(rows) == 2


def test_csv_leaves_a_file_of_somebody_else_alone(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("epoch,loss\n1,0.5\n")
    with pytest.raises(ValueError, match="other columns; move it away or choose another folder"):
        CSVLogger(tmp_path).log_metrics({"x": 1}, step=0)
    assert path.read_text() == "epoch,loss\n1,0.5\n"


def test_csv_on_a_full_disk_leaves_no_half_line() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    from marey import _tools

    with pytest.raises(marey.MareyError, match="cannot write /dev/full: No space left"):
        _tools.append_csv("/dev/full", (("x", "integer"),), [(1,)])


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        ((("x", "date"),), [(1,)], "text, integer, number or share"),
        ((("x", "integer"),), [(1, 2)], "a tuple of 1"),
        ((("x", "text"),), [(1,)], "holds str"),
        ((("x", "integer"),), [("a",)], "int"),
        ((), [], "1 to 32 columns"),
    ],
)
def test_rows_that_do_not_fit_write_nothing(columns: Any, rows: Any, message: str, tmp_path: Path) -> None:
    from marey import _tools

    with pytest.raises((TypeError, ValueError), match=message):
        _tools.append_csv(tmp_path / "x.csv", columns, rows)
    assert not (tmp_path / "x.csv").exists()


# ---- TensorBoard ----


@pytest.mark.needs_tensorboard
def test_tensorboard_reads_scalars_params_and_artifacts(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    log_a_run(TensorBoardLogger(tmp_path / "tb"), tmp_path / "averages.csv")
    events = EventAccumulator(str(tmp_path / "tb"))
    events.Reload()
    assert sorted(events.Tags()["scalars"]) == sorted(EPOCHS[0])
    assert [(e.step, e.value) for e in events.Scalars("gpu_power_W")] == [(0, 301.25), (1, 305.5)]
    content = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    hparams = metadata.parse_session_start_info_plugin_data(content).hparams
    assert hparams["lr"].number_value == 0.001
    assert hparams["precision"].string_value == "bf16"
    assert hparams["shuffle"].bool_value is True
    (text,) = events.Tensors("artifacts/averages/averages.csv")
    assert text.tensor_proto.string_val == [os.fsencode(tmp_path / "averages.csv")]


@pytest.mark.needs_tensorboard
def test_tensorboard_shows_each_rank_as_a_run(tmp_path: Path) -> None:
    for rank in (0, 1):
        logger = TensorBoardLogger(tmp_path, rank=rank, world_size=2)
        logger.open()
        logger.log_metrics({"x": 1}, step=0)
        logger.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["worker_0", "worker_1"]


# ---- MLflow ----

RANK = """
import os, sys, time
from marey.loggers import Batched, MLflowLogger
with Batched([MLflowLogger("ranks", "job", sys.argv[1])]) as log:
    for epoch in range(3):
        log.log_metrics({"epoch_time_s": 10.0 * int(os.environ["RANK"]) + epoch}, step=epoch)
"""


@pytest.fixture(scope="module")
def store_of_ranks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database that two ranks have made and logged into at once."""
    folder = tmp_path_factory.mktemp("ranks")
    uri = f"sqlite:///{folder}/mlflow.db"
    shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MLFLOW_DISABLE_TELEMETRY": "true"}
    environment = {**os.environ, **shared, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", RANK, uri]
    ranks = [subprocess.Popen(command, env={**environment, "RANK": rank}, cwd=folder) for rank in "10"]
    assert [rank.wait(100) for rank in ranks] == [0, 0]
    return uri


@pytest.fixture(scope="module", params=["files", "sqlite"])
def mlflow_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a run in it."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    folder = tmp_path_factory.mktemp(request.param)
    store = request.getfixturevalue("store_of_ranks") if request.param == "sqlite" else (folder / "store").as_uri()
    where = (folder / "artifacts").as_uri()
    logger = MLflowLogger("mine", "first run", store, artifact_location=where, tags={"team": "a"}, strategy="torch-ddp")
    log_a_run(logger, folder / "averages.csv")
    return str(store)


@pytest.mark.needs_mlflow
class TestMLflow:
    """Both stores, read back by MLflow's own client."""

    @pytest.fixture
    def client(self, mlflow_store: str) -> Any:
        import mlflow

        return mlflow.MlflowClient(mlflow_store)

    @pytest.fixture
    def runs(self, client: Any) -> dict[str, Any]:
        experiment = client.get_experiment_by_name("mine")
        return {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}

    def test_a_worker_below_a_training_run(self, runs: dict[str, Any]) -> None:
        assert sorted(runs) == ["first run", "worker_0 (main)"]
        worker = runs["worker_0 (main)"]
        assert worker.data.tags["mlflow.parentRunId"] == runs["first run"].info.run_id
        assert worker.data.tags["team"] == "a"
        assert {run.info.status for run in runs.values()} == {"FINISHED"}

    def test_metrics_have_each_step(self, client: Any, runs: dict[str, Any]) -> None:
        run_id = runs["worker_0 (main)"].info.run_id
        for name in EPOCHS[0]:
            history = client.get_metric_history(run_id, name)
            assert [(m.step, m.value) for m in history] == [(i, metrics[name]) for i, metrics in enumerate(EPOCHS)]

    def test_params_are_ours_and_the_users(self, runs: dict[str, Any]) -> None:
        given = {name: str(value) for name, value in PARAMS.items()}
        about = {"strategy": "torch-ddp", "global_rank": "0", "global_world_size": "1"}
        assert runs["worker_0 (main)"].data.params == {**given, **about}

    def test_artifacts_are_copied(self, client: Any, runs: dict[str, Any]) -> None:
        run_id = runs["worker_0 (main)"].info.run_id
        (found,) = client.list_artifacts(run_id, "averages")
        assert found.path == "averages/averages.csv"
        assert Path(client.download_artifacts(run_id, found.path)).read_text() == "name,value\n"

    def test_a_run_can_go_below_one_that_is_there(self, client: Any, runs: dict[str, Any], mlflow_store: str) -> None:
        parent = runs["first run"].info.run_id
        logger = MLflowLogger("mine", tracking_uri=mlflow_store, parent_run_id=parent, rank=3, world_size=4)
        logger.open()
        run_id = logger.run_id
        logger.log_metrics({f"metric_{i}": i for i in range(1001)}, step=0)
        logger.close()
        run = client.get_run(run_id)
        assert run.info.run_name == "worker_3"
        assert run.data.tags["mlflow.parentRunId"] == parent
        assert len(run.data.metrics) == 1001 and run.data.metrics["metric_1000"] == 1000
        client.delete_run(run_id)


@pytest.mark.needs_mlflow
def test_ranks_meet_below_one_training_run(store_of_ranks: str) -> None:
    import mlflow

    client = mlflow.MlflowClient(store_of_ranks)
    experiment = client.get_experiment_by_name("ranks")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert sorted(runs) == ["job", "worker_0 (main)", "worker_1"]
    for rank, name in enumerate(("worker_0 (main)", "worker_1")):
        assert runs[name].data.tags["mlflow.parentRunId"] == runs["job"].info.run_id
        assert runs[name].data.params["global_rank"] == str(rank)
        history = client.get_metric_history(runs[name].info.run_id, "epoch_time_s")
        assert [m.value for m in history] == [10.0 * rank + epoch for epoch in range(3)]


# ---- by name ----


def test_csv_is_the_one_that_is_always_there(tmp_path: Path) -> None:
    (made,) = by_name("csv", tmp_path)
    made.log_metrics({"x": 1}, step=0)
    assert (tmp_path / "metrics.csv").exists()


@pytest.mark.needs_mlflow
@pytest.mark.needs_tensorboard
def test_loggers_have_names(tmp_path: Path) -> None:
    own = CSVLogger(tmp_path)
    made = by_name(["mlflow", own, "tensorboard"], tmp_path)
    assert [type(one) for one in made] == [MLflowLogger, CSVLogger, TensorBoardLogger]
    assert by_name(own) == [own]
    assert [type(one) for one in by_name("csv, tensorboard")] == [CSVLogger, TensorBoardLogger]


def test_a_name_that_is_none_is_reported() -> None:
    with pytest.raises(ValueError, match="no logger is called 'wandb'; there are csv, mlflow, tensorboard"):
        by_name("wandb")


def test_a_rank_that_is_none_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rank 2 is none of 2"):
        CSVLogger(tmp_path, rank=2, world_size=2)


@pytest.mark.parametrize(
    ("logger", "package", "sentence"),
    [
        (MLflowLogger, "mlflow", "marey.loggers.MLflowLogger needs mlflow: pip install mlflow-skinny"),
        (
            TensorBoardLogger,
            "tensorboard",
            "marey.loggers.TensorBoardLogger needs tensorboard: pip install tensorboard",
        ),
    ],
)
def test_a_missing_package_is_reported_when_the_logger_is_made(
    logger: Any, package: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else known(name))
    with pytest.raises(ImportError, match=sentence):
        logger()
