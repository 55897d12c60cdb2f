"""Logs of ranks with known numbers, written from docs/formats/recording.md, for reports on many ranks."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Optional

from crc32c import crc32c

LOG, SITES, LANE, WORDS, CLOCK, END = 1, 2, 3, 4, 5, 7
BEGIN, FINISH, RECORD = 1, 2, 15
ITERATION = 7
HOUR = 3600 * 10**9
START = 1_800_000_000 * 10**9  # on the wall clock of all hosts, but for those whose clock is wrong
RANGES = ("step", "data", "forward")
WORDS_OF_BLOCK = 3000 * 10  # an iteration has ten


@lru_cache(maxsize=64)  # many blocks of many ranks are alike
def block(
    kind: int, payload: bytes, *, version: int = 1, last_tick: int = 0, sequence: int = 0, lane: int = 0
) -> bytes:
    lengths = [len(payload)] * 2
    header = struct.pack("<IBBHIIIIQQI", 0x4B4C424D, kind, version, 0, lane, sequence, *lengths, 0, last_tick, 0)
    checksum = struct.pack("<I", crc32c(header + b"\0\0\0\0" + payload))
    return header + checksum + payload + b"\0" * (-len(payload) % 8)


def pairs(**texts: object) -> bytes:
    out = b""
    for key, value in texts.items():
        name, text = key.encode(), str(value).encode()
        out += struct.pack("<II", len(name), len(text)) + name + text
    return out


def sites() -> bytes:
    out = b""
    for number, name in enumerate(RANGES):
        text = name.encode()
        entry = struct.pack("<7I", number + 2, 0, 0, len(text), 0, 0, 0) + text
        out += entry + b"\0" * (-len(entry) % 4)
    return out


def word(tick: int, kind: int, number: int) -> int:
    return tick << 24 | kind << 20 | number


class Times(NamedTuple):
    """Nanoseconds of an iteration: it is `data`, then `forward`, both in `step`."""

    data: int
    forward: int


def even(rank: int, _iteration: int) -> Times:
    """Ranks differ by a thousandth at most."""
    return Times(20_000, 80_000 + (rank * 7) % 100)


class Rank(NamedTuple):
    """One process of a job, and its irregularities."""

    rank: int
    world: int
    host: str = "node0"
    run_id: str = "job1"
    pid: Optional[int] = None
    ppid: int = 1
    start_ns: int = 0  # after START
    clock_ns: int = 0  # by how much its wall clock is wrong
    version: int = 1  # of the blocks
    marey_version: str = "0.1.0"
    n_iterations: int = 20
    has_end: bool = True

    def path(self, folder: Path, tag: str = "00000000") -> Path:
        return folder / f"r{self.rank}-{self.host}-{self.number}-{tag}.klog"

    @property
    def number(self) -> int:
        return 1000 + self.rank if self.pid is None else self.pid


def words_of(rank: Rank, times: Callable[[int, int], Times]) -> tuple[list[int], int]:
    step, data, forward = 2, 3, 4
    words, now = [], 100
    for i in range(rank.n_iterations):
        took = times(rank.rank, i)
        words += [word(now, BEGIN, step), word(now, BEGIN, data), word(now + took.data, FINISH, data)]
        now += took.data
        words += [word(now, BEGIN, forward), word(now + took.forward, FINISH, forward)]
        now += took.forward
        words += [word(now, FINISH, step), word(now, RECORD, ITERATION << 12 | 4), i, int(i == 0), 0]
    return words, now


def log_bytes(rank: Rank, times: Callable[[int, int], Times] = even) -> bytes:
    words, last = words_of(rank, times)
    real = START + rank.start_ns + rank.clock_ns
    moments = [(0, rank.start_ns, real, 10), (10**9, rank.start_ns + 10**9, real + 10**9, 10)]
    about = pairs(
        pid=rank.number, ppid=rank.ppid, rank=rank.rank, world_size=rank.world, local_rank=-1, host=rank.host,
        command="python train.py", run_id=rank.run_id, clock="tsc", tick_hz=10**9, version=rank.marey_version, pool="",
    )  # fmt: skip
    pieces = [words[at : at + WORDS_OF_BLOCK] for at in range(0, len(words), WORDS_OF_BLOCK)]
    parts = [
        (LOG, about),
        (CLOCK, b"".join(struct.pack("<4Q", *moment) for moment in moments)),
        (SITES, sites()),
        (LANE, struct.pack("<qII", rank.number, 0, 4) + b"main"),
    ]
    out = b"".join(block(kind, data, version=rank.version) for kind, data in parts)
    for i, piece in enumerate(pieces):
        payload = struct.pack(f"<{len(piece)}Q", *piece)
        out += block(WORDS, payload, version=rank.version, last_tick=last, sequence=i)
    return out + (block(END, pairs(end="stop"), version=rank.version) if rank.has_end else b"")


def write(folder: Path, ranks: list[Rank], times: Callable[[int, int], Times] = even) -> list[Path]:
    """Write a recording of these ranks; returns the paths of their logs."""
    folder.mkdir(exist_ok=True)
    paths = []
    for i, rank in enumerate(ranks):
        paths.append(rank.path(folder, f"{i:08x}"))
        paths[-1].write_bytes(log_bytes(rank, times))
    return paths


def job(n: int, per_host: int = 8, **more: object) -> list[Rank]:
    """Return the ranks of a job, with a number of ranks per host."""
    return [Rank(rank, n, host=f"node{rank // per_host}", **more) for rank in range(n)]  # type: ignore[arg-type]
