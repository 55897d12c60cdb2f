"""marey run --energy, with a fake NVML whose power is a known function of time."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict

import pytest
from page_decoder import Page, needs_viewer

UUID = "GPU-%08x-1111-2222-3333-444444444444"


@pytest.fixture
def nvml(build_dir, tmp_path):
    """The environment with the fake libnvidia-ml, a script, and no RAPL."""

    def environment(*lines, library="nvml_standin"):
        script = tmp_path / "nvml.txt"
        script.write_text("\n".join(lines))
        return {
            "MAREY_NVML_LIBRARY": str(build_dir / "tests" / "standin" / f"{library}.so"),
            "MAREY_STANDIN_NVML": str(script),
            "MAREY_POWERCAP_ROOT": str(tmp_path / "no-powercap"),
        }

    return environment


@pytest.fixture
def counters(marey):
    """The counters of a recording: name to a list of (ns, value)."""

    def read(recording):
        done = marey("export", recording, "--to", "csv", "-o", "-")
        assert done.returncode == 0, done.stderr
        found = defaultdict(list)
        for row in csv.DictReader(io.StringIO(done.stdout)):
            if row["kind"] == "counter" and row["category"] == "energy":
                found[row["name"]].append((int(row["start_ns"]), float(row["value"])))
        return found

    return read


def notes(marey, recording):
    return marey("report", recording).stdout


@pytest.fixture
def until(tmp_path):
    """A program that waits for a number of queries to the fake, whose script has the second line."""
    log = tmp_path / "calls"
    log.touch()

    def command(name, n):
        return [
            "sh",
            "-c",
            f'until [ "$(grep -c " {name}" {log})" -ge {n} ]; do sleep 0.02; done; echo done',
        ], f"log {log}"

    return command


def calls(tmp_path, name, gpu=0):
    """The times of queries to the fake."""
    lines = [line.split() for line in (tmp_path / "calls").read_text().splitlines()]
    return [int(ns) for ns, what, number in lines if (what, number) == (name, str(gpu))]


def test_a_program_without_marey_is_measured_from_start_to_end(marey, nvml, counters, until, tmp_path):
    command, log = until("Instant 1", 12)
    began_ns = time.monotonic_ns()
    done = marey("run", "--energy", "-o", "run.marey", *command, env=nvml("gpus 2", "watts 300 100 0.3", log))
    ended_ns = time.monotonic_ns()
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr == "marey: recorded energy; next: marey report --energy run.marey\n"
    assert [path.suffix for path in (tmp_path / "run.marey").iterdir() if path.suffix not in (".json", ".krun")] == [
        ".klog"
    ]
    found = counters("run.marey")
    w = 2 * math.pi / 0.3
    for gpu in (0, 1):
        # One look more for power: whether there is such a thing.
        power, asked = found[f"GPU {gpu} power (W)"], calls(tmp_path, "Instant", gpu)[1:]
        assert [value for _, value in power] == pytest.approx(
            [300 + 100 * math.sin(w * ns / 1e9) for ns in asked], abs=0.01
        )
        assert all(began_ns < a <= ns < ended_ns for a, (ns, _) in zip(asked, power))
        # At the start and the end, as there are less than 4 s between: the integral of power.
        energy, asked = found[f"GPU {gpu} energy (J)"], calls(tmp_path, "TotalEnergyConsumption", gpu)
        assert len(energy) == len(asked)
        joules = [300 * ns / 1e9 + 100 / w * (1 - math.cos(w * ns / 1e9)) for ns in asked]
        assert energy[-1][1] - energy[0][1] == pytest.approx(joules[-1] - joules[0], abs=0.01)
        assert (asked[0] <= calls(tmp_path, "Instant", gpu)[2], asked[-1] > calls(tmp_path, "Instant", gpu)[-2]) == (
            1,
            1,
        )


def test_everything_that_is_read_has_its_counter(marey, nvml, counters, until):
    command, log = until("GpmMetricsGet", 1)
    assert marey("run", "--energy", "-o", "run.marey", *command, env=nvml("busy 60", log)).returncode == 0
    found = counters("run.marey")
    last = {name: values[-1][1] for name, values in found.items()}
    assert last["GPU 0 utilization (%)"] == 60
    assert (last["GPU 0 SM active (%)"], last["GPU 0 SM occupancy (%)"]) == (30, 20)
    assert (last["GPU 0 tensor active (%)"], last["GPU 0 DRAM active (%)"]) == (12, 6)
    assert (last["GPU 0 SM clock (MHz)"], last["GPU 0 memory clock (MHz)"]) == (1980, 2619)
    assert (last["GPU 0 temperature (C)"], last["GPU 0 throttle reasons"]) == (40, 4)
    assert last["GPU 0 memory used (bytes)"] == 2**30
    assert len(last) == 12


def test_the_counter_is_read_at_most_every_4_s(marey, nvml, until, tmp_path):
    command, log = until("TotalEnergyConsumption 1", 3)
    assert (
        marey("run", "--energy", "--energy-hz", 50, "-o", "run.marey", *command, env=nvml("gpus 2", log)).returncode
        == 0
    )
    for gpu in (0, 1):
        times = calls(tmp_path, "TotalEnergyConsumption", gpu)
        assert len(times) >= 4  # the start, two in between, and the end
        assert all(b - a > 3.9e9 for a, b in zip(times[:-1], times[1:-1]))


def test_the_measuring_process_is_none_of_the_programs(marey, nvml, emit):
    assert marey("run", "--energy", "-o", "run.marey", emit, 3, env=nvml()).stderr == (
        "marey: recorded 1 process, 12 events, energy; next: marey report --energy run.marey\n"
    )
    report = marey("report", "run.marey").stdout
    assert "1 process, 1 thread" in report and "power (W)" not in report
    assert len(json.loads(marey("report", "--json", "run.marey").stdout)["processes"]) == 1


def test_each_repeat_has_its_own_log(marey, nvml, emit, tmp_path):
    assert marey("run", "--energy", "--repeat", 3, "-o", "run.marey", emit, 1, env=nvml()).returncode == 0
    assert len(list((tmp_path / "run.marey").glob("*.klog"))) == 6


@pytest.mark.parametrize(
    "visible, gpus",
    [
        (None, "012"),
        ("", ""),
        ("-1", ""),
        ("1", "1"),
        ("2,0", "02"),
        (" 0 , 2", "02"),
        ("0,7,1", "0"),
        ("0,-1,1", "0"),
        ("1,1", ""),
        (UUID % 2, "2"),
        ("GPU-00000001", "1"),
        ("GPU-0000000", ""),
        ("GPU-00000000,GPU-00000002", "02"),
        ("0,GPU-00000002", "0"),
        ("MIG-00000000-aaaa-bbbb-cccc-000000000001", "0"),
    ],
)
def test_the_gpus_that_the_program_may_use_are_measured(marey, nvml, counters, visible, gpus):
    env = nvml("gpus 3", "slices 0 2")
    if visible is not None:
        env["CUDA_VISIBLE_DEVICES"] = visible
    done = marey("run", "--energy", "-o", "run.marey", "true", env=env)
    assert done.returncode == 0
    assert sorted(name[4] for name in counters("run.marey") if name.endswith("power (W)")) == list(gpus)
    assert ("is a slice of GPU 0" in done.stderr) == ("0" in gpus)
    assert ("CUDA_VISIBLE_DEVICES leaves the program none" in done.stderr) == (gpus == "")


def test_a_slice_is_measured_by_its_gpu(marey, nvml, emit):
    env = {**nvml("gpus 2", "slices 1 2"), "CUDA_VISIBLE_DEVICES": "MIG-00000001-aaaa-bbbb-cccc-000000000001"}
    assert marey("run", "-q", "--energy", "-o", "run.marey", emit, 2, env=env).returncode == 0
    processes = json.loads(marey("report", "--json", "run.marey").stdout)["processes"]
    assert [process["devices"] for process in processes] == [env["CUDA_VISIBLE_DEVICES"]]
    assert "not used by any process" not in marey("report", "--energy", "run.marey").stdout


# ---- power from the driver's buffer of samples ----

# Longer than any test sleeps too long: nothing in it is lost.
RING = "ring 20 500"


def samples_on_the_curve(tmp_path, power, gpu=0):
    """That samples of 300 + 100 sin(2 pi t / 10 s) have their own times; 3 W are 50 ms. How many there are."""

    def curve(ns):
        return 300 + 100 * math.sin(2 * math.pi * ns / 1e10)

    # What was read one by one may have been written late, when the machine is busy.
    singles = [curve(ns) for ns in calls(tmp_path, "Instant", gpu)]
    samples = [(ns, value) for ns, value in power if all(abs(value - single) > 0.01 for single in singles)]
    assert power == sorted(power)
    assert [value for _, value in samples] == pytest.approx([curve(ns) for ns, _ in samples], abs=3)
    return len(samples)


@pytest.mark.parametrize("how", ["", "ring_is shuffled"])
def test_samples_of_power_come_with_their_own_times(marey, nvml, counters, until, tmp_path, how):
    command, log = until("PowerSamples 1", 3)
    env = nvml("gpus 2", "watts 300 100 10", RING, how, log)
    assert marey("run", "-q", "--energy", "-o", "run.marey", *command, env=env).returncode == 0
    for gpu in (0, 1):
        power = counters("run.marey")[f"GPU {gpu} power (W)"]
        assert samples_on_the_curve(tmp_path, power, gpu) > 50
        # The first and the last are read one by one; besides, it is asked once whether there is such a thing.
        assert len(calls(tmp_path, "Instant", gpu)) == 3
        steps = [b[0] - a[0] for a, b in zip(power[1:-2], power[2:-1])]
        assert len(steps) > 50 and max(steps) < 30e6 and min(steps) > 10e6


def test_samples_are_thinned_to_the_rate_that_is_asked_for(marey, nvml, counters, until, tmp_path):
    command, log = until("PowerSamples", 3)
    env = nvml("watts 300 100 10", RING, log)
    assert marey("run", "-q", "--energy", "--energy-hz", 10, "-o", "run.marey", *command, env=env).returncode == 0
    power = counters("run.marey")["GPU 0 power (W)"]
    assert samples_on_the_curve(tmp_path, power) > 10
    assert {round((b[0] - a[0]) / 1e7) for a, b in zip(power[1:-2], power[2:-1])} == {10}
    assert len(calls(tmp_path, "Instant")) == 3


def test_a_rate_above_that_of_the_samples_is_read_one_by_one(marey, nvml, counters, until, tmp_path):
    command, log = until("Instant", 12)
    env = nvml("watts 300 100 10", RING, log)
    assert marey("run", "-q", "--energy", "--energy-hz", 100, "-o", "run.marey", *command, env=env).returncode == 0
    power = counters("run.marey")["GPU 0 power (W)"]
    assert len(power) == len(calls(tmp_path, "Instant")) - 1
    assert samples_on_the_curve(tmp_path, power) == 0


@pytest.mark.parametrize(
    "how",
    [
        "error PowerSamples 3",
        "error PowerSamples 4",
        "error PowerSamples 999",
        "ring_is old",
        "ring_is ahead",
        "ring 20 0",
        "ring 20 1",
        "ring 20 5",
        "ring 500 10",
    ],
)
def test_without_a_buffer_of_use_power_is_read_one_by_one(marey, nvml, counters, until, tmp_path, how):
    command, log = until("Instant", 6)
    done = marey("run", "-q", "--energy", "-o", "run.marey", *command, env=nvml("watts 300 100 10", RING, how, log))
    assert (done.returncode, done.stderr) == (0, "")
    power = counters("run.marey")["GPU 0 power (W)"]
    assert len(power) == len(calls(tmp_path, "Instant")) - 1
    assert samples_on_the_curve(tmp_path, power) == 0
    assert len(calls(tmp_path, "PowerSamples")) <= 3


@pytest.mark.parametrize(
    "how", ["ring_is still 3", "ring_is old 3", "ring_is ahead 3", "error PowerSamples 3 3", "error PowerSamples 15 3"]
)
def test_where_the_buffer_ends_single_readings_go_on(marey, nvml, counters, until, tmp_path, how):
    command, log = until("Instant", 9)
    done = marey("run", "-q", "--energy", "-o", "run.marey", *command, env=nvml("watts 300 100 10", RING, how, log))
    assert (done.returncode, done.stderr) == (0, "")
    power = counters("run.marey")["GPU 0 power (W)"]
    assert samples_on_the_curve(tmp_path, power) > 50
    assert len(power) >= len(calls(tmp_path, "Instant")) + 50
    assert len(calls(tmp_path, "PowerSamples")) == 3


def test_a_buffer_that_is_empty_at_first_is_looked_at_again(marey, nvml, counters, until, tmp_path):
    command, log = until("PowerSamples", 4)
    env = nvml("watts 300 100 10", RING, "ring_is late 2", log)
    assert marey("run", "-q", "--energy", "-o", "run.marey", *command, env=env).returncode == 0
    power = counters("run.marey")["GPU 0 power (W)"]
    assert samples_on_the_curve(tmp_path, power) > 50


# ---- errors: one message, and the program continues ----


@pytest.mark.parametrize(
    "script, wait, words",
    [
        (["error Init 9"], ("Init", 1), 'NVML says "Driver Not Loaded" (error 9)'),
        (["error Init 4"], ("Init", 1), 'NVML says "Insufficient Permissions" (error 4)'),
        (["gpus 0"], ("Count", 1), "NVML sees no GPU"),
        (["error HandleByIndex 15"], ("Count", 1), 'GPU 0 is not measured: NVML says "GPU is lost" (error 15)'),
        (
            ["error TotalEnergyConsumption 3"],
            ("Instant", 3),
            "has no energy counter (not supported): its energy is su",
        ),
        (["error TotalEnergyConsumption 4"], ("Instant", 3), "has no energy counter (no permission)"),
        (
            ["error Instant 3", "error PowerUsage 4"],
            ("Throttle", 1),
            "has no power reading (no permission): only its energy c",
        ),
        (["error MemoryInfo 4"], ("Instant", 3), "memory_used is not read: no permission"),
        (
            ["error PowerUsage 15 3", "error Instant 3"],
            ("PowerUsage", 3),
            'is lost: NVML says "GPU is lost" (error 15)',
        ),
        (["error Instant 15 4"], ("Instant", 4), 'is lost: NVML says "GPU is lost" (error 15)'),
        (["error ClockInfo 9"], ("ClockInfo", 1), 'is lost: NVML says "Driver Not Loaded" (error 9)'),
        (["error Instant 999 3"], ("Instant", 7), "has no power reading (Unknown Error)"),
        (["counter reset"], ("Instant", 4), "began again, as when the driver is loaded anew"),
        (["counter wrap"], ("Instant", 4), "wrapped at 2^32 mJ"),
        (["counter stuck", "watts 2000 0 1"], ("Instant", 16), "does not move: until it does, its energy is summed up"),
    ],
)
def test_a_fault_is_one_sentence_and_the_program_goes_on(marey, nvml, until, script, wait, words):
    command, log = until(*wait)
    done = marey("run", "-q", "--energy", "-o", "run.marey", *command, env=nvml(*script, log))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert words in done.stderr
    assert words in notes(marey, "run.marey")


def test_no_driver_is_one_sentence(marey, nvml, tmp_path):
    env = {**nvml(), "MAREY_NVML_LIBRARY": str(tmp_path / "none.so")}
    done = marey("run", "-q", "--energy", "-o", "run.marey", "true", env=env)
    assert done.returncode == 0
    assert done.stderr.startswith("marey: the energy of GPUs is not measured: there is no NVIDIA driver here (")
    assert len(done.stderr.splitlines()) == 1


def test_an_old_nvml_gives_what_it_has(marey, nvml, counters, until):
    command, log = until("PowerUsage", 3)
    done = marey("run", "-q", "--energy", "-o", "run.marey", *command, env=nvml(log, library="nvml_standin_old"))
    assert "has no energy counter (not supported)" in done.stderr and len(done.stderr.splitlines()) == 1
    found = counters("run.marey")
    assert found["GPU 0 power (W)"] and found["GPU 0 utilization (%)"]
    assert not any("energy" in name or "SM active" in name for name in found)


def test_a_library_that_is_no_nvml_is_too_old(marey, nvml, build_dir):
    env = {**nvml(), "MAREY_NVML_LIBRARY": str(build_dir / "core" / "libmarey.so.0")}
    done = marey("run", "-q", "--energy", "-o", "run.marey", "true", env=env)
    assert "is too old, it has no nvmlInit_v2" in done.stderr and done.returncode == 0


@pytest.mark.parametrize("name", ["Init", "Instant", "TotalEnergyConsumption"])
def test_a_driver_that_hangs_holds_nobody_up(marey, nvml, until, name):
    command, log = until(name, 1)
    done = marey("run", "-q", "--energy", "-o", "run.marey", *command, env=nvml(f"hang {name} 1", log))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr == "marey: the last reading of energy is missing: NVML did not answer within a second\n"
    assert marey("report", "run.marey").returncode == 0


@pytest.mark.parametrize("counter", ["wrap", "reset"])
def test_energy_never_falls(marey, nvml, counters, until, tmp_path, counter):
    command, log = until("Instant", 12)
    marey("run", "-q", "--energy", "-o", "run.marey", *command, env=nvml(f"counter {counter}", "watts 500 0 1", log))
    energy = [value for _, value in counters("run.marey")["GPU 0 energy (J)"]]
    # Across a reset it is what power says, which was read a little before the counter.
    asked = calls(tmp_path, "TotalEnergyConsumption" if counter == "wrap" else "Instant")
    asked = asked[1:] if counter == "reset" else asked
    assert energy == sorted(energy)
    assert energy[-1] - energy[0] == pytest.approx((asked[-1] - asked[0]) / 1e9 * 500, abs=0.01)


def test_a_counter_that_stands_still_is_not_written(marey, nvml, counters, until):
    command, log = until("Instant", 16)  # for longer than a counter needs to move
    marey("run", "-q", "--energy", "-o", "run.marey", *command, env=nvml("counter stuck", "watts 2000 0 1", log))
    assert len(counters("run.marey")["GPU 0 energy (J)"]) == 1


@needs_viewer
def test_the_page_draws_the_counters_and_counts_the_program_alone(marey, nvml, counters, until, tmp_path):
    command, log = until("Instant", 4)
    marey("run", "-q", "--energy", "-o", "run.marey", *command, env=nvml("watts 300 0 1", log))
    done = marey("report", "run.marey", "--html", "page.html")
    assert done.returncode == 0, done.stderr
    page = Page(tmp_path / "page.html")
    (track,) = page.tracks("counters")
    drawn = {page.name(track["process"], event.id) for row in track["rows"] for event in page.row(row)}
    assert drawn == set(counters("run.marey"))
    assert [process["role"] for process in page.index["processes"]] == ["energy"]


def test_the_program_that_does_not_start_leaves_nothing(marey, nvml, tmp_path):
    done = marey("run", "--energy", "-o", "run.marey", "./no-such-program", env=nvml())
    assert done.returncode == 3
    assert not (tmp_path / "run.marey").exists()


def test_killed_while_it_measures_what_was_read_is_there(start, nvml, environment, counters, tmp_path):
    environment.update(nvml(f"log {tmp_path / 'calls'}"))
    (tmp_path / "calls").touch()
    victim = start("run", "--energy", "-o", "run.marey", "sleep", 60)
    folder = tmp_path / "run.marey"
    wait_for(lambda: len(calls(tmp_path, "Instant")) > 4)
    victim.send_signal(signal.SIGKILL)
    victim.wait(60)  # its pipes stay open: the program lives on
    assert list(folder.glob("energy-*.lock"))
    assert len(counters(folder)["GPU 0 power (W)"]) >= 1
    assert not list(folder.glob("energy-*.lock")) and not list(folder.glob("*.pool"))


@pytest.mark.parametrize("text", ["", "pid 4711\n", "*"])
@pytest.mark.parametrize("host", ["other", socket.gethostname()])
def test_a_report_leaves_locks_alone_that_are_not_its_own(marey, emit, tmp_path, text, host):
    folder = tmp_path / "run.marey"
    assert marey("run", "--only", "ranges", "-o", "run.marey", "--", emit, 1).returncode == 0
    lock = folder / f"energy-{host}.lock"
    lock.write_text(text)
    foreign = folder / "energy-plant-7.lock"
    foreign.write_text("*\n")
    marey("report", "run.marey")
    assert lock.read_text() == text and foreign.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_is_asked_to_end_is_measured_up_to_there(start, nvml, environment, counters, tmp_path, number):
    environment.update(nvml(f"log {tmp_path / 'calls'}"))
    (tmp_path / "calls").touch()
    # A shell ignores SIGINT in the background, and so would what it starts.
    running = start(
        *("run", "-q", "--energy", "-o", "run.marey", "sleep", 60),
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    wait_for(lambda: len(calls(tmp_path, "Instant")) > 4)
    running.send_signal(number)
    assert (running.wait(60), running.stderr.read()) == (-number, "")
    assert len(counters("run.marey")["GPU 0 energy (J)"]) >= 2
    assert sorted(path.suffix for path in (tmp_path / "run.marey").iterdir()) == [".json", ".klog", ".krun"]


# ---- CPUs ----


@pytest.fixture
def powercap(tmp_path):
    """A tree of RAPL's counters: zone, name, microjoules, range."""

    def make(*zones):
        root = tmp_path / "powercap"
        for folder, name, energy, most in zones:
            (root / folder).mkdir(parents=True)
            (root / folder / "name").write_text(name + "\n")
            (root / folder / "energy_uj").write_text(f"{energy}\n")
            (root / folder / "max_energy_range_uj").write_text(f"{most}\n")
        return root

    return make


