"""marey.TrainingMonitor with torch: traces and what they come to; torchrun with gloo, DDP on 2 ranks and FSDP on 4."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import marey

pytestmark = pytest.mark.needs_torch

RANKS = Path(__file__).parent / "monitored_ranks.py"
# What TensorBoard's plugin for profiles takes for a trace.
TENSORBOARD = re.compile(r"^(?P<worker>.*?)(\.(?P<timestamp>\d+))?\.pt\.trace\.json(?:\.gz)?$")
PHASES = ("data", "forward", "backward", "optimizer", "evaluate", "checkpoint", "logging", "other")


def train(monitor, n_epochs=3, n_batches=7, told=True):
    """A plain loop; `told` False: the monitor hears nothing but the optimizer's steps."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = [(torch.randn(4, 8), torch.randn(4, 1))] * n_batches
    for _ in monitor.epochs(n_epochs) if told else range(n_epochs):
        for x, y in monitor.batches(batches) if told else batches:
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()


def traces_in(folder):
    return sorted(Path(folder).glob("*"))


def steps_of(trace):
    events = json.loads(trace.read_text())["traceEvents"]
    return [event["name"] for event in events if event.get("ph") == "X" and event["name"].startswith("ProfilerStep#")]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """One training with all four switches on, for many tests."""
    folder = tmp_path_factory.mktemp("stored")
    monitor = marey.TrainingMonitor(True, True, True, True, 1, 0, "all", folder, profiling_steps=2, print_summary=False)
    with monitor:
        train(monitor)
    return monitor


def test_a_few_steps_of_each_epoch_are_stored_as_traces(stored):
    traces = traces_in(stored.trace_folder)
    assert stored.trace_folder == os.path.join(stored.folder, "torch-traces")
    assert len(traces) == 2  # of three epochs one is waited for
    for trace in traces:
        assert re.fullmatch(r"worker_0\.\d+\.pt\.trace\.json", trace.name)
        assert TENSORBOARD.match(trace.name)["worker"] == "worker_0"
        assert steps_of(trace) == ["ProfilerStep#2", "ProfilerStep#3"]


def test_traces_are_as_torch_writes_them_with_the_phases(stored):
    trace = json.loads(traces_in(stored.trace_folder)[0].read_text())
    names = {event["name"] for event in trace["traceEvents"]}
    assert {"marey:data", "marey:optimizer", "aten::linear"} <= names
    assert trace["schemaVersion"] and trace["marey"]["steps"] == 2 and not trace["marey"]["partial"]
    read = marey.load(stored.trace_folder)
    assert read.ranges.row(name="aten::linear")["count"] == 4


def test_the_traces_come_to_computation_communication_and_other(stored):
    text = stored.report()
    assert re.search(r"rank 0: computation .* \(.* %\), communication 0 ns \(0.0 %\), other ", text)
    summary = stored.breakdown().summary
    assert summary["computation"]["ns"] > 0 and summary["communication"]["ns"] == 0
    written = json.loads(Path(stored.folder, "breakdown.json").read_text())
    assert "devices" in written


def test_steps_of_the_optimizer_are_a_phase_without_a_word(stored):
    for row in stored.load().epochs("rank"):
        assert row["optimizer_ns"] > 0 and row["iterations"] == 7 and row["samples"] == 28
        assert sum(row[f"{name}_ns"] for name in PHASES) == row["duration_ns"]


def test_traces_that_nobody_wants_to_keep_are_gone(tmp_path):
    monitor = marey.TrainingMonitor(enable_torch_profiling=True, output_dir=tmp_path, run_name="r", print_summary=False)
    with monitor:
        train(monitor, 1)
    assert not os.path.exists(monitor.trace_folder)
    assert "computation" in monitor.report()
    assert Path(monitor.folder, "breakdown.json").exists()


@pytest.mark.parametrize("n_batches", [1, 2, 3])
def test_a_short_epoch_is_traced_as_far_as_it_goes(tmp_path, n_batches):
    monitor = marey.TrainingMonitor(True, True, output_dir=tmp_path, run_name="r", print_summary=False)
    with monitor:
        train(monitor, 2, n_batches)
    traces = traces_in(monitor.trace_folder)
    assert len(traces) == 2
    assert all(len(steps_of(trace)) >= 1 for trace in traces)


