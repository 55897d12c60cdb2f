"""marey export --to sqlite, read with Python's sqlite3 and with the sqlite3 shell. `marey report` gives the numbers."""

from __future__ import annotations

import csv
import json
import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def sqlite_is_built_in(marey: Callable[..., Any]) -> None:
    if "no SQLite" in marey("export", "no.marey", "--to", "sqlite").stderr:
        pytest.skip("this build has no SQLite; libsqlite3-dev was not there")


def ask(path: Path, sql: str, *values: object) -> list[dict[str, Any]]:
    """Open as a user does, without rights to repair or change anything."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def report_of(marey: Callable[..., Any], *recordings: object, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(marey("report", "--json", "--threads", "--ranks", *recordings, **more).stdout)
    return answer


def by_name(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[column] for column in ("name", *columns)) for row in rows)


STATISTICS = ("count", "total_ns", "self_ns", "mean_ns", "min_ns", "max_ns", "threads", "processes")


@pytest.fixture
def ranks(marey: Callable[..., Any], emit: Path, tmp_path: Path) -> list[Path]:
    """Two ranks in one recording, and another program in a second one."""
    for rank in "01":
        run = ("run", "--only", "ranges", "-q", "-o", "ranks.marey", emit, 300, "recurse=20", "payload", "open")
        marey(*run, env={"RANK": rank, "WORLD_SIZE": "2"})
    marey("run", "--only", "ranges", "-q", "-o", "more.marey", emit, 30000)
    return [tmp_path / "ranks.marey", tmp_path / "more.marey"]


# ---- numbers ----


def test_summaries_are_the_reports_to_the_nanosecond(marey, ranks, tmp_path):
    assert marey("export", *ranks, "-o", "all.db").returncode == 0
    report = report_of(marey, *ranks)
    assert by_name(ask(tmp_path / "all.db", "SELECT * FROM summary_by_name"), *STATISTICS) == by_name(
        report["ranges"], *STATISTICS
    )
    per_thread = ("pid", "tid", "rank", "count", "total_ns", "self_ns")
    rows = ask(tmp_path / "all.db", "SELECT * FROM summary_by_thread")
    assert sorted(by_name(rows, *per_thread), key=str) == sorted(by_name(report["threads"], *per_thread), key=str)
    per_rank = ("pid", "rank", "count", "total_ns", "self_ns")
    rows = ask(tmp_path / "all.db", "SELECT * FROM summary_by_rank")
    assert sorted(by_name(rows, *per_rank), key=str) == sorted(by_name(report["ranks"], *per_rank), key=str)
    again = next(row for row in report["ranges"] if row["name"] == "again")
    assert again["count"] * again["mean_ns"] > again["total_ns"], "recursion is part of this test"


def test_other_summaries_are_the_reports_too(marey, ranks, tmp_path):
    marey("export", *ranks, "-o", "all.db")
    report, path = report_of(marey, *ranks), tmp_path / "all.db"
    times = ("count", "total_ns", "mean_ns", "min_ns", "max_ns")
    assert by_name(ask(path, "SELECT * FROM summary_of_async"), *times) == by_name(report["async"], *times)
    values = ("count", "min", "mean", "max", "last")
    assert by_name(ask(path, "SELECT * FROM summary_of_counters"), *values) == by_name(report["counters"], *values)
    assert by_name(ask(path, "SELECT * FROM summary_of_marks"), "count") == by_name(report["marks"], "count")
    left_open = ask(
        path, "SELECT o.name, o.rank, o.start_ns - p.first_ns AS since_ns FROM open_ranges o JOIN process p USING (pid)"
    )
    assert by_name(left_open, "rank", "since_ns") == by_name(report["open"], "rank", "since_ns")
    assert len(left_open) == 2


def test_a_filter_gives_what_the_filtered_report_gives(marey, ranks, tmp_path):
    assert marey("export", *ranks, "-o", "some.db", "--filter", "again").returncode == 0
    report = json.loads(marey("report", "--json", "--filter", "again", *ranks).stdout)
    rows = ask(tmp_path / "some.db", "SELECT * FROM summary_by_name")
    assert by_name(rows, *STATISTICS) == by_name(report["ranges"], *STATISTICS)
    assert [row["name"] for row in rows] == ["again"]


def test_parents_are_the_ranges_around(marey, ranks, tmp_path):
    marey("export", *ranks, "-o", "all.db")
    path = tmp_path / "all.db"
    outside = """SELECT count(*) AS n FROM range r JOIN range p ON p.id = r.parent WHERE p.thread != r.thread
        OR p.depth != r.depth - 1 OR p.start_ns > r.start_ns
        OR p.start_ns + p.duration_ns < r.start_ns + r.duration_ns OR p.id >= r.id"""
    assert ask(path, outside) == [{"n": 0}]
    assert ask(path, "SELECT count(*) AS n FROM range WHERE (parent IS NULL) != (depth = 0)") == [{"n": 0}]
    pairs = {(row["caller"], row["name"]): row["count"] for row in ask(path, "SELECT * FROM calls")}
    assert pairs == {
        (None, "outer"): 30600,
        ("outer", 'inner "quoted"'): 30600,
        (None, "again"): 2,
        ("again", "again"): 38,
        ("again", "leaf"): 40,
        (None, "with text"): 2,
    }


def test_events_are_those_of_the_csv(marey, ranks, tmp_path):
    marey("export", *ranks, "-o", "all.db")
    lines = marey("export", *ranks, "--to", "csv", "-o", "-").stdout
    table = list(csv.DictReader(lines.splitlines(keepends=True)))
    origin = ask(tmp_path / "all.db", "SELECT value FROM meta WHERE key = 'origin_ns'")[0]["value"]
    expected = sorted(
        (int(r["process"]) + 1, r["name"], int(r["start_ns"]) - origin, r["duration_ns"], int(r["depth"]))
        for r in table
        if r["kind"] == "range"
    )
    rows = ask(tmp_path / "all.db", "SELECT process, name, start_ns, duration_ns, depth FROM ranges")
    assert expected == sorted(
        (r["process"], r["name"], r["start_ns"], "" if r["duration_ns"] is None else str(r["duration_ns"]), r["depth"])
        for r in rows
    )


def test_payloads_marks_and_places(marey, recording, tmp_path):
    marey("export", recording, "-o", "a.db")
    path = tmp_path / "a.db"
    assert ask(path, "SELECT payload FROM ranges WHERE name = 'with text'") == [{"payload": 'a"b\n,'}]
    mark = ask(path, "SELECT m.name, m.payload, r.name AS around FROM marks m JOIN ranges r ON r.id = m.range")
    assert mark == [{"name": "marked", "payload": -7, "around": "with text"}]
    place = ask(path, "SELECT category, file, line FROM ranges WHERE name = 'outer' LIMIT 1")[0]
    assert place["category"] == "test" and place["file"].endswith("emit.c") and place["line"] > 0


def test_the_clock_of_the_wall_can_be_told(marey, recording, tmp_path):
    marey("export", recording, "-o", "a.db")
    sql = """SELECT (SELECT value FROM meta WHERE key = 'origin_unix_ns') + first_ns - start_unix_ns AS after
        FROM process"""
    assert 0 <= ask(tmp_path / "a.db", sql)[0]["after"] < 60_000_000_000


# ---- the database ----


def test_it_is_a_sound_database_with_our_marks(marey, ranks, tmp_path):
    marey("export", *ranks, "-o", "all.db")
    path = tmp_path / "all.db"
    assert ask(path, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    assert ask(path, "PRAGMA foreign_key_check") == []
    assert ask(path, "PRAGMA application_id") == [{"application_id": 0x6D726579}]
    assert ask(path, "PRAGMA user_version") == [{"user_version": 1}]
    assert ask(path, "PRAGMA journal_mode") == [{"journal_mode": "delete"}], "as any other database"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["all.db", "more.marey", "ranks.marey"]


# What the example has nothing for: no loss, no iterations, no GPU.
EMPTY = ("losses", "per_iteration", "phases", "gpu_works", "summary_of_gpu", "launches", "summary_of_launches", "flows")


def test_every_view_answers(marey, ranks, tmp_path):
    marey("export", *ranks, "-o", "all.db")
    views = [row["name"] for row in ask(tmp_path / "all.db", "SELECT name FROM sqlite_master WHERE type = 'view'")]
    assert len(views) > 10
    for view in views:
        rows = ask(tmp_path / "all.db", f"SELECT * FROM {view}")
        assert rows or view in EMPTY


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 shell is not installed")
def test_the_sqlite3_shell_reads_it(marey, recording, tmp_path):
    marey("export", recording, "-o", "a.db")
    shell = ["sqlite3", "-readonly", "a.db"]
    sql = "SELECT name, count FROM summary_by_name ORDER BY name; PRAGMA integrity_check"
    done = subprocess.run([*shell, sql], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == 'inner "quoted"|5\nouter|5\nwith text|1\nok\n'


def test_it_can_be_written_to_like_any_other(marey, recording, tmp_path):
    marey("export", recording, "-o", "a.db")
    connection = sqlite3.connect(tmp_path / "a.db")
    with connection:
        connection.execute("CREATE INDEX by_parent ON range(parent)")
    assert connection.execute("SELECT count(*) FROM range WHERE parent = 1").fetchone() == (1,)
    connection.close()


def test_a_recording_without_processes_is_an_empty_database(marey, tmp_path):
    (tmp_path / "none.marey").mkdir()
    (tmp_path / "none.marey" / "meta.json").write_text('{"format": "marey recording"}')
    assert marey("export", "none.marey", "-o", "none.db").returncode == 0
    assert ask(tmp_path / "none.db", "SELECT * FROM summary_by_name") == []
    assert ask(tmp_path / "none.db", "SELECT count(*) AS n FROM process") == [{"n": 0}]


# ---- files ----


def test_a_pipe_gets_the_same_bytes(marey, recording, tmp_path):
    assert marey("export", recording, "--to", "sqlite").returncode == 0
    done = marey("export", recording, "--to", "sqlite", "-o", "-", text=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (tmp_path / "run.db").read_bytes()


@pytest.mark.parametrize("name", ["a.db", "a.sqlite"])
def test_the_ending_chooses_the_format(marey, recording, tmp_path, name):
    assert marey("export", recording, "-o", name).returncode == 0
    assert (tmp_path / name).read_bytes().startswith(b"SQLite format 3\0")


def test_an_existing_file_is_replaced(marey, recording, tmp_path):
    (tmp_path / "a.db").write_bytes(b"something else\n" * 100000)
    assert marey("export", recording, "-o", "a.db").returncode == 0
    assert ask(tmp_path / "a.db", "PRAGMA integrity_check") == [{"integrity_check": "ok"}]


def test_what_an_earlier_database_left_behind_is_refused(marey, recording, tmp_path):
    (tmp_path / "a.db-wal").write_bytes(b"of another database")
    done = marey("export", recording, "-o", "a.db")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "a.db-wal" in done.stderr and "remove it" in done.stderr
    assert not (tmp_path / "a.db").exists()


def test_a_file_that_may_not_be_made_is_an_error(marey, recording, tmp_path):
    done = marey("export", recording, "-o", "no/such/file.db")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    (tmp_path / "a.db").mkdir()
    assert marey("export", recording, "-o", "a.db").returncode == 2


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may do anything")
def test_a_file_that_may_be_written_and_not_read_is_filled_all_the_same(marey, program, recording, tmp_path):
    """The database is then made elsewhere and copied, since SQLite reads what it wrote."""
    path = tmp_path / "a.db"
    path.touch()
    path.chmod(0o222)
    command = [str(program), "export", str(recording), "-o", str(path)]
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", *command]
        for folder in (path, *path.parents[:3]):
            folder.chmod(folder.stat().st_mode | 0o111)
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    if "Permission denied" in done.stderr:
        pytest.skip(f"another user may not come here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    path.chmod(0o644)
    assert ask(path, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]


def assert_nothing_left(done: Any, folder: Path) -> None:
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert [p.name for p in folder.iterdir() if p.suffix != ".marey"] == []


def test_a_limit_on_file_sizes_leaves_no_half_database(marey, ranks, tmp_path):
    def set_limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = marey("export", *ranks, "-o", "a.db", preexec_fn=set_limit)
    assert "File too large" in done.stderr
    assert_nothing_left(done, tmp_path)
    done = marey("export", *ranks, "--to", "sqlite", "-o", "-", text=False, preexec_fn=set_limit)
    assert done.returncode == 2 and done.stdout == b"" and b"TMPDIR" in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a mebibyte."""
    folder = tmp_path / "disk.marey"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_leaves_no_half_database(marey, ranks, small_disk):
    done = marey("export", *ranks, "-o", small_disk / "a.db")
    assert "No space left" in done.stderr
    assert_nothing_left(done, small_disk)


def test_a_full_disk_for_temporary_files_names_the_variable(marey, ranks, small_disk):
    done = marey("export", *ranks, "--to", "sqlite", "-o", "-", text=False, env={"TMPDIR": str(small_disk)})
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"No space left" in done.stderr and b"TMPDIR" in done.stderr


def test_joules_are_tables_of_the_database(marey, compiled, recording, tmp_path):
    assert marey("run", "--only", "ranges", "-q", "-o", "loop.marey", "--", compiled("joules.c"), 100).returncode == 0
    want = json.loads(marey("report", "loop.marey", "--energy", "--json").stdout)
    assert marey("export", "loop.marey", "-o", "loop.db").returncode == 0
    assert [dict(row) for row in ask(tmp_path / "loop.db", "SELECT * FROM energy_epochs")] == want["epochs"]
    assert marey("export", recording, "-o", "plain.db").returncode == 0
    assert ask(tmp_path / "plain.db", "SELECT name FROM sqlite_master WHERE name LIKE 'energy%'") == []
