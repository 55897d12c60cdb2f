"""Names that are hard to write down, and files that are not what they should be."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from long_run import IS_LONG

N_FLIPS = 300 if IS_LONG else 30
FORMATS = ["perfetto", "chrome", "csv"]
CRASHES = "neither a crash nor silence"


@pytest.fixture(scope="module")
def recording(program: Any, run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "run.marey"
    run(program("finite", path, 2, 20_000, "pool=2M,policy=block"))
    return path


def names_in(run: Any, tool: str, path: Path) -> list[str]:
    report = json.loads(run([tool, "report", "--json", str(path)]).stdout)
    return [row["name"] for row in report["ranges"]]


# ---- names ----


def test_awkward_names_come_out_as_they_went_in(program: Any, run: Any, tool: str, tmp_path: Path) -> None:
    path = tmp_path / "run.marey"
    run(program("names", path, 0))
    names = names_in(run, tool, path)
    assert sorted(names) == sorted(
        [
            "double \" and single ' quotes",
            "new\nline and \ttab",
            "zero\0inside",
            "invalid \ufffd\ufffd( utf-8",
            "back\\slash",
            "<script>&amp;</script>",
            "(unnamed)",
            "\u20ac and \U0001f600",
            "x" * (1 << 20),
        ]
    )


@pytest.mark.parametrize("form", FORMATS)
def test_awkward_names_can_be_exported(program: Any, run: Any, tool: str, tmp_path: Path, form: str) -> None:
    path, out = tmp_path / "run.marey", tmp_path / "out"
    run(program("names", path, 0))
    run([tool, "export", str(path), "--to", form, "-o", str(out)])
    data = out.read_bytes()
    if form == "chrome":
        events = json.loads(data)
        assert any(event.get("name") == "zero\0inside" for event in events.get("traceEvents", events))
    assert b"\xff\xc3(" not in data, "text that leaves us is valid UTF-8"


def needs_sqlite(run: Any, tool: str) -> None:
    if "no SQLite" in run([tool, "export", "no.marey", "--to", "sqlite"], status=None).stderr:
        pytest.skip("this build has no SQLite; libsqlite3-dev was not there")


def test_awkward_names_are_text_in_a_database(program: Any, run: Any, tool: str, tmp_path: Path) -> None:
    needs_sqlite(run, tool)
    path, out = tmp_path / "run.marey", tmp_path / "out.db"
    run(program("names", path, 0))
    run([tool, "export", str(path), "-o", str(out)])
    with contextlib.closing(sqlite3.connect(out)) as database:
        names = dict(database.execute("SELECT name, name_bytes FROM site"))
        assert database.execute("SELECT count(*), sum(count) FROM summary_by_name").fetchone() == (9, 9)
    assert {name for name, kept in names.items() if kept is None} == {
        "double \" and single ' quotes",
        "new\nline and \ttab",
        "back\\slash",
        "<script>&amp;</script>",
        "(unnamed)",
        "\u20ac and \U0001f600",
        "x" * (1 << 20),
    }
    assert names["zero\u2400inside"] == b"zero\0inside"
    assert names["invalid \ufffd\ufffd( utf-8"] == b"invalid \xff\xc3( utf-8"


@pytest.mark.slow
def test_a_million_names_and_more(program: Any, run: Any, tool: str, tmp_path: Path) -> None:
    path, n = tmp_path / "run.marey", 1_100_000
    assert int(run(program("names", path, n)).stdout) == 1, "past the last id, names share the first"
    report = json.loads(run([tool, "report", "--json", str(path)]).stdout)
    counts = {row["name"]: row["count"] for row in report["ranges"]}
    assert counts["name 0"] == 1
    assert len(counts) == (1 << 20) - 1
    assert counts["(other names)"] == n - ((1 << 20) - 2)


# ---- files ----


def try_to_read(run: Any, tool: str, path: Path, tmp_path: Path) -> int:
    """Report and export; the report's status. Either status is fine, a crash is not, and neither is silence."""
    done = run([tool, "report", "--json", str(path)], status=None)
    assert done.returncode in (0, 2), f"{CRASHES}: {done.returncode} {done.stderr}"
    assert done.returncode == 0 or done.stderr.strip(), CRASHES
    exported = run([tool, "export", str(path), "--to", "chrome", "-o", str(tmp_path / "out")], status=None)
    assert exported.returncode == done.returncode, exported.stderr
    return int(done.returncode)


