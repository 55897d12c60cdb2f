"""marey doctor on machines with GPUs: energy counters, visible devices, GPU tracing.

The libraries are fakes, compiled here; tests/gpu/test_doctor_measures.py uses real ones.
"""

from __future__ import annotations

import json

import pytest

PATIENT = ("--wait", "30")  # so that a busy machine does not change results

UUIDS = [f"00000000-1111-2222-3333-4444555566{i:02x}" for i in range(2)]

# Two GPUs. The first has everything, and its counters step every 10 and 20 ms of the process's own reading; the second
# is old, and divided.
NVML = """
    #include <stdio.h>
    #include <string.h>
    #include <time.h>
    #define EXPORT __attribute__((visibility("default")))
    static unsigned long long now_ms(void)
    {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
    }
    static int is_second(void *device) { return device == (void *)2; }
    int nvmlInit_v2(void) { return INIT; }
    const char *nvmlErrorString(int status) { return status == 3 ? "Not Supported" : "Some Words"; }
    int nvmlSystemGetDriverVersion(char *out, unsigned size) { snprintf(out, size, "123.45"); return 0; }
    int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
    int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device)
    {
        *device = (void *)(long)(i + 1);
        return i == LOST ? 15 : 0;
    }
    int nvmlDeviceGetName(void *device, char *out, unsigned size) { snprintf(out, size, "Stand-in"); return 0; }
    int nvmlDeviceGetUUID(void *device, char *out, unsigned size)
    {
        snprintf(out, size, "GPU-00000000-1111-2222-3333-4444555566%02x", (int)(long)device - 1);
        return 0;
    }
    int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
    {
        *mj = STUCK ? 7 : now_ms() / 10;
        return is_second(device) ? 3 : 0;
    }
    struct field { unsigned id, scope; long long t, l; int type, result; union { unsigned u; double d; } value; };
    int nvmlDeviceGetFieldValues(void *device, int n, struct field *fields)
    {
        for (int i = 0; i < n; i++) {
            fields[i].result = is_second(device) ? 3 : 0;
            fields[i].value.u = (unsigned)(now_ms() / (fields[i].id == 186 ? 10 : 20));
        }
        return 0;
    }
    int nvmlDeviceGetPowerUsage(void *device, unsigned *mw) { *mw = (unsigned)(now_ms() / 10); return 0; }
    struct sample { unsigned long long t; double value; };
    int nvmlDeviceGetSamples(void *device, int kind, unsigned long long since, int *type, unsigned *n, struct sample *s)
    {
        if (is_second(device) || kind != 1)
            return 3;
        for (unsigned i = 0; i < 100; i++)
            s[i].t = 1000000 + i * 166000ull;
        *n = 100;
        return 0;
    }
    int nvmlGpmQueryDeviceSupport(void *device, unsigned *support)
    {
        support[1] = !is_second(device);
        return support[0] == 1 ? 0 : 2;
    }
    int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) { *mhz = 1000; return 0; }
    int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *c) { *c = 40; return is_second(device) ? 3 : 0; }
    int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits) { *bits = 1; return 0; }
    int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *later)
    {
        *now = *later = is_second(device);
        return 0;
    }
"""

# A driver that sees NVML's GPUs in the other order, and a third device that is a share of one.
DRIVER = """
    #include <string.h>
    int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
    int cuInit(unsigned flags) { return INIT; }
    int cuDeviceGetCount(int *n) { *n = 3; return 0; }
    int cuDeviceGet(int *device, int i) { *device = i; return 0; }
    int cuDeviceGetUuid_v2(unsigned char *out, int device)
    {
        static const unsigned char start[15] = "\\0\\0\\0\\0\\x11\\x11\\x22\\x22\\x33\\x33\\x44\\x44\\x55\\x55\\x66";
        memcpy(out, start, 15);
        out[15] = device == 2 ? 0xff : 1 - device;
        return 0;
    }
"""

CUPTI = """
    #include <stdio.h>
    #include <stddef.h>
    struct params { size_t size; const char *name; char *old; size_t old_size; };
    int cuptiGetVersion(unsigned *v) { *v = 130001; return 0; }
    int cuptiActivityEnable(int kind) { return kind == 10 ? ENABLE : 1; }
    int cuptiActivityDisable(int kind) { return 0; }
    int cuptiUnsubscribe(void *s) { return 0; }
    int cuptiSubscribe(void **s, void *callback, void *ctx) { *s = s; return SUBSCRIBE; }
    #ifdef V2
    int cuptiSubscribe_v2(void **s, void *callback, void *ctx, struct params *params)
    {
        if (params->size != 32)
            return 1;
        snprintf(params->old, params->old_size, "CUPTI for somebody");
        return SUBSCRIBE;
    }
    #endif
"""


