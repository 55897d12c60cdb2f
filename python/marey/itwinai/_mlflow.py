"""Runs of an MLflow store as the CSV of measurements that `marey scale` reads: docs/formats/scaling-csv.md.

    python -m marey.itwinai mlflow URI OUTPUT.csv [--experiment NAME] [--run NAME]...

The layout is that of itwinai and marey.loggers.MLflowLogger: a training run with a child run per worker; with Ray, a
run per trial in between. A run without children is its own worker.
"""

from __future__ import annotations

import csv
import logging
import math
import os
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

from marey import _logger_mlflow, _needs
from marey.itwinai._averages import FRACTIONS, fractions_of_files
from marey.itwinai._files import Failure, say
from marey.itwinai._measurements import COLUMNS

# After a restart from a checkpoint, steps are logged again; the last value counts.
BY_EPOCH = ("epoch_time_s", "energy_j", "samples_per_s")
MEASURES = (*BY_EPOCH, "step_time_s", "gpu_power_W", "gpu_utilization_percent")
OF_A_RUN = (
    "probing_interval",
    "samples_per_epoch",
    "batch",
    "compute_s",
    "communication_s",
    "memory_s",
    "idle_s",
    *FRACTIONS,
)
NODES = ("nodes", "num_nodes", "nnodes")
AVERAGES = "torch_profiling_averages"

PAGE = 1000
_PARENT = "mlflow.parentRunId"


class Group(NamedTuple):
    """One start of a program: its workers' runs in MLflow."""

    experiment: str
    name: str
    workers: list[Any]
    world_size: int  # if the workers do not have it


def write(uri: str, output: str, experiment: Optional[str], names: Sequence[str]) -> int:
    """Write all rows of a store. Returns their number. Raises Failure if it cannot be read."""
    try:
        return _write(uri, output, experiment, names)
    except (Failure, ImportError):
        raise
    except Exception as error:  # errors of MLflow, SQLAlchemy and the network have no common base class
        raise Failure(f"MLflow cannot read {uri}: {' '.join(str(error).split())[:400]}") from error


def nothing_in(uri: str, experiment: Optional[str]) -> str:
    """Return the message for a store without measured runs."""
    what = f"experiment '{experiment}' of " if experiment else ""
    return f"{what}{uri} has no run with epoch times, GPU readings or averages"


def _write(uri: str, output: str, experiment: Optional[str], names: Sequence[str]) -> int:
    client = _open(uri)
    n_rows = 0
    with open(output, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for found in _experiments(client, uri, experiment):
            for group in _groups(found.name, _runs(client, found.experiment_id), names):
                for row in _rows(client, group):
                    rows.writerow(row)
                    n_rows += 1
    return n_rows


# ---- the store ----


def _open(uri: str) -> Any:
    """Return a client of an existing store: MLflow would create a missing one."""
    _needs.need(f"{sys.executable} cannot read an MLflow store: it", "mlflow", _logger_mlflow._INSTALL)
    store = _store_of(uri)
    _logger_mlflow._need_database(store)
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    warnings.simplefilter("ignore")
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.ERROR)
    import mlflow

    return mlflow.MlflowClient(store)


def _store_of(uri: str) -> str:
    """Return MLflow's URI of the store. A path may be a folder of files or a database."""
    path = uri[len("sqlite:///") :] if uri.startswith("sqlite:///") else _logger_mlflow._folder_of(uri)
    if path is None:
        return uri
    if not os.path.exists(path):
        raise Failure(f"there is no MLflow store at {path}")
    inner = os.path.join(path, "mlflow.db")
    if os.path.isdir(path) and not _is_file_store(path):
        if not os.path.exists(inner):
            raise Failure(f"{path} is not an MLflow store: no folder in it has a meta.yaml, and there is no mlflow.db")
        path = inner
    return f"sqlite:///{os.path.abspath(path)}" if os.path.isfile(path) else uri


def _is_file_store(path: str) -> bool:
    return any(os.path.exists(os.path.join(path, name, "meta.yaml")) for name in os.listdir(path))


def _pages(ask: Any) -> Iterator[Any]:
    token = None
    while True:
        page = ask(token)
        yield from page
        token = page.token
        if not token:
            return


