"""Loggers for training metrics: CSV, MLflow, TensorBoard, or your own.

    from marey.loggers import Batched, CSVLogger, MLflowLogger

    with Batched([CSVLogger("logs"), MLflowLogger("my experiment")]) as log:
        log.log_params({"lr": 1e-3})
        for epoch in range(10):
            ...
            log.log_metrics({"epoch_time_s": seconds}, step=epoch)

marey.TrainingMonitor takes the same loggers, or their names: "csv", "mlflow", "tensorboard".
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Optional, Union

from marey._batched import Batched
from marey._logger_csv import CSVLogger
from marey._logger_mlflow import MLflowLogger
from marey._logger_tensorboard import TensorBoardLogger
from marey._logging import Logger, Path, Point

__all__ = ["Batched", "CSVLogger", "Logger", "MLflowLogger", "Point", "TensorBoardLogger", "by_name"]

NAMES = ("csv", "mlflow", "tensorboard")


def by_name(
    wanted: Union[str, Logger, Iterable[Union[str, Logger]]],
    folder: Path = "marey_logs",
    *,
    run_name: Optional[str] = None,
    strategy: Optional[str] = None,
    rank: Optional[int] = None,
    world_size: Optional[int] = None,
) -> list[Logger]:
    """Return loggers for names ("csv", "mlflow", "tensorboard", also "csv,mlflow"); loggers are kept.

    A logger with a method fill_in() receives missing settings: run_name, strategy, rank, world_size. Files go below
    `folder`; MLflow uses the store set by MLFLOW_TRACKING_URI or mlflow.set_tracking_uri().
    """
    if isinstance(wanted, str):
        wanted = [name.strip() for name in wanted.split(",") if name.strip()]
    elif not isinstance(wanted, Iterable):
        wanted = [wanted]
    made: list[Logger] = []
    for one in wanted:
        if not isinstance(one, str):
            fill_in = getattr(one, "fill_in", None)
            if fill_in is not None:
                fill_in(run_name=run_name, strategy=strategy, rank=rank, world_size=world_size)
            made.append(one)
        elif one == "csv":
            made.append(CSVLogger(folder, rank=rank, world_size=world_size))
        elif one == "tensorboard":
            made.append(TensorBoardLogger(os.path.join(folder, "tensorboard"), rank=rank, world_size=world_size))
        elif one == "mlflow":
            made.append(MLflowLogger(run_name=run_name, strategy=strategy, rank=rank, world_size=world_size))
        else:
            raise ValueError(f"no logger is called {one!r}; there are {', '.join(NAMES)}, or give an object")
    return made
