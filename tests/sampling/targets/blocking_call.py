"""A program that mostly waits for a response from a socket with a slow peer."""

import socket
import sys
import threading
import time


def answer_late(end):
    while end.recv(1):
        time.sleep(0.01)
        end.send(b"x")


def ask(end):
    end.send(b"?")
    return end.recv(1)  # planted


def compute(n):
    return sum(i * i for i in range(n))


def main(seconds):
    near, far = socket.socketpair()
    threading.Thread(target=answer_late, args=(far,), name="the other end", daemon=True).start()
    print("ready", flush=True)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        ask(near)
        compute(1000)


main(float(sys.argv[1]))
