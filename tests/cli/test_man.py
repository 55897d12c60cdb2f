"""The manual pages: one per command, valid roff, and the same text as the help."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def pages(program) -> dict[str, Path]:
    """Each page that the build made, by its name."""
    folder = program.parent / "share" / "man" / "man1"
    if not folder.exists():
        pytest.skip("this build has no manual pages, because it has sanitizers or is for another machine")
    return {page.stem: page for page in folder.iterdir()}


def drawn(page: Path) -> str:
    """The page as a terminal shows it, without line breaks and hyphens of the layout."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed here")
    command = ["groff", "-man", "-Tascii", "-ww", "-P-c", "-P-b", "-P-u", "-rHY=0", "-dAD=l", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "", "groff warns"
    return " ".join(done.stdout.split())


def test_each_command_has_a_page(marey, pages):
    names = marey("help", "--names").stdout.split()
    assert {"run", "report", "export"} < set(names)
    assert set(pages) == {"marey", *(f"marey-{name}" for name in names)}


def test_groff_draws_them_without_a_warning(pages):
    for page in pages.values():
        text = drawn(page)
        for section in ("NAME", "SYNOPSIS", "EXIT STATUS", "ENVIRONMENT", "MAREY_OPTIONS", "EXAMPLES", "SEE ALSO"):
            assert section in text, f"{page.name} has no {section}"


def test_mandoc_has_nothing_against_them(pages):
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed here")
    for page in pages.values():
        done = subprocess.run(
            ["mandoc", "-T", "lint", "-W", "warning", str(page)], capture_output=True, text=True, check=False
        )
        # Pages have no date, so that two builds of one version are equal.
        assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []


def test_a_page_says_what_the_help_says(marey, pages):
    for name in marey("help", "--names").stdout.split():
        text = drawn(pages[f"marey-{name}"]).replace("- ", "-")
        help_text = marey(name, "--help").stdout
        for option in re.findall(r"--[a-z][a-z-]+", help_text.split("Options:")[1].split("Examples:")[0]):
            assert option in text
        for line in help_text.split("Examples:\n")[1].split("\n\n")[0].splitlines():
            assert " ".join(line.split()).replace("- ", "-") in text


def test_what_roff_would_take_for_its_own_is_shown_as_it_is(pages):
    assert "where it has one of *?[" in drawn(pages["marey-report"])
    assert "jq '.ranges[0]'" in drawn(pages["marey-report"])
    source = pages["marey-report"].read_text()
    assert "\n." not in re.sub(r"\n\.(TH|SH|TP|PP|RS|RE|BR|EX|EE)\b", "", source), "a line of text reads as a request"


def test_the_options_of_a_recording_are_in_the_overview(marey, pages):
    text = drawn(pages["marey"])
    for line in marey("run", "--options", "help").stdout.splitlines():
        assert line.split()[0] in text


def test_a_page_of_no_command_is_refused(marey):
    done = marey("help", "--man", "frobnicate")
    assert (done.returncode, done.stdout) == (2, "")
