/*
 * Assigns devices to processes. A process records its CUDA devices. If it recorded work on streams, the devices with
 * work are its own. If several ranks of a host have the same list, because they see all GPUs, each uses the one at its
 * local rank, as launchers assume. CPU packages belong to all ranks of their host.
 */
#include "analyze/energy/internal.h"

/* ---- runs ---- */

static int by_start(const void *a, const void *b)
{
    const struct marey__process_run *x = a, *y = b;
    return marey__process_run_is_before(x, y) ? -1 : marey__process_run_is_before(y, x);
}

void marey__energy_order_runs(struct marey__energy_report *report)
{
    for (size_t m = 0; m < report->n_members; m++)
        report->members[m].run = marey__process_runs_place(&report->runs, report->members[m].run);
    if (report->runs.n > 1)
        qsort(report->runs.list, report->runs.n, sizeof *report->runs.list, by_start);
}

/* ---- devices ---- */

static enum marey__energy_kind kind_of(const struct marey__meter *meter)
{
    static const char package[] = "package", dram[] = "-dram";
    if (meter->device_len < sizeof package - 1 ||
        memcmp(meter->device, package, sizeof package - 1) != 0)
        return MAREY__OF_GPU;
    return memmem(meter->device, meter->device_len, dram, sizeof dram - 1) != NULL ? MAREY__OF_DRAM
                                                                                   : MAREY__OF_CPU;
}

/* How long the meter measured while the member ran, on one host and clock. */
static uint64_t overlap(const struct marey__meter *meter, const struct marey__energy_member *member,
                        const char *run_id)
{
    const bool is_same_run = strcmp(meter->process->run_id, run_id) == 0;
    if (strcmp(meter->process->host, member->host) != 0 ||
        (!is_same_run && meter->recording != member->recording))
        return 0;
    const uint64_t from = MAREY__MAX(meter->first_ns, member->first_ns),
                   to = MAREY__MIN(meter->last_ns, member->last_ns);
    /* A meter of the same run takes precedence over one that measured beside it. */
    return to > from ? (to - from) + (is_same_run ? UINT64_C(1) << 62 : 0) : 0;
}

static uint64_t overlap_with_run(const struct marey__energy_report *report, size_t meter,
                                 uint32_t run, const char *host)
{
    uint64_t longest = 0;
    for (size_t m = 0; m < report->n_members; m++) {
        const struct marey__energy_member *member = &report->members[m];
        if (member->run == run && strcmp(member->host, host) == 0)
            longest = MAREY__MAX(longest,
                                 overlap(&report->meters[meter], member, report->runs.list[run].id));
    }
    return longest;
}

static bool is_same_device(const struct marey__meter *a, const struct marey__meter *b)
{
    return a->device_len == b->device_len && memcmp(a->device, b->device, a->device_len) == 0;
}

/* Add the meter's device to a run, or use the better of two meters. */
static bool add_target(struct marey__energy_report *report, uint32_t run, size_t meter)
{
    const struct marey__meter *m = &report->meters[meter];
    const char *host = m->process->host;
    const uint64_t together = overlap_with_run(report, meter, run, host);
    if (together == 0)
        return true;
    for (size_t i = 0; i < report->n_targets; i++) {
        struct marey__energy_target *target = &report->targets[i];
        if (target->run != run || strcmp(target->host, host) != 0 ||
            !is_same_device(&report->meters[target->meter], m))
            continue;
        if (together > overlap_with_run(report, target->meter, run, host))
            target->meter = (uint32_t)meter;
        return true;
    }
    if (!marey__grow(&report->targets, &report->targets_cap, report->n_targets + 1,
                     sizeof *report->targets))
        return false;
    struct marey__energy_target *target = &report->targets[report->n_targets];
    *target = (struct marey__energy_target){
        .run = run, .meter = (uint32_t)meter, .host = host, .kind = kind_of(m)};
    target->users = marey__calloc(report->n_members + 1, 1);
    if (target->users == NULL)
        return false;
    report->n_targets++;
    return true;
}

/* ---- users ---- */

