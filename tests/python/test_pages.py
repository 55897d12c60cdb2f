"""Pages from Python, and what notebooks are shown."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib

import pytest
from optional_parts import needs_viewer

import marey

AWKWARD = "</script><img src=x onerror=alert(1)>"
BLOCKS = re.compile(r'<script type="application/octet-stream" id="[^"]*">[^<]*</script>\s*')


@pytest.fixture
def path(record):
    with record() as path:
        for _ in range(3):
            with marey.range("step"), marey.range(AWKWARD):
                pass
    return path


@needs_viewer
def test_a_page_is_a_file(path, tmp_path):
    marey.load(path).to_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")
    assert AWKWARD not in text


@needs_viewer
def test_a_page_has_the_title_it_is_given(path):
    page = marey.load(path).page(title="a < b")
    assert "<title>a &lt; b</title>" in page.html


@needs_viewer
def test_a_page_saves_what_to_html_writes(path, tmp_path):
    recording = marey.load(path)
    page = recording.page()
    page.save(tmp_path / "a.html")
    recording.to_html(tmp_path / "b.html")
    saved, written = ((tmp_path / name).read_text(encoding="utf-8") for name in ("a.html", "b.html"))
    assert saved == page.html
    # Threads pack the events: which lie in which block differs from page to page.
    assert BLOCKS.sub("", saved) == BLOCKS.sub("", written)
    assert index_of(saved)["tables"] == index_of(written)["tables"]


@needs_viewer
def test_a_page_shows_itself_in_a_frame_of_its_own(path):
    page = marey.load(path).page()
    shown = page._repr_html_()
    (source,) = re.findall(r'srcdoc="([^"]*)"', shown)
    assert html.unescape(source) == page.html
    assert 'sandbox="allow-scripts"' in shown
    assert repr(page).startswith("<marey page")


def index_of(text: str) -> dict:
    """Return the index of a page."""
    (packed,) = re.findall(r'id="index">([^<]*)</script>', text)
    return json.loads(zlib.decompress(base64.b64decode(packed), -15))


def n_events(index: dict, kind: str = "thread") -> int:
    rows = [row for track in index["tracks"] if track["kind"] == kind for row in track["rows"]]
    return sum(chunk[2] for row in rows for chunk in row[1:])


@needs_viewer
def test_more_ranges_than_a_page_takes_are_drawn_together(record):
    with record() as path:
        for _ in range(200):
            with marey.range("outer"):
                for _ in range(500):
                    with marey.range("inner"):
                        pass
    recording = marey.load(path)
    whole, part = index_of(recording.page().html), index_of(recording.page(max_ranges=10_000).html)
    assert n_events(whole) == 100_200
    assert "merged" not in whole["processes"][0]
    assert 1000 < n_events(part) < 50_000
    assert part["processes"][0]["merged"] > 50_000
    assert part["tables"] == whole["tables"]


@needs_viewer
def test_more_work_than_a_page_takes_is_drawn_together(tmp_path):
    n = 40_000
    work = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7}
    events = [
        {**work, "name": "short", "ts": 10 * i, "dur": 2, "args": {"device": 0, "stream": 7, "correlation": i + 1}}
        for i in range(n)
    ]
    events += [
        {**work, "name": "long", "ts": 10 * n + i * 1e6, "dur": 9e5, "args": events[0]["args"]} for i in range(5)
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    recording = marey.load(tmp_path / "trace.json")
    whole, part = index_of(recording.page().html), index_of(recording.page(max_ranges=2000).html)
    assert n_events(whole, "gpu") == n + 5
    assert 1000 < n_events(part, "gpu") < n / 2
    assert part["processes"][0]["merged"] > n / 2
    (track,) = (track for track in part["tracks"] if track["kind"] == "gpu")
    assert len(track["rows"]) == 1  # nothing overlaps
    assert part["tables"] == whole["tables"]


@needs_viewer
def test_a_filter_holds_for_the_page(path):
    assert len(marey.load(path, filter="nothing has this").page().html) < len(marey.load(path).page().html)


def test_a_recording_shows_what_took_the_time(path):
    shown = marey.load(path)._repr_html_()
    assert "<td>step</td>" in shown
    assert html.escape(AWKWARD) in shown
    assert AWKWARD not in shown


def test_a_long_table_shows_its_first_rows(record):
    with record() as path:
        for i in range(150):
            with marey.range(f"name {i}"):
                pass
    shown = marey.load(path).ranges._repr_html_()
    assert shown.count("<tr>") == 101
    assert "50 more rows" in shown


@needs_viewer
def test_a_comparison_has_a_page(path, tmp_path):
    comparison = marey.compare(path, path)
    comparison.to_html(tmp_path / "compare.html", title="against itself")
    text = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert "<title>against itself</title>" in text
    assert comparison.page(title="against itself").html == text


@needs_viewer
def test_a_page_that_cannot_be_written_leaves_nothing(path, tmp_path):
    with pytest.raises(OSError):
        marey.load(path).to_html(tmp_path / "no" / "such" / "folder.html")
    with pytest.raises(marey.MareyError):
        marey.load(path).to_html("/dev/full")
