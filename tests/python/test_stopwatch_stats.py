"""Stopwatch: results as data."""

from __future__ import annotations

import csv
import io
import json
import threading

import pytest

import marey
from marey import Stopwatch

TABLES = ("iteration", "iterations", "intervals", "threads", "gpu", "usage", "once", "outliers", "misuse", "series")
STATISTICS = ("total_ns", "mean_ns", "std_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns")


@pytest.fixture
def measured() -> Stopwatch:
    stopwatch = Stopwatch(1)
    stopwatch.start_one_time_measurement("once")
    for i in range(41):
        with stopwatch("outer"):
            for _ in range(i % 4):
                with stopwatch("inner"):
                    sum(range(100 * i))
        stopwatch.finish_iter(samples=8)
    return stopwatch


def test_all_tables_are_there(measured):
    stats = measured.stats()
    assert isinstance(stats, marey.StopwatchStats)
    assert (tuple(stats), stats.keys(), len(stats)) == (TABLES, TABLES, len(TABLES))
    for name in TABLES:
        assert isinstance(stats[name], marey.Table)
        assert getattr(stats, name) is stats[name]
        assert stats[name].name == name
    for wrong in (lambda: stats["nothing"], lambda: stats.nothing):
        with pytest.raises((KeyError, AttributeError), match=r"no table 'nothing'; there are iteration, iterations"):
            wrong()


@pytest.mark.parametrize("table", ["intervals", "iterations"])
def test_statistics_are_in_their_order(measured, table):
    for row in measured.stats()[table]:
        values = {name: row[name] for name in STATISTICS}
        assert values["min_ns"] <= values["p50_ns"] <= values["p90_ns"] <= values["p99_ns"] <= values["max_ns"]
        assert values["min_ns"] <= values["mean_ns"] <= values["max_ns"]
        assert 0 < values["std_ns"] <= values["max_ns"]


def test_the_whole_iteration_has_its_row_with_the_throughput(measured):
    (row,) = measured.stats().iteration
    assert (row["iterations"], row["samples"]) == (40, 320)
    assert row["samples_per_s"] == pytest.approx(320e9 / row["total_ns"], rel=1e-6)
    assert row["total_ns"] >= measured.stats().iterations.row(name="outer")["total_ns"]


def test_each_thread_has_its_row(measured):
    def work():
        with measured("outer"):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    counts = [row["count"] for row in measured.stats().threads if row["name"] == "outer"]
    assert sorted(counts) == [1, 40]


def test_what_was_taken_stays_as_it_was(measured):
    stats = measured.stats()
    before = stats.intervals.row(name="outer")
    with measured("outer"):
        pass
    measured.reset()
    assert stats.intervals.row(name="outer") == before


def test_json_has_every_table_and_can_be_read_back(measured, tmp_path):
    text = measured.to_json()
    data = json.loads(text)
    assert set(TABLES) <= set(data)
    assert [row["name"] for row in data["intervals"]] == ["outer", "inner"]
    assert data["iterations"] == list(measured.stats().iterations)
    assert measured.to_json(tmp_path / "stats.json") is None
    assert json.loads((tmp_path / "stats.json").read_text()).keys() == data.keys()
    assert measured.stats().to_json() == text


def test_json_is_what_compare_takes(measured, tmp_path):
    for name in ("a.json", "b.json"):
        measured.to_json(tmp_path / name)
    comparison = marey.compare(tmp_path / "a.json", tmp_path / "b.json")
    assert {"outer", "inner"} <= set(comparison["name"])
    assert comparison.row(name="outer")["change_percent"] == pytest.approx(0)


def test_csv_of_each_table(measured, tmp_path):
    rows = list(csv.DictReader(io.StringIO(measured.to_csv())))
    assert [row["name"] for row in rows if not row["name"].startswith("(")] == ["outer", "inner"]
    assert measured.to_csv(tmp_path / "once.csv", table="once") is None
    assert (tmp_path / "once.csv").read_text().splitlines()[0] == "name,total_ns,running"
    assert measured.stats().to_csv(table="series") == measured.to_csv(table="series")


@pytest.mark.needs_pandas
def test_pandas(measured):
    frame = measured.to_pandas()
    assert list(frame.columns) == measured.stats().iterations.columns
    series = measured.to_pandas("series")
    assert len(series[series["name"] == "outer"]) == 40


def test_a_table_that_does_not_exist_is_refused(measured):
    for call in (measured.to_csv, measured.to_pandas):
        with pytest.raises((KeyError, ValueError), match="nothing"):
            call(table="nothing")


def test_a_file_that_cannot_be_written_raises(measured, tmp_path):
    with pytest.raises(OSError, match="missing"):
        measured.to_json(tmp_path / "missing" / "stats.json")


def test_printed_they_are_tables(measured):
    text = repr(measured.stats())
    assert text.startswith("iteration:\n")
    assert "inner" in text
    assert repr(marey.StopwatchStats({})) == "(nothing measured)"


def test_before_anything_is_measured_tables_are_empty():
    Stopwatch(0)
    stats = Stopwatch().stats()
    assert [name for name in TABLES if len(stats[name])] == ["iteration"]
    assert stats.iteration["iterations"] == [0]
    assert json.loads(Stopwatch().to_json())["intervals"] == []


def test_names_that_are_hard_to_write_down_come_back_in_json():
    stopwatch = Stopwatch(0)
    names = ['"quoted"', "back\\slash", "two\nlines", "\N{SNOWMAN}"]
    for name in names:
        with stopwatch(name):
            pass
    assert [row["name"] for row in json.loads(stopwatch.to_json())["intervals"]] == names
