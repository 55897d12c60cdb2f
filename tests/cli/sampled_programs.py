"""Programs to sample from outside: each prints "ready" shortly before it stays in one place."""

from __future__ import annotations

# Its main thread works in spin(), a second one waits in rest().
BUSY = """
import threading, time
def rest():
    time.sleep(600)
def spin():
    while True:
        sum(range(1000))
def main():
    threading.Thread(target=rest, name="rester", daemon=True).start()
    print("ready", flush=True)
    spin()
main()
"""

# All ranks wait for a lock, except the last one, which is still reading.
RANK = """
import os, sys, threading
lock = threading.Lock()
def read():
    print("ready", flush=True)
    sys.stdin.readline()
def reduce():
    print("ready", flush=True)
    lock.acquire()
def step():
    if int(os.environ["RANK"]) == int(os.environ["WORLD_SIZE"]) - 1:
        read()
    else:
        reduce()
lock.acquire()
step()
"""

# Nothing moves any more, until a line comes.
STUCK = """
import sys
def wait_for_ever():
    print("ready", flush=True)
    sys.stdin.readline()
wait_for_ever()
"""

# A parent that waits, and a child that works.
FAMILY = """
import subprocess, sys
child = subprocess.run([sys.executable, "-c", '''
import time
def child_work():
    end = time.monotonic() + float("SECONDS")
    while time.monotonic() < end:
        pass
child_work()
'''])
sys.exit(5)
"""

# One call into C, for longer than any test.
ONE_LONG_CALL = """
def spin():
    print("ready", flush=True)
    sum(range(10**12))
spin()
"""

# Works briefly, then dies by the signal in its argument.
SHORT_LIFE = """
import os, sys, time
end = time.monotonic() + 0.4
while time.monotonic() < end:
    pass
os.kill(os.getpid(), int(sys.argv[1]))
"""

# Exits with status 9 on a request to end.
ENDS_WITH_9 = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
print("ready", flush=True)
time.sleep(60)
"""
