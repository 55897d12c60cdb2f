"""The names of ACCV-Lab's optim_test_tools: programs written for it only change the import.

    from marey.accvlab import NVTXRangeWrapper, Stopwatch, TensorDumper

They are marey's classes, but this TensorDumper writes ACCV-Lab's layout by default; marey.TensorDumper does not.
"""

from __future__ import annotations

from marey._native import AccvlabTensorDumper as TensorDumper
from marey._native import NVTXRangeWrapper, Stopwatch
from marey._native import version as __version__

__all__ = ["NVTXRangeWrapper", "Stopwatch", "TensorDumper", "__version__"]
