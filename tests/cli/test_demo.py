"""tools/demo: it runs each promised example on files that it made, and its script is valid."""

from __future__ import annotations

import re
import subprocess

from built import ROOT

DEMO = (ROOT / "tools" / "demo").read_text(encoding="utf-8")


def test_its_script_is_sound():
    subprocess.run(["sh", "-n", ROOT / "tools" / "demo"], check=True)


def test_every_example_that_it_runs_is_there():
    examples = set(re.findall(r"examples/\w+\.py", DEMO))
    assert len(examples) > 10
    assert {name for name in examples if not (ROOT / name).exists()} == set()


def test_commands_have_the_options_it_gives_them(marey):
    for command in re.findall(r'"\$marey" ((?:[^\n]|\\\n)*)', DEMO):
        words = command.replace("\\\n", " ").split(" -- ")[0].split(" .venv/bin/python ")[0].split()
        known = marey(words[0], "--help").stdout
        for option in (word for word in words[1:] if re.match(r"--[a-z]", word)):
            assert option.split("=")[0] in known, command


def test_it_reports_each_recording_and_writes_a_page():
    for name in set(re.findall(r"-o demo\.(\w+)\.marey", DEMO)):
        used = re.findall(rf'"\$marey" (?:report|breakdown|compare|scale) [^\n]*\bdemo\.{name}\.marey', DEMO)
        assert used, name
    assert '"$marey" report demo.marey --html demo.html' in DEMO


def test_it_begins_with_a_recording_and_ends_with_the_gain_of_a_fix():
    commands = re.findall(r'^ *"\$marey" ([^\n]*)', DEMO, re.MULTILINE)
    assert commands[0].startswith("run -o demo.marey ")
    slow, fast, gain = commands[-3:]
    assert slow.startswith("run -o demo.slow.marey .venv/bin/python examples/starved.py ||")
    assert fast.startswith("run -o demo.fast.marey .venv/bin/python examples/starved.py --fixed ||")
    assert gain.startswith("compare demo.slow.marey demo.fast.marey ")
