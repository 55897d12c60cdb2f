"""marey scale on what real ranks recorded, on traces of torch.profiler, and on folders with faults in them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built import Finished

SCRIPT = """
import os, sys
import marey

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if world > 1:
    import torch, torch.distributed as dist
    import marey.torch

    marey.torch.trace_distributed()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=world)
for _ in range(3):
    with marey.epoch():
        for _ in range(4):
            with marey.iteration(samples=32 // world):
                total = sum(range(20000))
                if world > 1:
                    dist.all_reduce(torch.tensor([total]))
if world > 1:
    dist.destroy_process_group()
"""

Ranks = Callable[..., None]


@pytest.fixture
def ranks(tmp_path: Path, environment: dict[str, str]) -> Ranks:
    """Run the script with so many ranks, all into one recording."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)

    def run(world: int, recording: str, run_id: str, **more: str) -> None:
        shared = {
            **environment,
            "MAREY": str(tmp_path / recording),
            "MAREY_RUN_ID": run_id,
            "MAREY_OPTIONS": "strategy=gloo,experiment=squares",
            "WORLD_SIZE": str(world),
            **more,
        }
        meeting = tmp_path / f"meet-{run_id}"
        started = [
            subprocess.Popen([sys.executable, str(script), str(meeting)], env={**shared, "RANK": str(rank)})
            for rank in range(world)
        ]
        assert [process.wait(timeout=300) for process in started] == [0] * world

    return run


def found(done: Finished) -> dict[str, list[dict[str, Any]]]:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def notes(answer: dict[str, list[dict[str, Any]]]) -> str:
    return "\n".join(map(str, answer["notes"]))


def test_ranks_of_gloo(marey: Callable[..., Finished], ranks: Ranks, tmp_path: Path) -> None:
    """One rank twice into one recording, and two ranks: three runs of one series, with what their steps are made of."""
    (tmp_path / "runs").mkdir()
    ranks(1, "runs/one.marey", "first")
    ranks(1, "runs/one.marey", "second")
    ranks(2, "runs/two.marey", "both")
    answer = found(marey("scale", "--json", "runs"))
    runs = {(row["experiment"], row["strategy"], row["workers"], row["epochs"]) for row in answer["runs"]}
    assert runs == {("squares", "gloo", 1, 2), ("squares", "gloo", 2, 2)}  # the first warms up
    assert sorted(row["workers"] for row in answer["runs"]) == [1, 1, 2]
    points = {row["workers"]: row for row in answer["points"]}
    assert points[1]["runs"] == 2 and points[2]["runs"] == 1
    assert points[2]["communication_s"] > 0 and points[2]["compute_s"] > 0
    assert points[2]["kind"] == "strong"  # 32 samples in each step, however many share them
    assert "missing" not in notes(answer)

    # A log less: the run is told to miss a rank, and its samples are still those of both.
    next((tmp_path / "runs" / "two.marey").glob("r1-*.klog")).unlink()
    again = found(marey("scale", "--json", "runs"))
    assert "Rank 1 of 2 has no log here" in notes(again)
    assert {row["workers"]: row["samples"] for row in again["points"]}[2] == points[2]["samples"]

    # A recording that is no log any more, among others.
    bad = tmp_path / "runs" / "bad.marey"
    bad.mkdir()
    (bad / "r0-x-1-0.klog").write_bytes(b"\\0" * 100)
    assert "bad.marey" in notes(found(marey("scale", "--json", "runs")))


def trace(rank: int, world: int, step_us: int) -> dict[str, Any]:
    """Five steps of torch.profiler on one GPU, half of each a kernel, a quarter communication."""
    events: list[dict[str, Any]] = []
    for i in range(5):
        at = 1000 + i * step_us
        events.append(
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": f"ProfilerStep#{i}",
                "pid": 50 + rank,
                "tid": 1,
                "ts": at,
                "dur": step_us,
            }
        )
        for name, begin, share in (("gemm", at, 2), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + step_us // 2, 4)):
            number = 10 * i + share
            events.append(
                {
                    "ph": "X",
                    "cat": "cuda_runtime",
                    "name": "cudaLaunchKernel",
                    "pid": 50 + rank,
                    "tid": 1,
                    "ts": at + 1,
                    "dur": 1,
                    "args": {"correlation": number},
                }
            )
            events.append(
                {
                    "ph": "X",
                    "cat": "kernel",
                    "name": name,
                    "pid": 0,
                    "tid": 7,
                    "ts": begin,
                    "dur": step_us // share,
                    "args": {"correlation": number, "device": 0, "stream": 7},
                }
            )
    about = {"backend": "nccl", "rank": rank, "world_size": world}
    return {"schemaVersion": 1, "distributedInfo": about, "traceEvents": events}


def test_folders_of_traces(marey: Callable[..., Finished], tmp_path: Path) -> None:
    """A file for each rank; the world size is that of distributedInfo, and the folder may be anywhere."""
    for world, step_us in ((1, 8000), (2, 5000)):
        folder = tmp_path / "traces" / f"{world} ranks"
        folder.mkdir(parents=True)
        for rank in range(world):
            (folder / f"worker_{rank}.1.pt.trace.json").write_text(json.dumps(trace(rank, world, step_us + 400 * rank)))
    (tmp_path / "traces" / "readme.txt").write_text("nothing;of ours 3\n")
    answer = found(marey("scale", "--json", "--measure", "step", "ddp=traces"))
    points = {row["workers"]: row for row in answer["points"]}
    assert set(points) == {1, 2}
    assert points[1]["strategy"] == "ddp"
    assert points[1]["step_s"] == pytest.approx(0.008)
    assert points[2]["step_s"] == pytest.approx(0.0054)  # of two ranks the slower
    assert points[1]["compute_s"] == pytest.approx(0.004)
    assert points[1]["communication_s"] == pytest.approx(0.002)
    assert points[1]["idle_s"] == pytest.approx(0.002)
    assert points[1]["computation_fraction"] is None  # itwinai's figure, of its files and stores only


def test_a_recording_that_is_still_written(
    marey: Callable[..., Finished], tmp_path: Path, environment: dict[str, str]
) -> None:
    """Its whole epochs count, and it is told to be under way."""
    script = """
import marey, sys
for _ in range(3):
    with marey.epoch(), marey.iteration():
        pass
marey.epoch()
print("there", flush=True)
sys.stdin.read()
"""
    env = {**environment, "MAREY": str(tmp_path / "now.marey")}
    with subprocess.Popen(
        [sys.executable, "-c", script], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None and program.stdout.readline() == "there\n"
        answer = found(marey("scale", "--json", "now.marey"))
        program.communicate("")
    assert answer["runs"][0]["partial"] is True
    assert answer["runs"][0]["epochs"] == 2  # behind the first
    assert "now.marey is still being written" in notes(answer)


def test_energy_of_a_recording(marey: Callable[..., Finished], compiled: Callable[..., Path]) -> None:
    """Joules of each run and of its epochs; runs that were added to one recording are not summed."""
    program = compiled("joules.c")
    for watts in (100, 200):
        assert (
            marey("run", "--only", "ranges", "-q", "--append", "-o", "energy.marey", "--", program, watts).returncode
            == 0
        )
    answer = found(marey("scale", "--json", "--with-first", "energy.marey"))
    assert len(answer["runs"]) == 2 and answer["points"][0]["runs"] == 2
    low, high = sorted(row["joules"] for row in answer["runs"])
    assert 1.5 < high / low < 3
    point = answer["points"][0]
    assert point["utilization"] == pytest.approx(0.75, abs=0.01)
    assert low / 2 * 0.5 < point["joules_per_epoch"] < high / 2 * 1.5
    assert point["samples"] == 80


def test_a_monitor_tells_its_strategy(
    marey: Callable[..., Finished], tmp_path: Path, environment: dict[str, str]
) -> None:
    """It is in the recording, also in one that `marey run` began, and goes before that of the options."""
    script = tmp_path / "monitored.py"
    script.write_text(
        "import marey\n"
        "with marey.TrainingMonitor(output_dir='out', run_name='a', strategy='own way'):\n"
        "    for _ in range(2):\n"
        "        with marey.epoch():\n"
        "            pass\n"
    )
    subprocess.run([sys.executable, str(script)], cwd=tmp_path, env=environment, check=True, timeout=60)
    env = {"MAREY_OPTIONS": "strategy=other,experiment=x"}
    assert (
        marey("run", "--only", "ranges", "-q", "-o", "within.marey", "--", sys.executable, script, env=env).returncode
        == 0
    )
    runs = found(marey("scale", "--json", "out", "within.marey"))["runs"]
    assert [(row["experiment"], row["strategy"]) for row in runs] == [("", "own way"), ("x", "own way")]


def test_faults_are_one_sentence(marey: Callable[..., Finished], tmp_path: Path) -> None:
    """Nothing crashes, and each is told what it is."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("hello\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.csv").write_text('workers,measure,value\n2,epoch_time_s,"3')
    (tmp_path / "no_rows.csv").write_text("workers,measure,value\n")
    (tmp_path / "pipe").write_bytes(os.urandom(100))
    for path, part in (
        ("other", "nothing measured"),
        ("empty", "nothing measured"),
        ("cut.csv", "ends within quotes"),
        ("no_rows.csv", "no row"),
        ("pipe", "is not a recording"),
        ("not there", "cannot open"),
    ):
        done = marey("scale", path)
        assert done.returncode == 2
        assert part in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
