"""Clocks of several machines, brought together by collectives: a real job, one rank's log moved to another machine."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

from crc32c import crc32c
from rank_logs import CLOCK, LOG, block, pairs

AHEAD_NS = 5_000_000
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
HEADER = struct.Struct("<IBBHIIIIQQI")


def blocks(log: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(log):
        packed = HEADER.unpack_from(log, at)[7]
        size = 48 + packed + -packed % 8
        found.append(log[at : at + size])
        at += size
    return found


def ahead(clock: bytes) -> bytes:
    """A block of moments, CLOCK_MONOTONIC in each of them later."""
    fields = HEADER.unpack_from(clock)
    payload = clock[48 : 48 + fields[7]]
    moments = [list(moment) for moment in struct.iter_unpack("<4Q", payload)]
    payload = b"".join(struct.pack("<4Q", tick, mono + AHEAD_NS, real, width) for tick, mono, real, width in moments)
    checksum = crc32c(clock[:44] + b"\0\0\0\0" + payload)
    return clock[:44] + struct.pack("<I", checksum) + payload + b"\0" * (-len(payload) % 8)


def move(path: Path) -> None:
    """As if it had been recorded on another machine, whose clock is ahead."""
    first, *rest = blocks(path.read_bytes())
    moved = [first, block(LOG, pairs(host="elsewhere"))]
    moved += [ahead(each) if each[4] == CLOCK else each for each in rest]
    path.write_bytes(b"".join(moved))


def skew_of(answer: str) -> float:
    return float(next(row["skew_ns"] for row in json.loads(answer)["collectives"] if row["what"] == "all_reduce"))


def test_a_planted_offset_between_machines_is_found(mpi, compiled, run, tool, tmp_path):
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(2, compiled("program.c", "-lpthread"))])
    true_skew = skew_of(run([tool, "breakdown", "--json", "run.marey"]).stdout)
    move(next((tmp_path / "run.marey").glob("r1-*.klog")))
    told = run([tool, "breakdown", "run.marey"]).stdout
    found = re.search(r"skew by clocks of 2 nodes, aligned to \+-([0-9.]+) (ns|us|ms|s) by (\d+) collectives", told)
    assert found is not None, told
    within = float(found[1]) * UNITS[found[2]] * 1.01  # as it is rounded
    assert within < AHEAD_NS, "closer than what was planted"
    skew = skew_of(run([tool, "breakdown", "--json", "run.marey"]).stdout)
    assert abs(skew - true_skew) <= within + 2
