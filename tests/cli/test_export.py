"""marey export: files that other programs read. Perfetto's own message classes and Python's json are the judges."""

from __future__ import annotations

import csv
import importlib.util
import json
import resource
import tarfile
from pathlib import Path
from typing import Any

import pytest

needs_perfetto = pytest.mark.skipif(
    importlib.util.find_spec("perfetto") is None,
    reason="perfetto is not installed; tools/setup test installs it where an index is at hand",
)


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ---- files ----


@pytest.mark.parametrize("to, name", [("perfetto", "run.pftrace"), ("chrome", "run.json"), ("csv", "run.csv")])
def test_the_file_is_named_after_the_recording(marey, recording, tmp_path, to, name):
    done = marey("export", f"{recording}/", "--to", to)
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / name).stat().st_size > 100
    assert name in done.stderr


STARTS = {
    "a.pftrace": b"\n",
    "a.tar": b"perfetto_manifest.json\0",
    "a.json": b"{",
    "a.csv": b"kind,",
    "other": b"\n",
}


@pytest.mark.parametrize("name, start", STARTS.items())
def test_the_format_follows_the_files_ending(marey, recording, tmp_path, name, start):
    assert marey("export", recording, "-o", name).returncode == 0
    assert (tmp_path / name).read_bytes().startswith(start)


def test_standard_output_gets_the_same_bytes(marey, recording, tmp_path):
    marey("export", recording, "-o", "a.pftrace")
    done = marey("export", recording, "-o", "-", text=False)
    assert done.stdout == (tmp_path / "a.pftrace").read_bytes()
    assert done.stderr == b""


def test_a_file_that_cannot_be_made_is_an_error(marey, recording):
    done = marey("export", recording, "-o", "no/such/file")
    assert (done.returncode, "no/such/file" in done.stderr) == (2, True)


def test_a_full_disk_leaves_no_half_file(marey, emit, tmp_path):
    marey("run", "--only", "ranges", "-q", "-o", "long.marey", emit, 100000)
    limit = 1 << 20
    done = marey(
        "export",
        "long.marey",
        "--to",
        "chrome",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "long.json").exists()
    assert marey("export", "long.marey", "-o", "/dev/full").returncode == 2
    assert Path("/dev/full").exists()


def test_a_format_that_the_build_lacks_costs_no_file(marey, recording, tmp_path):
    (tmp_path / "a.db").write_text("old")
    done = marey("export", recording, "-o", "a.db")
    if done.returncode == 0:
        pytest.skip("this build has SQLite; one configured with -DMAREY_SQLITE=OFF has not")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "install libsqlite3-dev" in done.stderr
    assert (tmp_path / "a.db").read_text() == "old"


def test_a_full_disk_leaves_no_half_archive(marey, emit, tmp_path):
    marey("run", "--only", "ranges", "-q", "-o", "long.marey", emit, 100000)
    limit = 1 << 20
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}
    done = marey("export", "long.marey", "--split", **limited)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert not (tmp_path / "long.tar").exists()
    # The temporary file of an archive into a pipe meets the same limit.
    done = marey("export", "long.marey", "--split", "-o", "-", text=False, **limited)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_single_log_can_be_exported(marey, recording, tmp_path):
    log = next(recording.glob("*.klog"))
    assert marey("export", log, "--to", "csv", "-o", "one.csv").returncode == 0
    assert read_csv(tmp_path / "one.csv")


# ---- contents ----


@pytest.fixture
def table(marey, recording, tmp_path) -> list[dict[str, str]]:
    assert marey("export", recording, "-o", "events.csv").returncode == 0
    return read_csv(tmp_path / "events.csv")


def test_csv_has_a_line_for_everything(table):
    kinds: dict[str, int] = {}
    for row in table:
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
    assert kinds == {"range": 12, "mark": 1, "counter": 1, "async": 1}
    by_name = {row["name"]: row for row in table}
    assert by_name["with text"]["value"] == 'a"b\n,'
    assert by_name["marked"]["value"] == "-7"
    assert by_name["loss"]["value"] == "0.25"
    assert by_name["never ends"]["duration_ns"] == ""
    assert (by_name["outer"]["depth"], by_name['inner "quoted"']["depth"]) == ("0", "1")
    assert by_name["outer"]["category"] == "test"


def test_a_filter_leaves_the_rest_out(marey, recording, tmp_path):
    marey("export", recording, "-o", "outer.csv", "--filter", "out*")
    assert {row["name"] for row in read_csv(tmp_path / "outer.csv")} == {"outer"}


