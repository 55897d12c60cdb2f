"""input-bound with several loaders, and with workers that are busy or idle: which loader counts, and what to change."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from test_diagnosis import diagnose

pytestmark = pytest.mark.needs_torch

COMMON = """
import multiprocessing, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, n, work):
        self.n, self.work = n, work
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        return load(i, self.work)

def load(i, work):
    total = 0
    for k in range(work):
        total += k * i % 7
    return torch.full((3, 16), float(total % 5)), torch.ones(1)

def make(width=16):
    torch.manual_seed(0)
    layers = torch.nn.Flatten(), torch.nn.Linear(48, width), torch.nn.Linear(width, width), torch.nn.Linear(width, 1)
    model = torch.nn.Sequential(*layers)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)

def train(model, optimizer, loader):
    for x, y in loader:
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def run(folder: Path, program: str, *words: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]], str]:
    """The diagnosis of a program, its findings by id, and the output."""
    (folder / "train.py").write_text(COMMON + program)
    diagnosis, printed = diagnose(folder, folder / "train.py", *words)
    return diagnosis, {each["id"]: each for each in diagnosis["findings"]}, printed


LIBRARY = """
sys.path.insert(0, "site-packages")
import pictures

for epoch in range(2):
    train(*make(), DataLoader(pictures.Folder(), batch_size=8, num_workers=1))
"""


def test_workers_that_are_busy_in_a_library_are_not_fast_enough(tmp_path):
    package = tmp_path / "site-packages" / "pictures"
    package.mkdir(parents=True)
    folder = "class Folder(Rows):\n    def __init__(self): super().__init__(320, 50_000)\n"
    (package / "__init__.py").write_text(COMMON + folder)
    _, findings, printed = run(tmp_path, LIBRARY)
    found = findings["input-bound"]
    assert found["where"][0]["function"] == "load", printed
    assert "in the data-loader workers" in printed
    assert "fast enough" not in found["action"] and "make this function faster" in found["action"]
    assert found["share"] > 0.8


RESTARTS = """
persistent = {"persistent_workers": True} if "--fixed" in sys.argv else {}
loader = DataLoader(Rows(160, 100), batch_size=8, num_workers=2, **persistent)
model, optimizer = make()
for epoch in range(20):
    train(model, optimizer, loader)
"""


@pytest.mark.slow
def test_idle_workers_that_are_started_in_each_epoch(tmp_path):
    diagnosis, findings, printed = run(tmp_path, RESTARTS)
    found = findings["input-bound"]
    mean = re.search(r": (.*?)/step on average", diagnosis["verdict"])  # the median is that of a wait for no worker
    assert mean is not None and f"of {mean[1]})" in found["claim"], diagnosis["verdict"]
    assert found["action"].startswith("Set persistent_workers=True"), printed
    assert [cause["id"] for cause in found["because"]] == ["worker-restart"]
    assert "more workers" not in printed
    (tmp_path / "fixed").mkdir()
    _, _, printed = run(tmp_path / "fixed", RESTARTS, "--fixed")
    assert "Set persistent_workers=True:" not in printed and "each epoch starts" not in printed


MANY = """
def start():
    manager = multiprocessing.Manager()
    pool = multiprocessing.Pool(1)
    pool.starmap_async(load, [(1, 500_000)] * 1000, chunksize=1)
    return manager, pool

others = start()
model, optimizer = make()
for x, _ in DataLoader(Rows(64, 10), batch_size=64):  # for the mean
    x.mean()
loader = DataLoader(Rows(240, 50_000), batch_size=8, num_workers=1)
for epoch in range(2):
    train(model, optimizer, loader)
others[1].terminate()
"""


@pytest.mark.slow
def test_the_loader_of_the_training_counts_and_only_its_workers(tmp_path):
    _, findings, printed = run(tmp_path, MANY)
    assert findings["input-bound"]["where"][0]["function"] in ("load", "Rows.__getitem__"), printed
    assert "in the data-loader workers" in printed
    assert "num_workers=4" not in findings["input-bound"]["action"]


POOL = """
pool = multiprocessing.Pool(1)
pool.starmap_async(spin, [(500_000,)] * 1000, chunksize=1)
train(*make(), DataLoader(Rows(480, 10_000), batch_size=8))
pool.terminate()
"""


@pytest.mark.slow
def test_other_processes_are_not_workers_of_a_loader(tmp_path):
    spin = "def spin(n):\n    for k in range(n): n += k % 3\n"
    _, findings, printed = run(tmp_path, spin + POOL)
    found = findings["input-bound"]
    assert found["where"][0]["function"] == "load" and "num_workers=0" in printed, printed
    assert found["action"].startswith("Try num_workers=4")


VALIDATION = """
def collate(rows):
    return tuple(zip(*rows))

class Stacked:
    def __init__(self, loader):
        self.loader = loader
    def __iter__(self):
        return ((torch.stack(x), torch.stack(y)) for x, y in self.loader)

model, optimizer = make(1500)
loader = Stacked(DataLoader(Rows(320, 10), batch_size=16, collate_fn=collate))
held_out = DataLoader(Rows(40, 100_000), batch_size=10)
for epoch in range(6):
    model.train()
    train(model, optimizer, loader)
    model.eval()
    with torch.no_grad():
        for x, y in held_out:
            model(x).mean().item()
"""


def test_loading_for_a_validation_belongs_to_it(tmp_path):
    diagnosis, findings, printed = run(tmp_path, VALIDATION)
    assert "input-bound" not in findings, printed
    assert "evaluates" in printed
    steps = diagnosis["steps"]
    assert steps["samples_per_s"] == pytest.approx(16e9 / steps["mean_ns"], rel=0.01)
