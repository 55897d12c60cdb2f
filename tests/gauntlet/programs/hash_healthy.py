"""Checksums of large blocks."""

import hashlib
import sys

data = bytes(range(256)) * 40_000
digest = b""
for i in range(int(sys.argv[1])):
    digest = hashlib.new(sys.argv[2], digest + data).digest()
print(digest.hex())
