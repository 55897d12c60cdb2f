"""The interpreter's line numbers of all instructions in the standard library, for sampling_lines.c.

    python line_oracle.py EVERY | sampling_lines

uses every EVERY-th module. Runs in any CPython from 3.10 on.
"""

import os
import struct
import sys
import sysconfig
import types

LINETABLE, LOCATIONS = range(2)


def lines_of(code):
    """Pairs of offset and line, for each instruction or each unit of two bytes."""
    if sys.version_info >= (3, 11):
        return [(2 * i, position[0] or 0) for i, position in enumerate(code.co_positions())]
    return [(at, line or 0) for start, end, line in code.co_lines() for at in range(start, end, 2)]


def record(code):
    kind = LOCATIONS if sys.version_info >= (3, 11) else LINETABLE
    table = code.co_linetable
    pairs = lines_of(code)
    flat = [number for pair in pairs for number in pair]
    head = struct.pack("=3I", kind, code.co_firstlineno, len(table)) + table + bytes(-len(table) % 4)
    return head + struct.pack("=%dI" % (1 + len(flat)), len(pairs), *flat)  # noqa: UP031


def codes_in(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


def main(every):
    library, n = sysconfig.get_paths()["stdlib"], 0
    for folder, folders, files in os.walk(library):
        folders[:] = sorted(f for f in folders if f not in ("site-packages", "dist-packages", "lib2to3", "__pycache__"))
        for file in sorted(files):
            if not file.endswith(".py"):
                continue
            n += 1
            if n % every:
                continue
            try:
                with open(os.path.join(folder, file), "rb") as source:
                    code = compile(source.read(), file, "exec")
            except (SyntaxError, ValueError, UnicodeError):  # some test files are intentionally invalid
                continue
            for one in codes_in(code):
                sys.stdout.buffer.write(record(one))


main(int(sys.argv[1]))
