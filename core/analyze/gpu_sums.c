/* Work by name, kind and launch shape; by stream; and what each launch came to. */
#include <string.h>

#include "analyze/gpu_report_internal.h"

struct kymo__gpu_sum *kymo__gpu_sum_of(struct kymo__gpu_sums *sums, uint32_t name, uint32_t kind,
                                       uint32_t shape)
{
    const uint32_t key[3] = {name, kind, shape};
    const uint32_t number = kymo__names_number(&sums->keys, (const char *)key, sizeof key);
    if (number == KYMO__NO_NAME)
        return NULL;
    if (number < sums->n)
        return &sums->sums[number];
    const char *kept = kymo__arena_text(&sums->texts, (const char *)key, sizeof key);
    if (kept == NULL || !kymo__grow(&sums->sums, &sums->cap, sums->n + 1, sizeof *sums->sums)) {
        kymo__names_fini(&sums->keys); /* no text that is not ours is left behind */
        return NULL;
    }
    sums->keys.names[number].text = kept;
    sums->sums[sums->n] = (struct kymo__gpu_sum){.name = name, .kind = kind, .shape = shape};
    return &sums->sums[sums->n++];
}

bool kymo__gpu_sums_add(struct kymo__gpu_sums *sums, uint32_t name, uint32_t shape,
                        struct kymo__gpu_sum *from)
{
    struct kymo__gpu_sum *sum = kymo__gpu_sum_of(sums, name, from->kind, shape);
    if (sum == NULL)
        return false;
    sum->bytes += from->bytes;
    sum->bytes_ns += from->bytes_ns;
    if (sum->calls.count != 0)
        return kymo__sketch_merge(&sum->calls, &from->calls);
    sum->calls = from->calls; /* handed over, so that it is not in memory twice */
    from->calls = (struct kymo__sketch){0};
    return true;
}

void kymo__gpu_sums_fini(struct kymo__gpu_sums *sums)
{
    for (size_t i = 0; i < sums->n; i++)
        kymo__sketch_fini(&sums->sums[i].calls);
    kymo__free(sums->sums);
    kymo__names_fini(&sums->keys);
    kymo__arena_fini(&sums->texts);
    *sums = (struct kymo__gpu_sums){0};
}

/* ---- a process ---- */

static bool sum_one(struct kymo__gpu_process *p, const struct kymo__work *work)
{
    static const struct kymo__work_facts none = {.shape = KYMO__NO_INDEX};
    const struct kymo__work_set *set = &p->set;
    const struct kymo__work_facts *facts =
        work->facts != KYMO__NO_INDEX ? &set->facts[work->facts] : &none;
    const struct kymo_site_info *site =
        kymo_recording_site(set->recording, set->process->index, work->site);
    const uint64_t ns = work->end_ns - work->begin_ns;
    const uint32_t name = kymo__names_number(&p->names, site->name, site->name_len);
    struct kymo__gpu_sum *sum =
        name != KYMO__NO_NAME ? kymo__gpu_sum_of(&p->sums, name, work->kind, facts->shape) : NULL;
    if (sum == NULL)
        return false;
    sum->bytes += facts->bytes;
    sum->bytes_ns += facts->bytes != 0 ? ns : 0;
    p->streams[work->lane].n[work->kind]++;
    p->streams[work->lane].bytes += facts->bytes;
    return kymo__sketch_add(&sum->calls, ns);
}

static void count_launch(struct kymo__gpu_process *p, const struct kymo__work *work, size_t device)
{
    if (work->launch == KYMO__NO_INDEX)
        return;
    struct kymo__launched *launched = &p->launched[work->launch];
    if (launched->n_work++ == 0)
        launched->first_ns = work->begin_ns;
    launched->first_ns = KYMO__MIN(launched->first_ns, work->begin_ns);
    launched->last_ns = KYMO__MAX(launched->last_ns, work->end_ns);
    launched->gpu_ns += work->end_ns - work->begin_ns;
    launched->devices |= UINT64_C(1) << KYMO__MIN(device, (size_t)KYMO__MAX_DEVICE_BITS - 1);
}

static void count_step(struct kymo__gpu_process *p, const struct kymo__work *work, size_t device)
{
    const uint32_t step = kymo__step_of(&p->set, work);
    if (step == KYMO__NO_INDEX)
        return;
    p->iterations[device * p->set.n_steps + step].n_work++;
    p->iterations[device * p->set.n_steps + step].gpu_ns += work->end_ns - work->begin_ns;
}

bool kymo__gpu_sum_work(struct kymo__gpu_process *p)
{
    const struct kymo__work_set *set = &p->set;
    p->streams = kymo__calloc((size_t)set->process->n_lanes + 1, sizeof *p->streams);
    p->launched = kymo__calloc(set->n_launches + 1, sizeof *p->launched);
    p->devices = kymo__calloc(set->n_devices + 1, sizeof *p->devices);
    p->iterations = kymo__calloc(set->n_devices * set->n_steps + 1, sizeof *p->iterations);
    if (p->streams == NULL || p->launched == NULL || p->devices == NULL || p->iterations == NULL)
        return false;
    for (size_t d = 0; d < set->n_devices; d++) {
        const struct kymo__device_work *device = &set->devices[d];
        p->devices[d].device = device->device;
        p->n_unlinked += device->n_unlinked;
        p->n_work += device->n_work;
        for (size_t i = 0; i < device->n_work; i++) {
            p->devices[d].n[device->work[i].kind]++;
            count_launch(p, &device->work[i], d);
            count_step(p, &device->work[i], d);
            if (!sum_one(p, &device->work[i]))
                return false;
        }
    }
    return true;
}
