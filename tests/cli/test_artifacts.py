"""marey artifacts: equal to torch's results for the same profile; complete files or none; messages."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
KINETO = HERE.parent / "data" / "kineto"
GPU_TRACES = ["mi250_minitoy_train_ROCm6_2_kineto", "event_sync_trace"]


# ---- against torch ----


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A torch profile with torch's results."""
    pytest.importorskip("torch")
    into = tmp_path_factory.mktemp("torch")
    traces = [str(KINETO / f"{name}.json.gz") for name in GPU_TRACES]
    command = [sys.executable, str(HERE / "torch_reference.py"), str(into), *traces]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return into


def make(marey: Any, trace: Path, into: str, *args: object) -> None:
    done = marey("artifacts", trace, "-o", into, *args)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_row_of_key_averages_has_the_numbers_of_torch(marey, tmp_path, reference):
    make(marey, reference / "trace.json", "out", "--only", "averages")
    ours = {}
    for row in json.loads((tmp_path / "out/rank0_key_averages.json").read_text()):
        ours[row["name"], row["shapes"], row["stack"] or "", row["kind"] == "annotation"] = row
    theirs = json.loads((reference / "rows.json").read_text())["whole"]
    assert len(theirs) == len(ours) > 300
    seen = set()
    for row in theirs:
        key = (row["name"], row["shapes"], row["stack"])
        mine = ours.get((*key, False)) or ours[(*key, True)]
        seen.add(key)
        for exact in ("calls", "flops", "cpu_bytes", "self_cpu_bytes"):
            assert mine[exact] == row[exact], (key, exact)
        for clock in ("cpu", "self_cpu"):
            assert mine[f"{clock}_ns"] == round(row[f"{clock}_us"] * 1000), (key, clock)
    names = {name for name, _, _ in seen}
    assert {"marey:forward", "aten::mm", "DoubledBackward", "[memory]"} & names
    assert sum(row["flops"] > 0 for row in theirs) > 5


def cells_of(line: str, widths: list[int]) -> list[str]:
    cells, at = [], 0
    for width in widths:
        cells.append(line[at : at + width])
        at += width + 2
    return cells


def rearranged(table: str) -> list[str]:
    """Torch's table with what it writes under FLOPs and under the source each under its own title."""
    lines = table.splitlines()
    widths = [len(dashes) for dashes in lines[0].split()]
    source, flops = widths[-2:]
    out = []
    for line in lines:
        if line.startswith(("-", "Self ")) or "Source Location" in line:
            out.append(line)
            continue
        *cells, swapped = cells_of(line, widths[:-1])
        tail = line[sum(widths[:-1]) + 2 * len(widths[:-1]) :].rstrip().lstrip()
        is_row = cells[0].strip() != ""
        cells += [f"{tail:<{source}}", f"{swapped.strip() if is_row else '':>{flops}}"]
        out.append("".join(cell + "  " for cell in cells))
    return out


TIME = re.compile(r"(\d+\.\d{3})(s|ms|us)|(\d+\.\d{2})%")


def same_but_for_rounding(ours: str, theirs: str) -> bool:
    """Torch divides floating point microseconds, so that what lies between two thousandths may fall the other way."""
    if ours == theirs:
        return True
    if TIME.sub("T", ours).split() != TIME.sub("T", theirs).split() or len(ours) != len(theirs):
        return False
    for mine, other in zip(TIME.finditer(ours), TIME.finditer(theirs)):
        digits = (mine[1] or mine[3], other[1] or other[3])
        if mine[2] != other[2] or abs(float(digits[0]) - float(digits[1])) > (0.0011 if mine[2] else 0.011):
            return False
    return True


@pytest.mark.parametrize("key", ["self_cpu_time_total", "count", "cpu_memory_usage"])
def test_the_text_is_that_of_torch_with_columns_under_their_titles(marey, tmp_path, reference, key):
    make(marey, reference / "trace.json", "out", "--only", "averages", "--sort", key, "--rows", 40)
    ours = (tmp_path / "out/rank0_key_averages.txt").read_text().splitlines()
    theirs = rearranged((reference / f"table-whole-{key}.txt").read_text())
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs):
        assert same_but_for_rounding(mine, other), f"\n{mine}\n{other}"
    assert (tmp_path / "out/key_averages.txt").read_bytes() == (tmp_path / "out/rank0_key_averages.txt").read_bytes()


