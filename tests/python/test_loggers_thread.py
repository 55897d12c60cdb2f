"""The loggers' thread: what arrives, what happens when a logger fails or is stuck, forks, kills."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

import pytest

from marey.loggers import Batched, CSVLogger


class Noting:
    """A logger that stores its calls and their threads."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.threads: set[int] = set()

    def _note(self, what: str, value: Any) -> None:
        self.threads.add(threading.get_ident())
        self.calls.append((what, value))

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        self._note("metrics", (step, dict(metrics)))

    def log_params(self, params: Mapping[str, object]) -> None:
        self._note("params", dict(params))

    def log_artifact(self, path: Any, name: Optional[str] = None) -> None:
        self._note("artifact", (path, name))

    def close(self) -> None:
        self._note("close", None)

    @property
    def steps(self) -> list[int]:
        return [value[0] for what, value in self.calls if what == "metrics"]


class Opening(Noting):
    """A logger with log_points() and open()."""

    def open(self) -> None:
        self._note("open", None)

    def log_points(self, points: Any) -> None:
        self._note("points", points)


class Failing(Noting):
    """One whose disk is full."""

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        super().log_metrics(metrics, step)
        raise OSError("the disk is full")


class Stuck(Noting):
    """One that waits for a server which does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = threading.Event()

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        assert self.answer.wait(100)
        super().log_metrics(metrics, step)


def test_everything_arrives_in_order_by_another_thread() -> None:
    noting = Noting()
    with Batched([noting]) as log:
        log.log_params({"lr": 0.1})
        for step in range(100):
            log.log_metrics({"loss": 1.0 / (step + 1)}, step)
        log.log_artifact("a.txt", "folder")
    assert noting.calls[0] == ("params", {"lr": 0.1})
    assert noting.steps == list(range(100))
    assert ("artifact", ("a.txt", "folder")) in noting.calls
    assert noting.calls[-1] == ("close", None)
    assert len(noting.threads) == 1 and threading.get_ident() not in noting.threads
    assert log.dropped == 0


def test_points_come_in_one_piece_with_the_time_of_the_call() -> None:
    logger = Opening()
    log = Batched([logger], interval_s=1000)
    assert logger.calls == [("open", None)]
    metrics = {"x": 1.0}
    for step in range(5):
        log.log_metrics(metrics, step)
        metrics["x"] += 1  # what was handed over was copied
    assert log.flush()
    (_, (what, points)) = logger.calls
    assert what == "points"
    assert [(point.step, point.metrics["x"]) for point in points] == [(i, i + 1.0) for i in range(5)]
    times = [point.unix_ns for point in points]
    assert times == sorted(times) and len(set(times)) == 5
    assert log.flush() and len(logger.calls) == 2
    log.close()


def test_a_logger_that_fails_gives_one_warning_and_the_others_go_on() -> None:
    failing, noting = Failing(), Noting()
    with pytest.warns(RuntimeWarning) as told:
        with Batched([failing, noting]) as log:
            for step in range(10):
                log.log_metrics({"x": 1.0}, step)
                assert log.flush()
            assert log.loggers == (noting,)
    (warning,) = told
    assert str(warning.message) == (
        "Failing failed and is not used again; other loggers continue: OSError: the disk is full"
    )
    assert failing.steps == [0] and noting.steps == list(range(10))


def test_a_logger_that_cannot_be_opened_is_one_that_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="CSVLogger failed and is not used again.*NotADirectoryError"):
        log = Batched([CSVLogger(tmp_path / "file" / "logs")])
    assert log.loggers == ()
    log.log_metrics({"x": 1.0}, 0)
    log.close()


def test_warnings_that_are_errors_stop_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    noting = Noting()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Batched([Failing(), noting]) as log:
            log.log_metrics({"x": 1.0}, 0)
            log.log_metrics({"x": 1.0}, 1)
    assert noting.steps == [0, 1]
    assert "marey: Failing failed" in capfd.readouterr().err


def test_a_logger_that_is_stuck_costs_the_oldest_and_the_count_is_reported_once() -> None:
    stuck = Stuck()
    log = Batched([stuck], limit=10)
    for step in range(100):
        log.log_metrics({"x": 1.0}, step)
    stuck.answer.set()
    with pytest.warns(RuntimeWarning) as told:
        log.close()
    (warning,) = told
    assert str(warning.message).startswith("90 calls for the loggers were dropped, because")
    assert log.dropped == 90
    assert stuck.steps == list(range(90, 100))


def test_close_waits_for_a_stuck_logger_no_longer_than_its_patience() -> None:
    stuck = Stuck()
    log = Batched([stuck], patience_s=0.1)
    log.log_metrics({"x": 1.0}, 0)
    with pytest.warns(RuntimeWarning, match="did not finish within 0.1 s: unwritten metrics are lost"):
        log.close()
    stuck.answer.set()


def test_after_the_end_calls_do_nothing() -> None:
    noting = Noting()
    log = Batched([noting])
    log.close()
    log.log_metrics({"x": 1.0}, 0)
    log.log_params({"x": 1})
    log.log_artifact("x")
    assert log.flush()
    log.close()
    assert noting.calls == [("close", None)]


def test_a_limit_of_none_is_reported() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        Batched([], limit=0)


def test_a_forked_child_neither_writes_nor_waits(tmp_path: Path) -> None:
    log = Batched([CSVLogger(tmp_path)], interval_s=1000)
    log.log_metrics({"parent": 1.0}, 0)
    child = os.fork()
    if child == 0:
        log.log_metrics({"child": 1.0}, 0)
        os._exit(0 if log.flush() and log.close() is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    log.log_metrics({"parent": 2.0}, 1)
    log.close()
    assert [(row["name"], row["value"]) for row in rows_of(tmp_path)] == [("parent", "1"), ("parent", "2")]


def rows_of(folder: Path) -> list[dict[str, str]]:
    with open(folder / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


def run(script: str, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MLFLOW_DISABLE_TELEMETRY": "true"}
    command = [sys.executable, "-c", script, str(folder)]
    return subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True)


FORGETS_TO_CLOSE = """
import sys
from marey.loggers import Batched, CSVLogger
log = Batched([CSVLogger(sys.argv[1])], interval_s=1000)
log.log_metrics({"x": 1.0}, 0)
"""


def test_the_end_of_the_program_hands_over_the_rest(tmp_path: Path) -> None:
    assert run(FORGETS_TO_CLOSE, tmp_path).wait(100) == 0
    assert [row["value"] for row in rows_of(tmp_path)] == ["1"]


IS_KILLED = """
import sys, time
from marey.loggers import Batched, CSVLogger
log = Batched([CSVLogger(sys.argv[1])], interval_s=0.001)
for step in range(1000):
    log.log_metrics({"x": 1.0}, step)
