"""Where does a Lightning training spend its time?

    python examples/lightning_loop.py [RUN.marey [--actions]]

One callback records the phases of each step as ranges; the loop is unchanged. Two workers load the data, and the report
shows how busy they were. With `--actions`, Lightning's actions are ranges as well.
"""

import logging
import sys
import tempfile
import time
import warnings
from pathlib import Path

import lightning.pytorch as pl
import torch

import marey
from marey.lightning import Callback, Profiler

SAMPLES, BATCH = 64, 8


class Pictures(torch.utils.data.Dataset):
    """Images that take a while to decode."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        with marey.range("decode"):
            time.sleep(0.001)
        return torch.full((64,), i / SAMPLES), torch.tensor(i % 2)


class Classifier(pl.LightningModule):
    """Two layers."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 2))

    def training_step(self, batch, batch_idx):
        return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else str(Path(tempfile.mkdtemp()) / "lightning.marey")
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=2,
        callbacks=[Callback(path)],
        profiler=Profiler() if "--actions" in sys.argv else None,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), torch.utils.data.DataLoader(Pictures(), batch_size=BATCH, num_workers=2))
    print(marey.load(path, data="data").report())


if __name__ == "__main__":
    main()
