"""The phases of an unmodified loop with accelerate.

    python examples/accelerate_loop.py [RUN.marey]

Batches, forward, backward and optimizer steps are recorded for objects prepared within the block.
"""

import sys
import tempfile
from pathlib import Path

import torch
from accelerate import Accelerator

import marey
import marey.accelerate


def main(path: str) -> None:
    accelerator = Accelerator(cpu=True)
    model = torch.nn.Linear(64, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.randn(256, 64), torch.randint(2, (256,)))
    loader = torch.utils.data.DataLoader(data, batch_size=32)
    with marey.accelerate.trace(accelerator, path):
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for _ in range(2):
            with marey.epoch():
                for inputs, labels in loader:
                    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
                    accelerator.backward(loss)
                    optimizer.step()
                    optimizer.zero_grad()
    print(marey.load(path).iterations)


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(str(Path(folder) / "accelerate.marey"))
