/*
 * Energy and utilization: which counters exist, how often they update, and who may read them. GPUs: as measured by
 * NVML's child process; CPUs: RAPL, read here.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "doctor/internal.h"
#include "record/internal.h"

enum { MAX_ZONES = 64, ENOUGH = 9 };

static const uint64_t zone_ns = UINT64_C(30000000);

/*
 * ---- update rates: a counter is read repeatedly, and the intervals between changes are stored. The
 * period is their median: a value that happens to stay the same over an update doubles one interval, which is then not
 * the median. The resolution of a period is the interval between reads.
 */
void marey__update_rate_add(struct marey__update_rate *rate, uint64_t value, uint64_t now_ns,
                            uint64_t cost_ns)
{
    rate->cost_ns = rate->n_reads++ == 0 ? cost_ns : MAREY__MIN(rate->cost_ns, cost_ns);
    if (rate->n_reads > 1 && value != rate->value) {
        /* The first change only marks an update; intervals count from there. */
        if (rate->n_changes > 0 && rate->n_changes <= MAREY__UPDATE_GAPS)
            rate->gaps_ns[rate->n_changes - 1] = now_ns - rate->changed_ns;
        rate->n_changes++;
        rate->changed_ns = now_ns;
    }
    rate->value = value;
}

uint64_t marey__update_rate_period_ns(struct marey__update_rate *rate)
{
    if (rate->n_changes < 2)
        return 0;
    const size_t n = MAREY__MIN(rate->n_changes - 1, (unsigned)MAREY__UPDATE_GAPS);
    qsort(rate->gaps_ns, n, sizeof rate->gaps_ns[0], marey__compare_u64);
    return rate->gaps_ns[n / 2];
}

struct marey__doctor_measured marey__update_rate_finish(struct marey__update_rate *rate,
                                                        const char *refusal)
{
    struct marey__doctor_measured found = {.is_readable = rate->n_reads > 0,
                                           .period_ns = (double)marey__update_rate_period_ns(rate),
                                           .cost_ns = (double)rate->cost_ns,
                                           .n_changes = rate->n_changes};
    if (!found.is_readable)
        snprintf(found.refusal, sizeof found.refusal, "%.80s", refusal);
    return found;
}

/* "1.02 ms", in `into`. */
static const char *duration(double ns, char into[32])
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__text_duration(&text, ns, NULL);
    snprintf(into, 32, "%.*s", text.failed ? 1 : (int)text.len, text.failed ? "?" : text.data);
    return into;
}

/* ---- GPUs ---- */

struct gpu_rows {
    struct marey__doctor *doctor;
    const struct marey__doctor_gpu *found;
    unsigned device;
    char thing[48];
};

static const char *thing_of(struct gpu_rows *gpu, const char *what)
{
    snprintf(gpu->thing, sizeof gpu->thing, "gpu %u %s", gpu->device, what);
    return gpu->thing;
}

/* Reports a readable counter: its period, and the cost of a read. */
static void report_period(struct marey__doctor *doctor, const char *thing, const char *what,
                          const struct marey__doctor_measured *found)
{
    char period[32], cost[32];
    if (found->period_ns > 0)
        marey__doctor_amount_as(doctor, thing, NULL, found->period_ns, "ns",
                                "%s, a new value every %s (%llu seen); a read takes %s", what,
                                duration(found->period_ns, period),
                                (unsigned long long)found->n_changes, duration(found->cost_ns, cost));
    else
        marey__doctor_amount_as(
            doctor, thing, "try again with --wait 10; a value that does not change cannot be trusted",
            NAN, "ns", "%s, readable in %s; too few new values were seen to measure its period",
            what, duration(found->cost_ns, cost));
}

static void report_energy(struct gpu_rows *gpu)
{
    const char *thing = thing_of(gpu, "energy counter");
    if (gpu->found->energy.is_readable)
        report_period(gpu->doctor, thing, "since the driver was loaded", &gpu->found->energy);
    else
        marey__doctor_missing(
            gpu->doctor, thing,
            "nothing to do: GPUs before Volta count no energy; marey adds up power", "refused: %s",
            gpu->found->energy.refusal);
}

