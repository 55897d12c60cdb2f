"""Training with DataLoader workers: workers.py STEPS WORKERS."""

import sys

import torch
from alternate import end, step
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.tensor([float(i + j) for j in range(64)])


def main() -> None:
    n_steps, n_workers = int(sys.argv[1]), int(sys.argv[2])
    model = torch.nn.Sequential(torch.nn.Linear(64, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in DataLoader(Rows(64 * n_steps), batch_size=64, num_workers=n_workers):
        step()
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
    end()
