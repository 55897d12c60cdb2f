"""A program that sleeps far inside: Python, called by C, called by Python, five times over, each time another way."""

import functools
import sys
import time


class Ordered:
    def __lt__(self, other):
        inside()
        return True


def inside():
    print("ready", flush=True)
    time.sleep(float(sys.argv[1]))


def generate():
    yield sorted([Ordered(), Ordered()])


def add(total, one):
    return total + sum(len(found) for found in generate())


def largest(one):
    return functools.reduce(add, [one, one])


def choose(one):
    return max([one], key=largest)


def main():
    return list(map(choose, [1]))


main()