def test_packages_and_their_memory_are_measured(marey, nvml, counters, until, powercap):
    command, log = until("Init", 1)  # which comes after the first look at processors
    root = powercap(
        ("intel-rapl:0", "package-0", 1000000, 262143328850),
        ("intel-rapl:0:0", "core", 1, 262143328850),
        ("intel-rapl:0:1", "dram", 2000000, 262143328850),
        ("intel-rapl:1", "package-1", 262143000000, 262143328850),
        ("intel-rapl:2", "psys", 1, 262143328850),
    )
    env = {**nvml(log), "MAREY_POWERCAP_ROOT": str(root)}
    # The counters move while it runs: one rises by 40 J, one wraps, having risen by 10 J.
    for zone, energy in (("intel-rapl:0", 41000000), ("intel-rapl:1", 9671150)):
        command[-1] += f"; echo {energy} > {root}/new; mv {root}/new {root}/{zone}/energy_uj"
    command[-1] += "; sleep 0.2"  # so that no processor takes more than any can
    assert marey("run", "-q", "--energy", "-o", "run.marey", *command, env=env).stderr == ""
    found = counters("run.marey")
    cpus = sorted(name for name in found if not name.startswith("GPU"))
    assert [name for name in cpus if "energy" in name] == [
        "package-0 energy (J)",
        "package-0-dram energy (J)",
        "package-1 energy (J)",
    ]
    risen = {name: found[name][-1][1] - found[name][0][1] for name in cpus if "energy" in name}
    assert risen["package-0 energy (J)"] == pytest.approx(40)
    assert risen["package-0-dram energy (J)"] == 0
    assert risen["package-1 energy (J)"] == pytest.approx(10)


