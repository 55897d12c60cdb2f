"""Clean documents in stages, all from one line. Plain Python, and no stage dominates."""

import random
import sys
import time


def tokenize(document):
    tokens, word = [], ""
    for c in document:
        if c == " ":
            tokens.append(word)
            word = ""
        else:
            word += c
    return tokens


def stem(tokens):
    return [token[:-1] if token.endswith("s") and len(token) > 3 else token for token in tokens for _ in range(4)]


def count(tokens):
    n = 0
    for token in tokens:
        for c in token[:2]:
            n += c in "aeiou"
    return [*tokens, str(n)]


def hash_all(tokens):
    value = 0
    for token in tokens:
        value = (31 * value + len(token)) & 0xFFFFFFFF
        value ^= value >> 3
    return [*tokens, str(value)]


def clean(document):
    value = document
    for stage in (tokenize, stem, count, hash_all):
        value = stage(value)
    return value


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 80
    chance = random.Random(0)
    documents = ["".join(chance.choices("aeinorst ", k=4000)) for _ in range(40)]
    start = time.perf_counter()
    for _ in range(n):
        cleaned = [clean(document) for document in documents]
    print(f"{sum(map(len, cleaned))} tokens, {1e3 * (time.perf_counter() - start) / n:.3f} ms/round")


if __name__ == "__main__":
    main()