def source(text, **words):
    return "".join(f"#define {name} {value}\n" for name, value in words.items()) + text


@pytest.fixture
def doctor(marey):
    """Run the doctor; returns findings by subject and thing."""

    def run(env, wait=PATIENT):
        done = marey("doctor", *wait, "--json", env=env)
        assert (done.returncode, done.stderr) == (0, "")
        return {(row["subject"], row["thing"]): row for row in json.loads(done.stdout)["findings"]}

    return run


def tried(doctor, stand_in, driver=0, **words):
    stand_in("libcuda.so.1", source(DRIVER, INIT=driver))
    return doctor(stand_in("libcupti.so.13", source(CUPTI, **{"SUBSCRIBE": 0, "ENABLE": 0} | words)))[
        "cuda", "GPU tracing"
    ]


# ---- energy ----


def test_counters_of_a_gpu_and_how_often_they_change(doctor, stand_in):
    found = doctor(stand_in("libnvidia-ml.so.1", source(NVML, INIT=0, LOST=9, STUCK=0)))
    for thing in ("energy counter", "power", "average power"):
        row = found["energy", f"gpu 0 {thing}"]
        assert (row["state"], row["unit"]) == ("ok", "ns"), row
        assert row["amount"] > 0
        assert "a new value every" in row["value"]
    assert "at an instant" in found["energy", "gpu 0 power"]["value"]
    assert found["energy", "gpu 0 utilization"]["amount"] == pytest.approx(166e6)
    assert "100 samples" in found["energy", "gpu 0 utilization"]["value"]
    assert found["energy", "gpu 0 activity"]["state"] == "ok"
    assert found["energy", "gpu 0 state"]["value"] == "SM clock, memory clock, temperature, throttle reasons"
    assert found["energy", "gpu 0 MIG"]["value"] == "not divided"


def test_an_old_gpu_says_what_it_cannot(doctor, stand_in):
    found = doctor(stand_in("libnvidia-ml.so.1", source(NVML, INIT=0, LOST=9, STUCK=0)))
    assert found["energy", "gpu 1 energy counter"]["state"] == "missing"
    assert "Not Supported" in found["energy", "gpu 1 energy counter"]["value"]
    assert "as old drivers give it" in found["energy", "gpu 1 power"]["value"]
    assert ("energy", "gpu 1 average power") not in found
    assert found["energy", "gpu 1 utilization"]["state"] == "missing"
    assert found["energy", "gpu 1 activity"]["state"] == "off"
    assert found["energy", "gpu 1 state"]["state"] == "limited"
    assert "not readable: temperature" in found["energy", "gpu 1 state"]["value"]
    assert found["energy", "gpu 1 MIG"]["state"] == "limited"


def test_a_counter_that_stands_still_is_reported(doctor, stand_in):
    row = doctor(stand_in("libnvidia-ml.so.1", source(NVML, INIT=0, LOST=9, STUCK=1)))["energy", "gpu 0 energy counter"]
    assert row["state"] == "limited"
    assert "too few new values" in row["value"]
    assert row["advice"]


def test_a_gpu_that_fell_off_the_bus_leaves_the_others(doctor, stand_in):
    found = doctor(stand_in("libnvidia-ml.so.1", source(NVML, INIT=0, LOST=0, STUCK=0)))
    assert found["energy", "gpu 0 energy counter"]["state"] == "missing"
    assert "Xid" in found["energy", "gpu 0 energy counter"]["advice"]
    assert found["energy", "gpu 1 power"]["state"] == "ok"


@pytest.mark.parametrize(
    ("code", "word"), [(4, "/dev/nvidia*"), (9, "modprobe"), (15, "Xid"), (18, "restart"), (77, "docker run --gpus")]
)
def test_what_to_do_when_nvml_does_not_start(doctor, stand_in, code, word):
    row = doctor(stand_in("libnvidia-ml.so.1", source(NVML, INIT=code, LOST=9, STUCK=0)))["cuda", "NVML"]
    assert row["state"] == "limited"
    assert word in row["advice"]


# ---- devices ----


def test_devices_of_cuda_are_reported_by_uuid(doctor, stand_in):
    stand_in("libnvidia-ml.so.1", source(NVML, INIT=0, LOST=9, STUCK=0))
    found = doctor(stand_in("libcuda.so.1", source(DRIVER, INIT=0)) | {"CUDA_VISIBLE_DEVICES": "1,0"})
    assert found["cuda", "CUDA_VISIBLE_DEVICES"]["value"] == "'1,0'"
    assert found["cuda", "CUDA device 0"]["value"] == f"GPU-{UUIDS[1]}, NVML's gpu 1"
    assert found["cuda", "CUDA device 1"]["value"] == f"GPU-{UUIDS[0]}, NVML's gpu 0"
    assert "(MIG)" in found["cuda", "CUDA device 2"]["value"]


