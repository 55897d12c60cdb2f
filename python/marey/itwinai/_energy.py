"""Energy from itwinai's files of GPU power (gpu-energy-data) and of epoch times (epoch-time).

itwinai sums power times the nominal interval, over all repeats. Here each run has a row. Power is integrated by
trapezoids over the indices of its readings, so missing ones do not count as 0 W. If the epochs of the run are known,
their time yields the real interval, which includes the time taken by each reading.
"""

from __future__ import annotations

import math
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Optional

from marey._table import Table
from marey.itwinai._files import EPOCHS, POWER, Cell, Failure, Path, Row, count, make_table, number, read

_MAX_W, _MAX_S = 1e6, 1e9
_MAX_REPEATS = 100  # runs in one file

_RUN_COLUMNS = (
    "run:text, repeat:integer, strategy:text, num_gpus:integer:GPUs, nodes:integer, measured_gpus:integer:measured, "
    "readings:integer, interval_s:number:interval, real_interval_s:number:real, duration_s:number:s, joules:number:J, "
    "plus_minus_j:number:+/-, mean_w:number:mean W, peak_w:number:peak W, utilization:share, epochs:integer, "
    "epoch_time_s:number:s/epoch, joules_per_epoch:number:J/epoch, itwinai_wh:number:itwinai Wh, note:text"
)
_REPEAT_COLUMNS = (
    "strategy:text, num_gpus:integer:GPUs, runs:integer, mean_j:number:mean J, low_j:number:from J, "
    "high_j:number:to J, itwinai_wh:number:itwinai Wh"
)


@dataclass
class Readings:
    """Readings of one GPU, in order."""

    index: list[int] = field(default_factory=list)
    watts: list[float] = field(default_factory=list)
    use: list[float] = field(default_factory=list)

    def steps_w(self) -> float:
        """The integral of power over the index; the first and the last reading extend by half a step."""
        pairs = zip(self.index, self.index[1:], self.watts, self.watts[1:])
        return (self.watts[0] + self.watts[-1]) / 2 + sum((b - a) * (x + y) / 2 for a, b, x, y in pairs)


@dataclass
class Run:
    """Rows with the same folder, strategy and number, whose readings or epochs do not start over."""

    name: str  # folder name; "": none
    strategy: str
    number: int  # number of GPUs; in a file of epochs: of nodes
    repeat: int  # from 0
    gpus: dict[tuple[int, int], Readings] = field(default_factory=lambda: defaultdict(Readings))
    interval_s: float = 0.0
    has_intervals: bool = False  # different ones
    epochs_s: list[float] = field(default_factory=list)
    last_epoch: int = -1

    @property
    def nodes(self) -> int:
        """The number of nodes with readings."""
        return max(node for node, _ in self.gpus) + 1


class Files:
    """Runs of power and runs of epochs, as found in files."""

    def __init__(self, paths: Iterable[Path], in_part: Optional[Callable[[str], None]] = None) -> None:
        """Read all files; see _files.read()."""
        self._runs: dict[tuple[object, ...], Run] = {}
        self.n_dropped = 0
        for path, kind, row in read(paths, EPOCHS, POWER, in_part=in_part):
            self.n_dropped += not (self._take_epoch if kind is EPOCHS else self._take_reading)(_run_of(path), row)

    @property
    def power(self) -> list[Run]:
        """Runs in files of power."""
        return [run for run in self._runs.values() if run.gpus]

    @property
    def epochs(self) -> list[Run]:
        """Runs in files of epoch times."""
        return [run for run in self._runs.values() if not run.gpus]

    def _repeats(self, kind: str, name: str, strategy: str, of: int) -> Iterator[Run]:
        for repeat in range(_MAX_REPEATS):
            yield self._runs.setdefault((kind, name, strategy, of, repeat), Run(name, strategy, of, repeat))

    def _take_reading(self, name: str, row: Row) -> bool:
        strategy, of, index = row["strategy"], count(row, "num_global_gpus"), count(row, "sample_idx")
        watts, interval = number(row, "power", _MAX_W), number(row, "probing_interval", _MAX_S)
        if not strategy or of is None or index is None or watts is None or watts < 0 or not interval or interval < 0:
            return False
        use, place = number(row, "utilization", 100), (count(row, "node_idx") or 0, count(row, "local_rank") or 0)
        for run in self._repeats("power", name, strategy, of):
            gpu = run.gpus[place]
            if gpu.index and index <= gpu.index[-1]:
                continue  # of a later repeat
            run.has_intervals |= run.interval_s not in (0.0, interval)
            run.interval_s = interval
            gpu.index.append(index)
            gpu.watts.append(watts)
            if use is not None and use >= 0:
                gpu.use.append(use)
            return True
        return False

    def _take_epoch(self, name: str, row: Row) -> bool:
        strategy, nodes, epoch = row["name"], count(row, "nodes"), count(row, "epoch_id")
        seconds = number(row, "time", _MAX_S)
        if not strategy or nodes is None or epoch is None or seconds is None or seconds < 0:
            return False
        for run in self._repeats("epochs", name, strategy, nodes):
            if epoch > run.last_epoch:
                run.last_epoch = epoch
                run.epochs_s.append(seconds)
                return True
        return False

    def epochs_of(self, run: Run) -> Optional[Run]:
        """Return the epochs with the run, strategy, repeat and number of nodes of these readings."""
        return self._runs.get(("epochs", run.name, run.strategy, run.nodes, run.repeat))


