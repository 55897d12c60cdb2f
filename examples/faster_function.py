"""Is one function faster than another, and is one run faster than the previous one?

    python examples/faster_function.py [SECONDS]

Two alternating callables, with an interval and a verdict; then two recordings, by the same method as `marey compare`.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import marey

WORDS = [f"word {i}" for i in range(2000)]


def joined() -> str:
    return ",".join(WORDS)


def added() -> str:
    text = ""
    for word in WORDS:
        text = text + word + ","
    return text


def record(path: Path, make: Callable[[], str]) -> Path:
    marey.start(path)
    for _ in range(200):
        with marey.iteration(), marey.range("make"):
            make()
    marey.stop()
    return path


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    answer = marey.compare_functions(added, joined, seconds=seconds)
    print(f"joined() is {answer.verdict}: {answer.change_percent:+.0f} % of the time, {answer.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        before, after = [], []
        for i in range(5):  # alternate repeats, so that differences between runs do not look like a change
            before.append(record(Path(folder) / f"added-{i}.marey", added))
            after.append(record(Path(folder) / f"joined-{i}.marey", joined))
        print(marey.compare(before, after))


if __name__ == "__main__":
    main()
