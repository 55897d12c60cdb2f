"""`marey run --mpi` with complete programs: before and after the launcher, and with faults."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from mpi_jobs import Mpi, Process, communications

STEPS = 20


def names(process: Process) -> Counter[str]:
    return Counter(call["name"] for call in communications(process))


# What has to do with marey and the loader, and nothing with the MPI.
with_one_mpi = pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)


def assert_whole(processes: list[Process], ranks: int) -> None:
    """Every rank is there once with its own number, nothing is lost."""
    assert [(process["rank"], process["world_size"]) for process in processes] == [(r, ranks) for r in range(ranks)]
    assert all(process["lost"] == 0 for process in processes)


@pytest.fixture
def program(compiled: Callable[..., Path]) -> Path:
    return compiled("program.c", "-lpthread")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_in_front_of_the_launcher(mpi, program, run, tool, recorded, tmp_path, ranks):
    done = run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(ranks, program)])
    assert f"recorded {ranks} process" in done.stderr
    processes = recorded(tmp_path / "run.marey")
    assert_whole(processes, ranks)
    for process in processes:
        assert names(process) == {"MPI_Init_thread": 1, "MPI_Allreduce": 2 * STEPS, "MPI_Finalize": 1}
        assert process["ranges"][0]["told"]["group"] == "MPI_COMM_WORLD"


@pytest.mark.parametrize("ranks", [2, 4])
def test_behind_the_launcher_the_ranks_share_a_recording(mpi, program, run, tool, recorded, tmp_path, ranks):
    done = run(mpi.run(ranks, tool, "run", "--mpi", "-o", tmp_path / "run.marey", "--", program))
    assert done.stderr.count("marey: ") == done.stderr.count("the ranks share run.marey") == 1, done.stderr
    processes = recorded(tmp_path / "run.marey")
    assert_whole(processes, ranks)
    assert all(names(process)["MPI_Allreduce"] == 2 * STEPS for process in processes)
    suffixes = [path.suffix for path in (tmp_path / "run.marey").iterdir()]
    assert sorted(suffix for suffix in suffixes if suffix != ".krun") == [".json"] + [".klog"] * ranks


def test_a_program_started_alone_is_rank_0_of_1(mpi, program, run, tool, recorded, tmp_path):
    run([tool, "run", "--mpi", "-o", "run.marey", "--", program])
    assert_whole(recorded(tmp_path / "run.marey"), 1)


def test_the_rank_is_mpis_whatever_another_launcher_left_behind(mpi, program, run, tool, recorded, tmp_path):
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(2, "env", "RANK=7", "WORLD_SIZE=9", program)])
    assert_whole(recorded(tmp_path / "run.marey"), 2)


@pytest.mark.parametrize("where", ["in front", "behind"])
def test_a_rank_killed_by_kill_9_loses_nothing(mpi, program, run, tool, recorded, tmp_path, where):
    record = (tool, "run", "--mpi", "-o", tmp_path / "run.marey", "--")
    in_front = [str(word) for word in (*record, *mpi.run(4, program, "kill", 2))]
    run(in_front if where == "in front" else mpi.run(4, *record, program, "kill", 2), status=None)
    processes = recorded(tmp_path / "run.marey")
    assert_whole(processes, 4)
    killed = processes[2]
    assert killed["end"] == "unclosed"
    assert names(killed) == {"MPI_Init_thread": 1, "MPI_Allreduce": STEPS}
    assert all(call["end"] is not None for call in killed["ranges"])
    for process in processes:  # the others were in an all-reduce with it, or had to end before that
        assert names(process)["MPI_Allreduce"] >= STEPS


def test_a_rank_that_aborts_takes_the_others_along_and_loses_nothing(mpi, program, run, tool, recorded, tmp_path):
    done = run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(4, program, "abort", 1)], status=None)
    assert done.returncode != 0
    processes = recorded(tmp_path / "run.marey")
    assert_whole(processes, 4)
    assert names(processes[1]) == {"MPI_Init_thread": 1, "MPI_Allreduce": STEPS, "MPI_Abort": 1}
    assert all(names(process)["MPI_Allreduce"] >= STEPS for process in processes)


def test_ranks_that_leave_without_finalize_lose_nothing(mpi, program, run, tool, recorded, tmp_path):
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(2, program, "exit")], status=None)
    processes = recorded(tmp_path / "run.marey")
    assert_whole(processes, 2)
    assert all(names(process) == {"MPI_Init_thread": 1, "MPI_Allreduce": STEPS} for process in processes)


def test_forked_children_that_make_no_calls_leave_no_log(mpi, program, run, tool, recorded, tmp_path):
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(2, program, "fork")])
    assert_whole(recorded(tmp_path / "run.marey"), 2)


def test_threads_have_lanes_and_communicators_of_their_own(mpi, program, run, tool, recorded, tmp_path):
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(2, program, "threads")])
    processes = recorded(tmp_path / "run.marey")
    assert_whole(processes, 2)
    for process in processes:
        groups = {}
        for call in communications(process):
            told = call["told"]
            if call["name"] == "MPI_Allreduce":
                groups.setdefault((told["group"], call["thread"]), []).append(told["sequence"])
            elif call["name"] == "MPI_Waitall":
                assert (told["out"], told["peer"]) == (8, 1 - process["rank"])
        assert {name for name, _ in groups} == {"MPI_COMM_WORLD", "MPI_Comm_dup", "MPI_Comm_dup 2"}
        for (name, _), numbers in groups.items():
            if name != "MPI_COMM_WORLD":  # which has the two dups between its all-reduces
                assert numbers == list(range(200))


def test_a_handle_that_another_thread_gets_while_a_wait_returns(mpi, compiled, run, tool, recorded, tmp_path):
    program = compiled("reused_handle.c", "-lpthread", "-ldl")
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(1, program)])
    (process,) = recorded(tmp_path / "run.marey")
    waits = [call for call in process["ranges"] if call["name"] == "MPI_Wait"]
    assert len(waits) == 2 * STEPS
    assert [call["told"] and call["told"]["out"] for call in waits] == [8] * len(waits)


def test_what_may_be_asked_before_and_after_does_no_harm(mpi, program, run, tool, recorded, tmp_path):
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(2, program, "early")])
    assert_whole(recorded(tmp_path / "run.marey"), 2)


def test_errors_that_mpi_returns_are_returned(mpi, program, run, tool, recorded, tmp_path):
    command = mpi.run(2, program, "errors")
    run(command)
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *command])
    assert all(call["end"] is not None for process in recorded(tmp_path / "run.marey") for call in process["ranges"])


def test_communicators_that_come_and_go_share_a_name(mpi, program, run, tool, recorded, tmp_path):
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(2, program, "frees")])
    for process in recorded(tmp_path / "run.marey"):
        told = [call["told"] for call in communications(process) if call["name"] == "MPI_Allreduce"]
        copies = [one for one in told if one["group"] != "MPI_COMM_WORLD"]
        assert {one["group"] for one in copies} == {"MPI_Comm_dup"}
        assert [one["sequence"] for one in copies] == list(range(300))


@with_one_mpi
def test_without_a_recording_nothing_is_recorded_and_all_goes_on(mpi, program, run, build, tmp_path):
    library = tmp_path / "link"
    library.symlink_to(build / "core")
    run(mpi.run(2, program), env={"LD_PRELOAD": str(library / "libmarey-mpi.so")})
    assert list(tmp_path.glob("*.marey")) == []


@with_one_mpi
def test_a_first_argument_of_ld_preload_stays(mpi, program, run, tool, recorded, tmp_path):
    other = next(Path("/lib").glob("*/libm.so.6"))
    script = tmp_path / "script"
    script.write_text('#!/bin/sh\necho "$LD_PRELOAD"\nexec "$@"\n')
    script.chmod(0o755)
    done = run([tool, "run", "--mpi", "-o", "run.marey", "--", script, program], env={"LD_PRELOAD": str(other)})
    kept = done.stdout.strip().split(":")
    assert kept[0] == str(other) and kept[1].endswith("/libmarey-mpi.so") and len(kept) == 2
    assert_whole(recorded(tmp_path / "run.marey"), 1)


@with_one_mpi
def test_one_marey_run_in_another_preloads_once(mpi, program, run, tool, recorded, tmp_path):
    script = tmp_path / "script"
    script.write_text('#!/bin/sh\necho "$LD_PRELOAD"\nexec "$@"\n')
    script.chmod(0o755)
    inner = (tool, "run", "--mpi", "--append", "-o", "run.marey", "--", script, program)
    done = run([tool, "run", "--mpi", "-o", "run.marey", "--", *inner])
    assert done.stdout.count("libmarey-mpi") == 1
    assert_whole(recorded(tmp_path / "run.marey"), 1)


@pytest.fixture
def installed(build: Path, tmp_path: Path) -> Callable[[str], Path]:
    """An installed marey in a folder of that name."""

    def install(name: str) -> Path:
        folder = tmp_path / name
        subprocess.run(
            ["cmake", "--install", str(build), "--component", "c", "--prefix", str(folder)],
            check=True,
            capture_output=True,
        )
        return folder

    return install


@with_one_mpi
@pytest.mark.parametrize("name", ["with a blank", "with:colon", "with$LIB"])
def test_awkward_paths_are_preloaded_by_a_link(mpi, program, run, installed, recorded, tmp_path, name):
    tool = installed(name) / "bin" / "marey"
    script = tmp_path / "script"
    script.write_text('#!/bin/sh\necho "$LD_PRELOAD"\nexec "$@"\n')
    script.chmod(0o755)
    (tmp_path / "temporary").mkdir()
    done = run(
        [tool, "run", "--mpi", "-o", "run.marey", "--", script, program], env={"TMPDIR": str(tmp_path / "temporary")}
    )
    assert "cannot be preloaded" not in done.stderr
    assert_whole(recorded(tmp_path / "run.marey"), 1)
    assert name not in done.stdout
    assert list((tmp_path / "temporary").glob("marey-*")) == []  # removed again


@with_one_mpi
def test_a_missing_library_is_reported_before_the_program_starts(mpi, run, installed, tmp_path):
    prefix = installed("prefix")
    next(prefix.rglob("libmarey-mpi.so")).unlink()
    done = run([prefix / "bin" / "marey", "run", "--mpi", "--", "touch", "started"], status=2)
    assert "libmarey-mpi.so" in done.stderr and "reinstall marey completely" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "started").exists()


@with_one_mpi
def test_a_program_without_mpi_is_reported(mpi, run, tool, tmp_path):
    done = run([tool, "run", "--mpi", "-o", "run.marey", "--", "true"])
    assert "called no MPI function" in done.stderr


PYTHON = """
    import sys
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    assert world.allreduce(1) == world.size
    assert world.bcast("text" if world.rank == 0 else None) == "text"
    if world.rank == 0:
        world.send({"a": 1}, dest=1, tag=7)
    elif world.rank == 1:
        assert world.recv(source=0, tag=7) == {"a": 1}
    buffer = bytearray(64)
    world.Bcast(buffer, root=1)
    half = world.Split(world.rank % 2)
    half.Set_name("halves")
    half.Barrier()
    request = half.Ibarrier()
    request.Wait()
    print(MPI.Get_library_version().split(",")[0])
