"""Samples of a real job: torchrun with two ranks, each with a DataLoader of two workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from page_decoder import Page, needs_viewer

pytest.importorskip("torch")

TRAIN = """
import time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, i):
        return load_one()

def load_one():
    sum(range(100000))
    return torch.randn(32)

def forward(model, batch):
    end = time.perf_counter() + 0.03
    while time.perf_counter() < end:
        loss = model(batch).square().mean()
    return loss

def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    model = DistributedDataParallel(torch.nn.Linear(32, 32))
    for batch in DataLoader(Numbers(), batch_size=8, num_workers=2, multiprocessing_context="fork"):
        forward(model, batch).backward()
    dist.destroy_process_group()

main()  # top level
"""
MAIN = 1 + next(i for i, line in enumerate(TRAIN.splitlines()) if "# top level" in line)
LAUNCH = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py")


def is_launcher(text: str) -> bool:
    return "torch/distributed/elastic" in text or "torch/distributed/run.py" in text or "torch.distributed.run" in text


def record_job(program: Path, folder: Path, name: str) -> None:
    command = [str(program), "run", "-q", "--sample", "-o", name, "--", sys.executable, *LAUNCH]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def jobs(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a.marey, the recording of a job."""
    folder = tmp_path_factory.mktemp("torchrun")
    (folder / "train.py").write_text(TRAIN)
    record_job(program, folder, "a.marey")
    return folder


def samples(marey: Any, jobs: Path, *options: str) -> dict[str, Any]:
    done = marey("report", jobs / "a.marey", "--samples", "--json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_report_is_of_the_ranks_and_their_workers(marey, jobs):
    found = samples(marey, jobs)
    assert not [row for row in found["processes"] if is_launcher(row["command"])]
    assert not [row for row in found["functions"] if is_launcher(row["file"]) or "<frozen importlib" in row["file"]]
    names = {row["function"] for row in found["functions"]}
    assert {"forward", "load_one"} <= names
    # A worker that hardly ran on a busy machine is idle, too.
    shares = [float(note.split()[3]) for note in found["notes"] if "garbage collection" in note]
    assert all(share <= 100 for share in shares)  # of what is shown, without the launcher
    assert any(" launcher" in note and "torch.distributed.run" in note for note in found["notes"])
    assert [row for row in samples(marey, jobs, "--idle")["functions"] if is_launcher(row["file"])]


def test_top_level_code_has_its_line_and_workers_are_not_below_main(marey, jobs):
    stacks = [row["stack"].split(";") for row in samples(marey, jobs)["stacks"]]
    of_ranks = [stack for stack in stacks if any(frame.startswith("forward (") for frame in stack)]
    of_workers = [stack for stack in stacks if any(frame.startswith("load_one (") for frame in stack)]
    assert of_ranks and of_workers
    assert all(any(frame.startswith("main (") for frame in stack) for stack in of_ranks)
    assert not any(frame.startswith("main (") for stack in of_workers for frame in stack)
    collapsed = marey("export", jobs / "a.marey", "--to", "collapsed", "--samples", "-o", "-").stdout
    assert f"train.py:{MAIN});main" in collapsed
    assert not [line for line in collapsed.splitlines() if "load_one" in line and ";main;" in line]
    assert "elastic" not in collapsed and "_find_and_load" not in collapsed


@pytest.mark.slow
def test_two_jobs_are_compared_by_their_work(marey, jobs, program):
    record_job(program, jobs, "b.marey")
    done = marey("compare", jobs / "a.marey", jobs / "b.marey", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    names = [row["name"] for row in found["functions"]]
    assert {"forward (train.py)", "load_one (train.py)"} <= set(names)
    launcher = ("_invoke_run (", "_poll (", "<frozen importlib")
    assert not [name for name in names if any(part in name for part in launcher)]
    assert any("idle processes" in note for note in found["warnings"])


@needs_viewer
def test_the_page_draws_no_launcher(marey, jobs, tmp_path):
    assert marey("report", jobs / "a.marey", "--html", "page.html").returncode == 0
    functions = Page(tmp_path / "page.html").index["sample_calls"][0]["functions"]
    drawn = [(name, file, line) for name, _qualified, file, line, *_ in functions]
    assert ("<module>", MAIN) in {(name, line) for name, file, line in drawn if file.endswith("train.py")}
    assert not [file for _, file, _ in drawn if is_launcher(file) or "<frozen importlib" in file]
