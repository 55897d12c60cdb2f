/* Work by name, kind and launch shape; by stream; and what each launch came to. */
#include <string.h>

#include "analyze/device/gpu_report.h"

struct marey__gpu_sum *marey__gpu_sum_of(struct marey__gpu_sums *sums, uint32_t name, uint32_t kind,
                                         uint32_t shape)
{
    const uint32_t key[3] = {name, kind, shape};
    const uint32_t number =
        marey__names_keep(&sums->keys, &sums->texts, (const char *)key, sizeof key);
    if (number < sums->n)
        return &sums->sums[number];
    if (number == MAREY__NO_NAME ||
        !marey__grow(&sums->sums, &sums->cap, sums->n + 1, sizeof *sums->sums))
        return NULL;
    sums->sums[sums->n] = (struct marey__gpu_sum){.name = name, .kind = kind, .shape = shape};
    return &sums->sums[sums->n++];
}

bool marey__gpu_sums_add(struct marey__gpu_sums *sums, uint32_t name, uint32_t shape,
                         struct marey__gpu_sum *from)
{
    struct marey__gpu_sum *sum = marey__gpu_sum_of(sums, name, from->kind, shape);
    if (sum == NULL)
        return false;
    sum->bytes += from->bytes;
    sum->bytes_ns += from->bytes_ns;
    if (sum->calls.count != 0)
        return marey__sketch_merge(&sum->calls, &from->calls);
    sum->calls = from->calls; /* handed over, so that it is not in memory twice */
    from->calls = (struct marey__sketch){0};
    return true;
}

void marey__gpu_sums_fini(struct marey__gpu_sums *sums)
{
    for (size_t i = 0; i < sums->n; i++)
        marey__sketch_fini(&sums->sums[i].calls);
    marey__free(sums->sums);
    marey__names_fini(&sums->keys);
    marey__arena_fini(&sums->texts);
    *sums = (struct marey__gpu_sums){0};
}

/* ---- a process ---- */

static bool sum_one(struct marey__gpu_process *p, const struct marey__work *work)
{
    static const struct marey__work_facts none = {.shape = MAREY__NO_INDEX};
    const struct marey__work_set *set = &p->set;
    const struct marey__work_facts *facts =
        work->facts != MAREY__NO_INDEX ? &set->facts[work->facts] : &none;
    const struct marey_site_info *site = marey__work_site(set, work->site);
    const uint64_t ns = work->end_ns - work->begin_ns;
    const uint32_t name = marey__names_number(&p->names, site->name, site->name_len);
    struct marey__gpu_sum *sum =
        name != MAREY__NO_NAME ? marey__gpu_sum_of(&p->sums, name, work->kind, facts->shape) : NULL;
    if (sum == NULL)
        return false;
    sum->bytes += facts->bytes;
    sum->bytes_ns += facts->bytes != 0 ? ns : 0;
    p->streams[work->lane].n[work->kind]++;
    p->streams[work->lane].bytes += facts->bytes;
    return marey__sketch_add(&sum->calls, ns);
}

static void count_launch(struct marey__gpu_process *p, const struct marey__work *work, size_t device)
{
    if (work->launch == MAREY__NO_INDEX)
        return;
    struct marey__launched *launched = &p->launched[work->launch];
    if (launched->n_work++ == 0)
        launched->first_ns = work->begin_ns;
    launched->first_ns = MAREY__MIN(launched->first_ns, work->begin_ns);
    launched->last_ns = MAREY__MAX(launched->last_ns, work->end_ns);
    launched->gpu_ns += work->end_ns - work->begin_ns;
    launched->devices |= UINT64_C(1) << MAREY__MIN(device, (size_t)MAREY__MAX_DEVICE_BITS - 1);
}

static void count_step(struct marey__gpu_process *p, const struct marey__work *work, size_t device)
{
    const uint32_t step = marey__step_of(&p->set, work);
    if (step == MAREY__NO_INDEX)
        return;
    p->iterations[device * p->set.n_steps + step].n_work++;
    p->iterations[device * p->set.n_steps + step].gpu_ns += work->end_ns - work->begin_ns;
}

bool marey__gpu_sum_work(struct marey__gpu_process *p)
{
    const struct marey__work_set *set = &p->set;
    p->streams = marey__calloc((size_t)set->process->n_lanes + 1, sizeof *p->streams);
    p->launched = marey__calloc(set->n_launches + 1, sizeof *p->launched);
    p->devices = marey__calloc(set->n_devices + 1, sizeof *p->devices);
    p->iterations = marey__calloc(set->n_devices * set->n_steps + 1, sizeof *p->iterations);
    if (p->streams == NULL || p->launched == NULL || p->devices == NULL || p->iterations == NULL)
        return false;
    for (size_t d = 0; d < set->n_devices; d++) {
        const struct marey__device_work *device = &set->devices[d];
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
