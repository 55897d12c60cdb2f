"""A generated function of 3,000 lines that spends its time on line 2,990."""

import sys
import time

LINES = ["def long(seconds, n=0):"]
LINES += [f"    n += {i}" for i in range(2, 2990)]
LINES += ["    while clock() < seconds: n += 1"]
LINES += ["    n += 1" for _ in range(2991, 3001)]


def main(seconds):
    scope = {"clock": time.perf_counter}
    exec(compile("\n".join(LINES), "<long>", "exec"), scope)
    print("ready", flush=True)
    scope["long"](time.perf_counter() + seconds)


main(float(sys.argv[1]))
