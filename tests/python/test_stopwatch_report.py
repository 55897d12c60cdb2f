"""Stopwatch: the report that print_eval_times() and finish_iter() print."""

from __future__ import annotations

import contextlib
import io
import re
import sys

import pytest

from marey import Stopwatch

HEAD = "#" * 25 + " Stopwatch " + "#" * 25
TILDES, DOTS, END = "~" * 50, (". " * 25).strip(), "#" * 61


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def report() -> list[str]:
    out = io.StringIO()
    Stopwatch().print_eval_times(out)
    assert out.getvalue() == Stopwatch().report()
    return lines_of(out.getvalue())


def iterate(n: int, *names: str) -> None:
    for _ in range(n):
        for name in names:
            with Stopwatch()(name):
                pass
        Stopwatch().finish_iter()


def value_of(lines: list[str], heading: str, name: str) -> str:
    rest = lines[lines.index(heading) + 1 :]
    return next(line.split(":", 1)[1].strip() for line in rest if line.startswith(f"  `{name}`:"))


def assert_in_order(lines: list[str], wanted: list[str]) -> None:
    at = -1
    for line in wanted:
        assert line in lines[at + 1 :], f"{line!r} is missing behind line {at} of {lines}"
        at = lines.index(line, at + 1)


def test_the_sections_of_a_report_and_their_order():
    Stopwatch(1)
    iterate(4, "first", "second")
    lines = report()
    assert (lines[0], lines[1], lines[-2], lines[-1]) == (HEAD, TILDES, TILDES, END)
    assert_in_order(
        lines,
        [
            HEAD,
            TILDES,
            "Num. measured iterations: 3",
            DOTS,
            "Average runtime per iteration:",
            DOTS,
            "Average runtime per measured interval:",
            DOTS,
            "Total runtime:",
            DOTS,
            TILDES,
            END,
        ],
    )
    for heading in ("Average runtime per iteration:", "Average runtime per measured interval:", "Total runtime:"):
        at = lines.index(heading)
        assert lines[at + 1].startswith("  `first`:")
        assert lines[at + 2].startswith("  `second`:")
        assert re.search(r"\d ?(ns|µs|us|ms|s)\b", value_of(lines, heading, "first"))


def test_before_the_end_of_warmup_the_report_says_how_far_it_is():
    Stopwatch(5)
    iterate(2, "a")
    text = "\n".join(report())
    assert re.search(r"\(2 out of 5", text)
    assert "Average" not in text


def test_after_warmup_and_before_anything_is_measured_the_report_says_so():
    Stopwatch(2)
    iterate(2, "a")
    text = "\n".join(report())
    assert "out of" not in text
    assert "Average" not in text
    assert "warm" in text.lower()


@pytest.mark.parametrize("n", [0, 2, 4], ids=["warm-up", "none after it", "measured"])
def test_one_time_measurements_are_in_every_report(n):
    stopwatch = Stopwatch(2)
    assert "One-time measurements:" not in report()
    stopwatch.start_one_time_measurement("prepared")
    stopwatch.end_one_time_measurement("prepared")
    stopwatch.start_one_time_measurement("whole run")
    iterate(n, "a")
    lines = report()
    assert_in_order(lines, [TILDES, TILDES, "One-time measurements:", TILDES, END])
    assert value_of(lines, "One-time measurements:", "prepared") != "running"
    assert value_of(lines, "One-time measurements:", "whole run").startswith("running")


def test_a_name_that_runs_is_shown_as_running():
    stopwatch = Stopwatch(0)
    iterate(1, "a")
    stopwatch.start_meas("new and running")
    stopwatch.start_meas("a")
    lines = report()
    assert any("`new and running`" in line and "running" in line.split(":", 1)[1] for line in lines)
    assert lines[-1] == END


def test_a_name_seen_only_in_warmup_and_a_cpu_name_not_measured_yet_are_reported():
    stopwatch = Stopwatch(1)
    stopwatch.set_cpu_usage_meas_name("cpu")
    iterate(1, "only in warm-up")
    iterate(1, "a")
    lines = report()
    assert lines[-1] == END
    assert any("`only in warm-up`" in line for line in lines)


