"""A program for report pages: iterations of nested ranges, a counter, marks, a thread, a name that is HTML."""

import threading
import time

from stack_names import HOSTILE

import kymo


def work(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def helper() -> None:
    for _ in range(20):
        with kymo.range("prefetch"):
            time.sleep(0.001)


thread = threading.Thread(target=helper, name="loader")
thread.start()
kymo.set_warmup(2)
for step in kymo.iterations(range(30)):
    with kymo.range("step", category="train", payload=step):
        with kymo.range("forward"):
            work(0.0004)
            with kymo.range(HOSTILE):
                work(0.0002)
        with kymo.range("backward"):
            work(0.0006)
    kymo.counter("loss", 1 / (step + 1))
    if step % 10 == 0:
        kymo.mark("checkpoint", payload=step)
thread.join()
kymo.push("never ends")
