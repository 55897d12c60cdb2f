"""Files written under the old name kymo are still read: tests/data/old-name."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

import marey

SAMPLES = Path(__file__).parents[1] / "data" / "old-name"
RECORDINGS = ["train.kymo", "gpu.kymo", "ranks.kymo", "killed.kymo", "one.klog", "calls.klog"]
STEPS = [[[0, 1, 2], [3, 4, 5]], [[1, 2, 3], [4, 5, 6]]]


def unpack(folder: Path) -> None:
    for packed in folder.rglob("*.pool.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()


def as_written_today(file: Path) -> None:
    """Replace the old name's bytes in a file."""
    data = bytearray(file.read_bytes())
    if file.suffix == ".pool":
        assert data[:8] == b"KPOOL001"
        data[:8] = b"MPOOL001"
    elif file.suffix in (".klog", ".krun"):
        at = 0
        while at < len(data):
            assert data[at : at + 4] == b"KBLK"
            length = struct.unpack_from("<I", data, at + 20)[0]
            data[at : at + 4] = b"MBLK"
            data[at + 44 : at + 48] = bytes(4)
            data[at + 44 : at + 48] = struct.pack("<I", crc32c(bytes(data[at : at + 48 + length])))
            at += 48 + (length + 7) // 8 * 8
    else:
        data = bytearray(data.replace(b"kymo", b"marey"))
    file.write_bytes(data)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of the samples: what reads a recording whose process was killed finishes it."""
    shutil.copytree(SAMPLES, tmp_path / "old")
    unpack(tmp_path / "old")
    return tmp_path / "old"


@pytest.fixture
def new(old: Path) -> Path:
    """The same under the new name; the names of files stay, because reports have them."""
    folder = old.parent / "new"
    shutil.copytree(old, folder)
    for name in RECORDINGS:
        for file in [folder / name] if (folder / name).is_file() else (folder / name).iterdir():
            as_written_today(file)
    return folder


@pytest.fixture
def command(marey_command: list[str]) -> Callable[..., str]:
    def run(folder: Path, *args: object, status: int = 0) -> str:
        done = subprocess.run(
            [*marey_command, *map(str, args)], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
        assert "damaged" not in done.stderr
        return done.stdout

    return run


VIEWS = {
    "train.kymo": [
        [],
        ["--tree"],
        ["--iterations"],
        ["--epochs"],
        ["--energy"],
        ["--samples"],
        ["--calls"],
        ["--memory"],
    ],
    "gpu.kymo": [[], ["--gpu"]],
    "ranks.kymo": [[], ["--iterations"]],
    "killed.kymo": [[]],
    "one.klog": [[]],
    "calls.klog": [["--calls"]],
}


@pytest.mark.parametrize("name", VIEWS)
def test_reports_are_those_of_today(old: Path, new: Path, command: Callable[..., str], name: str) -> None:
    for view in VIEWS[name]:
        for form in ([], ["--json"]):
            text = command(old, "report", name, *view, *form)
            assert len(text) > 100
            assert text == command(new, "report", name, *view, *form)


@pytest.mark.parametrize("name", [name for name in RECORDINGS if name != "calls.klog"])
@pytest.mark.parametrize("form", ["csv", "chrome", "kineto", "speedscope", "collapsed"])
def test_exports_are_those_of_today(old: Path, new: Path, command: Callable[..., str], name: str, form: str) -> None:
    for folder in (old, new):
        command(folder, "export", name, "--to", form, "-o", "out")
    assert (old / "out").stat().st_size > 10
    assert (old / "out").read_bytes() == (new / "out").read_bytes()


def test_samples_and_calls_are_exported(old: Path, new: Path, command: Callable[..., str]) -> None:
    for form in ("pyspy", "pstats", "callgrind"):
        for folder in (old, new):
            command(folder, "export", "train.kymo", "--to", form, "-o", form)
        assert (old / form).read_bytes() == (new / form).read_bytes()


def test_what_was_measured_is_in_them(old: Path) -> None:
    train = marey.load(old / "train.kymo")
    assert {row["name"]: row["count"] for row in train.ranges} == {"backward": 6, "data": 6, "forward": 6}
    assert train.ranges.row(name="backward")["total_ns"] == 147259904
    assert train.counters.row(name="loss")["count"] == 6
    assert train.marks.row(name="epoch done")["count"] == 2
    assert len(train.epochs()) == 2
    assert train.energy()["joules"] == pytest.approx([142.7425143])
    assert train.samples()["samples"][0] == 37
    assert train.calls().row(function="dot")["calls"] == 6
    assert train.memory()["peak_resident_bytes"] == [41422848]
    assert {row["name"]: row["count"] for row in marey.load(old / "gpu.kymo").gpu() if row["kind"] == "kernel"} == {
        "in_a_graph": 5,
        "gemm": 1,
        "relu": 1,
    }
    assert marey.load(old / "one.klog").ranges.row(name="inner")["count"] == 4
    ranks = marey.load(old / "ranks.kymo")
    assert ranks.ranges.row(name="outer")["count"] == 8
    assert {process["rank"] for process in ranks.processes} == {0, 1}


def test_the_pool_of_a_killed_process_is_read_and_finished(old: Path) -> None:
    folder = old / "killed.kymo"
    assert list(folder.glob("*.pool"))
    for _ in range(2):  # from the pool, then from the log that was finished with it
        killed = marey.load(folder)
        assert killed.ranges.row(name="step")["count"] == 3
        assert not list(folder.glob("*.pool"))
    log = next(folder.glob("*.klog")).read_bytes()
    assert b"KBLK" in log
    assert b"MBLK" in log


def test_a_pool_left_in_shared_memory_is_found(old: Path) -> None:
    """Pools in shared memory refer to the inode of their log, which must be set for a copy."""
    folder = old / "killed.kymo"
    log, pool = next(folder.glob("*.klog")), next(folder.glob("*.pool"))
    left = Path("/dev/shm") / f"kymo-{pool.name}"
    data = bytearray(pool.read_bytes())
    struct.pack_into("<Q", data, 56, log.stat().st_ino)
    pool.unlink()
    try:
        left.write_bytes(data)
        assert marey.load(folder).ranges.row(name="step")["count"] == 3
        assert not left.exists()
    finally:
        left.unlink(missing_ok=True)


def test_old_and_new_are_compared(old: Path, new: Path, command: Callable[..., str]) -> None:
    found = json.loads(command(old, "compare", "train.kymo", "../new/train.kymo", "--json"))
    ranges = {row["name"]: row for row in found["ranges"]}
    assert set(ranges) == {"backward", "data", "forward"}
    assert all(row["a_ns"] == row["b_ns"] for row in ranges.values())
    assert found["only"] == []
    command(old, "compare", "stopwatch.json", "stopwatch.json")


def test_a_recording_can_go_on_under_the_new_name(old: Path, command: Callable[..., str]) -> None:
    command(old, "run", "--only", "ranges", "-q", "--append", "-o", "ranks.kymo", "--", "true")
    assert marey.load(old / "ranks.kymo").ranges.row(name="outer")["count"] == 8
    command(old, "run", "--only", "ranges", "-q", "--force", "-o", "ranks.kymo", "--", "true")
    assert not list((old / "ranks.kymo").glob("*.klog"))


@pytest.mark.parametrize("name", ["full", "accvlab"])
def test_dumps(old: Path, name: str) -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("ml_dtypes")
    assert [marey.load_dump(old / "dumps" / name, step=step)["w"].tolist() for step in range(2)] == STEPS


def test_dumps_without_data(old: Path, command: Callable[..., str]) -> None:
    for name in ("stats", "digests"):
        assert "w" in command(old, "dump", "ls", f"dumps/{name}", "--step", 1)


def test_old_and_new_dumps_are_compared(old: Path, command: Callable[..., str]) -> None:
    numpy = pytest.importorskip("numpy")
    for change in (0, 1):
        dumper = marey.TensorDumper(old / f"today-{change}")
        for step in range(2):
            dumper.add_tensor_data("w", numpy.array(STEPS[step], dtype="float32") + change)
            dumper.dump()
        dumper.reset()
    assert "No difference" in command(old, "diff", "today-0", "dumps/full", "--allow-missing")
    assert "w" in command(old, "diff", "today-1", "dumps/full", "--allow-missing", status=1)


def test_traces_for_other_tools(old: Path, command: Callable[..., str]) -> None:
    trace: dict[str, Any] = json.loads((old / "train.pt.trace.json").read_text())
    assert any(event["name"] == "kymo:forward" for event in trace["traceEvents"])
    trace["kymo"] = {"version": 1, "rank": 5}
    (old / "rank.json").write_text(json.dumps(trace))
    command(old, "artifacts", "rank.json", "-o", "files")
    assert list((old / "files").glob("*rank5*"))
    for name in ("train.pt.trace.json", "train.speedscope.json"):
        rows = json.loads(command(old, "report", name, "--json"))["ranges"]
        assert {row["name"].removeprefix("kymo:"): row["count"] for row in rows}["forward"] == 6


def test_a_page_is_what_it_was(old: Path) -> None:
    page = gzip.decompress((old / "one.html.gz").read_bytes())
    packed = re.search(rb'id="index">([A-Za-z0-9+/=]*)<', page)
    assert packed
    index = json.loads(zlib.decompress(base64.b64decode(packed[1]), -15))
    assert index["version"] == "0.1.0"
