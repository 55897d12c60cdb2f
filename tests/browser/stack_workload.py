"""Ranges within ranges, some slower than others, and names that would do harm where they are not taken as text."""

from __future__ import annotations

import sys
import time

from stack_names import HOSTILE

import kymo


def spend(us: int) -> None:
    end = time.perf_counter_ns() + us * 1000
    while time.perf_counter_ns() < end:
        pass


def layer(number: int, us: int) -> None:
    with kymo.range(f"layer {number}"):
        with kymo.range("attention"):
            spend(us)
        with kymo.range("mlp"):
            spend(us // 2)


def step(slow: bool) -> None:
    with kymo.range("step"):
        with kymo.range("forward"):
            layer(11, 100)
            layer(12, 400 if slow else 100)
        with kymo.range("new loss" if slow else "old loss"):
            spend(50)
        with kymo.range("backward"):
            spend(500)
    with kymo.range(HOSTILE):
        spend(100)


def main() -> None:
    for _ in range(10):
        step(slow="slow" in sys.argv)
    with kymo.range("many"):
        for i in range(300):
            with kymo.range(f"tiny {i % 40}"):
                pass


main()
