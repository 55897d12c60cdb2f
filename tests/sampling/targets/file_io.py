"""A program whose time goes into writing one file again and again."""

import os
import sys
import tempfile
import time


def write_checkpoint(out, block):
    out.seek(0)
    out.write(block)  # planted


def step(n):
    return sum(i * i for i in range(n))


def main(seconds):
    block = os.urandom(1 << 20) * 32
    with tempfile.TemporaryFile(buffering=0) as out:
        print("ready", flush=True)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            write_checkpoint(out, block)
            step(1000)


main(float(sys.argv[1]))
