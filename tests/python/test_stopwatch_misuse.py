"""Stopwatch: misuse is told once, counted and shown; it raises for those who asked for strictness, and never else."""

from __future__ import annotations

import threading

import pytest

import marey
from marey import Stopwatch


def double_start(stopwatch):
    stopwatch.start_meas("region of double start")
    stopwatch.start_meas("region of double start")


def end_of_a_name_never_started(stopwatch):
    stopwatch.end_meas("region of end of a name never started")


def end_of_a_name_that_does_not_run(stopwatch):
    stopwatch.start_meas("region of end of a name that does not run")
    stopwatch.end_meas("region of end of a name that does not run")
    stopwatch.end_meas("region of end of a name that does not run")


def finish_with_a_running_name(stopwatch):
    stopwatch.start_meas("region of finish with a running name")
    stopwatch.finish_iter()


def one_time_twice(stopwatch):
    stopwatch.start_one_time_measurement("region of one time twice")
    stopwatch.start_one_time_measurement("region of one time twice")


def one_time_twice_after_its_end(stopwatch):
    stopwatch.start_one_time_measurement("region of one time twice after its end")
    stopwatch.end_one_time_measurement("region of one time twice after its end")
    stopwatch.start_one_time_measurement("region of one time twice after its end")


def one_time_end_of_an_unknown_name(stopwatch):
    stopwatch.end_one_time_measurement("region of one time end of an unknown name")


def one_time_end_twice(stopwatch):
    stopwatch.start_one_time_measurement("region of one time end twice")
    stopwatch.end_one_time_measurement("region of one time end twice")
    stopwatch.end_one_time_measurement("region of one time end twice")


MISUSES = [
    double_start,
    end_of_a_name_never_started,
    end_of_a_name_that_does_not_run,
    finish_with_a_running_name,
    one_time_twice,
    one_time_twice_after_its_end,
    one_time_end_of_an_unknown_name,
    one_time_end_twice,
]


def region(misuse) -> str:
    return "region of " + misuse.__name__.replace("_", " ")


@pytest.mark.parametrize("misuse", MISUSES)
def test_strict_misuse_raises_an_error_that_names_the_region(misuse):
    stopwatch = Stopwatch(0, strict=True)
    with pytest.raises(marey.StateError, match=region(misuse)) as caught:
        misuse(stopwatch)
    assert isinstance(caught.value, AssertionError)


@pytest.mark.parametrize("misuse", MISUSES)
def test_otherwise_misuse_raises_nothing_is_counted_and_shown(misuse):
    stopwatch = Stopwatch(0)
    misuse(stopwatch)
    rows = list(stopwatch.stats().misuse)
    assert [(row["name"], row["count"]) for row in rows] == [(region(misuse), 1)]
    misuse(stopwatch)
    assert sum(row["count"] for row in stopwatch.stats().misuse) > 1
    assert rows[0]["what"] in stopwatch.report()


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_reported_once_in_a_sentence_that_names_the_region(misuse, run_python):
    import inspect

    done = run_python(
        "from marey import Stopwatch\n"
        + inspect.getsource(misuse)
        + "Stopwatch(0)\nfor _ in range(100):\n    try:\n        "
        + f"{misuse.__name__}(Stopwatch())\n    except AttributeError:\n        pass\n"
    )
    assert 1 <= done.stderr.count("region") <= 2
    assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize("flags", [(), ("-O",), ("-OO",)])
def test_optimised_python_makes_no_difference(flags, run_python):
    done = run_python(
        """
        from marey import StateError, Stopwatch
        stopwatch = Stopwatch(0, strict=True)
        for misuse in (
            lambda: stopwatch.end_meas("a"),
            lambda: [stopwatch.start_meas("b"), stopwatch.start_meas("b")],
            lambda: stopwatch.finish_iter(),
            lambda: stopwatch.enable(),
        ):
            try:
                misuse()
            except StateError:
                print("raised")
        stopwatch.end_meas("b")
        stopwatch.finish_iter()
        print(stopwatch.get_num_nonwarmup_iters_measured())
        """,
        flags=flags,
    )
    assert done.stdout.split() == ["raised"] * 4 + ["1"]


def test_a_strict_finish_with_a_running_name_counts_nothing_and_can_be_tried_again():
    stopwatch = Stopwatch(0, strict=True)
    stopwatch.start_meas("a")
    for _ in range(3):
        with pytest.raises(marey.StateError, match="a"):
            stopwatch.finish_iter()
    assert stopwatch.get_num_nonwarmup_iters_measured() == 0
    assert marey.progress()["iterations"] == 0
    stopwatch.end_meas("a")
    stopwatch.finish_iter()
    assert stopwatch.get_num_nonwarmup_iters_measured() == 1


def test_otherwise_the_iteration_counts_and_the_name_runs_on():
    stopwatch = Stopwatch(0)
    stopwatch.start_meas("a")
    stopwatch.finish_iter()
    assert stopwatch.get_num_nonwarmup_iters_measured() == 1
    stopwatch.end_meas("a")
    stopwatch.finish_iter()
    assert stopwatch.stats().intervals.row(name="a")["count"] == 1


def test_a_second_start_leaves_the_first_as_it_was():
    stopwatch = Stopwatch(0)
    stopwatch.start_meas("a")
    stopwatch.start_meas("a")
    stopwatch.end_meas("a")
    assert stopwatch.stats().intervals.row(name="a")["count"] == 1


def test_misuse_in_warmup_counts_as_well():
    stopwatch = Stopwatch(5, strict=True)
    with pytest.raises(marey.StateError, match="never"):
        stopwatch.end_meas("never")


