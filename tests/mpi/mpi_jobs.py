"""The MPIs of the tests, and queries of recordings."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

# One process of a recording, as communications.c prints it.
Process = dict[str, Any]


@dataclass
class Mpi:
    """One MPI: its compiler and its launcher."""

    name: str
    compiler: str
    launcher: str
    arguments: tuple[str, ...]

    def run(self, ranks: int, *command: object) -> list[str]:
        """The command line of a job."""
        return [self.launcher, *self.arguments, "-n", str(ranks), *map(str, command)]


OPEN_MPI = ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none")
BESIDE_PYTHON = Path(sys.executable).parent
CANDIDATES = {
    "openmpi": Mpi("openmpi", "mpicc.openmpi", "mpirun.openmpi", OPEN_MPI),
    "mpich": Mpi("mpich", "mpicc.mpich", "mpirun.mpich", ()),
    "wheel": Mpi("wheel", str(BESIDE_PYTHON / "mpicc"), str(BESIDE_PYTHON / "mpirun"), OPEN_MPI),
}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def torchrun(ranks: int, *command: object) -> list[str]:
    """A job on this machine, as users start it."""
    options = ("--nproc-per-node", str(ranks), "--master-addr", "127.0.0.1", "--master-port", str(free_port()))
    return [sys.executable, "-m", "torch.distributed.run", *options, *map(str, command)]


def communications(process: Process) -> Iterator[dict[str, Any]]:
    """The ranges that MPI's calls are."""
    return (call for call in process["ranges"] if call["name"].startswith("MPI_"))
