"""The fast programs of the gauntlet; bench/run gauntlet runs them all."""

from __future__ import annotations

import ast

import pytest
from catalog import SLOW, Healthy, Slow

from gauntlet import all_programs, is_fixed_silent, judge_healthy, judge_slow, missing, planted_in, source_of, wilson

FAST = {"spelling.py": "", "vocabulary_list.py": "", "csv_accelerate.py": "--rows 1300"}
FAST_HEALTHY = (
    Healthy("heat_healthy.py", "1500 500", ("numpy",)),
    Healthy("hash_healthy.py", "150 sha256", ()),
    Healthy("gan_healthy.py", "--steps 80"),
    Healthy("pipeline_healthy.py", "60", ()),
)


@pytest.mark.parametrize("program", SLOW, ids=lambda program: program.file)
def test_a_fixed_twin_is_a_program_without_the_mark(program: Slow) -> None:
    planted_in(program.file)
    fixed = source_of(program, True)
    if program.file.endswith(".py"):
        ast.parse(fixed)
    assert fixed != source_of(program, False)


def test_all_files_are_in_the_catalog() -> None:
    from gauntlet import PROGRAMS

    assert {file.name for file in PROGRAMS.glob("*.*")} == {program.file for program in all_programs()}
    assert len(set(all_programs())) == len(all_programs())


def test_intervals_of_shares() -> None:
    low, high = wilson(9, 10)
    assert (round(low, 3), round(high, 3)) == (0.596, 0.982)
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("file", FAST)
def test_what_is_planted_is_found(file: str, tmp_path) -> None:
    program = next(each for each in SLOW if each.file == file)._replace(arguments=FAST[file])
    if missing(program):
        pytest.skip(missing(program))
    result = judge_slow(program, tmp_path, 0)
    assert (result["rank"], result["is_place_right"]) == (1, True), result["findings"]
    assert is_fixed_silent(result), result["fixed"]


@pytest.mark.parametrize("program", FAST_HEALTHY, ids=lambda program: program.file)
def test_a_healthy_program_has_no_finding(program: Healthy, tmp_path) -> None:
    if missing(program):
        pytest.skip(missing(program))
    assert judge_healthy(program, tmp_path)["findings"] == []
