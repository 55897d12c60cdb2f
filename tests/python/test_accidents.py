"""Faults of a recording in a Python program: the program continues, keeps its events and prints a message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import marey


def test_a_recording_that_is_deleted_is_written_again(run_python: Any, tmp_path: Path) -> None:
    done = run_python(
        f"""
        import shutil, marey
        marey.start({str(tmp_path / "x.marey")!r})
        with marey.range("before"):
            pass
        shutil.rmtree({str(tmp_path / "x.marey")!r})
        with marey.range("after"):
            pass
        marey.stop()
        """
    )
    assert done.stderr.count("was deleted while the program runs; it is written again") == 1
    recording = marey.load(tmp_path / "x.marey")
    assert sorted((row["name"], row["count"]) for row in recording.ranges) == [("after", 1), ("before", 1)]


def test_a_recording_that_stopped_has_the_reason_in_its_report(run_python: Any, tmp_path: Path) -> None:
    """A limit on the size of files has the effect of a full disk."""
    done = run_python(
        f"""
        import os, resource, marey
        marey.start({str(tmp_path / "x.marey")!r}, pool_in="memory", policy="block")
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        for i in range(300_000):
            with marey.range("step"):
                marey.mark(f"mark{{os.urandom(1)[0]}}")
        try:
            marey.stop()
        except marey.MareyError:
            print("stopped")
        """
    )
    assert done.stderr.count("the program goes on") == 1 and done.stdout == "stopped\n"
    recording = marey.load(tmp_path / "x.marey")
    assert recording.lost_events > 0  # those in the pool, which is gone
    report = recording.report()
    assert "lost: all events after recording stopped in 1 process" in report
    assert "File too large" in report
