"""Children of LIFE seconds each, forked one after another; each prints its pid, its birth and its end (monotonic).

children.py SECONDS LIFE [AT_ONCE]
"""

import os
import sys
import time


def child_work(life):
    end = time.perf_counter() + life
    while time.perf_counter() < end:
        pass


def one(life):
    pid = os.fork()
    if pid == 0:
        born = time.clock_gettime(time.CLOCK_MONOTONIC)
        child_work(life)
        line = f"child {os.getpid()} {born:.6f} {time.clock_gettime(time.CLOCK_MONOTONIC):.6f}\n"
        os.write(1, line.encode())
        os._exit(0)
    return pid


def main(seconds, life, at_once):
    print("ready", flush=True)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pids = [one(life) for _ in range(at_once)]
        for pid in pids:
            os.waitpid(pid, 0)


main(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