def _experiments(client: Any, uri: str, name: Optional[str]) -> list[Any]:
    every = list(_pages(lambda token: client.search_experiments(max_results=PAGE, page_token=token)))
    chosen = [found for found in every if name is None or found.name == name]
    if not chosen:
        there = ", ".join(f"'{found.name}'" for found in every[:20]) or "none"
        raise Failure(f"{uri} has no experiment '{name}'; there are: {there}")
    return chosen


def _runs(client: Any, experiment_id: str) -> list[Any]:
    """All runs of an experiment, the oldest first."""
    found = _pages(lambda token: client.search_runs([experiment_id], max_results=PAGE, page_token=token))
    return sorted(found, key=lambda run: (run.info.start_time or 0, run.info.run_id))


# ---- runs to groups ----


def _groups(experiment: str, runs: Sequence[Any], names: Sequence[str]) -> Iterator[Group]:
    """Training runs with their workers; with Ray, trials with theirs."""
    known = {run.info.run_id for run in runs}
    below: dict[str, list[Any]] = defaultdict(list)
    for run in runs:
        below[run.data.tags.get(_PARENT, "")].append(run)
    tops = [run for run in runs if run.data.tags.get(_PARENT) not in known]
    if names:
        tops = [run for run in runs if run.info.run_name in names]
        for name in set(names) - {run.info.run_name for run in tops}:
            say(f"experiment '{experiment}' has no run '{name}'")
    times = Counter(run.info.run_name for run in tops)
    for top in tops:
        name = top.info.run_name or top.info.run_id
        name = name if times[name] <= 1 else f"{name} {top.info.run_id[:8]}"
        children = below[top.info.run_id]
        trials = [child for child in children if below[child.info.run_id]]
        workers = [child for child in children if child not in trials]
        yield Group(experiment, name, [top, *workers], len(workers) or 1)
        for trial in trials:
            label = f"{name}/{trial.info.run_name or ''} {trial.info.run_id[:8]}"
            yield Group(experiment, label, below[trial.info.run_id], len(below[trial.info.run_id]))


# ---- groups to rows ----


def _rows(client: Any, group: Group) -> Iterator[tuple[object, ...]]:
    for worker in group.workers:
        params = worker.data.params
        nodes = next((params[name] for name in NODES if params.get(name, "").isdigit()), "")
        workers = params.get("global_world_size") or group.world_size
        about = (
            group.experiment,
            params.get("strategy", ""),
            workers,
            nodes,
            group.name,
            params.get("global_rank", ""),
        )
        for measure in MEASURES + OF_A_RUN:
            if measure in worker.data.metrics:
                for step, unix_ms, value in _history(client, worker.info.run_id, measure):
                    yield (*about, measure, "" if measure in OF_A_RUN else step, unix_ms, value)
            elif measure in OF_A_RUN and measure in params:
                yield (*about, measure, "", "", params[measure])
    yield from _averages(client, group)


def _history(client: Any, run_id: str, measure: str) -> list[tuple[int, int, float]]:
    found = client.get_metric_history(run_id, measure)
    points = sorted((point.step, point.timestamp, point.value) for point in found if math.isfinite(point.value))
    return list({point[0]: point for point in points}.values()) if measure in BY_EPOCH else points


def _averages(client: Any, group: Group) -> Iterator[tuple[object, ...]]:
    """Return itwinai's two fractions over all ranks of this run."""
    with tempfile.TemporaryDirectory(prefix="marey-averages-") as folder:
        files: list[str] = []
        for worker in group.workers:
            for found in client.list_artifacts(worker.info.run_id, AVERAGES):
                if found.path.endswith(".csv"):
                    into = os.path.join(folder, str(len(files)))
                    os.mkdir(into)
                    files.append(client.download_artifacts(worker.info.run_id, found.path, into))
        try:
            table, _ = fractions_of_files(files)
        except Failure as failure:
            say(f"averages of {group.name} are left out: {str(failure).replace(folder, AVERAGES)}")
            return
        for row in table:
            for measure in FRACTIONS:
                if row["rank"] is None and row[measure] is not None:
                    about = (group.experiment, row["strategy"], row["num_gpus"], "", group.name, "")
                    yield (*about, measure, "", "", row[measure])
