"""MLflow stores like itwinai's, written by direct calls to MLflow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"

AVERAGES = (
    "name,node_id,self_cuda_time_total,cuda_time_total,cuda_time_total_str,calls,strategy,num_gpus,global_rank\n"
    "aten::mm,0,{compute},{compute},,10,{strategy},{workers},{rank}\n"
    "nccl:all_reduce,0,{communication},{communication},,5,{strategy},{workers},{rank}\n"
    "Memcpy HtoD,0,{other},{other},,5,{strategy},{workers},{rank}\n"
    "ProfilerStep*,0,999,999,,5,{strategy},{workers},{rank}\n"
)
BEGIN_MS = 1_700_000_000_000


class Store:
    """An experiment of a store, and its content."""

    def __init__(self, uri: str, experiment: str, folder: Path) -> None:
        """Create the store if necessary."""
        import mlflow

        self.uri, self.folder = uri, folder
        self.client: Any = mlflow.MlflowClient(uri)
        self.experiment = self.client.create_experiment(experiment, artifact_location=(folder / "artifacts").as_uri())

    def run(self, name: str, parent: str | None = None, params: dict[str, object] | None = None) -> str:
        """Open a run; its id."""
        tags = {"mlflow.parentRunId": parent} if parent else {}
        run_id: str = self.client.create_run(self.experiment, run_name=name, tags=tags).info.run_id
        for key, value in (params or {}).items():
            self.client.log_param(run_id, key, value)
        return run_id

    def metrics(
        self, run_id: str, name: str, values: list[float], first_ms: int = BEGIN_MS, every_ms: int = 1000
    ) -> None:
        """Log numbers, one after the other."""
        from mlflow.entities import Metric

        points = [Metric(name, value, first_ms + i * every_ms, i) for i, value in enumerate(values)]
        self.client.log_batch(run_id, metrics=points)

    def workers(
        self,
        parent: str,
        strategy: str,
        n: int,
        epochs: list[float],
        watts: float = 0,
        fractions: tuple[int, int, int] = (),
    ) -> None:
        """Log the data of the workers of one run: times on rank 0, power on each."""
        for rank in range(n):
            about = {"strategy": strategy, "global_rank": rank, "global_world_size": n, "lr": 0.001}
            run_id = self.run(f"worker_{rank}{' (main)' if rank == 0 else ''}", parent, about)
            if rank == 0:
                self.metrics(run_id, "epoch_time_s", epochs)
                self.metrics(run_id, "train_loss", [1.0 / (i + 1) for i in range(len(epochs))])
            if watts:
                self.client.log_param(run_id, "probing_interval", 1)
                self.metrics(run_id, "gpu_power_W", [watts] * 10)
                self.metrics(run_id, "gpu_utilization_percent", [80.0] * 10)
            if fractions:
                self._averages(run_id, strategy, n, rank, fractions)

    def _averages(self, run_id: str, strategy: str, n: int, rank: int, fractions: tuple[int, int, int]) -> None:
        compute, communication, other = fractions
        file = self.folder / "torch_profiling_averages.csv"
        file.write_text(
            AVERAGES.format(
                compute=compute, communication=communication, other=other, strategy=strategy, workers=n, rank=rank
            )
        )
        self.client.log_artifact(run_id, str(file), "torch_profiling_averages")
