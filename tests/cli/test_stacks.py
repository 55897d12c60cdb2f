"""marey export to speedscope, collapsed stacks and flame graphs. The report and speedscope's schema are the judges."""

from __future__ import annotations

import json
import re
import resource
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SCHEMA = Path(__file__).parent.parent / "data" / "speedscope" / "file-format-schema.json"
SVG = "{http://www.w3.org/2000/svg}"
# How flamegraph.pl takes a line apart: the number, and whether what is left ends in one more.
LINE = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$")


@pytest.fixture
def busy(marey, emit, tmp_path) -> Path:
    """Two threads, recursion, awkward names, payloads, an async range and a range that never ends."""
    done = marey(
        "run",
        "--only",
        "ranges",
        "-q",
        "-o",
        "busy.marey",
        emit,
        50,
        "recurse=3",
        "awkward",
        "thread",
        "payload",
        "open",
        3,
    )
    assert done.returncode == 0
    return tmp_path / "busy.marey"


@pytest.fixture
def empty(tmp_path) -> Path:
    """A recording of a program that has not begun to measure."""
    path = tmp_path / "empty.marey"
    path.mkdir()
    (path / "meta.json").write_text('{"format": "marey recording"}')
    return path


def report(marey, path: Path, table: str = "ranges") -> list[dict[str, Any]]:
    done = marey("report", path, "--json", *([f"--{table}"] if table != "ranges" else []))
    return json.loads(done.stdout)[table]


# ---- speedscope ----


def validate(file: Any) -> None:
    schema = pytest.importorskip(
        "fastjsonschema", reason="fastjsonschema is not installed; tools/setup test installs it"
    )
    schema.compile(json.loads(SCHEMA.read_text()))(file)


def read_speedscope(marey, path: Path) -> Any:
    done = marey("export", path, "--to", "speedscope", "-o", "-")
    assert done.returncode == 0
    return json.loads(done.stdout)


@pytest.mark.parametrize("which", ["busy", "empty"])
def test_speedscope_keeps_to_its_schema(marey, request, which):
    file = read_speedscope(marey, request.getfixturevalue(which))
    validate(file)
    assert re.fullmatch(r"marey \d+\.\d+\.\d+.*", file["exporter"])
    assert {profile["unit"] for profile in file["profiles"]} == {"nanoseconds"}


def replay(profile: dict[str, Any], frames: list[dict[str, Any]], totals: Counter, selves: Counter) -> None:
    """Play the events back as the application does, which refuses what is not nested or goes back in time."""
    stack: list[list[Any]] = []
    now = profile["startValue"]
    for event in profile["events"]:
        assert now <= event["at"] <= profile["endValue"]
        now = event["at"]
        if event["type"] == "O":
            stack.append([event["frame"], now, 0])
            continue
        frame, start, inside = stack.pop()
        assert frame == event["frame"]
        name = frames[frame]["name"]
        selves[name] += now - start - inside
        if all(name != frames[other[0]]["name"] for other in stack):
            totals[name] += now - start
        if stack:
            stack[-1][2] += now - start
    assert stack == []


def test_speedscope_is_nested_and_has_the_reports_times(marey, busy):
    file = read_speedscope(marey, busy)
    totals: Counter = Counter()
    selves: Counter = Counter()
    for profile in file["profiles"]:
        replay(profile, file["shared"]["frames"], totals, selves)
    assert {"never ends", "again", "helped"} <= totals.keys()
    assert "in flight" not in totals
    for row in report(marey, busy):
        assert (totals[row["name"]], selves[row["name"]]) == (row["total_ns"], row["self_ns"]), row["name"]


def test_speedscope_has_a_profile_for_each_thread_and_frames_with_places(marey, busy):
    file = read_speedscope(marey, busy)
    names = [profile["name"] for profile in file["profiles"]]
    assert len(names) == 2
    assert re.fullmatch(r"emit, pid \d+, emit \d+", names[0])
    assert re.fullmatch(r"emit, pid \d+, helper \d+", names[1])
    inner = next(frame for frame in file["shared"]["frames"] if frame["name"] == 'inner "quoted"')
    assert inner["file"].endswith("emit.c") and inner["line"] > 0
    assert {"marked", "loss"}.isdisjoint(frame["name"] for frame in file["shared"]["frames"])


def test_ranks_are_distinguished(marey, emit):
    for rank in "01":
        marey(
            "run",
            "--only",
            "ranges",
            "-q",
            "--append",
            "-o",
            "ranks.marey",
            emit,
            2,
            env={"RANK": rank, "WORLD_SIZE": "2"},
        )
    file = read_speedscope(marey, "ranks.marey")
    assert [profile["name"].split(",")[0] for profile in file["profiles"]] == ["rank 0 emit", "rank 1 emit"]
    assert len(file["shared"]["frames"]) == 2
    lines = marey("export", "ranks.marey", "--to", "collapsed", "--by", "rank", "-o", "-").stdout.splitlines()
    assert {line.split(";")[0] for line in lines} == {"rank 0", "rank 1"}


