"""Count known and unknown words of a text, for a report on coverage. Plain Python."""

import random
import time
from collections import Counter


class Vocabulary:
    def __init__(self, words):
        self.words = list(words)

    def __contains__(self, word):
        return word in self.words  # planted: hot-function


def generate(n, chance):
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(4000)]
    return words[:3000], [chance.choice(words) for _ in range(n)]


def coverage(text, vocabulary):
    known, unknown = 0, Counter()
    for word in text:
        if word in vocabulary:
            known += 1
        else:
            unknown[word] += 1
    return known, unknown


def main():
    known_words, text = generate(2000, random.Random(3))
    vocabulary = Vocabulary(known_words)
    start, rounds = time.perf_counter(), 120
    for _ in range(rounds):
        known, unknown = coverage(text, vocabulary)
    print(f"{known} known, {sum(unknown.values())} unknown; the most frequent: {unknown.most_common(3)}")
    print(f"{1e3 * (time.perf_counter() - start) / rounds:.3f} ms/round")


if __name__ == "__main__":
    main()
