"""marey's ranges in an NVTX tool: a real tool, loaded by NVTX, that logs its calls."""

from __future__ import annotations

import subprocess

import pytest
from nvtx_calls import Calls, is_balanced, read_calls

import marey


def test_blocks_functions_and_pushes_reach_the_tool(listen, nvtx_tool):
    calls = listen(
        """
        import marey

        @marey.range("function")
        def function():
            marey.push("pushed")
            marey.pop()

        with marey.range("block"):
            function()
        marey.mark("here")
        """,
        tool=nvtx_tool,
    )
    assert calls.lines == ["push block", "push function", "push pushed", "pop", "pop", "pop", "mark here"]
    assert calls.done.stderr == ""


@pytest.mark.parametrize("is_recording", [False, True])
def test_the_tool_and_the_recording_hear_the_same(listen, nvtx_tool, tmp_path, is_recording):
    calls = listen(
        f"""
        import marey
        if {is_recording}:
            marey.start("run.marey")
        for i in range(3):
            with marey.range("step", payload=i):
                with marey.range("forward"):
                    pass
        """,
        tool=nvtx_tool,
    )
    assert [c["payload"] for c in calls.of("push", "step")] == [0, 1, 2]
    assert len(calls.of("push", "forward")) == 3
    assert is_balanced(calls.every)
    if is_recording:
        ranges = marey.load(tmp_path / "run.marey").ranges
        assert sorted(zip(ranges["name"], ranges["count"])) == [("forward", 3), ("step", 3)]


def test_names_are_registered_once(listen, nvtx_tool):
    calls = listen(
        """
        import marey
        for _ in range(100):
            with marey.range("again"):
                pass
        """,
        tool=nvtx_tool,
    )
    assert len(calls.of("register", "again")) == 1
    assert {c["registered"] for c in calls.of("push", "again")} == {1}


def test_domain_category_color(listen, nvtx_tool):
    calls = listen(
        """
        import marey
        with marey.range("read", category="disk", color="#336699", domain="loader"):
            with marey.range("plain"):
                pass
        marey.mark("seen", category="disk", color=0xFF00FF00, domain="loader")
        """,
        tool=nvtx_tool,
    )
    assert calls.lines == ["push read in loader", "push plain", "pop", "pop in loader", "mark seen in loader"]
    read = calls.one("push", "read")
    assert (read["category"], read["color"]) == ("disk", 0xFF336699)
    plain = calls.one("push", "plain")
    assert "category" not in plain
    assert "color" not in plain
    seen = calls.one("mark", "seen")
    assert (seen["category"], seen["color"]) == ("disk", 0xFF00FF00)
    assert len(calls.of("create_domain", "loader")) == 1


@pytest.mark.parametrize(
    ("payload", "kind", "heard"),
    [
        (-7, "i64", -7),
        (2**64 - 1, "u64", 2**64 - 1),
        (0.25, "f64", 0.25),
        ("3x224x224", "text", "3x224x224"),
        ("größe \u65e5", "text", "größe \u65e5"),
    ],
)
def test_payloads(listen, nvtx_tool, payload, kind, heard):
    calls = listen(
        f"""
        import marey
        with marey.range("r", payload={payload!r}):
            pass
        marey.mark("m", payload={payload!r})
        """,
        tool=nvtx_tool,
        env={"PYTHONUTF8": "1"},
    )
    for call in (calls.one("push", "r"), calls.one("mark", "m")):
        assert (call["payload_type"], call["payload"]) == (kind, heard)


def test_async_ranges_start_and_end_also_on_another_thread(listen, nvtx_tool):
    calls = listen(
        """
        import asyncio, threading
        import marey
        from marey import _native

        async def work():
            async with marey.range("request", domain="server"):
                await asyncio.sleep(0)

        async def main():
            await asyncio.gather(work(), work())

        asyncio.run(main())
        handle = _native.async_begin(marey.range("elsewhere"))
        thread = threading.Thread(target=_native.async_end, args=(handle,))
        thread.start()
        thread.join()
        """,
        tool=nvtx_tool,
    )
    assert calls.lines[:2] == ["start request in server"] * 2
    started = {c["range"]: c for c in calls.of("start")}
    ended = {c["range"]: c for c in calls.of("end")}
    assert len(started) == 3
    assert started.keys() == ended.keys()
    one = calls.one("start", "elsewhere")
    assert ended[one["range"]]["tid"] != one["tid"]


