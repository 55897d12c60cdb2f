"""A driver that runs commands and waits for them."""

import subprocess
import sys

for i in range(int(sys.argv[1])):
    words = ["sort", "--parallel=1", "-R", "--random-source=/dev/zero"]
    lines = "\n".join(str((j * 7919 + i) % 100_003) for j in range(20_000))
    done = subprocess.run(words, input=lines, capture_output=True, text=True, check=True)
print(len(done.stdout))
