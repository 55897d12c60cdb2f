"""A Lightning module that classifies signals; the dataset computes their spectra."""

from __future__ import annotations

import logging
import time
import warnings

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

try:
    import lightning as pl
except ImportError:
    import pytorch_lightning as pl

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
SAMPLES, STEPS, BATCH, HIDDEN = 1536, 70, 16, 2304


class Spectra(Dataset):
    def __init__(self, n: int) -> None:
        self.n = n
        self.times = np.arange(SAMPLES) / SAMPLES
        turns = np.outer(np.arange(SAMPLES // 2), np.arange(SAMPLES)) / SAMPLES
        self.basis = np.exp(-2j * np.pi * turns)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        label = i % 10
        signal = np.sin(2 * np.pi * (20 + 10 * label) * self.times) + 0.1 * np.cos(i + np.arange(SAMPLES))
        spectrum = self.basis @ signal  # planted: input-bound
        return torch.from_numpy(np.log1p(np.abs(spectrum)).astype(np.float32)), label


class SignalClassifier(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(SAMPLES // 2, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10)
        )

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)

    def on_train_start(self) -> None:
        self.start = time.perf_counter()

    def on_train_end(self) -> None:
        print(f"{self.global_step} steps, {1e3 * (time.perf_counter() - self.start) / self.global_step:.3f} ms/step")


def main() -> None:
    pl.seed_everything(0)
    loader = DataLoader(Spectra(STEPS * BATCH), batch_size=BATCH)
    trainer = pl.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(SignalClassifier(), loader)


if __name__ == "__main__":
    main()