def test_without_permission_it_says_so_once(program, environment, nvml, powercap, tmp_path):
    root = powercap(("intel-rapl:0", "package-0", 1, 9), ("intel-rapl:1", "package-1", 1, 9))
    for file in root.glob("*/energy_uj"):
        file.chmod(0)
    # Root may read them all the same, unless it gives that right up.
    plain = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    command = [*plain, str(program), "run", "-q", "--energy", "-o", "run.marey", "true"]
    env = {**environment, **nvml(), "MAREY_POWERCAP_ROOT": str(root)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stderr.startswith("marey: the energy of processors is not measured: no permission to read RAPL's")
    assert len(done.stderr.splitlines()) == 1


def test_a_counter_that_is_no_number_is_one_sentence(marey, nvml, powercap):
    env = {**nvml(), "MAREY_POWERCAP_ROOT": str(powercap(("intel-rapl:0", "package-0", "12 apples", 9)))}
    done = marey("run", "-q", "--energy", "-o", "run.marey", "true", env=env)
    assert done.returncode == 0
    assert "the energy of package-0 is not measured: cannot read" in done.stderr


# ---- several measuring processes ----


def wait_for(what, patience_s=50):
    deadline = time.monotonic() + patience_s
    while not what():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)


@pytest.fixture
def ranks(start, environment, nvml, tmp_path):
    """Start `marey run --energy` as rank N of 4; each runs until the file `end` is there, or until it is killed."""
    started = []

    def begin(rank, *script, visible=None):
        environment.update({**nvml(*script, f"log {tmp_path / 'calls'}"), "RANK": str(rank), "WORLD_SIZE": "4"})
        environment.update({"TORCHELASTIC_RUN_ID": "together"})
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        if visible is not None:
            environment["CUDA_VISIBLE_DEVICES"] = visible
        program = f"touch {tmp_path}/up{rank}; until [ -e {tmp_path}/end ]; do sleep 0.05; done"
        started.append(start("run", "--energy", "-o", "run.marey", "sh", "-c", program))
        wait_for(lambda: (tmp_path / f"up{rank}").exists())
        return started[-1]

    yield begin
    (tmp_path / "end").touch()
    for process in started:
        process.communicate(timeout=60)


