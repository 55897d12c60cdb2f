"""Faults of the profiler: it is killed, its disk is full, it lacks permission. The target always continues."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from long_run import IS_LONG
from watching import MAREY, Marey, functions_in, running, thread_states, tracers, wait_until

N_KILLS = 1000 if IS_LONG else 30
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user, mounts and unshares")


def test_killed_at_random_it_leaves_no_thread_stopped(marey: Marey) -> None:
    """SIGKILL at any time, also during stops: the kernel resumes the thread."""
    chance = random.Random(20261116)
    options = ("--exact", "--rate", 5000, "--max-slowdown", "100%")
    with running("threads", 4) as target:
        for i in range(N_KILLS):
            command = [MAREY, "attach", str(target.pid), "-q", "-o", f"{i}.marey", *map(str, options)]
            sampler = subprocess.Popen(command, cwd=marey.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.random() * 0.08)
            if i % 3 == 0:  # during stops, or at any time
                wait_until(lambda: bool(tracers(target.pid)), "it traces nothing")
            sampler.kill()
            sampler.wait()
            assert tracers(target.pid) == set()
            assert not set(thread_states(target.pid).values()) & {"t", "T"}
            shutil.rmtree(marey.folder / f"{i}.marey", ignore_errors=True)
        target.wait_for_more("tick")


def test_what_was_written_before_a_kill_is_read(marey: Marey) -> None:
    recording = marey.new_recording()
    with running("flat") as target:
        sampler = marey.start("attach", target.pid, "-q", "-o", recording, "--rate", 200)
        time.sleep(2.4)
        sampler.kill()
        sampler.communicate()
    tables = marey.report(recording)
    assert sum(row["samples"] for row in tables["processes"]) > 20
    assert "main" in functions_in(marey.stacks(recording))
    # At most two seconds are lost.
    assert tables["audit"][0]["seconds"] > 0.3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], check=True)
    with (folder / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    os.truncate(folder / "filler", (64 << 10) - (16 << 10))
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@needs_root
def test_a_full_disk_is_said_and_what_was_written_is_read(marey: Marey, small_disk: Path) -> None:
    recording = small_disk / "run.marey"
    with running("churn") as target:
        options = ("--snapshot", "--rate", 20000, "--duration", 30)
        done = marey.run("attach", target.pid, "-q", "-o", recording, *options, status=None)
        assert done.returncode != 0
        assert "No space left" in done.stderr, done.stderr
        assert len(done.stderr.strip().splitlines()) <= 3
        target.wait_for_more("tick")
    marey.run("report", recording, "--samples", status=None)
    assert marey.run("report", recording, status=None).returncode in (0, 2)


@needs_root
def test_another_users_process_is_refused_with_the_reason(marey: Marey) -> None:
    marey.folder.chmod(0o777)
    with running("flat") as target:
        done = marey.run("attach", target.pid, "-o", "/tmp/never.marey", "--duration", 1, before=NOBODY, status=2)
        assert str(target.pid) in done.stderr
        assert re.search(r"permission|user|sudo|CAP_SYS_PTRACE", done.stderr), done.stderr
        done = marey.run("stacks", target.pid, before=NOBODY, status=2)
        assert str(target.pid) in done.stderr + done.stdout


def visible_to_all(path: Path) -> bool:
    """Whether any user may go to `path`."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.resolve().parents)


@needs_root
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs an interpreter that all users may run")
def test_without_root_ones_own_processes_are_read(marey: Marey) -> None:
    if not visible_to_all(Path(MAREY)) or not visible_to_all(Path(__file__)):
        pytest.skip("another user cannot reach this tree")
    with running("flat", command=[*NOBODY, "/usr/bin/python3"]) as target:
        done = marey.run("stacks", target.pid, "--json", before=NOBODY)
        assert '"leaf_a"' in done.stdout or '"main"' in done.stdout


def test_what_is_no_python_is_refused(marey: Marey) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        try:
            done = marey.run("attach", sleeper.pid, "-o", marey.new_recording(), "--duration", 1, status=2)
            assert str(sleeper.pid) in done.stderr
            assert "Python" in done.stderr
            assert len(done.stderr.strip().splitlines()) <= 2
        finally:
            sleeper.kill()
    gone = marey.run("attach", sleeper.pid, "-o", marey.new_recording(), "--duration", 1, status=2)
    assert str(sleeper.pid) in gone.stderr


