"""A program whose main thread mostly waits for a lock that another thread holds."""

import sys
import threading
import time


def keep(lock):
    while True:
        time.sleep(0.01)
        if lock.locked():
            lock.release()


def take(lock):
    lock.acquire()  # planted


def compute(n):
    return sum(i * i for i in range(n))


def main(seconds):
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=keep, args=(lock,), name="keeper", daemon=True).start()
    print("ready", flush=True)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        take(lock)
        compute(1000)


main(float(sys.argv[1]))
