"""marey report: choices of tables, formats and files. The numbers themselves are tested below the command line."""

from __future__ import annotations

import csv
import json
import re
import signal

import pytest


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_the_table_is_shown(marey, recording):
    done = marey("report", recording)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("outer", 'inner "quoted"', "with text", "never ends", "lost: none", "cost"):
        assert word in done.stdout
    assert "\033" not in done.stdout


def test_colours_are_for_terminals_and_who_asks(marey, recording):
    assert "\033[" in marey("report", recording, "--color", "always").stdout
    assert "\033[" not in marey("report", recording, "--color=never").stdout


def test_json_has_what_the_manual_says(marey, recording):
    report = json.loads(marey("report", recording, "--json").stdout)
    outer = next(row for row in report["ranges"] if row["name"] == "outer")
    assert outer["count"] == 5
    assert outer.keys() >= {
        "name",
        "count",
        "total_ns",
        "self_ns",
        "mean_ns",
        "min_ns",
        "p50_ns",
        "p90_ns",
        "p99_ns",
        "max_ns",
    }
    assert report["lost_events"] == 0
    assert "cost" in report


def test_csv_is_one_table(marey, recording):
    table = rows(marey("report", recording, "--csv").stdout)
    assert {row["name"]: row["count"] for row in table}["outer"] == "5"
    totals = [int(row["total_ns"]) for row in table]
    assert totals == sorted(totals, reverse=True)


def test_markdown_is_one_table_too(marey, recording):
    lines = marey("report", recording, "--markdown", "--limit", 1).stdout.splitlines()
    assert lines[0] == "## ranges" and lines[2].startswith("| name | count |") and lines[4].startswith("| ")
    assert re.fullmatch(r"\.\.\. and \d+ more; --all shows them", lines[6])
    tree = marey("report", recording, "--tree", "--markdown").stdout
    assert tree.startswith("## tree\n\n| depth | name |") and "more" not in tree
    assert "## processes" in marey("report", recording, "--markdown", "--table", "processes").stdout
    done = marey("report", recording, "--markdown", "--json")
    assert "--json and --markdown exclude one another" in done.stderr


def test_csv_is_sorted_as_asked(marey, recording):
    names = [row["name"] for row in rows(marey("report", recording, "--csv", "-s", "name").stdout)]
    assert names == sorted(names)
    counts = [int(row["count"]) for row in rows(marey("report", recording, "--csv", "-s", "-count").stdout)]
    assert counts == sorted(counts)


@pytest.mark.parametrize("format", [[], ["--csv"], ["--json"]])
def test_an_unknown_column_is_an_error(marey, recording, format):
    done = marey("report", recording, "--sort", "colour", *format)
    assert done.returncode == 2
    assert "no column 'colour'" in done.stderr


@pytest.mark.parametrize("option, column", [("--tree", "depth"), ("--threads", "thread"), ("--ranks", "rank")])
def test_other_tables_can_be_asked_for(marey, recording, option, column):
    assert column in rows(marey("report", recording, option, "--csv").stdout)[0]
    assert marey("report", recording, option).returncode == 0


def test_a_filter_keeps_what_matches(marey, recording):
    for pattern, name in (("out*", "outer"), ("quoted", 'inner "quoted"')):
        table = rows(marey("report", recording, "--csv", "-f", pattern).stdout)
        assert [row["name"] for row in table] == [name]


def test_a_limit_says_how_many_rows_are_left_out(marey, recording):
    cut = marey("report", recording, "--limit", 1).stdout
    assert "--all" in cut
    assert "--all" not in marey("report", recording, "--all").stdout


def test_units_can_be_fixed(marey, recording):
    assert " ms" not in marey("report", recording, "--unit", "us").stdout.split("lost:")[0].split("events\n")[1]


def test_a_report_can_go_to_a_file(marey, recording, tmp_path):
    done = marey("report", recording, "--csv", "-o", "report.csv")
    assert (done.returncode, done.stdout) == (0, "")
    assert rows((tmp_path / "report.csv").read_text())
    assert marey("report", recording, "-o", "no/such/dir").returncode == 2
    assert marey("report", recording, "-o", "/dev/full").returncode == 2


def test_several_recordings_merge(marey, recording, emit):
    marey("run", "--only", "ranges", "-o", "second.marey", emit, 2)
    table = rows(marey("report", recording, "second.marey", "--csv").stdout)
    assert {row["name"]: row["count"] for row in table}["outer"] == "7"


def test_foreign_files_are_refused_with_a_sentence(marey, tmp_path):
    (tmp_path / "foreign.klog").write_bytes(b"something else entirely" * 100)
    (tmp_path / "empty.klog").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    for name in ("foreign.klog", "empty.klog", "directory", "missing.marey"):
        for command in (["report"], ["export", "--to", "csv", "-o", "-"]):
            done = marey(*command, name)
            assert (done.returncode, done.stdout) == (2, ""), name
            assert done.stderr.startswith("marey: ") and name in done.stderr


def test_an_empty_recording_is_no_error(marey, emit, tmp_path):
    (tmp_path / "mine.marey").mkdir()
    marey("run", "--only", "ranges", "-o", "mine.marey", emit)
    assert marey("report", "mine.marey").returncode == 0
    assert marey("report", "mine.marey", "--json").returncode == 0


@pytest.mark.parametrize("command", [["report"], ["export", "--to", "chrome", "-o", "-"]])
def test_a_reader_that_has_seen_enough_is_no_error(marey, start, emit, command):
    marey("run", "--only", "ranges", "-q", "-o", "long.marey", emit, 20000)
    with start(*command, "long.marey", restore_signals=False) as running:
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(20) in (0, -signal.SIGPIPE)


def test_depth_hides_rows_and_changes_no_number(marey, emit):
    assert marey("run", "--only", "ranges", "-q", "-o", "deep.marey", "--", emit, "recurse=4", "7").returncode == 0
    for table in ("ranges", "tree", "threads"):
        rows = json.loads(marey("report", "deep.marey", "--json", "--tree", "--threads").stdout)[table]
        shown = json.loads(marey("report", "deep.marey", "--json", "--tree", "--threads", "--depth", 1).stdout)[table]
        assert 0 < len(shown) < len(rows), table
        assert all(row in rows for row in shown), table
        assert {row["name"] for row in shown} == {"again", "outer"}, table


def test_an_event_is_one_whatever_it_takes_to_write_it(marey, compiled):
    large = compiled("large.c", "-pthread")
    assert (
        "recorded 1 process, 1,000 events;"
        in marey("run", "--only", "ranges", "-o", "c.marey", "--", large, "counters=1000").stderr
    )
    report = json.loads(marey("report", "c.marey", "--json").stdout)
    assert (report["processes"][0]["events"], report["cost"]["events"]) == (1000, 1000)
    assert "1 process, 1 thread" in marey("report", "c.marey").stdout
    assert "1000 events x " in marey("report", "c.marey").stdout