def test_a_coroutine_is_an_async_range(listen, nvtx_tool):
    calls = listen(
        """
        import asyncio
        import marey

        @marey.range("fetch")
        async def fetch():
            await asyncio.sleep(0)

        asyncio.run(fetch())
        """,
        tool=nvtx_tool,
    )
    assert calls.lines == ["start fetch", "end"]


def test_exceptions_end_what_they_leave(listen, nvtx_tool):
    calls = listen(
        """
        import marey

        @marey.range("function")
        def function():
            with marey.range("block"):
                raise KeyError

        try:
            function()
        except KeyError:
            marey.mark("caught")
        """,
        tool=nvtx_tool,
    )
    assert calls.lines == ["push function", "push block", "pop", "pop", "mark caught"]


def test_a_push_in_one_domain_and_a_pop_by_order(listen, nvtx_tool):
    """Tools keep a stack for each domain; a pop goes to the domain of the range that it ends."""
    calls = listen(
        """
        import marey
        with marey.range("outer", domain="a"):
            marey.push("middle")
            with marey.range("inner", domain="b"):
                pass
            marey.pop()
        """,
        tool=nvtx_tool,
    )
    assert calls.lines == ["push outer in a", "push middle", "push inner in b", "pop in b", "pop", "pop in a"]


def test_two_threads(listen, nvtx_tool):
    calls = listen(
        """
        import threading
        import marey

        def work(name):
            for _ in range(200):
                with marey.range(name):
                    with marey.range("shared", domain="library"):
                        pass

        threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
        tool=nvtx_tool,
    )
    assert is_balanced(calls.every)
    tids = {name: {c["tid"] for c in calls.of("push", name)} for name in ("a", "b")}
    assert [len(calls.of("push", name)) for name in ("a", "b", "shared")] == [200, 200, 400]
    assert len(tids["a"]) == len(tids["b"]) == 1
    assert tids["a"] != tids["b"]


def test_a_forked_child_goes_on(listen, nvtx_tool):
    calls = listen(
        """
        import os
        import marey
        wrapper = marey.NVTXRangeWrapper(False, False, True)
        with marey.range("parent"):
            wrapper.range_push("both")
            child = os.fork()
            with marey.range("child" if child == 0 else "still parent"):
                pass
            wrapper.range_pop("both")
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
        tool=nvtx_tool,
    )
    parent = calls.one("push", "parent")["pid"]
    child = calls.one("push", "child")["pid"]
    assert child != parent
    of_child = Calls([c for c in calls.every if c["pid"] == child], calls.done)
    of_parent = Calls([c for c in calls.every if c["pid"] == parent], calls.done)
    assert of_child.lines == ["push child", "pop", "pop", "pop"]
    assert of_parent.lines == ["push parent", "push both", "push still parent", "pop", "pop", "pop"]


def test_processes_of_multiprocessing(listen, nvtx_tool):
    calls = listen(
        """
        import multiprocessing
        import marey

        def work(_):
            with marey.range("in a worker"):
                pass

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                pool.map(work, range(8))
        """,
        tool=nvtx_tool,
    )
    assert len(calls.of("push", "in a worker")) == 8
    assert is_balanced(calls.every)


@pytest.mark.usefixtures("nvtx_tool")
def test_a_tool_that_cannot_be_loaded_is_reported_once_and_the_program_goes_on(listen, tmp_path):
    calls = listen(
        """
        import marey
        marey.start("run.marey")
        for _ in range(10):
            with marey.range("step"):
                pass
        """,
        env={"NVTX_INJECTION64_PATH": str(tmp_path / "missing.so")},
    )
    assert calls.done.stderr.count("missing.so") == 1
    assert len(calls.done.stderr.splitlines()) == 1
    assert marey.load(tmp_path / "run.marey").ranges.row(name="step")["count"] == 10


