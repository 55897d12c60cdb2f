"""Native frames among Python frames: every installed Python, and a real program with torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from watching import PYTHONS, Marey, running

PYTHON_FRAMES = ["inside", "__lt__", "generate", "<genexpr>", "add", "largest", "choose", "main", "<module>"]


def frames_of(marey: Marey, pid: int) -> list[dict[str, str]]:
    answer = json.loads(marey.run("stacks", pid, "--native", "--json").stdout)
    (main,) = (group for group in answer["groups"] if any(thread["tid"] == pid for thread in group["threads"]))
    return main["frames"]


@pytest.mark.parametrize("version", PYTHONS)
def test_frames_of_c_stand_between_the_python_frames_that_they_were_called_by(marey: Marey, version: str) -> None:
    with running("native_callbacks", command=[PYTHONS[version]]) as target:
        frames = frames_of(marey, target.pid)
    names = [frame["function"].rpartition(".")[2] for frame in frames]
    is_python = [frame["kind"] == "python" for frame in frames]
    assert [name for name, is_own in zip(names, is_python) if is_own] == PYTHON_FRAMES
    # It sleeps in C, and C stands where one Python function calls another through C.
    assert not is_python[0]
    for inner, outer in (("__lt__", "generate"), ("add", "largest"), ("largest", "choose"), ("choose", "main")):
        assert names.index(outer) - names.index(inner) > 1, f"nothing between {inner} and {outer}: {names}"
    # Neither CPython's machinery of calls nor how a program starts is of any use to anybody.
    assert names[-1] == "<module>"
    assert not {"_PyEval_EvalFrameDefault", "_PyObject_Call", "main.cold", "_start"} & set(names)


def test_a_library_that_was_deleted_is_still_unwound_and_reported(marey: Marey, tmp_path: Path) -> None:
    source, library = tmp_path / "late.c", tmp_path / "liblate.so"
    source.write_text("#include <unistd.h>\nint late(int (*f)(void)) { return f() + 1; }\n")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    program = (
        "import ctypes, os, time\n"
        f"late = ctypes.CDLL({str(library)!r}).late\n"
        f"os.unlink({str(library)!r})\n"
        "@ctypes.CFUNCTYPE(ctypes.c_int)\n"
        "def wait():\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(600)\n"
        "    return 0\n"
        "late(wait)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout and process.stdout.readline() == "ready\n"
        frames = frames_of(marey, process.pid)
    finally:
        process.kill()
        process.communicate()
    own = [frame["function"] for frame in frames if frame["kind"] == "python"]
    assert own == ["wait", "<module>"]
    libraries = [frame["library"] for frame in frames if frame["kind"] == "native"]
    assert any(name.startswith("liblate.so") for name in libraries), libraries
