"""marey.torch: real jobs of 2 and 4 ranks with gloo, whose every call is in the recording."""

from __future__ import annotations

import importlib.util
import json
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mpi_jobs import HERE, Process, torchrun

if importlib.util.find_spec("torch") is None:
    pytest.skip(
        "torch is not installed; tools/torch installs it where an index has a small one", allow_module_level=True
    )

# As enum marey_collective has them.
WHATS = ("unknown", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather")
WHATS += ("scatter", "barrier", "send", "recv", "other")


def calls_of(process: Process) -> list[dict[str, Any]]:
    calls = [{**call} for call in process["ranges"] if call["name"].startswith("dist.")]
    for call in calls:
        assert call["category"] == "communication"
        assert call["end"] is not None
        if call["told"]:
            call["told"] = {**call["told"], "what": WHATS[call["told"]["what"]]}
    return calls


def compare(process: Process, expected: list[dict[str, Any]]) -> None:
    calls = [{"name": call["name"], "told": call["told"]} for call in calls_of(process)]
    for one in expected:
        if "any" in one:
            n = len(one["any"])
            assert [call["name"] for call in calls[:n]] == one["any"]
            calls = calls[n:]
        else:
            assert calls and calls[0] == one
            calls = calls[1:]
    assert calls == []


def check_numbers(processes: list[Process]) -> None:
    """A collective has the same sequence number on all its ranks."""
    seen: dict[tuple[str, str, int], set[tuple[int, str]]] = {}
    for process in processes:
        for call in calls_of(process):
            told = call["told"]
            if told and told["sequence"] is not None and call["name"] != "dist.wait":
                seen.setdefault((told["group"], told["ranks"], told["sequence"]), set()).add(
                    (process["rank"], call["name"])
                )
    n = len(processes)
    for (_, ranks, _), calls in seen.items():
        members = list(range(n)) if ranks == f"0-{n - 1}" else [int(rank) for rank in ranks.split(",")]
        assert sorted(rank for rank, _ in calls) == members
        assert len({name for _, name in calls}) == 1


def ranks_of(processes: list[Process]) -> list[Process]:
    """Without the launcher, which records nothing, or something without a rank."""
    return [process for process in processes if process["rank"] >= 0]


@pytest.fixture
def job(
    run: Callable[..., Any], tool: str, recorded: Callable[..., Any], tmp_path: Path
) -> Callable[..., list[Process]]:
    """Run a script with some ranks under `marey run`; what they recorded, by rank."""

    def run_job(ranks: int, script: Path, *arguments: object) -> list[Process]:
        run(
            [tool, "run", "--only", "ranges", "-o", "run.marey", "--", *torchrun(ranks, script, *arguments)],
            env={"OMP_NUM_THREADS": "1"},
        )
        processes = ranks_of(recorded(tmp_path / "run.marey"))
        assert [(process["rank"], process["world_size"]) for process in processes] == [(r, ranks) for r in range(ranks)]
        return processes

    return run_job


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.slow), 4])
def test_what_is_recorded_is_what_was_called(job, tmp_path, ranks):
    processes = job(ranks, HERE / "every_torch.py", tmp_path / "expected")
    check_numbers(processes)
    for process in processes:
        lines = (tmp_path / f"expected.{process['rank']}").read_text().splitlines()
        compare(process, [json.loads(line) for line in lines])
        flights = Counter(flight["name"] for flight in process["async"])
        assert flights == {"dist.all_reduce (in flight)": 1, "dist.broadcast (in flight)": 1}
        assert all(flight["end"] is not None for flight in process["async"])


def test_undone_it_is_as_it_was(job, tmp_path):
    assert all(calls_of(process) == [] for process in job(2, HERE / "every_torch.py", tmp_path / "expected", "undone"))


def test_torchs_own_errors_come_out(job, tmp_path):
    job(2, HERE / "every_torch.py", tmp_path / "expected", "mistakes")


