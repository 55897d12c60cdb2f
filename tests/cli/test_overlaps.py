"""Imported ranges of one thread that overlap without nesting: each nanosecond is self time of one range."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from built import Finished, needs_sqlite
from page_decoder import Page, needs_viewer

Span = tuple[str, int, int]  # name, start and end in nanoseconds
MS = 1_000_000
ROUNDING = 1000


def write(path: Path, spans: list[Span]) -> Path:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start / 1000, "dur": (end - start) / 1000}
        for name, start, end in spans
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def self_times(spans: list[Span]) -> dict[str, int]:
    """Brute force: time belongs to the open range that ends first; for ties, to the one that began last."""
    times = dict.fromkeys((name for name, _, _ in spans), 0)
    edges = sorted({edge for _, start, end in spans for edge in (start, end)})
    for at, until in zip(edges, edges[1:], strict=False):
        running = [span for span in spans if span[1] <= at and span[2] >= until]
        if running:
            first_end = min(end for _, _, end in running)
            owner = max((span for span in running if span[2] <= first_end + ROUNDING), key=lambda span: span[1])
            times[owner[0]] += until - at
    return times


def covered(spans: list[Span]) -> int:
    total = done = 0
    for _, start, end in sorted(spans, key=lambda span: span[1]):
        total += max(0, end - max(start, done))
        done = max(done, end)
    return total


def ms(*spans: tuple[str, float, float]) -> list[Span]:
    return [(name, round(start * MS), round(end * MS)) for name, start, end in spans]


SHAPES = {
    "the first ends inside the second": ms(("A", 0, 10), ("B", 5, 15)),
    "three in a chain": ms(("A", 0, 10), ("B", 5, 15), ("C", 12, 20)),
    "three at a time": ms(("A", 0, 10), ("B", 5, 15), ("C", 8, 20)),
    "below one parent": ms(("P", 0, 20), ("A", 2, 10), ("B", 5, 15)),
    "below two parents": ms(("O", 0, 30), ("P", 1, 20), ("A", 2, 10), ("B", 5, 15), ("C", 12, 18), ("D", 19, 25)),
    "a child of the second on the first lane": ms(("A", 0, 10), ("B", 5, 15), ("b", 11, 13)),
    "children of both": ms(("A", 0, 10), ("a", 1, 6), ("B", 5, 15), ("b", 7, 12), ("c", 13, 14)),
    "a child that outlasts its parent by rounding": ms(("P", 0, 10), ("C", 2, 10.001), ("c", 3, 9)),
    "the second lasts past a third": ms(("A", 0, 10), ("B", 5, 15), ("D", 12, 30)),
    "a gap between": ms(("A", 0, 10), ("B", 5, 15), ("C", 40, 50), ("D", 45, 60)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_self_times_add_up_to_the_covered_time(shape: str, marey: Callable[..., Finished], tmp_path: Path) -> None:
    check(SHAPES[shape], marey, tmp_path)


def test_the_second_of_two_has_what_the_first_does_not_cover(marey: Callable[..., Finished], tmp_path: Path) -> None:
    trace = write(tmp_path / "trace.json", SHAPES["the first ends inside the second"])
    rows = json.loads(marey("report", trace, "--json").stdout)["ranges"]
    assert {row["name"]: (row["total_ns"], row["self_ns"]) for row in rows} == {
        "A": (10 * MS, 10 * MS),
        "B": (10 * MS, 5 * MS),
    }


@pytest.mark.parametrize("seed", range(6))
def test_self_times_of_any_overlap(seed: int, marey: Callable[..., Finished], tmp_path: Path) -> None:
    """Starts differ; up to 30 ranges run at a time, more than the importer keeps on lanes that nest."""
    choice = random.Random(seed)
    starts = choice.sample(range(0, 3000, 3), 120)
    longest = (100, 600, 900)[seed % 3]
    spans = [(f"r{i}", 10_000 * at, 10_000 * (at + choice.randint(1, longest))) for i, at in enumerate(starts)]
    check(spans, marey, tmp_path)


@pytest.mark.parametrize("seed", range(6))
def test_begins_and_ends_that_come_apart_count_once_too(
    seed: int, marey: Callable[..., Finished], tmp_path: Path
) -> None:
    """Whole ranges, and begins and ends in any order, of a few names."""
    choice = random.Random(seed)
    events, spans, begun, at = [], [], [], 0

    def put(phase: str, name: str, **more: int) -> None:
        events.append({"ph": phase, "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, **more})

    for _ in range(100):
        at += choice.randint(0, 20) * 100
        what = choice.choice("XXBE")
        if what == "X":
            lasts = choice.randint(0, 400) * 100
            put("X", choice.choice("abc"), dur=lasts)
            spans.append(("x", 1000 * at, 1000 * (at + lasts)))
        elif what == "B":
            begun.append((choice.choice("ABC"), at))
            put("B", begun[-1][0])
        elif begun:
            name, start = begun.pop(choice.randrange(len(begun)))
            put("E", name)
            spans.append((name, 1000 * start, 1000 * at))
    at += 1
    for name, start in begun:
        put("E", name)
        spans.append((name, 1000 * start, 1000 * at))
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    rows = json.loads(marey("report", "trace.json", "--json").stdout)["ranges"]
    assert sum(row["self_ns"] for row in rows) == covered(spans)


def check(spans: list[Span], marey: Callable[..., Finished], tmp_path: Path) -> None:
    expected = self_times(spans)
    assert sum(expected.values()) == covered(spans)
    trace = write(tmp_path / "trace.json", spans)

    report = json.loads(marey("report", trace, "--tree", "--threads", "--json").stdout)
    assert {row["name"]: row["self_ns"] for row in report["ranges"]} == expected
    assert {row["name"]: row["total_ns"] for row in report["ranges"]} == {n: end - start for n, start, end in spans}
    assert {row["name"]: row["self_ns"] for row in report["threads"]} == expected
    assert {row["name"]: row["self_ns"] for row in report["tree"]} == expected
    assert sum(row["total_ns"] for row in report["tree"] if row["depth"] == 0) == covered(spans)

    stacks = Counter[str]()
    for line in marey("export", trace, "--to", "collapsed", "-o", "-").stdout.splitlines():
        path, ns = line.rsplit(" ", 1)
        stacks[path.rsplit(";", 1)[-1]] += int(ns)
    assert stacks == {name: ns for name, ns in expected.items() if ns}

    functions = json.loads(marey("report", trace, "--calls", "--json").stdout)["functions"]
    assert {row["function"]: row["self_ns"] for row in functions} == expected


def test_ranges_that_overlap_are_below_the_range_around_them(marey: Callable[..., Finished], tmp_path: Path) -> None:
    trace = write(tmp_path / "trace.json", SHAPES["below two parents"])
    tree = json.loads(marey("report", trace, "--tree", "--json").stdout)["tree"]
    assert [(row["depth"], row["name"], row["total_ns"] / MS) for row in tree] == [
        (0, "O", 30),
        (1, "P", 19),
        (2, "A", 8),
        (2, "B", 5),
        (2, "C", 3),
        (1, "D", 5),
    ]


@needs_sqlite
@pytest.mark.parametrize("shape", SHAPES)
def test_self_times_in_a_database(shape: str, marey: Callable[..., Finished], tmp_path: Path) -> None:
    trace = write(tmp_path / "trace.json", SHAPES[shape])
    assert marey("export", trace, "--to", "sqlite", "-o", "x.db").returncode == 0
    with sqlite3.connect(tmp_path / "x.db") as db:
        rows = db.execute("SELECT site.name, self_ns FROM range JOIN site ON site.id = range.site").fetchall()
    assert dict(rows) == self_times(SHAPES[shape])


@needs_viewer
def test_the_flame_graph_of_the_page_is_as_wide_as_the_covered_time(
    marey: Callable[..., Finished], tmp_path: Path
) -> None:
    spans = SHAPES["three at a time"]
    assert marey("report", write(tmp_path / "trace.json", spans), "--html", "page.html").returncode == 0
    boxes = Page(tmp_path / "page.html").table("tree")
    assert sum(row["total_ns"] for row in boxes if row["depth"] == 0) == covered(spans)


def test_ranges_of_one_name_keep_their_durations(marey: Callable[..., Finished], tmp_path: Path) -> None:
    trace = write(tmp_path / "trace.json", ms(("A", 0, 10), ("A", 5, 15)))
    (row,) = json.loads(marey("report", trace, "--json").stdout)["ranges"]
    assert (row["count"], row["total_ns"], row["self_ns"]) == (2, 20 * MS, 15 * MS)
    assert (row["min_ns"], row["max_ns"]) == (10 * MS, 10 * MS)
