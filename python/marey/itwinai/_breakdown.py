"""`marey breakdown --legacy` and `--write-averages`: itwinai's figures, added to the report of `marey`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import IO, Optional

from marey._replace import replacing
from marey.itwinai import _averages
from marey.itwinai._files import Failure, caller, is_csv


def breakdown(given: Namespace) -> int:
    """Print the report and itwinai's fractions (only these for files of averages); write the averages."""
    n_files = sum(is_csv(path) for path in given.paths) if given.legacy else 0
    if n_files not in (0, len(given.paths)):
        raise Failure("--legacy takes either files of averages or recordings and traces")
    if n_files != 0 and given.write_averages is not None:
        raise Failure("--write-averages takes recordings or traces, not files of averages")
    if n_files != 0:
        fractions = legacy(given.paths, True, given.json, given.csv is not None, _width(given.output))
        with _output(given.output) as file:
            file.write(f'{{\n  "legacy": {fractions}}}\n' if given.json else fractions)
        return 0
    # Python's part runs first: if it fails, nothing is printed.
    averages = _averages.averages(given.paths, given.strategy) if given.write_averages is not None else None
    status = _report(given)
    if averages is not None and status == 0:
        with _output(given.write_averages) as file:
            file.write(averages.to_csv() or "")
    return status


def legacy(paths: Sequence[str], is_of_files: bool, as_json: bool, as_csv: bool, width: int) -> str:
    """Return the fractions as JSON, CSV, or text of this width; 0: unlimited."""
    fractions, n_dropped = _averages.fractions_of_files(paths) if is_of_files else (_averages.fractions(paths), 0)
    notes = _averages.notes(is_of_files, n_dropped)
    if as_json:
        return json.dumps({"warnings": notes, "rows": list(fractions)}) + "\n"
    if as_csv:
        return fractions.to_csv() or ""
    text = fractions._native.write("text", width, None, 0)
    return "".join((f"legacy\n{text}", *(f"note: {note}\n" for note in notes)))


def _report(given: Namespace) -> int:
    """Run the program, and add the fractions to its text or JSON. Returns its exit status."""
    command = [caller(), "breakdown", *given.rest]
    if given.json:
        command.append("--json")
    if given.csv is not None:
        command.append(f"--csv={given.csv}" if given.csv else "--csv")
    if not given.legacy or given.csv is not None or "--markdown" in given.rest:
        output = [f"--output={given.output}"] if given.output is not None else []
        return subprocess.run([*command, *output, "--", *given.paths], check=False).returncode
    fractions = legacy(given.paths, False, given.json, False, _width(given.output))
    if _width(given.output) != 0 and not given.json:  # terminal width and colors
        status = subprocess.run([*command, "--", *given.paths], check=False).returncode
        print(fractions if status == 0 else "", end="")
        return status
    done = subprocess.run([*command, "--", *given.paths], check=False, stdout=subprocess.PIPE, text=True)
    if done.stdout:
        with _output(given.output) as file:
            report = done.stdout.rstrip().removesuffix("}").rstrip() if given.json else done.stdout
            file.write(f'{report},\n  "legacy": {fractions}}}\n' if given.json else report + fractions)
    return done.returncode


def _width(output: Optional[str]) -> int:
    """The width of the terminal on stdout; 0 if stdout is not a terminal."""
    is_terminal = output in (None, "-") and sys.stdout.isatty()
    return os.get_terminal_size(sys.stdout.fileno()).columns if is_terminal else 0


@contextlib.contextmanager
def _output(path: Optional[str]) -> Iterator[IO[str]]:
    if path is None or path == "-":
        yield sys.stdout
    else:
        with replacing(path, encoding="utf-8") as file:
            yield file
