"""Stopwatch: the results of all ranks together."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import marey
from marey import Stopwatch, _tools

# Each rank runs `forward` once in an iteration, rank 2 for longest, and rank 1 alone `extra`.
WORK = """
    import json, sys, marey
    def work(rank):
        stopwatch = marey.Stopwatch(1)
        for i in range(11):
            with stopwatch("forward"):
                sum(range(2000 * (1 + 20 * (rank == 2))))
            if rank == 1:
                with stopwatch("extra"):
                    pass
            stopwatch.finish_iter()
        return stopwatch
    def show(rank, merged, alone, folder="."):
        tables = None if merged is None else {name: list(merged[name]) for name in merged}
        with open(f"{folder}/rank{rank}.json", "w") as file:
            json.dump([rank, tables, list(alone.iterations)], file)
"""


def check(ranks: dict[int, tuple[dict, list]], where: set[int]) -> None:
    assert sorted(ranks) == [0, 1, 2]
    assert {rank for rank, (merged, _) in ranks.items() if merged is not None} == where
    means = [next(row["mean_ns"] for row in ranks[rank][1] if row["name"] == "forward") for rank in range(3)]
    for rank in where:
        merged = ranks[rank][0]
        forward = next(row for row in merged["ranks"] if row["name"] == "forward")
        assert (forward["ranks"], forward["slowest_rank"]) == (3, means.index(max(means)))
        assert forward["min_ns"] == pytest.approx(min(means), rel=1e-2)
        assert forward["max_ns"] == pytest.approx(max(means), rel=1e-2)
        assert forward["mean_ns"] == pytest.approx(sum(means) / 3, rel=1e-2)
        assert forward["imbalance"] == pytest.approx(max(means) / (sum(means) / 3) - 1, rel=5e-2)
        extra = next(row for row in merged["ranks"] if row["name"] == "extra")
        assert (extra["ranks"], extra["slowest_rank"]) == (1, 1)
        counts = {row["name"]: row["count"] for row in merged["intervals"]}
        assert (counts["forward"], counts["extra"]) == (30, 10)
        iterations = {row["name"]: row["count"] for row in merged["iterations"]}
        assert iterations["forward"] == 30


def answers(folder: Path) -> dict[int, tuple[dict, list]]:
    files = [json.loads(path.read_text()) for path in folder.glob("rank*.json")]
    return {rank: (merged, alone) for rank, merged, alone in files}


@pytest.mark.needs_torch
def test_three_ranks_of_a_torch_job_merge(run_python, tmp_path):
    for dst in (0, 2, None):
        (tmp_path / f"to-{dst}").mkdir()
    run_python(
        textwrap.dedent(WORK)
        + textwrap.dedent(
            """
            import tempfile, os
            import torch.distributed as dist
            import torch.multiprocessing as mp
            def rank_main(rank, store):
                dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=3)
                stopwatch = work(rank)
                for dst in (0, 2, None):
                    show(rank, stopwatch.gather(dst=dst), stopwatch.stats(), f"to-{dst}")
                dist.destroy_process_group()
            if __name__ == "__main__":
                with tempfile.TemporaryDirectory() as folder:
                    mp.spawn(rank_main, args=(os.path.join(folder, "store"),), nprocs=3)
            """
        )
    )
    for dst in (0, 2, None):
        check(answers(tmp_path / f"to-{dst}"), {0, 1, 2} if dst is None else {dst})


def test_three_ranks_of_an_mpi_job_merge(tmp_path):
    beside_python = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    launcher = shutil.which("mpirun", path=beside_python) or shutil.which("mpiexec", path=beside_python)
    if importlib.util.find_spec("mpi4py") is None or launcher is None:
        pytest.skip("mpi4py and an MPI launcher are not both here")
    script = tmp_path / "job.py"
    script.write_text(
        textwrap.dedent(WORK)
        + textwrap.dedent(
            """
            from mpi4py import MPI
            rank = MPI.COMM_WORLD.Get_rank()
            stopwatch = work(rank)
            gathered = stopwatch.gather()
            everywhere = stopwatch.gather(MPI.COMM_WORLD, dst=None)
            assert everywhere.ranks.row(name="forward")["ranks"] == 3
            show(rank, gathered, stopwatch.stats())
            """
        )
    )
    command = [launcher, "--allow-run-as-root", "--oversubscribe", "-n", "3", sys.executable, str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    check(answers(tmp_path), {0})


def test_outside_a_job_gathering_says_what_it_needs(run_python):
    """In a process of its own: other tests may have brought mpi4py, as Lightning does."""
    done = run_python("import marey; marey.Stopwatch().gather()", check=False)
    assert "StateError" in done.stderr and "init_process_group(), or import mpi4py" in done.stderr


def measured_bytes(rank: int = 0) -> bytes:
    stopwatch = Stopwatch()
    if not stopwatch.is_enabled:
        stopwatch.enable()
    for i in range(20):
        with stopwatch("a"):
            sum(range(10 * i))
        stopwatch.finish_iter()
    return _tools.stopwatch_pack(rank)


def merged_row(parts: list[bytes], table: str, name: str) -> dict:
    return marey.Table(_tools.stopwatch_merged_table(_tools.stopwatch_merge(parts), table)).row(name=name)


def test_one_rank_alone_is_as_its_own_tables_say():
    packed = measured_bytes(7)
    stats = Stopwatch().stats()
    for table in ("intervals", "iterations"):
        merged, own = merged_row([packed], table, "a"), stats[table].row(name="a")
        assert merged["count"] == own["count" if table == "intervals" else "iterations"]
        for column in ("total_ns", "mean_ns", "std_ns", "min_ns", "max_ns"):
            assert merged[column] == pytest.approx(own[column], rel=1e-3, abs=1)
        for column in ("p50_ns", "p90_ns", "p99_ns"):
            assert merged[column] == pytest.approx(own[column], rel=3e-3, abs=1)
    assert merged_row([packed], "ranks", "a")["slowest_rank"] == 7


def test_the_order_of_ranks_makes_no_difference():
    first = measured_bytes(0)
    second = measured_bytes(1)
    third = measured_bytes(2)
    one = merged_row([first, second, third], "intervals", "a")
    other = merged_row([third, first, second], "intervals", "a")
    assert one["count"] == other["count"] == 120
    for column in ("total_ns", "std_ns", "p50_ns", "p99_ns"):
        assert one[column] == pytest.approx(other[column], rel=1e-9)


def test_a_rank_whose_stopwatch_is_off_adds_nothing():
    Stopwatch().reset()
    empty = _tools.stopwatch_pack(0)
    assert merged_row([empty, measured_bytes(1), empty], "ranks", "a")["ranks"] == 1


def test_bytes_that_are_damaged_are_refused_whatever_is_wrong():
    packed = measured_bytes()
    for wrong in (b"", b"mareyW1\n", packed[:-1], packed + b"\0", b"x" + packed[1:], bytes(len(packed))):
        with pytest.raises(marey.MareyError, match="EFORMAT"):
            _tools.stopwatch_merge([wrong])
    for at in range(28, len(packed)):
        changed = bytearray(packed)
        changed[at] ^= 0xFF
        try:
            merged = _tools.stopwatch_merge([bytes(changed)])
        except marey.MareyError:
            continue
        assert len(_tools.stopwatch_merged_table(merged, "intervals")) >= 1
    with pytest.raises(TypeError):
        _tools.stopwatch_merge(["text"])


def test_what_is_packed_is_small():
    assert len(measured_bytes()) < 2000


def test_the_head_of_what_is_packed_is_as_its_page_says():
    packed = measured_bytes(3)
    assert packed[:8] == b"mareyW1\n"
    assert int.from_bytes(packed[8:12], "little") == 2  # the whole iteration, and "a"
    assert int.from_bytes(packed[12:20], "little") == 3
    assert int.from_bytes(packed[20:28], "little") == 20
