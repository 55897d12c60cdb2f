"""N children that mostly wait, like DataLoader workers: workers.py SECONDS N."""

import os
import sys
import time


def work(end):
    while time.perf_counter() < end:
        pass


def child(end):
    while time.perf_counter() < end:
        work(time.perf_counter() + 0.0002)
        time.sleep(0.05)


def main(seconds, n):
    end = time.perf_counter() + seconds
    parent = os.getpid()
    for _ in range(n):
        if os.fork() == 0:
            child(end)
            os._exit(0)
    print("ready", parent, flush=True)
    time.sleep(seconds)


main(float(sys.argv[1]), int(sys.argv[2]))
