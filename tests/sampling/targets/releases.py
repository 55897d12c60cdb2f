"""Work that releases the GIL: hashing in two threads, with a third one computing: releases.py SECONDS."""

import hashlib
import sys
import threading
import time


def hashes(data, end):  # entry
    while time.perf_counter() < end:
        hashlib.sha256(data).digest()


def main(seconds):
    data, end = bytes(1 << 20), time.perf_counter() + seconds
    for i in range(2):
        threading.Thread(target=hashes, args=(data, end), name=f"hasher {i}", daemon=True).start()
    print("ready", flush=True)
    rounds, tick = 0, 0.0
    while time.perf_counter() < end:
        for _ in range(5000):
            rounds += 1
        if time.perf_counter() > tick:
            tick = time.perf_counter() + 0.05
            print("tick", time.perf_counter(), rounds, flush=True)


main(float(sys.argv[1]))
