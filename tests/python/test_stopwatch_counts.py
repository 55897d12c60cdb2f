"""Stopwatch: what is counted, and what its averages are averages of."""

from __future__ import annotations

import time

import pytest

import marey
from marey import Stopwatch


def run(stopwatch: Stopwatch, n: int, names: dict[str, tuple[int, int]]) -> None:
    """Run `n` iterations with names that occur (every so many iterations, so many times)."""
    for i in range(n):
        for name, (every, times) in names.items():
            for _ in range(times if i % every == 0 else 0):
                stopwatch.start_meas(name)
                stopwatch.end_meas(name)
        stopwatch.finish_iter()


@pytest.mark.parametrize("n_warmup", [0, 1, 5])
def test_warmup_is_left_out_and_all_the_rest_is_counted(n_warmup):
    stopwatch = Stopwatch(n_warmup)
    counts = []
    for _ in range(8):
        with stopwatch("a"):
            pass
        stopwatch.finish_iter()
        counts.append(stopwatch.get_num_nonwarmup_iters_measured())
    assert counts == [max(0, i + 1 - n_warmup) for i in range(8)]
    assert stopwatch.stats().intervals.row(name="a")["count"] == 8 - n_warmup
    assert marey.progress()["iterations"] == 8
    assert marey.progress()["warmup"] == n_warmup


def test_nothing_is_counted_before_the_last_warmup_iteration_is_over():
    stopwatch = Stopwatch(3)
    run(stopwatch, 2, {"a": (1, 1)})
    with stopwatch("a"):
        pass
    assert stopwatch.get_num_nonwarmup_iters_measured() == 0
    stopwatch.finish_iter()
    assert stopwatch.get_num_nonwarmup_iters_measured() == 0
    assert stopwatch.stats().intervals.row(name="a")["count"] == 0


def test_averages_per_iteration_per_interval_and_totals():
    stopwatch = Stopwatch(2)
    run(stopwatch, 14, {"once": (1, 1), "twice": (1, 2), "every third": (3, 1)})
    stats = stopwatch.stats()
    for name, n_intervals, n_iterations in (("once", 12, 12), ("twice", 24, 12), ("every third", 4, 4)):
        interval, iteration = stats.intervals.row(name=name), stats.iterations.row(name=name)
        assert (interval["count"], iteration["iterations"]) == (n_intervals, n_iterations)
        # Totals are whole nanoseconds, and what a tick lasts is better known from one table to the next.
        total = pytest.approx(interval["total_ns"], abs=2, rel=1e-3)
        assert iteration["total_ns"] == total
        assert interval["mean_ns"] * n_intervals == total
        assert iteration["mean_ns"] * 12 == total


def test_an_iteration_in_which_a_name_did_not_run_counts_as_zero():
    stopwatch = Stopwatch(0)
    run(stopwatch, 10, {"sometimes": (10, 1)})
    row = stopwatch.stats().iterations.row(name="sometimes")
    assert row["iterations"] == 1  # in which it ran
    assert row["min_ns"] == row["p50_ns"] == 0
    assert row["max_ns"] > 0


def test_names_come_in_the_order_of_their_first_start():
    stopwatch = Stopwatch(1)
    run(stopwatch, 1, {"z": (1, 1), "a": (1, 1)})
    run(stopwatch, 2, {"m": (1, 1), "a": (1, 1), "z": (1, 1)})
    assert stopwatch.stats().intervals["name"] == ["z", "a", "m"]


def test_what_was_not_finished_is_in_intervals_and_in_no_iteration():
    stopwatch = Stopwatch(0)
    run(stopwatch, 1, {"a": (1, 1)})
    with stopwatch("a"):
        pass
    assert stopwatch.stats().intervals.row(name="a")["count"] == 2
    assert stopwatch.stats().iterations.row(name="a")["iterations"] == 1


