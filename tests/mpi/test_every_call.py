"""Each function wrapped by libmarey-mpi is called at least once, and recorded correctly."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mpi_jobs import ROOT, Mpi, Process, communications

PROGRAMS = ("every_collective.c", "every_message.c", "every_communicator.c")
WRAPPERS = ("mpi_communicator.c", "mpi_life.c", "mpi_transfer.c", "mpi_wait.c")


def expected_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def add_up(calls: list[dict[str, Any]], sum_of: dict[str, Any], world: dict[str, Any]) -> list[dict[str, Any]]:
    """Take the calls of one name from the front, which must tell of one receive or of several, and give the rest."""
    n = next((i for i, call in enumerate(calls) if call["name"] != sum_of["sum"]), len(calls))
    told = [call["told"] for call in calls[:n] if call["told"] is not None]
    assert sum(one["out"] for one in told) == sum_of["out"], sum_of
    assert all((one["group"], one["ranks"]) == (world["group"], world["ranks"]) for one in told)
    return calls[n:]


def compare(process: Process, expected: list[dict[str, Any]]) -> None:
    calls = [{"name": call["name"], "told": call["told"]} for call in communications(process)]
    world = expected[0]["told"]
    for one in expected:
        if "sum" in one:
            calls = add_up(calls, one, world)
        else:
            assert calls and calls[0] == one
            calls = calls[1:]
    assert calls == []


@pytest.mark.parametrize("source", PROGRAMS)
def test_what_is_recorded_is_what_was_called(
    source: str,
    mpi: Mpi,
    compiled: Callable[..., Path],
    run: Callable[..., Any],
    tool: str,
    recorded: Callable[..., Any],
    tmp_path: Path,
) -> None:
    command = mpi.run(4, compiled(source), tmp_path / "expected")
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *command])
    processes = recorded(tmp_path / "run.marey")
    assert [(process["rank"], process["world_size"]) for process in processes] == [(rank, 4) for rank in range(4)]
    for process in processes:
        assert process["end"] == "exit"
        compare(process, expected_of(tmp_path / f"expected.{process['rank']}"))
        for call in communications(process):
            assert call["category"] == "communication"
            assert call["end"] is not None and call["end"] >= call["begin"], call
        assert all(flight["end"] is not None for flight in process["async"])


def test_a_nonblocking_collective_is_in_flight_from_its_start_to_its_wait(
    mpi: Mpi,
    compiled: Callable[..., Path],
    run: Callable[..., Any],
    tool: str,
    recorded: Callable[..., Any],
    tmp_path: Path,
) -> None:
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(4, compiled("every_collective.c"), tmp_path / "e")])
    for process in recorded(tmp_path / "run.marey"):
        calls = list(communications(process))
        starts = [call for call in calls if call["name"].startswith("MPI_I") and call["name"] != "MPI_Init"]
        waits = {call["told"]["sequence"]: call for call in calls if call["name"] == "MPI_Wait"}
        assert len(starts) == len(waits) + 2 == len(process["async"])  # two are waited for at once
        for start, flight in zip(starts, process["async"]):
            assert flight["name"] == start["name"] + " (in flight)"
            assert start["begin"] <= flight["begin"] <= start["end"]
            wait = waits.get(start["told"]["sequence"]) or next(call for call in calls if call["name"] == "MPI_Waitall")
            assert wait["begin"] <= flight["end"] <= wait["end"]


def test_collectives_have_the_same_numbers_on_all_ranks(
    mpi: Mpi,
    compiled: Callable[..., Path],
    run: Callable[..., Any],
    tool: str,
    recorded: Callable[..., Any],
    tmp_path: Path,
) -> None:
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(4, compiled("every_communicator.c"), tmp_path / "e")])
    seen: dict[tuple[str, str, int], list[tuple[int, str]]] = defaultdict(list)
    for process in recorded(tmp_path / "run.marey"):
        for call in communications(process):
            told = call["told"]
            if told and told["sequence"] is not None and call["name"] != "MPI_Wait":
                seen[told["group"], told["ranks"], told["sequence"]].append((process["rank"], call["name"]))
    for (group, ranks, _), calls in seen.items():
        assert len({name for _, name in calls}) == 1, (group, ranks, calls)
        assert sorted(rank for rank, _ in calls) == members(ranks), (group, ranks, calls)


def members(text: str) -> list[int]:
    """The ranks in a text such as 0-3,8,10-16:2|5."""
    found = []
    for part in re.split(r"[,|]", text):
        first, last, step = re.fullmatch(r"(\d+)(?:-(\d+))?(?::(\d+))?", part).groups()
        found.extend(range(int(first), int(last or first) + 1, int(step or 1)))
    return sorted(found)


def test_each_wrapper_is_called(mpi: Mpi, build: Path) -> None:
    """By the programs above, or by a test that says so here."""
    exported = subprocess.run(
        ["nm", "-D", "--defined-only", str(build / "core" / "libmarey-mpi.so")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    wrappers = set(re.findall(r" T (MPI_\w+)", exported))
    assert len(wrappers) > 100
    assert " T PMPI_" not in exported and not re.search(r" T (?!MPI_)", exported)
    called = "".join((ROOT / "tests" / "mpi" / source).read_text() for source in (*PROGRAMS, "expect.h"))
    elsewhere = {"MPI_Init_thread"}  # test_programs.py
    uncalled = {name for name in wrappers if not re.search(rf"\b{name}\b|\(({name[4:]}),", called)}
    assert uncalled == elsewhere


@pytest.mark.parametrize("source", WRAPPERS)
def test_wrappers_have_the_prototypes_of_mpi(source: str, mpi: Mpi, run: Callable[..., Any]) -> None:
    """With MPI's own types in place of ours, a wrapper that differs from its function is an error."""
    flags = ("-w", "-D_GNU_SOURCE", "-DMAREY_MPI_TYPES_H", "-include", "mpi.h", "-include", "stdint.h")
    run([mpi.compiler, "-fsyntax-only", *flags, f"-I{ROOT / 'include'}", str(ROOT / "mpi" / source)])


def test_numbers_and_handles_are_those_of_mpi(mpi: Mpi, compiled: Callable[..., Path], run: Callable[..., Any]) -> None:
    sources = (str(ROOT / "tests" / "mpi" / "dialect_ours.c"), str(ROOT / "mpi" / "mpi_library.c"))
    program = compiled("dialect_theirs.c", *sources, f"-I{ROOT / 'mpi'}", "-ldl", "-lpthread")
    ours, theirs = defaultdict(set), defaultdict(set)
    for line in run([str(program)]).stdout.splitlines():
        side, what, value = re.fullmatch(r"(ours|theirs) (.*) ([0-9a-f]+)", line).groups()
        (ours if side == "ours" else theirs)[what].add(value)
    assert len(theirs) == 16
    assert ours == theirs
