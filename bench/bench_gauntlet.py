#!/usr/bin/env python3
"""How often the diagnosis is right: programs with a planted cause, their fixed twins, and healthy programs.

    bench_gauntlet.py [--quick] [--dir DIR] [--results FILE] [--json FILE] [--rounds N] [--jobs N] [--gpu] [--all] [WORD...]

Each slow program runs once under `marey run` and so does its fixed twin; then both are timed without marey, in turns,
--rounds times (2), by their own clock. Each healthy pair of program and configuration runs once under `marey run`.
With words, only programs whose name or planted id contains one of them run; `healthy` and `slow` name all of a kind.
--gpu runs those that need a GPU and no others. --jobs runs programs side by side; use it on a machine with many cores.
--quick takes the first program of each id and each fourth healthy pair, without timing. --json FILE has all results.
docs/internals/gauntlet.md describes the programs, and what failed.
"""

from __future__ import annotations

import concurrent.futures
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench_results import Results, median_with_interval, options_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "gauntlet"))
import gauntlet
from catalog import HEALTHY, Slow


def choose(words: list[str], is_quick: bool, is_gpu: bool) -> list[gauntlet.Program]:
    chosen: list[gauntlet.Program] = []
    first: set[str] = set()
    for program in gauntlet.all_programs():
        is_slow = isinstance(program, Slow)
        ident = gauntlet.planted_in(program.file)[0] if is_slow else "healthy"
        names = (gauntlet.name_of(program), ident, "slow" if is_slow else "")
        if program.is_gpu != is_gpu or (words and not any(word in name for word in words for name in names)):
            continue
        if is_quick and (ident in first if is_slow else HEALTHY.index(program) % 4 != 0):
            continue
        first.add(ident)
        chosen.append(program)
    return chosen


def describe(finding: dict[str, Any]) -> str:
    causes = "".join(f" <- {cause['id']}" for cause in finding["because"])
    return f"{finding['id']}{causes} {finding['function']} {finding['file']}:{finding['line']}"


def judge(program: gauntlet.Program, folder: Path, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=folder) as own:
        try:
            if isinstance(program, Slow):
                return gauntlet.judge_slow(program, Path(own), rounds)
            return gauntlet.judge_healthy(program, Path(own))
        except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
            return {"program": gauntlet.name_of(program), "error": str(error)}


def show(result: dict[str, Any]) -> None:
    if "error" in result:
        print(f"  FAILED  {result['program']}: {result['error']}", flush=True)
        return
    if "planted" not in result:
        found = "; ".join(describe(each) for each in result["findings"])
        print(f"  {'silent' if not found else 'WRONG '}  {result['program']}  {found}", flush=True)
        return
    place = "place right" if result["is_place_right"] else f"place WRONG, not {result['function']}:{result['lines']}"
    gain = f", at most {result['at_most']:.2f}x" if "at_most" in result else ""
    gain += f", measured {result['measured']:.2f}x" if "measured" in result else ""
    kept = [each["id"] for each in result["fixed"]]
    print(
        f"  {'found ' if result['rank'] == 1 else 'WRONG '}  {result['planted']}  {result['program']}: rank"
        f" {result['rank']}, {place}{gain}; fixed: {', '.join(kept) or 'silent'}",
        flush=True,
    )
    if result["rank"] != 1 or not result["is_place_right"]:
        print("".join(f"          {describe(each)}\n" for each in result["findings"]), end="", flush=True)


def put_share(results: Results, what: str, k: int, n: int, bar: str, is_met: bool) -> None:
    if n > 0:
        low, high = gauntlet.wilson(k, n)
        results.put(what, f"{k} of {n} ({100 * low:.0f} to {100 * high:.0f} %)", bar, is_met)


def summarize(results: Results, done: list[dict[str, Any]]) -> None:
    slow = [each for each in done if each.get("planted") in gauntlet.rules() - gauntlet.EXPERIMENTAL]
    healthy = [each for each in done if "planted" not in each and "error" not in each]
    n = len(slow)
    first, three = sum(each["rank"] == 1 for each in slow), sum(each["rank"] in (1, 2, 3) for each in slow)
    right, kept = sum(each["is_place_right"] for each in slow), sum(not gauntlet.is_fixed_silent(each) for each in slow)
    put_share(results, "planted cause is finding 1", first, n, ">= 90 %", first >= 0.9 * n)
    put_share(results, "planted cause is among the first 3", three, n, "100 %", three == n)
    put_share(results, "its function and line are right", right, n, ">= 95 %", right >= 0.95 * n)
    put_share(results, "fixed twins that still have the finding", kept, n, "0", kept == 0)
    wrong = sum(bool(each["findings"]) for each in healthy)
    put_share(results, "healthy pairs with a finding", wrong, len(healthy), "0", wrong == 0)
    timed = [each for each in slow if "measured" in each and each.get("at_most")]
    bounded = sum(each["measured"] <= each["at_most"] for each in timed)
    put_share(results, "measured gain <= at most", bounded, len(timed), ">= 95 %", bounded >= 0.95 * len(timed))
    if timed:
        low, ratio, high = median_with_interval([each["at_most"] / each["measured"] for each in timed])
        results.put("at most / measured gain, median", f"{ratio:.2f} ({low:.2f} to {high:.2f})", "<= 1.5", ratio <= 1.5)
        low, cost, high = median_with_interval([each["cost_cpu"] for each in timed])
        text = f"{100 * cost:.1f} % ({100 * low:.1f} to {100 * high:.1f} %)"
        results.put("CPU time added to whole runs, start and end included", text, "<= 1 %", cost <= 0.01)
    claimed = [each["cost_claimed"] for each in done if each.get("cost_claimed", {}).get("measured")]
    if claimed:
        cost = statistics.median(each["share"] for each in claimed)
        results.put("cost that diagnoses print, median", f"{100 * cost:.1f} % in {len(claimed)} runs")


def main() -> int:
    parser = options_of(__doc__)
    parser.add_argument("--json", help="all results, to this file")
    parser.add_argument("--rounds", type=int, default=2, help="how often each program and its twin are timed (2)")
    parser.add_argument("--jobs", type=int, default=1, help="programs side by side (1)")
    parser.add_argument("--gpu", action="store_true", help="the programs that need a GPU, and no others")
    parser.add_argument("--all", action="store_true", help="also programs that wait for a rule; they count in no figure")
    parser.add_argument("words", nargs="*", metavar="WORD")
    options = parser.parse_args()
    folder = Path(options.dir).resolve()
    chosen = choose(options.words, options.quick, options.gpu)
    able = [program for program in chosen if not gauntlet.missing(program, not options.all)]
    done: list[dict[str, Any]] = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rounds = 0 if options.quick else options.rounds
        runs = [pool.submit(judge, program, folder, rounds) for program in able]
        for run in concurrent.futures.as_completed(runs):
            result = run.result()
            show(result)
            done.append(result)
            if options.json:
                Path(options.json).write_text(json.dumps({"schema": 1, "results": done}, indent=1) + "\n")
    for program in chosen:
        if program not in able:
            print(f"  left out: {gauntlet.name_of(program)}: {gauntlet.missing(program, not options.all)}")
    summarize(Results(options.results), done)
    return 1 if any("error" in result for result in done) else 0


if __name__ == "__main__":
    sys.exit(main())
