"""Unusual interpreters: deleted, upgraded, without symbols, in containers; and difficult names."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from watching import NEWEST, OLDEST, PYTHONS, Marey, functions_in, running

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root unshares and mounts")


def copy_interpreter(python: str, to: Path) -> str:
    """Move the program and its library, but not the modules."""
    program = Path(python).resolve()
    (to / "bin").mkdir(parents=True)
    shutil.copy(program, to / "bin" / "python")
    libraries = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\S*libpython3\S*) => (\S+)", libraries)
    if found:
        (to / "lib").mkdir()
        shutil.copy(found[2], to / "lib" / found[1])
    return str(to / "bin" / "python")


def environment_of(python: str, to: Path) -> dict[str, str]:
    home = subprocess.run(
        [python, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True, check=True
    )
    return {**os.environ, "LD_LIBRARY_PATH": str(to / "lib"), "PYTHONHOME": home.stdout.strip()}


def test_an_interpreter_that_was_deleted_is_read(marey: Marey, tmp_path: Path) -> None:
    """As after an upgrade: neither the program nor its library is in the file system any more."""
    for version in {NEWEST, OLDEST}:
        place = tmp_path / version
        python = copy_interpreter(PYTHONS[version], place)
        with running("flat", command=[python], env=environment_of(PYTHONS[version], place)) as target:
            shutil.rmtree(place)
            assert "(deleted)" in Path(f"/proc/{target.pid}/maps").read_text()
            stacks = marey.stacks(marey.attach(target.pid, "--exact", "--rate", 200, seconds=0.4))
        assert target.grammar.judge(stacks)[:2] == (sum(stacks.values()), 0)
        assert "main" in functions_in(stacks)


def test_an_interpreter_without_symbols_is_read(marey: Marey, tmp_path: Path) -> None:
    """Completely stripped; statically linked if the system's Python is."""
    for name, python in {"system": "/usr/bin/python3", "shared": sys.executable}.items():
        if not Path(python).exists():
            continue
        place = tmp_path / name
        copied = copy_interpreter(python, place)
        for file in [Path(copied), *place.glob("lib/*")]:
            subprocess.run(["strip", "--strip-all", str(file)], check=True)
        with running("flat", command=[copied], env=environment_of(python, place)) as target:
            stacks = marey.stacks(marey.attach(target.pid, "--exact", "--rate", 200, seconds=0.4))
        assert "main" in functions_in(stacks), name
        assert target.grammar.judge(stacks)[1] == 0


@needs_root
def test_a_container_is_read_from_its_host(marey: Marey) -> None:
    """In a separate pid namespace, with files that the host does not see."""
    with running("threads", 3, command=["unshare", "-p", "-m", "-f", "--mount-proc", sys.executable]) as outer:
        inside = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()[0])
        assert re.search(r"NSpid:\s+\d+\s+1\n", Path(f"/proc/{inside}/status").read_text())
        recording = marey.attach(inside, "--exact", "--rate", 200, seconds=0.5)
        tables = marey.report(recording, "--idle")
        names = {row["thread"] for row in tables["threads"]}
        subprocess.run(["kill", "-9", str(inside)], check=True)
    assert {f"waiter {i}" for i in range(3)} <= names
    assert {"main", "wait"} <= functions_in(marey.stacks(recording))


@needs_root
def test_an_interpreter_that_only_the_container_sees_is_read(marey: Marey, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    python = PYTHONS[NEWEST]
    copied = copy_interpreter(python, tmp_path / "source")
    mounts = f'mount -t tmpfs none {place} && cp -r {tmp_path}/source/. {place} && exec {place}/bin/python "$0" "$@"'
    environment = environment_of(python, place)
    with running("flat", command=["unshare", "-m", "sh", "-c", mounts], env=environment) as target:
        assert Path(copied).exists()
        assert not (place / "bin").exists()
        stacks = marey.stacks(marey.attach(target.pid, "--rate", 200, seconds=0.4))
    assert "main" in functions_in(stacks)


def test_hostile_names_are_whole(marey: Marey) -> None:
    """Names with newlines and brackets are preserved, and no reader fails."""
    with running("names") as target:
        found = marey.now(target.pid)
        recording = marey.attach(target.pid, "--rate", 200, seconds=0.6)
    names = {thread["name"] for group in found["groups"] for thread in group["threads"]}
    assert {"tr) S 1 2 3", "a;b;c", "日本 スレッド", '"quoted" \\ back'} <= names
    assert any(name.startswith("line") and "break" in name for name in names)
    assert any(name.startswith("xxxx") for name in names)
    functions = {frame["function"] for group in found["groups"] for frame in group["frames"]}
    assert {"naïve_größe", "計算する"} <= functions
    assert any(function.startswith("a_ba_b") for function in functions)
    assert any("f (x.py:3);g" in function for function in functions)
    for table in ("function", "line", "thread", "stack"):
        marey.run("report", recording, "--samples", "--by", table)
    threads = {row["thread"] for row in marey.report(recording, "--idle")["threads"]}
    assert "tr) S 1 2 3" in threads
    # A busy thread counts as busy, with any name in /proc.
    busy = {row["thread"] for row in marey.report(recording, "--mode", "cpu")["threads"] if row["samples"] > 0}
    assert "tr) S 1 2 3" in busy


FORMS = ("pyspy", "collapsed", "speedscope", "chrome", "perfetto", "flamegraph", "pstats")


def test_hostile_names_do_not_break_files(marey: Marey) -> None:
    with running("names") as target:
        recording = marey.attach(target.pid, "--rate", 100, seconds=0.4)
    for form in FORMS:
        out = marey.folder / f"out.{form}"
        marey.run("export", recording, "-q", "--to", form, "-o", out)
        data = out.read_bytes()
        assert data
        if form in ("pyspy", "collapsed"):
            for line in data.decode().splitlines():
                assert re.search(r" \d+$", line), line
        if form in ("speedscope", "chrome"):
            json.loads(data)
