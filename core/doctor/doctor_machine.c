/* CPUs, memory, kernel, hypervisor: the conditions of measurements on this machine. */
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor/internal.h"
#include "instrument/memory/internal.h"

static void report_model(struct marey__doctor *doctor)
{
    char text[8192], model[128];
    const size_t len = marey__read_text("/proc/cpuinfo", text, sizeof text);
    if (marey__parse_field(text, len, "model name", model, sizeof model) ||
        marey__parse_field(text, len, "Model", model, sizeof model) ||
        marey__parse_field(text, len, "CPU part", model, sizeof model))
        marey__doctor_ok(doctor, "processor", "%s", model);
    else
        marey__doctor_off(doctor, "processor", "/proc/cpuinfo does not name it");
}

/* ---- limits by cgroup: the lowest from this process's group up to the root ---- */

static bool cpus_v2(const char *folder, double *out)
{
    char path[PATH_MAX + 128], text[64];
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    return marey__parse_cpu_max(text, marey__read_text(path, text, sizeof text), out);
}

static bool cpus_v1(const char *folder, double *out)
{
    double quota, period;
    if (!marey__cgroup_number(folder, "cpu.cfs_quota_us", &quota) ||
        !marey__cgroup_number(folder, "cpu.cfs_period_us", &period) || period <= 0)
        return false;
    *out = quota / period;
    return true;
}

/* Version 1 writes a number near the largest one for "no limit". */
static bool memory_v1(const char *folder, double *out)
{
    return marey__cgroup_number(folder, "memory.limit_in_bytes", out) && *out < 1e18;
}

static double cgroup_limit(const char *controller, marey__cgroup_limit *v2, marey__cgroup_limit *v1)
{
    char text[8192], path[PATH_MAX], root[64];
    const size_t len = marey__read_text("/proc/self/cgroup", text, sizeof text);
    if (marey__parse_cgroup(text, len, controller, path, sizeof path)) {
        snprintf(root, sizeof root, "/sys/fs/cgroup/%s", controller);
        return marey__cgroup_lowest(root, path, v1);
    }
    if (marey__parse_cgroup(text, len, "", path, sizeof path))
        return marey__cgroup_lowest("/sys/fs/cgroup", path, v2);
    return 0;
}

static int affinity_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    return 0; /* more CPUs than the set has room for: no limit that matters */
}

static void report_processors(struct marey__doctor *doctor)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int allowed = affinity_count();
    const double limit = cgroup_limit("cpu", cpus_v2, cpus_v1);
    double usable = allowed > 0 ? allowed : (double)online;
    char cgroup[64] = "no cgroup limit";
    if (limit > 0) {
        snprintf(cgroup, sizeof cgroup, "a cgroup limit of %.4g", limit);
        usable = MAREY__MIN(usable, limit);
    }
    const char *advice = usable < 2 ? "give the program a second processor: the thread that writes "
                                      "shares the only one with it"
                                    : NULL;
    marey__doctor_amount_as(doctor, "processors", advice, usable, "count",
                            "%ld online, %d for this process, %s", online, allowed, cgroup);
}

static void report_memory(struct marey__doctor *doctor)
{
    enum { LITTLE_MIB = 256 };
    char text[4096];
    const size_t len = marey__read_text("/proc/meminfo", text, sizeof text);
    const double total = (double)marey__memory_status_bytes(text, len, "MemTotal:");
    const double available = (double)marey__memory_status_bytes(text, len, "MemAvailable:");
    const double limit = cgroup_limit("memory", marey__cgroup_memory_max, memory_v1);
    const double usable = limit > 0 ? MAREY__MIN(limit, available) : available;
    const bool is_little = usable > 0 && usable < (double)LITTLE_MIB * 1048576;
    char cgroup[64] = "no cgroup limit", words[3][32];
    if (limit > 0)
        snprintf(cgroup, sizeof cgroup, "a cgroup limit of %s", marey__doctor_bytes(limit, words[2]));
    marey__doctor_amount_as(
        doctor, "memory", is_little ? "record with a smaller pool, MAREY_OPTIONS=pool=4MiB" : NULL,
        usable, "bytes", "%s, %s available, %s", marey__doctor_bytes(total, words[0]),
        marey__doctor_bytes(available, words[1]), cgroup);
}

#if defined(__x86_64__)
#include <cpuid.h>

/* The hypervisor's twelve-byte identification; false on bare metal. */
static bool hypervisor_name(char out[13])
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (1u << 31)) == 0)
        return false;
    __cpuid(0x40000000, a, b, c, d);
    memcpy(out, &b, 4);
    memcpy(out + 4, &c, 4);
    memcpy(out + 8, &d, 4);
    out[12] = '\0';
    for (char *p = out; *p != '\0'; p++)
        *p = *p >= ' ' && *p < 0x7f ? *p : '\0';
    return true;
}
#else
static bool hypervisor_name(char out[13])
{
    (void)out;
    return false;
}
#endif

/* Its product name. */
static const char *known_name(const char *name)
{
    static const char *const names[][2] = {{"KVMKVMKVM", "KVM"},
                                           {"Microsoft Hv", "Hyper-V"},
                                           {"VMwareVMware", "VMware"},
                                           {"XenVMMXenVMM", "Xen"},
                                           {"TCGTCGTCGTCG", "QEMU"}};
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        if (strcmp(name, names[i][0]) == 0)
            return names[i][1];
    return name[0] != '\0' ? name : "one without a name";
}

static void report_system(struct marey__doctor *doctor)
{
    struct utsname name;
    char text[13], governor[64];
    if (uname(&name) == 0)
        marey__doctor_ok(doctor, "kernel", "%s %s, %s", name.sysname, name.release, name.machine);
    if (hypervisor_name(text))
        marey__doctor_ok(doctor, "hypervisor", "%s", known_name(text));
    else
        marey__doctor_off(doctor, "hypervisor", "none seen");
    if (marey__read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor,
                         sizeof governor) == 0) {
        marey__doctor_off(doctor, "governor", "not readable here, as in most virtual machines");
        return;
    }
    const bool is_steady = strcmp(governor, "performance") == 0;
    marey__doctor_limited(
        doctor, "governor",
        is_steady
            ? NULL
            : "for steady figures choose 'performance': cpupower frequency-set -g performance",
        "%s", governor);
}

void marey__doctor_machine(struct marey__doctor *doctor)
{
    report_model(doctor);
    report_processors(doctor);
    report_memory(doctor);
    report_system(doctor);
}