TRAIN = """
    import sys
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    import marey, marey.torch

    STEPS = 5
    traced = "plain" not in sys.argv
    if traced:
        marey.torch.trace_distributed()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)])
    # Small buckets, so that there are several.
    model = DistributedDataParallel(model, bucket_cap_mb=0.3)
    if traced:
        marey.torch.trace_ddp(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(dist.get_rank())
    for step in range(STEPS):
        with marey.range("step"):
            optimizer.zero_grad()
            loss = model(torch.randn(16, 256)).square().mean()
            loss.backward()
            optimizer.step()
    marey.finish_iteration()
    digest = torch.stack([p.double().sum() for p in model.parameters()])
    with open(sys.argv[1] + "." + str(dist.get_rank()), "w") as file:
        print(digest.tolist(), sum(p.numel() for p in model.parameters()) * 4, file=file)
    dist.destroy_process_group()
"""


@pytest.fixture
def train(tmp_path: Path) -> Path:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(TRAIN))
    return script


def test_the_gradients_of_ddp_are_seen_bucket_by_bucket(job, train, run, tmp_path):
    run(torchrun(2, train, tmp_path / "plain", "plain"))
    for process in job(2, train, tmp_path / "traced"):
        rank = process["rank"]
        assert (tmp_path / f"traced.{rank}").read_text() == (tmp_path / f"plain.{rank}").read_text()
        size = int((tmp_path / f"plain.{rank}").read_text().split()[-1])
        buckets = [call for call in process["ranges"] if call["name"] == "ddp.all_reduce"]
        waits = [call for call in process["ranges"] if call["name"] == "ddp.wait"]
        flights = [flight for flight in process["async"] if flight["name"] == "ddp.all_reduce (in flight)"]
        # The first time all gradients are in one bucket; then torch knows in which order they come.
        assert len(buckets) == len(waits) == len(flights) and len(buckets) > 5
        assert sum(bucket["told"]["in"] for bucket in buckets) == 5 * size
        for bucket, wait, flight in zip(buckets, waits, flights):
            assert bucket["category"] == wait["category"] == "communication"
            assert bucket["told"]["ranks"] == "0-1"
            assert bucket["told"]["sequence"] == wait["told"]["sequence"]
            assert bucket["begin"] <= flight["begin"] <= bucket["end"] <= wait["begin"]
            assert bucket["end"] <= flight["end"] <= wait["end"]
        assert "dist.all_reduce" not in {call["name"] for call in process["ranges"]}  # the bucket speaks for it


def test_a_recording_that_begins_later_and_ends_earlier(run, tmp_path, recorded):
    script = tmp_path / "job.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, sys
            import torch, torch.distributed as dist
            import torch.multiprocessing as mp
            import marey, marey.torch
            def main(rank, store):
                dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
                with marey.torch.trace_distributed():
                    x = torch.ones(3)
                    dist.all_reduce(x)
                    marey.start("run.marey")
                    dist.all_reduce(x)
                    work = dist.all_reduce(x, async_op=True)
                    marey.stop()
                    work.wait()
                    dist.all_reduce(x)
                marey.start("run.marey")
                dist.all_reduce(x)
                with marey.torch.trace_distributed():
                    dist.all_reduce(x)
                marey.stop()
                dist.destroy_process_group()
            if __name__ == "__main__":
                mp.spawn(main, args=(os.path.abspath("store"),), nprocs=2)
            """
        )
    )
    run([sys.executable, str(script)])
    processes = recorded(tmp_path / "run.marey")
    assert len(processes) == 4
    for process in processes:
        numbers = [call["told"]["sequence"] for call in calls_of(process)]
        assert (process["world_size"], numbers) in [(2, [1, 2]), (2, [4])]  # all are counted


def test_importing_marey_does_not_import_torch(run):
    run(
        [
            sys.executable,
            "-c",
            "import sys, marey; assert 'torch' not in sys.modules and 'marey.torch' not in sys.modules",
        ]
    )


def test_what_is_no_ddp_is_refused(run):
    script = (
        "import torch, marey.torch\ntry: marey.torch.trace_ddp(torch.nn.Linear(1, 1))\nexcept TypeError as e: print(e)"
    )
    done = run([sys.executable, "-c", script])
    assert "takes a DistributedDataParallel, not Linear" in done.stdout
