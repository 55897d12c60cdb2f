"""marey report --html: the page has the same data as the other outputs."""

from __future__ import annotations

import csv
import json
import resource
from collections import Counter
from pathlib import Path

import pytest
from built import ROOT
from damage import damage_events
from page_decoder import HAS_VIEWER, Page, needs_viewer


@pytest.fixture
def page_of(marey, tmp_path):
    """Write the page of a recording and decode it."""

    def make(*recordings: object, **more: object) -> Page:
        done = marey("report", *recordings, "--html", "page.html", **more)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert "page.html" in done.stderr
        return Page(tmp_path / "page.html")

    return make


@pytest.fixture
def events_of(marey, tmp_path):
    """Return the events of a recording from the CSV export."""

    def read(recording: object) -> list[dict[str, str]]:
        assert marey("export", recording, "-o", "events.csv").returncode == 0
        with (tmp_path / "events.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    return read


@pytest.fixture
def busy(marey, emit, tmp_path) -> Path:
    """Enough events for several chunks, two threads, and all other kinds."""
    done = marey(
        "run",
        "--only",
        "ranges",
        "-q",
        "-o",
        "busy.marey",
        "--",
        emit,
        40000,
        "thread",
        "payload",
        "awkward",
        "recurse=300",
        "open",
    )
    assert done.returncode == 0
    return tmp_path / "busy.marey"


@needs_viewer
def test_every_range_is_in_the_page(page_of, events_of, busy):
    page = page_of(busy)
    rows = events_of(busy)
    origin = int(page.index["origin_ns"])
    expected = Counter(
        (row["name"], int(row["start_ns"]) - origin, int(row["duration_ns"]), int(row["depth"]))
        for row in rows
        if row["kind"] == "range" and row["duration_ns"] and int(row["depth"]) < 256
    )
    found = Counter(
        (page.name(track["process"], event.id), event.start, event.value, depth)
        for track in page.tracks("thread")
        for depth, row in enumerate(track["rows"])
        for event in page.row(row)
    )
    assert len(expected) > 80000
    assert found == expected


@needs_viewer
def test_what_nests_too_deep_is_counted(page_of, events_of, busy):
    deep = [row for row in events_of(busy) if row["kind"] == "range" and row["depth"] and int(row["depth"]) >= 256]
    assert sum(track.get("too_deep", 0) for track in page_of(busy).tracks("thread")) == len(deep) > 0


@needs_viewer
def test_marks_counters_and_async_ranges_are_in_the_page(page_of, events_of, busy):
    page = page_of(busy)
    rows = events_of(busy)
    origin = int(page.index["origin_ns"])

    def expected(kind: str, value: str) -> Counter:
        found = (row for row in rows if row["kind"] == kind)
        return Counter((row["name"], int(row["start_ns"]) - origin, float(row[value] or 0)) for row in found)

    def found(kind: str, of: str) -> Counter:
        return Counter(
            (page.name(track["process"], event.id), event.start, float(event.value))
            for track in page.tracks(kind)
            for row in ([track.get("marks", [0])] if of == "marks" else track[of])
            for event in page.row(row)
        )

    assert found("thread", "marks") == expected("mark", "duration_ns")
    assert found("counters", "rows") == expected("counter", "value")
    assert found("async", "rows") == expected("async", "duration_ns")


@needs_viewer
def test_payloads_are_with_their_events(page_of, events_of, recording):
    page = page_of(recording)
    rows = events_of(recording)
    origin = int(page.index["origin_ns"])
    (track,) = page.tracks("thread")
    found = {(page.name(0, site), start): value for (start, site), value in page.texts(track).items()}
    expected = {
        (row["name"], int(row["start_ns"]) - origin): row["value"]
        for row in rows
        if row["kind"] in ("range", "mark") and row["value"]
    }
    assert {key: str(value) for key, value in found.items()} == expected
    assert {type(value) for value in found.values()} == {int, str}


@needs_viewer
def test_work_of_streams_has_its_launch(page_of):
    trace = ROOT / "tests" / "data" / "kineto" / "sampled_rank-0.json.gz"
    page = page_of(trace)
    streams = page.tracks("gpu")
    works = [event for track in streams for row in track["rows"] for event in page.row(row)]
    launches = {event.value for track in page.tracks("thread") for event in page.row(track.get("links", [0]))}
    linked = [event for track in streams for event in page.row(track.get("links", [0]))]
    assert len(works) > 1000
    assert {(event.start, event.id) for event in linked} <= {(event.start, event.id) for event in works}
    assert sum(event.value in launches for event in linked) > 0.9 * len(linked) > 0
    copies = [text for track in streams for text in page.texts(track).values() if isinstance(text, dict)]
    assert any(text.get("kind") == "copy" and text["bytes"] > 0 for text in copies)


@needs_viewer
def test_a_range_that_never_ends_is_known_by_its_begin(page_of, events_of, recording):
    page = page_of(recording)
    rows = events_of(recording)
    origin = int(page.index["origin_ns"])
    never = [row for row in rows if row["kind"] == "range" and not row["duration_ns"]]
    found = [
        (page.name(track["process"], site), start, depth, lost)
        for track in page.tracks("thread")
        for depth, start, _, site, lost in track["unfinished"]
    ]
    assert found == [(row["name"], int(row["start_ns"]) - origin, int(row["depth"]), 0) for row in never]
    assert len(found) == 1


@needs_viewer
def test_tables_are_those_of_json(page_of, marey, busy):
    page = page_of(busy)
    report = json.loads(marey("report", busy, "--json", "--tree", "--threads", "--ranks").stdout)
    for name in ("ranges", "tree", "threads", "ranks", "processes", "async", "counters", "marks", "open"):
        assert page.table(name) == report[name], name
    assert [row["text"] for row in page.table("warnings")] == report["warnings"]
    cost, shown = report["cost"], page.index["cost"]
    shared = {"events", "low_ns", "high_ns", "flush_cpu_ns", "log_bytes", "program_ns", "lost_events"}
    assert shared <= set(shown) and {key: cost[key] for key in shared} == {key: shown[key] for key in shared}
    assert (shown["incomplete"], shown["missing"]) == (cost["incomplete_processes"], "") == (0, "")


@needs_viewer
def test_iterations_are_those_of_the_series(page_of, marey, compiled, tmp_path):
    marey("run", "--only", "ranges", "-q", "-o", "loop.marey", "--", compiled("iterate.c", "-pthread"), 30, 5, 0)
    page = page_of("loop.marey")
    series = csv.DictReader(marey("report", "loop.marey", "--per-iteration").stdout.splitlines())
    expected = Counter((row["name"], int(row["iteration"]), int(row["ns"]), int(row["warmup"])) for row in series)
    (track,) = page.tracks("series")
    found = Counter(
        (name, event.start, event.value, event.id & 1)
        for name, row in zip(track["labels"], track["rows"])
        for event in page.row(row)
    )
    assert found == expected
    (progress,) = page.tracks("progress")
    assert [len(page.row(row)) for row in progress["rows"]] == [30, 2, 2]
    assert [event.id for event in page.row(progress["rows"][0])] == list(range(30))
    report = json.loads(marey("report", "loop.marey", "--json").stdout)
    for name in ("iterations", "iteration_ranks", "throughput", "epochs", "phases", "outliers"):
        assert page.table(name) == report[name], name


@needs_viewer
def test_a_filter_holds_for_tables_and_timeline(marey, busy, tmp_path):
    assert marey("report", busy, "--filter", "inner*", "--html", "page.html").returncode == 0
    page = Page(tmp_path / "page.html")
    assert {name[0] for name in page.names["names"]} == {'inner "quoted"'}
    assert [row["name"] for row in page.table("ranges")] == ['inner "quoted"']


@needs_viewer
def test_calls_are_the_nodes_of_the_log(page_of):
    """The corpus's log of calls, whose bytes tests/fuzz/make_corpus.py says."""
    page = page_of(ROOT / "tests/fuzz/corpus/calls/tree.klog")
    (profile,) = page.index["calls"]
    nodes = page.call_nodes(0)
    assert profile["nodes"] == len(nodes) == 9  # the root, two profiles' eight
    assert nodes[0] == [0] * 10
    names = [function[0] for function in profile["functions"]]
    texts = [signature[1] for signature in profile["signatures"]]
    first = [i for i, node in enumerate(nodes) if names[node[1]] == "dot" and texts[node[2]].startswith("self:")]
    assert len(first) == 1
    parent, _function, _signature, thread, calls, resumes, self_ns, _total, _max, gpu = nodes[first[0]]
    assert (names[nodes[parent][1]], texts[nodes[parent][2]][:9]) == ("dot", "a:ndarray")
    assert (profile["threads"][thread], calls, resumes, self_ns, gpu) == ("MainThread", 6, 0, 10 * 10**6, 0)
    assert profile["other_paths"] == 5
    assert ["<built-in method builtins.len>", "len", "~", 0, "builtins", 1] in profile["functions"]


@needs_viewer
def test_several_recordings_share_one_axis(page_of, marey, emit):
    for name in ("a", "b"):
        marey("run", "--only", "ranges", "-q", "-o", f"{name}.marey", "--", emit, 3)
    page = page_of("a.marey", "b.marey")
    first, second = page.index["processes"]
    assert first["first_ns"] == 0
    assert second["first_ns"] >= first["last_ns"] > 0
    assert page.index["duration_ns"] == second["last_ns"]


@needs_viewer
def test_no_text_of_a_program_is_html(page_of, busy):
    page = page_of(busy)
    outside = page.html
    for name in page.blocks:
        outside = outside.replace(f'id="{name}"', "")
    assert "</text><script>" in json.dumps(page.names)  # one of emit.c's awkward names
    assert outside.count("<script") == len(page.blocks) + outside.count("<script>")


@needs_viewer
def test_a_page_is_made_without_events(page_of, tmp_path):
    (tmp_path / "none.marey").mkdir()
    (tmp_path / "none.marey" / "meta.json").write_text('{\n  "format": "marey recording"\n}\n')
    page = page_of("none.marey")
    assert (page.index["tracks"], page.index["duration_ns"]) == ([], 0)


@needs_viewer
def test_the_page_goes_to_standard_output(marey, recording):
    done = marey("report", recording, "--html", "-")
    assert done.returncode == 0
    assert done.stdout.startswith("<!doctype html>")


@needs_viewer
def test_a_full_disk_leaves_no_half_page(marey, busy, tmp_path):
    done = marey(
        "report", busy, "--html", "page.html",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000)),
    )  # fmt: skip
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("other", [["--json"], ["--csv"], ["--per-iteration"], ["-o", "x"]])
def test_html_excludes_the_other_outputs(marey, recording, other):
    done = marey("report", recording, "--html", "page.html", *other)
    assert (done.returncode, "--html" in done.stderr) == (2, True)


