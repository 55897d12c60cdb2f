"""Python's own ways to make and end processes and threads, each in a real interpreter."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import pytest
from accidents import pools_in

import marey

Script = Callable[..., "dict[int, int]"]

WORK = """
import marey
def work(n):
    for _ in range(n):
        with marey.range("work"):
            pass
"""


@pytest.fixture
def script(tmp_path: Path, run: Any) -> Script:
    """Run a script with MAREY set; how many "work" ranges each of its processes recorded, in order of start."""

    def run_script(
        source: str, *, status: Optional[int] = 0, flags: tuple[str, ...] = (), warns: bool = False
    ) -> list[int]:
        (tmp_path / "work.py").write_text(WORK)
        (tmp_path / "script.py").write_text(textwrap.dedent(source))
        path = tmp_path / "run.marey"
        paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        env = {"MAREY": str(path), "PYTHONPATH": paths}
        done = run([sys.executable, *flags, str(tmp_path / "script.py")], env=env, status=status, cwd=tmp_path)
        assert warns or done.stderr == "", done.stderr
        counts = counts_by_process(path)
        assert pools_in(path) == []
        return counts

    return run_script


def counts_by_process(path: Path) -> list[int]:
    recording = marey.load(path)
    assert recording.lost_events == 0
    ranks = list(recording.ranks)
    return sorted(row["count"] for row in ranks if row["name"] == "work")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(script: Script, method: str) -> None:
    counts = script(
        f"""
        import multiprocessing
        from work import work
        if __name__ == "__main__":
            work(5)
            context = multiprocessing.get_context("{method}")
            children = [context.Process(target=work, args=(10 + i,)) for i in range(3)]
            for child in children:
                child.start()
            for child in children:
                child.join()
                assert child.exitcode == 0
        """
    )
    assert counts == [5, 10, 11, 12]


def test_a_pool_of_workers_that_is_terminated(script: Script) -> None:
    """Pool.terminate() sends SIGTERM: the workers have no chance to stop."""
    counts = script(
        """
        import multiprocessing
        from work import work
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                pool.map(work, [100] * 20, chunksize=1)
        """
    )
    assert sum(counts) == 2000


def test_os_exit(script: Script) -> None:
    assert script("import os; from work import work; work(50); os._exit(0)") == [50]


def test_an_uncaught_exception(script: Script) -> None:
    assert script("from work import work; work(50); raise SystemExit(3)", status=3) == [50]


def test_os_fork(script: Script) -> None:
    counts = script(
        """
        import os
        from work import work
        work(50)
        child = os.fork()
        if child == 0:
            work(7)
            os._exit(0)
        os.waitpid(child, 0)
        work(1)
        """
    )
    assert counts == [7, 51]


def test_daemon_threads_at_shutdown(script: Script) -> None:
    """Threads that record while the interpreter goes away neither crash it nor hold it up."""
    counts = script(
        """
        import threading, time
        from work import work
        def for_ever():
            while True:
                work(100)
        for _ in range(4):
            threading.Thread(target=for_ever, daemon=True).start()
        work(10)
        time.sleep(0.2)
        """
    )
    assert len(counts) == 1 and counts[0] >= 10


def test_a_thousand_threads(script: Script) -> None:
    counts = script(
        """
        import threading
        from work import work
        for _ in range(100):
            threads = [threading.Thread(target=work, args=(3,)) for _ in range(10)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        """
    )
    assert counts == [3000]


def test_a_fork_warns_of_no_thread_of_ours(script: Script) -> None:
    """From 3.12 on, Python warns when a process with several threads forks; the flush thread must not be one."""
    counts = script(
        """
        import os
        from work import work
        for _ in range(20):
            work(5000)
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        """,
        flags=("-W", "error"),
    )
    assert counts == [100_000]


def test_start_and_stop_in_one_process(tmp_path: Path, run: Any) -> None:
    source = """
        import marey
        from work import work
        for i in range(3):
            marey.start(f"{i}.marey")
            work(10 + i)
            marey.stop()
        try:
            marey.start("a.marey")
            marey.start("b.marey")
        except Exception as error:
            print(error)
    """
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "script.py").write_text(textwrap.dedent(source))
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = run([sys.executable, str(tmp_path / "script.py")], env=env, cwd=tmp_path)
    assert "a.marey" in done.stdout and "already open" in done.stdout
    assert [counts_by_process(tmp_path / f"{i}.marey") for i in range(3)] == [[10], [11], [12]]
    assert not (tmp_path / "b.marey").exists()
