"""`marey run` with unmodified Python programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import marey

BOOT = Path(marey.__file__).parent / "boot"

# What a program sees of us: nothing on its path, no package imported, and a sitecustomize only if it had one.
LOOKS_AROUND = """
    import sys
    assert not any("boot" in folder for folder in sys.path), sys.path
    assert "marey" not in sys.modules
    print("recording" if "marey._native" in sys.modules else "not recording")
"""


@pytest.fixture
def marey_run(marey_command, tmp_path):
    return [*marey_command, "run", "--only", "ranges", "-o", str(tmp_path / "run.marey"), "--"]


@pytest.fixture
def bare_environment(tmp_path):
    """A virtual environment without marey; the PYTHONPATH of these tests does not reach into it."""
    folder = tmp_path / "bare"
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"


def run_bare(python, source, tmp_path, *, command=(), env=None):
    script = tmp_path / "bare.py"
    script.write_text(source)
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    return subprocess.run(
        [*command, str(python), str(script)],
        env={**clean, **(env or {})},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_plain_script_records_without_a_change(run_python, marey_run, tmp_path):
    run_python(
        """
        import marey
        assert marey.enabled()
        with marey.range("in the script"):
            pass
        """,
        command=marey_run,
    )
    assert marey.load(tmp_path / "run.marey").ranges["name"] == ["in the script"]


def test_the_program_sees_nothing_of_us(run_python, marey_run):
    assert run_python(LOOKS_AROUND, command=marey_run).stdout == "recording\n"


def test_status_and_output_pass(run_python, marey_run):
    done = run_python("import sys; print('out'); sys.exit(7)", command=marey_run, check=False)
    assert (done.returncode, done.stdout) == (7, "out\n")


def test_the_next_sitecustomize_has_its_turn(run_python, marey_run, tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.theirs_ran = __name__\nname = 'theirs'\n")
    done = run_python(
        """
        import sys, sitecustomize
        assert sys.theirs_ran == "sitecustomize"
        assert sitecustomize.name == "theirs"
        print("recording" if "marey._native" in sys.modules else "not recording")
        """,
        command=marey_run,
        env={"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])},
    )
    assert done.stdout == "recording\n"


def test_a_failing_sitecustomize_fails_as_it_would(run_python, marey_run, tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("raise ValueError('theirs is broken')\n")
    env = {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    done = run_python(LOOKS_AROUND, command=marey_run, env=env)
    assert done.stdout == "recording\n"
    assert "theirs is broken" in done.stderr


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_an_interpreter_that_was_told_not_to_listen(run_python, marey_run, flag):
    """The program runs normally, and one message explains what to do."""
    done = run_python("print('fine')", command=marey_run, flags=(flag,))
    assert done.stdout == "fine\n"
    assert flag in done.stderr


def test_children_record_too(run_python, marey_run, tmp_path):
    run_python(
        """
        import subprocess, sys
        child = "import marey\\nwith marey.range('in the child'): pass"
        subprocess.run([sys.executable, "-c", child], check=True)
        """,
        command=marey_run,
    )
    assert marey.load(tmp_path / "run.marey").ranges["name"] == ["in the child"]


def test_an_environment_without_marey_borrows_the_package(bare_environment, marey_run, tmp_path):
    source = "\n".join(
        [
            "import sys",
            "before = list(sys.path)",
            "import marey",
            "assert sys.path == before and marey.enabled()",
            "with marey.range('borrowed'): pass",
            "try:",
            "    import pytest",
            "except ImportError:",
            "    print('nothing else came along')",
        ]
    )
    done = run_bare(bare_environment, source, tmp_path, command=marey_run)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "nothing else came along\n"
    assert marey.load(tmp_path / "run.marey").ranges["name"] == ["borrowed"]


def test_an_interpreter_that_no_package_fits_is_reported_once(bare_environment, tmp_path):
    """As for a Python of another version: the boot folder is there, a fitting extension is not."""
    unfit = tmp_path / "unfit" / "marey"
    unfit.mkdir(parents=True)
    (unfit / "__init__.py").write_text("")
    source = "\n".join(
        [
            "import subprocess, sys",
            "print('fine')",
            "if len(sys.argv) == 1:",
            "    subprocess.run([sys.executable, __file__, 'child'], check=True)",
        ]
    )
    env = {"PYTHONPATH": str(BOOT), "MAREY": str(tmp_path / "run.marey"), "MAREY_PACKAGE_DIR": str(unfit.parent)}
    done = run_bare(bare_environment, source, tmp_path, env=env)
    assert (done.returncode, done.stdout.count("fine")) == (0, 2)
    assert done.stderr.count("install marey") == 1
    assert str(bare_environment) in done.stderr


def test_python_3_9_is_rejected_in_one_sentence(tmp_path):
    old = sorted((Path.home() / ".pyenv" / "versions").glob("3.9.*/bin/python"))
    if not old:
        pytest.skip("needs a Python 3.9 from pyenv")
    env = {"PYTHONPATH": str(BOOT), "MAREY": str(tmp_path / "run.marey")}
    done = run_bare(old[0], "print('fine')", tmp_path, env=env)
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert done.stderr == (
        f"marey: {old[0]} (Python 3.9) does not record: Python 3.9 is not supported; 3.10 to 3.13 are\n"
    )


def test_a_damaged_package_does_not_stop_the_program(bare_environment, tmp_path):
    damaged = tmp_path / "damaged" / "marey"
    damaged.mkdir(parents=True)
    (damaged / "__init__.py").write_text("")
    (damaged / Path(marey._native.__file__).name).write_bytes(b"not an extension")
    env = {"PYTHONPATH": str(BOOT), "MAREY": str(tmp_path / "run.marey"), "MAREY_PACKAGE_DIR": str(damaged.parent)}
    done = run_bare(bare_environment, "print('fine')", tmp_path, env=env)
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert done.stderr.startswith("marey: ")


def test_without_a_recording_nothing_is_loaded(bare_environment, tmp_path):
    env = {"PYTHONPATH": str(BOOT)}
    clean = "import sys; print(any('marey' in name for name in sys.modules))"
    done = run_bare(bare_environment, clean, tmp_path, env=env)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_program_with_a_module_called_marey_keeps_it(marey_run, run_python, tmp_path):
    (tmp_path / "marey.py").write_text("mine = True\n")
    run_python("import marey; assert marey.mine", command=marey_run)


def test_the_command_line_by_python(tmp_path):
    by_module = subprocess.run([sys.executable, "-m", "marey", "--version"], capture_output=True, text=True, check=True)
    assert marey.__version__ in by_module.stdout
    script = shutil.which("marey", path=str(Path(sys.executable).parent))
    if script is not None:  # the package was installed by pip
        by_script = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
        assert by_script.stdout == by_module.stdout
