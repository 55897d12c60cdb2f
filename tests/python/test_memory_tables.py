"""Memory tables of a recording and of a memory file."""

from __future__ import annotations

import json
import pickle
import subprocess

import pytest

import marey

LEAK = """
import marey

kept = []
marey.start("leak.marey", memory=True, **{"memory.sample": 1})
for _ in range(30):
    with marey.iteration():
        kept.append(bytearray(100_000))
marey.stop()
"""


@pytest.fixture
def leak(run_python, tmp_path):
    run_python(LEAK)
    return marey.load(tmp_path / "leak.marey")


def test_a_leak_is_a_row(leak):
    stacks = [row for row in leak.memory("growth") if row["what"] == "stack" and row["is_suspected"]]
    assert len(stacks) == 1 and "script.py:8" in stacks[0]["stack"]
    assert stacks[0]["slope_bytes"] == pytest.approx(100_000, rel=0.01)
    (pool,) = leak.memory()
    assert pool["peak_bytes"] >= 30 * 100_000
    assert len(leak.memory("stacks", stacks=2)) == 2


def test_without_memory_it_says_what_to_do(run_python, tmp_path):
    run_python("import marey; marey.start('plain.marey'); marey.mark('x'); marey.stop()")
    with pytest.raises(marey.MareyError, match="--memory"):
        marey.load(tmp_path / "plain.marey").memory()


def test_a_snapshot_has_the_same_tables(leak, tmp_path):
    block = {"address": 0x7F0000000000, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": []}
    free = {**block, "address": block["address"] + 512, "size": 1536, "requested_size": 0, "state": "inactive"}
    segment = {
        "device": 0,
        "address": block["address"],
        "total_size": 2048,
        "stream": 0,
        "segment_type": "small",
        "allocated_size": 512,
        "active_size": 512,
        "requested_size": 500,
        "frames": [],
        "blocks": [block, free],
    }
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps({"segments": [segment], "device_traces": [[]]}, protocol=4))
    tables = marey.memory_report(tmp_path / "snapshot.pickle")
    assert set(tables) >= {"pools", "stacks", "growth", "fragmentation"}
    (pool,) = tables["pools"]
    assert pool["peak_bytes"] == 512


def test_python_and_the_command_have_the_same_tables(leak, marey_command, tmp_path):
    command = [*marey_command, "report", "--memory", "--json", str(tmp_path / "leak.marey")]
    told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert {"pools", "stacks", "growth", "resident", "live", "notes"} <= set(told)
    for name, rows in told.items():
        mine = [dict(row) for row in leak.memory(name)]
        assert (mine if name != "notes" else [row["text"] for row in mine]) == rows, name
