"""tools/demo: it asks each question that it promises, of files that it made, and its script is sound."""

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


def test_commands_have_the_options_it_gives_them(kymo):
    for command in re.findall(r'"\$kymo" ((?:[^\n]|\\\n)*)', DEMO):
        words = command.replace("\\\n", " ").split(" -- ")[0].split()
        known = kymo(words[0], "--help").stdout
        for option in (word for word in words[1:] if re.match(r"--[a-z]", word)):
            assert option.split("=")[0] in known, command


def test_it_ends_with_every_answer_and_each_of_a_file_that_it_made():
    asked = DEMO[DEMO.index('say "Every answer"') :]
    questions = [
        "time",
        "text",
        "compare",
        "diff",
        "breakdown",
        "epochs",
        "energy",
        "samples",
        "calls",
        "memory",
        "scale",
    ]
    assert [name for name in questions if f"--{name} " not in asked] == []
    before = DEMO[: DEMO.index('say "Every answer"')]
    for name in set(re.findall(r"demo\.(\w+)", asked)) - {"html", "monitor", "new", "reference", "scale1", "scale2"}:
        assert f"demo.{name}" in before or name in ("slices", "loader"), name
