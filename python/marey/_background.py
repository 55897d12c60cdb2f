"""Background work: marey commands, one after the other, in a process that outlives the program.

The process is a shell, started before there is work, because starting one takes a millisecond and the training waits
for it. An order is a line in an in-memory file, and a byte in a pipe to announce it. Writing them never waits for the
shell. Both outlive the program, and the shell runs in its own session: neither Ctrl-C nor a closed terminal nor a `kill
-9` of the program stops a queued command.

Commands whose input is still being written are queued: a thread waits for the input, so that the training does not.
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
_MANY_BYTES = 1 << 20  # some 3,000 orders
# What would make a helper record, or be watched like the program itself.
_NOT_INHERITED = ("MAREY", "MAREY_OPTIONS", "LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")

# One byte of the pipe per complete line: without it the shell might read a half-written one. When the program
# is gone, lines whose byte had no room in the pipe are whole too.
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
    """The process, and the process that started it: a forked child is not its owner."""

    def __init__(self) -> None:
        environment = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
        self.owner = os.getpid()
        self._orders = os.memfd_create("marey-orders")
        self._n_bytes = 0  # of orders, done and to be done
        self._n_owed = 0  # bytes that the pipe had no room for
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
        with contextlib.suppress(OSError):  # then waking it does not take the processor from the training
            os.sched_setscheduler(self.shell.pid, os.SCHED_BATCH, os.sched_param(0))

    @property
    def is_here(self) -> bool:
        """Whether this process owns it and it is alive."""
        return self.owner == os.getpid() and self.shell.poll() is None

    @property
    def has_room(self) -> bool:
        """Whether it may have more orders: those that are done stay in memory as long as it lives."""
        return not self._bell.closed and self._n_bytes < _MANY_BYTES

    def order(self, command: str) -> None:
        """Have a command done after those before it; wait for nothing."""
        line = command.replace("\\", "\\\\").replace("\n", "\\n") + "\n"  # as the shell's %b reads it
        self._n_bytes += os.write(self._orders, line.encode(errors="surrogateescape"))
        self._n_owed += 1
        self._ring()

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it has tens of thousands to do; the next order tries again
            self._n_owed -= os.write(self._bell.fileno(), b"\n" * self._n_owed)

    def finish(self) -> None:
        """Let it end after the work it has. A forked child may hold the pipe too, so that closing it is not enough."""
        if self._bell.closed:
            return
        with contextlib.suppress(BrokenPipeError):  # somebody ended it, which is as good
            self.order("exit")
            os.set_blocking(self._bell.fileno(), True)
            self._ring()
        self._bell.close()
        os.close(self._orders)


class _QueueThread:
    """A thread that waits for what an order needs, and then gives it. A forked child has none."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.orders: queue.SimpleQueue[Optional[Order]] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name="marey-queue_thread", daemon=True)
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
        """Come back when all orders are given."""
        self.orders.put(None)
        self.thread.join()


class _Shells:
    """Where the processes are. The last one takes orders; those before it do what they have, and end."""

    shells: ClassVar[list[_BackgroundShell]] = []
    queue_thread: Optional[_QueueThread] = None
    lock = threading.RLock()  # guards the processes, held briefly; a forked child has a new one


def _after_fork() -> None:
    _Shells.lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def ready() -> None:
    """See that there is a process with room for orders. Call it when a millisecond does not matter."""
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
    """See that there is a queue_thread. Call it when a millisecond does not matter."""
    if _Shells.queue_thread is None or _Shells.queue_thread.owner != os.getpid():
        _Shells.queue_thread = _QueueThread()


def run(*commands: Sequence[str]) -> None:
    """Have the commands of marey done, one after the other as long as each succeeds: run(["artifacts", trace])."""
    with _Shells.lock:
        if not _Shells.shells or not _Shells.shells[-1].is_here:
            ready()
        _Shells.shells[-1].order(" && ".join(f"{shlex.join([program(), *words])} </dev/null" for words in commands))


def run_behind(wait: Callable[[], None], *commands: Sequence[str]) -> None:
    """Have the commands done when `wait()` has come back, which another thread calls."""
    ready_behind()
    assert _Shells.queue_thread is not None
    _Shells.queue_thread.orders.put((wait, commands))


def _finish() -> list[_BackgroundShell]:
    """Let all end after the work they have, when the queue_thread has given his orders."""
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
    """Come back when everything that was ordered is done."""
    for shell in _finish():
        shell.shell.wait()


@atexit.register
def _at_exit() -> None:
    """Wait for running commands; print a message when that takes longer than a second or so."""
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
