"""Two commands of itwinai: generate-scalability-report and generate-py-spy-report.

Tables have itwinai's columns and format; the numbers are those of marey.scale() and Recording.samples(). Unlike in
itwinai, first epochs are excluded, repeats are not summed, each strategy has its own baseline, and a report without
data is an error.
"""

from __future__ import annotations

import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Optional

from marey._native import MareyError
from marey._printable import printable
from marey._replace import replacing
from marey._scale import Scaling, scale
from marey.itwinai._averages import WARNING
from marey.itwinai._files import Cell, Failure, caller, say

Row = dict[str, Any]


def draw(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Format a table like tabulate's "presto": bars between columns, text left-aligned, numbers right-aligned."""
    cells = [["" if cell is None else printable(cell) for cell in row] for row in (columns, *rows)]
    widths = [max([len(name) + 2, *(len(row[i]) for row in cells)]) for i, name in enumerate(columns)]
    is_number = [any(isinstance(row[i], int) for row in rows) for i in range(len(columns))]
    lines = [
        " " + " | ".join(cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, is_number))
        for row in cells
    ]
    lines.insert(1, "+".join("-" * (width + 2) for width in widths))
    return "".join(line.rstrip() + "\n" for line in lines)


# ---- scaling ----


def _epochs(scaling: Scaling, point: Row) -> Optional[list[Cell]]:
    if point["time_s"] is None or point["measure"] != "epoch":
        return None
    low, high = point["low_s"], point["high_s"]
    return [
        f"{point['time_s']:.2f} s",
        None if low is None or high is None else f"{low:.2f} .. {high:.2f} s",
        None if point["speedup"] is None else f"{point['speedup']:.2f}",
        None if point["efficiency"] is None else f"{100 * point['efficiency']:.1f} %",
        point["runs"],
    ]


def _gpus(scaling: Scaling, point: Row) -> Optional[list[Cell]]:
    """The energy of one run, the median of repeats."""
    key = ("experiment", "strategy", "workers")
    runs: list[Row] = [run for run in scaling.runs if all(run[name] == point[name] for name in key)]
    joules = [run["joules"] for run in runs if run["joules"] is not None]
    use = point["utilization"]
    if not joules and use is None:
        return None
    energy = f"{statistics.median(joules) / 3600:.2f} Wh" if joules else None
    return [energy, None if use is None else f"{100 * use:.2f} %", point["runs"]]


def _fraction(point: Row, column: str, parts: Sequence[str]) -> Optional[list[Cell]]:
    """The fraction from itwinai's averages, else the share of computation in these parts of a step."""
    share, seconds = point[column], [point[part] for part in parts]
    if share is None and None not in seconds and sum(seconds) > 0:
        share = seconds[0] / sum(seconds)
    return None if share is None else [f"{100 * share:.2f} %"]


_PARTS = ("compute_s", "communication_s", "memory_s", "idle_s")


class Section(NamedTuple):
    """A section of the report: its columns after the strategy, the cells of a point's row, its plots and notes."""

    title: str
    columns: tuple[str, ...]
    row: Callable[[Scaling, Row], Optional[list[Cell]]]
    plots: tuple[str, ...]
    note: str
    otherwise: str = ""  # for points without itwinai's fraction

    def notes(self, scaling: Scaling) -> Iterator[str]:
        """Return notes on these numbers."""
        known = {value is not None for value in scaling.points[self.columns[-1]]} if self.otherwise else {True}
        if True in known:
            yield self.note
        if False in known and any(value is not None for value in scaling.points["compute_s"]):
            yield self.otherwise


SECTIONS = (
    Section(
        "Epoch Time",
        ("global_world_size", "avg_epoch_time", "interval", "speedup", "efficiency", "runs"),
        _epochs,
        ("absolute_epoch_time", "relative_epoch_time_speedup"),
        "avg_epoch_time is the median over epochs and runs, without each run's first epoch;\n"
        "interval is its 95 % confidence interval.",
    ),
    Section(
        "GPU",
        ("global_world_size", "total_energy_wh", "utilization", "runs"),
        _gpus,
        ("gpu_energy_plot", "utilization_plot"),
        "total_energy_wh is that of one run, the median of repeats; it is never added up.",
    ),
    Section(
        "Computation",
        ("num_gpus", "computation_fraction"),
        lambda scaling, point: _fraction(point, "computation_fraction", _PARTS),
        ("computation_vs_other_plot",),
        WARNING,
        "For runs without itwinai's averages, computation_fraction is the share of computation in a step,\n"
        "as 'marey breakdown' measures it.",
    ),
    Section(
        "Communication",
        ("num_gpus", "computation_vs_communication"),
        lambda scaling, point: _fraction(point, "computation_vs_communication", _PARTS[:2]),
        ("computation_vs_communication_plot",),
        "computation_vs_communication is the share of computation in both, by itwinai's rule of\n"
        "names, which misses NCCL's kernels of today.",
        "For runs without itwinai's averages, it is computation against exposed communication,\n"
        "as 'marey breakdown' measures them.",
    ),
)


class NothingFound(Failure):
    """The source has no measured runs."""


