"""Stopwatch: one instance, its switch and its arguments."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import marey
from marey import Stopwatch


def test_every_call_gives_the_one_instance():
    stopwatch = Stopwatch()
    assert Stopwatch() is stopwatch
    assert Stopwatch.__new__(Stopwatch) is stopwatch
    assert copy.copy(stopwatch) is stopwatch
    assert copy.deepcopy(stopwatch) is stopwatch
    assert pickle.loads(pickle.dumps(stopwatch)) is stopwatch


def test_nobody_derives_from_it():
    with pytest.raises(TypeError):
        type("Mine", (Stopwatch,), {})


def test_off_its_methods_do_nothing_and_return_none_or_zero(capsys):
    stopwatch = Stopwatch()
    assert stopwatch.is_enabled is False
    assert stopwatch.start_meas("a") is None
    assert stopwatch.end_meas("never started") is None
    assert stopwatch.cancel_meas("a") is None
    assert stopwatch.finish_iter() is None
    assert stopwatch.start_one_time_measurement("a") is None
    assert stopwatch.end_one_time_measurement("b") is None
    assert stopwatch.set_cpu_usage_meas_name("a") is None
    assert stopwatch.print_eval_times() is None
    assert stopwatch.get_num_nonwarmup_iters_measured() == 0
    assert stopwatch.disable() is None
    assert stopwatch.reset() is None
    assert capsys.readouterr() == ("", "")
    assert marey.progress()["iterations"] == 0
    assert len(stopwatch.stats().intervals) == 0


@pytest.mark.parametrize("is_on", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.start_meas(),
        lambda s: s.start_meas(1),
        lambda s: s.start_meas(None),
        lambda s: s.start_meas("a", "b"),
        lambda s: s.start_meas(nam="a"),
        lambda s: s.end_meas(),
        lambda s: s.end_meas(1),
        lambda s: s.finish_iter(1, 2),
        lambda s: s.finish_iter("many"),
        lambda s: s.start_one_time_measurement(),
        lambda s: s.end_one_time_measurement("a", "b"),
        lambda s: s.set_cpu_usage_meas_name(),
        lambda s: s.set_cpu_usage_meas_name("a", 5),
        lambda s: s.print_eval_times(1, 2),
        lambda s: s.get_num_nonwarmup_iters_measured(1),
        lambda s: s(),
        lambda s: s(1),
        lambda s: s("a", "b"),
        lambda s: s.enable(1, 2, True, None, False, False, 7),
        lambda s: s.enable(warmup=1),
        lambda s: s.enable(1.5),
        lambda s: s.enable("five"),
        lambda s: s.enable(None),
        lambda s: s.enable(0, 2.5),
        lambda s: Stopwatch(warmup=1),
        lambda s: Stopwatch("five"),
    ],
)
def test_wrong_arguments_raise_on_and_off(call, is_on):
    stopwatch = Stopwatch()
    if is_on:
        stopwatch.enable()
    with pytest.raises(TypeError):
        call(stopwatch)
    assert stopwatch.is_enabled is is_on


@pytest.mark.parametrize("is_on", [False, True])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_warmup_iters": -1}, "num_warmup_iters is 0 or more, not -1"),
        ({"print_every_n_iters": 0}, "print_every_n_iters is 1 or more, not 0"),
        ({"print_every_n_iters": -3}, "print_every_n_iters is 1 or more, not -3"),
        ({"gpu": "yes"}, "not 'yes'"),
        ({"gpu": True}, "not True"),
        ({"gpu": "events", "do_cuda_sync": True}, "with do_cuda_sync it is"),
    ],
)
def test_settings_that_make_no_sense_are_refused_at_enable(arguments, message, is_on):
    if is_on:
        Stopwatch().enable()
    for enable in (Stopwatch().enable, Stopwatch):
        with pytest.raises(ValueError, match=message):
            enable(**arguments)
    assert Stopwatch().is_enabled is is_on


@pytest.mark.parametrize("samples", [-1, float("nan"), float("inf")])
def test_samples_that_make_no_sense_are_refused(samples):
    stopwatch = Stopwatch(0)
    with pytest.raises(ValueError, match="samples"):
        stopwatch.finish_iter(samples)
    assert stopwatch.get_num_nonwarmup_iters_measured() == 0


def test_a_use_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="not 'energy'"):
        Stopwatch(0).set_cpu_usage_meas_name("a", ("thread", "energy"))


@pytest.mark.parametrize(
    "enable",
    [
        lambda: Stopwatch(2, None, False),
        lambda: Stopwatch(num_warmup_iters=2),
        lambda: Stopwatch(print_every_n_iters=None, num_warmup_iters=2, do_cuda_sync=False),
        lambda: Stopwatch().enable(2, None, False),
        lambda: Stopwatch().enable(num_warmup_iters=2, print_every_n_iters=None, do_cuda_sync=False),
        lambda: Stopwatch().enable(2),
    ],
)
def test_it_is_enabled_by_call_or_by_constructor_with_defaults(enable):
    enable()
    assert Stopwatch().is_enabled is True
    for _ in range(5):
        Stopwatch().finish_iter()
    assert Stopwatch().get_num_nonwarmup_iters_measured() == 3


def test_a_second_enable_raises_and_changes_nothing():
    stopwatch = Stopwatch(1)
    for again in (lambda: stopwatch.enable(5, 2, False), lambda: Stopwatch(5)):
        with pytest.raises(marey.StateError, match="already") as caught:
            again()
        assert isinstance(caught.value, AssertionError)
    stopwatch.finish_iter()
    stopwatch.finish_iter()
    assert stopwatch.get_num_nonwarmup_iters_measured() == 1


def test_switched_off_its_results_stay_and_it_can_be_enabled_anew():
    stopwatch = Stopwatch(0)
    with stopwatch("a"):
        pass
    stopwatch.finish_iter()
    stopwatch.start_meas("runs when it is switched off")
    stopwatch.disable()
    assert stopwatch.is_enabled is False
    assert stopwatch.stats().intervals.row(name="a")["count"] == 1
    assert "`a`" in stopwatch.report()
    stopwatch.end_meas("runs when it is switched off")
    stopwatch.enable(strict=True)
    assert len(stopwatch.stats().intervals) == 0
    assert stopwatch.get_num_nonwarmup_iters_measured() == 0
    stopwatch.start_meas("runs when it is switched off")
    stopwatch.end_meas("runs when it is switched off")


def test_reset_forgets_everything():
    stopwatch = Stopwatch(0, strict=True)
    with stopwatch("a"):
        stopwatch.start_one_time_measurement("once")
    stopwatch.finish_iter()
    stopwatch.reset()
    assert stopwatch.is_enabled is False
    assert [table for table in stopwatch.stats() if len(stopwatch.stats()[table])] == ["iteration"]
    stopwatch.enable()
    stopwatch.end_meas("nothing is strict any more")
    stopwatch.start_one_time_measurement("once")


def test_cleared_it_forgets_its_results_and_goes_on():
    stopwatch = Stopwatch(1, strict=True)
    for _ in range(3):
        with stopwatch("a"):
            pass
        stopwatch.finish_iter()
    stopwatch.start_meas("runs")
    stopwatch.clear()
    assert stopwatch.is_enabled is True
    assert (stopwatch.get_num_nonwarmup_iters_measured(), len(stopwatch.stats().intervals)) == (0, 0)
    stopwatch.end_meas("runs")  # what ran meanwhile is dropped, and its end is no misuse
    with stopwatch("b"):
        pass
    stopwatch.finish_iter()
    assert stopwatch.stats().intervals["name"] == ["b"]


def test_resetting_marey_resets_it_too():
    Stopwatch(0)
    marey.reset()
    assert Stopwatch().is_enabled is False
    assert marey.progress() == {"iterations": 0, "warmup": 0, "epochs": 0, "in_epoch": False, "driver": None}


def test_is_enabled_is_read_only():
    with pytest.raises(AttributeError):
        Stopwatch().is_enabled = True


def test_methods_taken_before_enabling_work_afterwards():
    stopwatch = Stopwatch()
    start, end, finish, n = (
        stopwatch.start_meas,
        stopwatch.end_meas,
        stopwatch.finish_iter,
        stopwatch.get_num_nonwarmup_iters_measured,
    )
    block, print_times = stopwatch("block"), stopwatch.print_eval_times
    start("a")
    finish()
    stopwatch.enable(0, None, False)
    start("a")
    end("a")
    with block:
        pass
    finish()
    out = io.StringIO()
    print_times(file=out)
    assert n() == 1
    assert "Num. measured iterations: 1" in out.getvalue()
    assert stopwatch.stats().intervals.row(name="a")["count"] == 1
    assert stopwatch.stats().intervals.row(name="block")["count"] == 1


def test_names_may_be_bytes_and_are_the_same_names():
    stopwatch = Stopwatch(0)
    stopwatch.start_meas(name=b"a")
    stopwatch.end_meas(name="a")
    assert stopwatch.stats().intervals["name"] == ["a"]


# ---- switched on by options ----


def test_options_of_a_recording_switch_it_on(tmp_path):
    marey.start(tmp_path / "run.marey", **{"stopwatch.warmup": 1, "stopwatch.print_every": 2})
    assert Stopwatch().is_enabled is True
    for _ in range(4):
        with Stopwatch()("a"):
            pass
        Stopwatch().finish_iter()
    assert Stopwatch().get_num_nonwarmup_iters_measured() == 3
    with pytest.raises(marey.StateError):
        Stopwatch().enable()


SCRIPT = """
    from marey import Stopwatch
    stopwatch = Stopwatch()
    for i in range(5):
        stopwatch.start_meas("a")
        stopwatch.end_meas("a")
        print("iteration", i)
        stopwatch.finish_iter()
"""


@pytest.mark.parametrize("way", ["environment", "run"])
def test_options_of_the_environment_and_of_run_switch_it_on(way, run_python, marey_command, tmp_path):
    options = "stopwatch.warmup=1,stopwatch.print_every=2"
    if way == "environment":
        done = run_python(SCRIPT, env={"MAREY": str(tmp_path / "r.marey"), "MAREY_OPTIONS": options})
    else:
        run = [*marey_command, "run", "--only", "ranges", "-o", str(tmp_path / "r.marey"), "--options", options, "--"]
        done = run_python(SCRIPT, command=run)
    # Reports stand where print() would have put them, whatever the output is.
    assert done.stdout.count("Num. measured iterations") == 2
    assert done.stdout.index("iteration 2") < done.stdout.index("iterations: 2") < done.stdout.index("iteration 3")


def test_switched_on_by_hand_it_needs_no_recording_and_makes_no_file(run_python, tmp_path):
    done = run_python(SCRIPT.replace("Stopwatch()", "Stopwatch(0)"))
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]
