"""A stopwatch shared by several parts of a program, as if each were in a separate file.

    python examples/stopwatch.py

The first line below is the only one that differs from a program written for ACCV-Lab's Stopwatch.
"""

import math
import time

from marey import Stopwatch  # was: from accvlab.optim_test_tools import Stopwatch

# ---- the main program decides whether anything is measured ----


def main() -> None:
    stopwatch = Stopwatch()
    stopwatch.enable(5, 2, False)  # 5 iterations of warm-up, a report after every 2 measured ones, no waiting for a GPU
    stopwatch.set_cpu_usage_meas_name("meas1")

    stopwatch.start_one_time_measurement("complete_run")
    stopwatch.start_one_time_measurement("preparation")
    numbers = prepare()
    stopwatch.end_one_time_measurement("preparation")

    for i in range(16):
        stopwatch.start_meas("meas1")  # ended by work(), through the same Stopwatch()
        work(numbers)
        if i % 3 == 0:
            sometimes()
        stopwatch.finish_iter()

    stopwatch.end_one_time_measurement("complete_run")
    print("Final measurement:")
    stopwatch.print_eval_times()


# ---- another file ----


def prepare() -> list[float]:
    time.sleep(0.01)
    return [math.sqrt(i) for i in range(20000)]


def work(numbers: list[float]) -> None:
    stopwatch = Stopwatch()
    sum(numbers)
    stopwatch.end_meas("meas1")
    for _ in range(2):
        stopwatch.start_meas("meas2")
        max(numbers)
        stopwatch.end_meas("meas2")


# ---- and one more ----


def sometimes() -> None:
    Stopwatch().start_meas("meas3")
    time.sleep(0.002)
    Stopwatch().end_meas("meas3")


if __name__ == "__main__":
    main()
