"""Events of recordings and traces as tables in memory.

They come from the SQLite export, or from the CSV export in builds without SQLite. CSV lines lack the parent of a range,
so it is derived from their order. If ranges of one thread overlap without nesting, as in some imported traces, their
parents can differ from those in the SQLite export.
"""

from __future__ import annotations

import contextlib
import csv
import os
import sqlite3
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Optional

from marey.itwinai._files import Path

if TYPE_CHECKING:
    from marey._recording import Recording

_SCHEMA = """
CREATE TABLE process(id INTEGER PRIMARY KEY, rank, world_size, host, run_id, first_ns, last_ns, has_streams);
CREATE TABLE site(id INTEGER PRIMARY KEY, name, category);
CREATE TABLE range(id INTEGER PRIMARY KEY, parent, process, site, start_ns, depth, correlation);
CREATE TABLE gpu_work(process, kind, device, site, duration_ns, correlation);
CREATE TABLE launch(process, correlation, range, PRIMARY KEY(process, correlation));
CREATE TABLE reading(process, domain, at_ns, value);
CREATE TABLE epoch(process, number, duration_ns);
"""
_COPY = """
INSERT INTO process SELECT id, rank, world_size, host, run_id, first_ns, last_ns,
 id IN (SELECT process FROM exported.stream) FROM exported.process;
INSERT INTO site SELECT id, name, category FROM exported.site;
INSERT INTO range SELECT r.id, r.parent, t.process, r.site, r.start_ns, r.depth, NULL
 FROM exported.range r JOIN exported.thread t ON t.id = r.thread;
INSERT INTO gpu_work SELECT s.process, w.kind, s.device, w.site, w.duration_ns, w.correlation
 FROM exported.gpu_work w JOIN exported.stream s ON s.id = w.stream;
INSERT INTO launch SELECT r.process, l.correlation, min(l.range)
 FROM exported.launch l JOIN main.range r ON r.id = l.range GROUP BY r.process, l.correlation;
INSERT INTO reading SELECT process, domain, at_ns, value FROM exported.counters WHERE category = 'energy';
INSERT INTO epoch SELECT process, number, duration_ns FROM exported.epoch;
"""
# The outermost range if several have the same correlation.
_LAUNCHES = (
    "INSERT OR IGNORE INTO launch SELECT process, correlation, id FROM range WHERE correlation <> ''"
    " ORDER BY start_ns, depth"
)
_GPU_WORK = {"kernel", "copy", "set", "annotation"}
_FORMULA = ("'=", "'+", "'-", "'@", "'\t", "'\r")

Event = dict[str, str]


@contextlib.contextmanager
def database(recordings: Sequence[Path]) -> Iterator[sqlite3.Connection]:
    """Open the events of recordings or traces as a database in memory."""
    from marey import _tools, load

    recording = load(recordings)
    with contextlib.closing(sqlite3.connect(":memory:")) as events:
        events.row_factory = sqlite3.Row
        events.executescript(_SCHEMA)
        if any(known["name"] == "sqlite" and not known["missing"] for known in _tools.export_formats):
            _copy_export(recording, events)
        else:
            _Tables(recording, events).fill()
            events.execute(_LAUNCHES)
        yield events


def _copy_export(recording: Recording, events: sqlite3.Connection) -> None:
    with tempfile.TemporaryDirectory(prefix="marey-itwinai-") as folder:
        path = os.path.join(folder, "events.db")
        recording.export("sqlite", path)
        events.execute("ATTACH ? AS exported", [path])
        events.executescript(_COPY)
        events.execute("DETACH exported")


def _read_csv(recording: Recording) -> Iterator[Event]:
    with tempfile.TemporaryDirectory(prefix="marey-itwinai-") as folder:
        path = os.path.join(folder, "events.csv")
        recording.export("csv", path)
        limit = csv.field_size_limit(sys.maxsize)  # arguments of an event may be long
        try:
            with open(path, newline="", encoding="utf-8", errors="replace") as file:
                yield from csv.DictReader(file)
        finally:
            csv.field_size_limit(limit)


def _text(cell: str) -> str:
    """Remove the apostrophe that prevents spreadsheets from running a formula."""
    return cell[1:] if cell.startswith(_FORMULA) else cell


