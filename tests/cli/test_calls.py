"""`marey report --calls` and files of calls, checked with the programs that open them.

The reference is a profile of cProfile, which marey reads and writes again.
"""

from __future__ import annotations

import ast
import cProfile
import csv
import io
import json
import pstats
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_export import Timeline, needs_perfetto

TREE = Path(__file__).parents[1] / "fuzz" / "corpus" / "calls" / "tree.klog"
DOT = "dot(a:ndarray(dtype=float32, shape=(16,)), b:int)"


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


# ---- tables ----


def test_stacks_of_another_sampler_have_no_call_counts(marey, tmp_path):
    (tmp_path / "a.collapsed").write_text("main;work;leaf 40\nmain;work 10\n")
    done = marey("report", "--calls", "a.collapsed")
    assert done.stdout.startswith("samples of 3 functions") and "140" not in done.stdout
    rows = json.loads(marey("report", "--calls", "--json", "a.collapsed").stdout)["functions"]
    assert [(row["calls"], row["self_ns"]) for row in rows] == [(None, 400_000_000), (None, 100_000_000), (None, 0)]
    assert "counts are samples" in marey("report", "a.collapsed").stdout


def test_functions_are_counted_and_the_heaviest_comes_first(marey):
    done = marey("report", TREE, "--calls")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("36 calls (30 primitive) of 4 functions on 2 threads")
    assert re.sub(" +", " ", lines[3]) == " 25 19 36.0 ms 1.44 ms 35.0 ms 1.84 ms 9.00 ms 64.3 % x.py:9(dot)"
    assert "{built-in method builtins.len}" in done.stdout


def test_signatures_split_a_function(marey):
    table = rows(marey("report", TREE, "--calls", "--csv", "--by", "signature").stdout)
    of_dot = {row["signature"]: (int(row["calls"]), row["elements"]) for row in table if row["function"] == "dot"}
    assert of_dot == {DOT[4:-1]: (19, "32"), "self:Model, b:list(int)": (6, "64")}
    text = marey("report", TREE, "--calls", "--by", "signature").stdout
    assert f"x.py:9({DOT})" in text and "x.py:9(Model.dot(b:list(int)))" in text


def test_the_slow_shape_is_found(marey):
    table = rows(marey("report", TREE, "--calls", "--csv", "--by", "shape").stdout)
    slow = max(table, key=lambda row: float(row["ns_per_element"]))
    assert slow["signature"] == DOT[4:-1]
    assert float(slow["times_best"]) == pytest.approx(35 / 19 / 32 / (13 / 6 / 64))


def test_paths_are_indented(marey):
    lines = marey("report", TREE, "--calls", "--by", "path").stdout.splitlines()
    assert any(line.endswith("  x.py:3(main)") for line in lines)
    assert any(line.endswith(f"    x.py:9({DOT})") for line in lines)
    assert any(line.endswith("        {built-in method builtins.len}") for line in lines)


def test_callers_and_callees(marey):
    callers = rows(marey("report", TREE, "--calls", "--csv", "--callers", "dot").stdout)
    assert [(row["caller"], int(row["calls"])) for row in callers] == [("main", 4), ("dot", 6)]
    callees = rows(marey("report", TREE, "--calls", "--csv", "--callees", "dot", "--by", "signature").stdout)
    assert {(row["function"], row["callee"]) for row in callees} == {
        (DOT, "Model.dot(b:list(int))"),
        ("Model.dot(b:list(int))", "<built-in method builtins.len>"),
    }


def test_sorting_and_limits(marey):
    by_calls = rows(marey("report", TREE, "--calls", "--csv", "--sort", "calls", "-n", "2").stdout)
    assert [row["function"] for row in by_calls] == ["dot", "<built-in method builtins.len>"]
    by_name = rows(marey("report", TREE, "--calls", "--csv", "--sort", "name").stdout)
    assert [row["function"] for row in by_name] == sorted(row["function"] for row in by_name)
    assert rows(marey("report", TREE, "--calls", "--csv", "--sort", "-calls").stdout)[0]["function"] == "jitted"


def test_json_has_every_table(marey):
    whole = json.loads(marey("report", TREE, "--calls", "--json").stdout)
    names = {"functions", "signatures", "callers", "callees", "paths", "shapes", "threads", "totals", "notes"}
    assert set(whole) == names
    assert whole["totals"][0]["other_paths"] == 5
    assert sum(row["self_ns"] for row in whole["functions"]) == whole["totals"][0]["self_ns"]
    assert sum(row["self_ns"] for row in whole["paths"]) == whole["totals"][0]["self_ns"]
    assert sum(row["self_ns"] for row in whole["threads"]) == whole["totals"][0]["self_ns"]


