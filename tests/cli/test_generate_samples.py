"""itwinai's commands for what py-spy wrote: `marey generate-py-spy-report` and `marey generate-flamegraph`."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import resource
import stat
import xml.etree.ElementTree

import pytest

# What itwinai 0.4.2 makes of each of these is in its parser: it takes the first, second and the last three alone.
FRAMES = {
    "plain": ("main (a/b.py:3);f (c.py:10) 5", ("f", "c.py", "10")),
    "process": ('process 12:"python x.py";main (a.py:3) 5', ("main", "a.py", "3")),
    "spawned": ('process 12:"python -c a;b";main (a.py:3) 5', ("main", "a.py", "3")),
    "thread": ("thread (0x7F): MainThread;main (a.py:3) 5", ("main", "a.py", "3")),
    "no line": ("main (a.py) 5", ("main", "a.py", "")),
    "native": ("main (a.py:1);f (libx.so) 5", ("f", "libx.so", "")),
    "blank": ("my frame (a.py:3) 5", ("my frame", "a.py", "3")),
    "parentheses": ("f (/home/me (old)/a.py:3) 5", ("f", "/home/me (old)/a.py", "3")),
    "windows": ("f (C:\\work\\a.py:3) 5", ("f", "C:\\work\\a.py", "3")),
    "empty line": ("\nmain (a.py:3) 5\n", ("main", "a.py", "3")),
    "no file": ("main 5", ("main", "", "")),
    "module": ("<module> (train.py:1) 5", ("<module>", "train.py", "1")),
    "frozen": (
        "<module> (t.py:1);_load (<frozen importlib._bootstrap>:1027) 5",
        ("_load", "<frozen importlib._bootstrap>", "1027"),
    ),
    "lambda": ("<lambda> (a.py:1) 5", ("<lambda>", "a.py", "1")),
    "string": ("f (<string>:1) 5", ("f", "<string>", "1")),
    "operator": ("operator() (x.cpp:3) 5", ("operator()", "x.cpp", "3")),
}

COLUMNS = [
    "name",
    "path",
    "line",
    "library_function_name",
    "library_function_path",
    "library_function_line",
    "proportion (n)",
]

RUN = """\
main (train.py:5);fit (/opt/itwinai/src/itwinai/torch/trainer.py:9);dot (/opt/torch/nn.py:8) 30
main (train.py:7);fit (/opt/itwinai/src/itwinai/torch/trainer.py:9);dot (/opt/torch/nn.py:8) 20
main (train.py:5);fit (/opt/itwinai/src/itwinai/torch/trainer.py:12) 10
<module> (train.py:1) 25
main (train.py:5);load (/home/itwinaiuser/data.py:3);load (/home/itwinaiuser/data.py:4) 15
"""


def rows_of(text):
    """The cells of a table between bars."""
    head, line, *rows = text.splitlines()
    assert set(line) == {"-", "+"}
    return [dict(zip(cells(head), cells(row))) for row in rows]


def cells(line):
    return [cell.strip() for cell in line.split("|")]


@pytest.fixture
def generate(marey, tmp_path):
    def run(text, *options, status=0):
        (tmp_path / "train.raw").write_text(text)
        done = marey("generate-py-spy-report", "--file", "train.raw", *options)
        assert done.returncode == status, done.stderr
        return done

    return run


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_is_taken(generate, kind):
    text, (name, path, line) = FRAMES[kind]
    (row,) = rows_of(generate(text + "\n").stdout)
    assert list(row) == COLUMNS
    assert (row["name"], row["path"], row["line"], row["proportion (n)"]) == (name, path, line, "100.00% (5)")


def test_no_sample_is_lost(generate):
    texts = [re.sub(r" 5$", f" {7 * i + 1}", text.strip()) for i, (text, _) in enumerate(FRAMES.values())]
    whole = sum(7 * i + 1 for i in range(len(texts)))
    text = "\n".join(texts) + "\n"
    for options in ([], ["--aggregate-leaf-paths"]):
        rows = rows_of(generate(text, "--num-rows", "all", *options).stdout)
        assert sum(int(re.search(r"\((\d+)\)", row["proportion (n)"])[1]) for row in rows) == whole
    tables = json.loads(generate(text, "--json").stdout)
    assert tables["totals"][0]["samples"] == whole
    for name in ("functions", "lines", "files", "modules", "processes", "threads", "stacks", "leaves", "leaf_paths"):
        assert sum(row["samples"] for row in tables[name]) == whole, name


def test_stacks_or_leaves_with_the_nearest_frame_of_the_library(generate):
    rows = rows_of(generate(RUN).stdout)
    assert [row["proportion (n)"] for row in rows] == [
        "30.00% (30)",
        "25.00% (25)",
        "20.00% (20)",
        "15.00% (15)",
        "10.00% (10)",
    ]
    first = rows[0]
    assert (first["name"], first["library_function_name"], first["library_function_line"]) == ("dot", "fit", "9")
    assert first["library_function_path"] == "/opt/itwinai/src/itwinai/torch/trainer.py"
    # A folder whose name only begins like the library is none of it.
    assert rows[3]["library_function_name"] == rows[3]["library_function_path"] == "Not Found"
    merged = rows_of(generate(RUN, "--aggregate-leaf-paths").stdout)
    assert [row["proportion (n)"] for row in merged] == ["50.00% (50)", "25.00% (25)", "15.00% (15)", "10.00% (10)"]
    assert rows == rows_of(generate(RUN, "--no-aggregate-leaf-paths").stdout)
    torch = rows_of(generate(RUN, "--library-name", "torch", "--aggregate-leaf-paths").stdout)
    assert torch[0]["library_function_name"] == "dot"


def test_rows(generate):
    assert len(rows_of(generate(RUN, "--num-rows", "2").stdout)) == 2
    many = "".join(f"main (a.py:{i}) {i}\n" for i in range(1, 31))
    assert len(rows_of(generate(many).stdout)) == 10
    assert len(rows_of(generate(many, "--num-rows", "all").stdout)) == 30
    for wrong in ("0", "-1", "some", "2.5", ""):
        done = generate(many, "--num-rows", wrong, status=2)
        assert done.stdout == "" and f"not '{wrong}'" in done.stderr


def test_self_and_inclusive_by_anything(generate):
    def by(what):
        table = csv.DictReader(io.StringIO(generate(RUN, "--by", what, "--csv", "--num-rows", "all").stdout))
        return {row[what] if what in row else row["function"]: row for row in table}

    functions = by("function")
    assert (functions["dot"]["samples"], functions["dot"]["total_ns"]) == ("50", "500000000")
    assert (functions["fit"]["samples"], functions["fit"]["total_ns"]) == ("10", "600000000")
    # Recursion counts once.
    assert (functions["load"]["samples"], functions["load"]["total_ns"]) == ("15", "150000000")
    assert by("file")["train.py"]["total_ns"] == "1000000000"
    assert by("module")["train"]["samples"] == "25"
    assert "50.0 %" in generate(RUN, "--by", "function").stdout


def test_processes_and_threads_are_distinguished(generate):
    text = (
        'process 7:"python train.py";thread (0x1F): MainThread;main (a.py:1) 30\n'
        'process 7:"python train.py";thread (0x2F): loader;main (a.py:1) 10\n'
        'process 7:"python train.py";process 8:"python -c import x; x(""a"")";thread (0x1F);main (a.py:1) 60\n'
    )
    done = generate(text)
    assert "samples of 2 processes are added up; --by process separates them" in done.stderr
    assert rows_of(done.stdout)[0]["proportion (n)"] == "100.00% (100)"
    tables = json.loads(generate(text, "--json").stdout)
    assert {(row["pid"], row["samples"]) for row in tables["processes"]} == {(7, 40), (8, 60)}
    assert sorted((row["thread"], row["samples"]) for row in tables["threads"])[-2:] == [
        ("MainThread", 30),
        ("loader", 10),
    ]


def test_as_many_samples_as_a_large_job_has(generate):
    text = "main (a.py:1);f (a.py:2) 300000000\nmain (a.py:1) 100000000\n"
    rows = rows_of(generate(text).stdout)
    assert [row["proportion (n)"] for row in rows] == ["75.00% (300000000)", "25.00% (100000000)"]


def test_a_folder_is_read_whole_and_no_deeper(marey, tmp_path):
    folder = tmp_path / "py-spy-output"
    (folder / "deeper").mkdir(parents=True)
    for node in range(3):
        (folder / f"torch-ddp_profile_{node}.txt").write_text(f'process 9:"python";main (a.py:3) {node + 1}\n')
    (folder / "deeper" / "more.txt").write_text("main (a.py:3) 100\n")
    (folder / "empty.txt").write_text("")
    done = marey("generate-py-spy-report", "--file", folder)
    assert done.returncode == 0, done.stderr
    assert rows_of(done.stdout)[0]["proportion (n)"] == "100.00% (6)"


def test_lines_that_are_no_stacks_are_reported(generate):
    done = generate("main (a.py:3) 5\nmain (b.py:4) 6\nmain (b.py:5) 7\nmain (b.py:6) 7\nno stack at all\n")
    assert "left out 1 of 5 lines that are not stacks; the first is line 5: no stack at all" in done.stderr
    assert rows_of(done.stdout)[0]["proportion (n)"] == "28.00% (7)"


@pytest.mark.parametrize("command", ["generate-py-spy-report", "generate-flamegraph"])
def test_wrong_usage_is_one_sentence(marey, tmp_path, command):
    (tmp_path / "notes.bin").write_bytes(b"\x00\x01\x02 no stacks")
    (tmp_path / "empty.raw").write_text("")
    (tmp_path / "folder").mkdir()
    for arguments in ([], ["--file", "missing.raw"], ["--file", "notes.bin"], ["--file", "empty.raw"]):
        done = marey(command, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert done.stderr.startswith("marey: ") and len(done.stderr.splitlines()) == 1
    assert marey(command, "--file", "folder").returncode == 2
    assert marey(command, "train.raw").returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.raw", "folder", "notes.bin"]


# ---- the flame graph ----


def boxes(path):
    return {element.text for element in xml.etree.ElementTree.parse(path).iter() if element.tag.endswith("title")}


def test_the_flame_graph_needs_no_perl(marey, tmp_path):
    (tmp_path / "train.raw").write_text(RUN)
    done = marey("generate-flamegraph", "--file", "train.raw", env={"PATH": "/nowhere"})
    assert done.returncode == 0, done.stderr
    found = boxes(tmp_path / "flamegraph.svg")
    for name in ("main", "fit", "dot", "load", "<module>"):
        assert any(name in text for text in found), name
    assert marey("generate-flamegraph", "--file", "train.raw", "--output-filename", "-").stdout.startswith("<?xml")


def test_an_old_picture_stays_until_the_new_one_is_whole(marey, tmp_path):
    picture = tmp_path / "picture.svg"
    picture.write_text("old")
    (tmp_path / "bad.raw").write_text("no stacks here\n")
    (tmp_path / "train.raw").write_text(RUN)

    def too_large():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))  # of which reading takes less, and the picture more

    options = ["--output-filename", "picture.svg"]
    assert marey("generate-flamegraph", "--file", "bad.raw", *options).returncode == 2
    done = marey("generate-flamegraph", "--file", "train.raw", *options, preexec_fn=too_large)
    assert done.returncode == 2 and done.stderr.startswith("marey: picture.svg: "), done.stderr
    assert picture.read_text() == "old"
    picture.chmod(0o640)
    os.symlink("picture.svg", tmp_path / "link.svg")
    assert marey("generate-flamegraph", "--file", "train.raw", "--output-filename", "link.svg").returncode == 0
    assert (tmp_path / "link.svg").is_symlink() and stat.S_IMODE(picture.stat().st_mode) == 0o640
    assert any("dot" in text for text in boxes(picture))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.raw", "link.svg", "picture.svg", "train.raw"]


def test_what_is_read_is_not_overwritten(marey, tmp_path):
    (tmp_path / "train.raw").write_text(RUN)
    done = marey("generate-flamegraph", "--file", "train.raw", "--output-filename", "./train.raw")
    assert done.returncode == 2 and (tmp_path / "train.raw").read_text() == RUN
