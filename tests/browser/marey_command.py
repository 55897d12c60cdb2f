"""The command, as installed beside the package."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import marey

FOREIGN = ("MAREY", "MAREY_OPTIONS", "MAREY_RUN_ID", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "OMPI_COMM_WORLD_RANK")


def run_marey(*args: object, before: tuple[str, ...] = (), **variables: str) -> str:
    """Run `BEFORE... marey ARGS...` with additional variables; returns its output."""
    program = Path(marey.__file__).parent / "bin" / "marey"
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    return subprocess.run(
        [*before, str(program), *map(str, args)],
        env={**environment, **variables},
        stdout=subprocess.PIPE,
        text=True,
        timeout=180,
        check=True,
    ).stdout
