"""The background process: it runs commands in order, and only wait() waits for it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from marey import _background

PAGE = 4096  # the smallest pipe
MANY = PAGE + 500


@pytest.fixture(autouse=True)
def alone():
    """Finish commands of other tests before, and ours after the test."""
    _background.wait()
    yield
    _background.wait()


def shell() -> _background._BackgroundShell:
    _background.ready()
    return _background._Shells.shells[-1]


def wait_until(condition, what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: is_stopped(pid), "the shell does not stop")


def too_late(*_) -> None:
    raise TimeoutError("an order waits")


def test_who_orders_does_not_wait_for_one_that_stands_still(tmp_path):
    """More orders than the pipe holds bytes; one that waited would do so for ever, and the alarm ends it."""
    beside = shell()
    fcntl.fcntl(beside._bell.fileno(), fcntl.F_SETPIPE_SZ, PAGE)
    stop(beside.shell.pid)
    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(60)
    try:
        for i in range(MANY):
            beside.order(f"echo {i} >> {tmp_path}/done")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert beside._n_owed > 0
    os.kill(beside.shell.pid, signal.SIGCONT)
    _background.wait()
    assert (tmp_path / "done").read_text().split() == [str(i) for i in range(MANY)]


ORDERS = f"""
import fcntl, os, signal, sys
from marey import _background

_background.ready()
beside = _background._Shells.shells[-1]
fcntl.fcntl(beside._bell.fileno(), fcntl.F_SETPIPE_SZ, {PAGE})
print(beside.shell.pid, flush=True)
os.kill(beside.shell.pid, signal.SIGSTOP)
for i in range({MANY}):
    beside.order(f"echo {{i}} >> done")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_ordered_is_done_after_kill_9(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = tmp_path / "told"
    with open(told, "w") as file:
        program = subprocess.run(
            [sys.executable, "-c", ORDERS], env=environment, cwd=tmp_path, stdout=file, check=False
        )
    assert program.returncode == -signal.SIGKILL
    os.kill(int(told.read_text()), signal.SIGCONT)
    done = tmp_path / "done"
    wait_until(lambda: done.exists() and done.read_bytes().count(b"\n") == MANY, "not all of it is done")
    assert done.read_text().split() == [str(i) for i in range(MANY)]


def test_a_path_may_have_anything_in_it(tmp_path):
    folder = tmp_path / "a 'b' \\n \\c %d $HOME\nnext line"
    folder.mkdir()
    trace = folder / "none.pt.trace.json"
    operator = '{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 1}'
    trace.write_text(f'{{"schemaVersion": 1, "traceEvents": [{operator}]}}')
    _background.run(["artifacts", str(trace), "-o", str(folder), "--only", "trace", "--move"])
    _background.wait()
    assert [path.name for path in folder.iterdir()] == ["none.pt.trace.json.gz"]


def test_commands_of_one_order_end_with_the_first_that_fails(tmp_path, capfd):
    _background.run(["artifacts", str(tmp_path / "none"), "-o", str(tmp_path)], ["--version"])
    _background.run(["artifacts", str(tmp_path / "none either"), "-o", str(tmp_path)])
    _background.wait()
    told = capfd.readouterr().err.splitlines()
    assert ["none either" in line for line in told] == [False, True]


def test_after_many_orders_another_process_takes_over(tmp_path, monkeypatch):
    monkeypatch.setattr(_background, "_MANY_BYTES", 1000)
    pids = set()
    for i in range(200):
        beside = shell()
        pids.add(beside.shell.pid)
        beside.order(f"echo {i} >> {tmp_path}/{beside.shell.pid}")
    assert len(pids) > 3
    _background.wait()
    lines = [line for path in tmp_path.iterdir() for line in path.read_text().split()]
    assert sorted(map(int, lines)) == list(range(200))


def test_one_that_was_ended_is_replaced(tmp_path):
    first = shell()
    first.shell.kill()
    first.shell.wait()
    second = shell()
    assert second is not first
    second.order(f"echo x > {tmp_path}/done")
    _background.wait()
    assert (tmp_path / "done").exists()
