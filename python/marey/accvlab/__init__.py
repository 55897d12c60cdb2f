"""The names of ACCV-Lab's optim_test_tools, for programs written for it: change the import, and nothing else.

    from marey.accvlab import NVTXRangeWrapper, Stopwatch, TensorDumper

They are marey's own. This TensorDumper writes ACCV-Lab's layout by default; marey.TensorDumper is not changed by it.
"""

from __future__ import annotations

from marey._native import AccvlabTensorDumper as TensorDumper
from marey._native import NVTXRangeWrapper, Stopwatch
from marey._native import version as __version__

__all__ = ["NVTXRangeWrapper", "Stopwatch", "TensorDumper", "__version__"]
