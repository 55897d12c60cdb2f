"""One busy thread and N that wait for a lock, each 20 calls deep: threads.py SECONDS N."""

import sys
import threading
import time

DEPTH = 20


def wait(gate, n):  # entry
    if n > 1:
        wait(gate, n - 1)
    else:
        gate.acquire()


def main(seconds, n):
    gate = threading.Lock()
    gate.acquire()
    for i in range(n):
        threading.Thread(target=wait, args=(gate, DEPTH), name=f"waiter {i}", daemon=True).start()
    time.sleep(0.2 + n / 500)
    print("ready", flush=True)
    rounds, end = 0, time.perf_counter() + seconds
    tick = 0.0
    while time.perf_counter() < end:
        for _ in range(5000):
            rounds += 1
        if time.perf_counter() > tick:
            tick = time.perf_counter() + 0.05
            print("tick", time.perf_counter(), rounds, flush=True)


main(float(sys.argv[1]), int(sys.argv[2]))
