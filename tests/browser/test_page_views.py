"""A report page in Chromium: every view, its tables, themes, a narrow window, paper, and the page of a comparison."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import page_traces
import perfetto_page
import pytest
from marey_command import run_marey
from page_in_browser import PageInBrowser, has_viewer, make_page
from page_traces import HOSTILE

pytestmark = pytest.mark.skipif(
    bool(perfetto_page.what_is_missing(needs_ui=False)), reason=perfetto_page.what_is_missing(needs_ui=False)
)
KINETO = Path(__file__).parent.parent / "data" / "kineto"
LOOP = """
import sys, time, marey
def spend(us):
    end = time.perf_counter_ns() + us * 1000
    while time.perf_counter_ns() < end: pass
for i in marey.iterations(range(40)):
    with marey.range("forward"): spend(int(sys.argv[1]))
    with marey.range("backward"): spend(200)
"""
LEAK = """
import time, marey
kept = []
def keep():
    kept.append(bytearray(1_000_000))
for i in marey.iterations(range(30)):
    keep()
    time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("views")
    make_page(path / "known.html", page_traces.known(path / "known.json"))
    if not has_viewer(path / "known.html"):
        pytest.skip("this build has no viewer: Node is missing")
    (path / "loop.py").write_text(LOOP)
    for name, us in (("a", 100), ("b", 300)):
        run_marey(
            "run", "--only", "ranges", "-q", "-o", path / f"{name}.marey", "--", sys.executable, path / "loop.py", us
        )
    make_page(path / "loop.html", path / "a.marey")
    run_marey("compare", path / "a.marey", path / "b.marey", "--html", path / "compare.html")
    ranks = [KINETO / f"sampled_rank-{rank}.json.gz" for rank in (0, 1)]
    make_page(path / "ranks.html", *ranks)
    (path / "leak.py").write_text(LEAK)
    words = ("--memory", "--memory-sample", "1KiB", "-o", path / "leak.marey", "--", sys.executable, path / "leak.py")
    run_marey("run", "--only", "ranges", "-q", *words)
    make_page(path / "leak.html", path / "leak.marey")
    run_marey("run", "-q", "--sample", "-o", path / "c.marey", "--", sys.executable, path / "loop.py", 5000)
    make_page(path / "sampled.html", path / "c.marey")
    make_page(path / "waits.html", page_traces.waits_in_no_range(path / "waits.json"))
    return path


def json_of(*words: object) -> dict[str, Any]:
    return dict(json.loads(run_marey(*words, "--json")))


def paper(page: PageInBrowser) -> tuple[int, ...]:
    """The background color."""
    css = page.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    return tuple(map(int, css[css.index("(") + 1 : -1].split(",")[:3]))


def cells(table: Any) -> list[list[str]]:
    return list(
        table.evaluate("(table) => [...table.tBodies[0].rows].map((row) => [...row.cells].map((c) => c.textContent))")
    )


def column(table: Any, title: str) -> list[str]:
    titles = [str(text).rstrip(" \u25bc\u25b2") for text in table.locator("thead button").all_text_contents()]
    return [row[titles.index(title)] for row in cells(table)]


# ---- views ----


@pytest.mark.parametrize("name", ["loop.html", "ranks.html", "compare.html"])
def test_every_view_opens_in_light_and_dark(opened, name):
    page = opened(name)
    papers = set()
    for theme in ("light", "dark"):
        page.page.get_by_role("combobox", name="Colours").select_option(theme)
        for title in page.titles():
            view = page.open(title)
            assert view.inner_text().strip() != ""
            page.screenshot(f"{name.removesuffix('.html')}-{title.lower().replace(' ', '-')}-{theme}")
        papers.add(paper(page))
    assert len(papers) == 2
    assert page.page.locator("img, iframe, link, object").count() == 0


def test_what_is_bundled_is_there_with_its_licence(opened, folder):
    view = opened("known.html").open("About")
    view.get_by_text("uplot 1.", exact=False).click()
    assert "Permission is hereby granted, free of charge" in view.inner_text()
    assert "Apache License 2.0" in view.inner_text()
    assert (folder / "known.html").stat().st_size < 1_500_000


def test_the_views_are_those_that_the_recording_has(opened):
    usual = ["Overview", "Timeline", "Flame graph", "Tables", "About"]
    assert opened("known.html").titles() == usual
    assert set(opened("loop.html").titles()) == {*usual, "Iterations"}
    assert set(opened("ranks.html").titles()) >= {*usual, "Breakdown", "GPUs"}


def test_the_system_s_darkness_is_followed(opened):
    dark, light = (opened("known.html", color_scheme=scheme) for scheme in ("dark", "light"))
    assert sum(paper(dark)) < 200
    assert sum(paper(light)) > 600


