"""marey doctor on machines with missing, broken or unusual parts."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

KEYS = ["subject", "thing", "state", "value", "amount", "unit", "advice"]
SUBJECTS = [
    "clock",
    "machine",
    "files",
    "permissions",
    "nvtx",
    "cuda",
    "energy",
    "python",
    "sampling",
    "versions",
    "build",
    "launcher",
]
PATIENT = ("--wait", "30")  # so that a busy machine does not change results


@pytest.fixture
def doctor(marey):
    """Run `marey doctor ARGS... --json`; returns findings by subject and thing, and the whole object."""

    def run(*args, env=None, status=0, wait=PATIENT, said=""):
        done = marey("doctor", *args, *wait, "--json", env=env)
        assert done.returncode == status
        assert said in done.stderr and (said or not done.stderr)
        answer = json.loads(done.stdout)
        return {(row["subject"], row["thing"]): row for row in answer["findings"]}

    return run


def has_advice(row):
    return bool(row["advice"]) and row["advice"].strip() == row["advice"]


# ---- the output ----


def test_json_has_what_the_manual_says(marey):
    done = marey("doctor", *PATIENT, "--json")
    answer = json.loads(done.stdout)
    assert list(answer) == ["version", "abi", "can_record", "findings"]
    assert f"marey {answer['version']}\n" == marey("--version").stdout
    assert answer["can_record"] is True
    assert all(list(row) == KEYS for row in answer["findings"])
    seen = list(dict.fromkeys(row["subject"] for row in answer["findings"]))
    assert seen == SUBJECTS
    assert {row["state"] for row in answer["findings"]} <= {"ok", "limited", "missing", "off"}
    for row in answer["findings"]:
        assert row["unit"] in (None, "ns", "Hz", "bytes", "bytes/s", "count")
        assert row["unit"] is not None or row["amount"] is None
        assert row["value"] and "\n" not in row["value"]


def test_the_text_has_the_same_findings_in_short_lines(marey, doctor):
    text = marey("doctor", *PATIENT).stdout
    for (subject, thing), row in doctor().items():
        assert f"\n{subject}\n" in "\n" + text
        state = r"\w+ *" if thing == "running Pythons" else f"{row['state']:<7}"  # others' processes come and go
        assert re.search(rf"^  {state}  {re.escape(thing)} ", text, re.MULTILINE)
    assert "\033" not in text
    assert "marey can record here" in text.splitlines()[-1]
    assert all(len(line) <= 100 or "/" in line for line in text.splitlines()), "only paths may be longer"


def test_colors_on_request(marey):
    assert "\033[32mok" in marey("doctor", *PATIENT, "--color", "always").stdout


def test_nothing_is_left_behind(doctor, tmp_path):
    shm = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    doctor()
    doctor("--measure")
    assert list(tmp_path.iterdir()) == []
    left = set(os.listdir("/dev/shm")) - shm if os.path.isdir("/dev/shm") else set()
    assert not [name for name in left if name.startswith("marey-")]


# ---- clock and cost ----


def test_the_clock_and_its_costs_are_measured(doctor):
    found = doctor()
    for thing in ("resolution", "cost of a read", "cost of a range", "cost of an event", "cost when off"):
        assert found["clock", thing]["unit"] == "ns"
        assert found["clock", thing]["amount"] > 0
    assert found["clock", "cost when off"]["amount"] < found["clock", "cost of a range"]["amount"]
    assert found["clock", "frequency"]["amount"] >= 1e6


def test_another_clock_is_reported(doctor):
    row = doctor(env={"MAREY_OPTIONS": "clock=monotonic"})["clock", "clock"]
    assert row["state"] == "limited"
    assert row["value"].startswith("monotonic")


def test_wrong_options_are_reported_and_nothing_could_be_recorded(doctor):
    found = doctor(env={"MAREY_OPTIONS": "frobnicate=1"}, status=1, said="frobnicate")
    assert found["launcher", "MAREY_OPTIONS"]["state"] == "missing"
    assert "frobnicate" in found["files", "recording"]["value"]


# ---- files ----


def test_a_directory_that_is_not_there(doctor, tmp_path):
    found = doctor(tmp_path / "no" / "run.marey", status=1)
    row = found["files", "directory"]
    assert row["state"] == "missing"
    assert str(tmp_path / "no") in row["value"]
    assert has_advice(row)
    assert found["files", "recording"]["state"] == "missing"
    assert has_advice(found["files", "recording"])


def test_a_recording_that_is_not_there_yet_is_about_its_directory(doctor, tmp_path):
    assert doctor("new.marey")["files", "directory"]["value"].startswith(f"{tmp_path} (")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_directory(doctor, tmp_path):
    (tmp_path / "file").write_text("")
    found = doctor("file", status=1)
    assert found["files", "recording"]["state"] == "missing"
    assert "Not a directory" in found["files", "recording"]["value"]


def test_a_directory_that_may_not_be_written(doctor, tmp_path):
    """Also for root, who may write everywhere but into /proc."""
    found = doctor("/proc", status=1)
    assert found["files", "recording"]["state"] == "missing"
    if os.geteuid() != 0:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        found = doctor(closed, status=1)
        assert found["files", "directory"]["state"] == "missing"
        assert "Permission denied" in found["files", "directory"]["value"]


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no tmpfs at /dev/shm to record into")
def test_a_tmpfs_is_named_and_holds_the_pool(doctor):
    folder = Path("/dev/shm") / f"marey-test-{os.getpid()}"
    folder.mkdir()
    try:
        found = doctor(folder)
        assert found["files", "directory"]["value"] == f"{folder} (tmpfs)"
        assert found["files", "pool"]["value"] == "kill-safe: in the recording's directory (tmpfs)"
        assert list(folder.iterdir()) == []
    finally:
        shutil.rmtree(folder)


def test_a_pool_in_memory_is_limited(doctor):
    row = doctor(env={"MAREY_OPTIONS": "pool_in=memory"})["files", "pool"]
    assert row["state"] == "limited"
    assert "kill -9" in row["value"]
    assert has_advice(row)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no /dev/shm to hold a pool")
def test_a_pool_in_shm_is_reported(doctor):
    row = doctor(env={"MAREY_OPTIONS": "pool_in=shm"})["files", "pool"]
    assert row["state"] == "ok"
    assert "/dev/shm" in row["value"]


def test_writing_is_measured_when_asked_for(doctor):
    assert doctor()["files", "write speed"]["state"] == "off"
    row = doctor("--measure")["files", "write speed"]
    assert row["unit"] == "bytes/s"
    assert row["amount"] > 1e5


def in_mounts_of_its_own(script, folder, environment):
    """Run a shell script in a mount namespace, or skip the test where that is not allowed."""
    prefix = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    shell = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": 60}
    if shutil.which("unshare") is None or subprocess.run([*prefix, "true"], check=False, **shell).returncode != 0:
        pytest.skip("mount namespaces are not allowed here")
    done = subprocess.run([*prefix, "sh", "-c", script], check=False, **shell)
    if "mount:" in done.stderr:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr}")
    return done


def test_a_container_with_little_shared_memory(program, tmp_path, environment):
    mount = "mount -t tmpfs -o size=64m,noexec shm /dev/shm"
    done = in_mounts_of_its_own(
        f"{mount} && exec {shlex.quote(str(program))} doctor --wait 30 --json", tmp_path, environment
    )
    row = next(row for row in json.loads(done.stdout)["findings"] if row["thing"] == "/dev/shm")
    assert row["state"] == "limited"
    assert "noexec" in row["value"]
    assert "--shm-size" in row["advice"]


def test_a_full_disk_cannot_hold_a_recording(program, tmp_path, environment):
    folder = tmp_path / "full"
    folder.mkdir()
    script = (
        f"mount -t tmpfs -o size=64k full {folder} && head -c 1m /dev/zero > {folder}/rest 2>/dev/null; "
        f"{shlex.quote(str(program))} doctor {folder} --wait 30 --json; code=$?; ls -A {folder} >&2; exit $code"
    )
    done = in_mounts_of_its_own(script, tmp_path, environment)
    found = {row["thing"]: row for row in json.loads(done.stdout)["findings"] if row["subject"] == "files"}
    assert done.returncode == 1
    assert found["free space"]["state"] == "limited"
    assert found["recording"]["state"] == "missing"
    assert "No space left" in found["recording"]["value"]
    assert done.stderr.split() == ["rest"], "what was tried is gone"


# ---- libraries that are not there, crash, or hang ----


NVML = """
    int nvmlInit_v2(void) {{ {init} }}
    const char *nvmlErrorString(int status) {{ (void)status; return "Driver/library version mismatch"; }}
    int nvmlSystemGetDriverVersion(char *out, unsigned size) {{ __builtin_snprintf(out, size, "123.45"); return 0; }}
    int nvmlDeviceGetCount_v2(unsigned *n) {{ *n = 2; return 0; }}
    int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) {{ *device = (void *)(long)(i + 1); return 0; }}
    int nvmlDeviceGetName(void *device, char *out, unsigned size)
    {{
        __builtin_snprintf(out, size, "Stand-in %ld", (long)device);
        return 0;
    }}
    int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
    {{
        *mj = 1;
        return device == (void *)2;
    }}
