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

from kymo._compare import Comparison, FunctionComparison, compare, compare_functions
from kymo._doctor import Findings, doctor
from kymo._native import (
    KymoError,
    NVTXRangeWrapper,
    Range,
    RangeError,
    StateError,
    counter,
    counts,
    enabled,
    mark,
    pop,
    push,
    range,
    recording_path,
    set_rank,
)
from kymo._native import version as __version__
from kymo._recording import Recording, load
from kymo._start import get_include, get_library_dir, options_help, reset, start, stop
from kymo._table import Table

# No __getattr__ here: CPython does not specialise attribute loads from a module that has one, and `kymo.push` would
# then cost three times what it does.
__all__ = [
    "Comparison",
    "Findings",
    "FunctionComparison",
    "KymoError",
    "NVTXRangeWrapper",
    "Range",
    "RangeError",
    "Recording",
    "StateError",
    "Table",
    "__version__",
    "compare",
    "compare_functions",
    "counter",
    "counts",
    "doctor",
    "enabled",
    "get_include",
    "get_library_dir",
    "load",
    "mark",
    "options_help",
    "pop",
    "push",
    "range",
    "recording_path",
    "reset",
    "set_rank",
    "start",
    "stop",
]