/* Whether the meter's GPU has this MIG slice, which its source line lists. */
static bool has_slice(const struct marey__meter *meter, const char *uuid, size_t len)
{
    const char *line = meter->process->energy_sources;
    if (len < 4 || memcmp(uuid, "MIG-", 4) != 0)
        return false;
    for (size_t n; line[0] != '\0'; line += n + (line[n] == '\n')) {
        n = strcspn(line, "\n");
        if (n > meter->device_len && line[meter->device_len] == '|' &&
            memcmp(line, meter->device, meter->device_len) == 0)
            return memmem(line, n, uuid, len) != NULL;
    }
    return false;
}

/* The index of a device in a list of UUIDs, or -1. `*n` is the length of the list. */
static int place_of(const char *list, const struct marey__meter *meter, int *n)
{
    int place = -1;
    *n = 0;
    for (size_t len; list[0] != '\0'; list += len + (list[len] == ','), (*n)++) {
        len = strcspn(list, ",");
        if ((len == meter->device_len && memcmp(list, meter->device, len) == 0) ||
            has_slice(meter, list, len))
            place = *n;
    }
    return place;
}

static bool is_on(const struct marey__energy_member *member, uint32_t run, const char *host)
{
    return member->run == run && strcmp(member->host, host) == 0;
}

/* Whether another rank of the host has the same list. */
static bool has_duplicate(const struct marey__energy_report *report,
                          const struct marey__energy_member *member)
{
    for (size_t i = 0; i < report->n_members; i++) {
        const struct marey__energy_member *other = &report->members[i];
        if (other != member && is_on(other, member->run, member->host) && other->local_rank >= 0 &&
            other->local_rank != member->local_rank && strcmp(other->devices, member->devices) == 0)
            return true;
    }
    return false;
}

static void find_places(struct marey__energy_report *report)
{
    for (size_t i = 0; i < report->n_members; i++) {
        struct marey__energy_member *member = &report->members[i];
        member->is_by_place = !member->has_ordinals && member->local_rank >= 0 &&
                              strchr(member->devices, ',') != NULL && has_duplicate(report, member);
        report->is_place_guessed |= member->is_by_place;
    }
}

/* A slice has no power counter: its GPU is measured, and with several GPUs the slice's GPU is unknown. */
static bool has_slices(const struct marey__meter *meter)
{
    static const char slices[] = " MIG slices";
    size_t len;
    const char *words = marey__meter_source_field(meter, MAREY__SOURCE_WORDS, &len);
    return memmem(words, len, slices, sizeof slices - 1) != NULL;
}

static bool uses(const struct marey__energy_member *member, const struct marey__meter *meter)
{
    int n;
    const int place = place_of(member->devices, meter, &n);
    if (place < 0)
        return strstr(member->devices, "MIG-") != NULL && has_slices(meter);
    if (member->has_ordinals)
        return place < 64 && (member->ordinals >> place & 1) != 0;
    return !member->is_by_place || place == member->local_rank % n;
}

static bool is_anything_said(const struct marey__energy_report *report,
                             const struct marey__energy_target *target)
{
    for (size_t i = 0; i < report->n_members; i++)
        if (is_on(&report->members[i], target->run, target->host) &&
            report->members[i].devices[0] != '\0')
            return true;
    return false;
}

static void find_users_of(struct marey__energy_report *report, struct marey__energy_target *target)
{
    const bool is_known = is_anything_said(report, target);
    report->is_use_unknown |= !is_known && target->kind == MAREY__OF_GPU;
    for (size_t i = 0; i < report->n_members; i++) {
        const struct marey__energy_member *member = &report->members[i];
        target->users[i] = is_on(member, target->run, target->host) &&
                           (target->kind != MAREY__OF_GPU || !is_known ||
                            uses(member, &report->meters[target->meter]));
        target->n_users += target->users[i];
    }
}

/* Whether any kernel ran on it; true if utilization was not recorded. */
static bool was_busy(const struct marey__energy_report *report,
                     const struct marey__energy_target *target)
{
    const struct marey__readings *use = &report->meters[target->meter].of[MAREY__UTILIZATION];
    for (size_t i = 0; i < use->n; i++)
        if (use->at[i].value > 0)
            return true;
    return use->n == 0;
}

