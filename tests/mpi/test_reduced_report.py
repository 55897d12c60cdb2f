"""`mpirun -n N marey report`: each process reads its share of the logs, rank 0 prints what one process would print."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from mpi_jobs import Mpi

Run = Callable[..., "subprocess.CompletedProcess[str]"]

RANKS, ITERATIONS = 13, 30
QUESTIONS = (["--json"], ["--ranks"], ["--iterations", "--tree"], ["--csv", "--table", "threads"])


@pytest.fixture
def many(build: Path, run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "many.marey"
    run([str(build / "tests" / "many_ranks"), str(path), str(RANKS), str(ITERATIONS)])
    return path


def test_the_answer_is_that_of_one_process(mpi: Mpi, tool: str, run: Run, many: Path) -> None:
    for question in ([], *QUESTIONS):
        alone = run([tool, "report", str(many), *question]).stdout
        shared = run(mpi.run(3, tool, "report", many, *question)).stdout
        assert shared == alone, question
    # More processes than logs, and several recordings.
    alone = run([tool, "report", str(many), str(many), "--json"]).stdout
    assert run(mpi.run(2, tool, "report", many, many, "--json")).stdout == alone


def test_a_damaged_log_of_one_share_is_reported_by_rank_0(mpi: Mpi, tool: str, run: Run, many: Path) -> None:
    logs = sorted(many.glob("*.klog"))
    (many / "r0-nobody-1-00000000.klog").write_bytes(b"this is no log at all" * 10)
    broken = bytearray(logs[-1].read_bytes())
    broken[len(broken) // 2 :] = bytes(len(broken) - len(broken) // 2)
    logs[-1].write_bytes(broken)
    alone = run([tool, "report", str(many)], status=2)
    shared = run(mpi.run(2, tool, "report", many), status=2)
    assert shared.stdout == alone.stdout
    assert "many.marey is damaged" in shared.stderr
    assert "could not be read" in shared.stdout


def test_what_is_no_recording_is_said_once(mpi: Mpi, tool: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run(mpi.run(2, tool, "report", tmp_path / "empty"), status=None)
    assert done.returncode != 0
    assert done.stderr.count("is not a recording") == 1


def test_reports_of_one_process_say_so(mpi: Mpi, tool: str, run: Run, many: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run(mpi.run(2, tool, "report", many, "--html", page))
    assert "--html runs in one process" in done.stderr
    assert page.stat().st_size > 0
    alone = run([tool, "report", str(many), "--per-iteration"]).stdout
    assert run(mpi.run(2, tool, "report", many, "--per-iteration")).stdout == alone


def test_commands_that_differ_are_not_one_job(mpi: Mpi, tool: str, run: Run, many: Path) -> None:
    # Each asks for a table of its own; the shell stands between, so it is said that this is the command of the job.
    script = 'MAREY_MPI=on exec "$1" report "$2" --csv --table $(test "$0" = 0 && echo ranges || echo marks)'
    rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    done = run(mpi.run(2, "sh", "-c", f"""sh -c '{script}' {rank} "$0" "$1\"""", tool, many))
    headers = [line for line in done.stdout.splitlines() if line.startswith("name,")]
    assert sorted(headers) == sorted({*headers}) and len(headers) == 2


def test_a_command_that_a_rank_starts_waits_for_nobody(mpi: Mpi, tool: str, run: Run, many: Path) -> None:
    # Rank 0 alone starts it, as a training might at its end.
    script = 'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ]; then "$0" report "$1" --csv; fi; true'
    done = run(mpi.run(2, "sh", "-c", script, tool, many))
    assert done.stdout.count("name,count") == 1


def test_without_the_library_rank_0_works_alone(mpi: Mpi, tool: str, run: Run, many: Path) -> None:
    alone = run([tool, "report", str(many), "--json"]).stdout
    done = run(mpi.run(2, tool, "report", many, "--json"), env={"MAREY_MPI_LIBRARY": "/nowhere/libmpi.so"})
    assert done.stdout == alone
    assert done.stderr.count("one process does all the work") == 1


def test_a_killed_process_ends_the_job(mpi: Mpi, tool: str, environment: dict[str, str], tmp_path: Path) -> None:
    # Rank 1 never comes: it is killed in the place of its command, before it has said anything.
    script = '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && kill -9 $$; exec "$0" report "$1"'
    job = subprocess.Popen(
        mpi.run(2, "sh", "-c", script, tool, tmp_path),
        env={**environment, "MAREY_MPI": "on"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert job.wait(timeout=100) != 0
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