def test_cpu_use_has_a_line():
    stopwatch = Stopwatch(0)
    stopwatch.set_cpu_usage_meas_name("busy")
    with stopwatch("busy"):
        sum(range(200_000))
    stopwatch.finish_iter()
    assert re.search(r"Mean CPU usage during[^`]*`busy`: .* %", "\n".join(report()))


def test_reports_come_exactly_at_multiples(capsys):
    Stopwatch(3, 2, False)
    at = []
    for i in range(12):
        iterate(1, "a")
        printed = capsys.readouterr().out
        if printed:
            assert printed.count(HEAD) == 1
            at.append((i + 1, int(re.search(r"Num. measured iterations: (\d+)", printed)[1])))
    assert at == [(5, 2), (7, 4), (9, 6), (11, 8)]


def test_without_a_number_nothing_is_printed(capsys):
    Stopwatch(0, None, False)
    iterate(20, "a")
    assert capsys.readouterr().out == ""


def test_it_prints_where_print_does():
    Stopwatch(0, 1, False)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print("before")
        iterate(1, "a")
        print("after")
        Stopwatch().print_eval_times()
    lines = lines_of(out.getvalue())
    assert (lines[0], lines[1], lines.count(HEAD)) == ("before", HEAD, 2)
    assert_in_order(lines, [HEAD, END, "after", HEAD, END])


def test_print_eval_times_by_another_name_prints_the_whole_report_too(capsys):
    stopwatch = Stopwatch(0)
    iterate(2, "a")
    stopwatch.print_eval_times()
    assert capsys.readouterr().out == stopwatch.report()


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError("nobody reads")


def test_a_loop_does_not_end_because_nobody_reads_its_output(monkeypatch, capsys):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append(what.exc_type))
    Stopwatch(0, 1, False)
    with contextlib.redirect_stdout(Broken()):
        iterate(5, "a")
    assert Stopwatch().get_num_nonwarmup_iters_measured() == 5
    assert told == [BrokenPipeError]


def test_strict_it_does():
    Stopwatch(0, 1, strict=True)
    with contextlib.redirect_stdout(Broken()), pytest.raises(BrokenPipeError):
        iterate(1, "a")


def test_what_is_meant_to_end_a_program_does():
    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            raise KeyboardInterrupt

    Stopwatch(0, 1, False)
    with contextlib.redirect_stdout(Interrupted()), pytest.raises(KeyboardInterrupt):
        iterate(1, "a")


def test_asked_for_by_hand_an_output_that_refuses_raises():
    Stopwatch(0)
    with pytest.raises(BrokenPipeError):
        Stopwatch().print_eval_times(Broken())


def test_without_a_stdout_nothing_is_printed():
    Stopwatch(0, 1, False)
    with contextlib.redirect_stdout(None):
        iterate(2, "a")
        Stopwatch().print_eval_times()
    assert Stopwatch().get_num_nonwarmup_iters_measured() == 2


def test_a_terminal_that_knows_ascii_only_gets_the_report(run_python):
    done = run_python(
        """
        from marey import Stopwatch
        stopwatch = Stopwatch(0, 1, strict=True)
        for name in ("plain", "naïve \\N{SNOWMAN}", b"bytes \\xff", "lone \\ud800"):
            with stopwatch(name):
                sum(range(1000))
        stopwatch.finish_iter()
        """,
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert END in done.stdout
    assert "plain" in done.stdout


def test_names_with_line_breaks_and_quotes_do_not_break_the_report_off():
    Stopwatch(0)
    iterate(2, "two\nlines", "`quoted`", "nul\0inside", "")
    assert report()[-1] == END


def test_a_report_printed_by_another_driver_of_iterations(capsys):
    import marey

    Stopwatch(0, 2, False)
    for _ in range(4):
        with marey.iteration():
            pass
    assert capsys.readouterr().out.count(HEAD) == 2
