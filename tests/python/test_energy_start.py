"""marey.start(energy=True), with a fake NVML."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import marey

UUID = "GPU-%08x-1111-2222-3333-444444444444"


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    """Make libnvidia-ml the stand-in for this process and its children, with a script; the file of its calls."""
    library = Path(os.environ["MAREY_BUILD"]) / "tests" / "standin" / "nvml_standin.so"

    def use(*lines):
        (tmp_path / "nvml.txt").write_text("\n".join([*lines, f"log {tmp_path / 'calls'}"]))
        (tmp_path / "calls").touch()
        monkeypatch.setenv("MAREY_NVML_LIBRARY", str(library))
        monkeypatch.setenv("MAREY_STANDIN_NVML", str(tmp_path / "nvml.txt"))
        monkeypatch.setenv("MAREY_POWERCAP_ROOT", str(tmp_path))
        return tmp_path / "calls"

    return use


def wait_for_calls(log, name, n):
    deadline = time.monotonic() + 50
    while sum(line.split()[1] == name for line in log.read_text().splitlines()) < n:
        assert time.monotonic() < deadline, f"{name} was not called {n} times"
        time.sleep(0.01)


def test_a_recording_measures_in_the_process(nvml, tmp_path):
    log = nvml("gpus 2")
    marey.start(tmp_path / "run.marey", energy=True)
    with marey.range("step"):
        wait_for_calls(log, "Instant", 12)
    marey.stop()
    loaded = marey.load(tmp_path / "run.marey")
    counters = dict(zip(loaded.counters["name"], loaded.counters["count"]))
    assert counters["GPU 0 power (W)"] >= 5 and counters["GPU 1 power (W)"] >= 5
    assert counters["GPU 0 energy (J)"] >= 2
    assert loaded.processes["devices"] == [f"{UUID % 0},{UUID % 1}"]
    assert not list((tmp_path / "run.marey").glob("*.lock"))


def test_the_rate_is_an_option(nvml, tmp_path):
    log = nvml()
    marey.start(tmp_path / "run.marey", energy=True, **{"energy.hz": 100})
    wait_for_calls(log, "Instant", 30)
    marey.stop()
    with pytest.raises(ValueError, match=r"energy\.hz"):
        marey.start(tmp_path / "run.marey", energy=True, **{"energy.hz": 1000})


DEAR = ("burn TotalEnergyConsumption 6000", "burn Samples 3000", "busy_ring 200 71")


def test_what_is_dear_is_read_seldom_and_the_sources_say_so(nvml, tmp_path):
    log = nvml("ring 20 500", "watts 300 0 1", *DEAR)
    marey.start(tmp_path / "run.marey", energy=True)
    wait_for_calls(log, "PowerSamples", 2)
    marey.stop()
    loaded = marey.load(tmp_path / "run.marey")
    (sources,) = loaded.processes["energy_sources"]
    assert "|power: the sample buffer, a sample every 0.020 s, fetched every 2.0 s, " in sources
    assert "; energy: the total counter, every 30.0 s and at epochs, 2 readings; " in sources
    assert "; utilization: the sample buffer, every 10.0 s; GPM: every " in sources
    # The one value, read at the end, stands for all of the time.
    (row,) = (row for row in loaded.energy() if row["kind"] == "gpu")
    assert row["utilization"] == pytest.approx(0.5)


def test_a_buffer_that_stands_still_is_reported_by_the_sources(nvml, tmp_path):
    log = nvml("ring 20 500", "ring_is still 3")
    marey.start(tmp_path / "run.marey", energy=True)
    wait_for_calls(log, "Instant", 8)
    marey.stop()
    (sources,) = marey.load(tmp_path / "run.marey").processes["energy_sources"]
    assert "|power: the sample buffer until it stood still, then instant, every 0." in sources


def test_a_dear_counter_is_left_out_at_the_edges_of_short_epochs(nvml, tmp_path):
    log = nvml("ring 20 500", *DEAR)
    marey.start(tmp_path / "run.marey", energy=True)
    with marey.epoch():
        time.sleep(4.2)
    marey.stop()
    # At the start and the end: 6 ms more in 4 s would be more than a thousandth.
    assert sum("TotalEnergyConsumption" in line for line in log.read_text().splitlines()) == 2


def test_the_counter_is_read_where_an_epoch_ends(nvml, tmp_path):
    log = nvml()
    marey.start(tmp_path / "run.marey", energy=True, **{"energy.hz": 1})
    wait_for_calls(log, "TotalEnergyConsumption", 1)
    with marey.epoch():  # from here on it is read at epochs, or after 30 s without
        time.sleep(4.2)
    wait_for_calls(log, "TotalEnergyConsumption", 2)
    marey.stop()
    # At the start, there and at the stop; where the epoch began only if it came late.
    assert sum("TotalEnergyConsumption" in line for line in log.read_text().splitlines()) in (3, 4)


def test_without_energy_nothing_is_opened(nvml, tmp_path):
    log = nvml()
    marey.start(tmp_path / "run.marey")
    marey.mark("here")
    marey.stop()
    assert log.read_text() == ""


def test_no_driver_is_reported_once_and_the_program_goes_on(run_python, nvml, tmp_path, monkeypatch):
    nvml()
    monkeypatch.setenv("MAREY_NVML_LIBRARY", str(tmp_path / "none.so"))
    done = run_python(
        """
        import marey
        for i in range(2):
            marey.start(f"{i}.marey", energy=True)
            marey.mark("here")
            marey.stop()
        loaded = marey.load("1.marey")
        print(loaded.marks["count"], loaded.table("warnings")["text"])
        """
    )
    assert done.stdout.startswith("[1]") and "there is no NVIDIA driver here" in done.stdout
    assert done.stderr.count("there is no NVIDIA driver here") == 1


@pytest.mark.parametrize(
    "how", ["sys.exit()", "os._exit(0)", "os.kill(os.getpid(), 9)", "raise SystemExit", "os.abort()", "pass"]
)
def test_it_ends_with_the_program_however_that_ends(run_python, nvml, tmp_path, how):
    nvml()
    done = run_python(
        f"""
        import marey, os, sys
        marey.start("run.marey", energy=True)
        while marey.counts()["events"] < 30:
            pass
        {how}
        """,
        check=False,
    )
    assert done.stderr == "" or "abort" in how
    loaded = marey.load(tmp_path / "run.marey")
    assert sum(loaded.counters["count"]) >= 8
    assert not list((tmp_path / "run.marey").glob("*.lock")) and not list((tmp_path / "run.marey").glob("*.pool"))


def test_forked_children_do_not_measure_and_hold_no_lock(run_python, nvml, tmp_path):
    log = nvml()
    done = run_python(
        """
        import marey, os, time
        marey.start("run.marey", energy=True)
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                with marey.range("child"):
                    pass
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        while marey.counts()["events"] < 30:
            pass
        marey.stop()
        """,
        flags=("-W", "ignore"),
    )
    assert done.stderr == ""
    assert sum(" Init " in line for line in log.read_text().splitlines()) == 1
    loaded = marey.load(tmp_path / "run.marey")
    assert len(loaded.processes) == 21
    assert set(loaded.processes["devices"]) == {UUID % 0}


def test_a_child_that_lives_on_does_not_keep_the_turn(nvml, tmp_path):
    nvml()
    program = (
        "import marey, os, time\n"
        "marey.start('run.marey', energy=True)\n"
        "while marey.counts()['events'] < 30: pass\n"
        "pid = os.fork()\n"
        "if pid == 0: time.sleep(60); os._exit(0)\n"
        "print(pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    first = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path, stdout=subprocess.PIPE)
    child = int(first.stdout.readline())
    try:
        first.kill()
        first.wait()
        marey.start(tmp_path / "run.marey", energy=True)
        while marey.counts()["events"] < 10:
            time.sleep(0.01)
        marey.stop()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_driver_that_hangs_holds_nobody_up(run_python, nvml):
    nvml("hang Init")
    done = run_python(
        """
        import marey, os
        marey.start("run.marey", energy=True)
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        with marey.range("step"):
            pass
        marey.stop()
        marey.start("other.marey")
        marey.mark("here")
        print("done")
        """,
        flags=("-W", "ignore"),
    )
    assert done.stdout == "done\n"
    assert "NVML did not answer within a second" in done.stderr


def test_under_marey_run_energy_is_asked_for_there(run_python, nvml, marey_command):
    log = nvml()
    program = """
        import marey
        marey.start("run.marey", energy=True)
        marey.mark("here")
        """
    done = run_python(program, command=[*marey_command, "run", "--only", "ranges", "-q", "-o", "run.marey", "--"])
    assert done.stderr.startswith("marey: energy is not measured: the recording was begun by MAREY or marey run")
    assert log.read_text() == ""
    done = run_python(program, command=[*marey_command, "run", "-q", "--energy", "-o", "again.marey", "--"])
    assert "energy is not measured" not in done.stderr
    assert sum(" Init " in line for line in log.read_text().splitlines()) == 1