static void report_power(struct gpu_rows *gpu)
{
    const struct {
        const struct marey__doctor_measured *found;
        const char *what;
    } sources[] = {{&gpu->found->instant, "power at an instant"},
                   {&gpu->found->average, "power, averaged over a second"},
                   {&gpu->found->usage, "power as old drivers give it"}};
    const char *thing = thing_of(gpu, "power");
    for (size_t i = 0; i < MAREY__COUNT_OF(sources); i++)
        if (sources[i].found->is_readable) {
            report_period(gpu->doctor, thing, sources[i].what, sources[i].found);
            return;
        }
    marey__doctor_missing(gpu->doctor, thing,
                          "nothing to do: this GPU, or this share of one, reports no power",
                          "refused: %s", gpu->found->usage.refusal);
}

static void report_average(struct gpu_rows *gpu)
{
    if (gpu->found->instant.is_readable && gpu->found->average.is_readable)
        report_period(gpu->doctor, thing_of(gpu, "average power"), "averaged over a second",
                      &gpu->found->average);
}

static void report_samples(struct gpu_rows *gpu)
{
    const struct marey__doctor_measured *found = &gpu->found->samples;
    char period[32];
    const char *thing = thing_of(gpu, "utilization");
    if (found->is_readable)
        marey__doctor_amount_as(
            gpu->doctor, thing, NULL, found->period_ns > 0 ? found->period_ns : NAN, "ns",
            "the driver keeps %llu samples, one every %s", (unsigned long long)found->n_changes,
            found->period_ns > 0 ? duration(found->period_ns, period) : "unknown time");
    else
        marey__doctor_missing(gpu->doctor, thing,
                              "nothing to do: busy time is in the recording by --gpu",
                              "no buffer of samples: %s", found->refusal);
}

static void report_activity(struct gpu_rows *gpu)
{
    const char *thing = thing_of(gpu, "activity");
    if (gpu->found->no_gpm[0] == '\0')
        marey__doctor_ok(gpu->doctor, thing, "SMs, tensor cores and memory, by GPM");
    else
        marey__doctor_off(gpu->doctor, thing, "no GPM, which Hopper and newer GPUs have (%s)",
                          gpu->found->no_gpm);
}

static void report_state(struct gpu_rows *gpu)
{
    const struct {
        bool is_there;
        const char *what;
    } parts[] = {{gpu->found->has_sm_clock, "SM clock"},
                 {gpu->found->has_memory_clock, "memory clock"},
                 {gpu->found->has_temperature, "temperature"},
                 {gpu->found->has_throttle, "throttle reasons"}};
    char there[96] = "", missing[96] = "";
    for (size_t i = 0; i < MAREY__COUNT_OF(parts); i++) {
        char *list = parts[i].is_there ? there : missing;
        snprintf(list + strlen(list), sizeof there - strlen(list), "%s%s",
                 list[0] != '\0' ? ", " : "", parts[i].what);
    }
    marey__doctor_limited(
        gpu->doctor, thing_of(gpu, "state"),
        missing[0] == '\0' ? NULL : "nothing to do: the driver does not report them here", "%s%s%s",
        there[0] != '\0' ? there : "nothing", missing[0] != '\0' ? "; not readable: " : "", missing);
}

static void report_mig(struct gpu_rows *gpu)
{
    const char *thing = thing_of(gpu, "MIG");
    if (gpu->found->is_divided)
        marey__doctor_limited(
            gpu->doctor, thing, "use whole GPUs to measure the energy of one program",
            "divided: energy and power are of the whole GPU, including other users");
    else
        marey__doctor_off(gpu->doctor, thing, "%s",
                          gpu->found->has_mig ? "not divided" : "this GPU cannot be divided");
}

static bool report_gpu(struct marey__doctor *doctor, unsigned device)
{
    struct gpu_rows gpu = {.doctor = doctor, .found = &doctor->gpus[device], .device = device};
    if (gpu.found->lost[0] != '\0')
        marey__doctor_missing(doctor, thing_of(&gpu, "energy counter"),
                              "look for Xid in dmesg, and reset the GPU or restart the machine",
                              "the GPU does not answer: %s", gpu.found->lost);
    if (!gpu.found->is_there)
        return false;
    report_energy(&gpu);
    report_power(&gpu);
    report_average(&gpu);
    report_samples(&gpu);
    report_activity(&gpu);
    report_state(&gpu);
    report_mig(&gpu);
    return true;
}

/* ---- CPUs ---- */

struct zone {
    char path[PATH_MAX], name[64];
};

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct zone *)a)->path, ((const struct zone *)b)->path);
}

