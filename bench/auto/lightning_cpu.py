"""Lightning on the CPU."""

import logging
import sys
import warnings

import lightning
import torch
from alternate import end, step
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024))

    def on_train_batch_start(self, *_: object) -> None:
        step()

    def training_step(self, batch: list, _: int) -> torch.Tensor:
        return self.layers(batch[0]).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters())


rows = TensorDataset(torch.randn(64 * int(sys.argv[1]), 64))
lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
).fit(Model(), DataLoader(rows, batch_size=64))  # fmt: skip
end()