def test_a_tool_that_refuses_is_reported_once_and_the_program_goes_on(listen, nvtx_tool):
    calls = listen(
        """
        import marey
        wrapper = marey.NVTXRangeWrapper(False, False, True)
        for _ in range(10):
            wrapper.range_push("a")
            with marey.range("step"):
                pass
            wrapper.range_pop("a")
        marey.mark("end")
        """,
        tool=nvtx_tool,
        env={"MAREY_TEST_NVTX_REFUSE": "1"},
    )
    assert calls.lines == []
    assert len(calls.of("initialize")) == 1
    assert len(calls.done.stderr.splitlines()) == 1
    assert "refused" in calls.done.stderr


LATE = """
    import os
    import marey
    from marey import numba_nvtx
    wrapper = marey.NVTXRangeWrapper()
    with marey.range("before"):
        marey.push("pushed before")
        os.environ["NVTX_INJECTION64_PATH"] = os.environ["MAREY_TEST_NVTX_TOOL"]
        {attach}
        with marey.range("after"):
            pass
        marey.pop()
    marey.push("again")
    marey.pop()
    """


@pytest.mark.parametrize(
    "attach", ["wrapper.enable(False, False, False)", 'numba_nvtx.register_string("x")', 'marey.start("run.marey")']
)
@pytest.mark.parametrize("is_recording", [False, True])
def test_a_tool_that_comes_late_hears_whole_ranges_only(listen, nvtx_tool, attach, is_recording):
    if is_recording and "start" in attach:
        attach = "marey.stop(); " + attach.replace("run", "other")
    source = LATE.format(attach=attach)
    if is_recording:
        source = source.replace("    import marey\n", '    import marey\n    marey.start("run.marey")\n', 1)
    calls = listen(source, env={"MAREY_TEST_NVTX_TOOL": str(nvtx_tool)})
    assert calls.lines == ["push after", "pop", "push again", "pop"]


def test_a_tool_that_comes_late_hears_no_end_of_what_was_tracked_before(listen, nvtx_tool):
    calls = listen(
        """
        import os
        import marey
        from marey import numba_nvtx
        wrapper = marey.NVTXRangeWrapper(False, False, True)
        wrapper.range_push("before")
        os.environ["NVTX_INJECTION64_PATH"] = os.environ["MAREY_TEST_NVTX_TOOL"]
        numba_nvtx.register_string("x")
        wrapper.range_push("after")
        wrapper.range_pop("after")
        wrapper.range_pop("before")
        """,
        env={"MAREY_TEST_NVTX_TOOL": str(nvtx_tool)},
    )
    assert calls.lines == ["push after", "pop"]


def test_the_option_keeps_ranges_from_tools(listen, nvtx_tool):
    source = """
        import marey
        with marey.range("a"):
            pass
        """
    assert listen(source, tool=nvtx_tool, env={"MAREY_OPTIONS": "nvtx=0"}).lines == []


def test_under_marey_run(listen, nvtx_tool, marey_command, tmp_path):
    calls = listen(
        """
        import marey
        with marey.range("step"):
            pass
        """,
        tool=nvtx_tool,
        command=[*marey_command, "run", "--only", "ranges", "-o", "run.marey", "--"],
    )
    assert calls.lines == ["push step", "pop"]
    assert marey.load(tmp_path / "run.marey").ranges["name"] == ["step"]


@pytest.mark.parametrize("is_checked", [False, True])
def test_recordings_that_come_and_go_leave_the_tool_balanced(listen, nvtx_tool, is_checked):
    calls = listen(
        f"""
        import marey
        for i in range(3):
            with marey.range("outer"):
                marey.start(f"run{{i}}.marey", check={is_checked})
                with marey.range("inner"):
                    pass
                marey.push("over the end")
                marey.stop()
                marey.pop()
        """,
        tool=nvtx_tool,
    )
    assert calls.lines == ["push outer", "push inner", "pop", "push over the end", "pop", "pop"] * 3
    assert calls.done.stderr.count("left 2 ranges open: outer > over the end") == is_checked


