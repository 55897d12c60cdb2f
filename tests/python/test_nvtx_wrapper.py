"""NVTXRangeWrapper: one instance, its switch, its arguments, and where its ranges go."""

from __future__ import annotations

import copy
import pickle

import pytest

import marey
from marey import NVTXRangeWrapper


def test_every_call_gives_the_one_instance():
    wrapper = NVTXRangeWrapper()
    assert NVTXRangeWrapper() is wrapper
    assert NVTXRangeWrapper.__new__(NVTXRangeWrapper) is wrapper
    assert copy.copy(wrapper) is wrapper
    assert copy.deepcopy(wrapper) is wrapper
    assert pickle.loads(pickle.dumps(wrapper)) is wrapper


def test_nobody_derives_from_it():
    with pytest.raises(TypeError):
        type("Mine", (NVTXRangeWrapper,), {})


def test_off_its_methods_do_nothing_and_return_none(record):
    wrapper = NVTXRangeWrapper()
    assert wrapper.is_enabled is False
    with record() as path:
        assert wrapper.range_push("a") is None
        assert wrapper.range_pop("b") is None
        assert wrapper.range_pop() is None
        assert wrapper.disable() is None
        assert wrapper.reset() is None
        assert marey.counts()["events"] == 0
    assert len(marey.load(path).open) == 0


@pytest.mark.parametrize("is_on", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        lambda w: w.range_push(),
        lambda w: w.range_push(1),
        lambda w: w.range_push(None),
        lambda w: w.range_push("a", "b"),
        lambda w: w.range_push(name="a"),
        lambda w: w.range_pop(1),
        lambda w: w.range_pop("a", "b"),
        lambda w: w.range_pop(name="a"),
        lambda w: w.enable(True),
        lambda w: w.enable(True, False),
        lambda w: w.enable(True, False, True, False),
        lambda w: w.enable(sync=True),
        lambda w: w.disable(1),
        lambda w: NVTXRangeWrapper(True),
        lambda w: NVTXRangeWrapper(order=True),
    ],
)
def test_wrong_arguments_raise_on_and_off(call, is_on):
    wrapper = NVTXRangeWrapper()
    if is_on:
        wrapper.enable(False, False, False)
    with pytest.raises(TypeError):
        call(wrapper)
    assert wrapper.is_enabled is is_on


def test_arguments_by_keyword():
    wrapper = NVTXRangeWrapper()
    wrapper.enable(keep_track_of_range_order=True, sync_on_push=False, sync_on_pop=False)
    wrapper.range_push(range_name="a")
    with pytest.raises(marey.RangeError):
        wrapper.range_pop(range_name="b")
    wrapper.range_pop(range_name="a")


def test_arguments_of_the_class_enable_it():
    wrapper = NVTXRangeWrapper(False, False, keep_track_of_range_order=True)
    assert wrapper is NVTXRangeWrapper()
    assert wrapper.is_enabled is True
    with pytest.raises(marey.RangeError):
        wrapper.range_pop("a")


def test_a_second_enable_raises_and_changes_nothing():
    wrapper = NVTXRangeWrapper(False, False, False)
    for again in (lambda: wrapper.enable(False, False, True), lambda: NVTXRangeWrapper(False, False, True)):
        with pytest.raises(marey.MareyError, match="already enabled") as caught:
            again()
        assert isinstance(caught.value, AssertionError)
        assert isinstance(caught.value, marey.StateError)
    wrapper.range_pop("nothing is checked")


@pytest.mark.parametrize("end", ["disable", "reset"])
def test_switched_off_it_can_be_enabled_with_other_options(end):
    wrapper = NVTXRangeWrapper(False, False, True)
    getattr(wrapper, end)()
    assert wrapper.is_enabled is False
    wrapper.range_pop("nothing is checked")
    wrapper.enable(False, False, False)
    wrapper.range_pop("nothing is checked")
    assert wrapper.is_enabled is True


