"""Helpers to cause faults and to inspect what faulty programs leave."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Sanitizers slow the programs down; nothing here measures speed.
PATIENCE_S = 60


def lanes_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [lane for process in found["processes"] for lane in process["lanes"]]


def assert_whole(found: dict[str, Any]) -> None:
    """Nothing lost, torn, doubled or out of order, in any lane of any process."""
    for process in found["processes"]:
        assert process["lost"] == 0
        for lane in process["lanes"]:
            assert lane["breaks"] == lane["backwards"] == lane["gaps"] == lane["unknown"] == 0, lane
            assert lane["next"] == lane["ends"], lane


def pools_in(path: Path) -> list[Path]:
    """Remaining pools: in the recording, or in shared memory for one of its logs."""
    in_memory = [pool for log in path.glob("*.klog") for pool in Path("/dev/shm").glob(f"marey-{log.name}.pool")]
    return [*path.glob("*.pool"), *in_memory]


def kill_after(command: list[str], seconds: float, ready: Callable[[], bool]) -> None:
    """Start `command`, wait until it is `ready` and `seconds` more, and kill it."""
    with subprocess.Popen(command) as victim:
        deadline = time.monotonic() + PATIENCE_S
        while not ready() and victim.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(seconds)
        assert victim.poll() is None, "it ended before it was killed"
        victim.send_signal(signal.SIGKILL)


def random_moments(n: int, most_s: float) -> list[float]:
    """`n` delays, the same in every run of the tests so that a failure can be had again."""
    source = random.Random(20240607)
    return [source.random() * most_s for _ in range(n)]
