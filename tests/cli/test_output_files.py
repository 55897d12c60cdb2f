"""`-o FILE` does not change an existing file until the new one is complete."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest

OLD = "what was there before\n"

# Each ends with status 2 and must not touch old.txt.
MISTAKES = {
    "report-sort": ["report", "run.marey", "--sort", "wrong", "-o", "old.txt"],
    "report-table": ["report", "run.marey", "--csv", "--table", "wrong", "-o", "old.txt"],
    "report-calls-sort": ["report", "run.marey", "--calls", "--sort", "wrong", "-o", "old.txt"],
    "report-samples": ["report", "run.marey", "--samples", "-o", "old.txt"],
    "report-energy": ["report", "run.marey", "--energy", "-o", "old.txt"],
    "report-memory": ["report", "run.marey", "--memory", "-o", "old.txt"],
    "report-epochs": ["report", "run.marey", "--epochs", "--sort", "wrong", "-o", "old.txt"],
    "report-html": ["report", "missing.marey", "--html", "old.txt"],
    "breakdown": ["breakdown", "run.marey", "--by", "wrong", "-o", "old.txt"],
    "compare": ["compare", "run.marey", "missing.marey", "-o", "old.txt"],
    "scale": ["scale", "run.marey", "--csv=wrong", "-o", "old.txt"],
    "diff": ["diff", "missing", "missing", "-o", "old.txt"],
    "export-window": ["export", "run.marey", "--to", "kineto", "--from", "wrong", "-o", "old.txt"],
    "export-samples": ["export", "run.marey", "--to", "pyspy", "-o", "old.txt"],
    "export-by": ["export", "run.marey", "--to", "collapsed", "--by", "wrong", "-o", "old.txt"],
    "export-calls": ["export", "run.marey", "--to", "speedscope", "--calls", "-o", "old.txt"],
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.txt"
    path.write_text(OLD)
    return path


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_leaves_the_old_file(marey, recording, old, tmp_path, name):
    done = marey(*MISTAKES[name])
    assert done.returncode == 2
    assert old.read_text() == OLD
    assert sorted(os.listdir(tmp_path)) == ["old.txt", "run.marey"]


def test_a_mistake_makes_no_file(marey, recording, tmp_path):
    assert marey("report", "run.marey", "--sort", "wrong", "-o", "new.txt").returncode == 2
    assert os.listdir(tmp_path) == ["run.marey"]


def test_a_link_and_permissions_stay(marey, recording, old, tmp_path):
    old.chmod(0o640)
    (tmp_path / "link.txt").symlink_to("old.txt")
    assert marey("report", "run.marey", "-o", "link.txt").returncode == 0
    assert (tmp_path / "link.txt").is_symlink()
    assert "outer" in old.read_text()
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    mask = os.umask(0)
    os.umask(mask)
    assert marey("report", "run.marey", "-o", "new.txt").returncode == 0
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o666 & ~mask


def test_a_file_with_two_names_stays_one(marey, recording, old, tmp_path):
    os.link(old, tmp_path / "other.txt")
    assert marey("report", "run.marey", "--sort", "wrong", "-o", "old.txt").returncode == 2
    assert old.read_text() == OLD
    assert marey("report", "run.marey", "-o", "old.txt").returncode == 0
    assert "outer" in old.read_text()
    assert (tmp_path / "other.txt").samefile(old)


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"])
@pytest.mark.parametrize("command", [["report", "run.marey"], ["export", "run.marey", "--to", "collapsed"]])
def test_standard_output_by_another_name_is_appended_to(marey, recording, old, command, path):
    with old.open("a") as file:
        assert marey(*command, "-o", path, stdout=file).returncode == 0
    assert old.read_text().startswith(OLD)
    assert "outer" in old.read_text()


def test_a_pipe_and_a_device_are_written_to(marey, recording, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()), daemon=True)
    reader.start()
    assert marey("report", "run.marey", "-o", "pipe").returncode == 0
    reader.join(30)
    assert "outer" in read[0]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert marey("report", "run.marey", "-o", "/dev/null").returncode == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_picture_does_not_take_the_place_of_a_device(marey, tmp_path):
    numpy = pytest.importorskip("numpy")
    numpy.save(tmp_path / "a.npy", numpy.zeros((4, 4), numpy.uint8))
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    assert marey("dump", "image", "a.npy", "data", "-o", "pipe").returncode == 0
    reader.join(30)
    assert read[0].startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "words",
    [
        ["report", "run.marey"],
        ["breakdown", "run.marey", "--json"],
        ["compare", "run.marey", "run.marey"],
        ["scale", "times.csv"],
        ["diff", "a.npy", "b.npy"],
        ["dump", "cat", "a.npy", "data"],
    ],
    ids=lambda words: words[0],
)
def test_a_full_disk_leaves_the_old_file(marey, recording, old, tmp_path, words):
    numpy = pytest.importorskip("numpy")
    for name, value in (("a.npy", 1.0), ("b.npy", 2.0)):
        numpy.save(tmp_path / name, numpy.full(100, value))
    times = "".join(f"ddp,{n},run {n},epoch_time_s,{epoch},{10 / n}\n" for n in (1, 2) for epoch in range(3))
    (tmp_path / "times.csv").write_text("strategy,workers,run,measure,step,value\n" + times)
    there = sorted(os.listdir(tmp_path))

    def limit() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    done = marey(*words, "-o", "old.txt", preexec_fn=limit)
    assert old.read_text() == OLD
    assert sorted(os.listdir(tmp_path)) == there
    assert done.returncode == 2 and re.search("cannot write .*File too large", done.stderr)


INTERRUPTED = """
#include <signal.h>
#include <unistd.h>
int rename(const char *from, const char *to) { (void)from, (void)to; kill(getpid(), SIGINT); return -1; }
"""


def test_ctrl_c_leaves_the_old_file_and_nothing_beside_it(marey, recording, old, tmp_path, stand_in):
    folder = stand_in("interrupted.so", INTERRUPTED)["LD_LIBRARY_PATH"]
    done = marey("report", "run.marey", "-o", "old.txt", env={"LD_PRELOAD": f"{folder}/interrupted.so"})
    assert done.returncode == -signal.SIGINT
    assert old.read_text() == OLD
    assert sorted(os.listdir(tmp_path)) == ["old.txt", "run.marey"]


def test_a_dump_that_cannot_be_shown_leaves_the_old_file(marey, old, tmp_path):
    numpy = pytest.importorskip("numpy")
    numpy.save(tmp_path / "a.npy", numpy.zeros(4, numpy.complex64))
    assert marey("dump", "cat", "a.npy", "wrong", "-o", "old.txt").returncode == 2
    assert marey("dump", "image", "a.npy", "data", "-o", "old.txt").returncode == 2
    assert old.read_text() == OLD


# ---- closed pipes ----


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["report", "--help"], ["top", "--help"]])
def test_a_reader_that_leaves_ends_it_silently(program, environment, words):
    # As a shell under a program that ignores SIGPIPE has it.
    def ignore() -> None:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [program, *words],
        stdout=write,
        stderr=subprocess.PIPE,
        env=environment,
        preexec_fn=ignore,
        restore_signals=False,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


@pytest.mark.parametrize("ignored", [True, False])
def test_the_program_of_marey_run_gets_sigpipe_as_it_was(marey, ignored):
    def prepare() -> None:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN if ignored else signal.SIG_DFL)

    done = marey(
        "run",
        "--only",
        "ranges",
        "-q",
        "--",
        "grep",
        "SigIgn",
        "/proc/self/status",
        preexec_fn=prepare,
        restore_signals=False,
    )
    mask = int(done.stdout.split()[1], 16)
    assert bool(mask >> (signal.SIGPIPE - 1) & 1) == ignored


def test_json_of_a_report_is_complete_after_a_mistake(marey, recording, tmp_path):
    assert marey("report", "run.marey", "--json", "-o", "report.json").returncode == 0
    assert marey("report", "run.marey", "--json", "--sort", "wrong", "-o", "report.json").returncode == 2
    assert json.loads((tmp_path / "report.json").read_text())["ranges"]


# ---- cells of CSV ----

CELLS = {"=cmd()": "'=cmd()", "+x": "'+x", "-name": "'-name", "@y": "'@y", "-1.5": "-1.5", "+2e3": "+2e3", "a=b": "a=b"}


@pytest.mark.parametrize("command", [["report", "--csv"], ["export", "--to", "csv", "-o", "-"]])
def test_a_spreadsheet_runs_no_name_as_a_formula(marey, tmp_path, command):
    events = [
        {"ph": "X", "name": name, "cat": "@c", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5}
        for i, name in enumerate(CELLS)
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    rows = list(csv.DictReader(io.StringIO(marey(command[0], "trace.json", *command[1:]).stdout)))
    assert sorted(row["name"] for row in rows if row["name"]) == sorted(CELLS.values())
    assert {row.get("category", "'@c") for row in rows if row["name"]} == {"'@c"}
