"""C functions that call back into Python: each call starts a separate evaluation loop."""

import sys
import time

ITEMS = list(range(20))


def key_a(item):
    return -item


def key_b(item):
    return item


def sort_a():
    return sorted(ITEMS, key=key_a)  # -> key_a


def sort_b():
    return sorted(ITEMS, key=key_b)  # -> key_b


def main(seconds):
    print("ready", flush=True)
    rounds, end = 0, time.perf_counter() + seconds
    tick = 0.0
    while time.perf_counter() < end:
        for _ in range(200):
            sort_a()
            sort_b()
        rounds += 200
        if time.perf_counter() > tick:
            tick = time.perf_counter() + 0.05
            print("tick", time.perf_counter(), rounds, flush=True)


main(float(sys.argv[1]))
