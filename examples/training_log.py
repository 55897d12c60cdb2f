"""Training metrics in files and trackers, without making the training wait.

    python examples/training_log.py [FOLDER]          CSV, and TensorBoard and MLflow if installed

A logger is any object with these methods; if one fails, there is a warning, and the others continue.
"""

import importlib.util
import sys
import tempfile
from pathlib import Path

from marey.loggers import Batched, CSVLogger, Logger, MLflowLogger, TensorBoardLogger, by_name


def loggers_for(folder: Path) -> list[Logger]:
    found: list[Logger] = [CSVLogger(folder / "csv")]
    if importlib.util.find_spec("tensorboard") is not None:
        found.append(TensorBoardLogger(folder / "tensorboard"))
    if importlib.util.find_spec("mlflow") is not None:
        found.append(MLflowLogger("demo", tracking_uri=str(folder / "mlruns")))
    return found


def main(folder: Path) -> None:
    with Batched(loggers_for(folder)) as log:
        log.log_params({"lr": 1e-3, "batch_size": 32})
        for epoch in range(5):
            log.log_metrics({"epoch_time_s": 1.5 - 0.1 * epoch, "loss": 1 / (epoch + 1)}, step=epoch)
    for path in sorted((folder / "csv").iterdir()):
        print(f"{path.name}:\n{path.read_text()}")
    print("by name:", [type(logger).__name__ for logger in by_name("csv", folder)])


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