# ---- collapsed ----


def read_collapsed(marey, *args: object) -> dict[tuple[str, ...], int]:
    done = marey("export", *args, "--to", "collapsed", "-o", "-")
    assert done.returncode == 0
    stacks = {}
    for line in done.stdout.splitlines():
        frames, number = line.rsplit(" ", 1)
        assert tuple(frames.split(";")) not in stacks
        stacks[tuple(frames.split(";"))] = int(number)
    return stacks


def test_collapsed_has_the_reports_self_times(marey, busy):
    stacks = read_collapsed(marey, busy)
    assert list(stacks) == sorted(stacks)
    selves: Counter = Counter()
    for path, self_ns in stacks.items():
        selves[path[-1]] += self_ns
    plain = [row for row in report(marey, busy) if re.fullmatch(r"[\w ]*[a-z]", row["name"])]
    assert {row["name"] for row in plain} == {"outer", "again", "helped", "with text", "leaf"}
    for row in plain:
        assert selves[row["name"]] == row["self_ns"]
    assert sum(stacks.values()) == sum(row["self_ns"] for row in report(marey, busy))
    assert ("again", "again", "again") in stacks
    assert ("never ends", "outer") in stacks
    assert not any("in flight" in path for path in stacks)


def test_no_collapsed_line_looks_differential(marey, busy):
    lines = marey("export", busy, "--to", "collapsed", "-o", "-").stdout.splitlines()
    assert any(line.startswith("layer_12 ") for line in lines)
    assert any(line.startswith("a:b;again ") for line in lines)
    for line in lines:
        found = LINE.match(line)
        assert found is not None
        assert LINE.match(found[1].rstrip()) is None, line


def test_a_thread_can_come_first(marey, busy):
    first = {path[0] for path in read_collapsed(marey, busy, "--by", "thread")}
    assert first == {"emit, emit", "emit, helper"}


def test_collapsed_against_a_baseline_has_both_numbers(marey, emit, busy):
    marey("run", "--only", "ranges", "-q", "-o", "old.marey", emit, 2, "thread")
    now, before = read_collapsed(marey, busy), read_collapsed(marey, "old.marey")
    done = marey("export", busy, "--to", "collapsed", "--baseline", "old.marey", "-o", "-")
    both = {}
    for line in done.stdout.splitlines():
        frames, old, new = line.rsplit(" ", 2)
        both[tuple(frames.split(";"))] = (int(old), int(new))
    assert both == {path: (before.get(path, 0), now.get(path, 0)) for path in {**now, **before}}


# ---- flame graph ----


def read_svg(marey, *args: object) -> ET.Element:
    done = marey("export", *args, "--to", "flamegraph", "-o", "-", text=False)
    assert done.returncode == 0
    return ET.fromstring(done.stdout)


def boxes(svg: ET.Element) -> list[tuple[str, float, float, float]]:
    """Name, left, top, width of each box."""
    found = []
    for g in svg.iter(f"{SVG}g"):
        if g.get("class") == "b":
            title, rect = g.find(f"{SVG}title"), g.find(f"{SVG}rect")
            assert title is not None and rect is not None
            numbers = (float(rect.get(key, "")) for key in ("x", "y", "width"))
            found.append((str(title.text).split("\n", maxsplit=1)[0], *numbers))
    return found


def test_boxes_are_as_wide_as_the_reports_tree(marey, emit):
    marey("run", "--only", "ranges", "-q", "-o", "plain.marey", emit, 500, "recurse=3")
    tree = report(marey, "plain.marey", "tree")
    whole = sum(row["total_ns"] for row in tree if row["depth"] == 0)
    drawn = [box for box in boxes(read_svg(marey, "plain.marey")) if "narrow" not in box[0]]
    expected = [("all", 78.0, 1180.0)]
    for row in tree:
        width = row["total_ns"] / whole * 1180
        if width >= 0.25:
            expected.append((row["name"], 96.0 + 18 * row["depth"], width))
    assert [(name, top) for name, _, top, _ in drawn] == [(name, top) for name, top, _ in expected]
    for box, (_, _, width) in zip(drawn, expected):
        assert box[3] == pytest.approx(width, abs=0.006)


