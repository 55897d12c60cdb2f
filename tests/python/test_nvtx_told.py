"""`marey run --nvtx` records NVTX events of real programs, in C and with the package nvtx."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest
from nvtx_calls import Calls, is_balanced, read_calls

import marey

N_THREADS, N_EACH = 8, 2000  # as tests/nvtx/told.c has them


@dataclass
class Told:
    """A recording, and how the program ended."""

    path: Path
    done: subprocess.CompletedProcess[str]

    @property
    def ranges(self) -> dict[str, int]:
        return _counts(marey.load(self.path).ranges)

    @property
    def async_ranges(self) -> dict[str, int]:
        return _counts(marey.load(self.path).async_ranges)

    @property
    def marks(self) -> dict[str, int]:
        return _counts(marey.load(self.path).marks)

    @property
    def sites(self) -> set[tuple[str, str, str, int]]:
        """Name, category, domain and color of each, without the one that every process has."""
        table = marey.load(self.path).sites
        every = zip(table["name"], table["category"], table["domain"], table["color"])
        return {site for site in every if site[0] != "(other names)"}

    @property
    def trace(self) -> list[dict[str, Any]]:
        """The content of the Chrome export."""
        file = self.path.with_suffix(".json")
        marey.load(self.path).export("chrome", file)
        events: list[dict[str, Any]] = json.loads(file.read_text())["traceEvents"]
        return events

    @property
    def events(self) -> list[dict[str, Any]]:
        """The same without what describes threads and processes."""
        return [e for e in self.trace if e["ph"] != "M"]


def _counts(table: Any) -> dict[str, int]:
    return dict(zip(table["name"], table["count"]))


Tell = Callable[..., Told]


@pytest.fixture
def program(nvtx_build: Path) -> Path:
    path = nvtx_build / "nvtx_told"
    if not path.exists():
        pytest.skip("the program was not built, because NVTX's headers were not found")
    return path


@pytest.fixture
def tell(marey_command: list[str], tmp_path: Path) -> Tell:
    """Run a command under `marey run --nvtx`: tell(program, "everything", env={...})."""

    def run(*command: object, env: Optional[dict[str, str]] = None, options: tuple[str, ...] = ("--nvtx",)) -> Told:
        path = tmp_path / "run.marey"
        done = subprocess.run(
            [
                *marey_command,
                "run",
                "--only",
                "ranges",
                "--quiet",
                "--force",
                *options,
                "-o",
                str(path),
                "--",
                *map(str, command),
            ],
            env={**os.environ, **(env or {})},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Told(path, done)

    return run


@pytest.fixture
def told(tell: Tell, program: Path) -> Tell:
    """The same for a part of the program in C, which must end well and in silence."""

    def run(*part: object, **more: Any) -> Told:
        told = tell(program, *part, **more)
        assert (told.done.returncode, told.done.stderr) == (0, "")
        return told

    return run


# ---- a program in C ----


def test_ranges_marks_and_async_ranges(told):
    run = told("everything")
    assert run.ranges == {
        "outer": 1,
        "with attributes": 1,
        "wide é日\U0001f600": 1,
        "registered": 1,
        "registered 日": 1,
        "in category 7": 1,
        "payload": 1,
    }
    assert run.async_ranges == {"started": 1, "started wide": 1, "started with attributes": 1, "in the library": 1}
    assert run.marks == {
        "a mark": 1,
        "a mark with attributes": 1,
        "wide mark": 1,
        "registered 日": 1,
        "payload": 5,
    }
    assert marey.load(run.path).warnings == []


def test_domains_categories_and_colors_are_of_the_sites(told):
    color = 0xFF336699
    assert told("everything").sites == {
        ("outer", "", "", 0),
        ("with attributes", "", "", color),
        ("a mark", "", "", 0),
        ("a mark with attributes", "", "", color),
        ("wide é日\U0001f600", "", "", 0),
        ("wide mark", "", "", 0),
        ("started", "", "", 0),
        ("started wide", "", "", 0),
        ("started with attributes", "", "", color),
        ("registered", "disk", "library", 0),
        ("registered 日", "net é", "other", 0),
        ("in the library", "9", "library", 0),
        ("in category 7", "not this one", "", 0),
        ("payload", "", "", 0),
    }


def test_payloads_go_along(told):
    payloads = [e["args"]["payload"] for e in told("everything").events if e["name"] == "payload"]
    assert payloads == ["18446744073709551615", -7, 0.25, 4294967295, -8, 0.5]


def test_payloads_with_schemas_are_texts(told, nvtx_tool):
    run = told("schemas")
    payloads = {e["name"]: e.get("args", {}).get("payload") for e in run.events if e["ph"] in "iX"}
    whole = (
        "NCCL communicator ID = 77, Message size [bytes] = 4096, Reduction operation = Product, factor = 0.5, "
        "label = grads, sizes = [2, -3, 4]"
    )
    assert payloads == {
        "ncclAllReduce": whole,
        "as the schema says": whole,
        "cut": "NCCL communicator ID = 77, Message size [bytes] = 4096",
        "text": "seq = 4, just a text",
        "unknown": None,
        "send": "peer = 3",
    }
    assert run.ranges == {"ncclAllReduce": 1, "send": 1}
    assert run.async_ranges == {"send": 1}
    assert {site[2] for site in run.sites} == {"NCCL"}


def test_what_varies_in_a_name_is_a_payload(told):
    run = told("varying")
    assert run.ranges == {"aten::mul": 1000, "aten::add": 1}
    assert run.marks == {"loss": 1, "a, b": 1, "a,b=c, d =e": 1}
    payloads = {(e["name"], e.get("args", {}).get("payload")) for e in run.events}
    assert {p for n, p in payloads if n == "aten::mul"} == {
        f"seq = {i}, op_id = {i + 5}, sizes = [[{i}, 3], []]" for i in range(1000)
    }
    assert ("aten::add", "seq = 7") in payloads
    assert ("loss", "seq = 9, payload = 0.5") in payloads
    assert ("a, b", "c = d") in payloads
    assert ("a,b=c, d =e", None) in payloads


def test_names_without_end_become_few(told):
    run = told("endless")
    ranges = run.ranges
    assert sum(ranges.values()) == 20000
    assert len(ranges) < 5000
    assert all(ranges[f"step {i} of run"] == 1 for i in range(4000))
    folded = [e["args"]["payload"] for e in run.events if e["name"] == "step # of run"]
    assert len(folded) == ranges["step # of run"] > 15000
    assert folded[-1] == "step 19999 of run"


def test_awkward_names(told):
    run = told("awkward")
    longest, unnamed = sorted(run.ranges.items(), key=lambda item: -len(item[0]))
    assert (len(longest[0]), longest[1], unnamed[1]) == (1 << 20, 1, 2)
    assert sorted(run.marks.values()) == [1, 1, 6]
    assert any("not" in name and "UTF-8" in name for name in run.marks)
    assert any(name.endswith("y") for name in run.marks)


def test_another_text_at_the_same_address_is_another_name(told):
    assert told("reused").ranges == {"text a": 100, "text b": 100, "text c": 100}


def test_categories_have_the_name_of_the_moment(told):
    run = told("renamed")
    categories = Counter(e.get("cat") for e in run.events if "cname" not in e)
    assert [categories[c] for c in ("5", "first")] == [1, 1]
    assert run.marks == {"range": 1003}
    assert len(run.sites) < 50


def test_domains_have_stacks_of_their_own(told):
    run = told("levels")
    assert run.ranges == {"a": 1, "b": 1, "c": 1}
    ends = {e["name"]: e["ts"] + e["dur"] for e in run.events if e["ph"] == "X" and e["name"] in "abc"}
    assert ends["b"] < ends["c"] < ends["a"]
    assert list(marey.load(run.path).open["name"]) == ["never popped"]


def test_deeper_than_anything(told):
    ranges = told("deep", env={"MAREY_OPTIONS": "pool=128MiB"}).ranges
    assert 500_000 < ranges["deep"] <= 1 << 20
    assert ranges["after"] == 1


def test_threads(told):
    run = told("threads")
    assert run.ranges == {"shared": N_THREADS * N_EACH, **{f"of thread {i}": N_EACH for i in range(N_THREADS)}}
    assert marey.load(run.path).warnings == []
    assert set(marey.load(run.path).threads["thread"]) == {"a worker"}


def test_names_of_threads(told):
    run = told("named")
    assert set(marey.load(run.path).threads["thread"]) == {"the main thread, 日"}
    names = [e["args"]["name"] for e in run.trace if e["name"] == "thread_name"]
    assert sorted(names) == ["a child", "the main thread, 日"]


def test_forked_children_record_what_they_do(told):
    run = told("forks")
    ranges = run.ranges
    assert ranges.pop("shared") == ranges.pop("of thread 99") == N_EACH
    assert ranges == {"around the fork": 10, **{f"child {i}": 1 for i in range(10)}}
    assert len(marey.load(run.path).processes["pid"]) == 11
    assert marey.load(run.path).warnings == []


def test_ranges_at_exit(told):
    assert told("ends").ranges == {"before the end": 1, "at exit": 1}


def test_each_library_has_nvtx_of_its_own(told, nvtx_build):
    libraries = [nvtx_build / f"nvtx_told_{name}.so" for name in ("one", "two")]
    run = told("libraries", *libraries)
    assert run.ranges == {"program": 4, "library one": 2, "library two": 2}
    assert run.marks == {str(library): 2 for library in libraries}
    assert {site[2] for site in run.sites if site[0].startswith("library")} == {"of a library"}


# ---- a second tool ----


@pytest.fixture
def behind(tell: Tell, program: Path, nvtx_tool: Path, tmp_path: Path) -> Callable[..., tuple[Told, Calls]]:
    """The same with a tool after marey; also returns its calls."""

    def run(*part: object, **more: Any) -> tuple[Told, Calls]:
        log = tmp_path / "calls"
        env = {"NVTX_INJECTION64_PATH": str(nvtx_tool), "MAREY_TEST_NVTX_LOG": str(log), **more.pop("env", {})}
        run = tell(program, *part, env=env, **more)
        assert run.done.stderr == ""
        return run, Calls(read_calls(log), run.done)

    return run


def alone(program: Path, tool: Path, log: Path, part: str) -> Calls:
    """The tool's calls without marey."""
    done = subprocess.run(
        [program, part],
        env={**os.environ, "NVTX_INJECTION64_PATH": str(tool), "MAREY_TEST_NVTX_LOG": str(log)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Calls(read_calls(log), done)


def without_ids(calls: Calls) -> list[dict[str, Any]]:
    return [{k: v for k, v in call.items() if k not in ("pid", "tid")} for call in calls.every]


@pytest.mark.parametrize("part", ["everything", "varying", "reused", "renamed", "levels", "schemas"])
def test_a_second_tool_hears_what_it_hears_alone(behind, program, nvtx_tool, tmp_path, part):
    run, calls = behind(part)
    expected = alone(program, nvtx_tool, tmp_path / "alone", part)
    assert without_ids(calls) == without_ids(expected)
    assert calls.done.returncode == expected.done.returncode
    assert run.ranges or run.marks


def test_a_second_tool_and_threads(behind):
    run, calls = behind("threads")
    assert run.ranges["shared"] == N_THREADS * N_EACH == len(calls.of("push", "shared"))
    assert is_balanced(calls.every)


def test_a_second_tool_that_refuses_or_is_none(told, tell, program, nvtx_tool, tmp_path):
    env = {"NVTX_INJECTION64_PATH": str(nvtx_tool), "MAREY_TEST_NVTX_REFUSE": "1"}
    assert told("reused", env=env).ranges["text a"] == 100
    run = tell(program, "reused", env={"NVTX_INJECTION64_PATH": "/nowhere/tool.so"})
    assert run.done.returncode == 0
    assert run.done.stderr == (
        "marey: NVTX's ranges are recorded and go to no second tool, because /nowhere/tool.so cannot be loaded; "
        "see NVTX_INJECTION64_PATH\n"
    )
    assert run.ranges["text a"] == 100


def test_marey_s_own_ranges_are_recorded_once(tell, nvtx_build):
    run = tell(nvtx_build / "nvtx_ranges")
    assert (run.done.returncode, run.done.stderr) == (0, "")
    once = tell(nvtx_build / "nvtx_ranges", options=())
    assert run.ranges == once.ranges
    assert run.marks == once.marks
    assert run.sites == once.sites


def test_marey_s_own_ranges_reach_the_second_tool_once(tell, nvtx_build, nvtx_tool, tmp_path):
    def calls(options: tuple[str, ...]) -> list[str]:
        log = tmp_path / f"calls{len(options)}"
        env = {"NVTX_INJECTION64_PATH": str(nvtx_tool), "MAREY_TEST_NVTX_LOG": str(log)}
        run = tell(nvtx_build / "nvtx_ranges", options=options, env=env)
        assert (run.done.returncode, run.done.stderr) == (0, "")
        return Calls(read_calls(log), run.done).lines

    assert calls(("--nvtx",)) == calls(()) != []


# ---- what `marey run` finds ----


def test_nsight_systems_has_the_word(tell, program):
    run = tell(program, "reused", env={"NVTX_INJECTION64_PATH": "/opt/nsight/libToolsInjection64.so"})
    said = run.done.stderr.splitlines()
    assert said[0] == (
        "marey: Nsight Systems receives the NVTX ranges of the program, so they are not recorded; run without nsys to "
        "record them"
    )
    assert said[1].startswith("marey: no events: ")
    assert run.done.returncode == 0
    assert tell(program, "reused", env={"NSYS_PROFILING_SESSION_ID": "7"}).done.stderr.splitlines()[0] == said[0]


def test_a_run_within_a_run(told, tell, program, marey_command):
    run = tell(*marey_command, "run", "--nvtx", "--append", "-q", "-o", "run.marey", "--", program, "reused")
    assert run.done.returncode == 0, run.done.stderr
    assert run.ranges == {"text a": 100, "text b": 100, "text c": 100}


def test_a_missing_library_is_said(tmp_path, marey_command, program):
    package = Path(marey_command[0]).parent.parent
    copy = tmp_path / "marey"
    (copy / "bin").mkdir(parents=True)
    for library in package.glob("libmarey*.so*"):
        if "nvtx" not in library.name:
            shutil.copy(library, copy)
    shutil.copy(marey_command[0], copy / "bin")
    done = subprocess.run(
        [copy / "bin" / "marey", "run", "--nvtx", "--", program, "reused"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"marey: --nvtx needs libmarey-nvtx.so, which is missing beside libmarey in {copy}; "
        "reinstall marey completely\n"
    )
    assert not list(tmp_path.glob("*.marey"))


def test_a_program_that_tells_nothing(tell):
    run = tell("true")
    assert run.done.returncode == 0
    assert run.done.stderr.startswith("marey: no events: the program has no marey ranges and sent nothing to NVTX\n")


# ---- the package nvtx ----

needs_nvtx = pytest.mark.skipif(
    importlib.util.find_spec("nvtx") is None,
    reason="nvtx is not installed; tools/setup test installs it where an index is at hand",
)


@pytest.fixture
def script(tell: Tell, tmp_path: Path) -> Callable[..., Told]:
    def run(source: str, **more: Any) -> Told:
        file = tmp_path / "script.py"
        file.write_text(source)
        told = tell(sys.executable, file, **more)
        assert (told.done.returncode, told.done.stderr) == (0, ""), told.done.stderr
        return told

    return run


@needs_nvtx
def test_the_package_nvtx(script):
    run = script(
        """
import threading
import nvtx

@nvtx.annotate("function", color="green", domain="python", category="work")
def function():
    nvtx.mark("mark", domain="python", payload=3)

with nvtx.annotate("block"):
    for _ in range(5):
        function()
nvtx.push_range("pushed", domain="other")
nvtx.pop_range(domain="other")
started = nvtx.start_range("started")
thread = threading.Thread(target=nvtx.end_range, args=(started,))
thread.start()
thread.join()
"""
    )
    assert run.ranges == {"function": 5, "block": 1, "pushed": 1}
    assert run.marks == {"mark": 5}
    assert run.async_ranges == {"started": 1}
    assert ("function", "work", "python", 0xFF008000) in run.sites
    assert [e["args"] for e in run.events if e["name"] == "mark"] == [{"payload": 3}] * 5


@needs_nvtx
def test_the_package_nvtx_with_arrays(script):
    pytest.importorskip("numpy")
    run = script(
        """
import numpy as np
import nvtx

domain = nvtx.get_domain("arrays")
for name, payload in [
    ("list", [1, 2, 3]),
    ("long", list(range(100))),
    ("real", np.array([0.5, 2], dtype=np.float32)),
    ("struct", np.array((7, 2.5), dtype=[("step", np.int32), ("loss", np.float64)])),
]:
    nvtx.mark(name, domain="arrays", payload=payload)
"""
    )
    payloads = {e["name"]: e.get("args", {}).get("payload") for e in run.events}
    assert "[1, 2, 3]" in payloads["list"]
    assert "14, 15, ...]" in payloads["long"]
    assert "[0.5, 2]" in payloads["real"]
    assert payloads["struct"] == "step = 7, loss = 2.5"


@needs_nvtx
def test_recordings_that_stop_and_start_in_between(script, tmp_path):
    run = script(
        """
import marey, nvtx

nvtx.push_range("around")
marey.stop()
with nvtx.annotate("not recorded"):
    nvtx.push_range("begun too early")
marey.start("second.marey")
nvtx.pop_range()
with nvtx.annotate("second"), marey.range("ours"):
    pass
marey.stop()
"""
    )
    assert run.ranges == {}
    assert list(marey.load(run.path).open["name"]) == ["around"]
    second = marey.load(tmp_path / "second.marey")
    assert _counts(second.ranges) == {"second": 1, "ours": 1}
    assert second.warnings == []