@pytest.mark.parametrize("is_stripped", [False, True])
def test_python_3_9_is_refused_with_one_sentence(marey: Marey, tmp_path: Path, is_stripped: bool) -> None:
    found = sorted((Path.home() / ".pyenv" / "versions").glob("3.9.*/bin/python3.9"))
    if not found:
        pytest.skip("needs a Python 3.9 from pyenv")
    python = found[0]
    if is_stripped:
        python = tmp_path / "program"
        done = subprocess.run(["objcopy", "--strip-all", found[0], python], capture_output=True, check=False)
        if done.returncode != 0:
            pytest.skip("needs objcopy")
        # Without its dynamic symbols as well, as in a program that links Python statically and hides it.
        data = python.read_bytes()
        python.write_bytes(data.replace(b"_PyRuntime\0", b"_PyRun_ime\0"))
    environment = {**os.environ, "PYTHONHOME": str(found[0].parent.parent)}
    program = [str(python), "-c", "print('ready', flush=True); import time; time.sleep(60)"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, env=environment) as old:
        try:
            assert old.stdout is not None
            assert old.stdout.readline() == b"ready\n"
            done = marey.run("attach", old.pid, "-o", marey.new_recording(), "--duration", 1, status=2)
        finally:
            old.kill()
    assert done.stderr == (f"marey: cannot sample process {old.pid}: Python 3.9 is not supported; 3.10 to 3.14 are\n")


@pytest.fixture
def slow_to_start(tmp_path: Path) -> tuple[str, Path]:
    """A Python that blocks on a pipe early in its start, and the pipe."""
    import sys

    home = tmp_path / "slow"
    (home / "bin").mkdir(parents=True)
    real = Path(sys.executable).resolve()
    (home / "bin" / "python").symlink_to(real)
    pipe = home / "pyvenv.cfg"
    os.mkfifo(pipe)
    return str(home / "bin" / "python"), pipe


def test_a_python_that_has_not_finished_starting_is_waited_for(marey: Marey, slow_to_start: tuple[str, Path]) -> None:
    import sys

    python, pipe = slow_to_start
    script = Path(__file__).parent / "targets" / "flat.py"
    recording = marey.new_recording()
    with subprocess.Popen([python, str(script), "600"], stdout=subprocess.DEVNULL) as target:
        try:
            # Nothing opens the pipe for writing: it waits.
            wait_until(lambda: thread_states(target.pid).get(target.pid) == "S", "it does not wait")
            done = marey.run("attach", target.pid, "-o", recording, "--duration", 0.3, status=None)
            assert done.returncode in (0, 2)
            assert done.returncode == 0 or str(target.pid) in done.stderr
            sampler = marey.start("attach", target.pid, "-q", "-o", marey.new_recording(), "--duration", 1)
            time.sleep(0.2)
            settings = f"home = {Path(sys.executable).resolve().parent}\n"
            # It may be read more than once.
            for _ in range(3):
                try:
                    pipe_fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
                except OSError:
                    break
                os.write(pipe_fd, settings.encode())
                os.close(pipe_fd)
                time.sleep(0.05)
            pipe.unlink()
            out, error = sampler.communicate(timeout=60)
            assert sampler.returncode in (0, 2), (out, error)
        finally:
            target.kill()


def test_a_python_may_be_watched_from_its_first_moment(marey: Marey) -> None:
    """At any time of its start, attaching either works or fails with a message."""
    chance = random.Random(7)
    import sys

    script = Path(__file__).parent / "targets" / "flat.py"
    n_fine = 0
    for _ in range(60 if IS_LONG else 6):
        with subprocess.Popen([sys.executable, str(script), "600"], stdout=subprocess.DEVNULL) as target:
            time.sleep(chance.random() * 0.03)
            done = marey.run("attach", target.pid, "-q", "-o", marey.new_recording(), "--duration", 0.2, status=None)
            target.kill()
        assert done.returncode in (0, 2), (done.returncode, done.stderr)
        n_fine += done.returncode == 0
    assert n_fine > 0


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not here")
def test_nothing_is_written_into_the_target(marey: Marey) -> None:
    """No call that writes memory or registers of another process, in any way of reading."""
    with running("threads", 4) as target:
        for options in (("--exact",), ("--snapshot", "--rate", "1000"), ("--native",)):
            trace = marey.folder / "calls.txt"
            calls = "trace=ptrace,process_vm_writev,openat,pwrite64,process_madvise"
            before = ("strace", "-f", "-qq", "-o", str(trace), "-e", calls)
            command = ("attach", target.pid, "-q", "-o", marey.new_recording(), "--duration", "0.4", *options)
            marey.run(*command, before=before)
            text = trace.read_text(errors="replace")
            assert f"/proc/{target.pid}" in text or "/proc/" in text
            assert not re.search(r"PTRACE_(POKE\w*|SET(REGS|FPREGS|REGSET|SIGINFO)|KILL|CONT|SYSCALL)", text)
            assert "process_vm_writev" not in text
            assert not re.search(r'"/proc/\d+/(task/\d+/)?mem", [^)]*O_(RDWR|WRONLY)', text)


def test_ctrl_c_ends_it_in_order(marey: Marey) -> None:
    recording = marey.new_recording()
    with running("flat") as target:
        sampler = marey.start("attach", target.pid, "-o", recording)
        time.sleep(0.6)
        sampler.send_signal(signal.SIGINT)
        out, error = sampler.communicate(timeout=60)
        assert sampler.returncode == 0, (out, error)
        assert tracers(target.pid) == set()
    assert sum(marey.stacks(recording).values()) > 0
    assert marey.report(recording)["audit"][0]["end"] != "unclosed"
