"""Two recursions of 20 calls, one after the other: whole stacks change every few microseconds."""

import sys
import time

DEPTH = 20


def left(n):
    if n > 1:
        left(n - 1)


def right(n):
    if n > 1:
        right(n - 1)


def main(seconds):
    print("ready", flush=True)
    rounds, end = 0, time.perf_counter() + seconds
    tick = 0.0
    while time.perf_counter() < end:
        for _ in range(200):
            left(DEPTH)
            right(DEPTH)
        rounds += 200
        if time.perf_counter() > tick:
            tick = time.perf_counter() + 0.05
            print("tick", time.perf_counter(), rounds, flush=True)


main(float(sys.argv[1]))
