"""marey.load(path).energy(): joules of a recording whose counters are written here, through the C API."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import marey


class Site(ctypes.Structure):
    """struct marey_site of <marey/range.h>."""

    _fields_ = [
        *((name, ctypes.c_char_p) for name in ("name", "category", "domain")),
        *((name, ctypes.c_uint32) for name in ("color", "line")),
        ("file", ctypes.c_char_p),
        ("id", ctypes.c_uint32),
    ]


def counter(quantity: str) -> Callable[[float], None]:
    library = ctypes.CDLL(str(Path(marey.get_library_dir()) / "libmarey.so.0"))
    library.marey_site_intern_whole.argtypes = [ctypes.POINTER(Site), ctypes.c_size_t]
    library.marey_site_intern_whole.restype = ctypes.c_uint32
    library.marey_counter_on.argtypes = [ctypes.c_uint32, ctypes.c_double]
    name = f"GPU 0 {quantity}".encode()
    site = Site(name=name, category=b"energy", domain=f"GPU-test|{quantity}".encode())
    number = library.marey_site_intern_whole(ctypes.byref(site), len(name))
    return lambda value: library.marey_counter_on(number, value)


@pytest.fixture
def path(record) -> Path:
    """Two epochs of ten iterations, 100 W all the time."""
    with record() as path:
        power, energy = counter("power"), counter("energy")
        start = time.monotonic()
        energy(0)
        for _ in range(2):
            with marey.epoch():
                for _ in range(10):
                    with marey.range("step"):
                        until = time.monotonic() + 0.02
                        while time.monotonic() < until:
                            power(100)
                            time.sleep(0.001)
                    marey.finish_iteration(samples=4)
        power(100)
        energy(100 * (time.monotonic() - start))
    return path


def test_energy_is_a_table_by_whatever_is_asked_for(path):
    run = marey.load(path)
    (whole,) = run.energy()
    assert (whole["run"], whole["kind"], whole["devices"], whole["samples"]) == (1, "gpu", 1, 80)
    assert whole["joules"] > 0 and whole["plus_minus_j"] > 0
    assert isinstance(run.energy(by="epoch"), marey.Table)
    assert run.energy(by="epoch")["epoch"] == [0, 1]
    assert run.energy(by="range")["name"] == ["step"]
    assert run.energy(by="device")["device"] == ["GPU-test"]
    assert [run.energy(by=by).name for by in ("phase", "rank", "node", "repeat")] == [
        *("phases", "ranks", "nodes", "repeats")
    ]
    assert "the GPUs used by the processes are unknown: all measured GPUs are counted" in run.energy(by="note")["text"]


def test_groups_and_carbon_are_as_asked(path):
    run = marey.load(path)
    assert run.energy(by="iteration", group=10)["count"] == [10, 10]
    (row,) = run.energy(co2=300.0, pue=1.2)
    assert row["co2_g"] == pytest.approx(row["joules"] / 3.6e6 * 300 * 1.2)


def test_mistakes_are_reported(path, record):
    with record("other.marey") as other, marey.range("something"):
        pass
    with pytest.raises(ValueError, match=r"energy has no table by 'day'; choose one of run, "):
        marey.load(path).energy(by="day")
    with pytest.raises(ValueError, match="pue takes a number of 1 or more"):
        marey.load(path).energy(pue=0.5)
    with pytest.raises(marey.MareyError, match="has no energy in it: 'marey run --energy' records it"):
        marey.load(other).energy()