/* "package-0", "dram": the name of a subzone includes its package, as in a recording. */
static void name_zone(struct zone *zone, const char *folder, const char *entry)
{
    char path[PATH_MAX + 16], own[48] = "", whole[64] = "";
    const char *colon = strchr(entry, ':'), *part = colon != NULL ? strchr(colon + 1, ':') : NULL;
    snprintf(path, sizeof path, "%s/%s/name", folder, entry);
    marey__read_line(path, own, sizeof own);
    if (part != NULL) {
        snprintf(path, sizeof path, "%s/%.*s/name", folder, (int)(part - entry), entry);
        marey__read_line(path, whole, sizeof whole);
    }
    snprintf(zone->name, sizeof zone->name, "%.30s%s%.30s", whole, whole[0] != '\0' ? "-" : "",
             own[0] != '\0' ? own : entry);
}

static size_t find_zones(const char *folder, struct zone *zones)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir != NULL && n < MAX_ZONES && (entry = readdir(dir)) != NULL;) {
        /* "intel-rapl-mmio" has the same packages again. */
        if (strncmp(entry->d_name, "intel-rapl:", 11) != 0 ||
            snprintf(zones[n].path, sizeof zones[n].path, "%s/%s/energy_uj", folder,
                     entry->d_name) >= (int)sizeof zones[n].path)
            continue;
        name_zone(&zones[n++], folder, entry->d_name);
    }
    if (dir != NULL)
        closedir(dir);
    qsort(zones, n, sizeof *zones, by_path);
    /* A second zone with the same name gets its folder's name: names of findings are unique. */
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(zones[k].name, zones[i].name) == 0)
                snprintf(zones[i].name, sizeof zones[i].name, "%.40s",
                         zones[i].path + strlen(folder) + 1);
    return n;
}

static struct marey__doctor_measured watch_zone(const char *path)
{
    struct marey__update_rate rate = {0};
    const uint64_t end_ns = marey__clock_ns(CLOCK_MONOTONIC) + zone_ns;
    uint64_t after, value;
    char text[32];
    do {
        const uint64_t before = marey__clock_ns(CLOCK_MONOTONIC);
        const size_t len = marey__read_text(path, text, sizeof text);
        after = marey__clock_ns(CLOCK_MONOTONIC);
        if (!marey__parse_number(text, len, &value))
            break;
        marey__update_rate_add(&rate, value, after, after - before);
        usleep(100);
    } while (after < end_ns && rate.n_changes < ENOUGH);
    return marey__update_rate_finish(&rate, "");
}

static void report_zone(struct marey__doctor *doctor, const struct zone *zone)
{
    const int fd = open(zone->path, O_RDONLY | O_CLOEXEC);
    const int error = errno;
    if (fd >= 0)
        close(fd);
    if (fd < 0 && (error == EACCES || error == EPERM)) {
        marey__doctor_missing(
            doctor,
            zone->name, "allow it until the next boot: sudo chmod a+r /sys/class/powercap/intel-rapl*/energy_uj",
            "only root may read %s", zone->path);
        return;
    }
    const struct marey__doctor_measured found = watch_zone(zone->path);
    if (found.is_readable)
        report_period(doctor, zone->name, "joules by RAPL", &found);
    else
        marey__doctor_missing(doctor, zone->name,
                              "nothing to do: the kernel lists this counter and cannot read it",
                              "%s gives no number%s%s", zone->path, fd < 0 ? ": " : "",
                              fd < 0 ? strerror(error) : "");
}

void marey__rapl_report(struct marey__doctor *doctor, const char *folder)
{
    struct zone *zones MAREY__FREED = marey__calloc(MAX_ZONES, sizeof *zones);
    const size_t n = zones != NULL ? find_zones(folder, zones) : 0;
    for (size_t i = 0; i < n; i++)
        report_zone(doctor, &zones[i]);
    if (n == 0)
        marey__doctor_off(doctor, "processors",
                          "no RAPL counters in %s, as in most virtual machines", folder);
}

void marey__doctor_energy(struct marey__doctor *doctor)
{
    bool has_gpu = false;
    for (unsigned i = 0; doctor->gpus != NULL && i < MAREY__DOCTOR_MAX_GPUS; i++)
        has_gpu |= report_gpu(doctor, i);
    if (!has_gpu)
        marey__doctor_off(doctor, "gpus", "none seen through NVML");
    marey__rapl_report(doctor, "/sys/class/powercap");
}
