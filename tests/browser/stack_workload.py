"""Nested ranges, some slower than others, with names that do harm if they are not treated as text."""

from __future__ import annotations

import sys
import time

from stack_names import HOSTILE

import marey


def spend(us: int) -> None:
    end = time.perf_counter_ns() + us * 1000
    while time.perf_counter_ns() < end:
        pass


def layer(number: int, us: int) -> None:
    with marey.range(f"layer {number}"):
        with marey.range("attention"):
            spend(us)
        with marey.range("mlp"):
            spend(us // 2)


def step(slow: bool) -> None:
    with marey.range("step"):
        with marey.range("forward"):
            layer(11, 100)
            layer(12, 400 if slow else 100)
        with marey.range("new loss" if slow else "old loss"):
            spend(50)
        with marey.range("backward"):
            spend(500)
    with marey.range(HOSTILE):
        spend(100)


def main() -> None:
    for _ in range(10):
        step(slow="slow" in sys.argv)
    with marey.range("many"):
        for i in range(300):
            with marey.range(f"tiny {i % 40}"):
                pass


main()