/* Processes that may use all GPUs often use a few: GPUs that were idle while others were busy get no users. */
static void leave_out_idle(struct marey__energy_report *report)
{
    for (size_t i = 0; i < report->n_targets; i++) {
        struct marey__energy_target *target = &report->targets[i];
        bool is_other_busy = false;
        if (target->kind != MAREY__OF_GPU || was_busy(report, target))
            continue;
        for (size_t j = 0; j < report->n_targets; j++) {
            const struct marey__energy_target *other = &report->targets[j];
            is_other_busy |= other->run == target->run && other->kind == MAREY__OF_GPU &&
                             other->n_users != 0 && strcmp(other->host, target->host) == 0 &&
                             report->meters[other->meter].of[MAREY__UTILIZATION].n != 0 &&
                             was_busy(report, other);
        }
        if (is_other_busy) {
            memset(target->users, 0, report->n_members);
            target->n_users = 0;
        }
    }
}

bool marey__energy_find_users(struct marey__energy_report *report)
{
    for (uint32_t run = 0; run < report->runs.n; run++)
        for (size_t meter = 0; meter < report->n_meters; meter++)
            if (!add_target(report, run, meter))
                return false;
    find_places(report);
    for (size_t i = 0; i < report->n_targets; i++)
        find_users_of(report, &report->targets[i]);
    leave_out_idle(report);
    return true;
}

/* ---- groups of iterations ---- */

/* 1, 2, 5, 10, 20, ...: the first group size that lasts ten times the update period of readings. */
static uint64_t choose_group(const struct marey__energy_report *report, uint64_t median_ns)
{
    uint64_t period_ns = 0, group = 1;
    for (size_t i = 0; i < report->n_targets; i++)
        if (report->targets[i].n_users != 0)
            period_ns =
                MAREY__MAX(period_ns, report->meters[report->targets[i].meter].power_period_ns);
    for (unsigned i = 1; group < 1000000000 && group * median_ns < 10 * period_ns; i++)
        group = i % 3 == 2 ? group / 2 * 5 : group * 2;
    return group;
}

static bool find_group(struct marey__energy_report *report)
{
    uint64_t *const durations MAREY__FREED = marey__calloc(report->n_iterations, sizeof *durations);
    if (durations == NULL)
        return false;
    for (size_t i = 0; i < report->n_iterations; i++)
        durations[i] = report->iterations[i].end_ns - report->iterations[i].begin_ns;
    qsort(durations, report->n_iterations, sizeof *durations, marey__compare_u64);
    report->group = choose_group(report, MAREY__MAX(durations[report->n_iterations / 2], 1));
    return true;
}

static bool take_iteration(struct marey__energy_report *report,
                           const struct marey__energy_iteration *iteration, uint64_t place)
{
    /* Every member already has this window, so it does not move. */
    struct marey__energy_window *window =
        marey__energy_window(report, iteration->member, MAREY__ENERGY_RUN, 0);
    if (window == NULL)
        return false;
    window->samples += iteration->samples;
    window = marey__energy_window(report, iteration->member, MAREY__ENERGY_ITERATION,
                                  place / report->group);
    if (window == NULL)
        return false;
    if (window->count++ == 0)
        window->first = iteration->number;
    window->last = iteration->number;
    window->samples += iteration->samples;
    return marey__time_set_add(&window->set, iteration->begin_ns, iteration->end_ns);
}

bool marey__energy_group_iterations(struct marey__energy_report *report)
{
    if (report->n_iterations == 0)
        return true;
    report->group = report->wanted_group;
    if (report->group == 0 && !find_group(report))
        return false;
    uint64_t *const places MAREY__FREED = marey__calloc(report->n_members, sizeof *places);
    if (places == NULL)
        return false;
    for (size_t i = 0; i < report->n_iterations; i++)
        if (!take_iteration(report, &report->iterations[i], places[report->iterations[i].member]++))
            return false;
    return true;
}
