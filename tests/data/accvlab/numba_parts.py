"""Ranges in compiled code, nested."""

import accvlab.optim_test_tools.numba_nvtx as nvtx
from numba import njit

OUTER = nvtx.register_string("outer")
INNER = nvtx.register_string("inner")


@njit
def compute(x):
    nvtx.range_push(OUTER)
    nvtx.range_push(INNER)
    y = x + 1
    nvtx.range_pop()
    nvtx.range_pop()
    return y


print(compute(41), type(OUTER).__name__)
