"""NVTXRangeWrapper with order checks: messages, and no effect before them."""

from __future__ import annotations

import re
import threading

import pytest
from nvtx_calls import is_balanced

import marey
from marey import NVTXRangeWrapper


@pytest.fixture
def wrapper():
    return NVTXRangeWrapper(False, False, True)


def on_a_thread(function):
    """The result or exception of `function` on a separate thread."""
    found = []

    def run():
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_ranges_that_fit_pass_with_and_without_a_name(wrapper):
    wrapper.range_push("a")
    wrapper.range_push("b")
    wrapper.range_pop("b")
    wrapper.range_push("b")
    wrapper.range_pop()
    wrapper.range_pop("a")


def test_a_mismatch_tells_popped_expected_stack_thread_and_place(wrapper):
    wrapper.range_push("epoch")
    wrapper.range_push("only pushed here")
    with pytest.raises(marey.RangeError) as caught:
        wrapper.range_pop("epoch")
    text = str(caught.value)
    assert text.startswith("'epoch' was popped, but 'only pushed here' was pushed last")
    assert re.search(r"begun at .*test_nvtx_order\.py:\d+", text)
    assert "the stack is epoch > only pushed here" in text
    assert f"on thread {threading.get_native_id()}" in text
    assert text.endswith("nothing was popped")


def test_it_raises_what_programs_that_assert_catch(wrapper):
    with pytest.raises(AssertionError):
        wrapper.range_pop("a")
    assert issubclass(marey.RangeError, (marey.MareyError, RuntimeError))


def test_a_pop_too_many_is_reported_with_the_thread(wrapper):
    wrapper.range_push("a")
    wrapper.range_pop("a")
    for pop in (wrapper.range_pop, lambda: wrapper.range_pop("a")):
        with pytest.raises(marey.RangeError, match=f"nothing is pushed, on thread {threading.get_native_id()}"):
            pop()


def test_after_an_error_the_right_pop_works(wrapper, record):
    with record() as path:
        wrapper.range_push("a")
        wrapper.range_push("b")
        for _ in range(3):
            with pytest.raises(marey.RangeError):
                wrapper.range_pop("a")
        wrapper.range_pop("b")
        wrapper.range_pop("a")
    found = marey.load(path)
    assert sorted(found.ranges["name"]) == ["a", "b"]
    assert len(found.open) == 0


def test_without_tracking_the_name_is_not_looked_at(record):
    wrapper = NVTXRangeWrapper(False, False, False)
    with record() as path:
        wrapper.range_push("a")
        wrapper.range_pop("b")
        wrapper.range_pop("c")
    assert marey.load(path).ranges["name"] == ["a"]


def test_threads_have_stacks_of_their_own(wrapper):
    wrapper.range_push("of the main thread")
    error = on_a_thread(lambda: wrapper.range_pop("of the main thread"))
    assert isinstance(error, marey.RangeError)
    assert "nothing is pushed" in str(error)

    def elsewhere():
        wrapper.range_push("elsewhere")
        wrapper.range_pop("elsewhere")

    assert on_a_thread(elsewhere) is None
    wrapper.range_pop("of the main thread")


def test_two_threads_at_once_do_not_disturb_each_other(wrapper):
    barrier = threading.Barrier(2)
    failures = []

    def run(name):
        try:
            barrier.wait()
            for i in range(2000):
                wrapper.range_push(name)
                wrapper.range_push(f"{name} {i % 7}")
                wrapper.range_pop(f"{name} {i % 7}")
                wrapper.range_pop(name)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_stack_ends_with_its_thread(wrapper):
    for _ in range(200):
        on_a_thread(lambda: wrapper.range_push("left open"))
        error = on_a_thread(lambda: wrapper.range_pop())
        assert isinstance(error, marey.RangeError)
        assert "nothing is pushed" in str(error)


def test_blocks_count_among_the_ranges(wrapper):
    with marey.range("block"):
        with pytest.raises(marey.RangeError, match="'block' was pushed last"):
            wrapper.range_pop("other")
        wrapper.range_push("inside")
        wrapper.range_pop("inside")
    with pytest.raises(marey.RangeError, match="'left open' was pushed last"):
        with marey.range("block"):
            wrapper.range_push("left open")
    wrapper.range_pop("left open")
    wrapper.range_pop("block")


