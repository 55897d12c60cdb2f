"""Help, versions and wrong usage: output, stream and exit status."""

from __future__ import annotations

import re

import pytest


def test_without_a_command_the_overview_is_shown(marey, expected):
    for args in ((), ("--help",), ("help",), ("-h",)):
        done = marey(*args)
        assert (done.returncode, done.stderr) == (0, "")
        expected("overview", done.stdout)


COMMANDS = ["run", "report", "export", "compare", "breakdown", "artifacts", "import", "diff", "dump", "doctor"]
COMMANDS += ["completion", "attach", "top", "stacks", "watch", "scale", "explain"]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(marey, expected, command):
    for args in ((command, "--help"), ("help", command), (command, "-h")):
        done = marey(*args)
        assert (done.returncode, done.stderr) == (0, "")
        expected(f"help-{command}", done.stdout)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_terminal(marey, command):
    lines = marey(*command.split(), "--help").stdout.splitlines()
    assert max(map(len, lines)) <= 90


def test_the_version_is_said(marey):
    done = marey("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"marey \d+\.\d+\.\d+\n", done.stdout)


MISTAKES = {
    "unknown-command": ["repot", "x.marey"],
    "unknown-command-far": ["frobnicate"],
    "option-before-command": ["--json", "report"],
    "unknown-option": ["report", "x.marey", "--jsn"],
    "unknown-option-far": ["report", "x.marey", "--frobnicate=3"],
    "unknown-letter": ["export", "x.marey", "-z"],
    "missing-value": ["report", "x.marey", "--sort"],
    "value-for-flag": ["report", "x.marey", "--json=yes"],
    "wrong-choice": ["export", "x.marey", "--to", "flac"],
    "wrong-number": ["report", "x.marey", "--limit", "many"],
    "negative-number": ["report", "x.marey", "--limit", "-3"],
    "json-and-csv": ["report", "x.marey", "--json", "--csv"],
    "run-nothing": ["run"],
    "run-nothing-behind-dashes": ["run", "--only", "ranges", "-o", "x.marey", "--"],
    "report-nothing": ["report"],
    "export-nothing": ["export"],
    "compare-nothing": ["compare"],
    "breakdown-nothing": ["breakdown"],
    "scale-nothing": ["scale"],
    "artifacts-nothing": ["artifacts"],
    "artifacts-nowhere": ["artifacts", "trace.json"],
    "artifacts-unknown": ["artifacts", "trace.json", "-o", "out", "--only", "trace,avrages"],
    "artifacts-missing": ["artifacts", "trace.json", "-o", "out"],
    "artifacts-wrong-rank": ["artifacts", "trace.json", "-o", "out", "--rank", "one"],
    "import-nothing": ["import"],
    "diff-nothing": ["diff"],
    "diff-one": ["diff", "a"],
    "diff-missing": ["diff", "a", "b"],
    "diff-wrong-tolerance": ["diff", "a", "b", "--tolerance", "1e-3"],
    "diff-negative": ["diff", "a", "b", "--atol", "-1"],
    "diff-wrong-step": ["diff", "a", "b", "--step", "first"],
    "dump-nothing": ["dump"],
    "dump-unknown": ["dump", "shw", "a"],
    "dump-missing": ["dump", "ls", "a"],
    "dump-cat-without-name": ["dump", "cat", "a"],
    "import-missing": ["import", "x.json"],
    "compare-three": ["compare", "x.marey", "y.marey", "z.marey"],
    "split-chrome": ["export", "x.marey", "--to", "chrome", "--split"],
    "append-and-force": ["run", "--only", "ranges", "--append", "--force", "true"],
    "missing-recording": ["report", "x.marey"],
    "explain-two": ["explain", "input-bound", "sync-bound"],
    "wrong-gate": ["report", "x.marey", "--fail-if-compute-below", "most"],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gives_a_sentence_and_status_2(marey, expected, tmp_path, name):
    done = marey(*MISTAKES[name])
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    expected(f"mistake-{name}", done.stderr)
    assert list(tmp_path.iterdir()) == [], "a mistake leaves nothing behind"


def test_options_may_stand_anywhere_and_be_joined(marey, recording):
    wanted = marey("report", "--csv", "--limit", "1", "run.marey").stdout
    assert marey("report", "run.marey", "-n1", "--csv").stdout == wanted
    assert marey("report", "--limit=1", "--csv", "--", "run.marey").stdout == wanted


def test_a_full_standard_output_is_an_error(marey):
    with open("/dev/full", "w") as full:
        done = marey("--help", stdout=full, stderr=-1)
    assert done.returncode == 2
    assert "standard output" in done.stderr