def test_stacks_are_those_of_torch(marey, tmp_path, reference):
    make(marey, reference / "trace.json", "out", "--only", "stacks")
    ours = (tmp_path / "out/rank0_stacks.txt").read_text().splitlines()
    theirs = (reference / "stacks.txt").read_text().splitlines()
    assert len(ours) > 300
    # Torch cuts a floating point number off: 5.0 may have become 4.999.
    close = [line for line in theirs if int(line.rsplit(" ", 1)[1]) > 1]
    assert abs(len(ours) - len(theirs)) <= 2
    lines = set(ours)
    for line in close:
        stack, count = line.rsplit(" ", 1)
        assert line in lines or f"{stack} {int(count) + 1}" in lines, line
    if len(ours) == len(theirs):
        assert [line.rsplit(" ", 1)[0] for line in ours] == [line.rsplit(" ", 1)[0] for line in theirs]


# ---- traces with a GPU ----


@pytest.mark.parametrize("name", GPU_TRACES)
def test_a_trace_of_a_gpu_has_the_table_that_torch_makes_of_its_events(marey, tmp_path, reference, name):
    make(marey, KINETO / f"{name}.json.gz", "out", "--only", "averages", "--rows", 60)
    ours = (tmp_path / "out/rank0_key_averages.txt").read_text().splitlines()
    theirs = (reference / f"gpu-{name}.txt").read_text().splitlines()
    assert len(ours) == len(theirs) > 15
    # Rows of one time are in the order of torch's rounding errors there.
    for mine, other in zip(sorted(ours), sorted(theirs)):
        assert same_but_for_rounding(mine, other), f"\n{mine}\n{other}"


@pytest.mark.parametrize("name", GPU_TRACES)
def test_a_trace_of_a_gpu_has_device_times(marey, tmp_path, expected, name):
    make(marey, KINETO / f"{name}.json.gz", "out", "--only", "averages", "--rows", 60)
    expected(f"averages-{name}", (tmp_path / "out/rank0_key_averages.txt").read_text())


