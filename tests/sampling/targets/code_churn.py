"""Functions that are compiled, called and thrown away all the time, so that their code's addresses are used again.

made_7 is always called by line 7 of its own text, made_8 by line 8, so a name with another's line is a wrong answer.
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
