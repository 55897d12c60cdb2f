"""examples/dump_loop.c, built here: two runs of it, read as a stranger would, and compared by the command."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def build() -> Path:
    return Path(os.environ["MAREY_BUILD"])


def run(*command: object, status: int = 0) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def tensor(folder: Path, step: int, name: str) -> bytes:
    data = (folder / f"step-{step:08}.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    begin, end = json.loads(data[8 : 8 + length])[name]["data_offsets"]
    return data[8 + length + begin : 8 + length + end]


def test_the_example_dumps_and_the_first_difference_is_found(build: Path, tmp_path: Path) -> None:
    program = build / "examples" / "dump_loop"
    assert run(program, tmp_path / "before") == "6 steps, 18 tensors, 394800 bytes\n"
    run(program, tmp_path / "after", 1)
    for step in range(6):
        is_same = tensor(tmp_path / "before", step, "reduce.out") == tensor(tmp_path / "after", step, "reduce.out")
        assert is_same == (step < 3)
        assert tensor(tmp_path / "before", step, "stretch.out") == tensor(tmp_path / "after", step, "stretch.out")
    found = json.loads(
        run(build / "cli" / "marey", "diff", tmp_path / "after", tmp_path / "before", "--json", status=1)
    )
    assert found["same"] is False
    assert (found["first"]["step"], found["first"]["path"]) == (3, "reduce.out")
