"""Read log files, count their words, write the counts. Plain Python; the three take about the same time."""

import random
import sys
import time


def parse(text):
    words = []
    for word in text.split():
        words.append(int(word) if word.isdigit() else word)
    return words


def analyze(words):
    counts = {}
    for word in words:
        if word not in counts:
            counts[word] = 0
        counts[word] += 1
    return counts


def write(counts, out):
    for word, n in counts.items():
        out.append(f"{word} {n}\n")
    return sum(map(len, out))


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    chance = random.Random(0)
    names = [str(i) if i % 2 else f"Word{i}" for i in range(4000)]
    files = [" ".join(chance.choices(names, k=8000)) for _ in range(8)]
    start = time.perf_counter()
    for _ in range(n):
        for text in files:
            words = parse(text)
            counts = analyze(words)
            size = write(counts, [])
    print(f"{size} characters, {1e3 * (time.perf_counter() - start) / n:.3f} ms/round")


if __name__ == "__main__":
    main()
