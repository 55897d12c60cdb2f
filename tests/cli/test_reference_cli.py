"""docs/reference/cli.md against the command: exactly its commands, each with its options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
OPTION = re.compile(r"--[a-z][a-z0-9-]*")


def parts() -> dict[str, str]:
    """The section of each command, by its name."""
    commands = PAGE.split("\n## python -m marey")[0]
    found = re.split(r"^## marey ([\w-]+)\n", commands, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2]))


def shown_commands(file: Path) -> list[str]:
    """Lines that begin with marey, in blocks of code."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line.removeprefix("$ ") for line in "\n".join(blocks).splitlines() if re.match(r"(\$ )?marey ", line)]


def options_of(marey, command: str) -> set[str]:
    """The options listed in the help, each at the start of a line."""
    text = marey(command, "--help").stdout.split("Options:")[1].split("Examples:")[0]
    return set(re.findall(r"^ {2,8}(?:-\w, )?(--[a-z][a-z0-9-]*)", text, re.MULTILINE)) - {"--help"}


def test_each_command_has_its_part_and_a_line_in_the_table(marey):
    names = set(marey("help", "--names").stdout.split())
    assert set(parts()) == names
    assert set(re.findall(r"^\| \[`([\w-]+)`\]\(#marey-", PAGE, re.MULTILINE)) == names


def test_each_option_is_reported_and_none_that_is_not_there(marey):
    wrong = {}
    for command, text in parts().items():
        there = options_of(marey, command)
        if missing := there - set(OPTION.findall(text)):
            wrong[command] = f"has no {sorted(missing)}"
        # In the first column of tables; elsewhere a part may speak of other commands.
        rows = re.findall(r"^\| (`-.*?) \| ", text, re.MULTILINE)
        if extra := {option for row in rows for option in OPTION.findall(row)} - there:
            wrong[command] = f"tells of {sorted(extra)}, which it does not have"
    assert wrong == {}


@pytest.mark.parametrize("page", ["docs/guide", "README.md", "docs/reference"])
def test_commands_in_the_documents_have_the_options_they_are_shown_with(marey, page):
    names = {name: options_of(marey, name) for name in marey("help", "--names").stdout.split()}
    files = sorted((ROOT / page).glob("*.md")) if (ROOT / page).is_dir() else [ROOT / page]
    wrong, n_shown = [], 0
    for file in files:
        for line in shown_commands(file):
            words = re.split(r"\s{3,}|\s#\s| \|| -- |;", line)[0].split()
            if len(words) < 2 or not re.fullmatch(r"[a-z][a-z-]*", words[1]):
                continue
            n_shown += 1
            used = {word.split("=")[0] for word in words[2:] if OPTION.match(word)} - {"--help"}
            if words[1] not in names:
                wrong.append(f"{file.name}: there is no command {words[1]}: {line}")
            elif used - names[words[1]]:
                wrong.append(f"{file.name}: there is no {sorted(used - names[words[1]])}: {line}")
    assert wrong == []
    assert n_shown > 5
