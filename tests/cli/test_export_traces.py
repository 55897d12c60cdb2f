"""marey as a converter: traces and profiles of other tools, exported.

The public traces of tests/data/kineto are read here independently, as JSON with decimal numbers, and compared with
marey's output: the same events, times to the nanosecond, categories, arguments, correlations and flows.
"""

from __future__ import annotations

import collections
import cProfile
import gzip
import json
import os
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from built import needs_sqlite

KINETO = sorted((Path(__file__).parent.parent / "data" / "kineto").glob("*.json.gz"))
GPU = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync")
each_trace = pytest.mark.parametrize("path", KINETO, ids=lambda path: path.name.split(".")[0])


def test_there_are_traces() -> None:
    assert len(KINETO) == 7


# ---- reading a trace ----


class Trace:
    """Events of a Chrome or Kineto trace, with times in whole nanoseconds since 1970."""

    def __init__(self, path: Path) -> None:
        written = path.read_bytes()
        document = json.loads(gzip.decompress(written) if path.suffix == ".gz" else written, parse_float=Decimal)
        self.document = document
        self.base = int(document.get("baseTimeNanoseconds", 0))
        self.events = [event for event in document["traceEvents"] if event["ph"] != "M"]
        self.meta = [event for event in document["traceEvents"] if event["ph"] == "M"]

    def ns(self, event: dict[str, Any]) -> int:
        ns = Decimal(event["ts"]) * 1000
        assert ns == int(ns)
        return self.base + int(ns)

    def slices(self) -> list[dict[str, Any]]:
        """Ranges and GPU activity. Kineto's frame around everything, of category Trace, is a mark in marey."""
        return [event for event in self.events if event["ph"] == "X" and event.get("cat") != "Trace"]

    def work(self) -> list[dict[str, Any]]:
        return [event for event in self.slices() if event["cat"] in GPU]

    def flows(self) -> collections.Counter[Any]:
        """Arrows that are in the trace and not made of correlations."""
        arrows = [event for event in self.events if event["ph"] in "stf" and event["cat"] != "ac2g"]
        return collections.Counter(
            (event["ph"], event["id"], event["tid"], self.ns(event), event["cat"], event["name"]) for event in arrows
        )

    def counted(self) -> collections.Counter[Any]:
        """Every slice: where, what, when, how long, with which arguments."""
        return collections.Counter(
            (
                event["pid"] if event["cat"] in GPU else None,  # Kineto has one process, whatever pids it writes
                event["tid"],
                event["name"],
                event["cat"],
                self.ns(event),
                int(Decimal(event["dur"]) * 1000),
                json.dumps(event.get("args", {}), sort_keys=True, default=str),
            )
            for event in self.slices()
        )


@each_trace
def test_a_chrome_export_is_the_trace_it_came_from(marey, tmp_path, path):
    assert marey("export", path, "--to", "chrome", "-o", "again.json").returncode == 0
    before, after = Trace(path), Trace(tmp_path / "again.json")
    assert after.counted() == before.counted()
    assert after.flows() == before.flows()
    for key in ("rank", "world_size", "backend"):
        expected = before.document.get("distributedInfo", {}).get(key)
        assert after.document.get("distributedInfo", {}).get(key) == expected
    names = {e["name"] for e in before.events if e["ph"] == "i" or e.get("cat") == "Trace"}
    assert {e["name"] for e in after.events if e["ph"] == "i"} == names


@each_trace
def test_launches_and_their_work_have_arrows(marey, tmp_path, path):
    assert marey("export", path, "--to", "chrome", "-o", "again.json").returncode == 0
    trace = Trace(tmp_path / "again.json")
    ends = collections.Counter(e["id"] for e in trace.events if e["ph"] == "f" and e["cat"] == "ac2g")
    begins = {e["id"]: trace.ns(e) for e in trace.events if e["ph"] == "s" and e["cat"] == "ac2g"}
    with_correlation = collections.Counter(
        e["args"]["correlation"] for e in trace.work() if e["args"].get("correlation", 0) > 0
    )
    assert ends == with_correlation
    launches = [e for e in trace.slices() if e["cat"] in ("cuda_runtime", "cuda_driver")]
    assert begins == {e["args"]["correlation"]: trace.ns(e) for e in launches if "correlation" in e["args"]}