@pytest.mark.parametrize("other", [["--json"], ["--csv"], ["--markdown"], ["-o", "x"]])
def test_html_of_a_comparison_excludes_its_other_outputs(marey, recording, other, tmp_path):
    done = marey("compare", recording, recording, "--html", "page.html", *other)
    assert (done.returncode, "--html" in done.stderr) == (2, True)
    assert not (tmp_path / "page.html").exists()


@needs_viewer
def test_a_damaged_log_is_reported(marey, busy, tmp_path):
    damage_events(busy)
    done = marey("report", busy, "--html", "page.html")
    assert done.returncode == 2
    page = Page(tmp_path / "page.html")
    assert page.index["damaged"] is True
    assert any(page.row(track.get("losses", [0])) for track in page.tracks("thread"))


# ---- comparisons ----


@pytest.fixture
def compared(marey, compiled, tmp_path) -> Path:
    """Compare two recordings of two runs each, as a page."""
    loop = compiled("iterate.c", "-pthread")
    for name, slow in (("a", 0), ("b", 300)):
        assert (
            marey(
                "run", "--only", "ranges", "-q", "--repeat", 2, "-o", f"{name}.marey", "--", loop, 40, 5, slow
            ).returncode
            == 0
        )
    done = marey("compare", "a.marey", "b.marey", "--html", "compare.html")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return tmp_path / "compare.html"


