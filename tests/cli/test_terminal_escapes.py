"""Names of programs, ranges, threads, files and arguments cannot control the terminal, in any command."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# A title of the window, CSI as one character, DEL, text from right to left, an isolate, a byte that is not UTF-8.
HOSTILE = "x\x1b]0;owned\x07\x9b31m\x7f\u202egnp\u2066\u200f"
BYTES = HOSTILE.encode() + b"\xff"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def safe(*outputs: bytes) -> None:
    for output in outputs:
        text = output.decode(errors="replace")
        found = UNSAFE.search(text)
        assert found is None, repr(text[max(0, found.start() - 60) : found.end() + 20])
        output.decode()  # valid UTF-8, too


@pytest.fixture
def checked(program: Path, tmp_path: Path, environment: dict[str, str]) -> Any:
    """Run `marey ARGS...`; what it prints must be safe."""

    def run(*args: str | bytes, status: int | None = None) -> subprocess.CompletedProcess:
        command = [os.fsencode(program), *map(os.fsencode, args)]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        safe(done.stdout, done.stderr)
        assert status is None or done.returncode == status, done.stderr
        return done

    return run


def event(name: str, ts: int, dur: int, tid: int = 1, **more: object) -> dict[str, object]:
    return {"ph": "X", "name": name, "cat": "cpu_op", "pid": 1, "tid": tid, "ts": ts, "dur": dur, **more}


@pytest.fixture
def trace(tmp_path: Path) -> bytes:
    """A trace of a GPU run in which every string is hostile; so is its name."""
    kernel = {"stream": 7, "device": 0, "correlation": 5, "grid": [1, 1, 1], "block": [32, 1, 1]}
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": HOSTILE}},
        {"ph": "M", "name": "process_labels", "pid": 1, "args": {"labels": HOSTILE}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": HOSTILE}},
        event(HOSTILE, 1000, 900),
        event("ProfilerStep#1", 1000, 500, cat="user_annotation"),
        event("ProfilerStep#2", 1500, 500, cat="user_annotation"),
        event("inner " + HOSTILE, 1010, 200),
        event("cudaLaunchKernel", 1020, 10, cat="cuda_runtime", args={"correlation": 5}),
        {**event(HOSTILE, 1100, 300, tid=7), "cat": "kernel", "pid": 0, "args": kernel},
    ]
    path = os.fsencode(tmp_path) + b"/" + BYTES + b".json"
    with open(path, "w") as file:
        json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": HOSTILE}], "traceEvents": events}, file)
    return BYTES + b".json"


REPORTS = [
    ["report"],
    ["report", "--tree"],
    ["report", "--iterations"],
    ["report", "--gpu"],
    ["report", "--threads"],
    ["report", "--ranks"],
    ["report", "--calls"],
    ["report", "--memory"],
    ["report", "--samples"],
    ["report", "--energy"],
    ["report", "--epochs"],
    ["report", "--path"],
    ["report", "--filter", HOSTILE],
    ["report", "--sort", HOSTILE],
    ["report", "--csv", "--table", HOSTILE],
    ["breakdown"],
    ["breakdown", "--by", "step"],
    ["breakdown", "--by", HOSTILE],
    ["breakdown", "--rules", HOSTILE],
    ["export", "--to", "perfetto"],
    ["export", "--to", "collapsed", "--filter", HOSTILE],
    ["export", "--to", "kineto", "--from", HOSTILE],
    ["import"],
    ["scale"],
    ["artifacts"],
    ["diff", "missing"],
    ["dump", "ls"],
    ["dump", "stats"],
    ["generate-flamegraph", "--file"],
    ["generate-py-spy-report", "--file"],
]


@pytest.mark.parametrize("command", REPORTS, ids=lambda c: " ".join(c[:3]).replace(HOSTILE, "hostile"))
def test_what_a_file_says(checked, trace, command):
    checked(*command, trace)


def test_the_command_for_nsight_compute(checked, trace, tmp_path):
    """Only the kernel has such a name here."""
    hostile = json.dumps(HOSTILE)
    text = (tmp_path / os.fsdecode(trace)).read_text().replace(hostile, '"plain"')
    text = text.replace('"plain", "cat": "kernel"', '"x\\u001b]0;owned\\u0007", "cat": "kernel"')
    (tmp_path / "kernel.json").write_text(text.replace(hostile[1:-1], "plain"))
    found = checked("report", "--gpu", "kernel.json", status=0).stdout
    assert b"ncu --kernel-name-base" in found and b"owned" in found


def test_two_files_are_compared(checked, trace):
    checked("compare", trace, trace, status=0)
    checked("compare", trace, trace, "--filter", HOSTILE)
    checked("diff", trace, trace)


COMMANDS = ["run", "report", "export", "compare", "breakdown", "artifacts", "import", "diff", "dump", "doctor"]
COMMANDS += ["completion", "attach", "top", "stacks", "watch", "scale", "generate-flamegraph", "generate-py-spy-report"]
COMMANDS += ["generate-scalability-report"]


@pytest.mark.parametrize("command", COMMANDS)
def test_arguments_that_are_wrong(checked, command):
    checked(command, BYTES)
    checked(command, b"--" + BYTES)
    checked(command, b"--output", BYTES + b"/x", BYTES)
    checked(command, b"--jobs=" + BYTES)


def test_words_that_are_no_command(checked):
    checked(BYTES, status=2)
    checked(b"-" + BYTES, status=2)
    checked("help", BYTES, status=2)


def test_a_program_and_a_recording_of_such_a_name(checked, emit, tmp_path):
    os.symlink(os.fsencode(emit), os.fsencode(tmp_path) + b"/" + BYTES)
    done = checked("run", "--only", "ranges", "-o", BYTES + b".marey", "--", b"./" + BYTES, "3", "awkward", status=0)
    # What is to be typed next can be pasted into a shell.
    typed = re.search(rb"marey report (.*)\n", done.stderr)[1]
    read_back = subprocess.run([b"bash", b"-c", b"printf %s " + typed], capture_output=True, check=True).stdout
    assert read_back == BYTES + b".marey"
    for options in ([], ["--tree"], ["--threads"], ["--samples"], ["--gpu"]):
        checked("report", BYTES + b".marey", *options)
    checked("run", "--energy", "-o", BYTES + b"-2.marey", "--", "true", status=0)
    checked("report", BYTES + b"-2.marey")
    checked("run", "--only", "ranges", b"./missing" + BYTES, status=3)


def test_values_of_a_dump(checked, tmp_path):
    numpy = pytest.importorskip("numpy")
    folder = os.fsencode(tmp_path) + b"/" + BYTES
    os.mkdir(folder)
    for name, value in ((b"a", 1.0), (b"b", 2.0)):
        with open(folder + b"/" + name + b".npy", "wb") as file:
            numpy.save(file, numpy.full(3, value, numpy.float32))
    header = {HOSTILE: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "__metadata__": {HOSTILE: HOSTILE}}
    text = json.dumps(header).encode()
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
    (tmp_path / "b.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"\x00\x00\x80?")
    checked("dump", "ls", "a.safetensors", status=0)
    checked("dump", "show", "a.safetensors", HOSTILE, status=0)
    checked("dump", "stats", "a.safetensors", HOSTILE, status=0)
    checked("dump", "show", "a.safetensors", HOSTILE + "y", status=2)
    checked("diff", "a.safetensors", "b.safetensors", status=1)
    checked("diff", BYTES + b"/a.npy", BYTES + b"/b.npy", status=1)
    checked("dump", "ls", BYTES)


# ---- processes that run ----

PROGRAM = """
import sys, threading, time
def wait():
    print("ready", flush=True)
    time.sleep(600)
name = sys.argv[1]
more = {"co_qualname": name} if sys.version_info >= (3, 11) else {}
wait.__code__ = wait.__code__.replace(co_name=name, co_filename=name + ".py", **more)
open("/proc/self/comm", "w").write(name[:15])
thread = threading.Thread(target=wait, name=name)
thread.start()
thread.join()
"""


@pytest.fixture
def hostile_process(tmp_path: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, HOSTILE], stdout=subprocess.PIPE, env=environment, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def test_frames_and_threads_of_others(checked, hostile_process):
    pid = str(hostile_process.pid)
    assert b"gnp" in checked("stacks", pid, status=0).stdout
    checked("stacks", pid, "--native", status=0)
    for by in ("functions", "lines", "threads", "ranks"):
        checked("top", pid, "--once", "--window", "300ms", "--idle", "--by", by, status=0)
    checked("watch", pid, "--once", "--stall", "300ms", status=1)
    checked("attach", pid, "-d", "300ms", "-o", BYTES + b".marey", status=0)
    assert b"gnp" in checked("report", BYTES + b".marey", "--samples", "--idle", status=0).stdout
    hostile_process.send_signal(signal.SIGTERM)
