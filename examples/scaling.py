"""Does a training scale? One rank and two, twice each, analysed by `marey scale`.

    python examples/scaling.py [FOLDER]
    marey scale FOLDER --html scaling.html

Each run trains the same small network with DistributedDataParallel and gloo, with the same number of samples per epoch
for any number of ranks: strong scaling. The ranks of a run record into one directory; runs with the same number of
ranks are repeats.
"""

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import marey
import marey.torch

FEATURES, BATCH, STEPS, EPOCHS = 64, 128, 6, 4


def train(rank: int, world: int, run: Path, store: Path) -> None:
    torch.set_num_threads(1)
    marey.set_rank(rank, world)
    marey.start(run)
    marey.torch.trace_distributed()
    dist.init_process_group("gloo", init_method=store.as_uri(), rank=rank, world_size=world)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.ReLU(), nn.Linear(FEATURES, 1)))
    marey.torch.trace_ddp(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mine = BATCH // world
    for number in range(EPOCHS):
        with marey.epoch(number):
            for _ in range(STEPS):
                with marey.iteration(samples=mine):
                    loss = model(torch.randn(mine, FEATURES)).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
    dist.destroy_process_group()
    marey.stop()


def measure(world: int, run: Path) -> None:
    """Start this many ranks, and wait for them."""
    store = run.with_suffix(".store")
    os.environ["MAREY_RUN_ID"] = run.stem  # these ranks are one run; torchrun and `marey run` set this, too
    fork = multiprocessing.get_context("fork")  # torch is only imported once, here
    ranks = [fork.Process(target=train, args=(rank, world, run, store)) for rank in range(world)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    store.unlink(missing_ok=True)
    if any(process.exitcode for process in ranks):
        raise SystemExit(f"a rank of {run} failed")


def main(folder: Path) -> None:
    runs = [(world, folder / f"{world}-ranks-{repeat}.marey") for repeat in (1, 2) for world in (1, 2)]
    for world, run in runs:
        measure(world, run)
    scaling = marey.scale(*(("ddp", run) for _, run in runs))
    print(scaling)
    print(f"\nmeasured: {[(row['workers'], row['runs'], row['kind']) for row in scaling.points]}")
    (folder / "speedup.svg").write_text(scaling.picture("speedup"), encoding="utf-8")
    scaling.to_html(folder / "scaling.html")
    print("wrote speedup.svg and scaling.html")


if __name__ == "__main__":
    if sys.argv[1:]:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