def test_a_loop_that_tells_nothing_is_counted_by_its_optimizer(tmp_path):
    monitor = marey.TrainingMonitor(True, True, output_dir=tmp_path, run_name="r", print_summary=False)

    @monitor
    def fit():
        train(monitor, 2, told=False)

    fit()
    (trace,) = traces_in(monitor.trace_folder)
    assert len(steps_of(trace)) == 3
    assert monitor.load().iterations.row(name="(whole iteration)")["count"] == 14


def test_only_profiling_leaves_no_recording(tmp_path):
    monitor = marey.TrainingMonitor(
        True, True, measure_epoch_time=False, output_dir=tmp_path, run_name="r", loggers=None
    )
    with monitor:
        train(monitor, 1)
        assert not marey.enabled()
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert len(traces_in(monitor.trace_folder)) == 1


def test_an_exception_saves_the_window_that_is_open(tmp_path):
    monitor = marey.TrainingMonitor(True, True, output_dir=tmp_path, run_name="r", print_summary=False)
    with pytest.raises(RuntimeError), monitor:
        for _ in monitor.epochs(1):
            for i, _ in enumerate(monitor.batches([1] * 9, samples=1)):
                if i == 3:
                    raise RuntimeError
    (trace,) = traces_in(monitor.trace_folder)
    assert json.loads(trace.read_text())["marey"]["partial"]


# ---- ranks ----


def launch(kind, n, folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n)]
    done = subprocess.run(
        [*command, str(RANKS), kind, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = set(re.findall(r"rank \d was (\S+)", done.stdout))
    assert len(names) == 1  # all ranks have one name, and nobody gave them one
    return names.pop(), done.stdout


@pytest.fixture(scope="module")
def ddp(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ddp")
    return folder, *launch("ddp", 2, folder)


def test_ranks_of_ddp_write_one_recording(ddp):
    folder, name, _ = ddp
    run = marey.load(folder / f"{name}.marey")
    rows = list(run.epochs("rank"))
    assert [(row["run"], row["epoch"], row["rank"]) for row in rows] == [(1, e, r) for e in range(3) for r in range(2)]
    for row in rows:
        assert sum(row[f"{name}_ns"] for name in PHASES) == row["duration_ns"]
        assert row["iterations"] == 8 and row["samples"] == 32


def test_the_slow_rank_of_ddp_is_named_though_both_take_as_long(ddp):
    folder, name, out = ddp
    run = marey.load(folder / f"{name}.marey")
    for row in run.epochs():
        assert not row["counted"] or (row["slowest_rank"], row["slowest_in"]) == (1, "data")
    quick, slow = (row for row in run.epochs("average") if row["rank"] is not None)
    assert slow["data_ns"] >= 8 * 15e6 > quick["data_ns"]
    assert "rank 1 is the slowest in 2 of 2" in out
    assert out.count("an epoch takes") == 1  # rank 0 alone prints


def test_each_rank_of_ddp_has_traces_and_its_own_line(ddp):
    folder, name, out = ddp
    names = [path.name for path in traces_in(folder / name / "torch-traces")]
    assert [sum(each.startswith(f"worker_{rank}.") for each in names) for rank in range(2)] == [3, 3]
    shares = {
        int(rank): float(share)
        for rank, share in re.findall(r"^rank (\d): computation .*communication \S+ \S+ \((\S+) %\)", out, re.MULTILINE)
    }
    assert shares[0] > 50 > shares[1]  # rank 0 waits for rank 1 in its all-reduce
    assert {path.name for path in (folder / name).glob("rank*_metrics.csv")} == {
        "rank0_metrics.csv",
        "rank1_metrics.csv",
    }


@pytest.mark.parametrize("n", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_ranks_of_fsdp(tmp_path, n):
    name, out = launch("fsdp", n, tmp_path)
    run = marey.load(tmp_path / f"{name}.marey")
    assert [row["ranks"] for row in run.epochs()] == [n, n, n]
    averages = {row["rank"]: row for row in run.epochs("average")}
    assert averages[n - 1]["data_ns"] > max(averages[rank]["data_ns"] for rank in range(n - 1))
    assert len(re.findall(r"^rank \d: computation ", out, re.MULTILINE)) == n
    assert not list((tmp_path / name).glob(".*"))  # neither marks nor traces are left
