"""Background work: marey commands, one after the other, in a process that outlives the program.

The process is a shell, started before there is work, because starting one takes a millisecond and the training waits
for it. A command is queued as a line in an in-memory file and one byte in a pipe. Writing them never waits for the
shell. Both outlive the program, and the shell runs in its own session, so neither Ctrl-C nor a closed terminal nor
`kill -9` of the program stops a queued command.

If the input of a command is still being written, a thread waits for it before it queues the command.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import shlex
import subprocess
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import ClassVar, Optional

    Order = tuple[Callable[[], None], Sequence[Sequence[str]]]

_NICE = 10
_MOMENT_S = 0.3
_MANY_BYTES = 1 << 20  # about 3,000 commands
# Variables that would make the background process record itself, or be observed like the program.
_NOT_INHERITED = ("MAREY", "MAREY_OPTIONS", "LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")

# The pipe has one byte per complete line, so that the shell does not read a half-written one. The second loop runs
# after the program ended: lines whose byte did not fit into the pipe are complete by then.
_SHELL = """
exec 3</proc/self/fd/{orders}
next() {{ IFS= read -r order <&3 && eval "$(printf %b "$order")"; }}
while read -r bell; do next; done
while next; do :; done
"""


def program() -> str:
    """The path of this package's command `marey`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "marey")


class _BackgroundShell:
    """The shell and the pid of its owner; a forked child is not the owner."""

    def __init__(self) -> None:
        environment = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
        self.owner = os.getpid()
        self._orders = os.memfd_create("marey-orders")
        self._n_bytes = 0  # of all commands, done and queued
        self._n_owed = 0  # bytes that did not fit into the pipe
        self.shell = subprocess.Popen(
            ["/bin/sh", "-c", _SHELL.format(orders=self._orders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=environment,
            pass_fds=[self._orders],
            start_new_session=True,
        )
        assert self.shell.stdin is not None
        self._bell = self.shell.stdin
        os.set_blocking(self._bell.fileno(), False)
        os.setpriority(os.PRIO_PROCESS, self.shell.pid, _NICE)
        with contextlib.suppress(OSError):  # so that waking it does not preempt the training
            os.sched_setscheduler(self.shell.pid, os.SCHED_BATCH, os.sched_param(0))

    @property
    def is_here(self) -> bool:
        """Whether this process owns the shell and it is running."""
        return self.owner == os.getpid() and self.shell.poll() is None

    @property
    def has_room(self) -> bool:
        """Whether it can take more commands. Lines stay in memory as long as the shell runs."""
        return not self._bell.closed and self._n_bytes < _MANY_BYTES

    def order(self, command: str) -> None:
        """Queue a command. Does not block."""
        line = command.replace("\\", "\\\\").replace("\n", "\\n") + "\n"  # as the shell's %b reads it
        self._n_bytes += os.write(self._orders, line.encode(errors="surrogateescape"))
        self._n_owed += 1
        self._ring()

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # the pipe is full; the next command tries again
            self._n_owed -= os.write(self._bell.fileno(), b"\n" * self._n_owed)

    def finish(self) -> None:
        """Make the shell exit after its queue. Closing the pipe is not enough: forked children may hold it open."""
        if self._bell.closed:
            return
        with contextlib.suppress(BrokenPipeError):  # it has already been killed
            self.order("exit")
            os.set_blocking(self._bell.fileno(), True)
            self._ring()
        self._bell.close()
        os.close(self._orders)


class _QueueThread:
    """A thread that waits for the input of commands and then queues them. Does not exist in forked children."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.orders: queue.SimpleQueue[Optional[Order]] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name="marey-queue", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (order := self.orders.get()) is not None:
            wait, commands = order
            wait()
            try:
                run(*commands)
            except OSError as error:
                print(f"marey: a window is lost: {error}", file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Return after all commands are queued."""
        self.orders.put(None)
        self.thread.join()


class _Shells:
    """The shells. The last one takes commands; earlier ones finish their queue and exit."""

    shells: ClassVar[list[_BackgroundShell]] = []
    queue_thread: Optional[_QueueThread] = None
    lock = threading.RLock()  # guards the shells; held briefly; replaced in forked children


def _after_fork() -> None:
    _Shells.lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def ready() -> None:
    """Start a shell unless one has room. Call this when a millisecond does not matter."""
    with _Shells.lock:
        if is_ready():
            return
        shells = _Shells.shells = [shell for shell in _Shells.shells if shell.is_here]
        for shell in shells:
            shell.finish()
        shells.append(_BackgroundShell())


def is_ready() -> bool:
    """Whether ready() has nothing to do."""
    with _Shells.lock:
        return bool(_Shells.shells) and _Shells.shells[-1].is_here and _Shells.shells[-1].has_room


def ready_behind() -> None:
    """Start the queue thread if necessary. Call this when a millisecond does not matter."""
    if _Shells.queue_thread is None or _Shells.queue_thread.owner != os.getpid():
        _Shells.queue_thread = _QueueThread()


def run(*commands: Sequence[str]) -> None:
    """Queue marey commands; a failure skips those after it: run(["artifacts", trace])."""
    with _Shells.lock:
        if not _Shells.shells or not _Shells.shells[-1].is_here:
            ready()
        _Shells.shells[-1].order(" && ".join(f"{shlex.join([program(), *words])} </dev/null" for words in commands))


def run_behind(wait: Callable[[], None], *commands: Sequence[str]) -> None:
    """Queue commands after `wait()` returns, which another thread calls."""
    ready_behind()
    assert _Shells.queue_thread is not None
    _Shells.queue_thread.orders.put((wait, commands))


def _finish() -> list[_BackgroundShell]:
    """Stop the queue thread, then make all shells exit after their queues."""
    queue_thread, _Shells.queue_thread = _Shells.queue_thread, None
    if queue_thread is not None and queue_thread.owner == os.getpid():
        queue_thread.finish()
    with _Shells.lock:
        shells = [shell for shell in _Shells.shells if shell.owner == os.getpid()]
        _Shells.shells = []
        for shell in shells:
            shell.finish()
    return shells


def wait() -> None:
    """Return after all queued commands have finished."""
    for shell in _finish():
        shell.shell.wait()


@atexit.register
def _at_exit() -> None:
    """Wait for running commands; print a message if that takes more than about a second."""
    shells = _finish()
    try:
        for shell in shells:
            shell.shell.wait(_MOMENT_S)
    except subprocess.TimeoutExpired:
        sentence = "marey: waiting for tables and pages of the last window; Ctrl-C lets them finish in the background"
        print(sentence, file=sys.stderr, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            for shell in shells:
                shell.shell.wait()