def test_is_enabled_is_read_only():
    with pytest.raises(AttributeError):
        NVTXRangeWrapper().is_enabled = True


def test_methods_taken_before_enabling_work_afterwards(record):
    push, pop = NVTXRangeWrapper().range_push, NVTXRangeWrapper().range_pop
    with record() as path:
        push("before")
        pop()
        NVTXRangeWrapper().enable(False, False, True)
        push("after")
        with pytest.raises(marey.RangeError):
            pop("other")
        pop("after")
    assert marey.load(path).ranges["name"] == ["after"]


@pytest.mark.parametrize("is_tracked", [False, True])
def test_ranges_go_into_the_recording(record, is_tracked):
    wrapper = NVTXRangeWrapper(False, False, is_tracked)
    with record() as path:
        for _ in range(3):
            wrapper.range_push("step")
            with marey.range("forward"):
                wrapper.range_push("layer")
                wrapper.range_pop("layer")
            wrapper.range_pop("step")
    found = marey.load(path)
    assert found.warnings == []
    rows = [(row["depth"], row["name"], row["count"]) for row in found.tree]
    assert rows == [(0, "step", 3), (1, "forward", 3), (2, "layer", 3)]


def test_without_a_recording_it_works_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrapper = NVTXRangeWrapper(False, False, True)
    wrapper.range_push("a")
    wrapper.range_pop("a")
    with pytest.raises(marey.RangeError):
        wrapper.range_pop("a")
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_begins_and_ends_in_a_range_sees_what_is_inside(record):
    wrapper = NVTXRangeWrapper(False, False, True)
    wrapper.range_push("outside")
    with record() as path:
        wrapper.range_push("inside")
        wrapper.range_pop("inside")
    wrapper.range_pop("outside")
    assert marey.load(path).ranges["name"] == ["inside"]


def test_options_of_start_enable_it(tmp_path):
    marey.start(tmp_path / "run.marey", **{"nvtx.keep_track_of_range_order": True})
    wrapper = NVTXRangeWrapper()
    assert wrapper.is_enabled
    wrapper.range_push("a")
    with pytest.raises(marey.RangeError):
        wrapper.range_pop("b")
    wrapper.range_pop("a")


def test_the_environment_enables_it_without_a_recording(run_python):
    run_python(
        """
        import marey
        wrapper = marey.NVTXRangeWrapper()
        assert wrapper.is_enabled and not marey.enabled()
        try:
            wrapper.range_pop("a")
        except AssertionError as error:
            print(error)
        """,
        env={"MAREY_OPTIONS": "nvtx.keep_track_of_range_order=1"},
    )


def test_marey_run_enables_it(run_python, marey_command, tmp_path):
    run_python(
        """
        import marey
        assert marey.NVTXRangeWrapper().is_enabled
        marey.NVTXRangeWrapper().range_push("step")
        marey.NVTXRangeWrapper().range_pop("step")
        """,
        command=[
            *marey_command,
            "run",
            "--only",
            "ranges",
            "-o",
            "run.marey",
            "--options",
            "nvtx.keep_track_of_range_order=1",
            "--",
        ],
    )
    assert marey.load(tmp_path / "run.marey").ranges["name"] == ["step"]


def test_names_of_any_content(record):
    names = ["ü", "日本", "a\ud800b", b"bytes", "x" * 5000, ""]
    wrapper = NVTXRangeWrapper(False, False, True)
    with record() as path:
        for name in names:
            wrapper.range_push(name)
            with pytest.raises(marey.RangeError):
                wrapper.range_pop("another")
            wrapper.range_pop(name)
    assert len(marey.load(path).ranges) == len(names)


class Text(str):
    """A name that is not exactly a str."""


def test_a_name_of_a_derived_class_is_its_text():
    wrapper = NVTXRangeWrapper(False, False, True)
    wrapper.range_push(Text("a"))
    wrapper.range_pop(Text("a"))
