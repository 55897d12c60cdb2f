"""Real programs: a training by torch, a DataLoader with workers, followed from their birth."""

from __future__ import annotations

import pytest
from sampled_stacks import functions_on
from watching import Marey, running

pytest.importorskip("torch", reason="trains a real model; torch is not here")
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("strategy", ["--exact", "--snapshot"])
def test_the_slow_metric_of_a_training_is_found(marey: Marey, strategy: str) -> None:
    with running("training") as target:
        recording = marey.attach(target.pid, strategy, seconds=3)
    first = marey.report(recording)["lines"][0]
    assert (first["function"], first["line"]) == ("slow_metric", target.planted_line())
    stacks = marey.stacks(recording)
    assert functions_on(stacks, ["train_step"])["train_step"] > sum(stacks.values()) * 0.5


def test_workers_of_a_dataloader_are_followed(marey: Marey) -> None:
    """Workers start during sampling: the loop begins after `ready`."""
    recording = marey.new_recording()
    with running("loader", 2) as target:
        marey.run("attach", target.pid, "-q", "-o", recording, "--duration", 4)
        workers = {int(pid) for _, pid in target.said("worker")}
    tables = marey.report(recording)
    seen = {row["pid"]: row for row in tables["processes"]}
    assert len(workers) == 2
    assert workers <= seen.keys()
    assert {seen[pid]["worker"] for pid in workers} <= {0, 1, None}
    first = tables["lines"][0]
    assert (first["function"], first["line"]) == ("augment", target.planted_line())
    assert all(seen[pid]["samples"] > 20 for pid in workers)
