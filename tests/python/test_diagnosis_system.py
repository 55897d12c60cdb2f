"""Findings about the machine: waits for files, threads without CPU cores."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MAREY = Path(os.environ["MAREY_BUILD"], "cli", "marey")

SAVE = """
import os, sys, time

def save(rows, path):
    with open(path, "r+b") as file:
        for row in rows:
            file.write(row)
            file.flush()
            if sys.argv[1] == "each":
                os.fsync(file.fileno())  # waits

def main():
    open(sys.argv[2], "ab").close()
    until = time.monotonic() + 4
    while time.monotonic() < until:
        sum(i * i for i in range(3000))
        save([os.urandom(4096)] * 20, sys.argv[2])

main()
"""
THREADS = """
import sys, torch
torch.set_num_threads(int(sys.argv[1]))
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU()) for _ in range(8)])
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
x = torch.randn(512, 256)
for step in range(120):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""


def findings(program: str, folder: Path, *words: object, before: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(program)
    command = [*before, sys.executable, "train.py", *map(str, words)]
    subprocess.run([MAREY, "run", "-o", "x.marey", *command], cwd=folder, capture_output=True, timeout=300, check=True)
    report = subprocess.run([MAREY, "report", "x.marey", "--json"], cwd=folder, capture_output=True, check=True).stdout
    return {finding["id"]: finding for finding in json.loads(report)["diagnosis"]["findings"]}


def test_waits_for_a_disk(tmp_path):
    kind = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=False).stdout
    if kind == "tmpfs\n":
        pytest.skip("the temporary folder is in memory")
    found = findings(SAVE, tmp_path, "each", tmp_path / "rows")
    where = found["io-bound"]["where"][0]
    assert (where["function"], Path(where["file"]).name) == ("save", "train.py")
    assert where["line"] == next(i for i, line in enumerate(SAVE.splitlines(), 1) if "# waits" in line)
    assert found["io-bound"]["gain"]["at_most"] > 1.05
    assert "sync to disk" in found["io-bound"]["claim"]
    assert "io-bound" not in findings(SAVE, tmp_path / "once", "once", tmp_path / "rows")


@pytest.mark.needs_torch
@pytest.mark.skipif(shutil.which("taskset") is None, reason="no taskset")
def test_more_threads_than_cores(tmp_path):
    core = str(min(os.sched_getaffinity(0)))
    finding = findings(THREADS, tmp_path / "many", 8, before=("taskset", "-c", core))["cpu-oversubscribed"]
    assert (finding["kind"], finding["gain"]) == ("risk", None)
    assert "on 1 CPU core (" in finding["claim"]
    found = findings(THREADS, tmp_path / "one", 1, before=("taskset", "-c", core))
    assert "cpu-oversubscribed" not in found


WORKERS = """
import sys, time
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 10**6

    def __getitem__(self, i):
        return float(sum(range(3000)))

until = time.monotonic() + 4
for batch in DataLoader(Rows(), batch_size=32, num_workers=6):
    if time.monotonic() > until:
        break
"""


@pytest.mark.needs_torch
def test_workers_share_one_rate(tmp_path):
    findings(WORKERS, tmp_path)
    command = [MAREY, "report", "x.marey", "--samples", "--json", "--idle"]
    report = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
    processes = json.loads(report)["processes"]
    workers = [row["samples"] for row in processes if row["worker"] is not None]
    trainer = next(row["samples"] for row in processes if row["worker"] is None and "train.py" in row["command"])
    assert len(workers) == 6
    assert min(workers) > 0
    assert sum(workers) < 3 * trainer
