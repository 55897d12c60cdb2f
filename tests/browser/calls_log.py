"""Logs of a call profiler with known numbers, written from docs/formats/recording.md, for pages of calls."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import NamedTuple, Union

from crc32c import crc32c

CALLS = 8  # the type of the block


def block(kind: int, payload: bytes) -> bytes:
    header = struct.pack("<IBBHIIIIQQI", 0x4B4C424D, kind, 1, 0, 0, 0, *[len(payload)] * 2, 0, 5000, 0)
    checksum = struct.pack("<I", crc32c(header + b"\0\0\0\0" + payload))
    return header + checksum + payload + b"\0" * (-len(payload) % 8)


def entry(tag: str, *fields: Union[int, float, str]) -> bytes:
    """Return a tag, then integers as varints, floats as eight bytes, strings after their length."""
    out = bytearray(tag.encode())
    for field in fields:
        if isinstance(field, float):
            out += struct.pack("<d", field)
            continue
        text = field.encode() if isinstance(field, str) else b""
        number = field if isinstance(field, int) else len(text)
        while number > 0x7F:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        out.append(number)
        out += text
    return bytes(out)


class Function(NamedTuple):
    name: str
    file: str
    line: int
    module: str
    kind: int = 0


class Node(NamedTuple):
    """A path. Functions, signatures and parents are numbered from 1."""

    parent: int
    function: int
    signature: int
    calls: int
    self_ns: int
    total_ns: int
    thread: int = 1


def write_log(
    path: Path, functions: list[Function], signatures: list[tuple[int, int, str]], nodes: list[Node], cost_ps: int = 0
) -> Path:
    """Write a log of one profile; a tick is a nanosecond."""
    pairs = {"pid": "7", "clock": "tsc", "tick_hz": "1000000000", "command": "train.py"}
    texts = b"".join(struct.pack("<II", len(k), len(v)) + k.encode() + v.encode() for k, v in pairs.items())
    clock = struct.pack("<8Q", 0, 0, 10**18, 20, 10**9, 10**9, 10**18 + 10**9, 20)
    out = [entry("P", 0, 1.0, 3, cost_ps), entry("T", 1, 70, "MainThread"), entry("T", 2, 71, "loader")]
    for i, f in enumerate(functions, 1):
        out.append(entry("F", i, f.kind, f.line, f.name, f.name, f.file, f.module))
    out += [entry("S", i, function, elements, text) for i, (function, elements, text) in enumerate(signatures, 1)]
    for i, node in enumerate(nodes, 1):
        out.append(entry("N", i, node.thread, node.parent, node.function, node.signature))
        out.append(entry("C", i, node.calls, 0, node.self_ns, node.total_ns, node.total_ns))
    path.write_bytes(block(1, texts) + block(5, clock) + block(CALLS, b"".join(out)))
    return path


HOSTILE = "</script><img src=x onerror=alert(1)>"
FUNCTIONS = [
    Function("main", "/home/u/train.py", 3, "train"),
    Function("dot", "/home/u/train.py", 7, "train"),
    Function("<built-in method builtins.len>", "~", 0, "builtins", 1),
    Function("fib", "/home/u/train.py", 20, "train"),
    Function("load", "/home/u/data.py", 5, "data"),
    Function(HOSTILE, "/home/u/<b>.py", 1, "data"),
]
SMALL, LARGE = "a:ndarray(dtype=float32, shape=(16,)), b:int", "a:ndarray(dtype=float32, shape=(4096,)), b:int"
SIGNATURES = [(2, 16, SMALL), (2, 4096, LARGE)]
US = 1000


def known(path: Path, slower: int = 1, cost_ps: int = 41_000) -> Path:
    """Write main, which calls dot with two shapes, recursive fib and a hostile name; and a loader thread.

    dot with the large shape takes `slower` times as long.
    """
    large = 300 * US * slower
    nodes = [
        Node(0, 1, 0, 1, 100 * US, 700 * US + large),
        Node(1, 2, 1, 10, 150 * US, 150 * US),
        Node(1, 2, 2, 5, large - 20 * US, large),
        Node(3, 3, 0, 5, 20 * US, 20 * US),
        Node(1, 4, 0, 1, 50 * US, 400 * US),
        Node(5, 4, 0, 2, 350 * US, 350 * US),
        Node(1, 6, 0, 1, 50 * US, 50 * US),
        Node(0, 5, 0, 4, 200 * US, 250 * US, 2),
        Node(8, 2, 1, 1, 50 * US, 50 * US, 2),
    ]
    return write_log(path, FUNCTIONS, SIGNATURES, nodes, cost_ps)


def deep(path: Path, depth: int = 900) -> Path:
    """Write fib that calls itself over and over."""
    nodes = [Node(i, 4, 0, 1, US, (depth - i) * US) for i in range(depth)]
    return write_log(path, FUNCTIONS, SIGNATURES, nodes)


def large(path: Path, n: int, n_functions: int = 400) -> Path:
    """Write `n` paths of a program that calls everything from everywhere."""
    chance = random.Random(7)
    functions = [
        Function(f"function_{i}", f"/home/u/part_{i % 20}.py", 3 * i + 1, f"part_{i % 20}") for i in range(n_functions)
    ]
    signatures = [
        (1 + i % n_functions, 2**i % 8191, f"a:ndarray(dtype=float32, shape=({i},))") for i in range(n_functions * 2)
    ]
    taken: set[tuple[int, int, int]] = set()
    parents, depths, rows = [0], [0], []
    while len(rows) < n:
        parent = (
            chance.randrange(max(0, len(parents) - 500), len(parents))
            if chance.random() < 0.9
            else chance.randrange(len(parents))
        )
        signature = chance.randrange(len(signatures))
        row = (parent, signatures[signature][0], signature + 1)
        if depths[parent] >= 80 or row in taken:
            continue
        taken.add(row)
        rows.append((*row, 1 + int(chance.paretovariate(1.2)), 100 + int(chance.lognormvariate(8, 1.5))))
        parents.append(parent)
        depths.append(depths[parent] + 1)
    totals = [0] + [row[4] for row in rows]
    for i in range(n, 0, -1):
        totals[parents[i]] += totals[i]
    return write_log(path, functions, signatures, [Node(*row, totals[i]) for i, row in enumerate(rows, 1)])