def energy_logs(tmp_path):
    return list((tmp_path / "run.marey").glob("*.klog"))


def test_one_of_several_ranks_measures(ranks, counters, tmp_path):
    (tmp_path / "calls").touch()
    processes = [ranks(rank) for rank in range(4)]
    wait_for(lambda: len(calls(tmp_path, "Instant")) > 4)
    (tmp_path / "end").touch()
    for process in processes:
        assert (process.wait(60), process.stdout.read()) == (0, "")
    assert len({line.split()[0] for line in (tmp_path / "calls").read_text().splitlines() if " Init " in line}) >= 1
    # The last process may have taken over briefly; never two at a time.
    found = counters("run.marey")["GPU 0 power (W)"]
    assert len(found) >= 4
    assert not list((tmp_path / "run.marey").glob("energy-*.lock"))


def test_the_gpus_of_all_ranks_are_measured_by_the_one(ranks, counters, tmp_path):
    (tmp_path / "calls").touch()
    for rank in range(3):
        ranks(rank, "gpus 4", visible=str(rank))
    wait_for(lambda: all(len(calls(tmp_path, "Instant", gpu)) > 2 for gpu in range(3)))
    assert len(energy_logs(tmp_path)) == 1
    assert sorted(name[4] for name in counters("run.marey") if name.endswith("power (W)")) == ["0", "1", "2"]
    assert not calls(tmp_path, "Instant", 3)


