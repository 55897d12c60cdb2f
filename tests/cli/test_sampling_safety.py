"""Samplers under faults: a second Ctrl-C, a truncated library, a stopped process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sampled_programs import BUSY, STUCK


@pytest.fixture
def begin(tmp_path: Path, environment: dict[str, str]) -> Iterator:
    """Start a Python program and wait until it is ready."""
    started: list[subprocess.Popen] = []

    def start(program: str, *args: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=tmp_path,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_for_text(marey: Callable, text: str, *args: object) -> None:
    """Run it until it prints `text`: a process is ready a little before it is where it stays."""
    deadline = time.monotonic() + 30
    while text not in (shown := marey(*args).stdout):
        assert time.monotonic() < deadline, shown


# ---- ctrl-C ----

# The second ctrl-C comes once the sampler is freed.
TWICE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
static int is_freed;
void marey_sampler_stop(void *sampler)
{
    if (is_freed)
        fputs("STOPPED AFTER DESTROY\\n", stderr);
    else
        ((void (*)(void *))dlsym(RTLD_NEXT, "marey_sampler_stop"))(sampler);
}
void marey_sampler_destroy(void *sampler)
{
    raise(SIGINT);
    ((void (*)(void *))dlsym(RTLD_NEXT, "marey_sampler_destroy"))(sampler);
    is_freed = 1;
    raise(SIGINT);
}
"""


def test_a_second_ctrl_c_reaches_no_freed_sampler(marey, begin, stand_in, tmp_path):
    process = begin(BUSY)
    folder = stand_in("twice.so", TWICE)["LD_LIBRARY_PATH"]
    preload = {"LD_PRELOAD": f"{folder}/twice.so"}
    done = marey("attach", process.pid, "-d", "300ms", "-o", "a.marey", env=preload)
    assert "STOPPED AFTER DESTROY" not in done.stderr
    assert done.returncode == 0
    assert marey("report", "a.marey", "--samples").returncode == 0


# ---- a truncated library ----

LIBRARY = """
#include <unistd.h>
__attribute__((noinline)) int victim_inner(void) { return pause() + 1; }
int victim_outer(void) { return victim_inner() + 1; }
"""

IN_LIBRARY = """
import ctypes, sys
def call():
    library = ctypes.CDLL(sys.argv[1])
    print("ready", flush=True)
    library.victim_outer()
call()
"""

# Cuts it as soon as it is mapped.
CUT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
void *mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    char path[64], link[4096] = "";
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "mmap");
    void *const result = real(at, len, protection, flags, fd, offset);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int is_victim = fd >= 0 && readlink(path, link, sizeof link - 1) > 0 && strstr(link, "victim.so") != NULL;
    if (is_victim && truncate(link, 0) == 0)
        fputs("CUT\\n", stderr);
    return result;
}
"""


@pytest.mark.parametrize("command", [["stacks"], ["attach", "-d", "500ms", "-o", "a.marey"]])
def test_a_library_that_is_cut_while_it_is_read(marey, begin, stand_in, tmp_path, command):
    folder = Path(stand_in("victim.so", LIBRARY)["LD_LIBRARY_PATH"])
    stand_in("cut.so", CUT)
    victim = tmp_path / "victim.so"
    victim.write_bytes((folder / "victim.so").read_bytes())
    process = begin(IN_LIBRARY, str(victim))
    done = marey(command[0], process.pid, "--native", *command[1:], env={"LD_PRELOAD": str(folder / "cut.so")})
    assert "CUT" in done.stderr
    assert done.returncode == 0
    if command == ["stacks"]:
        assert "call" in done.stdout


# ---- symbols of compiled code ----

JIT = """
import ctypes, mmap, os, sys
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write({"x86_64": b"\\xeb\\xfe", "aarch64": b"\\x00\\x00\\x00\\x14"}[os.uname().machine])  # a loop
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
with open("address", "w") as file:
    file.write(f"{at:x}")
def run_compiled():
    print("ready", flush=True)
    ctypes.CFUNCTYPE(None)(at)()
run_compiled()
"""


@pytest.fixture
def compiled_code(begin: Callable, tmp_path: Path) -> Iterator[tuple[int, Path, str]]:
    """A process in code that no file has, its perf map, which is not there so far, and a line for the map."""
    process = begin(JIT)
    path = Path(f"/tmp/perf-{process.pid}.map")
    yield process.pid, path, f"{(tmp_path / 'address').read_text()} 1000 name_in_the_map\n"
    path.unlink(missing_ok=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file to another user")
def test_a_perf_map_of_another_user_is_not_read(marey, compiled_code):
    pid, path, line = compiled_code
    path.write_text(line)
    wait_for_text(marey, "name_in_the_map", "stacks", pid, "--native")
    os.chown(path, 12345, -1)
    done = marey("stacks", pid, "--native")
    assert done.returncode == 0 and "run_compiled" in done.stdout
    assert "name_in_the_map" not in done.stdout


def test_a_perf_map_without_end_is_not_read_to_its_end(marey, compiled_code):
    pid, path, _ = compiled_code
    with path.open("w") as file:
        file.truncate(8 << 40)
    assert "run_compiled" in marey("stacks", pid, "--native").stdout


# ---- messages ----


def test_a_stopped_process_is_not_waiting(marey, begin):
    process = begin(STUCK)
    wait_for_text(marey, "waiting", "stacks", process.pid)
    process.send_signal(signal.SIGSTOP)
    for args in (
        ["stacks", process.pid],
        ["watch", process.pid, "--once", "--stall", "300ms"],
        ["top", process.pid, "--once", "--window", "300ms", "--by", "threads"],
        ["top", process.pid, "--once", "--window", "300ms", "--by", "ranks"],
    ):
        shown = marey(*args).stdout
        assert "stopped" in shown if args[0] == "top" else "stopped (SIGSTOP or ctrl-Z)" in shown
        assert "waiting" not in shown
    process.send_signal(signal.SIGCONT)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
@pytest.mark.parametrize("command", ["attach", "stacks", "top", "watch"])
def test_the_advice_names_the_command_that_was_typed(marey, begin, command):
    process = begin(STUCK)
    output = ["-o", f"/tmp/advice-{process.pid}.marey"] if command == "attach" else []
    done = marey(command, process.pid, *output, user=65534, group=65534, extra_groups=[])
    assert done.returncode == 2
    assert f"sudo marey {command} {process.pid}" in done.stderr


def test_run_with_samples_ends_with_the_top_functions(marey):
    work = "import time\ndef busy():\n    end = time.monotonic() + 0.5\n    while time.monotonic() < end: pass\nbusy()"
    done = marey("run", "--sample", "-o", "a.marey", "--", sys.executable, "-c", work)
    assert re.search(r"busy", done.stderr)
    assert "next: marey report --samples a.marey" in done.stderr
    quiet = marey("run", "-q", "--sample", "-o", "b.marey", "--", sys.executable, "-c", work)
    assert quiet.stderr == ""


def test_energy_that_nothing_measured_is_not_said_to_be_recorded(marey):
    done = marey("run", "--energy", "-o", "a.marey", "--", "true")
    if marey("report", "--energy", "a.marey").returncode == 0:
        pytest.skip("there is a meter here")
    assert "and energy" not in done.stderr
    assert "report --energy" not in done.stderr


def test_an_output_that_fails_leaves_nothing(marey, tmp_path):
    def limit() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = marey("run", "--only", "ranges", "-o", "a.marey", "--", "touch", "started", preexec_fn=limit)
    assert done.returncode == 2
    assert "cannot write a.marey/" in done.stderr
    assert os.listdir(tmp_path) == []
