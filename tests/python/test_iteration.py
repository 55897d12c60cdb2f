"""Iterations, epochs and phases."""

from __future__ import annotations

import math

import pytest

import marey


def counted() -> tuple[int, int]:
    progress = marey.progress()
    return progress["iterations"], progress["epochs"]


def test_a_block_is_an_iteration():
    for _ in range(3):
        with marey.iteration(samples=32) as nothing:
            assert nothing is None
    assert marey.progress() == {
        "iterations": 3,
        "warmup": 0,
        "epochs": 0,
        "in_epoch": False,
        "driver": "marey.iteration",
    }


def test_a_block_that_raises_is_none():
    with pytest.raises(ValueError, match="x"), marey.iteration():
        raise ValueError("x")
    assert counted() == (0, 0)
    with marey.iteration():
        pass
    assert counted() == (1, 0)


def test_one_call_at_the_end_of_the_body_will_do():
    assert [marey.finish_iteration(), marey.finish_iteration(16), marey.finish_iteration(samples=2.5)] == [True] * 3
    assert counted() == (3, 0)


@pytest.mark.parametrize("samples", [-1, math.nan, math.inf])
def test_samples_that_make_no_sense_are_refused(samples):
    with pytest.raises(ValueError, match="samples"):
        marey.finish_iteration(samples)
    with pytest.raises(TypeError):
        marey.finish_iteration("many")
    assert counted() == (0, 0)


def test_an_iteration_without_with_counts_nothing_and_warns_once(run_python):
    """As a statement it used to do nothing, silently."""
    done = run_python(
        """
        import marey
        for _ in range(3):
            marey.iteration(samples=4)
        with marey.iteration():
            pass
        print(marey.progress()["iterations"])
        """
    )
    assert done.stdout == "1\n"
    assert done.stderr.count("RuntimeWarning: marey.iteration() without 'with' counts nothing") == 1
    assert "marey.iteration(samples=4)" in done.stderr  # the line that it is about
    assert "marey.finish_iteration()" in done.stderr


def test_an_iteration_with_with_warns_of_nothing(run_python):
    done = run_python(
        """
        import contextlib, marey
        one = marey.iteration()
        with one:
            pass
        with contextlib.ExitStack() as stack:
            stack.enter_context(marey.iteration())
        """
    )
    assert done.stderr == ""


def test_each_pass_of_a_loop_is_an_iteration():
    seen = []
    batches = [[1, 2], [3], []]
    for batch in marey.iterations(batches, samples=len):
        seen.append((batch, counted()[0]))
    assert seen == [([1, 2], 0), ([3], 1), ([], 2)]
    assert counted() == (3, 0)
    assert len(marey.iterations(batches)) == 3
    with pytest.raises(TypeError):
        len(marey.iterations(iter(batches)))


def test_a_loop_that_is_left_leaves_its_last_iteration_uncounted():
    for batch in marey.iterations(range(10), samples=4):
        if batch == 2:
            break
    assert counted() == (2, 0)


def test_the_wait_for_data_is_a_range_when_it_has_a_name(record):
    with record() as path:
        for _ in marey.iterations(range(3), data="data"):
            pass
    assert marey.load(path).ranges.row(name="data")["count"] == 4


def test_an_error_of_the_loader_comes_through():
    def loader():
        yield 1
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        for _ in marey.iterations(loader()):
            pass
    assert counted() == (1, 0)


def test_a_second_driver_counts_nothing_and_is_reported_once(run_python):
    done = run_python(
        """
        import marey
        stopwatch = marey.Stopwatch(0)
        for _ in range(3):
            with marey.iteration():
                pass
            stopwatch.finish_iter()
        assert not marey.finish_iteration() or True
        print(marey.progress()["iterations"], marey.progress()["driver"], stopwatch.get_num_nonwarmup_iters_measured())
        """
    )
    assert done.stdout.split() == ["4", "marey.iteration", "4"]
    assert done.stderr.count("Stopwatch.finish_iter") == 1
    assert len(done.stderr.splitlines()) == 1


def test_the_stopwatch_may_be_the_driver():
    stopwatch = marey.Stopwatch(1)
    stopwatch.finish_iter()
    assert marey.finish_iteration() is False
    stopwatch.finish_iter()
    assert marey.progress()["driver"] == "Stopwatch.finish_iter"
    assert counted() == (2, 0)
    assert stopwatch.get_num_nonwarmup_iters_measured() == 1


def test_iterations_of_others_drive_the_stopwatch():
    stopwatch = marey.Stopwatch(2)
    for _ in range(5):
        with marey.iteration(), stopwatch("a"):
            pass
    assert stopwatch.get_num_nonwarmup_iters_measured() == 3
    assert stopwatch.stats().iterations.row(name="a")["iterations"] == 3


def test_warmup_is_marked():
    marey.set_warmup(2)
    for _ in range(3):
        marey.finish_iteration()
    assert marey.progress()["warmup"] == 2
    with pytest.raises(ValueError, match="warm-up"):
        marey.set_warmup(-1)
    with pytest.raises(TypeError):
        marey.set_warmup("two")


def test_epochs_as_blocks_and_as_calls():
    with marey.epoch():
        assert marey.progress()["in_epoch"] is True
        marey.finish_iteration()
    assert (counted(), marey.progress()["in_epoch"]) == ((1, 1), False)
    epoch = marey.epoch()
    marey.epoch()
    assert counted() == (1, 2)
    epoch.end()
    assert counted() == (1, 3)
    with pytest.raises(KeyError), marey.epoch():
        raise KeyError
    assert (counted(), marey.progress()["in_epoch"]) == ((1, 4), False)


def test_phases_as_blocks_and_as_calls(record):
    with record() as path:
        marey.phase("train")
        marey.finish_iteration()
        with marey.phase("evaluate"):
            pass
        marey.phase(None)
    assert marey.load(path).cost["events"] > 0
    for wrong in (1, 2.5):
        with pytest.raises(TypeError):
            marey.phase(wrong)


def test_without_a_recording_they_count_too_and_make_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with marey.epoch(), marey.phase("train"):
        for _ in marey.iterations(range(3)):
            pass
    assert counted() == (3, 1)
    assert list(tmp_path.iterdir()) == []
