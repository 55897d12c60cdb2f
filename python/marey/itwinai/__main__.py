"""The commands of this package: `python -m marey.itwinai --help`. The program `marey` runs them.

Exit status: 0 success; 2 wrong usage, invalid input, or nothing to report, with a message on stderr.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from typing import Optional

from marey._native import MareyError
from marey.itwinai import Failure, _mlflow, _report, energy_of_files, write_measurements, write_power
from marey.itwinai._breakdown import breakdown
from marey.itwinai._files import say


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one command. Returns its exit status."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = _parser()
    given, rest = parser.parse_known_args(arguments)
    if rest and given.run is not breakdown:
        parser.error(f"unknown: {' '.join(rest)}")
    given.rest = rest
    try:
        status: int = given.run(given)
    except MareyError as error:
        say(_report.sentence_of(error))
        return 2
    except (Failure, ImportError, OSError, ValueError) as error:
        say(error)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m marey.itwinai", description="Commands and files of itwinai.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, run: object, about: str, *names: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=about, description=about)
        command.set_defaults(run=run)
        for each in names:
            command.add_argument(each, nargs="+" if each.endswith("s") else None)
        return command

    command = add("generate-scalability-report", _report.scalability_report, "tables and plots of an MLflow store")
    command.add_argument("--tracking-uri", default="mllogs/mlflow")
    command.add_argument("--experiment-name", default="unnamed-experiment")
    command.add_argument("--run-names")
    command.add_argument("--plot-dir", default="plots")
    command.add_argument("--plot-file-suffix", default=".svg")
    command.add_argument("--include-communication", action="store_true")
    command.add_argument("--no-warnings", action="store_true")
    command.add_argument("--log-dir")
    command.add_argument("--run-ids")
    command = add("generate-py-spy-report", _report.py_spy_report, "innermost frames of py-spy's stacks")
    command.add_argument("--file", required=True)
    command.add_argument("--num-rows", default="10")
    command.add_argument("--aggregate-leaf-paths", action="store_true")
    command.add_argument("--no-aggregate-leaf-paths", action="store_true")
    command.add_argument("--library-name", default="itwinai")
    command.add_argument("--all", action="store_true")
    command.add_argument("--by")
    command.add_argument("--json", action="store_true")
    command.add_argument("--csv", action="store_true")
    command.add_argument("--color", default="auto")
    command = add("breakdown", breakdown, "`marey breakdown` with itwinai's computation_fraction", "paths")
    command.allow_abbrev = False  # other options belong to the program
    command.add_argument("--legacy", action="store_true")
    command.add_argument("--write-averages")
    command.add_argument("--strategy", default="unknown")
    command.add_argument("--json", action="store_true")
    command.add_argument("--csv", nargs="?", const="")
    command.add_argument("--output")
    _add_formats(add("energy", _energy, "joules by itwinai's files of GPU power", "paths"))
    command = add("power", _power, "write itwinai's files of GPU power and epoch times", "paths")
    command.add_argument("--write-itwinai", dest="folder", required=True)
    command.add_argument("--strategy", default="unknown")
    add("measurements", _measurements, "itwinai's files as the CSV that `marey scale` reads", "path", "output")
    command = add("mlflow", _store, "an MLflow store as the CSV that `marey scale` reads", "uri", "output")
    command.add_argument("--experiment")
    command.add_argument("--run", dest="names", action="append", default=[])
    return parser


def _add_formats(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true")
    command.add_argument("--csv", action="store_true")
    command.add_argument("--width", type=int, default=0, help="columns of the terminal")


def _energy(given: argparse.Namespace) -> int:
    runs, repeats, n_dropped = energy_of_files(given.paths)
    if given.json:
        from marey import _tools

        print(_tools.json_tables([runs._native, repeats._native]), end="")
    elif given.csv:
        print(runs.to_csv(), end="")
    else:
        texts = [table._native.write("text", given.width, None, 0) for table in (runs, repeats)]
        print(f"runs\n{texts[0]}\nrepeats: mean of runs, and itwinai's sum\n{texts[1]}", end="")
    if n_dropped != 0:
        say(f"{n_dropped} rows without a power, an interval, a strategy or a number of GPUs are ignored")
    return 0


def _power(given: argparse.Namespace) -> int:
    write_power(given.paths, given.folder, given.strategy)
    return 0


def _measurements(given: argparse.Namespace) -> int:
    write_measurements(given.path, given.output)
    return 0


def _store(given: argparse.Namespace) -> int:
    if _mlflow.write(given.uri, given.output, given.experiment, given.names) == 0:
        raise Failure(_mlflow.nothing_in(given.uri, given.experiment))
    return 0


if __name__ == "__main__":
    sys.exit(main())
