"""A program for report pages: iterations of nested ranges, a counter, marks, a thread, a name that is HTML."""

import threading
import time

from stack_names import HOSTILE

import marey


def work(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def helper() -> None:
    for _ in range(20):
        with marey.range("prefetch"):
            time.sleep(0.001)


thread = threading.Thread(target=helper, name="loader")
thread.start()
marey.set_warmup(2)
for step in marey.iterations(range(30)):
    with marey.range("step", category="train", payload=step):
        with marey.range("forward"):
            work(0.0004)
            with marey.range(HOSTILE):
                work(0.0002)
        with marey.range("backward"):
            work(0.0006)
    marey.counter("loss", 1 / (step + 1))
    if step % 10 == 0:
        marey.mark("checkpoint", payload=step)
thread.join()
marey.push("never ends")
