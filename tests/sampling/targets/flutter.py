"""Alternating asyncio tasks, each two coroutines deep when it runs."""

import asyncio
import sys
import time


async def step_a(n):
    for _ in range(20):
        n += 1
    await asyncio.sleep(0)
    return n


async def step_b(n):
    for _ in range(20):
        n -= 1
    await asyncio.sleep(0)
    return n


async def work_a(end):  # entry
    n = 0
    while time.perf_counter() < end:
        n = await step_a(n)


async def work_b(end):  # entry
    n = 0
    while time.perf_counter() < end:
        n = await step_b(n)


async def main(seconds):  # entry
    print("ready", flush=True)
    end = time.perf_counter() + seconds
    await asyncio.gather(work_a(end), work_b(end), work_a(end), work_b(end))


asyncio.run(main(float(sys.argv[1])))
