"""`python -m marey script.py args`: as `python -m cProfile` runs it; everything else is the command line."""

from __future__ import annotations

import pstats
import subprocess
import sys

import pytest

SCRIPT = """
import sys

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

fib(8)
print(sys.argv[1:], __name__, __file__)
if len(sys.argv) > 2:
    sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)

    def start(*args):
        command = [sys.executable, "-m", "marey", *args]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return start


def test_a_script_is_profiled_with_its_arguments(run):
    done = run("--no-signatures", "-s", "ncalls", "script.py", "a")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("['a'] __main__ script.py\n")
    assert "67/1" in done.stdout and "script.py:4(fib)" in done.stdout


def test_signatures_are_in_the_table_unless_they_are_not_wanted(run):
    assert "(fib(n:int))" in run("script.py").stdout


def test_a_file_for_pstats(run, tmp_path):
    done = run("-o", "x.prof", "--no-signatures", "script.py")
    assert (done.returncode, done.stdout) == (0, "[] __main__ script.py\n")
    stats = pstats.Stats(str(tmp_path / "x.prof")).stats
    assert {key[2]: values[:2] for key, values in stats.items()}["fib"] == (1, 67)


def test_a_module_is_profiled(run):
    done = run("-m", "script", "b")
    assert done.returncode == 0 and done.stdout.startswith("['b'] __main__ ")


def test_the_status_is_the_scripts(run):
    done = run("script.py", "a", "5")
    assert done.returncode == 5 and "fib" in done.stdout


@pytest.mark.parametrize(
    ("args", "sentence"), [(["-o", "x"], "is missing"), (["-s", "calls", "no.py"], "cannot run no.py")]
)
def test_mistakes_are_reported(run, args, sentence):
    done = run(*args)
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr


def test_commands_are_commands(run):
    assert run("--version").stdout.startswith("marey ")
    assert run("report").returncode == 2
