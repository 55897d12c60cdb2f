"""The names of ACCV-Lab's optim_test_tools, for programs written for it: change the import, and nothing else.

    from kymo.accvlab import NVTXRangeWrapper, Stopwatch, TensorDumper

They are kymo's own. Importing this module makes ACCV-Lab's the layout that TensorDumper.enable() writes by default.
"""

from __future__ import annotations

from kymo import _dump_state
from kymo._native import NVTXRangeWrapper, Stopwatch, TensorDumper
from kymo._native import version as __version__

__all__ = ["NVTXRangeWrapper", "Stopwatch", "TensorDumper", "__version__"]

_dump_state.State.default_layout = "accvlab"
