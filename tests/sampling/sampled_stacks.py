"""Stacks of any sampling profiler, read from its text or file, and the distance of two sets."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from call_grammar import TRUNCATED, Frame, Stack

PYSPY_FRAME = re.compile(r"(?P<function>.*) \((?P<file>.*):(?P<line>\d+)\)$", re.S)
AUSTIN_FRAME = re.compile(r"(?P<file>.*):(?P<function>[^:]*):(?P<line>\d+)$", re.S)


def from_pyspy(text: str) -> Counter[Stack]:
    """Stacks of `py-spy record --format raw` and of `marey export --to pyspy`; frames of processes and threads go."""
    stacks: Counter[Stack] = Counter()
    for line in text.splitlines():
        frames, _, n = line.rpartition(" ")
        found = (TRUNCATED if frame == TRUNCATED.function else PYSPY_FRAME.match(frame) for frame in frames.split(";"))
        stacks[tuple(one if one is TRUNCATED else frame_of(one) for one in found if one)] += int(n)
    return stacks


def from_austin(text: str) -> Counter[Stack]:
    """Stacks of austin's text format up to version 3."""
    stacks: Counter[Stack] = Counter()
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        found = (AUSTIN_FRAME.match(frame) for frame in line.rpartition(" ")[0].split(";"))
        stacks[tuple(frame_of(match) for match in found if match)] += 1
    return stacks


def frame_of(match: re.Match[str]) -> Frame:
    return Frame(match["function"], match["file"], int(match["line"]))


class Mojo:
    """Stacks of austin's binary file, MOJO up to its version 3: one event after another, each a byte and its fields."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 3
        self.strings: dict[int, str] = {}
        self.frames: dict[int, Frame] = {}
        self.stacks: Counter[Stack] = Counter()
        self.current: Optional[list[Frame]] = None
        assert data[:3] == b"MOJ", "not a MOJO file"
        self.version = self.number()
        while self.at < len(data):
            self.event()
        self.end_stack()

    def number(self) -> int:
        byte = self.data[self.at]
        self.at += 1
        value, shift, is_negative = byte & 0x3F, 6, byte & 0x40
        while byte & 0x80:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        return -value if is_negative else value

    def string(self) -> str:
        end = self.data.index(0, self.at)
        text = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return text

    def end_stack(self) -> None:
        if self.current is not None:
            self.stacks[tuple(self.current)] += 1
        self.current = None

    def frame(self) -> None:
        key, file, function, line = (self.number() for _ in range(4))
        if self.version > 1:
            for _ in ("line_end", "column", "column_end"):
                self.number()
        self.frames[key] = Frame(self.strings.get(function, "?"), self.strings.get(file, "?"), line)

    def event(self) -> None:
        kind = self.data[self.at]
        self.at += 1
        if kind == 1:
            self.string()
            self.string()
        elif kind == 2:
            self.end_stack()
            self.number()
            if self.version > 2:
                self.number()
            self.string()
            self.current = []
        elif kind == 3:
            self.frame()
        elif kind == 5:
            key = self.number()
            assert self.current is not None
            self.current.append(self.frames[key])
        elif kind == 6:
            self.string()
        elif kind in (9, 10):
            self.number()
        elif kind == 11:
            key = self.number()
            self.strings[key] = self.string()
        elif kind == 12:
            self.number()
        else:
            assert kind in (0, 4, 7, 8), f"event {kind} at {self.at}"


def read_austin(path: Path) -> Counter[Stack]:
    data = path.read_bytes()
    return Mojo(data).stacks if data[:3] == b"MOJ" else from_austin(data.decode("utf-8", "replace"))


def of_file(stacks: Counter[Stack], name: str) -> Counter[Stack]:
    """Stacks with a frame of the file `name`, without waiting threads of libraries."""
    return Counter({s: n for s, n in stacks.items() if any(Path(frame.file).name == name for frame in s)})


def by_function(stacks: Counter[Stack]) -> Counter[str]:
    """Innermost functions, by samples."""
    found: Counter[str] = Counter()
    for stack, n in stacks.items():
        if stack:
            found[stack[-1].function] += n
    return found


def functions_on(stacks: Counter[Stack], names: Iterable[str]) -> Counter[str]:
    """Samples with each of these functions; a stack counts for the first of them."""
    found: Counter[str] = Counter()
    for stack, n in stacks.items():
        on = {frame.function for frame in stack}
        name = next((name for name in names if name in on), None)
        if name:
            found[name] += n
    return found


def distance(one: Counter, other: Counter) -> float:
    """Total variation distance: 0 when the shares are equal, 1 when the two have nothing in common."""
    n, m = sum(one.values()), sum(other.values())
    return sum(abs(one[key] / n - other[key] / m) for key in one.keys() | other.keys()) / 2


def floor(shares: Counter, n: int, m: Optional[int] = None, rounds: int = 200) -> tuple[float, float]:
    """Return the median and p99.5 of distances by chance.

    Two sets of `n` and `m` samples are drawn from `shares`; without `m`, one set against the shares themselves.
    """
    chance, keys, weights = random.Random(1), list(shares), list(shares.values())
    found = []
    for _ in range(rounds):
        one = Counter(chance.choices(keys, weights, k=n))
        other = Counter(chance.choices(keys, weights, k=m)) if m else shares
        found.append(distance(one, other))
    found.sort()
    return found[rounds // 2], found[int(rounds * 0.995)]
