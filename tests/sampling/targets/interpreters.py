"""A second interpreter in a separate thread, if supported; both compute."""

import sys
import threading
import time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

TEXT = """
import time
def inside(end):
    while time.perf_counter() < end:
        time.sleep(0.0005)
inside(%f)
"""


def second(end):
    interpreters.run_string(interpreters.create(), TEXT % end)


def outside(end):
    while time.perf_counter() < end:
        time.sleep(0.0005)  # up to 3.11 a computing interpreter does not notice another one's request for the lock


def main(seconds):
    end = time.perf_counter() + seconds
    threading.Thread(target=second, args=(end,), name="second", daemon=True).start()
    time.sleep(0.1)
    print("ready", flush=True)
    outside(end)


main(float(sys.argv[1]))
