"""Functions that are compiled, called and discarded continuously, so that addresses of code are reused.

made_7 is always called from line 7 of its source, made_8 from line 8, so other lines are errors.
"""

import sys
import time

TEXT = "def made_{i}(end):\n{gap}    while clock() < end: pass\n"


def call(made, i):
    made(time.perf_counter() + 0.0005)


def main(seconds):
    print("ready", flush=True)
    end, rounds, tick = time.perf_counter() + seconds, 0, 0.0
    while time.perf_counter() < end:
        i = 7 + rounds % 40
        scope = {"clock": time.perf_counter}
        exec(compile(TEXT.format(i=i, gap="\n" * (i - 2)), f"<made {i}>", "exec"), scope)
        call(scope[f"made_{i}"], i)
        rounds += 1
        if time.perf_counter() > tick:
            tick = time.perf_counter() + 0.05
            print("tick", time.perf_counter(), rounds, flush=True)


main(float(sys.argv[1]))