def test_chrome_is_json_with_the_same_times(marey, recording, tmp_path, table):
    assert marey("export", recording, "--to", "chrome", "-o", "events.json").returncode == 0
    trace = json.loads((tmp_path / "events.json").read_text(encoding="utf-8"))
    origin = int(trace["otherData"]["origin_monotonic_ns"])
    assert trace["displayTimeUnit"] == "ns"

    ranges = sorted(
        (e["name"], origin + round(e["ts"] * 1000), round(e["dur"] * 1000))
        for e in trace["traceEvents"]
        if e["ph"] == "X"
    )
    assert ranges == sorted(
        (r["name"], int(r["start_ns"]), int(r["duration_ns"]))
        for r in table
        if r["kind"] == "range" and r["duration_ns"]
    )

    by_phase: dict[str, list[Any]] = {}
    for event in trace["traceEvents"]:
        by_phase.setdefault(event["ph"], []).append(event)
    assert by_phase.keys() == {"M", "X", "B", "i", "C", "b", "e"}
    assert by_phase["C"][0]["args"] == {"value": 0.25}
    assert by_phase["i"][0]["args"] == {"payload": -7}
    assert by_phase["b"][0]["id2"] == by_phase["e"][0]["id2"]
    assert by_phase["B"][0]["name"] == "never ends"
    assert {m["name"] for m in by_phase["M"]} >= {"process_name", "thread_name", "process_sort_index"}


class Timeline:
    """What a viewer makes of a Perfetto trace: sequences with their clocks, names and tracks."""

    def __init__(self, path: Path) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

        self.pb = pb
        self.slices: list[tuple[str, int, int]] = []
        self.instants: list[tuple[str, int]] = []
        self.counters: list[tuple[str, float]] = []
        self.annotations: dict[str, Any] = {}
        self.tracks: dict[int, Any] = {}
        self.sequences: dict[int, dict[str, Any]] = {}
        self.stacks: dict[int, list[tuple[str, int]]] = {}
        self.locations: dict[str, Any] = {}
        trace = pb.Trace()
        trace.ParseFromString(path.read_bytes())
        assert trace.packet[0].clock_snapshot.primary_trace_clock == 3
        for packet in trace.packet:
            self.read(packet)

    def read(self, packet: Any) -> None:
        assert packet.trusted_packet_sequence_id > 0
        sequence = self.sequences.setdefault(packet.trusted_packet_sequence_id, {"names": {}, "places": {}})
        if packet.HasField("trace_packet_defaults"):
            assert packet.sequence_flags == 1
            sequence["track"] = packet.trace_packet_defaults.track_event_defaults.track_uuid
            assert packet.trace_packet_defaults.timestamp_clock_id == 64
        if packet.HasField("clock_snapshot"):
            clocks = {clock.clock_id: clock for clock in packet.clock_snapshot.clocks}
            if 64 in clocks:
                assert clocks[64].is_incremental and clocks[64].timestamp == clocks[3].timestamp
                sequence["now"] = clocks[64].timestamp
        for name in packet.interned_data.event_names:
            sequence["names"][name.iid] = name.name
        for place in packet.interned_data.source_locations:
            sequence["places"][place.iid] = place
        if packet.HasField("track_descriptor"):
            self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            assert packet.sequence_flags == 2
            sequence["now"] += packet.timestamp
            self.read_event(packet.track_event, sequence)

    def read_event(self, event: Any, sequence: dict[str, Any]) -> None:
        track = event.track_uuid or sequence["track"]
        assert track in self.tracks
        name = event.name or sequence["names"].get(event.name_iid, "")
        if event.source_location_iid:
            self.locations[name] = sequence["places"][event.source_location_iid]
        for annotation in event.debug_annotations:
            self.annotations[name] = annotation
        if event.type == self.pb.TrackEvent.TYPE_SLICE_BEGIN:
            self.stacks.setdefault(track, []).append((name, sequence["now"]))
        elif event.type == self.pb.TrackEvent.TYPE_SLICE_END:
            begun, start = self.stacks[track].pop()
            self.slices.append((begun, start, sequence["now"] - start))
        elif event.type == self.pb.TrackEvent.TYPE_INSTANT:
            self.instants.append((name, sequence["now"]))
        elif event.type == self.pb.TrackEvent.TYPE_COUNTER:
            self.counters.append((self.tracks[track].name, event.double_counter_value))