@marey.range("decorated")
def decorated(inside):
    return inside()


def test_functions_count_among_the_ranges(wrapper):
    with pytest.raises(marey.RangeError, match="'left open' was pushed last"):
        decorated(lambda: wrapper.range_push("left open"))
    wrapper.range_pop("left open")
    wrapper.range_pop("decorated")


def test_an_exception_on_its_way_is_not_replaced(wrapper):
    with pytest.raises(KeyError):
        with marey.range("block"):
            wrapper.range_push("left open")
            raise KeyError
    wrapper.range_pop("left open")
    wrapper.range_pop("block")


@pytest.mark.parametrize("is_recording", [False, True])
def test_enabled_in_the_middle_of_blocks(tmp_path, is_recording):
    if is_recording:
        marey.start(tmp_path / "run.marey")
    wrapper = NVTXRangeWrapper()

    def enable():
        wrapper.enable(False, False, True)
        with marey.range("inner"):
            wrapper.range_push("a")
            wrapper.range_pop("a")

    with marey.range("outer"):
        with marey.range("block"):
            decorated(enable)
        wrapper.range_push("b")
        wrapper.range_pop("b")
    with pytest.raises(marey.RangeError):
        wrapper.range_pop("c")
    if is_recording:
        marey.stop()
        found = marey.load(tmp_path / "run.marey")
        assert found.warnings == []
        assert sorted((row["depth"], row["name"]) for row in found.tree) == [
            (0, "outer"),
            (1, "b"),
            (1, "block"),
            (2, "decorated"),
            (3, "inner"),
            (4, "a"),
        ]


def test_disabled_and_enabled_in_the_middle_of_blocks(wrapper, record):
    with record() as path:
        with marey.range("outer"):
            wrapper.range_push("of the wrapper")
            with marey.range("inner"):
                wrapper.disable()
                wrapper.enable(False, False, True)
            wrapper.range_push("again")
            wrapper.range_pop("again")
        with pytest.raises(marey.RangeError):
            wrapper.range_pop()
    assert len(marey.load(path).open) == 0


def test_blocks_entered_before_are_ended_for_the_tool_as_well(listen, nvtx_tool):
    calls = listen(
        """
        import marey
        wrapper = marey.NVTXRangeWrapper()
        with marey.range("outer"):
            with marey.range("inner"):
                wrapper.enable(False, False, True)
                wrapper.range_push("a")
                wrapper.range_pop("a")
            wrapper.disable()
        """,
        tool=nvtx_tool,
    )
    assert calls.lines == ["push outer", "push inner", "push a", "pop", "pop", "pop"]
    assert calls.done.stderr == ""


def test_an_error_comes_before_the_pop_takes_effect(listen, nvtx_tool):
    calls = listen(
        """
        import marey
        wrapper = marey.NVTXRangeWrapper(True, True, True)
        wrapper.range_push("a")
        for name in ("b", "c"):
            try:
                wrapper.range_pop(name)
            except marey.RangeError:
                marey.mark("told")
        wrapper.range_pop("a")
        try:
            wrapper.range_pop()
        except marey.RangeError:
            marey.mark("told")
        """,
        tool=nvtx_tool,
        cuda=True,
    )
    assert calls.lines == ["sync", "push a", "mark told", "mark told", "sync", "pop", "mark told"]
    assert is_balanced(calls.every)


def test_disable_ends_what_this_thread_has_open(listen, nvtx_tool):
    calls = listen(
        """
        import marey
        wrapper = marey.NVTXRangeWrapper(False, False, True)
        with marey.range("block"):
            wrapper.range_push("a")
            wrapper.range_push("b")
            wrapper.disable()
            wrapper.range_pop("b")
            wrapper.range_pop("a")
        """,
        tool=nvtx_tool,
    )
    assert calls.lines == ["push block", "push a", "push b", "pop", "pop", "pop"]


def test_ranges_left_open_are_reported_at_the_end_of_a_recording(run_python, tmp_path):
    run_python(
        """
        import marey
        marey.start("run.marey")
        wrapper = marey.NVTXRangeWrapper(False, False, True)
        wrapper.range_push("epoch")
        wrapper.range_push("step")
        """
    )
    assert sorted(marey.load(tmp_path / "run.marey").open["name"]) == ["epoch", "step"]
