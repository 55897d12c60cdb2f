"""marey.plot from a script: one file, a browser if there is a display, accepted arguments."""

from __future__ import annotations

import cProfile
import os
import pstats
import re
import subprocess
import sys
from pathlib import Path

import pytest
from optional_parts import needs_viewer

import marey

SCRIPT = """
import cProfile, marey, sys
def leaf(): return sum(range(1000))
profile = cProfile.Profile()
profile.runcall(lambda: [leaf() for _ in range(10)])
page = marey.plot(profile, **eval(sys.argv[1]))
print(type(page).__name__)
"""


@pytest.fixture
def script(tmp_path):
    """Run a plotting script in a separate folder; return its output, and the pages opened in a browser."""
    browser, asked = tmp_path / "browser", tmp_path / "asked"
    browser.write_text(f'#!/bin/sh\necho "$1" >> "{asked}"\n')
    browser.chmod(0o755)

    def run(arguments: str = "{}", **variables: str) -> tuple[list[str], list[str]]:
        environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "MAREY")}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, arguments],
            cwd=tmp_path,
            env={**environment, "BROWSER": f"{browser} %s", **variables},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout.splitlines(), asked.read_text().splitlines() if asked.exists() else []

    return run


def profile_of(n: int) -> cProfile.Profile:
    def leaf() -> int:
        return sum(range(1000))

    profile = cProfile.Profile()
    profile.runcall(lambda: [leaf() for _ in range(n)])
    return profile


@needs_viewer
def test_without_a_display_the_path_is_printed(script, tmp_path):
    assert script() == ([str(tmp_path / "marey-calls.html"), "Page"], [])
    assert (tmp_path / "marey-calls.html").read_text().startswith("<!doctype html>")


@needs_viewer
def test_with_a_display_the_browser_is_asked(script, tmp_path):
    assert script(DISPLAY=":7") == (["Page"], [(tmp_path / "marey-calls.html").as_uri()])


@needs_viewer
def test_who_decides_is_the_caller(script, tmp_path):
    assert script("dict(path='a b.html', open_browser=False)", DISPLAY=":7") == (
        [str(tmp_path / "a b.html"), "Page"],
        [],
    )
    assert script("dict(path='c.html', open_browser=True)") == (["Page"], [(tmp_path / "c.html").as_uri()])


@needs_viewer
@pytest.mark.parametrize("kind", ["marey", "profile", "stats", "file", "recording", "path"])
def test_everything_that_is_a_profile_is_taken(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    profile = profile_of(3)
    profile.dump_stats("x.prof")
    marey.import_trace("x.prof", into="x.marey")
    own = marey.Profile()
    own.runcall(sum, range(10))
    given = {
        "marey": own,
        "profile": profile,
        "stats": pstats.Stats(profile),
        "file": Path("x.prof"),
        "recording": marey.load("x.marey"),
        "path": "x.marey",
    }[kind]
    page = marey.plot(given, path="page.html", open_browser=False)
    assert capsys.readouterr().out == f"{tmp_path / 'page.html'}\n"
    assert page.html == (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://(?!www\.w3\.org)[^\s\"']+\.(js|css)", page.html)


@needs_viewer
def test_a_difference_names_both(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = marey.plot(profile_of(3), profile_of(9), path="page.html", open_browser=False)
    assert "<title>calls of this profile against the other profile</title>" in page.html
    capsys.readouterr()


def test_what_is_no_profile_is_reported():
    with pytest.raises(TypeError, match=r"marey\.plot takes a profile, a recording or the path of one, not int"):
        marey.plot(3)
    with pytest.raises(marey.MareyError, match="cannot open no such file"):
        marey.plot("no such file.prof")


@needs_viewer
def test_a_file_that_cannot_be_written_is_reported(tmp_path):
    with pytest.raises(OSError, match="no such folder"):
        marey.plot(profile_of(1), path=tmp_path / "no such folder" / "page.html")
