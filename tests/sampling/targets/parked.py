"""Like a training: four Python threads and N waiting C threads, like OpenMP's: parked.py SECONDS N."""

import ctypes
import sys
import threading
import time


def sleeper(end):  # entry
    while time.perf_counter() < end:
        time.sleep(0.01)


def park(n):
    libc = ctypes.CDLL(None)
    for _ in range(n):
        thread = ctypes.c_void_p()
        libc.pthread_create(ctypes.byref(thread), None, ctypes.cast(libc.pause, ctypes.c_void_p), None)


def main(seconds, n):
    park(n)
    end = time.perf_counter() + seconds
    for i in range(3):
        threading.Thread(target=sleeper, args=(end,), name=f"sleeper {i}", daemon=True).start()
    print("ready", flush=True)
    rounds, tick = 0, 0.0
    while time.perf_counter() < end:
        for _ in range(5000):
            rounds += 1
        if time.perf_counter() > tick:
            tick = time.perf_counter() + 0.05
            print("tick", time.perf_counter(), rounds, flush=True)


main(float(sys.argv[1]), int(sys.argv[2]))
