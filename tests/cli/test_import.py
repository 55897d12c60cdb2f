"""Files of other tools: marey import, and every command that takes a recording."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest

KINETO = Path(__file__).parent.parent / "data" / "kineto"
RANK_0, RANK_1 = KINETO / "sampled_rank-0.json.gz", KINETO / "sampled_rank-1.json.gz"


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A folder for temporary files, to detect leftovers."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def marey_here(marey, scratch):
    """Run marey with its temporary files in `scratch`, where nothing may be left."""

    def run(*args: object, **more: object):
        done = marey(*args, env={"TMPDIR": str(scratch)}, **more)
        assert list(scratch.iterdir()) == []
        return done

    return run


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    """A folder of two ranks, and a file that is not a trace."""
    folder = tmp_path / "ranks"
    folder.mkdir()
    for path in (RANK_0, RANK_1):
        shutil.copy(path, folder)
    (folder / "README.txt").write_text("Notes on the run\nmain;step 12\n")
    return folder


def trace(*events: dict[str, object], **more: object) -> str:
    return json.dumps({"traceEvents": list(events), **more})


def slice_of(name: str, begin: float, duration: float, **more: object) -> dict[str, object]:
    return {"ph": "X", "name": name, "ts": begin, "dur": duration, "pid": 1, "tid": 1, **more}


def begins_with(done, words: str) -> bool:
    return done.stderr.startswith(f"marey: {words}")


# ---- marey import ----


def test_an_import_says_what_it_read(marey_here, tmp_path):
    done = marey_here("import", RANK_0)
    assert (done.returncode, done.stdout) == (0, "")
    assert begins_with(done, "imported 4,")
    assert "of 1 file (kineto, 1." in done.stderr
    assert done.stderr.rstrip().endswith("next: marey report sampled_rank-0.marey")
    names = {path.suffix for path in (tmp_path / "sampled_rank-0.marey").iterdir()}
    assert names == {".json", ".klog"}


def test_an_import_may_be_quiet(marey_here):
    done = marey_here("import", RANK_0, "-q", "-o", "run.marey")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_imported_recording_answers_as_its_file_does(marey_here, ranks):
    assert marey_here("import", ranks, "-o", "run.marey").returncode == 0
    for options in (["--json"], ["--json", "--threads", "--ranks", "--gpu", "--iterations"]):
        answers = [marey_here("report", path, *options) for path in ("run.marey", ranks)]
        assert [done.returncode for done in answers] == [0, 0]
        tables = [json.loads(done.stdout) for done in answers]
        for table in tables:  # the sizes of logs differ by their texts
            table.pop("cost"), table.pop("processes")
        assert tables[0] == tables[1]


def test_an_import_never_replaces_what_is_there(marey_here, tmp_path):
    assert marey_here("import", RANK_0, "-o", "run.marey").returncode == 0
    before = sorted(path.name for path in (tmp_path / "run.marey").iterdir())
    done = marey_here("import", RANK_1, "-o", "run.marey")
    assert done.returncode == 2
    assert done.stderr == "marey: run.marey already contains a recording; --force replaces it\n"
    assert sorted(path.name for path in (tmp_path / "run.marey").iterdir()) == before
    done = marey_here("import", RANK_1, "-o", "run.marey", "--force")
    assert done.returncode == 0
    assert [p["rank"] for p in json.loads(marey_here("report", "run.marey", "--json").stdout)["processes"]] == [1]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("Dear all")
    done = marey_here("import", RANK_1, "-o", "full", "--force")
    assert done.returncode == 2
    assert "holds more than a recording" in done.stderr


def test_a_failed_import_leaves_nothing(marey_here, tmp_path):
    (tmp_path / "bad.json").write_text('{"traceEvents": [')
    for output in ("new.marey", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        before = sorted(os.listdir(tmp_path))
        done = marey_here("import", "bad.json", "-o", output)
        assert done.returncode == 2
        assert sorted(os.listdir(tmp_path)) == before
        assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize(
    "name, text, says",
    [
        ("notes.md", "# Notes\n", 'notes.md has an unknown format: it starts with "# Notes\\n"; known'),
        ("empty.json", "", "empty.json is empty"),
        ("none.json", '{"traceEvents": []}', "none.json"),
        ("cut.json.gz", None, "cut.json.gz"),
    ],
)
def test_what_is_no_trace_gets_one_sentence(marey_here, tmp_path, name, text, says):
    (tmp_path / name).write_bytes(gzip.compress(b"")[:12] if text is None else text.encode())
    for command in (["report", name], ["export", name], ["import", name], ["breakdown", name]):
        done = marey_here(*command)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"marey: {says}")
        assert done.stderr.count("\n") == 1


def test_a_folder_without_traces_is_reported(marey_here, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n")
    done = marey_here("report", "notes")
    assert done.returncode == 2
    assert "is not a recording" in done.stderr
    assert "contains no trace" in done.stderr


def test_a_format_can_be_taken_for_granted(marey_here, tmp_path):
    (tmp_path / "odd").write_text("# a comment first\nmain;step 12\n")
    assert marey_here("import", "odd", "--from", "collapsed").returncode == 0
    done = marey_here("import", "odd", "--from", "flac")
    assert done.returncode == 2
    assert "kineto" in done.stderr


# ---- every command ----


@pytest.mark.parametrize("source", ["file", "folder"])
def test_every_command_takes_a_trace(marey_here, ranks, tmp_path, source):
    path = RANK_0 if source == "file" else ranks
    n_ranks = 1 if source == "file" else 2
    report = marey_here("report", path, "--json")
    assert report.returncode == 0
    assert len(json.loads(report.stdout)["processes"]) == n_ranks
    assert "imported from kineto" in marey_here("report", path).stdout
    breakdown = marey_here("breakdown", path, "--json")
    assert breakdown.returncode == 0
    assert {row["rank"] for row in json.loads(breakdown.stdout)["devices"]} == set(range(n_ranks))
    compared = marey_here("compare", path, path)
    assert compared.returncode == 0
    assert "ProfilerStep#551" in compared.stdout or "(iteration)" in compared.stdout
    for form in ("perfetto", "chrome", "csv", "sqlite", "speedscope", "collapsed", "flamegraph"):
        done = marey_here("export", path, "--to", form, "-o", f"out.{form}")
        assert done.returncode == 0
        assert (tmp_path / f"out.{form}").stat().st_size > 10000


def test_an_export_keeps_the_arguments_of_events(marey_here, tmp_path):
    (tmp_path / "t.json").write_text(trace(slice_of("a", 1, 2, cat="cpu_op", args={"Input Dims": [[3, 4]], "n": 7})))
    assert marey_here("export", "t.json", "--to", "chrome", "-o", "out.json").returncode == 0
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    arguments = [event["args"] for event in events if event["ph"] in "XB" and event["name"] == "a"]
    assert arguments[0]["Input Dims"] == [[3, 4]]
    assert arguments[0]["n"] == 7


def test_times_are_exact_to_the_nanosecond(marey_here, tmp_path):
    """Microseconds with three decimals at 1.7e15 are more than a double holds."""
    text = ", ".join(
        f'{{"ph": "X", "name": "n{i}", "pid": 1, "tid": 1, "ts": {begin}, "dur": 0.{i + 1}07}}'
        for i, begin in enumerate(["1712195495505582.988", "1712195495505583.499", "1712195495505584.001"])
    )
    (tmp_path / "t.json").write_text(f'{{"traceEvents": [{text}]}}')
    done = marey_here("export", "t.json", "--to", "csv", "-o", "-")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
    starts = [int(rows[f"n{i}"]["start_ns"]) for i in range(3)]
    assert [start - starts[0] for start in starts] == [0, 511, 1013]
    assert [int(rows[f"n{i}"]["duration_ns"]) for i in range(3)] == [107, 207, 307]


def test_ranks_come_from_the_file_then_from_its_name(marey_here, tmp_path):
    said = trace(slice_of("a", 1, 2), distributedInfo={"backend": "nccl", "rank": 5, "world_size": 8})
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "rank-1.json").write_text(said)
    (tmp_path / "d" / "worker3.json").write_text(trace(slice_of("a", 1, 2)))
    (tmp_path / "d" / "trace_7.json").write_text(trace(slice_of("a", 1, 2)))
    found = json.loads(marey_here("report", "d", "--json").stdout)
    assert [process["rank"] for process in found["processes"]] == [3, 5, 7]


def test_files_without_a_rank_are_numbered(marey_here, tmp_path):
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.json").write_text(trace(slice_of(name, 1, 2)))
    done = marey_here("import", "b.json", "a.json", "c.json", "-o", "run.marey")
    assert "numbered in the order" in done.stderr
    found = json.loads(marey_here("report", "run.marey", "--json", "--ranks").stdout)
    assert {(row["rank"], row["name"]) for row in found["ranks"]} == {(0, "b"), (1, "a"), (2, "c")}


def test_two_files_of_one_rank_are_reported(marey_here, ranks):
    shutil.copy(RANK_0, ranks / "again.json.gz")
    done = marey_here("report", ranks)
    assert "again.json.gz and sampled_rank-0.json.gz both have rank 0." in done.stdout


def test_ranks_of_one_import_are_one_run(marey_here, ranks, tmp_path):
    assert marey_here("export", ranks, "-o", "out.db").returncode == 0
    with sqlite3.connect(tmp_path / "out.db") as database:
        runs = database.execute("SELECT count(*), count(DISTINCT run_id) FROM process").fetchone()
    assert runs == (2, 1)


# ---- damage ----


def test_a_trace_that_is_cut_off_is_read_as_far_as_it_goes(marey_here, tmp_path):
    whole = gzip.decompress(RANK_0.read_bytes())
    (tmp_path / "cut.json").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cut.json.gz").write_bytes(RANK_0.read_bytes()[:60000])
    for name in ("cut.json", "cut.json.gz"):
        done = marey_here("report", name)
        assert done.returncode == 0
        assert f"note: {name} is cut off" in done.stdout
        done = marey_here("export", name, "-o", "out.pftrace")
        assert done.returncode == 0
        assert f"marey: {name} is cut off" in done.stderr
        done = marey_here("import", name, "--force", "-q", "-o", "run.marey")
        assert done.returncode == 0
        assert f"marey: {name} is cut off" in done.stderr


def test_a_bad_file_among_good_ones_is_left_out_and_reported(marey_here, ranks):
    (ranks / "rank-2.json").write_text('{"traceEvents": []}')
    done = marey_here("report", ranks)
    assert done.returncode == 0
    assert "A file was left out" in done.stdout
    assert "rank-2.json" in done.stdout


def test_a_full_disk_is_one_sentence(marey_here, ranks, tmp_path):
    before = sorted(os.listdir(tmp_path))

    def limit() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    for command in (["report", ranks], ["import", ranks, "-o", "run.marey"]):
        done = marey_here(*command, preexec_fn=limit)
        assert (done.returncode, done.stdout) == (2, "")
        assert "File too large" in done.stderr
        assert done.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_nothing_is_left_of_an_import_that_was_killed(start, tmp_path, scratch, environment):
    """A pipe without an end blocks the import."""
    environment["TMPDIR"] = str(scratch)
    os.mkfifo(tmp_path / "pipe.json")
    for command in (["report", "pipe.json"], ["import", "pipe.json", "-o", "run.marey"]):
        process = start(*command)
        with open(tmp_path / "pipe.json", "w", buffering=1) as pipe:
            pipe.write('{"traceEvents": [')
            for i in range(20000):
                pipe.write(json.dumps(slice_of("a", i, 1)) + ",\n")
            deadline = time.monotonic() + 30
            while not has_temporary_file(process.pid) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert has_temporary_file(process.pid)
            process.kill()
            process.communicate()
        assert list(scratch.iterdir()) == []
        assert sorted(os.listdir(tmp_path)) == ["pipe.json", "scratch"]


def has_temporary_file(pid: int) -> bool:
    links = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(link))
        except OSError:
            continue  # closed meanwhile
    return any("(deleted)" in link for link in links)


def test_a_pipe_is_read_once(marey_here, start, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    process = start("report", "pipe", "--json")
    with open(tmp_path / "pipe", "wb") as pipe:
        pipe.write(RANK_0.read_bytes())
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert json.loads(out)["ranges"]


def test_stats_and_traces_are_distinguished(marey_here, tmp_path):
    """Both may begin with a brace."""
    (tmp_path / "t.json").write_text(trace(*[slice_of("step", 10 * i, 5) for i in range(30)]))
    done = marey_here("compare", "t.json", "t.json", "--json")
    assert done.returncode == 0
    assert [row["name"] for row in json.loads(done.stdout)["ranges"]] == ["step"]


def test_an_export_does_not_replace_its_source(marey_here, tmp_path):
    text = trace(slice_of("a", 1, 2))
    (tmp_path / "t.json").write_text(text)
    for output in ([], ["-o", "t.json"]):
        done = marey_here("export", "t.json", "--to", "chrome", *output)
        assert done.returncode == 2
        assert done.stderr == "marey: t.json is also the input; choose another file with -o\n"
    assert (tmp_path / "t.json").read_text() == text
