/*
 * Which calls of a process are compared with other ranks: of what a device does the device's own times, with kernels that
 * only their names tell of, and of the host what it does itself.
 */
#include <string.h>

#include "analyze/device/internal.h"

/* How the kernels of NCCL and its relatives are named. Theirs for sends serves all-to-all as well. */
static enum marey_collective guess(const struct marey_site_info *site)
{
    static const struct {
        const char *part;
        enum marey_collective what;
    } parts[] = {
        {"AllReduce", MAREY_COLLECTIVE_ALL_REDUCE},
        {"AllGather", MAREY_COLLECTIVE_ALL_GATHER},
        {"ReduceScatter", MAREY_COLLECTIVE_REDUCE_SCATTER},
        {"AllToAll", MAREY_COLLECTIVE_ALL_TO_ALL},
        {"Broadcast", MAREY_COLLECTIVE_BROADCAST},
        {"Reduce_", MAREY_COLLECTIVE_REDUCE},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(parts); i++)
        if (strstr(site->name, parts[i].part) != NULL)
            return parts[i].what;
    return MAREY_COLLECTIVE_OTHER;
}

/*
 * Those that the host tells while a device does them: with launched work, which has a copy of its own, and those of
 * NCCL, whose calls return at once. The others move up.
 */
static bool drop_superseded(struct marey__work_set *set)
{
    uint8_t *is_launched = marey__calloc(set->n_collectives + 1, 1);
    if (is_launched == NULL)
        return false;
    for (size_t i = 0; i < set->n_launches; i++)
        if (set->launches[i].collective != MAREY__NO_INDEX)
            is_launched[set->launches[i].collective] = 1;
    size_t n = 0;
    for (size_t i = 0; i < set->n_collectives; i++) {
        const struct marey__collective_call *call = &set->collectives[i];
        const struct marey_site_info *site =
            marey_recording_site(set->recording, set->process->index, call->site);
        if (!call->is_on_host || (!is_launched[i] && strcasestr(site->name, "nccl") == NULL))
            set->collectives[n++] = *call;
    }
    set->n_collectives = n;
    marey__free(is_launched);
    return true;
}

/* Kernels of which nothing but the name says that they communicate. */
static bool add_untold(struct marey__work_set *set, const struct marey__device_work *device)
{
    for (size_t i = 0; i < device->n_work; i++) {
        const struct marey__work *work = &device->work[i];
        if (work->class != MAREY__COMMUNICATES || work->collective != MAREY__NO_INDEX)
            continue;
        if (!marey__grow(&set->collectives, &set->collectives_cap, set->n_collectives + 1,
                         sizeof *set->collectives))
            return false;
        const struct marey_site_info *site =
            marey_recording_site(set->recording, set->process->index, work->site);
        set->collectives[set->n_collectives++] = (struct marey__collective_call){
            .what = {.what = guess(site), .sequence = UINT64_MAX, .peer = -1},
            .begin_ns = work->begin_ns,
            .end_ns = work->end_ns,
            .site = work->site,
        };
    }
    return true;
}

bool marey__collectives_keep(struct marey__work_set *set)
{
    if (!drop_superseded(set) || !marey__collectives_join(set))
        return false;
    for (size_t i = 0; i < set->n_devices; i++)
        if (set->devices[i].device >= 0 && !add_untold(set, &set->devices[i]))
            return false;
    return true;
}
