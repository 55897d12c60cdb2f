"""Recordings as tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import marey

RANGE_COLUMNS = [
    *("name", "count", "total_ns", "self_ns", "mean_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"),
    *("share", "threads", "processes"),
]


@pytest.fixture
def path(record):
    with record() as path:
        for i in range(10):
            with marey.range("step", category="train", payload=i):
                with marey.range("forward <b>"):
                    pass
                marey.counter("loss", 10 - i)
            marey.mark("tick")
    return path


def test_tables_have_columns_and_units(path):
    ranges = marey.load(path).ranges
    assert isinstance(ranges, marey.Table)
    assert ranges.name == "ranges"
    assert ranges.columns == RANGE_COLUMNS
    assert ranges.units["total_ns"] == "ns" and ranges.units["share"] == "share"
    assert len(ranges) == 2


def test_rows_and_columns(path):
    ranges = marey.load(path).ranges
    assert sorted(ranges["name"]) == ["forward <b>", "step"]
    assert ranges["count"] == [10, 10]
    rows = list(ranges)
    assert len(rows) == 2
    assert list(rows[0]) == RANGE_COLUMNS
    assert ranges.row(name="step")["count"] == 10
    with pytest.raises(KeyError, match="total_ns"):
        ranges["total"]
    with pytest.raises(KeyError, match="nowhere"):
        ranges.row(name="nowhere")


def test_numbers_hold_together(path):
    for row in marey.load(path).ranges:
        assert row["min_ns"] <= row["p50_ns"] <= row["p90_ns"] <= row["p99_ns"] <= row["max_ns"] <= row["total_ns"]
        assert row["self_ns"] <= row["total_ns"]
        assert 0 <= row["share"] <= 1


def test_every_table_can_be_had(path):
    recording = marey.load(path)
    names = ("ranges", "tree", "threads", "ranks", "processes", "async_ranges", "counters", "marks", "open", "sites")
    for name in names:
        table = getattr(recording, name)
        assert table.columns
        assert isinstance(list(table), list)
        assert repr(table)
        assert table._repr_html_().startswith("<table>")
        assert len(list(csv.reader(io.StringIO(table.to_csv())))) == len(table) + 1
        assert len(json.loads(table.to_json())) == len(table)
    with pytest.raises(KeyError, match="nothing"):
        recording.table("nothing")


def test_loss_cost_and_warnings(path):
    recording = marey.load(path)
    assert recording.lost_events == 0
    assert recording.cost["events"] > 0 and recording.cost["log_bytes"] > 0
    assert recording.warnings == []


def test_the_text_of_a_table_and_of_the_report(path):
    recording = marey.load(path)
    assert "forward <b>" in repr(recording.ranges)
    report = recording.report()
    assert "forward <b>" in report and "step" in report
    assert str(recording) == report
    both = recording.report(["ranges", "tree"], sort="count", limit=1)
    assert both
    assert recording.report(["tree"])
    with pytest.raises((ValueError, marey.MareyError)):
        recording.report(sort="nonsense")


def test_the_report_as_json(path):
    report = json.loads(marey.load(path).report_json())
    assert {row["name"] for row in report["ranges"]} == {"step", "forward <b>"}
    assert report["lost_events"] == 0
    assert "cost" in report


def test_html_is_escaped(path):
    drawn = marey.load(path).ranges._repr_html_()
    assert "<b>" not in drawn
    assert "forward &lt;b&gt;" in drawn


def test_csv_into_a_file(path, tmp_path):
    table = marey.load(path).ranges
    assert table.to_csv(tmp_path / "out.csv") is None
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["name"] for row in rows) == ["forward <b>", "step"]
    assert [int(row["count"]) for row in rows] == [10, 10]


@pytest.mark.needs_pandas
def test_pandas(path):
    frame = marey.load(path).ranges.to_pandas()
    assert list(frame.columns) == RANGE_COLUMNS
    assert frame.set_index("name").loc["step", "count"] == 10
    assert frame["total_ns"].dtype.kind in "iu"


FORMATS = ["perfetto", "perfetto-tar", "chrome", "csv", "sqlite", "speedscope", "collapsed", "flamegraph", "pstats"]


@pytest.mark.parametrize("form", [*FORMATS, "callgrind"])
def test_exports(path, tmp_path, form):
    if form not in marey.export_formats():
        pytest.skip(f"this build has no {form}")
    out = tmp_path / "exported"
    marey.load(path).export(form, out)
    data = out.read_bytes()
    assert b"forward <b>" in data or b"forward \\u003cb" in data or b"forward &lt;b&gt;" in data
    if form == "chrome":
        events = json.loads(data)
        events = events["traceEvents"] if isinstance(events, dict) else events
        assert sum(event.get("name") == "step" for event in events) >= 10


def test_an_export_can_be_a_comparison(path, tmp_path):
    now, before = marey.load(path), marey.load(path)
    now.export("flamegraph", tmp_path / "diff.svg", baseline=before)
    assert "What changed: " in (tmp_path / "diff.svg").read_text()
    now.export("collapsed", tmp_path / "lines", by="thread", baseline=now)
    for line in (tmp_path / "lines").read_text().splitlines():
        _, old, new = line.rsplit(" ", 2)
        assert old == new


def test_a_failed_export_leaves_no_file(path, tmp_path):
    recording = marey.load(path)
    for wrong in ({"by": "host"}, {"by": 7}):
        with pytest.raises((marey.MareyError, TypeError, ValueError)):
            recording.export("flamegraph", tmp_path / "x", **wrong)
    with pytest.raises((marey.MareyError, ValueError)):
        recording.export("chrome", tmp_path / "x", baseline=recording)
    assert not (tmp_path / "x").exists()
    recording.export("chrome", tmp_path / "x")


def test_an_unknown_format_names_those_there_are(path, tmp_path):
    with pytest.raises(ValueError, match="perfetto"):
        marey.load(path).export("word", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_several_recordings_are_read_as_one(record):
    paths = []
    for name in ("a.marey", "b.marey"):
        with record(name) as path, marey.range("same"):
            pass
        paths.append(path)
    assert marey.load(paths).ranges["count"] == [2]
    with pytest.raises(ValueError):
        marey.load([])


def test_filter_and_depth(path):
    assert marey.load(path, filter="forward").ranges["name"] == ["forward <b>"]
    assert marey.load(path, filter="st*").ranges["name"] == ["step"]
    assert marey.load(path, max_depth=1).tree["name"] == ["step"]


def test_more_than_a_million_words_of_a_process(record):
    with record() as path:
        step = marey.range("step")
        for _ in range(530_000):
            with step:
                pass
    assert marey.load(path).calls()["calls"] == [530_000]


def test_what_is_no_recording(tmp_path):
    with pytest.raises(marey.MareyError, match="absent"):
        marey.load(tmp_path / "absent.marey")
    (tmp_path / "text").write_text("not a recording\n" * 100)
    with pytest.raises(marey.MareyError, match="text"):
        marey.load(tmp_path / "text")


def test_a_recording_that_is_still_written_can_be_read(record):
    with record() as path:
        with marey.range("done"):
            pass
        with marey.range("not yet"):
            recording = marey.load(path)
            assert recording.ranges.row(name="done")["count"] == 1
            assert "not yet" in recording.open["name"]


def test_tables_outlive_the_recording(path):
    table = marey.load(path).ranges
    assert sorted(table["name"]) == ["forward <b>", "step"]
    assert "step" in repr(table)


def test_the_reader_is_loaded_on_first_use(run_python):
    run_python("""
        import sys, marey
        assert "marey._tools" not in sys.modules
        with open("/proc/self/maps") as maps:
            assert "libmarey-tools" not in maps.read()
    """)


def test_tables_of_iterations_are_there_and_empty_without_any(path):
    run = marey.load(path, data="data")
    tables = (run.iterations, run.iteration_ranks, run.throughput, run.table("epochs"), run.phases, run.outliers)
    assert [len(table) for table in tables] == [0] * 6
    assert "No range 'data' ran in an iteration" in run.report()


def test_gpu_tables_are_empty_without_gpu_work(path):
    run = marey.load(path)
    assert len(run.kernels) == 0 and len(run.gpu_ranges) == 0
    assert list(run.kernels.columns)[:4] == ["name", "kind", "count", "total_ns"]
    assert "kernels" not in run.report()
    assert json.loads(run.report_json())["kernels"] == []


def test_gpu_tables_of_an_imported_trace():
    trace = Path(__file__).parents[1] / "data" / "kineto" / "event_sync_trace.json.gz"
    run = marey.load(trace)
    kernel = run.kernels.row(kind="kernel")
    assert (kernel["name"], kernel["count"], kernel["total_ns"]) == ("ampere_sgemm_128x64_nn", 3, 369_000)
    assert run.gpu_ranges.row(name="aten::mm")["gpu_ns"] == 372_000
    assert run.gpu_ranges.row(name="cudaLaunchKernel")["self_gpu_ns"] == 369_000
    copy = run.copies.row(name="Memset (Device)")
    assert (copy["count"], copy["bytes"], copy["total_ns"]) == (3, 1536, 3_000)
    assert copy["bytes_per_s"] == 1536 / 3e-6


def test_gpus_have_tables_of_their_own():
    trace = Path(__file__).parents[1] / "data" / "kineto" / "event_sync_trace.json.gz"
    run = marey.load(trace)
    assert run.gpu().row(kind="kernel")["total_ns"] == 369_000
    assert run.gpu("shapes").row(grid="8x16x5")["registers"] == 122
    assert run.gpu("ranges").row(name="aten::mm")["work"] == 6
    device = run.gpu("devices").row(device=0)
    idle = device["launch_wait_ns"] + device["host_wait_ns"] + device["other_idle_ns"]
    assert device["busy_ns"] + idle == device["span_ns"]
    assert run.gpu("gaps") is run.gpu("gaps")
    assert "launch_bound" in json.loads(run.report_json(gpu=True))["gpu"]
    assert "where GPUs wait for the host" in run.report(gpu=True)
    assert "where GPUs wait" not in run.report()
    with pytest.raises(KeyError, match="no table 'nothing' of gpu"):
        run.gpu("nothing")


def test_gpu_and_breakdown_are_reports_of_the_registry():
    trace = Path(__file__).parents[1] / "data" / "kineto" / "sampled_rank-0.json.gz"
    run = marey.load(trace)
    gpu = run.report("gpu", gaps=3)
    assert len(gpu["gaps"]) == 3 and gpu.csv().startswith("name,kind,count,")
    assert "\nlongest gaps\n" in gpu.text()
    parts = run.report("breakdown", by="stream", window="steps")
    assert parts.text().rstrip("\n") == repr(marey.breakdown(trace, by="stream", window="steps"))
    assert parts.csv().startswith("stream,rank,pid,device,") and "## devices" in parts.markdown()
    with pytest.raises(ValueError, match="breakdown does not take the setting first"):
        run.report("breakdown", first=True)


def test_processes_can_be_chosen(run_python, tmp_path):
    """Each run is a process; the one that is asked for is there with its ranges, and no other."""
    source = """
        import marey
        with marey.range("step"):
            pass
        """
    for _ in range(2):
        run_python(source, env={"MAREY": str(tmp_path / "run.marey")})
    whole = marey.load(tmp_path / "run.marey")
    pids = list(whole.processes["pid"])
    assert len(set(pids)) == 2 and whole.ranges.row(name="step")["count"] == 2
    for pid in pids:
        part = marey.load(tmp_path / "run.marey", process=pid)
        assert list(part.processes["pid"]) == [pid] and part.ranges.row(name="step")["count"] == 1
    assert list(marey.load(tmp_path / "run.marey", process="main").processes["pid"]) == pids
    with pytest.raises(ValueError, match=r"no process 'worker' is in run\.marey"):
        marey.load(tmp_path / "run.marey", process="worker")