def _run_of(path: str) -> str:
    """Return the folder of a run: RUN in ".../RUN/gpu-energy-data/ddp_4.csv"."""
    parts = path.split(os.sep)
    name = parts[-3] if len(parts) > 2 else ""
    return "" if name == "scalability-metrics" else name


class Energy:
    """The energy of a run."""

    def __init__(self, run: Run, epochs: Optional[Run]) -> None:
        """Readings must start and end with the training; otherwise the files are not of one run."""
        gpus = list(run.gpus.values())
        duration_s = max(gpu.index[-1] + 1 for gpu in gpus) * run.interval_s
        ratio = sum(epochs.epochs_s) / duration_s if epochs is not None else 0.0
        fits = 0.5 < ratio < 3
        self.run = run
        self.epochs_s = epochs.epochs_s if epochs is not None and fits else []
        self.scale = ratio if fits else 1.0  # real interval / nominal interval
        self.duration_s = duration_s * self.scale
        self.nominal_j = run.interval_s * sum(gpu.steps_w() for gpu in gpus)
        self.joules = self.nominal_j * self.scale
        self.itwinai_wh = run.interval_s * sum(sum(gpu.watts) for gpu in gpus) / 3600

    def row(self) -> list[Cell]:
        """Return its row in the table of runs."""
        run, gpus, n = self.run, list(self.run.gpus.values()), len(self.epochs_s)
        interval_s, mean_w = run.interval_s * self.scale, self.joules / self.duration_s
        use = [value for gpu in gpus for value in gpu.use]
        note = "" if n else "nominal interval: epoch times are unknown"
        if len(gpus) != run.number:
            note = "not all GPUs were measured"
        if run.has_intervals:
            note = "several intervals: the last one is used"
        return [
            run.name,
            run.repeat + 1,
            run.strategy,
            run.number,
            run.nodes,
            len(gpus),
            sum(len(gpu.watts) for gpu in gpus),
            run.interval_s,
            interval_s if n else None,
            self.duration_s,
            self.joules,
            abs(self.joules - self.nominal_j) + mean_w * interval_s,  # half an interval at each end
            mean_w,
            sum(max(gpu.watts) for gpu in gpus),
            statistics.fmean(use) / 100 if use else None,
            n or None,
            statistics.fmean(self.epochs_s) if n else None,
            self.joules / n if n else None,
            self.itwinai_wh,
            note,
        ]


def energy_of_files(paths: Iterable[Path]) -> tuple[Table, Table, int]:
    """Return the tables of runs and of repeats, and the number of ignored rows. Repeats are averaged, not summed."""
    paths = list(paths)
    files = Files(paths)
    runs = [Energy(run, files.epochs_of(run)) for run in files.power]
    if not runs:
        raise Failure(f"{paths[0]} has no readings of GPU power as itwinai 0.3 wrote them (gpu-energy-data/*.csv)")
    groups: dict[tuple[str, int], list[Energy]] = defaultdict(list)
    for each in runs:
        groups[each.run.strategy, each.run.number].append(each)
    repeats: list[list[Cell]] = []
    for key, group in groups.items():
        joules = [each.joules for each in group]
        mean, half = statistics.fmean(joules), _half_interval(joules)
        low_high: list[Cell] = [None, None] if half is None else [mean - half, mean + half]
        repeats.append([*key, len(group), mean, *low_high, sum(each.itwinai_wh for each in group)])
    tables = make_table("runs", _RUN_COLUMNS, (each.row() for each in runs))
    return tables, make_table("repeats", _REPEAT_COLUMNS, repeats), files.n_dropped


def _half_interval(values: list[float]) -> Optional[float]:
    """Half the width of the 95 % confidence interval of the mean; None for a single value."""
    if len(values) < 2:
        return None
    return _t_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def _t_quantile(freedom: int) -> float:
    """The t within which 95 % of Student's distribution lie, by bisection of its closed form."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        term, total = math.cos(angle) if freedom % 2 else 1.0, 0.0
        for k in range(3 if freedom % 2 else 2, freedom + 1, 2):
            total += term
            term *= math.cos(angle) ** 2 * (k - 1) / k
        within = math.sin(angle) * total
        within = 2 / math.pi * (angle + within) if freedom % 2 else within
        low, high = (angle, high) if within < 0.95 else (low, angle)
    return math.sqrt(freedom) * math.tan(low)