def test_when_the_one_that_measures_dies_another_goes_on(ranks, counters, tmp_path):
    (tmp_path / "calls").touch()
    first = ranks(0)
    wait_for(lambda: len(calls(tmp_path, "Instant")) > 2)
    second = ranks(1)
    assert len(energy_logs(tmp_path)) == 1
    first.kill()
    first.wait(60)
    wait_for(lambda: len(energy_logs(tmp_path)) == 2)
    (tmp_path / "end").touch()
    assert second.wait(60) == 0
    energy = counters("run.marey")["GPU 0 energy (J)"]
    assert [value for _, value in sorted(energy)] == sorted(value for _, value in energy)


def test_a_program_that_measures_by_itself_stands_by(marey, nvml, emit, tmp_path):
    """energy=1 reaches the program by its options, and its own recordings ask for the lock that marey run has."""
    env = nvml(f"log {tmp_path / 'calls'}")
    done = marey("run", "--energy", "-o", "run.marey", emit, 2, env=env)
    assert done.returncode == 0
    assert [line.split()[1] for line in (tmp_path / "calls").read_text().splitlines()].count("Init") == 1


def test_measuring_may_begin_later(marey, nvml, counters):
    command = [sys.executable, "-c", "import time; time.sleep(2.5)"]
    for after, has_values in ((1, True), (60, False)):
        options = f"energy=1,energy.after={after}"
        recording = f"after{after}.marey"
        started = time.monotonic()
        done = marey("run", "-q", "--options", options, "-o", recording, *command, env=nvml("gpus 1"))
        assert done.returncode == 0 and time.monotonic() - started < 30
        assert bool(counters(recording)) == has_values
    spans = [values[-1][0] - values[0][0] for values in counters("after1.marey").values() if len(values) > 1]
    assert spans and max(spans) < 1.9e9
