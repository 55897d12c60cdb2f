"""The three helpers of ACCV-Lab's optim_test_tools, with one changed import.

    python examples/accvlab_import.py [FOLDER]

Dumps are then written in that package's layout, so its own readers can read them.
"""

import sys
import tempfile

import numpy as np

from marey.accvlab import NVTXRangeWrapper, Stopwatch, TensorDumper  # was: from accvlab.optim_test_tools import ...


def step(i: int) -> None:
    NVTXRangeWrapper().range_push("step")
    Stopwatch().start_meas("step")
    TensorDumper().add_tensor_data("x", np.arange(4.0) * i)
    Stopwatch().end_meas("step")
    NVTXRangeWrapper().range_pop("step")
    Stopwatch().finish_iter()
    TensorDumper().dump()


def main(folder: str) -> None:
    Stopwatch().enable(1, None, False)
    NVTXRangeWrapper().enable(sync_on_push=False, sync_on_pop=False, keep_track_of_range_order=True)
    TensorDumper().enable(folder)
    for i in range(4):
        step(i)
    TensorDumper().disable()
    print(Stopwatch().stats().iterations)
    print(Stopwatch().to_csv())


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as name:
            main(name)
