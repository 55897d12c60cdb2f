"""Line tables of the standard library with what this Python itself says of each instruction, for test_remote_lines.c.

    python -c TEXT STEP       each STEP-th file, sorted; to stdout, numbers of 4 bytes, little-endian

For each code object: first line, bytes of the table, the table, instructions in bytes, number of runs, then pairs of bytes
and line (0: none). A run is what co_positions() (3.11 and later), co_lines() (3.10) or PyCode_Addr2Line (before) say.
Works from 3.8 to the newest.
"""

import os
import sys
import types

out = sys.stdout.buffer
step = int(sys.argv[1])

if sys.version_info < (3, 10):
    import ctypes

    line_at = ctypes.pythonapi.PyCode_Addr2Line
    line_at.argtypes = [ctypes.py_object, ctypes.c_int]


def lines(code):
    """Pairs of bytes and line, from the first instruction on."""
    if sys.version_info >= (3, 11):
        return ((2, position[0]) for position in code.co_positions())
    if sys.version_info >= (3, 10):
        return ((end - begin, line) for begin, end, line in code.co_lines())
    return ((2, line_at(code, at)) for at in range(0, len(code.co_code), 2))


def numbers(a, b):
    """Not struct.pack: a Python without extension modules does as well."""
    return a.to_bytes(4, "little") + b.to_bytes(4, "little")


def put(code):
    runs = []
    for n_bytes, line in lines(code):
        if not runs or runs[-1][1] != (line or 0):
            runs.append([0, line or 0])
        runs[-1][0] += n_bytes
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    out.write(numbers(code.co_firstlineno, len(table)) + table)
    out.write(numbers(sum(n for n, _ in runs), len(runs)))
    for run in runs:
        out.write(numbers(*run))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            put(constant)


def main():
    root = os.path.dirname(os.__file__)
    files = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "site-packages")
        files += [os.path.join(folder, name) for name in sorted(names) if name.endswith(".py")]
    for path in files[::step]:
        try:
            with open(path, "rb") as file:
                code = compile(file.read(), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):  # files of the tests that are wrong on purpose
            continue
        put(code)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    sys.setrecursionlimit(10000)
    main()
