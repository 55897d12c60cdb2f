"""Workers of torch's DataLoader: each with its rank, its number and its batches, without a line of user code."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from phase_events import counts

import marey

torch = pytest.importorskip("torch")

SCRIPT = """
    import sys, time
    import torch

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, i):
            return torch.tensor(i)

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(torch.arange(6))

    if __name__ == "__main__":
        method, data = sys.argv[1], Stream() if sys.argv[2] == "stream" else Data()
        loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=2, multiprocessing_context=method)
        print(sum(len(batch) for batch in loader))
"""


def run_under_marey(marey_command, folder, *arguments, env=None):
    script = folder / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [
        *marey_command,
        "run",
        "--only",
        "ranges",
        "-o",
        folder / "run.marey",
        "--",
        sys.executable,
        script,
        *arguments,
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **(env or {})}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), marey.load(folder / "run.marey")


def workers_of(recording):
    return [(row["rank"], row["worker"], row["batches"]) for row in recording.workers]


@pytest.mark.parametrize(
    ("method", "data", "n_batches"), [("fork", "map", 3), ("spawn", "map", 3), ("fork", "stream", 4)]
)
def test_a_program_that_knows_nothing_of_marey(marey_command, tmp_path, method, data, n_batches):
    found, recording = run_under_marey(
        marey_command, tmp_path, method, data, env={"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
    )
    assert found == "12"
    assert workers_of(recording) == [(1, 0, n_batches), (1, 1, n_batches)]
    for row in recording.workers:
        assert 0 < row["busy_ns"] <= row["duration_ns"]
        assert 0 < row["share"] <= 1
    ends = {row["worker"]: row["end"] for row in recording.processes}
    assert (ends[0], ends[1]) == ("stop", "stop")
    assert "loader workers: 2, busy " in recording.report()
    assert " of rank 1, " in recording.report()


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 7:
            with marey.range("decode"):
                return torch.tensor(i)
        return torch.tensor(i)


class FailingData(Data):
    def __getitem__(self, i):
        raise RuntimeError("a torn file")


def load(n_workers, data=None, **options):
    loader = torch.utils.data.DataLoader(data or Data(), batch_size=2, num_workers=n_workers, **options)
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_recording_of_the_program_itself(record, method):
    marey.set_rank(3, 8)
    with record() as path:
        batches = load(2, multiprocessing_context=method)
    assert batches == [[0, 1], [2, 3], [4, 5], [6, 7]]
    recording = marey.load(path)
    assert workers_of(recording) == [(3, 0, 2), (3, 1, 2)]
    assert counts(path) == {"fetch": 4, "decode": 1}
    one, other = recording.workers
    assert one["busy_ns"] + other["busy_ns"] == recording.ranges.row(name="fetch")["total_ns"]
    assert {row["worker"] for row in recording.processes} == {None, 0, 1}


def test_workers_that_stay_are_reported_once(record):
    with record() as path:
        loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1, persistent_workers=True)
        assert len(list(loader)) == len(list(loader)) == 4
        del loader
    assert workers_of(marey.load(path)) == [(None, 0, 8)]
    assert "of the program, " in marey.load(path).report()


def test_workers_of_the_next_epoch_go_by_the_same_numbers(record):
    with record() as path:
        assert load(1) == load(1)
    assert workers_of(marey.load(path)) == [(None, 0, 4)] * 2
    assert "loader workers: 1, busy " in marey.load(path).report()


def test_without_workers_and_without_a_recording_nothing_is_recorded(record):
    with record() as path:
        assert load(0)
    assert workers_of(marey.load(path)) == []
    assert load(1) == load(0)


def test_a_fault_in_a_worker_arrives_as_it_would(record):
    with record() as path, pytest.raises(RuntimeError, match="a torn file"):
        load(1, FailingData())
    assert counts(path)["fetch"] >= 1
    assert len(marey.load(path).open) == 0


def test_names_in_exports_tell_the_worker(record, tmp_path):
    marey.set_rank(3, 8)
    with record() as path:
        load(1)
    marey.load(path).export("chrome", tmp_path / "trace.json")
    assert "rank 3 worker 0 " in (tmp_path / "trace.json").read_text()
    marey.load(path).export("collapsed", tmp_path / "stacks.txt", by="rank")
    assert "rank 3 worker 0;fetch" in (tmp_path / "stacks.txt").read_text()


def test_a_process_can_say_so_while_it_records(record):
    with record() as path:
        marey.mark("before")
        marey._native.set_worker(5)
    assert workers_of(marey.load(path)) == [(None, 5, 0)]
    marey.reset()
    with record("later.marey") as path:
        marey.mark("after")
    assert workers_of(marey.load(path)) == []