def test_a_measurement_that_is_longer_than_an_iteration_counts_where_it_ends():
    stopwatch = Stopwatch(0)
    stopwatch.start_meas("long")
    stopwatch.finish_iter()
    stopwatch.end_meas("long")
    stopwatch.finish_iter()
    row = stopwatch.stats().iterations.row(name="long")
    assert (row["iterations"], row["min_ns"]) == (1, 0)
    assert row["max_ns"] == pytest.approx(row["total_ns"], abs=1)


def test_straddling_the_end_of_warmup_is_no_error_and_loses_no_later_time():
    stopwatch = Stopwatch(1, strict=False)
    stopwatch.start_meas("straddles")
    stopwatch.finish_iter()
    stopwatch.end_meas("straddles")
    with stopwatch("straddles"):
        pass
    stopwatch.finish_iter()
    assert stopwatch.get_num_nonwarmup_iters_measured() == 1
    assert stopwatch.stats().intervals.row(name="straddles")["count"] >= 1


def test_a_name_seen_only_in_warmup_is_listed_with_nothing():
    stopwatch = Stopwatch(1)
    run(stopwatch, 1, {"only in warm-up": (1, 3)})
    run(stopwatch, 2, {"a": (1, 1)})
    row = stopwatch.stats().intervals.row(name="only in warm-up")
    assert (row["count"], row["total_ns"]) == (0, 0)
    assert stopwatch.stats().iterations.row(name="only in warm-up")["mean_ns"] == 0


def test_a_block_lasts_at_least_as_long_as_what_is_inside_and_no_longer_than_what_is_outside():
    stopwatch = Stopwatch(0)
    before = time.perf_counter_ns()
    with stopwatch("sleep"):
        inside = time.perf_counter_ns()
        time.sleep(0.01)
        slept = time.perf_counter_ns() - inside
    around = time.perf_counter_ns() - before
    measured = stopwatch.stats().intervals.row(name="sleep")["total_ns"]
    assert slept * 0.999 <= measured <= around * 1.001


def test_names_nest_and_overlap_freely_and_self_time_is_without_what_is_inside():
    stopwatch = Stopwatch(0)
    for _ in range(3):
        stopwatch.start_meas("outer")
        stopwatch.start_meas("inner")
        time.sleep(0.001)
        stopwatch.end_meas("inner")
        stopwatch.end_meas("outer")
        stopwatch.start_meas("first")
        stopwatch.start_meas("second")
        stopwatch.end_meas("first")
        stopwatch.end_meas("second")
        stopwatch.finish_iter()
    stats = stopwatch.stats()
    assert {row["name"]: row["count"] for row in stats.intervals} == dict.fromkeys(
        ["outer", "inner", "first", "second"], 3
    )
    assert len(stats.misuse) == 0
    outer, inner = stats.intervals.row(name="outer"), stats.intervals.row(name="inner")
    assert outer["total_ns"] >= inner["total_ns"]
    assert outer["self_ns"] == pytest.approx(outer["total_ns"] - inner["total_ns"], rel=1e-3, abs=50)
    assert inner["self_ns"] == pytest.approx(inner["total_ns"], rel=1e-6)


def test_shares_are_of_the_whole_iteration():
    stopwatch = Stopwatch(0)
    for _ in range(3):
        with stopwatch("half"):
            time.sleep(0.001)
        time.sleep(0.001)
        stopwatch.finish_iter()
    share = stopwatch.stats().iterations.row(name="half")["share"]
    assert 0 < share < 1


def test_one_time_measurements_know_no_warmup_and_no_repeated_names():
    stopwatch = Stopwatch(5)
    stopwatch.start_one_time_measurement("setup")
    stopwatch.end_one_time_measurement("setup")
    stopwatch.start_one_time_measurement("complete run")
    with stopwatch("setup"):
        pass
    once = {row["name"]: (row["total_ns"], row["running"]) for row in stopwatch.stats().once}
    assert list(once) == ["setup", "complete run"]
    assert once["setup"][0] > 0
    assert [running for _, running in once.values()] == [False, True]
    assert len(stopwatch.stats().misuse) == 0


