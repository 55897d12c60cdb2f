"""Help, versions and mistakes: what is said, where, and with which status."""

from __future__ import annotations

import re

import pytest


def test_without_a_command_the_overview_is_shown(kymo, expected):
    for args in ((), ("--help",), ("help",), ("-h",)):
        done = kymo(*args)
        assert (done.returncode, done.stderr) == (0, "")
        expected("overview", done.stdout)


COMMANDS = ["run", "report", "export", "compare", "breakdown", "artifacts", "import", "diff", "dump", "doctor"]
COMMANDS += ["completion", "attach", "top", "stacks", "watch", "scale"]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(kymo, expected, command):
    for args in ((command, "--help"), ("help", command), (command, "-h")):
        done = kymo(*args)
        assert (done.returncode, done.stderr) == (0, "")
        expected(f"help-{command}", done.stdout)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_terminal(kymo, command):
    lines = kymo(*command.split(), "--help").stdout.splitlines()
    assert max(map(len, lines)) <= 90


def test_the_version_is_said(kymo):
    done = kymo("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"kymo \d+\.\d+\.\d+\n", done.stdout)


MISTAKES = {
    "unknown-command": ["repot", "x.kymo"],
    "unknown-command-far": ["frobnicate"],
    "removed-command": ["answers", "x.kymo"],
    "option-before-command": ["--json", "report"],
    "unknown-option": ["report", "x.kymo", "--jsn"],
    "unknown-option-far": ["report", "x.kymo", "--frobnicate=3"],
    "unknown-letter": ["export", "x.kymo", "-z"],
    "missing-value": ["report", "x.kymo", "--sort"],
    "value-for-flag": ["report", "x.kymo", "--json=yes"],
    "wrong-choice": ["export", "x.kymo", "--to", "flac"],
    "wrong-number": ["report", "x.kymo", "--limit", "many"],
    "negative-number": ["report", "x.kymo", "--limit", "-3"],
    "json-and-csv": ["report", "x.kymo", "--json", "--csv"],
    "run-nothing": ["run"],
    "run-nothing-behind-dashes": ["run", "-o", "x.kymo", "--"],
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
    "compare-three": ["compare", "x.kymo", "y.kymo", "z.kymo"],
    "split-chrome": ["export", "x.kymo", "--to", "chrome", "--split"],
    "append-and-force": ["run", "--append", "--force", "true"],
    "missing-recording": ["report", "x.kymo"],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gives_a_sentence_and_status_2(kymo, expected, tmp_path, name):
    done = kymo(*MISTAKES[name])
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    expected(f"mistake-{name}", done.stderr)
    assert list(tmp_path.iterdir()) == [], "a mistake leaves nothing behind"


def test_options_may_stand_anywhere_and_be_joined(kymo, recording):
    wanted = kymo("report", "--csv", "--limit", "1", "run.kymo").stdout
    assert kymo("report", "run.kymo", "-n1", "--csv").stdout == wanted
    assert kymo("report", "--limit=1", "--csv", "--", "run.kymo").stdout == wanted


def test_a_full_standard_output_is_an_error(kymo):
    with open("/dev/full", "w") as full:
        done = kymo("--help", stdout=full, stderr=-1)
    assert done.returncode == 2
    assert "standard output" in done.stderr
