"""Programs that once got a wrong finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_diagnosis import diagnose

import marey

ONE_EVALUATION = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(120):
    x = torch.randn(256, 256)
    opt.zero_grad()
    (model(x) - x).square().mean().backward()
    opt.step()
    if step == 60:
        model.eval()
        with torch.no_grad():
            for _ in range(300):
                model(torch.randn(256, 256))
        model.train()
"""

LOGARITHMS = """
import math
import torch

def log_loss(p, y):
    total = 0.0
    for row, want in zip(p.tolist(), y.tolist()):
        total -= math.log(max(row[want], 1e-9))
    return total

def safe_log(x):
    return [math.log(abs(v) + 1e-9) for v in x.flatten().tolist()]

model = torch.nn.Linear(256, 32)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(250):
    x, y = torch.randn(512, 256), torch.randint(0, 32, (512,))
    logits = model(x)
    opt.zero_grad()
    torch.nn.functional.cross_entropy(logits, y).backward()
    opt.step()
    log_loss(logits.softmax(1), y)
    safe_log(logits.detach()[:64])
"""

TWO_MODES = """
import torch

torch._dynamo.config.cache_size_limit = 256
blocks = [torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Dropout(0.1)) for _ in range(12)]
layers = torch.nn.Sequential(*blocks)
compiled = torch.compile(layers, backend="eager", dynamic=False)
opt = torch.optim.SGD(layers.parameters(), lr=0.01)

def train_step(n):
    opt.zero_grad()
    compiled(torch.randn(n, 32)).square().mean().backward()
    opt.step()

for step in range(160):
    if step == 80:
        layers.eval()
    train_step(16)
    if step == 120:
        layers.train()
"""

SAVES = """
import os
import torch

def save_outputs(outputs):
    with open("outputs.bin", "wb") as file:
        for row in outputs:
            file.write(row.numpy().tobytes())
            file.flush()
            os.fsync(file.fileno())

model = torch.nn.Linear(512, 512)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1, 301):
    opt.zero_grad()
    y = model(torch.randn(512, 512))
    y.square().mean().backward()
    opt.step()
    if step % 20 == 0:
        save_outputs(y.detach()[:60])
"""

# As on a GPU whose queue is full: launching is short, and each tenth step waits. Such a mark is recorded with CUDA.
RUNS_AHEAD = """
import json
import logging
import sys
import torch

class Meter:
    def __init__(self):
        self.logger = logging.getLogger("meter")
        self.logger.addHandler(logging.FileHandler("meter.log"))

    def log_step(self, step, values):
        self.logger.warning("%s", json.dumps(sorted(values)))

def read_loss(loss):
    for _ in range(400):
        loss = loss + torch.randn(256, 256).sum()
    return loss.item()

model = torch.nn.Linear(256, 256)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
meter = Meter()
sys.modules["marey._native"].mark("cuda.allocator", '{"device":0,"allocated":0,"allocated_peak":4096}')
for step in range(150):
    opt.zero_grad()
    loss = model(torch.randn(256, 256)).square().mean()
    loss.backward()
    opt.step()
    meter.log_step(step, torch.randn(3000).tolist())
    if step % 10 == 9:
        read_loss(loss.detach())
"""

IMPORTS = """
import time
import reader

def main():
    until = time.monotonic() + 2
    while time.monotonic() < until:
        sum(map(abs, range(100_000)))

main()
"""
READER = """
import os
with open("table.bin", "wb") as file:
    for _ in range(600):
        file.write(os.urandom(1 << 18))
        file.flush()
        os.fsync(file.fileno())
"""

WORKERS = """
import os
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 600

    def __getitem__(self, i):
        return torch.tensor([sum(j * j for j in range(3000 + k)) % 97 / 97 for k in range(64)])

if __name__ == "__main__":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    model = torch.nn.Linear(64, 64)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in DataLoader(Rows(), batch_size=8, num_workers=5):
        opt.zero_grad()
        (model(x) - x).square().mean().backward()
        opt.step()
"""


def ids(folder: Path, source: str) -> list[str]:
    program = folder / "program.py"
    program.write_text(source)
    diagnosis, _ = diagnose(folder, program)
    return [each["id"] for each in diagnosis["findings"]]


