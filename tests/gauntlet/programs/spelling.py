"""Correct misspelled words with the nearest word of a dictionary. Plain Python."""

import random
import sys
import time


def distance(a, b):
    """The edit distance of Levenshtein."""
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (x != y)))  # planted: hot-function
        previous = row
    return previous[-1]


def correct(word, dictionary):
    return min(dictionary, key=lambda known: distance(word, known))


def misspell(word, chance):
    at = chance.randrange(len(word))
    return word[:at] + chance.choice("abcdefghijklmnopqrstuvwxyz") + word[at + 1 :]


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 3500
    chance = random.Random(2)
    dictionary = ["".join(chance.choices("aabcdeeefghiilmnooprsttuw", k=chance.randint(4, 9))) for _ in range(120)]
    typos = [misspell(word, chance) for word in dictionary[:60]]
    text = [chance.choice(typos) for _ in range(n)]
    start = time.perf_counter()
    right = 0
    for word in text:
        right += correct(word, dictionary) == dictionary[typos.index(word)]
    print(f"{right} of {n} corrected, {1e3 * (time.perf_counter() - start) / n:.3f} ms/word")


if __name__ == "__main__":
    main()