def test_a_cancelled_measurement_was_never_started():
    stopwatch = Stopwatch(0, strict=True)
    stopwatch.start_meas("a")
    stopwatch.cancel_meas("a")
    stopwatch.cancel_meas("a")
    stopwatch.finish_iter()
    stopwatch.start_meas("a")
    stopwatch.end_meas("a")
    assert stopwatch.stats().intervals.row(name="a")["count"] == 1


def test_the_series_has_each_measured_iteration_and_stays_bounded():
    stopwatch = Stopwatch(2)
    run(stopwatch, 6, {"a": (1, 1), "b": (2, 50)})  # the clock steps by 10 ns: one empty pair may take 0
    rows = list(stopwatch.stats().series)
    assert [row["iteration"] for row in rows if row["name"] == "a"] == [2, 3, 4, 5]
    by_name = {name: [row["total_ns"] for row in rows if row["name"] == name] for name in ("a", "b")}
    total = stopwatch.stats().iterations.row(name="a")["total_ns"]
    assert sum(by_name["a"]) == pytest.approx(total, abs=4, rel=1e-3)
    assert [value > 0 for value in by_name["b"]] == [True, False, True, False]
    run(stopwatch, 10_000, {"a": (1, 1)})
    rows = list(stopwatch.stats().series)
    kept = [row["iteration"] for row in rows if row["name"] == "a"]
    assert kept == list(range(10_006 - len(kept), 10_006))
    assert len(kept) < 10_000


def test_an_iteration_far_above_the_rest_is_named():
    stopwatch = Stopwatch(0)
    for i in range(200):
        with stopwatch("a"):
            if i == 150:
                time.sleep(0.05)
        stopwatch.finish_iter()
    worst = next(row for row in stopwatch.stats().outliers if row["name"] == "a")
    assert worst["iteration"] == 150
    assert worst["total_ns"] > worst["median_ns"]


def test_with_a_recording_open_measurements_are_ranges_in_it(record):
    with record() as path:
        stopwatch = Stopwatch(0)
        run(stopwatch, 3, {"a": (1, 2)})
    assert marey.load(path).ranges.row(name="a")["count"] == 6
    assert stopwatch.stats().intervals.row(name="a")["count"] == 6


def test_measurements_may_start_in_c_and_end_in_python(build_extension, monkeypatch):
    path = build_extension(
        "half",
        """
        #include <Python.h>
        #include <marey/marey.h>
        static PyObject *start(PyObject *self, PyObject *unused)
        {
            (void)self, (void)unused;
            marey_stopwatch_start(MAREY_ID("crosses"));
            Py_RETURN_NONE;
        }
        static PyObject *finish(PyObject *self, PyObject *unused)
        {
            (void)self, (void)unused;
            marey_stopwatch_stop(MAREY_ID("crosses back"));
            return PyLong_FromLong(marey_iteration_finish());
        }
        static PyMethodDef methods[] = {{"start", start, METH_NOARGS, ""}, {"finish", finish, METH_NOARGS, ""}, {0}};
        static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "half", 0, 0, methods, 0, 0, 0, 0};
        PyMODINIT_FUNC PyInit_half(void)
        {
            return PyModule_Create(&module);
        }
        """,
    )
    monkeypatch.syspath_prepend(str(path.parent))
    import half

    stopwatch = Stopwatch(0, strict=True)
    half.start()
    stopwatch.end_meas("crosses")
    stopwatch.start_meas("crosses back")
    assert half.finish() == 1
    assert marey.progress()["driver"] == "marey_iteration_finish"
    assert [(row["name"], row["count"]) for row in stopwatch.stats().intervals] == [("crosses", 1), ("crosses back", 1)]
    assert stopwatch.get_num_nonwarmup_iters_measured() == 1
