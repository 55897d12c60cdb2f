"""Three functions with known shares of time, 70, 20 and 10 % by default; prints their times."""

import sys
import time


def seventy(share):
    end = time.perf_counter() + share
    while time.perf_counter() < end:
        pass


def twenty(share):
    end = time.perf_counter() + share
    while time.perf_counter() < end:
        pass


def ten(share):
    end = time.perf_counter() + share
    while time.perf_counter() < end:
        pass


def main(seconds):
    print("ready", flush=True)
    took = [0.0, 0.0, 0.0]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        t0 = time.perf_counter()
        seventy(0.0007)
        t1 = time.perf_counter()
        twenty(0.0002)
        t2 = time.perf_counter()
        ten(0.0001)
        t3 = time.perf_counter()
        took[0] += t1 - t0
        took[1] += t2 - t1
        took[2] += t3 - t2
        if took[0] + took[1] + took[2] > 0.05:
            print("took", *took, flush=True)
            took = [0.0, 0.0, 0.0]


main(float(sys.argv[1]))