def test_straddling_the_end_of_warmup_is_no_misuse():
    stopwatch = Stopwatch(1)
    stopwatch.start_meas("straddles")
    stopwatch.finish_iter()
    stopwatch.end_meas("straddles")
    stopwatch.finish_iter()
    whats = [row["what"] for row in stopwatch.stats().misuse]
    assert all("not started" not in what for what in whats)
    assert stopwatch.get_num_nonwarmup_iters_measured() == 1


def test_any_number_of_names_may_have_their_cpu_use_measured_the_same_one_twice():
    stopwatch = Stopwatch(0, strict=True)
    for name in ("a", "b", "a"):
        stopwatch.set_cpu_usage_meas_name(name)
    for name in ("a", "b"):
        with stopwatch(name):
            sum(range(100_000))
    stopwatch.finish_iter()
    assert sorted(stopwatch.stats().usage["name"]) == ["a", "b"]


def test_a_cpu_name_that_was_started_already_is_measured_from_its_next_start():
    stopwatch = Stopwatch(0)
    with stopwatch("a"):
        pass
    stopwatch.set_cpu_usage_meas_name("a", "thread")
    with stopwatch("a"):
        sum(range(300_000))
    stopwatch.finish_iter()
    usage = stopwatch.stats().usage.row(name="a")
    assert usage["thread_cpu"] > 0
    assert usage["machine_cpu"] is None


def test_the_cpu_use_of_a_name_can_be_given_up():
    stopwatch = Stopwatch(0, strict=True)
    stopwatch.set_cpu_usage_meas_name("a", ("thread", "faults"))
    with stopwatch("a"):
        sum(range(300_000))
    stopwatch.set_cpu_usage_meas_name("a", ())
    before = stopwatch.stats().usage.row(name="a")
    with stopwatch("a"):
        sum(range(300_000))
    after = stopwatch.stats().usage.row(name="a")
    assert before["thread_cpu"] == pytest.approx(after["thread_cpu"], rel=1e-2)


def test_an_exception_between_start_and_end_leaves_a_stopwatch_that_goes_on():
    stopwatch = Stopwatch(0)
    for i in range(4):
        try:
            stopwatch.start_meas("a")
            if i == 1:
                raise ValueError
            stopwatch.end_meas("a")
        except ValueError:
            pass
        stopwatch.finish_iter()
    assert stopwatch.get_num_nonwarmup_iters_measured() == 4
    assert "`a`" in stopwatch.report()


# ---- threads ----


def test_two_threads_may_use_one_name_at_once():
    stopwatch = Stopwatch(0, strict=True)
    started, ended = threading.Barrier(3), threading.Barrier(3)
    failures = []

    def work():
        try:
            for _ in range(10):
                stopwatch.start_meas("shared")
                started.wait()
                stopwatch.end_meas("shared")
                ended.wait()
        except Exception as error:
            failures.append(error)
            started.abort()
            ended.abort()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stopwatch.finish_iter()
    assert failures == []
    row = stopwatch.stats().intervals.row(name="shared")
    assert (row["count"], row["threads"]) == (30, 3)


def test_a_measurement_may_end_on_another_thread():
    stopwatch = Stopwatch(0, strict=True)
    stopwatch.start_meas("handed over")
    thread = threading.Thread(target=stopwatch.end_meas, args=("handed over",))
    thread.start()
    thread.join()
    stopwatch.finish_iter()
    assert stopwatch.stats().intervals.row(name="handed over")["count"] == 1


def test_many_threads_lose_nothing():
    stopwatch = Stopwatch(0)

    def work():
        for _ in range(2000):
            with stopwatch("busy"):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        stopwatch.finish_iter()
        stopwatch.report()
    for thread in threads:
        thread.join()
    stopwatch.finish_iter()
    stats = stopwatch.stats()
    assert stats.intervals.row(name="busy")["count"] == 8000
    assert stats.intervals.row(name="busy")["total_ns"] == pytest.approx(
        stats.iterations.row(name="busy")["total_ns"], abs=1, rel=1e-3
    )


def test_a_forked_child_measures_for_itself(run_python):
    done = run_python(
        """
        import os
        from marey import Stopwatch
        stopwatch = Stopwatch(0, strict=True)
        stopwatch.start_meas("a")
        stopwatch.end_meas("a")
        stopwatch.finish_iter()
        if os.fork() == 0:
            with stopwatch("child"):
                pass
            stopwatch.finish_iter()
            print(stopwatch.stats().intervals["name"], flush=True)
            os._exit(0)
        os.wait()
        print(stopwatch.stats().intervals["name"], stopwatch.get_num_nonwarmup_iters_measured())
        """
    )
    lines = done.stdout.splitlines()
    assert "child" in lines[0]
    assert lines[1] == "['a'] 1"


def test_many_messages_do_not_hide_that_recording_stopped(run_python, tmp_path):
    done = run_python(
        f"""
        import resource, signal
        import marey
        stopwatch = marey.Stopwatch(0)
        for i in range(100):
            stopwatch.end_meas(f"never started {{i}}")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        marey.start({str(tmp_path / "run.marey")!r})
        for i in range(50_000):
            with marey.range(f"name {{i}}"):
                pass
        """
    )
    lines = done.stderr.splitlines()
    assert 64 <= sum("never started" in line for line in lines) < 100
    assert any("run.marey stopped (cannot write log" in line for line in lines)
    assert "marey: 36 more messages were not shown, after the first 64" in lines
