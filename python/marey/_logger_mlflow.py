"""Metrics for MLflow, in the layout that itwinai writes: a training run, and below it a run for each worker.

    RUN_NAME                    the training run, begun by rank 0
        worker_0 (main)         params strategy, global_rank, global_world_size; metrics; artifacts
        worker_1                ...

Ranks do not communicate. Rank 0 marks the training run with a tag that identifies the job; the others search for it, in
the loggers' thread.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

from marey import _monitor_run
from marey._logging import Path, Point, place, tell
from marey._needs import need

JOB_TAG = "marey.job"
FIND_S = 30.0
METRICS_IN_A_BATCH = 1000  # MLflow's limit; a tenth of it for params
PARAMS_IN_A_BATCH = 100

_KNOWN_BY = ("strategy", "global_rank", "global_world_size")  # params of a worker's run by which reports group
_INSTALL = "mlflow-skinny sqlalchemy alembic (or mlflow)"
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")


class MLflowLogger:
    """Params, metrics and artifacts in an MLflow store: files, SQLite or a server.

    `tracking_uri` is the store; by default MLflow's own choice, set by MLFLOW_TRACKING_URI. `run_name` names the
    training run, and must be the same on all ranks. `parent_run_id` puts the worker's run below an existing run.
    `strategy` is a param by which scaling reports group runs. `tags` are set on the worker's run.
    """

    def __init__(
        self,
        experiment: str = "marey",
        run_name: Optional[str] = None,
        tracking_uri: Optional[str] = None,
        *,
        artifact_location: Optional[str] = None,
        parent_run_id: Optional[str] = None,
        strategy: Optional[str] = None,
        tags: Optional[Mapping[str, str]] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
    ) -> None:
        """Configure. Nothing is imported or created before open()."""
        need("marey.loggers.MLflowLogger", "mlflow", _INSTALL)
        _need_database(tracking_uri or "")
        self.run_id: Optional[str] = None
        self.parent_run_id = parent_run_id
        self._given: dict[str, Any] = {
            "run_name": run_name,
            "strategy": strategy,
            "rank": rank,
            "world_size": world_size,
        }
        self._experiment = experiment
        self._uri = tracking_uri
        self._artifact_location = artifact_location
        self._tags = dict(tags or {})
        self._made_ms = time.time_ns() // 1_000_000
        self._client: Any = None
        self.fill_in()

    def fill_in(
        self,
        run_name: Optional[str] = None,
        strategy: Optional[str] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
    ) -> None:
        """Set what the constructor did not, before open(); for callers that know the run."""
        known = {"run_name": run_name, "strategy": strategy, "rank": rank, "world_size": world_size}
        for name, value in known.items():
            if self._given[name] is None:
                self._given[name] = value
        self._rank, self._world_size = place(self._given["rank"], self._given["world_size"])
        self._run_name: Optional[str] = self._given["run_name"]
        self._strategy = self._given["strategy"] or ("non-distributed" if self._world_size == 1 else "distributed")
        self._owns_parent = self.parent_run_id is None and self._rank == 0

    def open(self) -> None:
        """Import MLflow. Rank 0 creates the store and its runs now; other ranks create runs in their first call."""
        self._connect()
        if self._owns_parent or self.parent_run_id is not None:
            self._begin()

    def log_points(self, points: Sequence[Point]) -> None:
        """Send a batch."""
        from mlflow.entities import Metric

        metrics = [
            Metric(name, float(value), point.unix_ns // 1_000_000, int(point.step))
            for point in points
            for name, value in point.metrics.items()
        ]
        run_id = self._begin()
        for i in range(0, len(metrics), METRICS_IN_A_BATCH):
            with self._store():
                self._client.log_batch(run_id, metrics=metrics[i : i + METRICS_IN_A_BATCH])

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Send the numbers of one step."""
        self.log_points([Point(time.time_ns(), step, metrics)])

    def log_params(self, params: Mapping[str, object]) -> None:
        """Send the settings of the run."""
        from mlflow.entities import Param

        run_id = self._begin()  # which logs the identifying params
        given = [Param(name, str(value)) for name, value in params.items() if name not in _KNOWN_BY]
        self._send_params(run_id, given)

    def _send_params(self, run_id: str, given: Sequence[Any]) -> None:
        for i in range(0, len(given), PARAMS_IN_A_BATCH):
            with self._store():
                self._client.log_batch(run_id, params=given[i : i + PARAMS_IN_A_BATCH])

    def log_artifact(self, path: Path, name: Optional[str] = None) -> None:
        """Send a file, or a folder with its contents."""
        run_id = self._begin()
        send = self._client.log_artifacts if os.path.isdir(path) else self._client.log_artifact
        send(run_id, os.fspath(path), name)

    def close(self) -> None:
        """Mark this worker's run as finished, and on rank 0 the training run."""
        if self.run_id is not None:
            with self._store():
                self._client.set_terminated(self.run_id)
                if self._owns_parent:
                    self._client.set_terminated(self.parent_run_id)
            self.run_id = None

    # ---- the runs ----

    def _begin(self) -> str:
        """The worker's run, created by the first call."""
        if self.run_id is None:
            from mlflow.entities import Param

            self._connect()
            parent = self.parent_run_id or (self._begin_parent() if self._owns_parent else self._find_parent())
            tags = {**self._tags, **({"mlflow.parentRunId": parent} if parent else {})}
            name = f"worker_{self._rank}" + (" (main)" if self._rank == 0 else "")
            experiment = self._client.get_run(parent).info.experiment_id if parent else self._experiment_id()
            with self._store():
                run_id: str = self._client.create_run(experiment, run_name=name, tags=tags).info.run_id
            self.parent_run_id, self.run_id = parent, run_id
            values = (self._strategy, self._rank, self._world_size)
            self._send_params(run_id, [Param(name, str(value)) for name, value in zip(_KNOWN_BY, values)])
        return self.run_id

    def _begin_parent(self) -> str:
        with self._store():
            experiment = self._experiment_id()
            run = self._client.create_run(experiment, run_name=self._run_name, tags={JOB_TAG: self._job()})
        run_id: str = run.info.run_id
        return run_id

    def _find_parent(self) -> Optional[str]:
        """The training run, which rank 0 has begun or soon will."""
        deadline = time.monotonic() + FIND_S
        while time.monotonic() < deadline:
            found = self._newest_of_this_job()
            if found is not None:
                return found
            time.sleep(0.2)
        tell(
            f"rank {self._rank} found no training run of rank 0 in MLflow within {FIND_S:g} s, so its run is "
            "separate: give all ranks the same run_name and store, or parent_run_id="
        )
        return None

    def _newest_of_this_job(self) -> Optional[str]:
        with self._store():
            experiment = self._client.get_experiment_by_name(self._experiment)
            if experiment is None:
                return None
            wanted, newest = f"tags.`{JOB_TAG}` = '{self._job()}'", ["attributes.start_time DESC"]
            found = self._client.search_runs([experiment.experiment_id], wanted, max_results=1, order_by=newest)
        # A run that has already ended is of an earlier job in the same environment.
        is_now = bool(found) and (found[0].info.end_time or self._made_ms) >= self._made_ms
        return found[0].info.run_id if is_now else None

    def _job(self) -> str:
        """An id that all ranks of a job share, and no others."""
        words = (self._run_name, _monitor_run.run_id(self._world_size), os.environ.get("TORCHELASTIC_RESTART_COUNT"))
        return hashlib.sha256("\0".join(word or "" for word in words).encode()).hexdigest()[:32]

    def _experiment_id(self) -> str:
        experiment = self._client.get_experiment_by_name(self._experiment)
        if experiment is None:
            made: str = self._client.create_experiment(self._experiment, artifact_location=self._artifact_location)
            return made
        found: str = experiment.experiment_id
        return found

    # ---- the store ----

    def _connect(self) -> None:
        if self._client is not None:
            return
        import mlflow

        self._uri = self._uri or mlflow.get_tracking_uri()
        _need_database(self._uri)
        if _folder_of(self._uri) is not None and not self._uri.startswith("sqlite:"):
            # Newer versions refuse a file store without this; the user has chosen one.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        with self._store():
            self._client = mlflow.MlflowClient(self._uri)  # creates the tables of a database

    @contextlib.contextmanager
    def _store(self) -> Iterator[None]:
        """Lock a store of files or SQLite: neither supports concurrent creation or migration."""
        folder = _folder_of(self._uri or "")
        if folder is None:
            yield
            return
        os.makedirs(folder, exist_ok=True)
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):  # this file system has no locks
                fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def _need_database(uri: str) -> None:
    """Report the packages that a database store needs besides mlflow-skinny."""
    if uri.split(":")[0].split("+")[0] in _DATABASES:
        for package in ("sqlalchemy", "alembic"):
            need(f"marey.loggers.MLflowLogger with {uri.split(':')[0]}", package)


def _folder_of(uri: str) -> Optional[str]:
    """The folder of a file or SQLite store; None for a server."""
    if uri.startswith("sqlite:///"):
        return os.path.dirname(os.path.abspath(uri[len("sqlite:///") :]))
    if uri.startswith("file:"):
        from urllib.parse import urlparse
        from urllib.request import url2pathname

        return os.path.abspath(url2pathname(urlparse(uri).path))
    return None if ":" in uri else os.path.abspath(uri)
