"""A Lightning module with training and validation."""

import argparse
import logging
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

try:
    import lightning as pl
except ImportError:
    import pytorch_lightning as pl

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=768)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--manual", action="store_true", help="manual optimization")
args = parser.parse_args()


class Rows(Dataset):
    """Whole batches at once."""

    def __init__(self, x):
        self.x, self.y = x, x.mean(dim=1)

    def __len__(self):
        return len(self.x)

    def __getitems__(self, indices):
        return [self.x[indices], self.y[indices]]


class Regressor(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = not args.manual
        self.net = nn.Sequential(
            nn.Linear(128, args.width),
            nn.GELU(),
            nn.Linear(args.width, args.width),
            nn.GELU(),
            nn.Linear(args.width, 1),
        )

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x).squeeze(1), y)
        if args.manual:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


torch.manual_seed(0)
x = torch.randn(args.steps * args.batch, 128)
trainer = pl.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
)  # fmt: skip
trainer.fit(Regressor(), DataLoader(Rows(x), batch_size=args.batch, collate_fn=list))
