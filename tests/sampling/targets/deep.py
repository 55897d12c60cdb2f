"""One thread, DEPTH calls deep, that spins there: deep.py SECONDS DEPTH. Above 900 calls, in a thread with room."""

import sys
import threading
import time


def spin(seconds):
    print("ready", flush=True)
    rounds, end = 0, time.perf_counter() + seconds
    tick = 0.0
    while time.perf_counter() < end:
        for _ in range(5000):
            rounds += 1
        if time.perf_counter() > tick:
            tick = time.perf_counter() + 0.05
            print("tick", time.perf_counter(), rounds, flush=True)


def down(n, seconds):  # entry
    if n > 1:
        down(n - 1, seconds)
    else:
        spin(seconds)


def main(seconds, depth):
    if depth <= 900:
        down(depth, seconds)
        return
    sys.setrecursionlimit(depth + 1000)
    # Before 3.11 each Python call is also a C call.
    threading.stack_size(64 << 20 if depth < 20000 else 1 << 30)
    thread = threading.Thread(target=down, args=(depth, seconds), name="deep")
    thread.start()
    thread.join()


main(float(sys.argv[1]), int(sys.argv[2]))
