"""Faulty directories of many ranks: each fault is reported, and readable data is shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import rank_logs
from rank_logs import HOUR, Rank, Times


def notes(marey, path: Path, status: int = 0) -> list[str]:
    done = marey("report", path, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)["warnings"]


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "job.marey"


def test_a_whole_job_has_nothing_to_be_told(marey, folder):
    rank_logs.write(folder, rank_logs.job(24))
    assert notes(marey, folder) == []


# ---- missing ranks ----


def test_a_missing_rank_is_named(marey, folder):
    rank_logs.write(folder, [rank for rank in rank_logs.job(8) if rank.rank != 5])
    (note,) = notes(marey, folder)
    assert note.startswith("Rank 5 of 8 has no log here: not recorded, ")
    assert note.endswith("Figures are for the other 7.")


def test_many_missing_ranks_are_spans_and_a_number(marey, folder):
    missing = {3, 5, *range(16, 24), *range(100, 128), 130, 132, 134, 136, 138}
    rank_logs.write(folder, [rank for rank in rank_logs.job(160) if rank.rank not in missing])
    (note,) = notes(marey, folder)
    assert note.startswith("Ranks 3, 5, 16 to 23, 100 to 127, 130, 132 and 3 more of 160 have no log here")


def test_ranks_that_were_started_one_by_one_are_one_run(marey, folder):
    ranks = [rank._replace(run_id=f"own{rank.rank}") for rank in rank_logs.job(4)]
    rank_logs.write(folder, ranks)
    assert notes(marey, folder) == []
    rank_logs.write(folder, [Rank(0, 6, run_id="own0", pid=77)])
    assert any(note.startswith("Ranks 4 and 5 of 6 have no log here") for note in notes(marey, folder))


def test_one_run_of_two_sizes_is_reported(marey, folder):
    rank_logs.write(folder, [*rank_logs.job(4)[:3], Rank(3, 3)])
    assert any("record world sizes of 3 and 4" in note for note in notes(marey, folder))


# ---- one corrupt log among a thousand ----


def test_one_corrupt_log_among_a_thousand_is_named_skipped_and_counted(marey, folder):
    paths = rank_logs.write(folder, rank_logs.job(1000, n_iterations=3))
    paths[321].write_bytes(b"\0" * 4096)
    done = marey("report", folder, "--json")
    assert done.returncode == 2
    assert "job.marey is damaged; only the readable part is included" in done.stderr
    report = json.loads(done.stdout)
    assert len(report["processes"]) == 999
    assert report["rank_spread"][0]["ranks"] == 999
    damage, count, missing = report["warnings"]
    assert damage == f"{paths[321]} is not a marey log."
    assert count.startswith("1 of 1000 logs could not be read and was left out")
    assert missing.startswith("Rank 321 of 1000 has no log here")


def test_a_flipped_byte_costs_one_rank_a_part(marey, folder):
    paths = rank_logs.write(folder, rank_logs.job(8))
    data = bytearray(paths[3].read_bytes())
    data[len(data) // 2] ^= 1
    paths[3].write_bytes(data)
    done = marey("report", folder)
    assert done.returncode == 2
    assert f"note: {paths[3]} is damaged at byte " in done.stdout
    assert "7 processes, 7 threads" in done.stdout  # nothing is left of the other


def test_a_directory_of_corrupt_logs_is_one_sentence(marey, folder):
    for path in rank_logs.write(folder, rank_logs.job(4)):
        path.write_bytes(b"nothing of ours" * 10)
    done = marey("report", folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "has no log that can be read: " in done.stderr


# ---- versions ----


def test_a_log_of_a_newer_format_is_left_out_and_named(marey, folder):
    ranks = rank_logs.job(4)
    paths = rank_logs.write(folder, [*ranks[:3], ranks[3]._replace(version=2)])
    told = notes(marey, folder, status=2)
    assert told[0].startswith(f"{paths[3]} is in format 2, and this marey reads formats up to 1: read it with")
    assert told[1].startswith("1 of 4 logs could not be read")
    assert told[2].startswith("Rank 3 of 4 has no log here")


def test_blocks_of_a_newer_format_are_skipped(marey, folder):
    paths = rank_logs.write(folder, rank_logs.job(2))
    paths[1].write_bytes(paths[1].read_bytes() + rank_logs.block(99, b"later", version=3))
    (note,) = notes(marey, folder)
    assert note.startswith(
        f"{paths[1]} was written by a later version of marey, in format 3; this version reads formats up to 1"
    )


def test_versions_of_marey_that_differ_are_named(marey, folder):
    ranks = rank_logs.job(8)
    paths = rank_logs.write(folder, [*ranks[:7], ranks[7]._replace(marey_version="0.2.0")])
    (note,) = notes(marey, folder)
    assert "0.1.0 (7 logs, such as r0-node0-1000-00000000.klog), " in note
    assert f"0.2.0 (1 log, {paths[7].name}). All of them are read" in note


# ---- clocks ----


def test_hosts_whose_clocks_differ_by_hours_are_reported(marey, folder):
    ranks = [rank._replace(clock_ns=3 * HOUR if rank.host == "node2" else 0) for rank in rank_logs.job(32)]
    rank_logs.write(folder, ranks)
    (note,) = notes(marey, folder)
    assert note.startswith("By their clocks, the ranks on node2 began 3.00 h after those on node")
    assert "timestamps of different hosts are comparable only if their clocks agree" in note
    # Times within a rank hold, so nobody stands out.
    assert json.loads(marey("report", folder, "--json").stdout)["rank_outliers"] == []


def test_hosts_that_start_a_little_later_are_not(marey, folder):
    rank_logs.write(folder, [rank._replace(clock_ns=rank.rank * 1000) for rank in rank_logs.job(32)])
    assert notes(marey, folder) == []


# ---- ranks that are there twice ----


def test_two_processes_of_one_rank_are_reported(marey, folder):
    rank_logs.write(folder, [*rank_logs.job(8), Rank(3, 8, host="node7", pid=9)])
    (note,) = notes(marey, folder)
    assert note.startswith("Two processes ran as rank 3 at the same time, ")
    assert "9 on node7" in note and "1003 on node0" in note


def test_a_rank_that_was_started_anew_is_no_duplicate(marey, folder):
    rank_logs.write(folder, [*rank_logs.job(8), Rank(3, 8, pid=2003, start_ns=HOUR)])
    told = [note for note in notes(marey, folder) if "rank 3" in note.lower()]
    assert told == [
        "Rank 3 was restarted: process 1003 on node0 ended before process 2003 on node0 began. "
        "Its figures include both."
    ]


def test_a_log_that_was_copied_is_reported(marey, folder):
    paths = rank_logs.write(folder, rank_logs.job(4))
    (folder / "copy.klog").write_bytes(paths[2].read_bytes())
    (note,) = notes(marey, folder)
    assert note.startswith(
        "copy.klog and r2-node0-1002-00000002.klog are logs of the same process, rank 2, which is counted twice"
    )


def test_what_a_rank_started_is_no_duplicate(marey, folder):
    child = Rank(2, 4, pid=5000, ppid=1002, start_ns=500, n_iterations=2)
    rank_logs.write(folder, [*rank_logs.job(4), child])
    assert notes(marey, folder) == []


def test_of_many_duplicates_a_few_are_named(marey, folder):
    rank_logs.write(folder, [*rank_logs.job(16), *(Rank(r, 16, host="other", pid=r) for r in range(16))])
    told = [note for note in notes(marey, folder) if "Two processes" in note or "more ranks" in note]
    assert len(told) == 6
    assert told[-1] == "11 more ranks had two processes at the same time."


# ---- still being written ----


@pytest.fixture
def waiting(program, compiled, tmp_path, environment):
    """Two real ranks that record some iterations and then wait."""
    source = tmp_path / "wait.c"
    source.write_text(WAIT)
    built = compiled(str(source))
    folder = tmp_path / "live.marey"
    running = []
    for rank in range(2):
        env = {**environment, "RANK": str(rank), "WORLD_SIZE": "3", "MAREY_RUN_ID": "live"}
        command = [
            str(program),
            "run",
            "--only",
            "ranges",
            "-q",
            "-o",
            str(folder),
            "--",
            str(built),
            str(tmp_path / f"ready{rank}"),
        ]
        running.append(subprocess.Popen(command, env=env))
    while not all((tmp_path / f"ready{rank}").exists() for rank in range(2)):
        assert all(process.poll() is None for process in running)
        time.sleep(0.02)
    yield folder
    for process in running:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


WAIT = """
#include <stdio.h>
#include <unistd.h>
#include <marey/marey.h>
int main(int argc, char **argv)
{
    for (int i = 0; i < 5; i++) {
        MAREY_SCOPE("step");
        marey_iteration_finish_by("wait", 1);
    }
    fclose(fopen(argv[1], "w"));
    pause();
    return argc == 0;
}
"""


def test_recordings_still_being_written_are_shown_as_far_as_they_are(marey, waiting):
    done = marey("report", waiting, "--json")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert [row["iterations"] for row in report["iteration_ranks"]] == [5, 5]
    assert any(
        note.startswith("2 of 2 processes still record, ranks 0 and 1: the data is incomplete")
        for note in report["warnings"]
    )
    assert any(note.startswith("Rank 2 of 3 has no log here: ") for note in report["warnings"])


def test_an_empty_log_is_reported(marey, folder):
    rank_logs.write(folder, rank_logs.job(2))
    (folder / "r2-node0-1-0000.klog").write_bytes(b"")
    (note,) = notes(marey, folder)
    assert note.startswith("1 log is empty: about to be written")


# ---- other files ----


def test_a_directory_of_unrelated_files_is_one_sentence(marey, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "a.txt").write_text("hello")
    (folder / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "inner").mkdir()
    for option in ([], ["--ranks"], ["--html", str(tmp_path / "x.html")]):
        done = marey("report", folder, *option)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"marey: {folder} is not a recording (it has no log and no meta.json), and contains no trace "
            "in a known format\n"
        )
    assert not os.path.exists(tmp_path / "x.html")


def test_files_of_others_beside_logs_are_passed_over(marey, folder):
    rank_logs.write(folder, rank_logs.job(2))
    (folder / "notes.txt").write_text("mine")
    (folder / "trace.json").write_text("{}")
    assert notes(marey, folder) == []


# ---- many ranks by exception ----


def planted(rank: int, i: int) -> Times:
    """Rank 13 is slow in `forward` in three of four iterations, node4 waits for data."""
    usual = rank_logs.even(rank, i)
    if rank == 13 and i % 4 != 0:
        return usual._replace(forward=usual.forward + 30_000)
    return usual._replace(data=usual.data + 9_000) if rank // 8 == 4 else usual


def test_few_ranks_have_a_row_each(marey, folder):
    rank_logs.write(folder, rank_logs.job(16), planted)
    text = marey("report", folder, "--ranks", "--all").stdout
    assert "rank_spread" not in text
    assert text.count("forward") >= 16


def test_many_ranks_are_reported_by_exception(marey, folder):
    rank_logs.write(folder, rank_logs.job(64), planted)
    text = marey("report", folder, "--ranks").stdout
    assert "ranks: 64 on 8 hosts; an iteration takes 100 us in the median" in text
    assert "slowest: rank 13 on node1, " in text
    assert "forward is longer by " in text
    assert "outliers: 9 of 64 ranks are slow, 0 are fast" in text
    assert "host node4 is an outlier: 8 ranks, 9.0 % above those elsewhere" in text
    assert "... and 54 more; --all shows them" in text
    whole = marey("report", folder, "--ranks", "--limit", 0).stdout
    assert "more; --all shows them" not in whole
    assert len(whole.splitlines()) > 64 * 3 + 64
    assert marey("report", folder, "--ranks", "--all").stdout == whole


def test_tables_of_ranks_are_whole_in_csv_and_json(marey, folder):
    rank_logs.write(folder, rank_logs.job(64), planted)
    report = json.loads(marey("report", folder, "--ranks", "--json").stdout)
    assert (len(report["ranks"]), len(report["rank_times"]), len(report["rank_hosts"])) == (192, 64, 8)
    first = report["rank_times"][0]
    assert (first["rank"], first["host"], first["longer"], first["outlier"]) == (13, "node1", "forward", True)
    assert first["slow_share"] == pytest.approx(0.79, abs=0.04)
    for name in ("rank_spread", "rank_times", "rank_outliers", "rank_hosts", "ranks"):
        lines = marey("report", folder, "--csv", "--table", name).stdout.splitlines()
        assert len(lines) == 1 + len(report[name])