def test_neither_torch_nor_numpy_is_imported(listen, nvtx_tool):
    calls = listen(
        """
        import sys
        import marey
        wrapper = marey.NVTXRangeWrapper(True, True, True)
        wrapper.range_push("a")
        wrapper.range_pop("a")
        assert not {"torch", "numpy", "numba"} & set(sys.modules)
        """,
        tool=nvtx_tool,
    )
    assert calls.lines == ["push a", "pop"]


@pytest.mark.parametrize("is_recording", [False, True])
def test_a_program_in_c(nvtx_build, nvtx_tool, tmp_path, is_recording):
    log = tmp_path / "calls"
    env = {"MAREY_TEST_NVTX_LOG": str(log), "NVTX_INJECTION64_PATH": str(nvtx_tool)}
    if is_recording:
        env["MAREY"] = str(tmp_path / "run.marey")
    done = subprocess.run(
        [str(nvtx_build / "nvtx_ranges")], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    calls = Calls(read_calls(log), done)
    assert calls.lines == [
        *("push scope", "push block", "push by name", "pop", "pop"),
        *("push io.read in loader", "pop in loader", "mark here", "pop"),
        *["push with payload", "pop"] * 4,
        "mark mark with payload",
        *("start request", "end"),
        *("push compiled", "push (unregistered)", "pop", "pop"),
        *("push outer", "push inner", "pop", "pop"),
    ]
    assert [c["payload"] for c in calls.of("push", "with payload")] == [-7, 2**64 - 1, 0.25, "3x224"]
    read = calls.one("push", "io.read")
    assert (read["category"], read["color"]) == ("disk", 0xFF336699)
    mismatch, empty = done.stdout.splitlines()
    assert mismatch.startswith("'outer' was popped, but 'inner' was pushed last (begun at ")
    assert "ranges.c:" in mismatch
    assert "nothing is pushed" in empty
    if is_recording:
        ranges = marey.load(tmp_path / "run.marey").ranges
        assert ranges.row(name="with payload")["count"] == 4


def test_a_name_with_a_nul_is_heard_up_to_it(listen, nvtx_tool):
    """Texts end with a NUL in NVTX; the recording has the whole name."""
    calls = listen(
        """
        import marey
        with marey.range("a\\0b"):
            pass
        """,
        tool=nvtx_tool,
    )
    assert calls.lines == ["push a", "pop"]


def test_domains_are_in_the_recordings_sites(record):
    with record() as path:
        with marey.range("read", domain="loader", category="disk"):
            pass
        with marey.range("read"):
            pass
        marey.mark("seen", domain="loader")
    found = marey.load(path)
    sites = {(row["name"], row["domain"], row["category"]) for row in found.sites}
    assert {("read", "loader", "disk"), ("read", "", ""), ("seen", "loader", "")} <= sites
    assert found.ranges.row(name="read")["count"] == 2


def test_domains_tell_ranges_apart():
    one = marey.range("x", domain="a")
    assert one is marey.range("x", domain="a")
    assert one is not marey.range("x", domain="b")
    assert one is not marey.range("x")
    assert (one.domain, marey.range("x").domain) == ("a", None)
    with pytest.raises(TypeError, match="domain"):
        marey.range("x", domain=1)
    with pytest.raises(TypeError, match="category"):
        marey.mark("x", category=1)


def test_a_range_in_a_subinterpreter_is_heard(listen, nvtx_tool):
    calls = listen(
        """
        import marey
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        other = interpreters.create()
        interpreters.run_string(
            other,
            "import marey\\n"
            "wrapper = marey.NVTXRangeWrapper(True, False, True)\\n"
            "wrapper.range_push('there')\\n"
            "wrapper.range_pop('there')\\n",
        )
        interpreters.destroy(other)
        assert marey.NVTXRangeWrapper().is_enabled, "the switch is the process's"
        marey.NVTXRangeWrapper().range_push("here")
        marey.NVTXRangeWrapper().range_pop("here")
        """,
        tool=nvtx_tool,
        cuda=True,
    )
    assert calls.lines == ["sync", "push there", "pop", "sync", "push here", "pop"]
