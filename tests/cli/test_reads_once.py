"""Each log is decoded once, however many analyses a command makes of it."""

from __future__ import annotations

import shutil
import sys
from collections import Counter

import pytest

PROGRAM = """
import marey
import torch
from torch.utils.data import DataLoader

def collate(rows):
    return sum(float(i) ** 0.5 for i in range(3000)), torch.stack(rows)

model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(torch.randn(1600, 64), batch_size=8, collate_fn=collate)
with marey.epoch(0):
    for _, batch in loader:
        for _ in range(30):
            with marey.range("part"):
                pass
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""


def test_each_block_is_decoded_once(marey, tmp_path, build_dir):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(PROGRAM)
    done = marey("run", "-q", "-o", "all.marey", sys.executable, "train.py", timeout=120)
    assert done.returncode == 0, done.stderr
    library = shutil.copy(build_dir / "tests" / "standin" / "count_blocks.so", tmp_path)  # LD_PRELOAD ends at a blank
    for how in ([], ["--json"], ["--html", "page.html"]):
        counts = tmp_path / f"counts{len(how)}"
        env = {"LD_PRELOAD": str(library), "COUNT_BLOCKS": str(counts)}
        done = marey("report", "all.marey", *how, env=env)
        assert done.returncode == 0, done.stderr
        decoded = Counter(counts.read_text().split())
        assert len(decoded) > 3
        assert set(decoded.values()) == {1}, how