def test_a_box_lies_within_the_one_above_it(marey, busy):
    drawn = boxes(read_svg(marey, busy, "--by", "thread"))
    assert {"emit, emit", "emit, helper", "never ends"} <= {name for name, *_ in drawn}
    for _, left, top, width in drawn[1:]:
        assert any(
            above == top - 18 and x <= left + 0.02 and left + width <= x + w + 0.02 for _, x, above, w in drawn
        ), (left, top)


def test_a_flame_graph_needs_nothing_from_elsewhere(marey, busy):
    text = marey("export", busy, "--to", "flamegraph", "-o", "-").stdout
    addresses = set(re.findall(r"https?://[^\"'\s<)]+", text))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}
    assert not re.search(r"\b(href|src|@import)\b\s*=", text.replace("src=x", ""))


def test_async_ranges_are_said_to_be_missing(marey, emit, busy):
    marey("run", "--only", "ranges", "-q", "-o", "plain.marey", emit, 2)
    said = [any("Async" in str(text.text) for text in read_svg(marey, path).iter()) for path in (busy, "plain.marey")]
    assert said == [True, False]


def test_awkward_names_stay_text(marey, busy):
    names = {name for name, *_ in boxes(read_svg(marey, busy))}
    assert {
        "a;b",
        "two\\nlines",
        "</text><script>x=1</script>",
        "&amp; \"'",
        "\\x01\\x1b[31m",
        "\N{GRINNING FACE}",
    } <= names


def test_a_difference_names_both_and_lists_what_is_gone(marey, emit, busy):
    marey("run", "--only", "ranges", "-q", "-o", "old.marey", emit, 2, "thread")
    svg = read_svg(marey, "old.marey", "--baseline", busy)
    texts = [str(text.text) for text in svg.iter(f"{SVG}text")]
    assert "What changed: old.marey against busy.marey" in texts
    gone = [text for text in texts if text.endswith(" call")]
    assert "again, 1 call" in gone
    assert not any(text.startswith("again > again") for text in gone)
    assert any(text.startswith("Only in busy.marey") for text in texts)


# ---- all of them ----

NAMES = [("speedscope", "run.speedscope.json"), ("collapsed", "run.collapsedstack.txt"), ("flamegraph", "run.svg")]


@pytest.mark.parametrize("to, name", NAMES)
def test_the_file_is_named_after_the_recording_and_its_ending_is_known(marey, recording, tmp_path, to, name):
    assert marey("export", recording, "--to", to).returncode == 0
    written = (tmp_path / name).read_bytes()
    assert marey("export", recording, "-o", f"again-{name}").returncode == 0
    assert (tmp_path / f"again-{name}").read_bytes() == written


@pytest.mark.parametrize("to", ["speedscope", "collapsed", "flamegraph"])
def test_an_empty_recording_gives_an_empty_file_of_its_kind(marey, empty, to):
    done = marey("export", empty, "--to", to, "-o", "-")
    assert done.returncode == 0
    if to == "speedscope":
        assert [profile["events"] for profile in json.loads(done.stdout)["profiles"]] == [[]]
    elif to == "flamegraph":
        assert [box[0] for box in boxes(ET.fromstring(done.stdout))] == ["all"]
    else:
        assert done.stdout == ""


@pytest.mark.parametrize("to", ["speedscope", "flamegraph"])
def test_a_full_disk_leaves_no_half_file(marey, busy, tmp_path, to):
    limit = 4096
    before = set(tmp_path.iterdir())
    done = marey(
        "export",
        busy,
        "--to",
        to,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("to", ["speedscope", "collapsed", "flamegraph"])
def test_a_damaged_recording_is_exported_as_far_as_it_goes(marey, busy, to):
    log = next(busy.glob("*.klog"))
    content = bytearray(log.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 16] = bytes(byte ^ 0xFF for byte in content[middle : middle + 16])  # more than padding
    log.write_bytes(content)
    done = marey("export", busy, "--to", to, "-o", "-")
    assert done.returncode == 2
    assert "damaged" in done.stderr
    if to == "speedscope":
        file = json.loads(done.stdout)
        for profile in file["profiles"]:
            replay(profile, file["shared"]["frames"], Counter(), Counter())
    elif to == "flamegraph":
        ET.fromstring(done.stdout)


@pytest.mark.parametrize(
    "args, words",
    [
        (["--to", "chrome", "--by", "rank"], "--by"),
        (["--baseline", "old.marey"], "--baseline"),
        (["--to", "flamegraph", "--baseline", "nowhere.marey"], "nowhere.marey"),
        (["--to", "collapsed", "--by", "host"], "thread"),
    ],
)
def test_wrong_wishes_are_reported_in_one_sentence(marey, recording, tmp_path, args, words):
    before = set(tmp_path.iterdir())
    done = marey("export", recording, *args)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert words in done.stderr
    assert set(tmp_path.iterdir()) == before
