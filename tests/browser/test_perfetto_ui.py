"""Exports opened in the real Perfetto UI: it shows what was recorded, to the nanosecond.

Each test runs with the Perfetto trace, with the TAR of traces and with the Chrome JSON. Each is compared with the CSV
export and the report, which tests/cli checks against the recorded program. Screenshots are stored in build/screenshots,
or in MAREY_SCREENSHOTS.
"""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import perfetto_page
import pytest
from marey_command import run_marey

import marey

pytestmark = pytest.mark.skipif(bool(perfetto_page.what_is_missing()), reason=perfetto_page.what_is_missing())

EMPTY_TEXT = "payload 8"  # a payload that the CSV cannot distinguish from none
WORKLOAD = Path(__file__).parent / "timeline_workload.py"
SCREENSHOTS = Path(os.environ.get("MAREY_SCREENSHOTS", Path(__file__).parents[2] / "build" / "screenshots"))
Row = dict[str, Any]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks, each with three threads that measure and a child process."""
    path = tmp_path_factory.mktemp("ui") / "traces" / "run.marey"
    path.parent.mkdir()
    for rank in "01":
        command = ("--", sys.executable, WORKLOAD)
        run_marey("run", "--only", "ranges", "-q", "--append", "-o", path, *command, RANK=rank, WORLD_SIZE="2")
    for name in ("run.pftrace", "run.tar", "run.json", "run.csv"):
        run_marey("export", path, "-o", path.with_name(name))
    return path


@pytest.fixture(scope="module")
def events(recording: Path) -> list[Row]:
    """The recording, event by event."""
    with recording.with_name("run.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def address(recording: Path) -> Iterator[str]:
    with perfetto_page.served(recording.parent) as at:
        yield at


class Opened:
    """A trace in the UI, and how its format differs from the other one."""

    def __init__(self, page: perfetto_page.PerfettoPage, recording: Path, format: str) -> None:
        self.page = page
        self.format = format
        self.query = page.query
        self.is_chrome = format == "json"
        # Chrome's times are relative to the first event; ours are CLOCK_MONOTONIC.
        self.origin_ns = 0
        if self.is_chrome:
            trace = json.loads(recording.with_name("run.json").read_text(encoding="utf-8"))
            self.origin_ns = int(trace["otherData"]["origin_monotonic_ns"])
        self.payload_key = "args.payload" if self.is_chrome else "debug.payload"
        self.counter_suffix = " value" if self.is_chrome else ""


@pytest.fixture(scope="module", params=["pftrace", "tar", "json"])
def ui(request: pytest.FixtureRequest, browser: Any, address: str, recording: Path) -> Iterator[Opened]:
    page = perfetto_page.PerfettoPage(browser, address, f"run.{request.param}")
    yield Opened(page, recording, request.param)
    page.close()


# ---- the trace as a whole ----


def test_nothing_is_refused(ui):
    assert ui.query("select name, idx, value from stats where severity in ('error', 'data_loss') and value > 0") == []


def test_the_clock_is_the_recordings(ui, events):
    starts = [int(e["start_ns"]) for e in events]
    (bounds,) = ui.query("select start_ts, end_ts from trace_bounds")
    assert bounds["start_ts"] + ui.origin_ns == min(starts)
    # For the engine the range without an end, the last event, ends 1 ns before it begins.
    assert bounds["end_ts"] + ui.origin_ns >= max(starts) - 1


# ---- tracks ----


def test_processes_and_threads_have_their_names(ui, events):
    shown = ui.query("select pid, tid, p.name process, t.name thread from thread t join process p using (upid)")
    named = {(s["pid"], s["tid"]): (s["process"], s["thread"]) for s in shown if s["pid"] != 0}
    # The CSV has async ranges with the thread of their begin; the thread of the end is only in the trace.
    receivers = [key for key, (_, thread) in named.items() if thread == "receiver"]
    assert len(receivers) == 2
    assert {key: names for key, names in named.items() if key not in receivers} == {
        (int(e["pid"]), int(e["tid"])): (f"rank {e['rank']} timeline_workload.py", e["thread"]) for e in events
    }


def test_tracks_are_listed_by_rank_with_the_main_thread_first(ui):
    """A child measures little; the UI puts processes with more to show above those with less."""
    processes = [(title, [name for name, _ in tracks]) for title, tracks in ui.page.titles() if title != "System"]
    assert [title.split(".py ")[0] for title, _ in processes] == 2 * [
        "rank 0 timeline_workload",
        "rank 1 timeline_workload",
    ]
    for title, tracks in processes:
        assert tracks[0].endswith(title.split()[-1])
        assert "loss" + ui.counter_suffix in tracks
    for _, tracks in processes[:2]:
        assert [name.rsplit(" ", 1)[0] for name in tracks[1:3]] == ["loader 0", "loader 1"]
        assert {"transfer", "hand over"} <= set(tracks)
        assert {name + ui.counter_suffix for name in ("batches waiting", "zigzag")} <= set(tracks)


def test_the_page_shows_every_process(ui):
    shown = ui.page.page.inner_text("body")
    for title, _ in ui.page.titles():
        assert title in shown


def test_a_picture_of_the_page_is_kept(ui):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"perfetto-{ui.format}.png"
    ui.page.page.screenshot(path=path)
    assert path.stat().st_size > 50_000, f"{path} shows next to nothing"
    print(f"see {path}")


# ---- events ----


def plain(text: str) -> str:
    r"""v52 of the engine leaves \\ and \n of a JSON text as they are; here both sides are read once more."""
    return text.replace("\\\\", "\\").replace("\\n", "\n")


THREAD_SLICES = """
select s.id, pid, tid, s.name, category, ts, dur, depth
from slice s join thread_track tt on s.track_id = tt.id join thread using (utid) join process using (upid)
"""


def test_ranges_and_marks_are_where_they_were(ui, events):
    shown = [
        (s["pid"], s["tid"], plain(s["name"]), s["category"] or "", s["ts"] + ui.origin_ns, s["dur"], s["depth"])
        for s in ui.query(THREAD_SLICES)
    ]
    # The UI gives a mark no duration, and -1 to what never ended.
    without_end = {"range": -1, "mark": 0}
    recorded = [
        (
            *(int(e["pid"]), int(e["tid"]), plain(e["name"]), e["category"], int(e["start_ns"])),
            *(int(e["duration_ns"] or without_end[e["kind"]]), int(e["depth"])),
        )
        for e in events
        if e["kind"] in ("range", "mark")
    ]
    assert sorted(shown) == sorted(recorded)
    assert len([s for s in shown if s[2] == "never ends" and s[5] == -1]) == 2


def test_totals_are_the_reports(ui, recording):
    shown: dict[str, list[int]] = defaultdict(list)
    for s in ui.query(THREAD_SLICES):
        if s["dur"] > 0:
            shown[plain(s["name"])].append(s["dur"])
    report = json.loads(run_marey("report", recording, "--json"))
    assert {name: (len(times), sum(times), min(times), max(times)) for name, times in shown.items()} == {
        plain(r["name"]): (r["count"], r["total_ns"], r["min_ns"], r["max_ns"]) for r in report["ranges"]
    }


def test_each_rank_has_its_own_totals(ui, recording):
    """The labels of tracks have the rank; their events belong to that rank, by name."""
    shown: dict[tuple[int, str], list[int]] = defaultdict(list)
    for s in ui.query(
        "select s.name, dur, p.name process from slice s join thread_track tt on s.track_id = tt.id "
        "join thread using (utid) join process p using (upid)"
    ):
        if s["dur"] > 0:
            shown[int(s["process"].split()[1]), plain(s["name"])].append(s["dur"])
    # A rank's child has its parent's rank, and separate rows.
    reported: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in json.loads(run_marey("report", recording, "--ranks", "--json"))["ranks"]:
        totals = reported[row["rank"], plain(row["name"])]
        totals[:] = totals[0] + row["count"], totals[1] + row["total_ns"]
    assert {key: [len(times), sum(times)] for key, times in shown.items()} == reported
    assert {rank for rank, _ in shown} == {0, 1}


def test_async_ranges_overlap_and_end_on_another_thread(ui, events):
    shown = ui.query(
        "select pid, s.name, ts, dur from slice s join process_track pt on s.track_id = pt.id join process using (upid)"
    )
    assert sorted((s["pid"], s["name"], s["ts"] + ui.origin_ns, s["dur"]) for s in shown) == sorted(
        (int(e["pid"]), e["name"], int(e["start_ns"]), int(e["duration_ns"])) for e in events if e["kind"] == "async"
    )
    assert len(shown) == 12


COUNTERS = """
select pid, ct.name, ts, value
from counter c join process_counter_track ct on c.track_id = ct.id join process using (upid)
"""


def test_counters_have_their_values(ui, events):
    shown = [
        (s["pid"], s["name"], s["ts"] + ui.origin_ns, s["value"])
        for s in ui.query(COUNTERS)
        if not s["name"].startswith("diverged")
    ]
    assert sorted(shown) == sorted(
        (int(e["pid"]), e["name"] + ui.counter_suffix, int(e["start_ns"]), float(e["value"]))
        for e in events
        if e["kind"] == "counter" and e["name"] != "diverged"
    )


def test_a_counter_that_diverges_is_seen_to(ui):
    """Infinity, then NaN, which SQL has as null."""
    shown = [s["value"] for s in ui.query(COUNTERS) if s["name"].startswith("diverged")]
    assert shown == [math.inf, None, math.inf, None]


def as_recorded(arg: Row) -> str:
    """An argument as the CSV writes it."""
    if arg["int_value"] is not None:
        return str(arg["int_value"])
    if arg["real_value"] is not None:
        return str(arg["real_value"])
    return plain(arg["string_value"] or "")


def test_payloads_are_arguments(ui, events):
    shown = ui.query(
        "select tid, ts, s.name, int_value, real_value, string_value from slice s join args using (arg_set_id) "
        "join thread_track tt on s.track_id = tt.id join thread using (utid) "
        f"where key = '{ui.payload_key}'"
    )
    assert sorted((s["tid"], s["ts"] + ui.origin_ns, s["name"], as_recorded(s)) for s in shown) == sorted(
        (int(e["tid"]), int(e["start_ns"]), e["name"], "NaN" if e["value"] == "nan" else plain(e["value"]))
        for e in events
        if e["kind"] in ("range", "mark") and (e["value"] != "" or e["name"] == EMPTY_TEXT)
    )


def test_ranges_know_their_source(ui, recording):
    shown = ui.query(
        "select distinct s.name, file.string_value file, line.int_value line from slice s "
        "join args file on s.arg_set_id = file.arg_set_id and file.key = 'source.file_name' "
        "join args line on s.arg_set_id = line.arg_set_id and line.key = 'source.line_number'"
    )
    # Chrome's format has no place for it.
    sites = [] if ui.is_chrome else marey.load(recording).sites
    timed = {s["name"] for s in ui.query("select name from slice")}
    assert {(s["name"], s["file"], s["line"]) for s in shown} == {
        (s["name"], s["file"], s["line"]) for s in sites if s["name"] in timed and s["file"]
    }


# ---- a trace for each process ----


def test_a_tar_is_read_trace_by_trace(ui, events):
    files = [file for file in ui.query("select name, trace_type from __intrinsic_trace_file") if file["name"]]
    traces = [file for file in files if file["name"].endswith(".pftrace") and file["trace_type"] == "proto"]
    assert len(traces) == (len({e["pid"] for e in events}) if ui.format == "tar" else 0)


NAMESPACE = ("unshare", "--user", "--map-root-user", "--uts")


def run_on(host: str, path: Path, rank: str) -> None:
    """Record in a namespace with a different host name, to simulate another machine."""
    rename = "import os, socket, sys; socket.sethostname(sys.argv[1]); os.execv(sys.argv[2], sys.argv[2:])"
    command = ("run", "--only", "ranges", "-q", "--append", "-o", path, "--", sys.executable, WORKLOAD)
    run_marey(*command, before=(*NAMESPACE, sys.executable, "-c", rename, host), RANK=rank, WORLD_SIZE="2")


def test_ranks_of_two_machines_share_the_wall_clock(browser, address, recording):
    if subprocess.run([*NAMESPACE, "true"], check=False).returncode != 0:
        pytest.skip("this machine gives no namespace with a host name of its own")
    path = recording.with_name("two.marey")
    for rank, host in enumerate(("node-a", "node-b")):
        run_on(host, path, str(rank))
    run_marey("export", path, "-o", path.with_name("two.csv"))
    run_marey("export", path, "-o", path.with_name("two.tar"))
    with path.with_name("two.csv").open(newline="", encoding="utf-8") as file:
        recorded = [e for e in csv.DictReader(file) if e["kind"] in ("range", "mark")]
    page = perfetto_page.PerfettoPage(browser, address, "two.tar")
    shown = page.query(THREAD_SLICES)
    assert sorted((plain(s["name"]), s["ts"]) for s in shown) == sorted(
        (plain(e["name"]), int(e["start_ns"])) for e in recorded
    )
    assert min(s["ts"] for s in shown) > 1_600_000_000 * 10**9
    page.close()


# ---- several recordings ----


def test_processes_whose_pids_repeat_stay_apart(browser, address, recording, events):
    """The same recording twice simulates two containers whose programs have the same pid."""
    run_marey("export", recording, recording, "-o", recording.with_name("twice.pftrace"))
    page = perfetto_page.PerfettoPage(browser, address, "twice.pftrace")
    assert len([title for title, _ in page.titles() if title != "System"]) == 8
    shown = page.query(THREAD_SLICES)
    assert len(shown) == 2 * len([e for e in events if e["kind"] in ("range", "mark")])
    assert {s["pid"] for s in shown} == set(range(1, 9))
    page.close()
