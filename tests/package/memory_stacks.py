"""Allocations have the Python functions, files and lines they were made in, whichever Python this is.

python tests/package/memory_stacks.py        status 0 when they have

It needs the package marey and nothing else, no pytest: `make check` runs it with each Python that is here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import marey

# Each place is marked by a comment; the line is that of the allocation, in the middle of a function.
PROGRAM = """
import sys
import threading

kept = []


def plain():
    a = 1
    kept.append(
        bytearray(1_000_000)  # HERE plain
    )
    return a


def generator():
    yield 1
    kept.append(bytearray(2_000_000))  # HERE generator
    yield 2


class Model:
    def forward(self):
        for _ in range(3):
            pass
        kept.append(bytearray(3_000_000))  # HERE forward


def deep(n):
    if n > 0:
        return deep(n - 1)
    kept.append(bytearray(4_000_000))  # HERE deep
    return None


def small():
    kept.append([(i, float(i)) for i in range(20_000)])  # HERE small


def in_a_thread():
    kept.append(bytearray(5_000_000))  # HERE in_a_thread


if len(sys.argv) > 1:
    import marey

    marey.start(sys.argv[1], memory=True, **{"memory.sample": 1})
plain()
list(generator())
Model().forward()
deep(12)
small()
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
"""
SIZES = {"plain": 1, "generator": 2, "forward": 3, "deep": 4, "in_a_thread": 5}


def line_of(name: str) -> int:
    lines = PROGRAM.splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith("# HERE " + name))


def check(path: Path) -> None:
    table = marey.load(path).memory("stacks", stacks=1000)
    stacks = [row["stack"].split(" < ") for row in table if row["stack"]]
    rows = {tuple(row["where"].split(" < ")): row for row in table}
    for name, megabytes in SIZES.items():
        # The line of the call may be that of the statement's first line before Python 3.11.
        lines = {line_of(name)} | ({line_of(name) - 1} if name == "plain" and sys.version_info < (3, 11) else set())
        function = "Model.forward" if name == "forward" and sys.version_info >= (3, 11) else name
        frames = {f"{function} (program.py:{line})" for line in lines}
        found = [row for where, row in rows.items() if where[0] in frames]
        assert found, f"no stack has {frames}: {sorted(rows)}"
        assert sum(row["bytes"] for row in found) >= megabytes * 1_000_000, (name, found)
    assert any(f"small (program.py:{line_of('small')})" in frame for stack in stacks for frame in stack)
    recursion = next(stack for stack in stacks if any(f.startswith("deep (") for f in stack))
    assert sum(frame.startswith("deep (program.py:") for frame in recursion) == 13, recursion
    assert any(frame.startswith("<module> (program.py:") for frame in recursion), recursion


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "program.py"
        program.write_text(PROGRAM)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MAREY")}
        hooked, alone = folder / "hooked.marey", folder / "alone.marey"
        command = [sys.executable, "-m", "marey", "run", "-q", "--memory", "--memory-sample", "1", "-o", str(hooked)]
        subprocess.run([*command, "--", sys.executable, str(program)], check=True, env=environment)
        check(hooked)
        subprocess.run([sys.executable, str(program), str(alone)], check=True, env=environment)
        check(alone)
    print(f"stacks of allocations are right with Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