@needs_perfetto
def test_perfetto_is_read_by_perfettos_own_classes(marey, recording, tmp_path, table):
    assert marey("export", recording).returncode == 0
    timeline = Timeline(tmp_path / "run.pftrace")
    assert sorted(timeline.slices) == sorted(
        (r["name"], int(r["start_ns"]), int(r["duration_ns"]))
        for r in table
        if r["kind"] in ("range", "async") and r["duration_ns"]
    )
    assert timeline.instants == [("marked", int(next(r["start_ns"] for r in table if r["kind"] == "mark")))]
    assert timeline.counters == [("loss", 0.25)]
    assert timeline.annotations["with text"].string_value == 'a"b\n,'
    assert timeline.annotations["marked"].int_value == -7
    assert timeline.locations["outer"].file_name.endswith("emit.c")
    assert timeline.locations["outer"].line_number > 0
    left_open = [name for stack in timeline.stacks.values() for name, _ in stack]
    assert left_open == ["never ends"]
    process = next(t for t in timeline.tracks.values() if t.HasField("process"))
    assert process.process.process_name == "emit"
    thread = next(t for t in timeline.tracks.values() if t.HasField("thread"))
    assert thread.parent_uuid == process.uuid and thread.thread.tid == process.process.pid


@needs_perfetto
def test_ranks_and_several_recordings_are_one_timeline(marey, emit, tmp_path):
    for rank in "01":
        marey("run", "--only", "ranges", "-q", "-o", "ranks.marey", emit, 2, env={"RANK": rank, "WORLD_SIZE": "2"})
    marey("run", "--only", "ranges", "-q", "-o", "more.marey", emit, 3)
    assert marey("export", "ranks.marey", "more.marey", "-o", "all.pftrace").returncode == 0
    timeline = Timeline(tmp_path / "all.pftrace")
    names = [t.process.process_name for t in timeline.tracks.values() if t.HasField("process")]
    assert names == ["rank 0 emit", "rank 1 emit", "emit"]
    assert sum(name == "outer" for name, _, _ in timeline.slices) == 7


@needs_perfetto
def test_pids_that_repeat_are_numbered_anew(marey, recording, tmp_path):
    """The same recording twice stands for two containers whose programs have one and the same pid."""
    assert marey("export", recording, recording, "-o", "twice.pftrace").returncode == 0
    timeline = Timeline(tmp_path / "twice.pftrace")
    assert [t.process.pid for t in timeline.tracks.values() if t.HasField("process")] == [1, 2]
    assert [t.thread.tid for t in timeline.tracks.values() if t.HasField("thread")] == [1, 2]
    assert sum(name == "outer" for name, _, _ in timeline.slices) == 10


# ---- a trace for each process ----


@pytest.fixture
def ranks(marey, emit) -> str:
    for rank in "210":
        marey("run", "--only", "ranges", "-q", "-o", "ranks.marey", emit, 2, env={"RANK": rank, "WORLD_SIZE": "3"})
    return "ranks.marey"


@pytest.mark.parametrize("args", [["-o", "ranks.tar"], ["--split"], ["--to", "perfetto", "-o", "ranks.tar"]])
def test_tar_reads_what_a_split_export_wrote(marey, ranks, tmp_path, args):
    assert marey("export", ranks, *args).returncode == 0
    with tarfile.open(tmp_path / "ranks.tar") as tar:
        members = tar.getmembers()
        manifest = json.load(tar.extractfile(members[0]))["perfetto_manifest"]
    traces = [member.name for member in members[1:]]
    assert [name.split("-")[:3] for name in traces] == [["000" + i, "rank", i] for i in "012"]
    assert manifest["version"] == 1
    assert [file["path"] for file in manifest["files"]] == traces
    assert manifest["trace_time"] == {"clock": "MONOTONIC", "file": traces[0]}
    assert {m.mode for m in members} == {0o644} and all(m.mtime > 1_600_000_000 for m in members)


@needs_perfetto
def test_each_rank_is_a_trace_of_its_own(marey, ranks, tmp_path):
    marey("export", ranks, "-o", "ranks.tar")
    marey("export", ranks, "-o", "ranks.pftrace")
    with tarfile.open(tmp_path / "ranks.tar") as tar:
        tar.extractall(tmp_path / "traces")
    timelines = [Timeline(path) for path in sorted((tmp_path / "traces").glob("*.pftrace"))]
    names = [[t.process.process_name for t in line.tracks.values() if t.HasField("process")] for line in timelines]
    assert names == [["rank 0 emit"], ["rank 1 emit"], ["rank 2 emit"]]
    together = Timeline(tmp_path / "ranks.pftrace")
    assert sorted(s for line in timelines for s in line.slices) == sorted(together.slices)
    # Viewers that put all traces into one table must not mix tracks up; uuid 0 is the root of all.
    uuids = [uuid for line in timelines for uuid in line.tracks if uuid != 0]
    assert len(set(uuids)) == len(uuids)


def test_an_archive_is_the_same_each_time_and_through_a_pipe(marey, ranks, tmp_path):
    marey("export", ranks, "-o", "once.tar")
    marey("export", ranks, "-o", "again.tar")
    once = (tmp_path / "once.tar").read_bytes()
    assert (tmp_path / "again.tar").read_bytes() == once
    assert marey("export", ranks, "--split", "-o", "-", text=False).stdout == once
