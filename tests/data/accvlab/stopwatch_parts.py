"""Measurements across parts of a program, which share nothing but the stopwatch."""

import time

from accvlab.optim_test_tools import Stopwatch


def configure():
    Stopwatch().enable(num_warmup_iters=5, print_every_n_iters=2, do_cuda_sync=False)


def prepare():
    stopwatch = Stopwatch()
    stopwatch.set_cpu_usage_meas_name("train")
    stopwatch.start_one_time_measurement("complete_run")
    stopwatch.start_one_time_measurement("preparation")
    time.sleep(0.002)
    stopwatch.end_one_time_measurement("preparation")


def begin_training():
    Stopwatch().start_meas("train")
    sum(i**0.5 for i in range(2000))


def load():
    stopwatch = Stopwatch()
    stopwatch.start_meas("load")
    time.sleep(0.002)
    stopwatch.end_meas("load")


def end_training():
    Stopwatch().end_meas("train")


def evaluate(iteration):
    stopwatch = Stopwatch()
    if iteration % 3 == 2:
        stopwatch.start_meas("evaluate")
        time.sleep(0.001)
        stopwatch.end_meas("evaluate")
    load()  # for the second time in this iteration
    Stopwatch().finish_iter()


configure()
prepare()
for i in range(16):
    begin_training()
    load()
    end_training()
    evaluate(i)
Stopwatch().end_one_time_measurement("complete_run")
print("At the end:")
Stopwatch().print_eval_times()
print(Stopwatch().get_num_nonwarmup_iters_measured(), Stopwatch().is_enabled)