class _Tables:
    def __init__(self, recording: Recording, events: sqlite3.Connection) -> None:
        self._recording = recording
        self._events = events
        self._processes = recording._native.processes()
        self._sites: dict[tuple[str, str], int] = {}
        # For each thread and depth, ranges that ended and whose parent is still open.
        self._ended: dict[tuple[str, ...], list[list[int]]] = defaultdict(list)
        self._n_ranges = 0
        self._parents: list[tuple[int, int]] = []

    def fill(self) -> None:
        self._add_processes()
        place, number = -1, ""
        unended: list[Event] = []
        for event in _read_csv(self._recording):
            if event["process"] != number:  # processes without events have no lines
                number = event["process"]
                place = self._find_process(place + 1, int(event["pid"]))
            event["process"] = str(place)
            is_unended = event["kind"] == "range" and not event["duration_ns"]
            if unended and not (is_unended and _thread(event) == _thread(unended[0])):
                self._add_unended(unended)
            if is_unended:
                unended.append(event)
            else:
                self._add(event, place)
        self._add_unended(unended)
        sites = ((number, *site) for site, number in self._sites.items())
        self._events.executemany("INSERT INTO site VALUES(?, ?, ?)", sites)
        self._events.executemany("UPDATE range SET parent = ? WHERE id = ?", self._parents)

    def _add_processes(self) -> None:
        is_wall_clock = len({process["host"] for process in self._processes}) > 1  # as in the export
        for i, process in enumerate(self._processes):
            shift = process["mono_to_unix_ns"] if is_wall_clock else 0
            window = [ns + shift if process["has_events"] else None for ns in (process["first_ns"], process["last_ns"])]
            ranks = [value if value >= 0 else None for value in (process["rank"], process["world_size"])]
            self._insert("process", i, *ranks, process["host"], process["run_id"], *window, process["has_streams"])

    def _find_process(self, first: int, pid: int) -> int:
        for i in range(first, len(self._processes)):
            if self._processes[i]["pid"] == pid and self._processes[i]["has_events"]:
                return i
        raise RuntimeError(f"the export has events of process {pid}, which the recording does not have")

    def _insert(self, table: str, *values: object) -> None:
        self._events.execute(f"INSERT INTO {table} VALUES({', '.join('?' * len(values))})", values)

    def _site(self, event: Event) -> int:
        """Return a site's id, in the order of first events."""
        site = (_text(event["name"]) or "(unnamed)", _text(event["category"]))
        return self._sites.setdefault(site, len(self._sites) + 1)

    def _add(self, event: Event, place: int) -> None:
        kind = event["kind"]
        if kind == "range":
            self._add_range(event)
        elif kind in _GPU_WORK:
            times = (int(event["duration_ns"]), event["correlation"])
            self._insert("gpu_work", place, kind, int(event["device"]), self._site(event), *times)
        elif kind == "counter" and event["category"] == "energy":
            domain = self._processes[place]["energy_domains"].get(_text(event["name"]))
            value = float(event["value"]) if event["value"] else None
            self._insert("reading", place, domain, int(event["start_ns"]), value)
        elif kind == "epoch":
            duration: Optional[int] = int(event["duration_ns"]) if event["duration_ns"] else None
            self._insert("epoch", place, int(event["value"]), duration)

    def _add_range(self, event: Event) -> None:
        """A range's line follows the lines of ranges inside it. Ranges that outlive their parent move up."""
        depth, ended = int(event["depth"]), self._ended[_thread(event)]
        while len(ended) < depth + 2:
            ended.append([])
        self._n_ranges += 1
        self._parents += [(self._n_ranges, child) for child in ended.pop(depth + 1)]
        ended[depth].append(self._n_ranges)
        about = (int(event["process"]), self._site(event), int(event["start_ns"]), depth, event["correlation"])
        self._insert("range", self._n_ranges, None, *about)

    def _add_unended(self, events: list[Event]) -> None:
        """Ranges still open at the end of a recording have their lines in reverse order, outermost first."""
        for event in sorted(events, key=lambda event: -int(event["depth"])):
            self._add_range(event)
        events.clear()


def _thread(event: Event) -> tuple[str, ...]:
    return (event["process"], event["tid"], event["thread"])
