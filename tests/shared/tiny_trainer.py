"""A fast Hugging Face Trainer: a perceptron, some numbers, no hub."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import Trainer, TrainingArguments


class Perceptron(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(8, 16)
        self.out = torch.nn.Linear(16, 1)

    def forward(self, x: Any, labels: Any = None) -> dict[str, Any]:
        logits = self.out(torch.relu(self.hidden(x)))
        return {"loss": torch.nn.functional.mse_loss(logits, labels), "logits": logits}


class Numbers(torch.utils.data.Dataset):  # type: ignore[misc]
    def __init__(self, length: int = 400) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> dict[str, Any]:
        x = torch.arange(i, i + 8, dtype=torch.float32) / self.length
        return {"x": x, "labels": x.sum(0, keepdim=True)}


def make_trainer(folder: Path, *callbacks: Any, steps: int = 12, length: int = 400, **settings: Any) -> Trainer:
    """Create one for the CPU that by default saves, logs and evaluates nothing."""
    torch.manual_seed(0)
    quiet = {"save_strategy": "no", "logging_strategy": "no", "report_to": [], "disable_tqdm": True, "use_cpu": True}
    arguments = TrainingArguments(
        output_dir=str(folder / "results"), max_steps=steps, per_device_train_batch_size=4, **{**quiet, **settings}
    )
    return Trainer(
        Perceptron(), arguments, train_dataset=Numbers(length), eval_dataset=Numbers(8), callbacks=[*callbacks]
    )
