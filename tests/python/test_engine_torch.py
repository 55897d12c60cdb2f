"""The engine over torch.profiler by itself; what it asks of CUDA's allocator, with a stand-in for that."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; tools/torch installs it where an index has one")

import torch

from marey import _background
from marey._engine_torch import TorchEngine
from marey._schedule import Schedule
from marey._window import Driver, Window

SNAPSHOT = {"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 2, "stream": 0, "frames": []}]]}


class Allocator:
    """Stands in for torch.cuda.memory where there is no GPU: `tests/gpu/test_training_windows.py` has the real one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Any] = []
        self.is_on = False
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", self.record)
        monkeypatch.setattr(torch.cuda.memory, "_snapshot", self.snapshot)

    def record(self, enabled: Any, **settings: Any) -> None:
        self.is_on = enabled is not None
        self.asked.append((enabled, settings))

    def snapshot(self) -> Any:
        assert self.is_on
        return SNAPSHOT


def drive(engine: TorchEngine, folder: Path, schedule: Schedule, n_steps: int) -> Driver:
    driver = Driver(schedule, engine, folder, {"snapshot"})
    driver.start()
    for _ in range(n_steps):
        torch.ones(3).sum()
        driver.step()
    return driver


def test_the_allocators_history_is_on_in_each_window_and_bounded(tmp_path, monkeypatch):
    allocator = Allocator(monkeypatch)
    engine = TorchEngine(profile_memory=True, with_snapshot=True)
    driver = drive(engine, tmp_path, Schedule(1, 1, 1, 2), 4)
    assert not allocator.is_on  # it warms up for the second window
    driver.step()
    assert allocator.is_on
    driver.step()
    driver.stop()
    _background.wait()
    on, off = allocator.asked[:2]
    assert allocator.asked == [on, off] * 2
    assert (on[0], on[1]["stacks"], off) == ("all", "python", (None, {}))
    assert 0 < on[1]["max_entries"] <= 1_000_000
    for n in (3, 6):
        data = (tmp_path / f"iteration_{n}" / "rank0_memory_snapshot.pickle").read_bytes()
        assert data[:2] == b"\x80\x04"  # the newest protocol that the viewer reads
        assert pickle.loads(data) == SNAPSHOT
        assert list((tmp_path / f"iteration_{n}").glob("rank0-*.pt.trace.json.gz"))


def test_a_window_that_is_dropped_leaves_no_history_on(tmp_path, monkeypatch):
    allocator = Allocator(monkeypatch)
    drive(TorchEngine(profile_memory=True, with_snapshot=True), tmp_path, Schedule(1, 3, 1, 1), 2).stop()
    assert not allocator.is_on
    assert list(tmp_path.iterdir()) == []
    assert not torch.autograd._profiler_enabled()


@pytest.mark.parametrize("state", ["new", "prepared", "started", "stopped"])
def test_discarded_in_each_state_torch_is_free_again(tmp_path, state):
    engine = TorchEngine()
    if state != "new":
        engine.prepare()
    if state in ("started", "stopped"):
        engine.start()
    if state == "stopped":
        engine.stop(Window(str(tmp_path), 0, 1, frozenset(), first_step=0, start_ns=0))
    engine.discard()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        torch.ones(3).sum()
    assert any(event.key == "aten::sum" for event in theirs.key_averages())


def test_cuda_alone_without_cuda_is_the_processor():
    """Nothing else can be recorded."""
    engine = TorchEngine(cpu=False, cuda=True)
    assert engine.settings["activities"] & torch.profiler.supported_activities()
