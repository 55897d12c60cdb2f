"""A whole job in one recording: ranks behind a shell, the workers that they fork, how it ended."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from watching import Marey

RANK = """
import os, time


def work(end):
    while time.monotonic() < end:
        pass


end = time.monotonic() + 1.5
for _ in range(2):
    if os.fork() == 0:
        work(end)
        os._exit(0)
work(end)
for _ in range(2):
    os.wait()
"""


def test_ranks_behind_a_shell_and_their_workers_are_in_one_recording(marey: Marey, tmp_path: Path) -> None:
    script = tmp_path / "rank.py"
    script.write_text(RANK, encoding="utf-8")
    recording = marey.new_recording()
    rank = shlex.join([sys.executable, str(script)])
    job = f"RANK=0 {rank} & RANK=1 {rank}; wait; exit 3"
    marey.run("run", "-q", "--sample=100", "-o", recording, "--", "sh", "-c", job, status=3)
    rows = marey.report(recording)["processes"]
    found = sorted((row["rank"], -1 if row["worker"] is None else row["worker"]) for row in rows)
    assert found == [(rank, worker) for rank in (0, 1) for worker in (-1, 0, 1)]
    assert all(row["samples"] > 0 for row in rows)
