"""kymo: where does the time of a training program go?

    import kymo

    kymo.start("run.kymo")
    for step, batch in enumerate(loader):
        with kymo.range("step", payload=step):
            with kymo.range("forward"):
                loss = model(batch)
            kymo.counter("loss", float(loss))
    kymo.stop()

    print(kymo.load("run.kymo").report())

Without a recording open, a range costs next to nothing, so it can stay in the code. `kymo run -- python train.py` or
`KYMO=run.kymo` record without kymo.start(). The command line is `kymo`, or `python -m kymo`.
"""

from __future__ import annotations

from kymo import gpu, profiler
from kymo._breakdown import Breakdown, breakdown
from kymo._compare import Comparison, FunctionComparison, compare, compare_functions
from kymo._diff import Diff, check_deterministic, diff
from kymo._doctor import Findings, doctor
from kymo._dump_module import DumpHandle
from kymo._import import import_trace
from kymo._iteration import epoch, finish_iteration, iteration, iterations, phase
from kymo._load_dump import Dump, load_dump
from kymo._monitor import TrainingMonitor
from kymo._monitor_decorators import current_monitor, measure_gpu_utilization, profile_torch_trainer
from kymo._native import (
    KymoError,
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
from kymo._native import version as __version__
from kymo._plot import plot
from kymo._recording import Recording, load, memory_report
from kymo._scale import Scaling, scale
from kymo._start import get_include, get_library_dir, options_help, reset, start, stop
from kymo._stopwatch import StopwatchStats
from kymo._table import Table
from kymo._torch_operators import operators
from kymo.profiler import Profile

# No __getattr__ here: CPython does not specialise attribute loads from a module that has one, and `kymo.push` would
# then cost three times what it does.
__all__ = [
    "Breakdown",
    "Comparison",
    "Diff",
    "Dump",
    "DumpHandle",
    "Findings",
    "FunctionComparison",
    "KymoError",
    "Measurement",
    "NVTXRangeWrapper",
    "Profile",
    "Range",
    "RangeError",
    "Recording",
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
    "finish_iteration",
    "get_include",
    "get_library_dir",
    "gpu",
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
    "stop",
]