def listed(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what depends on the log's size and on the order of rows that are equal otherwise."""
    for process in report["processes"]:
        del process["log_bytes"]
    del report["cost"]
    return {
        key: sorted(map(json.dumps, rows)) if isinstance(rows, list) and key != "tree" else rows
        for key, rows in report.items()
    }


@each_trace
def test_what_was_exported_reports_as_the_trace_does(marey, tmp_path, path):
    assert marey("export", path, "--to", "chrome", "-o", "again.json").returncode == 0
    before = json.loads(marey("report", path, "--json", "--threads").stdout)
    after = json.loads(marey("report", "again.json", "--json", "--threads").stdout)
    assert listed(after) == listed(before)
    assert before["ranges"]


# ---- SQLite against the report ----


def ask(database: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@each_trace
@needs_sqlite
def test_sums_in_sql_are_those_of_the_report(marey, tmp_path, path):
    assert marey("export", path, "-o", "trace.db").returncode == 0
    report = json.loads(marey("report", path, "--json").stdout)
    database = tmp_path / "trace.db"
    columns = ("name", "kind", "count", "total_ns", "mean_ns", "min_ns", "max_ns", "streams", "devices", "processes")
    kernels = ask(database, f"SELECT {', '.join(columns)} FROM summary_of_gpu")
    assert sorted(kernels) == sorted(tuple(row[c] for c in columns) for row in report["kernels"])
    launches = ask(database, "SELECT name, count, gpu_ns, self_gpu_ns FROM summary_of_launches")
    columns = ("name", "count", "gpu_ns", "self_gpu_ns")
    assert sorted(launches) == sorted(tuple(row[c] for c in columns) for row in report["gpu_ranges"])
    ranges = ask(database, "SELECT name, count, total_ns, self_ns FROM summary_by_name")
    columns = ("name", "count", "total_ns", "self_ns")
    assert sorted(ranges) == sorted(tuple(row[c] for c in columns) for row in report["ranges"])


@each_trace
@needs_sqlite
def test_rows_in_sql_are_the_events_of_the_trace(marey, tmp_path, path):
    assert marey("export", path, "-o", "trace.db").returncode == 0
    database, trace = tmp_path / "trace.db", Trace(path)
    (origin,) = ask(database, "SELECT value FROM meta WHERE key = 'origin_unix_ns'")[0]
    work = ask(database, "SELECT device, stream_number, name, start_ns, duration_ns, correlation FROM gpu_works")
    assert collections.Counter((d, s, n, origin + t, ns, c) for d, s, n, t, ns, c in work) == collections.Counter(
        (
            e["pid"],
            e["tid"],
            e["name"],
            trace.ns(e),
            int(Decimal(e["dur"]) * 1000),
            e["args"].get("correlation") or None,
        )
        for e in trace.work()
    )
    arguments = ask(database, "SELECT json FROM arguments")
    expected = [e["args"] for e in trace.slices() if "args" in e]
    assert sorted(json.dumps(json.loads(text), sort_keys=True) for (text,) in arguments) == sorted(
        json.dumps(args, sort_keys=True, default=float) for args in expected
    )


# ---- Perfetto ----


class Slices:
    """The slices of a Perfetto trace by track, read with Perfetto's own classes."""

    def __init__(self, path: Path) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

        self.tracks: dict[int, Any] = {}
        self.found: list[tuple[int, str, int, int, dict[str, Any], list[int]]] = []
        sequences: dict[int, dict[str, Any]] = collections.defaultdict(lambda: {"names": {}, "now": 0, "track": 0})
        events: dict[int, list[tuple[int, int, Any, str]]] = collections.defaultdict(list)
        trace = pb.Trace()
        trace.ParseFromString(path.read_bytes())
        for packet in trace.packet:
            sequence = sequences[packet.trusted_packet_sequence_id]
            if packet.HasField("trace_packet_defaults"):
                sequence["track"] = packet.trace_packet_defaults.track_event_defaults.track_uuid
            for clock in packet.clock_snapshot.clocks:
                if clock.clock_id == 64:
                    sequence["now"] = clock.timestamp
            for name in packet.interned_data.event_names:
                sequence["names"][name.iid] = name.name
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if packet.HasField("track_event"):
                event = packet.track_event
                at = packet.timestamp
                if not packet.timestamp_clock_id:
                    at = sequence["now"] = sequence["now"] + packet.timestamp
                name = event.name or sequence["names"].get(event.name_iid, "")
                track = event.track_uuid or sequence["track"]
                events[track].append((at, len(events[track]), event, name))
        for track, list_of in events.items():
            self.nest(pb, track, sorted(list_of, key=lambda entry: entry[:2]))

    def nest(self, pb: Any, track: int, events: list[tuple[int, int, Any, str]]) -> None:
        """Match like a viewer: an end closes the last begin. Nothing may remain."""
        stack: list[tuple[str, int, dict[str, Any], list[int]]] = []
        for at, _, event, name in events:
            notes = {a.name: a for a in event.debug_annotations}
            flows = [*event.flow_ids, *event.terminating_flow_ids]
            if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
                stack.append((name, at, notes, flows))
            elif event.type == pb.TrackEvent.TYPE_SLICE_END:
                begun, start, first, arrows = stack.pop()
                self.found.append((track, begun, start, at - start, {**first, **notes}, arrows + flows))
        assert not stack

    def stream_of(self, track: int) -> tuple[int, int] | None:
        """Device and stream; None for a thread."""
        descriptor = self.tracks[track]
        parent = self.tracks.get(descriptor.parent_uuid)
        if parent is None or not parent.name.startswith("GPU "):
            return None
        number = descriptor.name.removeprefix("stream ").split()[0]
        return int(parent.name.removeprefix("GPU ")), int(number) if number.lstrip("-").isdigit() else -1


@each_trace
def test_perfetto_has_a_slice_for_each_event(marey, tmp_path, path):
    pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    assert marey("export", path, "-o", "trace.pftrace").returncode == 0
    trace, slices = Trace(path), Slices(tmp_path / "trace.pftrace")
    found = collections.Counter(
        (slices.stream_of(t), name, start, ns)
        for t, name, start, ns, _, _ in slices.found
        if not slices.tracks[t].name.startswith("finding: ")
    )
    expected = collections.Counter(
        (
            (e["pid"], e["tid"]) if e["cat"] in GPU else None,
            e["name"],
            trace.ns(e),
            int(Decimal(e["dur"]) * 1000),
        )
        for e in trace.slices()
    )
    iterations = [e for e in expected if e[0] is None and e[1].startswith("ProfilerStep#")]
    steps = collections.Counter((None, f"iteration {name.split('#')[1]}", ns, dur) for _, name, ns, dur in iterations)
    assert found == expected + steps


@each_trace
def test_perfetto_has_arrows_and_arguments(marey, tmp_path, path):
    pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    assert marey("export", path, "-o", "trace.pftrace").returncode == 0
    slices = Slices(tmp_path / "trace.pftrace")
    by_correlation: dict[int, set[int]] = collections.defaultdict(set)
    for _, _, _, _, notes, flows in slices.found:
        if "correlation" in notes and notes["correlation"].int_value > 0:
            assert flows, notes
            by_correlation[notes["correlation"].int_value].update(flows[:1])
    # A launch and its work have the same number, and no other pair has it.
    assert all(len(numbers) == 1 for numbers in by_correlation.values())
    assert len(set.union(set(), *by_correlation.values())) == len(by_correlation)
    has_launches = any(e["cat"] == "cuda_runtime" for e in Trace(path).slices())
    assert bool(by_correlation) == has_launches
    for event in Trace(path).work():
        if "grid" in event["args"]:
            found = [s for s in slices.found if s[1] == event["name"] and slices.stream_of(s[0]) is not None]
            grids = [notes["grid"] for _, _, _, _, notes, _ in found]
            assert [v.int_value for v in grids[0].array_values] == event["args"]["grid"]
            break


def submitted(event: Any) -> list[int]:
    """Of a track event, the GPU events it says it launched: an extension that its classes do not know."""
    unknown_fields = pytest.importorskip("google.protobuf.unknown_fields")
    ids = []
    for field in unknown_fields.UnknownFieldSet(event):
        assert field.field_number == 3000
        pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
        # Any message reads the bytes of another: field 1, a number.
        inner = pb.InternedGraphicsContext.FromString(field.data)
        ids.append(inner.iid)
    return ids


@each_trace
def test_native_gpu_events_know_their_launch(marey, tmp_path, path):
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    assert marey("export", path, "--to", "perfetto-gpu", "-o", "trace.pftrace").returncode == 0
    packets = pb.Trace.FromString((tmp_path / "trace.pftrace").read_bytes()).packet
    stages = {
        (p.trusted_packet_sequence_id, spec.iid): spec.name
        for p in packets
        for spec in p.interned_data.gpu_specifications
    }
    found = [p for p in packets if p.HasField("gpu_render_stage_event")]
    trace = Trace(path)
    expected = collections.Counter(
        (e["name"], e["pid"], int(Decimal(e["dur"]) * 1000), tuple(e["args"].get("grid", ()))) for e in trace.work()
    )
    assert expected == collections.Counter(
        (stages[p.trusted_packet_sequence_id, g.stage_iid], g.gpu_id, g.duration, shape_of(g.launch.grid_size))
        for p in found
        for g in [p.gpu_render_stage_event]
    )
    # A launch and its work have the same number.
    launched = {n for p in packets if p.HasField("track_event") for n in submitted(p.track_event)}
    launches = {e["args"]["correlation"] for e in trace.slices() if "runtime" in e["cat"] or "driver" in e["cat"]}
    linked = [p for p in found if p.gpu_render_stage_event.event_id in launched]
    assert len(linked) == sum(e["args"].get("correlation") in launches for e in trace.work())
    assert not any(p.track_event.flow_ids for p in packets if submitted(p.track_event))


def shape_of(size: Any) -> tuple[int, ...]:
    return (size.x, size.y, size.z) if size.x else ()


# ---- every kind of file, every format ----

COLLAPSED = "main;train;forward 30\nmain;train;backward 50\nmain;load data 20\n"
SPEEDSCOPE = {
    "$schema": "https://www.speedscope.app/file-format-schema.json",
    "shared": {"frames": [{"name": "main", "file": "a.py", "line": 1}, {"name": "inner"}]},
    "profiles": [
        {
            "type": "evented",
            "name": "main",
            "unit": "milliseconds",
            "startValue": 0,
            "endValue": 10,
            "events": [
                {"type": "O", "frame": 0, "at": 0},
                {"type": "O", "frame": 1, "at": 2},
                {"type": "C", "frame": 1, "at": 5},
                {"type": "C", "frame": 0, "at": 10},
            ],
        }
    ],
}
VIZTRACER = {
    "traceEvents": [
        {"ph": "M", "pid": 7, "tid": 7, "name": "process_name", "args": {"name": "MainProcess"}},
        {"ph": "X", "pid": 7, "tid": 7, "ts": 10.5, "dur": 20.25, "name": "f (/a/b.py:12)", "cat": "FEE"},
        {"ph": "X", "pid": 7, "tid": 7, "ts": 11, "dur": 2, "name": "g (/a/b.py:20)", "cat": "FEE"},
    ],
    "viztracer_metadata": {"version": "1.1.0"},
}


def inner() -> int:
    return sum(range(1000))


def outer() -> list[int]:
    return [inner() for _ in range(20)]


@pytest.fixture
def foreign(tmp_path: Path) -> dict[str, Path]:
    """A file of each kind that marey imports."""
    (tmp_path / "stacks.txt").write_text(COLLAPSED)
    (tmp_path / "app.speedscope.json").write_text(json.dumps(SPEEDSCOPE))
    (tmp_path / "viz.json").write_text(json.dumps(VIZTRACER))
    profile = cProfile.Profile()
    profile.runcall(outer)
    profile.dump_stats(tmp_path / "calls.prof")
    ranks = tmp_path / "ranks"
    ranks.mkdir()
    for trace in KINETO:
        if trace.name.startswith("sampled"):
            os.symlink(trace, ranks / trace.name)
    return {
        "collapsed": tmp_path / "stacks.txt",
        "speedscope": tmp_path / "app.speedscope.json",
        "viztracer": tmp_path / "viz.json",
        "pstats": tmp_path / "calls.prof",
        "ranks": ranks,
        "kineto": next(path for path in KINETO if path.name.startswith("mi250")),
    }


NAMES = {
    "collapsed": "backward",
    "speedscope": "inner",
    "viztracer": "f",
    "pstats": "inner",
    "ranks": "aten::mm",
    "kineto": "hipLaunchKernel",
}


FORMATS = ["perfetto", "perfetto-gpu", "chrome", "csv", "speedscope", "collapsed", "flamegraph"]


@pytest.mark.parametrize("to", [*FORMATS, pytest.param("sqlite", marks=needs_sqlite)])
@pytest.mark.parametrize("kind", NAMES)
def test_any_file_goes_to_any_format(marey, tmp_path, foreign, kind, to):
    done = marey("export", foreign[kind], "--to", to, "-o", "out")
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "out").read_bytes()
    assert NAMES[kind].encode() in written
    if to in ("chrome", "speedscope"):
        json.loads(written)
    if to == "sqlite":
        total = ask(tmp_path / "out", "SELECT sum(self_ns) FROM range")[0][0]
        ranges = json.loads(marey("report", foreign[kind], "--json").stdout)["ranges"]
        assert total == sum(row["self_ns"] for row in ranges)


def test_ranks_of_a_folder_keep_their_devices_apart(marey, tmp_path, foreign):
    assert marey("export", foreign["ranks"], "--to", "chrome", "-o", "both.json").returncode == 0
    trace = Trace(tmp_path / "both.json")
    before = [Trace(path) for path in sorted(foreign["ranks"].iterdir())]
    assert trace.counted() == before[0].counted() + before[1].counted()
