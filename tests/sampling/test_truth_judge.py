"""The checker of stacks: it accepts exactly the possible stacks, and reads the tools' files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from call_grammar import Frame, Grammar, Stack
from sampled_stacks import Mojo, distance, floor, from_austin, from_pyspy

TARGETS = Path(__file__).parent / "targets"


def line_of(target: str, text: str) -> int:
    lines = (TARGETS / target).read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def flat(*frames: tuple[str, str]) -> Stack:
    """A stack of flat.py, each frame by its function and a text on its line."""
    return tuple(Frame(function, "flat.py", line_of("flat.py", text)) for function, text in frames)


TOP = (("<module>", "main(float"), ("main", "n = a(n)"))


@pytest.mark.parametrize(
    "frames",
    [
        TOP[:1],
        TOP,
        (*TOP, ("a", "def a")),
        (*TOP, ("a", "return leaf_a"), ("leaf_a", "return n + 1")),
    ],
)
def test_what_the_source_does_is_possible(frames: tuple[tuple[str, str], ...]) -> None:
    assert Grammar(TARGETS / "flat.py").fault(flat(*frames)) == ""


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        ((*TOP, ("b", "return leaf_b")), "does not call b"),
        ((*TOP, ("a", "return leaf_a"), ("leaf_b", "return n - 1")), "does not call leaf_b"),
        ((*TOP, ("a", "return n + 1")), "a has no line"),
        (TOP[1:], "begins with main"),
        ((*TOP, ("leaf_a", "return n + 1")), "does not call leaf_a"),
        ((*TOP, ("a", "def a"), ("leaf_a", "return n + 1")), "does not call leaf_a"),
    ],
)
def test_mixed_moments_are_not(frames: tuple[tuple[str, str], ...], why: str) -> None:
    assert why in Grammar(TARGETS / "flat.py").fault(flat(*frames))


def test_a_recursion_has_an_end() -> None:
    grammar = Grammar(TARGETS / "churn.py")
    call, inner = line_of("churn.py", "left(DEPTH)"), line_of("churn.py", "left(n - 1)")
    begin = (Frame("<module>", "churn.py", line_of("churn.py", "main(float")), Frame("main", "churn.py", call))
    assert grammar.fault(begin + (Frame("left", "churn.py", inner),) * 20) == ""
    assert "more than 20" in grammar.fault(begin + (Frame("left", "churn.py", inner),) * 21)


def test_generators_are_called_where_they_are_resumed() -> None:
    grammar = Grammar(TARGETS / "generators.py")
    frames = [("<module>", "main(float"), ("main", "next(first)"), ("outer_a", "yield from"), ("inner_a", "yield 1")]
    stack = tuple(Frame(function, "generators.py", line_of("generators.py", text)) for function, text in frames)
    assert grammar.fault(stack) == ""
    assert grammar.fault((*stack[:2], *stack[3:])) != ""


def test_texts_of_the_tools_are_read() -> None:
    stack = (Frame("<module>", "x y.py", 3), Frame("C.f", "/d/z.py", 10))
    assert from_pyspy('process 12:"python x";thread (0x7F);<module> (x y.py:3);C.f (/d/z.py:10) 42\n') == {stack: 42}
    assert from_austin("# austin: 3.7.0\nP12;T0:12;x y.py:<module>:3;/d/z.py:C.f:10 1000\n") == {stack: 1}


def test_austins_binary_file_is_read() -> None:
    data = b"MOJ\x03" + b"\x01mode\0wall\0" + b"\x0b\x01x.py\0" + b"\x0b\x02main\0"
    data += b"\x03\x07\x01\x02\x85\x01\x00\x00\x00"  # frame 7 on line 69
    data += b"\x02\x0c\x00tid\0\x05\x07\x09\x21" * 2
    assert Mojo(data).stacks == {(Frame("main", "x.py", 69),): 2}


def test_distance_knows_its_floor() -> None:
    shares = Counter(a=70, b=20, c=10)
    assert distance(shares, Counter(a=7, b=2, c=1)) == pytest.approx(0)
    assert distance(shares, Counter(d=1)) == 1
    assert distance(shares, Counter(a=50, b=50)) == pytest.approx(0.3)
    usual, most = floor(shares, 1000)
    assert 0 < usual < most < 0.06
    assert floor(shares, 10000, rounds=50)[0] < usual / 2
