"""Compress blocks of data in threads; zlib releases the interpreter lock."""

import random
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

blocks, workers = int(sys.argv[1]), int(sys.argv[2])
block = random.Random(0).randbytes(500_000) + bytes(500_000)
with ThreadPoolExecutor(workers) as pool:
    sizes = list(pool.map(lambda i: len(zlib.compress(block, 6)), range(blocks)))
print(f"{sum(sizes)} of {blocks * len(block)} bytes")
