"""Two short calls, one after the other: a stack changes every 50 ns or so. Prints how often it went round."""

import sys
import time


def leaf_a(n):
    return n + 1


def leaf_b(n):
    return n - 1


def a(n):
    return leaf_a(n)


def b(n):
    return leaf_b(n)


def main(seconds):
    print("ready", flush=True)
    n, rounds, end = 0, 0, time.perf_counter() + seconds
    tick = 0.0
    while time.perf_counter() < end:
        for _ in range(2000):
            n = a(n)
            n = b(n)
        rounds += 2000
        if time.perf_counter() > tick:
            tick = time.perf_counter() + 0.05
            print("tick", time.perf_counter(), rounds, flush=True)


main(float(sys.argv[1]))