@pytest.mark.parametrize(
    ("code", "word"), [(100, "CUDA_VISIBLE_DEVICES"), (802, "fabricmanager"), (803, "restart"), (5, "CUresult")]
)
def test_what_to_do_when_cuda_does_not_start(doctor, stand_in, code, word):
    row = doctor(stand_in("libcuda.so.1", source(DRIVER, INIT=code)))["cuda", "CUDA devices"]
    assert row["state"] == "missing"
    assert f"error {code}" in row["value"]
    assert word in row["advice"]


# ---- tracing ----


@pytest.mark.parametrize("words", [{}, {"V2": 1}])
def test_a_subscription_that_is_taken_and_given_back(doctor, stand_in, words):
    row = tried(doctor, stand_in, **words)
    assert row["state"] == "ok"
    assert row["advice"] is None


def test_another_tool_is_named(doctor, stand_in):
    row = tried(doctor, stand_in, SUBSCRIBE=39, V2=1)
    assert row["state"] == "missing"
    assert "CUPTI for somebody" in row["value"]
    assert "nsys" in row["advice"]
    row = tried(doctor, stand_in, SUBSCRIBE=39)
    assert row["value"] == "another tool traces programs that are started here (CUPTI's error 39)"


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ({"ENABLE": 35}, "NVreg_RestrictProfilingToAdminUsers=0"),
        ({"SUBSCRIBE": 15}, "newer driver"),
        ({"SUBSCRIBE": 999}, "CUPTI's manual"),
        ({"ENABLE": 43}, "whole GPU"),
    ],
)
def test_what_to_do_when_tracing_is_refused(doctor, stand_in, words, word):
    row = tried(doctor, stand_in, **words)
    assert row["state"] == "missing"
    assert str(*words.values()) in row["value"]
    assert word in row["advice"]


def test_a_subscription_that_crashes(doctor, stand_in):
    row = tried(doctor, stand_in, SUBSCRIBE="*(volatile int *)0")
    assert row["state"] == "limited"
    assert "crashed" in row["value"] or "status" in row["value"]


def test_a_cupti_that_is_named(doctor, stand_in, tmp_path):
    """As GPU tracing takes it, also when there is none."""
    stand_in("libcuda.so.1", source(DRIVER, INIT=0))
    env = stand_in("another.so", source(CUPTI, SUBSCRIBE=35, ENABLE=0))
    named = f"{env['LD_LIBRARY_PATH']}/another.so"
    found = doctor(env | {"MAREY_CUPTI_LIBRARY": named})
    assert named in found["cuda", "CUPTI"]["value"]
    assert "error 35" in found["cuda", "GPU tracing"]["value"]
    found = doctor(env | {"MAREY_CUPTI_LIBRARY": str(tmp_path / "none.so")})
    assert found["cuda", "CUPTI"]["state"] == "missing"
    assert found["cuda", "GPU tracing"]["state"] == "off"


def test_nothing_is_tried_without_a_driver_or_without_cupti(doctor, stand_in):
    assert doctor({})["cuda", "GPU tracing"]["state"] == "off"
    row = tried(doctor, stand_in, driver=100)
    assert row["state"] == "off"
    assert "error 100" in row["value"]


def test_a_cupti_from_before_subscriptions(doctor, stand_in):
    stand_in("libcuda.so.1", source(DRIVER, INIT=0))
    env = stand_in("libcupti.so.13", "int cuptiGetVersion(unsigned *v) { *v = 1; return 0; }")
    assert "12.0" in doctor(env)["cuda", "GPU tracing"]["advice"]


def test_others_who_want_to_trace_are_reported(doctor, tmp_path):
    found = doctor({"CUDA_INJECTION64_PATH": "/no/tool.so", "TEARDOWN_CUPTI": "1", "NSYS_PROFILING_SESSION_ID": "1"})
    assert found["cuda", "CUDA_INJECTION64_PATH"]["state"] == "limited"
    assert "/no/tool.so, which cannot be read" in found["cuda", "CUDA_INJECTION64_PATH"]["value"]
    assert found["cuda", "TEARDOWN_CUPTI"]["state"] == "ok"
    assert "runs under it" in found["cuda", "nsys"]["value"]
    found = doctor({"CUDA_INJECTION64_PATH": str(tmp_path / "libmarey-cuda.so"), "TEARDOWN_CUPTI": "0"})
    assert found["cuda", "CUDA_INJECTION64_PATH"]["state"] == "ok"
    assert found["cuda", "TEARDOWN_CUPTI"]["state"] == "off"