log.flush()
print("flushed", flush=True)
while True:
    log.log_metrics({"x": 1.0}, step)
    step += 1
"""


def test_a_kill_leaves_what_was_flushed_in_whole_lines(tmp_path: Path) -> None:
    with run(IS_KILLED, tmp_path) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "flushed\n"
        program.send_signal(signal.SIGKILL)
    rows = rows_of(tmp_path)
    assert [int(row["step"]) for row in rows[:1000]] == list(range(1000))
    assert all(row["name"] == "x" and float(row["value"]) == 1.0 for row in rows)


MLFLOW_AT_EXIT = """
import sys
from pathlib import Path
from marey.loggers import Batched, MLflowLogger
folder = Path(sys.argv[1])
log = Batched([MLflowLogger(run_name="r", tracking_uri=str(folder / "store"))], interval_s=1000)
log.log_metrics({"x": 1.0}, 0)
(folder / "some").mkdir()
(folder / "some" / "file.txt").write_text("hello")
log.log_artifact(folder / "some")
"""


@pytest.mark.needs_mlflow
def test_mlflow_takes_the_rest_at_the_end_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(MLFLOW_AT_EXIT, tmp_path).wait(100) == 0
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = mlflow.MlflowClient(str(tmp_path / "store"))
    runs = client.search_runs([client.get_experiment_by_name("marey").experiment_id])
    (worker,) = [found for found in runs if found.info.run_name == "worker_0 (main)"]
    assert worker.data.metrics == {"x": 1.0}
    assert worker.info.status == "FINISHED"
    assert [found.path for found in client.list_artifacts(worker.info.run_id)] == ["file.txt"]