def test_cost_is_taken_out_and_reported(marey):
    plain = json.loads(marey("report", TREE, "--calls", "--json").stdout)
    less = json.loads(marey("report", TREE, "--calls", "--json", "--subtract").stdout)
    taken = less["totals"][0]["subtracted_ns"]
    assert 0 < taken == plain["totals"][0]["self_ns"] - less["totals"][0]["self_ns"]
    assert "measuring a call costs" in marey("report", TREE, "--calls").stdout
    assert "is subtracted from these times" in marey("report", TREE, "--calls", "--subtract").stdout


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--callers", "dot"], "--callers goes with --calls"),
        (["--by", "shape"], "--by goes with --epochs, --energy, --calls or --samples"),
        (["--calls", "--by", "epoch"], "calls takes by=function, signature, path"),
        (["--calls", "--callers", "a", "--callees", "b"], "exclude one another"),
        (["--calls", "--gpu"], "--gpu and --calls exclude one another"),
        (["--calls", "--sort", "color"], "calls cannot be sorted by 'color'"),
        (["--calls", "--csv", "--table", "ranges"], "no table 'ranges' of calls"),
    ],
)
def test_mistakes_are_reported_in_a_sentence(marey, args, sentence):
    done = marey("report", TREE, *args)
    assert done.returncode == 2
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_damage_is_reported_and_the_rest_is_given(marey, tmp_path):
    damaged = tmp_path / "damaged.klog"
    damaged.write_bytes(TREE.read_bytes().replace(b"builtins.len>", b"builtins.xyz>"))  # the checksum is wrong now
    done = marey("report", damaged, "--calls")
    assert done.returncode == 2
    assert "jitted" in done.stdout and "damaged" in done.stderr


# ---- files and their readers ----


def every_python():
    """Return the Pythons from 3.10 to 3.13: this one, those of pyenv, those on the PATH."""
    found = {sys.version_info[:2]: sys.executable}
    for minor in range(10, 14):
        for path in sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python")):
            found.setdefault((3, minor), str(path))
        on_path = shutil.which(f"python3.{minor}")
        if on_path is not None and (3, minor) not in found and works(on_path):
            found[3, minor] = on_path
    return sorted(found.items())