@pytest.mark.parametrize("name", ["loop.html", "ranks.html", "compare.html"])
def test_a_narrow_window_is_wide_enough(opened, name):
    page = opened(name, width=400, height=800)
    for title in page.titles():
        page.open(title)
        assert page.overflow() == 0, title
        page.screenshot(f"{name.removesuffix('.html')}-{title.lower().replace(' ', '-')}-narrow")


def test_on_paper_tables_are_whole_and_tools_are_gone(opened):
    page = opened("known.html")
    view = page.open("Tables")
    page.page.emulate_media(media="print")
    table = view.locator("table").first
    assert table.is_visible()
    assert len(cells(table)) == 5
    assert not view.get_by_role("button", name="Copy as CSV").is_visible()
    assert not page.page.get_by_role("navigation", name="Views").is_visible()


def test_a_dark_page_is_printed_light_and_as_wide_as_the_sheet(opened):
    page = opened("ranks.html", width=720)  # A4 between its margins
    page.page.get_by_role("combobox", name="Colours").select_option("dark")
    for title in page.titles():
        view = page.open(title)
        page.page.emulate_media(media="print")
        page.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.settle()
        assert page.overflow() == 0, title
        assert paper(page) == (255, 255, 255)
        if title in ("Timeline", "Flame graph"):
            assert "#16191c" not in page.colors(view.locator("canvas"))
        page.page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.page.emulate_media(media="screen")
        page.settle()
        assert sum(paper(page)) < 200


def test_a_name_that_is_html_is_shown_and_not_run(opened):
    page = opened("known.html")
    assert page.open("Overview").get_by_text(HOSTILE, exact=True).is_visible()
    assert page.open("Tables").get_by_text(HOSTILE, exact=True).is_visible()
    page.open("Overview").get_by_text(HOSTILE, exact=True).click()
    assert page.page.get_by_role("region", name="Details").get_by_role("heading").inner_text() == HOSTILE
    assert any(text.startswith("</script>") for text, _x, _y in page.written())
    assert page.page.locator("img").count() == 0


def test_nothing_but_the_page_s_own_script_would_run(opened):
    """The Content-Security-Policy blocks injected content, with a console message."""
    page = opened("known.html")
    before = page.page.locator("script").count()
    page.page.evaluate(
        """() => {
            document.body.insertAdjacentHTML("beforeend", "<img src=x: onerror='window.harmed = 1'>");
            const script = document.createElement("script");
            script.textContent = "window.harmed = 2";
            document.body.append(script);
            return fetch("https://example.invalid/").catch(() => "refused");
        }"""
    )
    assert page.page.locator("script").count() == before + 1
    assert page.page.evaluate("window.harmed") is None
    assert len([text for text in page.complaints if "Content Security Policy" in text]) >= 3
    page.complaints.clear()
    page.requests[:] = [url for url in page.requests if "example.invalid" not in url and not url.startswith("x:")]


# ---- numbers ----


def test_tables_have_the_numbers_of_json(opened, folder):
    page = opened("known.html")
    view = page.open("Tables")
    report = json_of("report", folder / "known.json", "--tree", "--threads")
    for name, column_name, title in (("ranges", "total_ns", "total"), ("tree", "self_ns", "self")):
        option = view.locator("select option", has_text=f"{name} (").first.inner_text()
        view.get_by_role("combobox").select_option(label=option)
        table = view.locator("table").first
        assert column(table, "name") == [row["name"] for row in report[name]]
        assert column(table, "count") == [str(row["count"]) for row in report[name]]
        exact = table.locator(f"tbody td:nth-child({titles_of(table).index(title) + 1})").evaluate_all(
            "(cells) => cells.map((cell) => Number(cell.title.replace(/[^0-9]/g, '')))"
        )
        assert exact == [row[column_name] for row in report[name]]


def titles_of(table: Any) -> list[str]:
    return [str(text) for text in table.locator("thead button").all_text_contents()]


