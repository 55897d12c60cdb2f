"""Work beside the program: commands of kymo, one after the other, in a process that outlives it.

The process is a shell that reads commands from a pipe. It is started before there is work, because starting a process
takes a millisecond and the training waits for it; a command is then a write into the pipe. It has a session of its own,
so that neither Ctrl-C nor the terminal's end nor a `kill -9` of the program stops what has been ordered.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Optional

_NICE = 10
_MOMENT_S = 0.3
# What would make a helper record, or be watched like the program itself.
_NOT_INHERITED = ("KYMO", "KYMO_OPTIONS", "LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")


def program() -> str:
    """The path of this package's command `kymo`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "kymo")


class _Clerk:
    """The process, and the process that started it: a forked child is not its owner."""

    def __init__(self) -> None:
        environment = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
        self.owner = os.getpid()
        self.shell = subprocess.Popen(
            ["/bin/sh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        os.setpriority(os.PRIO_PROCESS, self.shell.pid, _NICE)
        with contextlib.suppress(OSError):  # then waking it does not take the processor from the training
            os.sched_setscheduler(self.shell.pid, os.SCHED_BATCH, os.sched_param(0))

    def order(self, command: str) -> None:
        assert self.shell.stdin is not None
        self.shell.stdin.write(command.encode(errors="surrogateescape") + b"\n")
        self.shell.stdin.flush()

    def finish(self) -> None:
        """Let it end after the work it has. A forked child may hold the pipe too, so that closing it is not enough."""
        if self.shell.stdin is not None and not self.shell.stdin.closed:
            with contextlib.suppress(BrokenPipeError):  # somebody ended it, which is as good
                self.order("exit")
                self.shell.stdin.close()


class _Office:
    """Where the process is, while there is one."""

    clerk: Optional[_Clerk] = None


def ready() -> None:
    """Start the process, if there is none. Call it when a millisecond does not matter."""
    clerk = _Office.clerk
    if clerk is None or clerk.owner != os.getpid() or clerk.shell.poll() is not None:
        _Office.clerk = _Clerk()


def run(*commands: Sequence[str]) -> None:
    """Have the commands of kymo done, one after the other as long as each succeeds: run(["artifacts", trace])."""
    ready()
    assert _Office.clerk is not None
    _Office.clerk.order(" && ".join(f"{shlex.join([program(), *words])} </dev/null" for words in commands))


def wait() -> None:
    """Come back when everything that was ordered is done."""
    clerk, _Office.clerk = _Office.clerk, None
    if clerk is not None and clerk.owner == os.getpid():
        clerk.finish()
        clerk.shell.wait()


@atexit.register
def _at_exit() -> None:
    """Wait for what is under way, and say so when it takes longer than a moment."""
    clerk = _Office.clerk
    if clerk is None or clerk.owner != os.getpid():
        return
    clerk.finish()
    try:
        clerk.shell.wait(_MOMENT_S)
    except subprocess.TimeoutExpired:
        sentence = "kymo: waiting for the tables and pages of the last window; Ctrl-C leaves them to finish alone"
        print(sentence, file=sys.stderr, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            clerk.shell.wait()