def test_device_time_goes_to_the_operator_that_launched_it(marey, tmp_path):
    trace = KINETO / "sampled_rank-0.json.gz"  # as older versions of torch write it: ids of work are those of calls
    make(marey, trace, "out", "--only", "averages", "--stack-depth", 0)
    rows = json.loads((tmp_path / "out/rank0_key_averages.json").read_text())
    kinds = {"kernel", "copy", "set"}
    work = sum(row["self_device_ns"] for row in rows if row["kind"] in kinds)
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    told = [event["dur"] for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert work == sum(told) * 1000
    launched = sum(row["self_device_ns"] for row in rows if row["kind"] == "operator")
    assert 0.5 * work < launched <= work
    assert rows == sorted(rows, key=lambda row: -row["self_device_ns"])


# ---- files ----


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A small trace with a stack."""
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 9}
    event["args"] = {"External id": 1, "Input Dims": [[2, 3], [3, 4]], "Call stack": "a.py(1): f;a.py(9): <module>;"}
    document = {"schemaVersion": 1, "with_flops": 1, "distributedInfo": {"rank": 2}, "traceEvents": [event]}
    path = tmp_path / "w.pt.trace.json"
    path.write_text(json.dumps(document))
    return path


def names_in(folder: Path) -> set[str]:
    return set(os.listdir(folder))


def test_all_that_the_trace_has_data_for_is_made(marey, tmp_path, trace):
    done = marey("artifacts", trace, "-o", "a/b/c")
    made = {
        "w.pt.trace.json.gz",
        "rank2_key_averages.txt",
        "rank2_key_averages.csv",
        "rank2_key_averages.json",
        "rank2_stacks.txt",
    }
    assert (done.returncode, done.stderr) == (0, "")
    assert {Path(line).name for line in done.stdout.split()} == made == names_in(tmp_path / "a/b/c")
    assert gzip.decompress((tmp_path / "a/b/c/w.pt.trace.json.gz").read_bytes()) == trace.read_bytes()
    assert (tmp_path / "a/b/c/rank2_stacks.txt").read_text() == "a.py(9):_<module>;a.py(1):_f 9\n"


def test_a_stack_is_missed_only_when_it_is_asked_for(marey, tmp_path, trace):
    trace.write_text(trace.read_text().replace("Call stack", "Other stack"))
    make(marey, trace, "out")
    assert "rank2_stacks.txt" not in names_in(tmp_path / "out")
    done = marey("artifacts", trace, "-o", "out", "--only", "stacks,averages")
    assert done.returncode == 2
    assert "has no stacks (with_stack=True" in done.stderr and done.stderr.count("\n") == 1
    assert done.stdout.count("\n") == 3


def test_the_rank_can_be_given_and_marey_tells_it_before_torch(marey, tmp_path, trace):
    document = json.loads(trace.read_text())
    document["marey"] = {"version": 1, "rank": 5}
    trace.write_text(json.dumps(document))
    make(marey, trace, "out", "--only", "averages")
    make(marey, trace, "out", "--only", "averages", "--rank", 0)
    ranked = {f"{rank}key_averages.txt" for rank in ("rank5_", "rank0_", "")}
    assert {name for name in names_in(tmp_path / "out") if name.endswith(".txt")} == ranked


def test_a_trace_is_moved_once_it_is_packed(marey, tmp_path, trace):
    whole = trace.read_bytes()
    make(marey, trace, tmp_path, "--move", "--only", "trace,averages")
    assert not trace.exists()
    packed = trace.with_name(trace.name + ".gz")
    assert gzip.decompress(packed.read_bytes()) == whole
    # A compressed trace in its final place is kept.
    before = packed.stat().st_ino
    make(marey, packed, tmp_path, "--move")
    assert packed.stat().st_ino == before
    make(marey, packed, "elsewhere", "--only", "trace")
    assert (tmp_path / "elsewhere" / packed.name).read_bytes() == packed.read_bytes()


@pytest.mark.parametrize("only", [(), ("--only", "trace")])
def test_a_damaged_trace_gives_what_came_before_and_stays_where_it_is(marey, tmp_path, trace, only):
    trace.write_text(trace.read_text()[:-2] + ', {"ph": "X", "cat')
    done = marey("artifacts", trace, "-o", "out", "--move", *only)
    made = names_in(tmp_path / "out")
    assert "w.pt.trace.json.gz" not in made and ("rank2_key_averages.csv" in made) == (not only)
    assert trace.exists()
    assert done.returncode == 2
    assert "cut off" in done.stderr and "neither compressed nor deleted" in done.stderr and done.stderr.count("\n") == 1


def has_open(pid: int, path: Path) -> bool:
    try:
        return any(os.readlink(fd) == str(path) for fd in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def test_a_trace_that_changes_while_it_is_packed_is_kept(program, tmp_path, trace):
    """Its program still writes it: later data is not in the compressed file."""
    events = json.loads(trace.read_text())["traceEvents"]
    trace.write_text(json.dumps({"traceEvents": events * 20_000}))
    command = [program, "artifacts", trace, "-o", tmp_path / "out", "--move", "--only", "trace"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not has_open(process.pid, trace):
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    with trace.open("a") as more:
        more.write("\n")
    process.send_signal(signal.SIGCONT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 2, stderr
    assert trace.exists()
    assert "changed while it was compressed, so it is kept" in stderr


def test_a_damaged_gzip_stays_too(marey, tmp_path, trace):
    whole = gzip.compress(json.dumps({"traceEvents": json.loads(trace.read_text())["traceEvents"] * 500}).encode())
    (tmp_path / "cut.json.gz").write_bytes(whole[: len(whole) // 2])
    done = marey("artifacts", "cut.json.gz", "-o", "out", "--move", "--only", "trace")
    assert (tmp_path / "cut.json.gz").exists() and names_in(tmp_path / "out") == set()
    assert done.returncode == 2 and done.stderr.count("\n") == 1


@pytest.mark.parametrize("only", [(), ("--only", "trace")])
@pytest.mark.parametrize("text", ['{"a": 1}', "thesis, chapter 1\n", ""])
def test_what_is_not_a_trace_is_neither_compressed_nor_deleted(marey, tmp_path, text, only):
    (tmp_path / "x.json").write_text(text)
    done = marey("artifacts", "x.json", "-o", "out", "--move", *only)
    assert (tmp_path / "x.json").read_text() == text and names_in(tmp_path / "out") == set()
    assert done.returncode == 2
    assert "x.json" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("path", ["/dev/urandom", "/dev/zero", "."])
def test_what_is_not_a_regular_file_is_refused(marey, path):
    done = marey("artifacts", path, "-o", "out", "--only", "trace")
    assert (done.returncode, done.stderr) == (2, f"marey: cannot read {path}: it is not a regular file\n")


def test_a_kill_leaves_no_file_behind(tmp_path, trace, program):
    """Stopped while it writes the compressed trace, which is larger than what it reads at once."""
    events = json.loads(trace.read_text())
    first = events["traceEvents"][0]
    events["traceEvents"] = [{**first, "name": f"{hash((i, 1)):x}", "ts": i} for i in range(300000)]
    trace.write_text(json.dumps(events))
    out = tmp_path / "out"
    killed = subprocess.Popen([program, "artifacts", trace, "-o", out, "--only", "trace"])
    place = Path(f"/proc/{killed.pid}/fd")

    def is_writing() -> bool:
        return any(os.readlink(fd).startswith(str(out)) and fd.stat().st_size > 0 for fd in place.iterdir())

    while killed.poll() is None:
        try:
            if is_writing():
                break
        except OSError:
            continue  # a descriptor that was closed meanwhile
    assert killed.poll() is None, "it ended before it could be killed"
    killed.kill()
    killed.wait()
    assert names_in(out) == set()


def test_a_file_that_cannot_be_written_is_reported_and_leaves_nothing(marey, tmp_path, trace):
    (tmp_path / "out/rank2_key_averages.csv").mkdir(parents=True)
    done = marey("artifacts", trace, "-o", "out")
    assert done.returncode == 2
    assert "cannot write out/rank2_key_averages.csv: Is a directory" in done.stderr
    assert done.stderr.count("\n") == 1
    made = names_in(tmp_path / "out")
    assert "rank2_key_averages.json" in made and "rank2_stacks.txt" in made
    assert not [name for name in made if name.startswith(".")]


def test_a_full_disk_leaves_no_half_file(marey, tmp_path, trace, program):
    """A limit on the size of files stands for the disk: none of more than a block."""
    events = json.loads(trace.read_text())
    events["traceEvents"] = [{**events["traceEvents"][0], "name": f"op{i}"} for i in range(2000)]
    trace.write_text(json.dumps(events))
    limited = ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", program, "artifacts", trace, "-o", tmp_path / "out"]
    done = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("File too large") == done.stderr.count("\n") >= 2
    for name in names_in(tmp_path / "out"):
        assert not name.startswith(".") and not name.endswith(".csv")


def test_a_directory_that_cannot_be_made_is_reported(marey, tmp_path, trace):
    (tmp_path / "file").write_text("")
    for path in ("file", "file/below"):
        done = marey("artifacts", trace, "-o", path)
        assert done.returncode == 2
        assert done.stderr == f"marey: cannot make the directory {path}: Not a directory\n"


@pytest.mark.parametrize(
    "key", ["cuda_time", "self_cuda_time_total", "device_time_total", "xpu_memory_usage", "cpu_time", "flops"]
)
def test_every_key_of_torch_sorts(marey, tmp_path, trace, key):
    make(marey, trace, "out", "--only", "averages", "--sort", key)


def test_an_unknown_key_is_reported_before_anything_is_made(marey, tmp_path, trace):
    done = marey("artifacts", trace, "-o", "out", "--sort", "cpu_tim")
    assert done.returncode == 2
    assert done.stderr.startswith("marey: operators cannot be sorted by 'cpu_tim': there are self_cpu_time_total")
    assert not (tmp_path / "out").exists()
