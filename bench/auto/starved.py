"""A loop with a slow collate function in Python in the main process; on the GPU if there is one."""

import sys

import torch
from alternate import end, step
from torch.utils.data import DataLoader


def augment(row: list) -> list:
    return [x * 0.5 + i % 7 for i, x in enumerate(row)]


def collate(rows: list) -> torch.Tensor:
    return torch.tensor([augment(row) for row in rows])


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = [[float(i + j) for j in range(256)] for i in range(16 * int(sys.argv[1]))]
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in DataLoader(rows, batch_size=16, collate_fn=collate):
        step()
        loss = model(batch.to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
end()
