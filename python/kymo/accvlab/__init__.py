"""The names of ACCV-Lab's optim_test_tools, for programs written for it: change the import, and nothing else.

    from kymo.accvlab import NVTXRangeWrapper, Stopwatch, TensorDumper

They are kymo's own. This TensorDumper writes ACCV-Lab's layout by default; kymo.TensorDumper is not changed by it.
"""

from __future__ import annotations

from kymo._native import AccvlabTensorDumper as TensorDumper
from kymo._native import NVTXRangeWrapper, Stopwatch
from kymo._native import version as __version__

__all__ = ["NVTXRangeWrapper", "Stopwatch", "TensorDumper", "__version__"]
