"""`python -m marey script.py args` and `-m module args`: like `python -m cProfile`, on all threads."""

from __future__ import annotations

import io
import os
import sys
import types

from marey._printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    import argparse
    from typing import Any

_OPTIONS = ("-o", "--outfile", "-s", "--sort", "-m", "--no-signatures")


def is_wanted(args: list[str]) -> bool:
    """Whether the arguments are a script to profile. A command is one word without a dot."""
    if not args:
        return False
    return args[0].split("=")[0] in _OPTIONS or ("." in args[0] and os.path.isfile(args[0]))


def _parse(args: list[str]) -> argparse.Namespace:
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m marey",
        description="Run a script, or with -m a module, and print how often each of its functions was called and how "
        "long it took, as python -m cProfile does, on all its threads.",
    )
    parser.add_argument("-o", "--outfile", metavar="FILE", help="write a profile for pstats there instead")
    parser.add_argument(
        "-s", "--sort", default=-1, metavar="COLUMN", help="as pstats sorts: tottime, cumtime, calls, ..."
    )
    parser.add_argument("--no-signatures", action="store_true", help="functions by name only")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, with what follows as its arguments")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="SCRIPT ARGUMENTS...", help="what to run")
    given = parser.parse_args(args)
    if given.module is None and not given.words:
        parser.error("a script, or -m and a module, is missing")
    return given


def _code_of_module(name: str, args: list[str]) -> tuple[Any, dict[str, Any]]:
    import runpy

    sys.argv[:] = [name, *args]
    sys.path.insert(0, "")
    source = "run_module(modname, run_name='__main__', alter_sys=True)"
    return compile(source, "<string>", "exec"), {"run_module": runpy.run_module, "modname": name}


def _code_of_script(path: str, args: list[str]) -> tuple[Any, dict[str, Any]]:
    sys.argv[:] = [path, *args]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec")
    # A separate module, so that objects pickled there can be found again.
    module = types.ModuleType("__main__")
    module.__dict__.update({"__file__": path, "__builtins__": __builtins__, "__cached__": None})
    sys.modules["__main__"] = module
    return code, module.__dict__


def main(args: list[str]) -> int:
    """Run it and print or write the profile. Returns the script's status if it calls sys.exit()."""
    from marey.profiler import Profile

    given = _parse(args)
    try:
        if given.module is not None:
            code, names = _code_of_module(given.module, given.words)
        else:
            code, names = _code_of_script(given.words[0], given.words[1:])
    except (OSError, SyntaxError) as error:
        print(f"marey: cannot run {printable(given.module or given.words[0])}: {printable(error)}", file=sys.stderr)
        return 2
    profile = Profile(signatures=not given.no_signatures)
    try:
        profile.runctx(code, names, names)
    except SystemExit as ended:
        return _status_of(ended.code)
    finally:
        _show(profile, given)
    return 0


def _status_of(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _show(profile: Any, given: argparse.Namespace) -> None:
    try:
        if given.outfile is not None:
            profile.dump_stats(given.outfile)
        else:
            profile.print_stats(given.sort)
    except BrokenPipeError:
        sys.stdout = None  # the reader closed the pipe
