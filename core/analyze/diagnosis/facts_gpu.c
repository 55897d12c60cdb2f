/* Clocks of GPUs, and why they are reduced, in steps that count: counters of NVML, some seconds apart. */
#include <string.h>

#include "analyze/diagnosis/internal.h"
#include "read/internal.h"

struct reading {
    struct marey__facts *facts;
    marey_recording *recording;
    const struct marey_process *info; /* that measured */
    const struct marey__trainer *trainer;
};

/* A GPU of the host, by the device in "device|quantity"; NULL on out of memory. */
static struct marey__fact_gpu *gpu_of(struct reading *r, const char *domain)
{
    struct marey__facts *const f = r->facts;
    const size_t len = strcspn(domain, "|") + 1;
    for (size_t i = 0; i < f->n_gpus; i++)
        if (strncmp(f->gpus[i].device, domain, len) == 0 &&
            strcmp(f->gpus[i].host, r->info->host) == 0)
            return &f->gpus[i];
    const struct marey__fact_gpu gpu = {.device = domain, .host = r->info->host};
    return MAREY__PUSH(f->gpus, f->n_gpus, f->gpus_cap, gpu) ? &f->gpus[f->n_gpus - 1] : NULL;
}

static bool take(struct reading *r, const struct marey_site_info *site, uint64_t ns, double value)
{
    const char *const bar = strchr(site->domain, '|');
    const bool is_clock = bar != NULL && strcmp(bar, "|sm_clock") == 0,
               is_reasons = bar != NULL && strcmp(bar, "|throttle") == 0;
    if (strcmp(site->category, "energy") != 0 || (!is_clock && !is_reasons))
        return true;
    struct marey__fact_gpu *const gpu = gpu_of(r, site->domain);
    if (gpu == NULL)
        return false;
    if (is_clock) { /* the reasons follow */
        gpu->mhz = value;
        gpu->highest_mhz = MAREY__MAX(gpu->highest_mhz, value);
        return true;
    }
    const struct marey__trainer *const t = r->trainer;
    const struct marey__fact_clock clock = {gpu->mhz, (uint64_t)value};
    gpu->name = site->name;
    return ns < t->steps[t->n_warmup].begin_ns || ns >= t->steps[t->n_steps - 1].end_ns ||
           MAREY__PUSH(gpu->clocks, gpu->n_clocks, gpu->clocks_cap, clock);
}

static marey_status visit_batch(void *ctx, const struct marey_batch *batch)
{
    struct reading *const r = ctx;
    for (const uint64_t *word = batch->words, *const end = word + batch->n; word < end;
         word += marey_word_kind(*word) == MAREY_KIND_RECORD ? marey_record_length(*word) : 1) {
        double value;
        if (marey_word_kind(*word) != MAREY_KIND_RECORD ||
            marey_record_type_of(*word) != MAREY_RECORD_COUNTER)
            continue;
        memcpy(&value, &word[2], sizeof value);
        MAREY__TRY_MEMORY(
            take(r, marey_recording_site(r->recording, r->info->index, marey_record_site(word[1])),
                 marey_batch_ns(batch, *word), value));
    }
    return MAREY_OK;
}

/* Of each host that has a trainer with steps. */
marey_status marey__facts_read_gpus(struct marey__facts *facts, const struct marey__request *request)
{
    for (size_t i = 0; i < request->n; i++)
        for (size_t p = 0; p < marey_recording_n_logs(request->recordings[i]); p++) {
            struct reading r = {.facts = facts, .recording = request->recordings[i]};
            r.info = marey_recording_process(r.recording, p);
            for (size_t t = 0; t < facts->n_trainers && r.trainer == NULL; t++)
                if (facts->trainers[t].n_steps != 0 &&
                    strcmp(facts->trainers[t].info->host, r.info->host) == 0)
                    r.trainer = &facts->trainers[t];
            if (r.trainer != NULL && r.info->energy_sources[0] != '\0')
                MAREY_TRY(marey__recording_visit_in_order(r.recording, p, visit_batch, &r));
        }
    return MAREY_OK;
}
