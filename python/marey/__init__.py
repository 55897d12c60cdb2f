"""marey: a low-overhead profiler for training programs.

    import marey

    marey.start("run.marey")
    for step, batch in enumerate(loader):
        with marey.range("step", payload=step):
            with marey.range("forward"):
                loss = model(batch)
            marey.counter("loss", float(loss))
    marey.stop()

    print(marey.load("run.marey").report())

Without a recording open, a range costs next to nothing, so it can stay in the code. `marey run -- python train.py` or
`MAREY=run.marey` record without marey.start(). The command line is `marey`, or `python -m marey`.
"""

from __future__ import annotations

from marey import gpu, profiler
from marey._breakdown import Breakdown, breakdown
from marey._compare import Comparison, FunctionComparison, compare, compare_functions
from marey._diff import Diff, check_deterministic, diff
from marey._doctor import Findings, doctor
from marey._dump_module import DumpHandle
from marey._formats import export_formats, import_formats
from marey._import import import_trace
from marey._iteration import epoch, finish_iteration, iteration, iterations, phase, step
from marey._load_dump import Dump, load_dump
from marey._monitor import TrainingMonitor
from marey._monitor_decorators import current_monitor, measure_gpu_utilization, profile_torch_trainer
from marey._native import (
    MareyError,
    Measurement,
    NVTXRangeWrapper,
    Range,
    RangeError,
    StateError,
    Stopwatch,
    TensorDumper,
    allow_attach,
    counter,
    counts,
    enabled,
    mark,
    pop,
    progress,
    push,
    range,
    recording_path,
    set_rank,
    set_warmup,
)
from marey._native import version as __version__
from marey._plot import plot
from marey._recording import Recording, load, memory_report
from marey._report import Report
from marey._scale import Scaling, scale
from marey._start import get_include, get_library_dir, options_help, reset, start, stop
from marey._stopwatch import StopwatchStats
from marey._table import Table
from marey._torch_operators import operators
from marey.profiler import Profile

# No __getattr__ here: CPython does not specialise attribute loads from a module that has one, and `marey.push` would
# then cost three times what it does.
__all__ = [
    "Breakdown",
    "Comparison",
    "Diff",
    "Dump",
    "DumpHandle",
    "Findings",
    "FunctionComparison",
    "MareyError",
    "Measurement",
    "NVTXRangeWrapper",
    "Profile",
    "Range",
    "RangeError",
    "Recording",
    "Report",
    "Scaling",
    "StateError",
    "Stopwatch",
    "StopwatchStats",
    "Table",
    "TensorDumper",
    "TrainingMonitor",
    "__version__",
    "allow_attach",
    "breakdown",
    "check_deterministic",
    "compare",
    "compare_functions",
    "counter",
    "counts",
    "current_monitor",
    "diff",
    "doctor",
    "enabled",
    "epoch",
    "export_formats",
    "finish_iteration",
    "get_include",
    "get_library_dir",
    "gpu",
    "import_formats",
    "import_trace",
    "iteration",
    "iterations",
    "load",
    "load_dump",
    "mark",
    "measure_gpu_utilization",
    "memory_report",
    "operators",
    "options_help",
    "phase",
    "plot",
    "pop",
    "profile_torch_trainer",
    "profiler",
    "progress",
    "push",
    "range",
    "recording_path",
    "reset",
    "scale",
    "set_rank",
    "set_warmup",
    "start",
    "step",
    "stop",
]