def copy_with(recording: Path, tmp_path: Path, data: bytes) -> Path:
    """A copy of the recording whose one log has other bytes."""
    copy = tmp_path / "copy.marey"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(recording, copy)
    next(copy.glob("*.klog")).write_bytes(data)
    return copy


def test_a_damaged_log_gives_a_database_of_the_rest(recording: Path, run: Any, tool: str, tmp_path: Path) -> None:
    needs_sqlite(run, tool)
    data = bytearray(log_of(recording))
    data[len(data) // 2] ^= 1
    path, out = copy_with(recording, tmp_path, bytes(data)), tmp_path / "out.db"
    run([tool, "export", str(path), "-o", str(out)], status=2)
    report = json.loads(run([tool, "report", "--json", str(path)], status=2).stdout)
    with contextlib.closing(sqlite3.connect(out)) as database:
        sums = "SELECT name, count, total_ns, self_ns FROM summary_by_name"
        assert sorted(database.execute(sums)) == sorted(
            (row["name"], row["count"], row["total_ns"], row["self_ns"]) for row in report["ranges"]
        )
        assert "damaged" in database.execute("SELECT text FROM warning").fetchone()[0]
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def log_of(recording: Path) -> bytes:
    return next(recording.glob("*.klog")).read_bytes()


def test_a_truncated_log_reads_as_far_as_it_goes(recording: Path, run: Any, tool: str, tmp_path: Path) -> None:
    whole = log_of(recording)
    source = random.Random(1)
    for length in [1, 47, 48, 49, len(whole) - 1, *(source.randrange(len(whole)) for _ in range(N_FLIPS // 3))]:
        status = try_to_read(run, tool, copy_with(recording, tmp_path, whole[:length]), tmp_path)
        assert status == 2 or length > 48


def test_a_flipped_bit_is_noticed(recording: Path, run: Any, tool: str, tmp_path: Path) -> None:
    whole = log_of(recording)
    source = random.Random(2)
    for _ in range(N_FLIPS):
        data = bytearray(whole)
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        path = copy_with(recording, tmp_path, bytes(data))
        if try_to_read(run, tool, path, tmp_path) == 0:
            done = run([tool, "report", str(path)])
            assert "damaged" in done.stdout + done.stderr or log_padding_changed(whole, bytes(data))


def log_padding_changed(before: bytes, after: bytes) -> bool:
    """Whether all that differs is in the zeros between blocks, which mean nothing."""
    at = 0
    while at + 48 <= len(before):
        packed_len = int.from_bytes(before[at + 20 : at + 24], "little")
        end = at + 48 + packed_len
        if before[at:end] != after[at:end]:
            return False
        at = (end + 7) & ~7
    return True


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 4096, b"not a log\n" * 100, b"\x89PNG\r\n\x1a\n" + b"x" * 100, b"MBLK" + b"\xff" * 100],
    ids=["empty", "zeros", "text", "png", "magic only"],
)
@pytest.mark.parametrize("name", ["foreign.klog", "foreign.txt"])
def test_a_foreign_file_is_refused(run: Any, tool: str, tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert try_to_read(run, tool, path, tmp_path) == 2


def test_a_foreign_folder_is_refused(run: Any, tool: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert try_to_read(run, tool, tmp_path / "folder", tmp_path) == 2
    assert try_to_read(run, tool, tmp_path / "nothing", tmp_path) == 2


def test_a_recording_of_nothing_but_foreign_logs_is_refused(
    recording: Path, run: Any, tool: str, tmp_path: Path
) -> None:
    assert try_to_read(run, tool, copy_with(recording, tmp_path, b"not a log" * 20), tmp_path) == 2


def test_a_damaged_log_beside_a_sound_one_is_reported_below_the_report(
    recording: Path, run: Any, tool: str, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.marey"
    shutil.copytree(recording, copy)
    (copy / "r1-other-1-00000000.klog").write_bytes(b"not a log" * 20)
    done = run([tool, "report", str(copy)], status=2)
    assert "number" in done.stdout, "what could be read is reported"
    assert "r1-other-1-00000000.klog" in done.stdout + done.stderr