"""


def library_for_mpi4py(mpi: Mpi, folder: Path) -> dict[str, str]:
    """mpi4py's wheel brings no MPI: it takes the one that has this name, which must be that of the launcher."""
    if mpi.name == "wheel":
        return {}
    library, name = {"openmpi": ("libmpi.so.40", "libmpi.so.40"), "mpich": ("libmpich.so.12", "libmpi.so.12")}[mpi.name]
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^\s*{re.escape(library)} .*=> (\S+)$", cache, re.MULTILINE)
    (folder / name).symlink_to(found[1])
    return {"LD_LIBRARY_PATH": str(folder), "MPI4PY_LIBMPI": str(folder / name)}


def test_mpi4py_is_recorded_without_a_change(mpi, run, tool, recorded, tmp_path):
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not here; tools/setup test installs it where an index is at hand")
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(PYTHON))
    env = library_for_mpi4py(mpi, tmp_path)
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(2, sys.executable, script)], env=env)
    processes = recorded(tmp_path / "run.marey")
    assert_whole(processes, 2)
    calls = {process["rank"]: list(communications(process)) for process in processes}
    broadcasts = [call["told"] for call in calls[0] if call["name"] in ("MPI_Bcast", "MPI_Bcast_c")]
    assert broadcasts[-1]["out"] == 64 and broadcasts[-1]["peer"] == 1
    received = [call["told"] for call in calls[1] if "recv" in call["name"].lower() and call["told"]["out"]]
    assert received[0]["peer"] == 0 and received[0]["out"] > 5
    for rank in range(2):
        barrier = next(call["told"] for call in calls[rank] if call["name"] == "MPI_Barrier")
        assert (barrier["group"], barrier["ranks"], barrier["sequence"]) == ("halves", str(rank), 0)
