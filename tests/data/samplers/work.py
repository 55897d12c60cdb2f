"""Something to sample: a loop, a thread that waits, a child that works."""

import hashlib
import multiprocessing
import sys
import threading
import time


class Model:
    def forward(self, n: int) -> list[int]:
        return [inner(i) for i in range(n)]


def inner(i: int) -> int:
    total = 0
    for k in range(200):
        total += k * i
    return total


def load(stop: threading.Event) -> None:
    while not stop.wait(0.003):
        pass


def child(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2000)


def main(seconds: float) -> None:
    stop = threading.Event()
    threading.Thread(target=load, args=(stop,), name="loader; one", daemon=True).start()
    worker = multiprocessing.get_context("spawn").Process(target=child, args=(seconds,))
    worker.start()
    end = time.monotonic() + seconds
    model = Model()
    while time.monotonic() < end:
        model.forward(50)
    stop.set()
    worker.join()


if __name__ == "__main__":
    main(float(sys.argv[1]))