@needs_viewer
def test_a_comparison_has_the_tables_of_json(marey, compared):
    page = Page(compared)
    report = json.loads(marey("compare", "a.marey", "b.marey", "--json").stdout)
    assert page.index["kind"] == "compare"
    assert page.index["summary"] == report["summary"]
    for name in ("ranges", "only", "runs"):
        assert page.table(name) == report[name], name
    assert page.table("iteration") == [report["iteration"]]
    assert [row["text"] for row in page.table("warnings")] == report["warnings"]


@needs_viewer
def test_a_comparison_has_quantiles_of_each_run(marey, compared):
    rows = Page(compared).table("quantiles")
    assert {(row["side"], row["run"]) for row in rows} == {("A", 0), ("A", 1), ("B", 0), ("B", 1)}
    for row in rows:
        times = [row[f"q{i}"] for i in range(33)]
        assert times == sorted(times)
        assert times[0] > 0 or row["name"] == "log"
    report = json.loads(marey("compare", "a.marey", "b.marey", "--json").stdout)
    medians = sorted(row["q16"] for row in rows if row["name"] == "(iteration)" and row["side"] == "A")
    assert medians[0] * 0.9 <= report["iteration"]["a_ns"] <= medians[-1] * 1.1


# ---- builds without Node.js ----


@pytest.mark.skipif(HAS_VIEWER, reason="this build can write pages")
@pytest.mark.parametrize("words", [["report", "run.marey"], ["compare", "run.marey", "run.marey"]])
def test_without_node_one_sentence_says_how_to_get_pages(marey, emit, tmp_path, words):
    marey("run", "--only", "ranges", "-q", "-o", "run.marey", "--", emit, 5)
    done = marey(*words, "--html", "page.html")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "marey: page.html: this build of marey cannot write HTML pages: Node.js was missing when it was built. "
        "Install a wheel of marey, or install nodejs and npm and build again\n"
    )
    assert not (tmp_path / "page.html").exists()


@needs_viewer
def test_joules_are_tables_of_the_page(page_of, marey, compiled):
    assert marey("run", "--only", "ranges", "-q", "-o", "loop.marey", "--", compiled("joules.c"), 100).returncode == 0
    tables = {table["name"]: table for table in page_of("loop.marey").index["tables"]}
    assert {"energy of runs", "energy of epochs", "energy of ranges", "epochs", "ranges"} <= set(tables)
    want = json.loads(marey("report", "loop.marey", "--energy", "--json").stdout)["epochs"]
    assert tables["energy of epochs"]["rows"] == len(want)