"""


def test_gpus_are_named_through_nvml(doctor, stand_in):
    found = doctor(env=stand_in("libnvidia-ml.so.1", NVML.format(init="return 0;")))
    assert found["cuda", "NVML"]["state"] == "ok"
    assert "driver 123.45" in found["cuda", "NVML"]["value"]
    assert found["cuda", "gpu 0"]["value"] == "Stand-in 1, energy counter readable"
    assert found["cuda", "gpu 1"]["state"] == "limited"


def test_a_driver_that_does_not_fit_says_so(doctor, stand_in):
    row = doctor(env=stand_in("libnvidia-ml.so.1", NVML.format(init="return 18;")))["cuda", "NVML"]
    assert row["state"] == "limited"
    assert "version mismatch" in row["value"]
    assert has_advice(row)


def test_a_library_that_crashes_in_a_call(doctor, stand_in):
    found = doctor(env=stand_in("libnvidia-ml.so.1", NVML.format(init="*(volatile int *)0 = 1; return 0;")))
    row = found["cuda", "NVML"]
    assert row["state"] == "limited"
    assert "crashed" in row["value"] or "status" in row["value"]
    assert has_advice(row)
    assert found["launcher", "rank"], "the doctor goes on"


def test_a_library_that_crashes_when_it_is_loaded(doctor, stand_in):
    source = "__attribute__((constructor)) static void load(void) { __builtin_trap(); }"
    row = doctor(env=stand_in("libcuda.so.1", source))["cuda", "driver"]
    assert row["state"] == "limited"
    assert has_advice(row)


def test_a_library_that_hangs_is_not_waited_for(doctor, stand_in):
    source = "int sleep(int); int cudaRuntimeGetVersion(int *v) { for (;;) sleep(1); return *v; }"
    found = doctor(env=stand_in("libcudart.so.13", source), wait=("--wait", "2"))
    row = found["cuda", "runtime"]
    assert row["state"] == "limited"
    assert "did not answer in time" in row["value"]
    assert found["launcher", "rank"], "the doctor goes on"


def test_a_library_without_its_functions(doctor, stand_in):
    env = stand_in("libcuda.so.1", "int nothing;")
    assert doctor(env=env)["cuda", "driver"]["state"] == "limited"


def test_a_file_that_is_no_library(doctor, tmp_path):
    (tmp_path / "libcuda.so.1").write_text("no ELF at all")
    row = doctor(env={"LD_LIBRARY_PATH": str(tmp_path)})["cuda", "driver"]
    assert row["state"] == "limited"
    assert "libcuda.so.1" in row["value"]


# ---- Python ----


def script(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_no_python_on_the_path(doctor, tmp_path):
    row = doctor(env={"PATH": str(tmp_path)})["python", "python3"]
    assert row["state"] == "missing"
    assert has_advice(row)


def test_a_python_without_marey(doctor, tmp_path):
    row = doctor(env=script(tmp_path, "python3", "echo version=3.12.1; echo \"error=No module named 'marey'\""))[
        "python", "python3"
    ]
    assert row["state"] == "missing"
    assert "No module named 'marey'" in row["value"]
    assert has_advice(row)


def test_a_python_with_another_version(doctor, tmp_path):
    row = doctor(env=script(tmp_path, "python3", "echo version=3.12.1; echo marey=9.9.9"))["python", "python3"]
    assert row["state"] == "limited"
    assert "9.9.9" in row["value"]


def test_a_real_python_with_this_marey(doctor, build_dir, build_setting):
    python = build_setting("Python_EXECUTABLE") or build_setting("_Python_EXECUTABLE")
    package = build_dir / "python"
    if not python or not (package / "marey" / "__init__.py").exists():
        pytest.skip("this build has no Python package")
    env = {"PATH": f"{Path(python).parent}:/usr/bin:/bin", "PYTHONPATH": str(package)}
    found = doctor(env=env)
    rows = [row for (subject, thing), row in found.items() if thing in ("python3", "python")]
    assert any(row["state"] == "ok" and str(package / "marey") in row["value"] for row in rows)
    assert found["versions", "second copy"]["state"] == "ok", "the build tree has one libmarey, by two names"


@pytest.mark.parametrize(
    "text", ["exec sleep 1000", "sleep 1000 & sleep 1000", "kill -9 $$", "head -c 200000 /dev/zero"]
)
def test_a_python_that_misbehaves(doctor, tmp_path, text):
    row = doctor(env=script(tmp_path, "python3", text), wait=("--wait", "2"))["python", "python3"]
    assert row["state"] == "limited"
    assert has_advice(row)


def test_the_boot_folder(doctor, tmp_path):
    assert doctor()["python", "boot folder"]["state"] == "ok"
    row = doctor(env={"MAREY_BOOT": str(tmp_path)})["python", "boot folder"]
    assert row["state"] == "missing"
    assert has_advice(row)


# ---- versions ----


def test_a_second_copy_of_libmarey_is_reported(doctor, tmp_path, build_dir):
    """Whichever of the two the loader gave the command, the other one is named, with its version."""
    copy = Path(shutil.copy(build_dir / "core" / "libmarey.so.0", tmp_path / "libmarey.so.0"))
    found = doctor(env={"LD_LIBRARY_PATH": str(tmp_path)})
    row = found["versions", "second copy"]
    assert row["state"] == "limited"
    assert has_advice(row)
    assert str(copy) in (row["value"].split(" (")[0], found["versions", "libmarey"]["value"])
    assert row["value"].split(" (")[0] != found["versions", "libmarey"]["value"]
    assert f"({found['versions', 'marey']['value'].split(',')[0]})" in row["value"]


def test_a_second_copy_that_a_python_brings_is_reported(doctor, tmp_path, build_dir):
    copy = Path(shutil.copy(build_dir / "core" / "libmarey.so.0", tmp_path / "libmarey.so.0"))
    text = f"echo version=3.12.1; echo marey=0.1.0; echo library={copy}"
    row = doctor(env=script(tmp_path, "python3", text))["versions", "second copy"]
    assert row["state"] == "limited"
    assert str(copy) in row["value"]
    assert "python3" in row["value"]


def test_a_preload_that_is_not_there(doctor, marey):
    done = marey("doctor", *PATIENT, "--json", env={"LD_PRELOAD": "/no/such/library.so"})
    found = {row["thing"]: row for row in json.loads(done.stdout)["findings"]}
    assert found["LD_PRELOAD"]["state"] == "limited"
    assert "/no/such/library.so" in found["LD_PRELOAD"]["value"]


# ---- NVTX and launcher ----


def test_an_injection_that_is_not_there(doctor, marey):
    done = marey("doctor", *PATIENT, "--json", env={"NVTX_INJECTION64_PATH": "/no/such/tool.so"})
    found = {row["thing"]: row for row in json.loads(done.stdout)["findings"]}
    assert found["NVTX_INJECTION64_PATH"]["state"] == "missing"
    assert has_advice(found["NVTX_INJECTION64_PATH"])


def test_the_launchers_variables_are_seen(doctor):
    found = doctor(env={"RANK": "3", "WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "abc"})
    assert found["launcher", "rank"]["value"] == "3, by RANK"
    assert found["launcher", "world size"]["amount"] == 8
    assert found["launcher", "run id"]["value"] == "abc"


def test_ranks_that_do_not_fit_are_reported(doctor):
    row = doctor(env={"RANK": "8", "WORLD_SIZE": "8"})["launcher", "rank"]
    assert row["state"] == "limited"
    assert has_advice(row)


# ---- permissions ----


def test_memory_of_a_child_is_read_or_the_refusal_is_reported(doctor):
    for thing in ("memory of a child", "memory of others"):
        row = doctor()["permissions", thing]
        assert row["state"] == "ok" or (row["state"] == "missing" and has_advice(row))


FILTER = """
    #include <errno.h>
    #include <linux/filter.h>
    #include <linux/seccomp.h>
    #include <stddef.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    int main(int argc, char **argv)
    {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof code / sizeof code[0], code};
        if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            return 77;
        execv(argv[1], argv + 1);
        return 78;
    }
