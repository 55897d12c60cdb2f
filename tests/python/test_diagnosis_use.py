"""Where the diagnosis is used: gates for CI, Markdown, Python, pages of findings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import marey

ROOT = Path(__file__).parent.parent.parent
COMMAND = Path(os.environ["MAREY_BUILD"], "cli", "marey")
TRACE = ROOT / "tests" / "data" / "kineto" / "sampled_rank-0.json.gz"  # of a GPU that computes for 17 % of a step

HOT = """
import time

time.sleep(1)

def score_all(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total

for _ in range(1500):
    score_all(20_000)
"""
FIXED = HOT.replace("score_all(20_000)", "n_scores = 20_000 // 2")


def command(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *args], capture_output=True, text=True, timeout=120, check=False)


WAITS = """
import marey

def work(n):
    return sum(i * i % 7 for i in range(n))

for step in range(60):
    with marey.iteration():
        with marey.phase("data"):
            work(240_000)
        with marey.phase("forward"):
            work(20_000)
"""

COLLECTS = """
import gc
import marey

kept = [[i] for i in range(400_000)]

def work(n):
    return sum(i * i % 7 for i in range(n))

for step in range(80):
    with marey.iteration():
        work(60_000)
        if step % 10 == 9:
            gc.collect()
"""


def record(folder: Path, name: str, program: str) -> Path:
    (folder / f"{name}.py").write_text(program)
    words = [COMMAND, "run", "-o", f"{name}.marey", sys.executable, f"{name}.py"]
    subprocess.run(words, cwd=folder, timeout=120, check=True)
    return folder / f"{name}.marey"


@pytest.fixture(scope="module")
def hot(tmp_path_factory) -> Path:
    """A recording with one finding, hot-function."""
    return record(tmp_path_factory.mktemp("hot"), "hot", HOT)


@pytest.fixture(scope="module")
def fixed(tmp_path_factory) -> Path:
    """The same program without that function; it has no finding."""
    return record(tmp_path_factory.mktemp("fixed"), "fixed", FIXED)


def test_a_finding_fails_its_gate_with_1_after_the_report(hot):
    done = command("report", hot, "--fail-on", "input-bound,hot-function")
    assert done.returncode == 1 and done.stdout.startswith("No training steps were found")
    assert re.fullmatch(r"marey: --fail-on hot-function: Hot function: Python code of .*\n", done.stderr)
    assert command("report", hot, "--fail-on", "input-bound,sync-bound").returncode == 0
    page = hot.parent / "page.html"
    assert command("report", hot, "--fail-on", "hot-function", "--html", page).returncode == 1 and page.exists()


def test_the_gate_does_not_change_what_is_printed(hot):
    for options in ([], ["--json"], ["--samples"], ["--markdown"], ["--diagnosis", "--json"]):
        plain, gated = command("report", hot, *options), command("report", hot, *options, "--fail-on", "hot-function")
        assert (plain.returncode, gated.returncode) == (0, 1)
        assert plain.stdout == gated.stdout


def test_an_unknown_finding_is_refused_with_the_list(hot):
    done = command("report", hot, "--fail-on", "input-bound,hot")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("marey: unknown finding 'hot'; the findings are ") and "hot-function" in done.stderr
    assert command("report", hot, "--fail-on", "").returncode == 2


def test_the_compute_share_has_a_gate():
    assert command("report", TRACE, "--fail-if-compute-below", "15%").returncode == 0
    done = command("report", TRACE, "--fail-if-compute-below", "60%")
    assert done.returncode == 1
    assert done.stderr == "marey: --fail-if-compute-below 60%: the GPU computes 17.1 % of each step\n"


def test_an_unknown_compute_share_fails_and_is_called_unknown(hot):
    done = command("report", hot, "--fail-if-compute-below", "60")
    assert done.returncode == 2 and "the compute share is unknown" in done.stderr


def test_markdown_has_the_diagnosis_first(hot):
    text = command("report", hot, "--diagnosis", "--markdown").stdout
    lines = text.splitlines()
    assert lines[0].startswith("No training steps were found in a run of")
    assert re.fullmatch(r"1\. \*\*Hot function: .*\*\* At most [\d.]+x faster\.", lines[2]), text
    assert lines[3].startswith("   - score\\_all (hot.py:")
    assert lines[4].endswith("More: `marey explain hot-function`")
    assert command("report", hot, "--markdown").stdout.startswith(text)


def test_python_has_the_diagnosis_as_data(hot):
    diagnosis = marey.load(hot).diagnosis()
    assert diagnosis == json.loads(command("report", hot, "--json").stdout)["diagnosis"]
    assert diagnosis["findings"][0]["where"][0]["function"] == "score_all"


def test_each_rule_has_a_page_and_each_page_a_rule():
    rules = {path.stem.removeprefix("finding_").replace("_", "-"): path.read_text() for path in
             (ROOT / "core" / "analyze" / "diagnosis").glob("finding_*.c")}  # fmt: skip
    pages = {path.stem: path.read_text() for path in (ROOT / "docs" / "findings").glob("*.md")}
    assert sorted(rules) == sorted(pages)
    for name, source in rules.items():
        assert f'"{name}"' in source, name
    listed = dict(line.split(maxsplit=1) for line in command("explain").stdout.splitlines())
    guide = (ROOT / "docs" / "guide" / "diagnosis.md").read_text()
    for name, page in pages.items():
        assert page.startswith(f"# {name}: {listed[name]}\n")
        assert command("explain", name).stdout == page
        assert page.count("```") >= 4, name  # a figure and code
        assert re.findall("^## (.*)$", page, re.MULTILINE) == ["Fix", "When it is wrong"], name
        assert re.search("[#*] before", page) and re.search("[#*] after", page), name
        assert f"(../findings/{name}.md)" in guide, name


def test_an_unknown_page_is_refused_with_the_list():
    done = command("explain", "input")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("marey: unknown finding 'input'; the findings are ")


def findings_of(a: Path, b: Path) -> list[dict[str, Any]]:
    done = command("compare", a, b, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["findings"]


def test_a_comparison_closes_with_what_became_of_findings(hot, fixed):
    (gone,) = findings_of(hot, fixed)
    assert (gone["id"], gone["change"], gone["b_share"]) == ("hot-function", "gone", None)
    assert gone["where"].startswith("score_all (hot.py:") and min(gone["predicted"], gone["measured"]) > 1.2
    (new,) = findings_of(fixed, hot)
    assert (new["change"], new["a_share"], new["predicted"], new["measured"]) == ("new", None, None, None)
    (same,) = findings_of(hot, hot)
    assert (same["change"], same["measured"]) == ("remains", None)
    factor = r"[\d.]+x"
    last = command("compare", hot, fixed).stdout.splitlines()[-1]
    assert re.fullmatch(f"finding: hot-function: gone; predicted at most {factor} faster, measured {factor}.*", last)
    last = command("compare", fixed, hot, "--markdown").stdout.splitlines()[-1]
    assert re.fullmatch(r"- finding: hot-function: new, \d+ % of the time, score\\_all \(hot.py:\d+\)", last)


def test_without_a_diagnosis_on_both_sides_nothing_is_claimed(hot):
    stats = hot.parent / "a.json"
    stats.write_text(json.dumps({"series": {"(iteration)": [1e6, 1.1e6, 1e6] * 9}}))
    assert findings_of(stats, stats) == []


def test_evidence_has_times_and_perfetto_marks_them(tmp_path):
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    recording = record(tmp_path, "waits", WAITS)
    (finding, *_) = marey.load(recording).diagnosis()["findings"]
    assert finding["id"] == "input-bound"
    lines, *times = finding["evidence"]
    assert (lines["table"], lines["rows"][0]["line"]) == ("lines", finding["where"][0]["line"])
    lengths = [each["to_ns"] - each["from_ns"] for each in times]
    assert len(times) == 10 and lengths == sorted(lengths, reverse=True) and lengths[-1] > 0
    assert command("export", recording, "-o", tmp_path / "waits.pftrace").returncode == 0
    trace = pb.Trace.FromString((tmp_path / "waits.pftrace").read_bytes())
    tracks = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")}
    marked = [p for p in trace.packet if tracks.get(p.track_event.track_uuid) == "finding: input-bound"]
    begins = [p for p in marked if p.track_event.type == pb.TrackEvent.TYPE_SLICE_BEGIN]
    assert len(marked) == 2 * len(begins) and len(begins) in range(50, 60)  # steps without warm-up
    assert {p.track_event.name for p in begins} == {finding["claim"]}
    assert {each["from_ns"] for each in times} <= {p.timestamp for p in begins}


def test_a_trace_of_torch_profiler_gets_the_findings_that_its_data_allows(tmp_path):
    def ranges(step: int) -> list[dict[str, Any]]:
        parts = (
            (f"ProfilerStep#{step}", 0, 1000),
            ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 600),
            ("aten::linear", 600, 90),
            ("autograd::engine::evaluate_function: AddmmBackward0", 700, 60),
            ("autograd::engine::evaluate_function: MmBackward0", 770, 30),
            ("Optimizer.step#SGD.step", 800, 100 + step),
        )
        words = {"ph": "X", "pid": 7, "tid": 7, "cat": "user_annotation"}
        return [{**words, "name": name, "ts": 1100 * step + at, "dur": length} for name, at, length in parts]

    trace = tmp_path / "trace.json"
    events = [event for step in range(6) for event in ranges(step)]
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    diagnosis = marey.load(trace).diagnosis()
    (finding,) = diagnosis["findings"]
    assert (finding["id"], finding["share"], finding["where"]) == ("input-bound", pytest.approx(0.6), [])
    assert (diagnosis["steps"]["n"], diagnosis["startup_ns"]) == (6, None)
    assert "data 60 %, backward 10 %, optimizer 10 %, other 20 %" in diagnosis["verdict"]
    assert "no stacks to name functions" in diagnosis["missing"] and "marey run" in diagnosis["missing"]
    text = command("report", trace).stdout
    assert text.startswith("6 training steps: 1.00 ms/step.") and diagnosis["missing"] in text
    assert "No stacks were recorded, so the function is unknown." in text


def test_a_trace_of_a_gpu_has_shares_of_it_and_few_steps_are_too_few():
    diagnosis = marey.load(TRACE).diagnosis()
    assert (diagnosis["steps"]["n"], diagnosis["findings"]) == (2, [])
    assert diagnosis["device"]["idle"] > 0.5
    assert "too few steps" in diagnosis["missing"]
    one_step = marey.load(TRACE.parent / "rank_non_gpu.json.gz").diagnosis()
    assert one_step["findings"] == [] and "too few steps" in one_step["missing"]


def test_a_recording_of_marey_lacks_nothing(hot):
    assert marey.load(hot).diagnosis()["missing"] is None


def test_a_cause_of_a_finding_fails_its_gate(tmp_path):
    recording = record(tmp_path, "collects", COLLECTS)
    (finding, *_) = marey.load(recording).diagnosis()["findings"]
    assert (finding["id"], [each["id"] for each in finding["because"]]) == ("slow-steps", ["gc-pauses"])
    done = command("report", recording, "--fail-on", "input-bound,gc-pauses")
    assert done.returncode == 1 and done.stderr.startswith("marey: --fail-on gc-pauses: Slow steps: ")
