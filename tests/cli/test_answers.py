"""kymo answers: a line for each question, and one page with all that is behind them."""

from __future__ import annotations

import html
import json
import re

import pytest


@pytest.fixture
def both(kymo, compiled):
    """Two recordings of a loop with iterations, and a text of one's own."""
    loop = compiled("iterate.c")
    for name in ("a.kymo", "b.kymo"):
        assert kymo("run", "-q", "-o", name, "--", loop, 20, 2, 100).returncode == 0


def answers(done) -> dict[str, dict[str, str]]:
    assert done.returncode == 0, done.stderr
    return {row["question"]: row for row in json.loads(done.stdout)}


def test_a_recording_is_asked_all_that_it_has_something_for(kymo, both):
    found = answers(kymo("answers", "a.kymo", "--json"))
    assert found["Where does the time go?"]["command"] == "kymo report a.kymo"
    assert found["How long does an iteration take?"]["answer"].startswith("an iteration takes ")
    assert "How much energy does it take?" not in found
    assert "Is the GPU slow, or launching on it?" not in found


def test_each_answer_is_a_line_with_its_question_before_it(kymo, both):
    lines = kymo("answers", "a.kymo").stdout.splitlines()
    found = answers(kymo("answers", "a.kymo", "--json"))
    assert len(lines) == len(found)
    for line, row in zip(lines, found.values()):
        assert line.split("  ")[0] == row["question"]
        assert line.endswith(row["answer"])


def test_details_are_what_the_command_prints(kymo, both):
    row = answers(kymo("answers", "--iterations", "a.kymo", "--json"))["How long does an iteration take?"]
    printed = kymo(*row["command"].split()[1:]).stdout
    for line in row["details"].splitlines()[:4]:
        assert line in printed


def test_a_question_that_is_asked_by_name_gets_an_answer_or_a_reason(kymo, both):
    found = answers(kymo("answers", "--energy", "a.kymo", "--samples", "a.kymo", "--json"))
    assert "kymo run --energy" in found["How much energy does it take?"]["answer"]
    assert "--sample" in found["What is the program doing?"]["answer"]


def test_sides_are_compared_and_texts_of_ones_own_stand_beside(kymo, both, tmp_path):
    (tmp_path / "own.txt").write_text("all 12 pass\nin 3 s\n")
    found = answers(kymo("answers", "--compare", "a.kymo,b.kymo", "--text", "Does it work?=own.txt", "--json"))
    assert found["Does it work?"]["answer"] == "all 12 pass"
    assert found["Does it work?"]["details"] == "all 12 pass\nin 3 s\n"
    compared = found["Is it faster than before?"]
    assert compared["command"] == "kymo compare a.kymo b.kymo"
    assert compared["details"].splitlines()[0] == compared["answer"]
    assert "(iteration)" in compared["details"]


def test_the_page_stands_alone_and_has_every_answer(kymo, both, tmp_path):
    done = kymo("answers", "a.kymo", "--title", "A <title>", "--link", "more=b&c.html", "--html", "page.html", "--json")
    page = (tmp_path / "page.html").read_text()
    for number, row in enumerate(answers(done).values(), 1):
        assert f'<a href="#a{number}">{html.escape(row["question"])}</a>' in page
        assert f'<section id="a{number}">' in page
        assert html.escape(row["details"].splitlines()[0], quote=False) in html.unescape(page) or row["details"] == ""
    assert "<h1>A &lt;title&gt;</h1>" in page
    assert '<a href="b&amp;c.html">more</a>' in page
    assert "default-src 'none'" in page
    assert re.findall(r"<script|https?://|<img|<link", page) == []


def test_runs_with_other_numbers_of_workers_say_whether_it_scales(kymo, tmp_path):
    for workers, seconds in ((1, 8.0), (2, 4.4)):
        lines = [f"{workers},{seconds + 0.01 * i}" for i in range(4)]
        (tmp_path / f"{workers}.csv").write_text("\n".join(["workers,epoch_time_s", *lines, ""]))
    row = answers(kymo("answers", "--scale", "1.csv", "--scale", "2.csv", "--json"))["Does it scale?"]
    assert row["command"] == "kymo scale 1.csv 2.csv"
    assert row["details"].splitlines()[0] == row["answer"]
    assert "workers" in row["details"]


@pytest.mark.parametrize(
    "arguments, says",
    [
        ([], "answers needs a recording or a question"),
        (["nothing.kymo"], "nothing.kymo"),
        (["--compare", "a.kymo"], "--compare takes two things with a ',' between, not 'a.kymo'"),
        (["--text", "question="], "--text takes two things with a '=' between"),
        (["--text", "Why?=nowhere.txt"], "cannot read nowhere.txt"),
        (["--diff", "new,old"], "new"),
        (["--scale", "nowhere.kymo"], "nowhere.kymo"),
        (["--html", "/nowhere/page.html", "a.kymo"], "/nowhere/page.html"),
    ],
)
def test_mistakes_are_sentences(kymo, both, arguments, says):
    done = kymo("answers", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