"""


def test_a_container_that_forbids_system_calls(program, tmp_path, environment, build_setting):
    """As docker's default filter does: the settings allow it, and the call is refused."""
    (tmp_path / "filter.c").write_text(FILTER)
    compiler = build_setting("CMAKE_C_COMPILER") or "cc"
    subprocess.run([compiler, "-D_GNU_SOURCE", "-o", tmp_path / "filter", tmp_path / "filter.c"], check=True)
    command = [tmp_path / "filter", program, "doctor", *PATIENT, "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=60, check=False)
    if done.returncode == 77:
        pytest.skip("no system call can be filtered here")
    assert done.returncode == 0, "recording needs none of it"
    found = {row["thing"]: row for row in json.loads(done.stdout)["findings"] if row["subject"] == "permissions"}
    for thing in ("memory of a child", "memory of others", "perf events"):
        assert found[thing]["state"] == "missing"
        assert "not permitted" in found[thing]["value"]
        assert "container" in found[thing]["advice"] or "yama" in found[thing]["advice"]
    assert found["seccomp"]["value"].startswith("a filter is on")


def test_too_many_arguments(marey):
    done = marey("doctor", "a", "b")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_goes_away(marey):
    with open("/dev/full", "w") as full:
        done = marey("doctor", *PATIENT, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert "standard output" in done.stderr or "cannot write" in done.stderr


def test_a_python_is_read_from_outside(doctor):
    found = doctor()
    python = next(
        row for (subject, thing), row in found.items() if subject == "sampling" and thing.startswith("python")
    )
    assert python["state"] == "ok" and "can be read from outside" in python["value"]
    for thing in ("cost of a read", "cost of a stop"):
        assert found["sampling", thing]["unit"] == "ns" and found["sampling", thing]["amount"] > 0
    assert (
        found["sampling", "running Pythons"]["value"] == "none"
        or " can be attached to" in found["sampling", "running Pythons"]["value"]
    )


def test_python_3_9_is_rejected(doctor):
    old = sorted((Path.home() / ".pyenv" / "versions").glob("3.9.*/bin/python3"))
    if not old:
        pytest.skip("needs a Python 3.9 from pyenv")
    found = doctor(env={"PATH": f"{old[0].parent}:{os.environ['PATH']}"})
    assert found["python", "python3"]["advice"] == "use Python 3.10 to 3.13"
    assert "Python 3.9 is not supported; 3.10 to 3.14 are" in found["sampling", "python3"]["value"]