@pytest.mark.needs_torch
@pytest.mark.parametrize(
    ("source", "rules"),
    [
        (ONE_EVALUATION, {"slow-steps"}),  # once says nothing about the next steps
        (LOGARITHMS, {"logging-in-step"}),
        pytest.param(TWO_MODES, {"recompilation"}, marks=pytest.mark.slow),  # once for model.eval()
        pytest.param(RUNS_AHEAD, {"slow-steps", "logging-in-step"}, marks=pytest.mark.slow),
    ],
    ids=["one evaluation", "logarithms", "two modes", "runs ahead"],
)
def test_a_program_without_a_finding(tmp_path, source, rules):
    assert rules.isdisjoint(ids(tmp_path, source))


@pytest.mark.slow
@pytest.mark.needs_torch
def test_a_guard_on_the_mode_is_not_fixed_by_dynamic_sizes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        TWO_MODES.replace("    if step == 80:\n", "    blocks[step % 12].train(step * step % 7 < 3)\n    if 0:\n")
    )
    diagnosis, printed = diagnose(tmp_path, program)
    (finding,) = [each for each in diagnosis["findings"] if each["id"] == "recompilation"]
    assert "eval()" in finding["action"] and "dynamic" not in finding["action"], printed


@pytest.mark.slow
@pytest.mark.needs_torch
def test_waits_for_files_in_slow_steps_are_one_finding(tmp_path):
    assert ids(tmp_path, SAVES) == ["slow-steps"]


def test_imports_are_not_io_bound(tmp_path):
    (tmp_path / "reader.py").write_text(READER)
    assert "io-bound" not in ids(tmp_path, IMPORTS)


@pytest.mark.slow
@pytest.mark.needs_torch
def test_a_risk_that_is_not_severe_comes_after_findings_of_time(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(WORKERS)
    diagnosis, printed = diagnose(tmp_path, program)
    assert diagnosis["findings"][0]["id"] == "input-bound", printed
    assert all(each["severity"] == "medium" for each in diagnosis["findings"][1:] if each["kind"] == "risk")


# ---- traces of a GPU ----


def gpu_trace(path: Path, copy: str, n_devices: int = 1) -> dict[str, Any]:
    """Steps of 1000 us: a copy, a wait of 300 us for it, a kernel of 500 us; a second device does next to nothing."""
    events = []

    def add(category: str, name: str, at: int, length: int, **arguments: Any) -> None:
        place = {"pid": arguments.get("device", 7), "tid": 7}
        events.append({"ph": "X", "cat": category, "name": name, "ts": at, "dur": length, "args": arguments, **place})

    for step in range(12):
        at, number = 1000 * step, 100 * (step + 1)
        add("user_annotation", f"ProfilerStep#{step}", at, 1000)
        add("cuda_runtime", "cudaMemcpyAsync", at + 10, 10, correlation=number)
        add("gpu_memcpy", copy, at + 20, 20, correlation=number, device=0, stream=7, bytes=4096)
        add("cuda_runtime", "cudaStreamSynchronize", at + 21, 300 + step % 3, correlation=number + 1)
        add("cuda_runtime", "cudaLaunchKernel", at + 340, 10, correlation=number + 2)
        add("kernel", "gemm", at + 350, 500, correlation=number + 2, device=0, stream=7)
        if n_devices > 1:
            add("cuda_runtime", "cudaLaunchKernel", at + 400, 5, correlation=number + 3)
            add("kernel", "small", at + 410, 5, correlation=number + 3, device=1, stream=7)
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return marey.load(path).diagnosis()


def test_a_wait_for_a_pageable_copy_is_fixed_by_pinned_memory(tmp_path):
    action = gpu_trace(tmp_path / "a.json", "Memcpy HtoD (Pageable -> Device)")["findings"][0]["action"]
    assert "pin_memory=True" in action
    other = gpu_trace(tmp_path / "b.json", "Memcpy DtoD (Device -> Device)")["findings"][0]
    assert other["id"] == "sync-bound" and "pin_memory" not in other["action"]


def test_a_second_device_with_little_work_does_not_count(tmp_path):
    one = gpu_trace(tmp_path / "a.json", "Memcpy HtoD (Pageable -> Device)")
    two = gpu_trace(tmp_path / "b.json", "Memcpy HtoD (Pageable -> Device)", 2)
    assert two["device"] == one["device"] and two["device"]["compute"] > 0.45
