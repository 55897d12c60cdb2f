"""Ranges across parts of a program, with all checks on; `forget` leaves a range open that the next check finds."""

import sys
import time

import torch
from accvlab.optim_test_tools import NVTXRangeWrapper

if torch.cuda.is_available():
    torch.cuda.synchronize()

NVTXRangeWrapper().enable(sync_on_push=True, sync_on_pop=True, keep_track_of_range_order=True)


def begin():
    NVTXRangeWrapper().range_push("outer")
    time.sleep(0.001)


def work():
    wrapper = NVTXRangeWrapper()
    wrapper.range_push("inner")
    wrapper.range_pop()
    if "forget" in sys.argv:
        wrapper.range_push("forgotten")


def end():
    NVTXRangeWrapper().range_pop("outer")


def evaluate(iteration):
    wrapper = NVTXRangeWrapper()
    if iteration % 3 == 2:
        wrapper.range_push("sometimes")
        wrapper.range_pop()
    wrapper.range_push("inner")
    wrapper.range_pop()


for i in range(16):
    begin()
    work()
    end()
    evaluate(i)
print("no error", NVTXRangeWrapper().is_enabled)
