"""marey run when there is little or nothing to record: what it says and what it keeps."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from built import BUILD, Finished

NOBODY = 65534
SECRETIVE = """
#include <marey/marey.h>
#include <stdlib.h>
#include <time.h>
int main(int n_args, char **args)
{
    for (int i = 0; n_args > 1 && i < atoi(args[1]); i++) {
        MAREY_SCOPE("range");
    }
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    return 5;
}
"""


def test_a_program_that_is_too_short_gets_a_command_to_run(marey: Callable[..., Finished]) -> None:
    for _ in range(10):  # on a busy machine even this one may be long enough
        done = marey("run", "--force", "-o", "x.marey", "sh", "-c", "exit 4")
        assert done.returncode == 4
        if "nothing was recorded" in done.stderr:
            break
    lines = done.stderr.splitlines()
    assert lines[0].startswith("marey: nothing was recorded: no stacks ")
    assert lines[1].startswith("marey: the program ran for ")
    assert lines[1].endswith("marey run --repeat 20 -- sh -c 'exit 4'")
    assert "wall time" in lines[2] and "marey compare x.marey OTHER.marey" in lines[2]
    assert marey("report", "x.marey").returncode == 0


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that every user may write to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def as_nobody(command: list[object], folder: Path, environment: dict[str, str]) -> Finished:
    """Run it without the right to read other programs' memory."""

    def drop() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    more = {"cwd": folder, "env": environment, "preexec_fn": drop, "timeout": 60}
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)


@pytest.mark.parametrize("n_ranges", [0, 3])
def test_without_permission_to_read_memory_the_rest_is_recorded(compiled, public, program, environment, n_ranges):
    source = public / "secretive.c"
    source.write_text(SECRETIVE)
    shutil.copy(compiled(str(source)), public / "secretive")
    (public / "secretive").chmod(0o111)  # who may not read a program may not read its memory
    if as_nobody([program, "--version"], public, environment).returncode != 0:
        pytest.skip("another user may not run this build")
    done = as_nobody([program, "run", "-o", "x.marey", "./secretive", n_ranges], public, environment)
    assert done.returncode == 5, done.stderr
    assert "does not let marey read process" in done.stderr or "is not dumpable" in done.stderr
    assert "sudo marey run ..." in done.stderr
    if n_ranges != 0:
        assert "marey: stacks are not recorded: " in done.stderr
        assert "range" in as_nobody([program, "report", "x.marey"], public, environment).stdout
    else:
        assert done.stderr.startswith("marey: nothing was recorded: ")


def test_few_files_are_enough(marey: Callable[..., Finished], tmp_path: Path) -> None:
    """With a limit of 64 files for marey and the program."""
    script = "sum(i * i for i in range(20_000_000)); import sys; sys.exit(6)"
    (tmp_path / "busy.py").write_text(script)
    command = 'ulimit -n 64; exec "$0" run -o x.marey "$1" busy.py'
    more = {"cwd": tmp_path, "timeout": 60}
    done = subprocess.run(
        ["sh", "-c", command, BUILD / "cli" / "marey", sys.executable],
        capture_output=True,
        text=True,
        check=False,
        **more,
    )
    assert done.returncode == 6
    assert "recorded to x.marey" in done.stderr
    assert "busy.py" in marey("report", "x.marey", "--samples").stdout


def test_a_folder_that_cannot_be_written_to(public: Path, program: Path, environment: dict[str, str]) -> None:
    here, there = public / "here", public / "there"
    here.mkdir(mode=0o555)
    there.mkdir()
    there.chmod(0o777)
    environment = {**environment, "TMPDIR": str(there)}
    if as_nobody([program, "--version"], public, environment).returncode != 0:
        pytest.skip("another user may not run this build")
    done = as_nobody([program, "run", "sh", "-c", "exit 9"], here, environment)
    assert done.returncode == 9
    assert f"marey: cannot write in this folder (Permission denied): recording in {there} instead" in done.stderr
    assert (there / "sh.marey").is_dir()


def test_a_python_without_torch(marey: Callable[..., Finished], tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("import sys\nsum(i * i for i in range(6_000_000))\nsys.exit(3)\n")
    done = marey("run", "--", sys.executable, "-S", "plain.py")
    assert done.returncode == 3
    assert "plain.py" in marey("report", "plain.marey", "--samples").stdout
