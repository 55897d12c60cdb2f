"""A notebook in a real kernel: outputs of recordings, tables and pages, and their display in a browser."""

from __future__ import annotations

import html
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import perfetto_page
import pytest
from stack_names import HOSTILE

PACKAGES = ("nbformat", "nbclient", "ipykernel")
MISSING = ", ".join(package for package in PACKAGES if importlib.util.find_spec(package) is None)
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {MISSING}; tools/setup test installs it where an index is at hand"
)

NO_BROWSER = perfetto_page.what_is_missing(needs_ui=False)
needs_browser = pytest.mark.skipif(bool(NO_BROWSER), reason=NO_BROWSER)

# Each of these except the first is displayed by its last line.
CELLS = {
    "record": f"""
        import marey
        marey.start("run.marey")
        for _ in range(20):
            with marey.range("step"), marey.range({HOSTILE!r}):
                pass
        marey.stop()
        recording = marey.load("run.marey")
        """,
    "recording": "recording",
    "table": "recording.ranges",
    "page": "recording.page(title='in a notebook')",
    "comparison": "marey.compare('run.marey', 'run.marey').page()",
    "calls": """
        def dot(n): return sum(range(n))
        profile = marey.Profile()
        profile.runcall(lambda: [dot(1000) for _ in range(20)])
        marey.plot(profile)
        """,
    "files": "import os; sorted(os.listdir('.'))",
}

# Like notebooks: text/html of each output becomes the content of an element in one document.
NOTEBOOK = """<!doctype html><meta charset="utf-8"><title>a notebook</title><body><script>
for (const [name, shown] of Object.entries(JSON.parse(%s))) {
    const output = document.createElement("div");
    output.id = name;
    output.innerHTML = shown;
    document.body.append(output);
}
</script>"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Run the notebook; returns the outputs of each cell by MIME type."""
    import nbclient
    import nbformat

    folder = tmp_path_factory.mktemp("notebook")
    cells = [nbformat.v4.new_code_cell(re.sub(r"(?m)^ {8}", "", source).strip()) for source in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with pytest.MonkeyPatch.context() as patch:
        # The kernel keeps its files and history in the test's folder.
        for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
            patch.setenv(name, str(folder))
        for name in ("MAREY", "MAREY_OPTIONS"):
            patch.delenv(name, raising=False)
        nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    nbformat.validate(notebook)
    nbformat.write(notebook, folder / "run.ipynb")
    read = nbformat.read(folder / "run.ipynb", as_version=4)
    shown = {}
    for name, cell in zip(CELLS, read.cells):
        assert [output.output_type for output in cell.outputs] == (["execute_result"] if name != "record" else [])
        shown[name] = {kind: str(data) for output in cell.outputs for kind, data in output.data.items()}
    return shown


def source_of(frame: str) -> str:
    """The document that a frame shows."""
    (source,) = re.findall(r'srcdoc="([^"]*)"', frame)
    return html.unescape(source)


def test_a_recording_is_shown_as_what_took_the_time(outputs):
    shown = outputs["recording"]["text/html"]
    assert shown.startswith("<p>&lt;marey.Recording run.marey&gt;</p><table>")
    assert "<td>step</td>" in shown


def test_a_table_is_shown_with_a_row_for_each_name(outputs):
    shown = outputs["table"]["text/html"]
    assert shown.count("<tr>") == 1 + 2
    assert '<td class="n" align="right">20</td>' in shown


@pytest.mark.parametrize("name", ["recording", "table", "page", "comparison"])
def test_a_name_that_is_html_stays_a_text(outputs, name):
    shown = outputs[name]["text/html"]
    assert HOSTILE not in shown
    assert not re.search(r"<(script|img|style)", shown)


@pytest.mark.parametrize("name", ["page", "comparison", "calls"])
def test_a_page_is_one_frame_that_reaches_nothing_outside(outputs, name):
    shown = outputs[name]["text/html"]
    assert re.fullmatch(r"<iframe srcdoc=\"[^\"<>]*\" sandbox=\"allow-scripts\" [^<>]*></iframe>", shown)
    assert source_of(shown).startswith("<!doctype html>")


def test_where_no_html_is_shown_there_is_a_line_of_text(outputs):
    assert outputs["recording"]["text/plain"] == "<marey.Recording run.marey>"
    assert outputs["page"]["text/plain"].startswith("<marey page, ")
    assert "step" in outputs["table"]["text/plain"]


class NotebookInBrowser:
    """The outputs in one document. Its errors and network requests are stored."""

    def __init__(self, browser: Any, path: Path, outputs: dict[str, dict[str, str]]) -> None:
        data = json.dumps({name: shown["text/html"] for name, shown in outputs.items() if "text/html" in shown})
        path.write_text(NOTEBOOK % json.dumps(data).replace("<", "\\u003c"), encoding="utf-8")
        self.faults: list[str] = []
        self.page = browser.new_page(viewport={"width": 1000, "height": 2500})
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: self.note_request(request.url))
        self.page.goto(path.as_uri())

    def note_request(self, url: str) -> None:
        if not url.startswith(("file:", "blob:", "about:")):
            self.faults.append(url)


@pytest.fixture
def opened(browser, outputs, tmp_path):
    notebook = NotebookInBrowser(browser, tmp_path / "notebook.html", outputs)
    yield notebook.page
    title = notebook.page.title()
    notebook.page.close()
    assert (title, notebook.faults) == ("a notebook", [])


@needs_browser
def test_a_browser_shows_names_as_they_are(opened):
    for name in ("recording", "table"):
        assert opened.locator(f"#{name} td:text-is({json.dumps(HOSTILE)})").count() == 1
        assert opened.locator(f"#{name} :is(script, img)").count() == 0


@needs_browser
def test_a_browser_shows_the_page_below_its_cell(opened):
    frame = opened.frame_locator("#page iframe")
    frame.locator("body[data-state=ready]").wait_for(timeout=30_000)
    for title in ("Timeline", "Flame graph", "Tables", "Overview"):
        frame.get_by_role("navigation").get_by_role("link", name=title, exact=True).click()
        frame.get_by_role("region", name=title, exact=True).wait_for()
    frame.get_by_role("navigation").get_by_role("link", name="Tables", exact=True).click()
    assert frame.get_by_text(HOSTILE, exact=True).count() > 0
    # The color selector stores its choice in the browser, which such a frame may not use.
    frame.get_by_label("Colours").select_option("dark")
    opened.frame_locator("#comparison iframe").locator("body[data-state=ready]").wait_for(timeout=30_000)


@needs_browser
def test_a_browser_shows_calls_below_their_cell(opened):
    frame = opened.frame_locator("#calls iframe")
    frame.locator("body[data-state=ready]").wait_for(timeout=30_000)
    table = frame.get_by_role("table", name="Functions")
    table.get_by_role("button", name="dot", exact=True).click()
    assert "dot" in table.locator("tr[aria-current]").inner_text()
    assert float(frame.locator("canvas").get_attribute("data-boxes")) >= 3


def test_a_plot_in_a_notebook_writes_no_file(outputs):
    assert outputs["calls"]["text/plain"].startswith("<marey page, ")
    assert "marey-calls.html" not in outputs["files"]["text/plain"]
