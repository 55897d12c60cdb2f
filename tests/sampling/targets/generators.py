"""Generators that delegate to others: their frames are in heap objects, outside the thread's stack."""

import sys
import time


def inner_a():
    while True:
        yield 1


def inner_b():
    while True:
        yield 2


def outer_a():
    yield from inner_a()


def outer_b():
    for value in inner_b():
        yield value + 1


def main(seconds):
    print("ready", flush=True)
    first, second = outer_a(), outer_b()
    rounds, end = 0, time.perf_counter() + seconds
    tick = 0.0
    while time.perf_counter() < end:
        for _ in range(1000):
            next(first)  # -> outer_a
            next(second)  # -> outer_b
        rounds += 1000
        if time.perf_counter() > tick:
            tick = time.perf_counter() + 0.05
            print("tick", time.perf_counter(), rounds, flush=True)


main(float(sys.argv[1]))
