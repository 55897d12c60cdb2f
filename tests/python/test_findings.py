"""marey.doctor(): the table of what can be measured here."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import marey

PATIENCE = 30  # seconds, so that a busy machine changes no answer


def test_the_findings_are_a_table(tmp_path):
    found = marey.doctor(tmp_path, wait=PATIENCE)
    assert isinstance(found, marey.Table)
    assert found.columns == ["subject", "thing", "state", "value", "amount", "unit", "advice"]
    assert found.can_record
    assert found.row(subject="files", thing="directory")["value"].startswith(f"{tmp_path} (")
    assert found.row(thing="cost of a range")["amount"] > 0
    assert found.row(thing="marey")["value"].startswith(marey.__version__)
    assert list(tmp_path.iterdir()) == []


def test_it_prints_as_the_command_does(tmp_path, marey_command):
    text = repr(marey.doctor(tmp_path, wait=PATIENCE))
    command = subprocess.run([*marey_command, "doctor", str(tmp_path)], capture_output=True, text=True, check=True)
    headings = [line for line in command.stdout.splitlines() if line and not line.startswith(" ")][:-1]
    assert [line for line in text.splitlines() if line and not line.startswith(" ")][:-1] == headings
    assert text.endswith("marey can record here")


def test_where_nothing_can_be_recorded(tmp_path):
    found = marey.doctor(tmp_path / "no" / "run.marey", wait=PATIENCE)
    assert not found.can_record
    assert found.row(thing="recording")["state"] == "missing"


def test_an_open_recording_goes_on(record, tmp_path):
    with record() as path:
        with marey.range("outer"):
            assert marey.doctor(tmp_path, wait=PATIENCE).can_record
        assert marey.enabled()
    recording = marey.load(path)
    assert recording.ranges["name"] == ["outer"]
    assert len(recording.processes) == 1, "its children leave no log there"
    assert recording.warnings == []


def test_it_leaves_no_child_and_no_descriptor(run_python):
    run_python("""
        import marey, os
        marey.doctor(wait=30)
        before = sorted(os.listdir("/proc/self/fd"))
        marey.doctor(measure=True, wait=30)
        assert sorted(os.listdir("/proc/self/fd")) == before
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            raise SystemExit(0)
        raise SystemExit("a child is left")
    """)


@pytest.mark.parametrize("wait", [0, -1, 1e9, float("nan")])
def test_a_wait_that_makes_no_sense(wait):
    with pytest.raises(ValueError, match="wait"):
        marey.doctor(wait=wait)


def test_a_path_with_a_nul_is_refused():
    with pytest.raises(ValueError, match="null"):
        marey.doctor("a\0b")


def test_this_interpreter_is_found_by_its_path(run_python):
    folder = os.path.dirname(sys.executable)
    done = run_python(
        "import marey; print(marey.doctor(wait=30).row(subject='python', state='ok')['value'])",
        env={"PATH": f"{folder}:/usr/bin:/bin"},
    )
    assert marey.__version__ in done.stdout
