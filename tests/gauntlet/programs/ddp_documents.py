"""Train a tagger of documents on two ranks. Documents are sorted by length and divided among the ranks."""

import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

DOCUMENTS, TOKENS, WIDTH, TAGS, STEPS = 600, 500, 96, 12, 250


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * WIDTH, TAGS)

    def forward(self, tokens):
        hidden, _ = self.lstm(self.embedding(tokens))  # planted: straggler
        return self.head(hidden)


def documents_of(rank):
    """Lengths grow with the number of the document."""
    lengths = [20 + i // 5 for i in range(DOCUMENTS)]
    chosen = lengths[rank * DOCUMENTS // 2 : (rank + 1) * DOCUMENTS // 2]
    return [torch.randint(TOKENS, (length,)) for length in chosen]


def train(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    documents = documents_of(rank)
    model = nn.parallel.DistributedDataParallel(Tagger())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(rank)
    start = time.perf_counter()
    for _ in range(STEPS):
        chosen = torch.randint(len(documents), (8,), generator=generator).tolist()
        tokens = nn.utils.rnn.pad_sequence([documents[i] for i in chosen], batch_first=True)
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten() % TAGS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"loss {loss.item():.4f}, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, (20_000 + os.getpid() % 20_000,), nprocs=2)