def test_a_table_is_sorted_filtered_and_copied(opened, folder):
    page = opened("known.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    view = page.open("Tables")
    table = view.locator("table").first
    ranges = json_of("report", folder / "known.json")["ranges"]
    table.get_by_role("button", name="mean", exact=True).click()
    means = sorted((row["mean_ns"] for row in ranges), reverse=True)
    by_name = {row["name"]: row for row in ranges}
    assert [by_name[name]["mean_ns"] for name in column(table, "name")] == means
    assert table.locator("th[aria-sort=descending]").count() == 1
    table.get_by_role("button", name="mean").click()
    assert [by_name[name]["mean_ns"] for name in column(table, "name")] == means[::-1]
    table.get_by_role("button", name="name", exact=True).click()
    assert column(table, "name")[-1] == "step"
    view.get_by_role("searchbox").fill("WARD")
    assert column(table, "name") == ["backward", "forward"]
    view.get_by_role("button", name="Copy as CSV").click()
    copied = list(csv.DictReader(page.page.evaluate("navigator.clipboard.readText()").splitlines()))
    assert [(row["name"], int(row["total_ns"]), int(row["count"])) for row in copied] == [
        (name, by_name[name]["total_ns"], by_name[name]["count"]) for name in ("backward", "forward")
    ]
    view.get_by_role("searchbox").fill("no such name")
    assert view.get_by_text("No rows.").is_visible()


def test_the_overview_has_self_times_as_shares_of_wall_time(opened, folder):
    page = opened("known.html")
    text = page.open("Overview").inner_text()
    assert "1.10 ms" in text
    assert "trainer" in text
    bars = page.page.locator("#view-overview ol.bars li")
    names = [bar.locator("button").inner_text() for bar in bars.all()]
    ranges = json_of("report", folder / "known.json")["ranges"]
    order = sorted(ranges, key=lambda row: -row["self_ns"])
    assert names == [row["name"] for row in order]
    widths = [bar.locator(".fill").bounding_box()["width"] for bar in bars.all()]
    assert widths[0] / widths[1] == pytest.approx(order[0]["self_ns"] / order[1]["self_ns"], rel=0.05)
    # Shares are of wall time, not of the time in ranges.
    wall_ns = json_of("report", folder / "known.json")["cost"]["program_ns"]
    shares = [float(bar.locator(".number").nth(1).inner_text().removesuffix(" %")) for bar in bars.all()]
    assert shares == pytest.approx([100 * row["self_ns"] / wall_ns for row in order], abs=0.06)
    assert "most time in" not in text


def test_the_overview_of_a_run_with_steps_is_of_the_steady_part(opened, folder):
    """Setup, four steps with a slower first one, and teardown: only the last three steps count."""
    times = [("set-up", 0, 9000), ("tear-down", 15_000, 5000)]
    for i, at in enumerate((9000, 12_000, 13_000, 14_000)):
        times += [(f"ProfilerStep#{i}", at, 3000 if i == 0 else 1000), ("forward", at + 100, 600)]
    events = [{"ph": "X", "cat": "x", "name": n, "pid": 1, "tid": 1, "ts": at, "dur": dur} for n, at, dur in times]
    (folder / "steps.json").write_text(json.dumps({"traceEvents": events}))
    make_page(folder / "steps.html", folder / "steps.json")
    view = opened("steps.html").open("Overview")
    bars = view.locator("ol.bars li").all()
    shares = {bar.locator("button").inner_text(): bar.locator(".number").nth(1).inner_text() for bar in bars}
    steps = {f"ProfilerStep#{i}": "13.3 %" for i in (1, 2, 3)}
    assert shares == {"forward": "60.0 %", **steps}
    assert view.get_by_role("heading", name="Ranges by self time, of steady").is_visible()
    assert opened("known.html").open("Overview").get_by_role("heading", name="Ranges by self time, of run").is_visible()


def test_the_overview_counts_processes_of_the_program_only(opened):
    """The sampler has a log too."""
    text = opened("sampled.html").open("Overview").inner_text()
    assert [line for line in text.splitlines() if "process" in line and "thread" in line] == ["1 process, 1 thread"] * 2


def test_the_flame_graph_zooms_and_searches(opened):
    page = opened("known.html")
    view = page.open("Flame graph")
    canvas = view.locator("canvas")
    view.get_by_role("searchbox").fill("ward")
    assert view.get_by_text("2 boxes found", exact=False).is_visible()
    view.get_by_role("searchbox").fill("")
    page.page.evaluate("window.written = []")
    view.get_by_role("button", name="Show all").click()
    x, y = page.place_of("backward")
    box = canvas.bounding_box()
    page.page.mouse.click(box["x"] + x + 5, box["y"] + y)
    assert "backward: 400 \u00b5s" in view.locator(".facts").inner_text()
    assert "10 calls" in view.locator(".facts").inner_text()
    assert max(run.end - run.begin for run in page.line(canvas, y - 8)) > 0.9 * box["width"]
    page.page.keyboard.press("Escape")
    canvas.focus()
    page.page.keyboard.press("ArrowUp")
    assert view.locator(".facts").inner_text().startswith("step: 900 \u00b5s")


def test_iterations_are_drawn_and_counted(opened, folder):
    page = opened("loop.html")
    view = page.open("Iterations")
    row = json_of("report", folder / "a.marey")["iterations"][0]
    assert str(row["count"]) in view.locator("table").first.inner_text()
    charts = view.get_by_role("img")
    assert charts.count() == 2
    assert "in 40 iterations" in str(charts.first.get_attribute("aria-label"))
    assert all(chart.locator("canvas").count() == 1 for chart in charts.all())
    view.get_by_role("combobox").first.select_option(label="forward")
    assert str(charts.first.get_attribute("aria-label")).startswith("forward in 40 iterations")


def test_bars_of_the_breakdown_are_as_wide_as_its_numbers(opened):
    page = opened("ranks.html")
    view = page.open("Breakdown")
    report = json_of("breakdown", *(KINETO / f"sampled_rank-{rank}.json.gz" for rank in (0, 1)))
    spans = [row for row in report["devices"] if row["window"] == "gpu_span"]
    view.locator("#which-window").select_option("gpu_span")
    stacks = view.locator("ol.stacks").first.locator(".stack")
    assert stacks.count() == len(spans) == 2
    longest = max(row["span"] for row in spans)
    room = view.locator("ol.stacks").first.locator("li > span:nth-child(2)").first.bounding_box()["width"]
    for stack, row in zip(stacks.all(), spans):
        assert stack.bounding_box()["width"] == pytest.approx(room * row["span"] / longest, abs=2.5)
        parts = [row["compute"], row["exposed_comm"], row["exposed_mem"], row["idle"]]
        widths = [piece.bounding_box()["width"] for piece in stack.locator(".piece").all()]
        shares = [part / row["span"] * stack.bounding_box()["width"] for part in parts if part > 0]
        assert widths == pytest.approx(shares, abs=1.5)


def test_what_gpus_wait_for_is_the_command_s(opened):
    page = opened("ranks.html")
    view = page.open("GPUs")
    report = json_of("report", *(KINETO / f"sampled_rank-{rank}.json.gz" for rank in (0, 1)), "--gpu")["gpu"]
    assert view.locator("ul > li").count() == 0  # no sentence that the tables do not prove
    for table in ("launch_bound", "devices", "gaps"):
        view.get_by_role("combobox").select_option(label=f"{table} ({len(report[table])})")
        rows = cells(view.locator("table").first)
        if table != "launch_bound":
            assert len(rows) == len(report[table])
        else:
            assert {row[0] for row in rows} <= {row["name"] for row in report[table]}


def test_gpus_that_wait_get_no_sentence_that_they_do_not(opened, folder):
    view = opened("waits.html").open("GPUs")
    assert "seldom" not in view.inner_text() and "No range is" not in view.inner_text()
    assert json_of("report", folder / "waits.json", "--gpu")["gpu"]["devices"][0]["host_wait_share"] > 0.25


def test_memory_is_the_command_s(opened, folder):
    view = opened("leak.html").open("Memory")
    report = json_of("report", folder / "leak.marey", "--memory")
    sentences = view.locator("ul.leaks > li").all_inner_texts()
    suspected = [row for row in report["growth"] if row["is_suspected"]]
    assert len(sentences) == len(suspected) > 0
    assert any("each iteration" in s and s.endswith(": keep (leak.py:5) < <module> (leak.py:7)") for s in sentences)
    chart = str(view.locator(".chart").get_attribute("aria-label"))
    assert ": resident at most " in chart and ": alive at most " in chart
    assert view.locator(".chart canvas").bounding_box()["height"] > 100
    for name in ("stacks", "pools", "growth", "live"):
        view.get_by_role("combobox").select_option(label=f"{name} ({len(report[name])})")
        assert len(cells(view.locator(".table-view table").first)) == min(len(report[name]), 200)
    columns = [title.strip() for title in view.locator(".table-view thead").first.inner_text().split("\t")]
    assert columns[-2:] == ["at", "bytes"]


def test_without_memory_there_is_no_view_of_it(opened):
    page = opened("loop.html")
    assert page.page.get_by_text("Memory", exact=True).count() == 0


def test_a_comparison_is_the_command_s(opened, folder):
    page = opened("compare.html")
    report = json_of("compare", folder / "a.marey", folder / "b.marey")
    view = page.open("Comparison")
    assert view.locator(".verdict").inner_text() == report["summary"]
    rows = cells(view.locator("table").first)
    names = [row[0] for row in rows]
    verdicts = {row["name"]: row["verdict"] for row in [*report["ranges"], *report["program"]]}
    assert names[1:] == list(verdicts)
    assert {row[0]: row[6] for row in rows[1:]} == verdicts
    view.get_by_role("button", name="forward", exact=True).click()
    assert view.get_by_role("heading", name="Times of forward").is_visible()
    assert verdicts["forward"] in str(view.get_by_role("img").get_attribute("aria-label"))


def test_a_page_that_is_cut_off_says_so(browser, folder, tmp_path):
    text = (folder / "known.html").read_text()
    start = text.index('id="index">') + len('id="index">')
    broken = tmp_path / "broken.html"
    broken.write_text(text[:start] + text[start + 400 :])
    context = browser.new_context()
    page = context.new_page()
    page.goto(broken.as_uri())
    page.wait_for_selector("body[data-state=failed]")
    assert page.get_by_role("alert").inner_text().startswith("This page cannot be shown: ")
    context.close()
