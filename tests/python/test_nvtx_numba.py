"""marey.numba_nvtx: ranges by handle, from plain Python and from functions that Numba compiles."""

from __future__ import annotations

import textwrap

import pytest
from nvtx_calls import is_balanced

import marey
from marey import numba_nvtx


def test_equal_names_have_equal_handles():
    one = numba_nvtx.register_string("one")
    assert isinstance(one, int)
    assert 0 < one < 2**63
    assert numba_nvtx.register_string("one") == one
    assert numba_nvtx.register_string("two") != one


@pytest.mark.parametrize("wrong", [None, 1, b"bytes"])
def test_a_name_is_a_str(wrong):
    with pytest.raises(TypeError):
        numba_nvtx.register_string(wrong)


@pytest.mark.parametrize("wrong", [None, "1", 1.0])
def test_a_handle_is_an_int(wrong):
    with pytest.raises(TypeError):
        numba_nvtx.range_push(wrong)
    with pytest.raises(OverflowError):
        numba_nvtx.range_push(-1)


def test_ranges_of_plain_python_are_recorded(record):
    handle = numba_nvtx.register_string("plain")
    numba_nvtx.range_push(handle)
    numba_nvtx.range_pop()
    with record() as path:
        numba_nvtx.range_push(handle)
        numba_nvtx.range_push(handle + 1)
        numba_nvtx.range_pop()
        numba_nvtx.range_pop()
    rows = [(row["depth"], row["name"], row["count"]) for row in marey.load(path).tree]
    assert rows == [(0, "plain", 1), (1, "(unregistered)", 1)]


def test_they_are_checked_with_the_wrappers_ranges():
    wrapper = marey.NVTXRangeWrapper(False, False, True)
    numba_nvtx.range_push(numba_nvtx.register_string("by handle"))
    with pytest.raises(marey.RangeError, match="'by handle' was pushed last"):
        wrapper.range_pop("other")
    numba_nvtx.range_pop()
    with pytest.raises(marey.RangeError, match="nothing is pushed"):
        wrapper.range_pop("other")


def test_it_works_where_numba_is_not_installed(run_python):
    run_python(
        """
        import sys
        sys.modules["numba"] = sys.modules["llvmlite"] = None
        import marey
        from marey import numba_nvtx
        marey.start("run.marey")
        numba_nvtx.range_push(numba_nvtx.register_string("plain"))
        numba_nvtx.range_pop()
        marey.stop()
        assert marey.load("run.marey").ranges["name"] == ["plain"]
        """
    )


def test_import_marey_does_not_import_numba(run_python):
    run_python("import sys, marey; assert 'numba' not in sys.modules")


COMPILED = """
    import marey
    from marey import numba_nvtx
    from numba import njit

    OUTER = numba_nvtx.register_string("outer")
    INNER = numba_nvtx.register_string("inner")

    @njit({options})
    def add_one(x, handle):
        numba_nvtx.range_push(OUTER)
        for _ in range(2):
            numba_nvtx.range_push(handle)
            x += 0.5
            numba_nvtx.range_pop()
        numba_nvtx.range_pop()
        return x
    """


@pytest.mark.needs_numba
def test_compiled_ranges_reach_tool_and_recording(listen, nvtx_tool, tmp_path):
    calls = listen(
        COMPILED.format(options="nogil=True")
        + """
    marey.start("run.marey")
    assert add_one(41.0, INNER) == 42.0
    assert add_one.signatures, "it was not compiled"
    """,
        tool=nvtx_tool,
    )
    assert calls.lines == ["push outer", "push inner", "pop", "push inner", "pop", "pop"]
    rows = [(row["depth"], row["name"], row["count"]) for row in marey.load(tmp_path / "run.marey").tree]
    assert rows == [(0, "outer", 1), (1, "inner", 2)]


@pytest.mark.needs_numba
def test_compiled_code_needs_no_gil(run_python):
    """Two threads are inside compiled code at once: the first one waits there for the second."""
    run_python(
        """
        import threading
        import numpy as np
        from numba import njit
        from marey import numba_nvtx

        HANDLE = numba_nvtx.register_string("meeting")

        @njit(nogil=True)
        def meet(places, mine, other):
            numba_nvtx.range_push(HANDLE)
            places[mine] = 1
            for _ in range(20_000_000_000):
                if places[other] != 0:
                    break
                numba_nvtx.range_push(HANDLE)
                numba_nvtx.range_pop()
            numba_nvtx.range_pop()
            return places[other]

        meet(np.ones(2), 0, 1)
        places = np.zeros(2)
        first = threading.Thread(target=meet, args=(places, 0, 1))
        first.start()
        assert meet(places, 1, 0) == 1
        first.join()
        """
    )


@pytest.mark.needs_numba
def test_a_cached_function_is_right_in_the_next_process(listen, nvtx_tool, tmp_path):
    """The second process registers other names first, so that only the names can make the handles equal."""
    (tmp_path / "cached.py").write_text(textwrap.dedent(COMPILED.format(options="cache=True")))
    program = """
        import {first}
        import cached
        assert cached.add_one(41.0, cached.INNER) == 42.0
        print(sum(cached.add_one.stats.cache_hits.values()))
        """
    (tmp_path / "names.py").write_text(
        "from marey import numba_nvtx\nfor i in range(100):\n    numba_nvtx.register_string(f'other {i}')\n"
    )
    expected = ["push outer", "push inner", "pop", "push inner", "pop", "pop"]
    calls = listen(program.format(first="sys"), tool=nvtx_tool)
    assert calls.done.stdout == "0\n"
    assert calls.lines == expected
    calls = listen(program.format(first="names"), tool=nvtx_tool)
    assert calls.done.stdout == "1\n"
    assert calls.lines == expected * 2


@pytest.mark.needs_numba
def test_a_tool_that_comes_late_hears_balanced_ranges(listen, nvtx_tool):
    calls = listen(
        COMPILED.format(options="")
        + """
    import os

    @njit
    def begin(handle):
        numba_nvtx.range_push(handle)

    @njit
    def end():
        numba_nvtx.range_pop()

    begin(OUTER)
    os.environ["NVTX_INJECTION64_PATH"] = os.environ["MAREY_TEST_NVTX_TOOL"]
    late = numba_nvtx.register_string("late")
    begin(late)
    add_one(1.0, INNER)
    end()
    end()
    begin(OUTER)
    end()
    """,
        env={"MAREY_TEST_NVTX_TOOL": str(nvtx_tool)},
    )
    assert is_balanced(calls.every)
    inner = ["push outer", "push inner", "pop", "push inner", "pop", "pop"]
    assert calls.lines == ["push late", *inner, "pop", "push outer", "pop"]


@pytest.mark.needs_numba
def test_a_handle_that_is_no_integer_does_not_compile(run_python):
    run_python(
        """
        from numba import njit
        from numba.core.errors import TypingError
        from marey import numba_nvtx

        @njit
        def wrong():
            numba_nvtx.range_push("text")

        try:
            wrong()
        except TypingError:
            pass
        else:
            raise SystemExit(1)
        """
    )
