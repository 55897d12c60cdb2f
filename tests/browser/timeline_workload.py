"""A small program with one of everything that a timeline shows; test_perfetto_ui.py records it once per rank.

Loaders prepare batches on separate threads, some transfers overlap on an event loop and one ends on another thread than
it began on, a child process computes, and names and payloads have difficult values for viewers.
"""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import threading
import time

import marey
from marey import _native

STEPS = 5
ODD_NAMES = ['say "hi"', "<b>bold</b> & co", "two\nlines", "übergrößen 数据 🚀", r"C:\new", "x" * 300]
ODD_PAYLOADS = [0, -1, 2**53 + 1, -(2**63), 2**64 - 1, 0.1, -2.5e300, float("nan"), "", 'a "quoted" <b>text</b>,\n数']


def busy(microseconds: int) -> None:
    """Take some time, without sleep, whose ranges would all look the same."""
    end = time.perf_counter_ns() + microseconds * 1000
    while time.perf_counter_ns() < end:
        pass


def name_thread(name: str) -> None:
    """Set the kernel's thread name, which marey reads; Python does it from 3.14 on."""
    PR_SET_NAME = 15
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def load_batches(loader: int) -> None:
    """A loader's thread: batches, and how many are waiting."""
    name_thread(f"loader {loader}")
    first = 3 * loader
    for batch in range(first, first + 3):
        with marey.range("load batch", category="data", payload=batch):
            busy(50)
            with marey.range("decode"):
                busy(300)
        marey.counter("batches waiting", batch - first)


def train(steps: int) -> None:
    for step in range(steps):
        with marey.range("step", category="train", color="blue", payload=step):
            with marey.range("forward", category="model"):
                busy(200)
            with marey.range("backward", category="model"):
                busy(400)
            marey.counter("loss", 1 / (step + 1))
        marey.mark("step done", payload=step)


@marey.range("transfer", category="network")
async def transfer(milliseconds: int) -> None:
    await asyncio.sleep(milliseconds / 1000)


async def transfer_all() -> None:
    """Three transfers, each within the one before it, and one that crosses the end of another."""
    await asyncio.gather(transfer(9), transfer(6), transfer(3))
    crossing = asyncio.create_task(transfer(4))
    await asyncio.sleep(0.002)
    await asyncio.gather(crossing, transfer(4))


def hand_over() -> None:
    """An async range that another thread ends."""

    def receive() -> None:
        name_thread("receiver")
        _native.async_end(handle)

    handle = _native.async_begin(marey.range("hand over"))
    receiver = threading.Thread(target=receive)
    receiver.start()
    receiver.join()


def odd_texts() -> None:
    for name in ODD_NAMES:
        with marey.range(name):
            marey.mark(name)
    for i, payload in enumerate(ODD_PAYLOADS):
        with marey.range(f"payload {i}", payload=payload):
            pass
    marey.counter("zigzag", -1.5)
    marey.counter("zigzag", 3e9)
    marey.counter("diverged", float("inf"))
    marey.counter("diverged", float("nan"))


def child() -> None:
    with marey.range("in the child"):
        train(2)


def main() -> None:
    loaders = [threading.Thread(target=load_batches, args=(i,)) for i in range(2)]
    for loader in loaders:
        loader.start()
    train(STEPS)
    for loader in loaders:
        loader.join()
    asyncio.run(transfer_all())
    hand_over()
    odd_texts()
    worker = multiprocessing.get_context("fork").Process(target=child)
    worker.start()
    worker.join()
    marey.push("never ends")


if __name__ == "__main__":
    main()
