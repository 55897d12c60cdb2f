"""marey scale: results for known times, tables, charts and page, the gate, and invalid input."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

OWN = ["epoch-time", "speedup", "efficiency", "step-breakdown", "energy", "utilization", "throughput"]
ITWINAI = [
    "absolute_epoch_time",
    "relative_epoch_time_speedup",
    "gpu_energy_plot",
    "utilization_plot",
    "computation_vs_other_plot",
    "computation_vs_communication_plot",
]
SVG = "{http://www.w3.org/2000/svg}"
# Seconds of an epoch, by workers: 10 % that never get faster, and a little for each worker.
TIMES = {1: 100.0, 2: 56.0, 4: 34.5, 8: 25.5, 16: 23.5}
PARTS = {1: (0.1, 0.0), 2: (0.05, 0.006), 4: (0.025, 0.0095), 8: (0.0125, 0.013), 16: (0.00625, 0.01725)}

Row = tuple[str, int, str, str, object, float]  # strategy, workers, run, measure, step, value


def epochs(strategy: str, times: dict[int, float], repeats: int = 3) -> list[Row]:
    """Three epochs behind a slow first one; repeats and epochs differ by a percent."""
    return [
        (strategy, workers, f"run {repeat}", "epoch_time_s", epoch, seconds * (1 + 0.004 * (repeat + epoch) + slow))
        for workers, seconds in times.items()
        for repeat in range(repeats)
        for epoch, slow in enumerate((1, 0, 0, 0))
    ]


def facts(strategy: str, times: dict[int, float], **more: float) -> list[Row]:
    names = {"samples_per_epoch": 50_000.0, **more}
    runs = [(workers, f"run {repeat}") for workers in times for repeat in range(3)]
    return [(strategy, workers, run, name, "", value) for workers, run in runs for name, value in names.items()]


def steps(strategy: str) -> list[Row]:
    return [
        (strategy, workers, f"run {repeat}", name, "", value)
        for workers, parts in PARTS.items()
        for repeat in range(3)
        for name, value in zip(("compute_s", "communication_s", "memory_s", "idle_s"), (*parts, 0.0, 0.001))
    ]


@pytest.fixture
def measured(tmp_path: Path) -> Callable[..., Path]:
    """Write a CSV of measurements."""

    def write(rows: Iterable[Row], name: str = "measured.csv") -> Path:
        path = tmp_path / name
        with path.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["strategy", "workers", "run", "measure", "step", "value"])
            out.writerows(rows)
        return path

    return write


@pytest.fixture
def known(measured) -> Path:
    return measured([*epochs("ddp", TIMES), *facts("ddp", TIMES), *steps("ddp")])


# ---- the result ----


def without_chance(text: str) -> str:
    """What follows from the medians alone: without intervals, and without fits and all below them."""
    head = re.split(r"\n(?:### )?fits\n", text)[0]
    return re.sub(r" +", " ", re.sub(r"[\d.]+( m?s)? to [\d.]+( m?s)?", "LOW to HIGH", head))


def test_it_says_whether_it_scales_how_far_and_what_holds_it_back(marey, known, expected):
    done = marey("scale", known)
    assert (done.returncode, done.stderr) == (0, "")
    first = done.stdout.splitlines()[0]
    assert first.startswith("ddp scales well to 2 workers and less beyond: 16 workers are 4.26 times as fast as 1, ")
    assert "What holds it back most is exposed communication" in first
    expected("scale", without_chance(done.stdout))
    assert [line for line in done.stdout.splitlines() if line in ("fits", "forecast", "best number of workers")]


def test_speedup_and_efficiency_are_those_of_the_medians(marey, known):
    points = list(csv.DictReader(io.StringIO(marey("scale", known, "--csv").stdout)))
    assert [int(point["workers"]) for point in points] == list(TIMES)
    for point in points:
        workers = int(point["workers"])
        assert float(point["speedup"]) == pytest.approx(TIMES[1] / TIMES[workers])
        assert float(point["efficiency"]) == pytest.approx(TIMES[1] / TIMES[workers] / workers)
        assert float(point["efficiency_low"]) <= float(point["efficiency"]) <= float(point["efficiency_high"])
        assert (point["kind"], point["measure"], point["runs"]) == ("strong", "epoch", "3")


def test_json_has_every_table_and_the_sentences(marey, known):
    answer = json.loads(marey("scale", known, "--json").stdout)
    assert list(answer) == ["summary", "points", "fits", "forecast", "best", "runs", "notes"]
    assert answer["summary"][0].startswith("ddp scales well to 2 workers")
    assert len(answer["runs"]) == 3 * len(TIMES)
    assert {fit["model"] for fit in answer["fits"]} == {"amdahl", "usl"}


@pytest.mark.parametrize("table", ["points", "fits", "forecast", "best", "runs", "notes"])
def test_each_table_is_csv_on_request(marey, known, table):
    rows = list(csv.DictReader(io.StringIO(marey("scale", known, f"--csv={table}").stdout)))
    assert rows and None not in rows[0]


def test_forecasts_are_for_the_counts_that_are_asked_for(marey, known):
    answer = json.loads(marey("scale", known, "--json", "--forecast", "24,100").stdout)
    assert {row["workers"] for row in answer["forecast"]} == {24, 100}


def test_markdown_is_tables_and_sentences(marey, known, expected):
    done = marey("scale", known, "--markdown")
    assert done.returncode == 0
    expected("scale-markdown", without_chance(done.stdout))


def test_first_epochs_count_when_asked_for(marey, measured):
    path = measured(epochs("ddp", {1: 100.0, 2: 50.0}, repeats=1))
    without, with_first = (
        json.loads(marey("scale", path, "--json", *more).stdout)["points"][0] for more in ([], ["--with-first"])
    )
    assert (without["epochs"], with_first["epochs"]) == (3, 4)


def test_a_name_before_a_path_is_its_series(marey, measured):
    one, two = measured(epochs("", TIMES), "one.csv"), measured(epochs("", TIMES), "two.csv")
    answer = json.loads(marey("scale", f"ddp={one}", f"fsdp={two}", "--json").stdout)
    assert [text.partition(" work, ")[2].split()[0] for text in answer["summary"]] == ["ddp", "fsdp"]


def test_a_path_may_have_an_equal_sign(marey, measured, tmp_path):
    measured(epochs("ddp", TIMES), "lr=0.1.csv")
    answer = json.loads(marey("scale", "lr=0.1.csv", "--json").stdout)
    assert answer["points"][0]["strategy"] == "ddp"


def test_the_answer_goes_into_a_file(marey, known, tmp_path):
    done = marey("scale", known, "--json", "-o", "answer.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads((tmp_path / "answer.json").read_text())["points"]


# ---- results without evidence are omitted ----


@pytest.fixture
def two_single_runs(measured) -> Path:
    """Two numbers of workers, one run each: nothing gets faster."""
    rows = [*epochs("ddp", {1: 100.0, 8: 100.0}, repeats=1), *facts("ddp", {1: 0, 8: 0})[::3]]
    return measured(rows, "single.csv")


def test_two_single_runs_have_no_fit_no_interval_and_no_forecast(marey, two_single_runs, tmp_path):
    first, *rest = (text := marey("scale", two_single_runs).stdout).splitlines()
    assert first.startswith("ddp does not scale: 8 workers are 1 times as fast as 1, 12.5 % of ideal by one run each.")
    assert "Amdahl" not in text and "forecast" not in text and "Karp-Flatt" not in text and "interval" not in rest[2]
    assert "a single run does not show how much runs differ; repeat the runs" in text
    markdown = marey("scale", two_single_runs, "--markdown").stdout
    page = marey("scale", two_single_runs, "--html", "page.html") and (tmp_path / "page.html").read_text()
    for answer in (text, markdown, page):
        assert "serial" not in answer and "(12.5 to" not in answer and "needs at least three numbers" in answer
    answer = json.loads(marey("scale", two_single_runs, "--json").stdout)
    assert answer["forecast"] == [] and len(answer["fits"]) == 2
    unknown = ("serial", "serial_low", "contention", "coherency", "residual", "best_workers", "time_one_s")
    assert all(fit[name] is None for fit in answer["fits"] for name in unknown)
    unknown = ("low_s", "high_s", "speedup_low", "efficiency_low", "efficiency_high", "karp_flatt")
    assert all(answer["points"][1][name] is None for name in unknown)
    rows = list(csv.DictReader(io.StringIO(marey("scale", two_single_runs, "--csv=fits").stdout)))
    assert [row["serial"] for row in rows] == ["", ""]


def test_pictures_of_single_runs_have_no_error_bars(marey, two_single_runs, known, tmp_path):
    def count_bars(path):
        marey("scale", path, "--pictures", "out")
        picture = ET.parse(tmp_path / "out" / "efficiency.svg").getroot()
        return sum("bound" in (element.get("class") or "") for element in picture.iter())

    assert count_bars(known) > 0 and count_bars(two_single_runs) == 0


def test_the_gate_judges_single_runs_by_their_value(marey, two_single_runs):
    done = marey("scale", two_single_runs, "--fail-below-efficiency", "70")
    assert done.returncode == 1
    assert "efficiency 12.5 %, 57.5 below 70 %; single runs, so this may be noise" in done.stderr


def test_work_that_is_not_known_is_a_condition_of_the_answer(marey, measured):
    path = measured(epochs("ddp", {1: 100.0, 8: 100.0}))
    done = marey("scale", path)
    assert done.stdout.startswith("If every run does the same work, ddp does not scale: ")
    assert "each worker does the same work, use --kind weak" in done.stdout
    assert json.loads(marey("scale", path, "--json").stdout)["points"][0]["kind"] == "unknown"
    assert marey("scale", path, "--kind", "weak").stdout.startswith("ddp scales to 8 workers, the most that were")


# ---- the gate ----


def test_the_gate_names_what_fails_and_by_how_much(marey, known):
    done = marey("scale", known, "--fail-below-efficiency", "70%")
    assert done.returncode == 1
    assert done.stdout.startswith("ddp scales")
    lines = done.stderr.splitlines()
    assert [line.split(":")[1] for line in lines] == [" ddp with 8 workers", " ddp with 16 workers"]
    assert lines[1].endswith("43.4 below 70 %")


def test_the_gate_passes_what_is_efficient_enough(marey, known):
    done = marey("scale", known, "--fail-below-efficiency", "20")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_gate_fails_nothing_that_chance_may_explain(marey, measured):
    noise = (0.8, 1.25, 1.0, 0.75, 1.3)
    rows = [
        ("ddp", workers, f"run {repeat}", "epoch_time_s", epoch, seconds * noise[(repeat + 2 * epoch) % 5])
        for workers, seconds in {1: 100.0, 2: 56.0}.items()
        for repeat in range(5)
        for epoch in range(4)
    ]
    done = marey("scale", measured(rows), "--fail-below-efficiency", "92")
    assert done.returncode == 0
    assert "ddp with 2 workers: efficiency 89" in done.stderr and "may be below 92 %" in done.stderr


def test_a_gate_with_nothing_to_judge_is_an_error(marey, measured):
    done = marey("scale", measured(epochs("ddp", {4: 10.0})), "--fail-below-efficiency", "70")
    assert done.returncode == 2
    assert "at least two numbers of workers" in done.stderr


# ---- charts and the page ----


@pytest.fixture
def complete(measured) -> Path:
    """Two series, one that begins with two workers, with everything that can be measured."""
    later = {workers: 1.1 * seconds for workers, seconds in TIMES.items() if workers > 1}
    measures = {"gpu_utilization_percent": 80.0, "computation_fraction": 0.7, "computation_vs_communication": 0.9}
    energy = [
        (strategy, workers, f"run {repeat}", "energy_j", epoch, 5e4 * workers**0.2)
        for strategy, times in (("ddp", TIMES), ("fsdp <&>", later))
        for workers in times
        for repeat in range(3)
        for epoch in range(4)
    ]
    rows = [*epochs("ddp", TIMES), *facts("ddp", TIMES, **measures), *steps("ddp"), *energy]
    return measured([*rows, *epochs("fsdp <&>", later), *facts("fsdp <&>", later, **measures)])


@pytest.mark.parametrize("names", [OWN, ITWINAI], ids=["own", "itwinai"])
def test_each_picture_is_a_file_with_labelled_axes(marey, complete, tmp_path, names):
    done = marey("scale", complete, "--pictures", "out", *(["--itwinai-names"] if names is ITWINAI else []))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{name}.svg" for name in names}
    for name in names:
        picture = ET.parse(tmp_path / "out" / f"{name}.svg").getroot()
        axes = [text.text for text in picture.iter(f"{SVG}text") if text.get("class") == "axis"]
        assert len(axes) == 2 and "workers" in axes
        assert picture.find(f"{SVG}title").text and picture.find(f"{SVG}desc").text
        assert any("fsdp <&>" in (text.text or "") for text in picture.iter(f"{SVG}text")) or name == "step-breakdown"


def test_pictures_without_data_leave_no_file(marey, known, tmp_path):
    done = marey("scale", known, "--pictures", "out")
    assert done.stderr == "marey: wrote 5 charts into out; for the others these runs have no data\n"
    assert not (tmp_path / "out" / "energy.svg").exists()


def test_the_page_has_pictures_and_tables_and_needs_nothing(marey, complete, tmp_path):
    done = marey("scale", complete, "--html", "page.html")
    assert done.returncode == 0
    assert re.fullmatch(
        r"marey: wrote page\.html \(.* kB\); open it in a browser; it needs nothing else\n", done.stderr
    )
    page = (tmp_path / "page.html").read_text()
    for name in OWN:
        assert f'id="{name}-title"' in page
    assert "<script" not in page and "fsdp <&>" not in page and "fsdp &lt;&amp;&gt;" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page


# ---- mistakes ----


def test_a_file_without_runs_is_an_error(marey, tmp_path):
    (tmp_path / "empty.csv").write_text("workers,measure,value\n")
    done = marey("scale", "empty.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("marey: ")


WRONG = [
    ["--csv=nothing"],
    ["--forecast", "4,x"],
    ["--forecast", "0"],
    ["--json", "--markdown"],
    ["--itwinai-names"],
    ["--fail-below-efficiency", "much"],
    ["--kind", "both"],
    ["--pictures", "measured.csv/below"],
]


@pytest.mark.parametrize("more", WRONG, ids=" ".join)
def test_a_wrong_option_is_reported_in_one_sentence(marey, known, more):
    done = marey("scale", known, *more)
    assert done.returncode == 2
    assert done.stderr.startswith("marey: ") and done.stderr.count("\n") == 1
