"""Files of samplers (tests/data/samplers), also read independently here: no sample is missing."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

FILES = Path(__file__).parent.parent / "data" / "samplers"
Self = Counter  # nanoseconds of its own, by function


def read(marey, path: Path) -> tuple[Self, dict]:
    done = marey("report", path, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    times: Self = Counter()
    for row in told["ranges"]:
        # A name that several files have is told with its file.
        times[re.sub(r" \(.*\)$", "", row["name"])] += row["self_ns"]
    return +times, told


# ---- austin ----


def text_of(path: Path) -> Self:
    times: Self = Counter()
    for line in path.read_text().splitlines():
        if not line.startswith("P"):
            continue
        stack, _, metrics = line.rpartition(" ")
        frames = stack.split(";")[2:]
        times[frames[-1].split(":")[-2] if frames else "(no frames)"] += int(metrics.split(",")[0]) * 1000
    return +times


class Mojo:
    """The format's page, in Python."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 4

    def number(self) -> int:
        byte = self.data[self.at]
        value, shift, negative = byte & 63, 6, byte & 64
        self.at += 1
        while byte & 128:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
        return -value if negative else value

    def text(self) -> str:
        end = self.data.index(0, self.at)
        value, self.at = self.data[self.at : end].decode(), end + 1
        return value

    def times(self) -> Self:
        times: Self = Counter()
        texts: dict[tuple[int, int], str] = {}
        names: dict[tuple[int, int], str] = {}
        pid, leaf = 0, "(no frames)"
        while self.at < len(self.data):
            event = self.data[self.at]
            self.at += 1
            if event == 1:
                self.text(), self.text()
            elif event == 2:
                pid, _, _ = self.number(), self.number(), self.text()
                leaf = "(no frames)"
            elif event == 3:
                key, _, name = self.number(), self.number(), self.number()
                [self.number() for _ in range(4)]
                names[pid, key] = texts[pid, name]
            elif event == 5:
                leaf = names[pid, self.number()]
            elif event in (4, 7):
                leaf = {4: "INVALID", 7: "GC"}[event]
            elif event == 9:
                times[leaf] += self.number() * 1000
            elif event == 10:
                self.number()
            elif event == 11:
                key = self.number()
                texts[pid, key] = self.text()
            else:
                assert event == 8
        return +times


@pytest.mark.parametrize("name", ["text.austin", "full.austin", "austin3.mojo", "austin4.mojo"])
def test_every_microsecond_of_austin_is_there(marey, name):
    path = FILES / name
    expected = text_of(path) if path.suffix == ".austin" else Mojo(path.read_bytes()).times()
    times, told = read(marey, path)
    assert times == expected
    assert times["inner"] > 0 and times["child"] > 0
    assert len(told["processes"]) == 3
    assert any("samples of austin" in line for line in told["warnings"])


def test_a_cut_file_of_austin_gives_what_it_has(marey, tmp_path):
    whole = (FILES / "austin3.mojo").read_bytes()
    cut = tmp_path / "cut.mojo"
    cut.write_bytes(whole[: len(whole) // 2])
    times, told = read(marey, cut)
    assert 0 < times.total() < Mojo(whole).times().total()
    assert any("cannot be read from byte" in line for line in told["warnings"])


# ---- py-spy ----


@pytest.mark.parametrize("name", ["py-spy-plain.raw", "py-spy-threads.raw", "py-spy-native.raw"])
def test_every_sample_of_py_spy_is_there(marey, name):
    expected: Self = Counter()
    for line in (FILES / name).read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        leaf = re.sub(r" \([^()]*\)$", "", stack.rpartition(";")[2])
        # py-spy counts threads that it saw before their first frame.
        leaf = leaf if leaf and not leaf.startswith("thread (") else "(no frames)"
        expected[leaf] += int(count) * 10_000_000
    times, told = read(marey, FILES / name)
    assert times == +expected
    assert len(told["processes"]) == (1 if "plain" in name else 3)
    if "threads" in name:
        assert "loader; one" in marey("export", FILES / name, "--to", "csv", "-o", "-").stdout


def test_py_spy_s_file_for_speedscope_has_every_weight(marey):
    path = FILES / "py-spy.speedscope.json"
    profile = json.loads(path.read_text())
    expected: Self = Counter()
    for part in profile["profiles"]:
        for stack, weight in zip(part["samples"], part["weights"]):
            expected[profile["shared"]["frames"][stack[-1]]["name"]] += round(weight * 1e9)
    times, told = read(marey, path)
    assert times == +expected
    assert len(told["processes"]) == 3


# ---- as samples ----


def samples(marey, path: Path, *options: str) -> dict:
    done = marey("report", path, "--samples", "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["text.austin", "austin4.mojo", "py-spy-threads.raw", "py-spy-native.raw"])
def test_files_of_other_samplers_are_read_as_samples(marey, name):
    """The same tables as of our own: counts, time and lines are those of the file."""
    path = FILES / name
    told = samples(marey, path)
    times, _ = read(marey, path)
    assert sum(row["self_ns"] for row in told["lines"]) == times.total()
    if name.endswith(".raw"):
        lines = path.read_text().splitlines()
        assert told["totals"][0]["samples"] == sum(int(line.rpartition(" ")[2]) for line in lines)
    elif name.endswith(".austin"):
        assert told["totals"][0]["samples"] == sum(line.startswith("P") for line in path.read_text().splitlines())
    inner = {row["line"] for row in told["lines"] if row["function"] == "inner" and row["samples"] > 0}
    assert inner <= {17, 18, 19} and inner


def test_stacks_of_py_spy_come_back_as_they_were(marey, tmp_path):
    path = FILES / "py-spy-plain.raw"
    out = tmp_path / "again.raw"
    assert marey("export", path, "--samples", "-o", out).returncode == 0
    written = [line.replace("(no frames)", "") for line in out.read_text().splitlines()]
    assert Counter(written) == Counter(path.read_text().splitlines())


def test_a_file_of_austin_becomes_one_of_py_spy(marey, tmp_path):
    out = tmp_path / "austin.raw"
    assert marey("export", FILES / "text.austin", "--samples", "--by", "thread", "-o", out).returncode == 0
    count = sum(int(line.rpartition(" ")[2]) for line in out.read_text().splitlines())
    assert count == sum(line.startswith("P") for line in (FILES / "text.austin").read_text().splitlines())
    assert ";inner (/home/user/work.py:18) " in out.read_text()
