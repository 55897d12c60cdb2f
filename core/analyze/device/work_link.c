/*
 * Links the data read separately: sorts the work of each device, finds each work's launch by correlation, and
 * classifies it. One launch may have much work (a CUDA graph); of several launches with one correlation, the last one
 * before the work counts.
 */
#include "analyze/device/internal.h"

MAREY__ORDER_RUNS(work_is_before, struct marey__work, MAREY__UP(begin_ns))

/* ---- launches ---- */

/* A launch as a search key. */
struct key {
    uint64_t correlation, begin_ns;
    uint32_t launch;
};

MAREY__ORDER_RUNS(key_is_before, struct key, MAREY__UP(correlation) MAREY__UP(begin_ns))

static struct key *make_keys(const struct marey__work_set *set)
{
    struct key *keys = marey__alloc((set->n_launches + 1) * sizeof *keys);
    for (size_t i = 0; keys != NULL && i < set->n_launches; i++)
        keys[i] = (struct key){set->launches[i].correlation, set->launches[i].begin_ns, (uint32_t)i};
    if (keys != NULL && !marey__sort_runs(keys, set->n_launches, sizeof *keys, key_is_before)) {
        marey__free(keys);
        return NULL;
    }
    return keys;
}

static uint32_t find_launch(const struct key *keys, size_t n, const struct marey__work *work)
{
    const struct key last = {.correlation = work->correlation, .begin_ns = work->begin_ns};
    size_t i; /* number of keys not after `last` */
    MAREY__BISECT(i, 0, n, !key_is_before(&last, &keys[i]));
    if (work->correlation == 0)
        return MAREY__NO_INDEX;
    if (i > 0 && keys[i - 1].correlation == work->correlation)
        return keys[i - 1].launch;
    /* The clocks of host and device may differ slightly: also accept a launch that seems to be later. */
    return i < n && keys[i].correlation == work->correlation ? keys[i].launch : MAREY__NO_INDEX;
}

/* ---- order of work, and its launches ---- */

static bool link_device(struct marey__work_set *set, struct marey__device_work *device,
                        const struct key *keys)
{
    if (!marey__sort_runs(device->work, device->n_work, sizeof *device->work, work_is_before))
        return false;
    for (size_t i = 0; i < device->n_work; i++) {
        struct marey__work *work = &device->work[i];
        work->launch = find_launch(keys, set->n_launches, work);
        device->n_unlinked += work->launch == MAREY__NO_INDEX;
    }
    return true;
}

bool marey__work_set_link(struct marey__work_set *set)
{
    struct key *const keys MAREY__FREED = make_keys(set);
    bool done = keys != NULL;
    for (size_t i = 0; done && i < set->n_devices; i++)
        done = link_device(set, &set->devices[i], keys);
    return done;
}

/* ---- classes ---- */

/* Use the host's record for a kernel that communicates without a record of its own. */
static bool take_from_host(struct marey__work_set *set, struct marey__work *work)
{
    const uint32_t of_host =
        work->launch != MAREY__NO_INDEX ? set->launches[work->launch].collective : MAREY__NO_INDEX;
    if (of_host == MAREY__NO_INDEX)
        return true;
    struct marey__collective_call call = set->collectives[of_host];
    call.begin_ns = work->begin_ns;
    call.end_ns = work->end_ns;
    call.site = work->site;
    call.is_on_host = false;
    work->collective = marey__work_set_add_collective(set, &call);
    return work->collective != MAREY__NO_INDEX;
}

static bool classify_device(struct marey__work_set *set, struct marey__device_work *device,
                            struct marey__classifier *classifier)
{
    for (size_t i = 0; i < device->n_work; i++) {
        struct marey__work *work = &device->work[i];
        work->rule = marey__classify(
            classifier, work->site, work->kind,
            work->collective != MAREY__NO_INDEX ? &set->collectives[work->collective].what : NULL);
        work->class = classifier->rules->rules[work->rule].class;
        set->matches[work->rule].count++;
        set->matches[work->rule].ns += work->end_ns - work->begin_ns;
        if (work->class == MAREY__COMMUNICATES && work->collective == MAREY__NO_INDEX &&
            !take_from_host(set, work))
            return false;
    }
    return true;
}

bool marey__work_set_classify(struct marey__work_set *set, struct marey__classifier *classifier)
{
    for (size_t i = 0; i < set->n_devices; i++)
        if (!classify_device(set, &set->devices[i], classifier))
            return false;
    return true;
}