def scalability_report(given: Namespace) -> int:
    """Print the report, and write its plots."""
    sections = SECTIONS if given.include_communication else SECTIONS[:-1]
    if given.run_ids and not given.log_dir:
        raise Failure("--run-ids needs --log-dir; select the runs of a store with --run-names")
    if given.plot_file_suffix != ".svg":
        say(f"plots are written as .svg, not as {given.plot_file_suffix}: for any browser")
    try:
        scaling = _read(given)
    except NothingFound as nothing:
        for section in sections:
            print(f"\n########## {section.title} Report ##########\nNo {section.title} Data Found")
        raise Failure(str(nothing)) from nothing
    os.makedirs(given.plot_dir, exist_ok=True)
    n_plots = sum(_show(scaling, section, given) for section in sections)
    sys.stdout.flush()
    say(f"wrote {n_plots} plots into {shlex.quote(given.plot_dir)}")
    for note in [] if given.no_warnings else scaling.notes:
        say(note)
    return 0


def _read(given: Namespace) -> Scaling:
    from marey.itwinai import _mlflow

    try:
        if given.log_dir:
            names = given.run_ids.split(",") if given.run_ids else [""]
            return scale(*(os.path.join(given.log_dir, name) for name in names if name or not given.run_ids))
        if not given.tracking_uri:
            say("--tracking-uri is empty: the store is the current folder")
        names = [name for name in given.run_names.split(",") if name] if given.run_names else []
        with tempfile.TemporaryDirectory(prefix="marey-mlflow-") as folder:
            path = os.path.join(folder, "runs.csv")
            if _mlflow.write(given.tracking_uri, path, given.experiment_name, names) == 0:
                raise NothingFound(_mlflow.nothing_in(given.tracking_uri, given.experiment_name))
            return scale((None, path, "MLflow"))
    except MareyError as error:
        if str(error).startswith("MAREY_EFORMAT"):
            raise NothingFound(sentence_of(error)) from error
        raise


def _show(scaling: Scaling, section: Section, given: Namespace) -> int:
    """Print a section. Returns the number of plots written."""
    print(f"\n########## {section.title} Report ##########")
    made = [(point, section.row(scaling, point)) for point in scaling.points]
    rows = [[point["strategy"], point["workers"], *cells] for point, cells in made if cells is not None]
    if not rows:
        print(f"No {section.title} Data Found")
        return 0
    print(draw(("strategy", *section.columns), rows), end="")
    for sentence in [] if given.no_warnings else section.notes(scaling):
        print(sentence)
    return sum(_write_plot(scaling, given.plot_dir, name) for name in section.plots)


def _write_plot(scaling: Scaling, folder: str, name: str) -> bool:
    try:
        svg = scaling.picture(name)
    except MareyError as error:
        if str(error).startswith("MAREY_EFORMAT"):  # the runs do not have the data
            return False
        raise
    with replacing(os.path.join(folder, f"{name}.svg"), encoding="utf-8") as file:
        file.write(svg)
    return True


def sentence_of(error: MareyError) -> str:
    """Return the message without the leading status."""
    return re.sub(r"^MAREY_\w+: ", "", str(error))


# ---- stacks of py-spy ----


def py_spy_report(given: Namespace) -> int:
    """Print innermost frames, each with the nearest library frame around it, or a table of `marey report`."""
    from marey._recording import load

    if given.all:
        given.num_rows = "all"
    if given.num_rows != "all" and not (given.num_rows.isascii() and given.num_rows.isdigit() and int(given.num_rows)):
        raise Failure(f"--num-rows must be a positive number or all, not '{given.num_rows}'")
    if given.aggregate_leaf_paths and given.no_aggregate_leaf_paths:
        raise Failure("--aggregate-leaf-paths and --no-aggregate-leaf-paths exclude each other")
    if given.by is not None or given.json or given.csv:
        return _samples(given)
    recording = load(given.file)
    for sentence in [text for text in recording.table("warnings")["text"] if "left out" in text]:
        say(sentence)
    report = recording.report("samples", library=given.library_name, native=True)
    name = "leaf_paths" if given.aggregate_leaf_paths else "leaves"
    leaves, totals, processes = (report[each] for each in (name, "totals", "processes"))
    if len(processes) > 1:
        say(f"samples of {len(processes)} processes are added up; --by process separates them")
    rows = list(leaves) if given.num_rows == "all" else list(leaves)[: int(given.num_rows)]
    print(draw(_FRAME_COLUMNS, [_frame_row(row, totals["samples"][0]) for row in rows]), end="")
    if recording.warnings:
        raise Failure(f"{given.file} is damaged; only the readable part is included")
    return 0


def _samples(given: Namespace) -> int:
    """Make the program print one of its tables."""
    options = ["--samples", "--native", f"--color={given.color}"]
    options.append("--all" if given.num_rows == "all" else f"--limit={given.num_rows}")
    options += [f"--{form}" for form in ("json", "csv") if getattr(given, form)]
    options.append(f"--by={given.by}" if given.by is not None else f"--library={given.library_name}")
    if given.by is None and not given.json:
        options.append(f"--table={'leaf_paths' if given.aggregate_leaf_paths else 'leaves'}")
    return subprocess.run([caller(), "report", *options, "--", given.file], check=False).returncode


_FRAME_COLUMNS = (
    *("name", "path", "line"),
    *("library_function_name", "library_function_path", "library_function_line"),
    "proportion (n)",
)


def _frame_row(row: Row, n_samples: int) -> list[Cell]:
    otherwise = ("(no frames)", "", None, "Not Found", "Not Found", None)
    cells = [row[name] if row[name] is not None else cell for name, cell in zip(_FRAME_COLUMNS, otherwise)]
    return [*cells, f"{100 * row['samples'] / max(n_samples, 1):.2f}% ({row['samples']})"]
