"""With a real GPU: windows of a training by torch.profiler, each with kernels and the allocator's history.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch.

    python tests/gpu/test_training_windows.py
"""

from __future__ import annotations

import gzip
import json
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu_program import FAILURES, check, import_torch

import marey
from marey import _background
from marey._schedule import Schedule
from marey._window import Driver


def train(torch: Any, folder: Path) -> None:
    """Two windows of two steps each, with what a ProfCallback notes of storages."""
    from marey._engine_torch import TorchEngine
    from marey._roles import ModelRoles

    engine = TorchEngine(profile_memory=True, with_stack=True, record_shapes=True, with_snapshot=True)
    driver = Driver(Schedule(1, 1, 2, 2), engine, folder, {"averages", "stacks", "timeline", "snapshot"})
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    roles = ModelRoles(model)
    driver.start()
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.randn(64, 256, device="cuda")).mean().backward()
        if driver.window is not None:
            driver.window.roles.extend(roles.parameters() + roles.gradients())
        optimizer.step()
        driver.step()
    driver.stop()
    _background.wait()
    check(f"two windows, {len(driver.windows)} were saved", len(driver.windows) == 2)
    for window in driver.windows:
        ours_ms = (window.wait_ns - window.engine_ns) / 1e6
        print(f"torch {window.engine_ns / 1e6:.1f} ms, marey {ours_ms:.2f} ms at the end of a window")


def look(folder: Path) -> None:
    (packed,) = folder.glob("*.pt.trace.json.gz")
    with gzip.open(packed) as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    check(f"{folder.name}: the trace has kernels", any(e.get("cat") == "kernel" for e in events))
    made = {e["args"]["Addr"] for e in events if e["name"] == "[memory]" and e["args"]["Device Type"] == 1}
    gradients = [role for role in trace["marey"]["roles"] if role[0] == "gradient"]
    check(f"{folder.name}: gradients are told", bool(gradients))
    are_there = all(role[3:5] == [1, 0] and role[1] in made for role in gradients)
    check(f"{folder.name}: gradients were allocated", are_there)
    with open(folder / "rank0_memory_snapshot.pickle", "rb") as file:
        head = file.read(2)
        file.seek(0)
        snapshot = pickle.load(file)
    check(f"{folder.name}: the snapshot is of protocol 4, which the viewer reads", head == b"\x80\x04")
    entries = [entry for device in snapshot["device_traces"] for entry in device]
    has_stacks = any(entry["action"] == "alloc" and entry["frames"] for entry in entries)
    check(f"{folder.name}: history with stacks", has_stacks)
    for name in ("rank0_key_averages.txt", "rank0_stacks.txt"):
        check(f"{folder.name}/{name} is there", (folder / name).exists())
    page = folder / "rank0_memory-timeline.html"
    check(f"{folder.name}/{page.name} is there, where the build can write pages", page.exists() == can_write_pages())


def can_write_pages() -> bool:
    """A build without Node.js cannot."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "meta.json").write_text('{\n  "format": "marey recording"\n}\n')
        try:
            marey.load(folder).page()
        except marey.MareyError as error:
            return "Node.js was missing" not in str(error)
    return True


def main() -> int:
    torch = import_torch()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        train(torch, folder)
        for n in (4, 8):
            look(folder / f"iteration_{n}")
    before = len(torch.cuda.memory._snapshot()["device_traces"][0])
    torch.empty(1 << 20, device="cuda")
    check("the allocator's history is off", len(torch.cuda.memory._snapshot()["device_traces"][0]) == before)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