def works(python):
    """Whether it is one: pyenv has a script for every version it keeps, and most of them only say that they are off."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="session")
def written(program, tmp_path_factory):
    """Every file of the tree, by its format."""
    folder = tmp_path_factory.mktemp("calls")
    for kind in ("pstats", "callgrind", "collapsed", "speedscope", "flamegraph", "perfetto", "chrome"):
        subprocess.run([program, "export", TREE, "--to", kind, "-q", "-o", folder / kind], check=True)
    return folder


EXPECTED = {
    ("/a/x.py", 3, "main"): (2, 2, 0.01, 0.04),
    ("/a/x.py", 9, DOT): (19, 19, 0.026, 0.035),
    ("/a/x.py", 9, "Model.dot(b:list(int))"): (6, 6, 0.01, 0.013),
    ("~", 0, "<built-in method builtins.len>"): (8, 8, 0.01, 0.01),
    ("x.py", 4, "jitted"): (1, 1, 1e-6, 1e-6),
}


@pytest.mark.parametrize("python", [pytest.param(path, id=f"{v[0]}.{v[1]}") for v, path in every_python()])
def test_pstats_of_every_python_reads_it(written, python):
    ask = "import pstats,sys; s = pstats.Stats(sys.argv[1]); print(repr({k: v[:4] for k, v in s.stats.items()}))"
    ask += "; s.strip_dirs().sort_stats('cumulative').print_stats(); s.print_callers()"
    done = subprocess.run([python, "-E", "-c", ask, written / "pstats"], capture_output=True, text=True, check=True)
    stats = ast.literal_eval(done.stdout.splitlines()[0])
    assert set(stats) == set(EXPECTED)
    for key, values in EXPECTED.items():
        assert stats[key] == pytest.approx(values)
    assert f"x.py:9({DOT})" in done.stdout


def test_snakeviz_draws_it(written):
    snakeviz = pytest.importorskip("snakeviz.stats", reason="snakeviz is not installed: tools/requirements-test.txt")
    stats = pstats.Stats(str(written / "pstats"))
    table = snakeviz.table_rows(stats)
    assert len(table) == len(EXPECTED)
    callees = snakeviz.json_stats(stats)
    (main,) = (value for key, value in callees.items() if "main" in key)
    assert [key for key in main["children"] if "dot(" in key]


def test_gprof2dot_draws_it(written, tmp_path):
    pytest.importorskip("gprof2dot", reason="gprof2dot is not installed: tools/requirements-test.txt")
    for kind in ("pstats", "callgrind"):
        picture = tmp_path / f"{kind}.dot"
        command = [sys.executable, "-m", "gprof2dot", "-f", kind, "-n", "0", "-e", "0", "-o", picture, written / kind]
        subprocess.run(command, check=True)
        text = picture.read_text()
        assert text.startswith("digraph") and "dot(a:ndarray(dtype=float32" in text.replace("\\n", "")
        assert "->" in text


def read_callgrind(text):
    """Read the format by its grammar, strictly: own costs by function, and (caller, callee) -> calls, cost."""
    names: dict[str, dict[str, str]] = {"file": {}, "function": {}}

    def name(kind, value):
        number, text = re.fullmatch(r"\((\d+)\)(?: (.+))?", value).groups()
        assert (text is None) == (number in names[kind]), value
        names[kind].setdefault(number, text)
        return names[kind][number]

    own: dict[tuple[str, str], int] = {}
    edges: dict[tuple[str, str], tuple[int, int]] = {}
    head: dict[str, str] = {}
    lines = iter(text.splitlines())
    assert next(lines) == "# callgrind format"
    file = function = ""
    for line in lines:
        if line == "":
            continue
        if file == "" and not line.startswith("fl="):
            key, value = line.split(":", 1)
            head[key] = value.strip()
            continue
        if line.startswith("fl="):
            file = name("file", line[3:])
        elif line.startswith("fn="):
            function = name("function", line[3:])
        elif line.startswith("cfi="):
            name("file", line[4:])
            callee = name("function", next(lines).removeprefix("cfn="))
            calls, _target = re.fullmatch(r"calls=(\d+) (\d+)", next(lines)).groups()
            _line, cost = map(int, next(lines).split(" "))
            assert (function, callee) not in edges
            edges[function, callee] = int(calls), cost
        else:
            _line, cost = map(int, line.split(" "))
            assert (file, function) not in own
            own[file, function] = cost
    return head, own, edges


def test_callgrind_has_every_cost_and_call(written):
    head, own, edges = read_callgrind((written / "callgrind").read_text())
    assert head["events"] == "ns" and head["positions"] == "line"
    assert own == {(file, name): round(values[2] * 1e9) for (file, _line, name), values in EXPECTED.items()}
    assert int(head["summary"]) == sum(own.values())
    assert edges == {
        ("main", DOT): (4, 20_000_000),
        (DOT, "Model.dot(b:list(int))"): (6, 13_000_000),
        ("Model.dot(b:list(int))", "<built-in method builtins.len>"): (8, 10_000_000),
    }


def test_callgrind_annotate_reads_it(written):
    program = shutil.which("callgrind_annotate")
    if program is None:
        pytest.skip("callgrind_annotate is not installed: package valgrind")
    done = subprocess.run([program, written / "callgrind"], capture_output=True, text=True, check=True)
    assert "56,001,000" in done.stdout and DOT in done.stdout


def test_other_exports_have_the_paths(written):
    lines = (written / "collapsed").read_text().splitlines()
    assert f"main;{DOT};Model.dot(b:list(int));<built-in method builtins.len> 10000000" in lines
    speedscope = json.loads((written / "speedscope").read_text())
    assert {profile["name"].split(", ")[-1] for profile in speedscope["profiles"]} == {"MainThread 70", "worker 71"}
    main = speedscope["profiles"][0]
    opened = [event["frame"] for event in main["events"] if event["type"] == "O"]
    assert [speedscope["shared"]["frames"][frame]["name"] for frame in opened][:2] == ["main", DOT]
    assert (written / "flamegraph").read_text().count("Model.dot") >= 1
    chrome = json.loads((written / "chrome").read_text())
    assert any(event.get("name") == DOT for event in chrome["traceEvents"])


@needs_perfetto
def test_perfetto_has_a_track_for_each_thread(written):
    timeline = Timeline(written / "perfetto")
    assert {"MainThread", "worker"} <= {track.thread.thread_name for track in timeline.tracks.values()}
    durations = {(name, duration) for name, _start, duration in timeline.slices}
    assert {("main", 40_000_000), (DOT, 10_000_000), ("(other paths)", 6_000_000)} <= durations


def test_calls_that_are_not_there_are_reported(marey, recording, tmp_path):
    done = marey("export", recording, "--calls", "--to", "collapsed", "-o", tmp_path / "x")
    assert done.returncode == 2 and "marey run --calls" in done.stderr
    assert not (tmp_path / "x").exists()


# ---- profiles of cProfile ----


def busy(n):
    def fib(k):
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    def even(k):
        return k == 0 or odd(k - 1)

    def odd(k):
        return k != 0 and even(k - 1)

    return fib(n), even(n), sum(len(str(i)) for i in range(n))


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    path = tmp_path_factory.mktemp("cprofile") / "program.prof"
    profile = cProfile.Profile()
    profile.runcall(busy, 12)
    profile.dump_stats(path)
    return path


def test_an_imported_profile_has_the_same_functions(marey, profiled):
    table = rows(marey("report", profiled, "--calls", "--csv").stdout)
    ours = {(row["file"], int(row["line"] or 0), row["function"]): int(row["calls"]) for row in table}
    assert ours == {key: values[1] for key, values in pstats.Stats(str(profiled)).stats.items()}


def test_an_imported_profile_goes_out_as_it_came(marey, profiled, tmp_path):
    again = tmp_path / "again.prof"
    assert marey("export", profiled, "-o", again).returncode == 0
    before, after = (pstats.Stats(str(path)) for path in (profiled, again))
    assert {key: values[1] for key, values in after.stats.items()} == {
        key: values[1] for key, values in before.stats.items()
    }
    for key, values in before.stats.items():
        assert after.stats[key][2] == pytest.approx(values[2], abs=1e-6)
