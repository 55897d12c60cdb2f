"""N threads that fight for the interpreter, each with a share that it counts itself: gil.py SECONDS N."""

import sys
import threading
import time


def fight(i, counts, end):  # entry
    while time.perf_counter() < end:
        for _ in range(1000):
            counts[i] += 1


def main(seconds, n):
    counts = [0] * n
    end = time.perf_counter() + seconds
    threads = [threading.Thread(target=fight, args=(i, counts, end), name=f"fighter {i}") for i in range(n)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    while time.perf_counter() < end:
        time.sleep(0.05)
        print("tick", time.perf_counter(), sum(counts), flush=True)
    for thread in threads:
        thread.join()
    print("counts", *counts, flush=True)


main(float(sys.argv[1]), int(sys.argv[2]))
