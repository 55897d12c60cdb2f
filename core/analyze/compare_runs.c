/* Runs: what the processes of one launch gave, by region. */
#include <string.h>

#include "analyze/compare_internal.h"

struct kymo__compared_run *kymo__runs_add(struct kymo__compared_runs *side)
{
    if (!kymo__grow(&side->runs, &side->cap, side->n + 1, sizeof *side->runs))
        return NULL;
    struct kymo__compared_run *run = &side->runs[side->n++];
    *run = (struct kymo__compared_run){.path = "", .id = "", .exit_status = "", .world_size = -1};
    return run;
}

struct kymo__compared_run *kymo__runs_find(struct kymo__compared_runs *side, const char *path,
                                           const struct kymo_process *process)
{
    for (size_t i = 0; i < side->n; i++)
        if (side->runs[i].path == path && strcmp(side->runs[i].id, process->run_id) == 0)
            return &side->runs[i];
    struct kymo__compared_run *run = kymo__runs_add(side);
    if (run == NULL)
        return NULL;
    run->path = path;
    run->id = process->run_id;
    run->first = process;
    run->start = (double)process->start_unix_ns / 1e9;
    run->world_size = process->world_size;
    return run;
}

void kymo__runs_fini(struct kymo__compared_runs *side)
{
    for (size_t i = 0; i < side->n; i++) {
        kymo__free(side->runs[i].regions);
        kymo__free(side->runs[i].functions);
    }
    kymo__free(side->runs);
    *side = (struct kymo__compared_runs){0};
}

struct kymo__run_region *kymo__run_region(struct kymo__compared_run *run, uint32_t name)
{
    if (!kymo__grow(&run->regions, &run->cap, (size_t)name + 1, sizeof *run->regions))
        return NULL;
    while (run->n_regions <= name)
        run->regions[run->n_regions++] = (struct kymo__run_region){0};
    return &run->regions[name];
}

/* Ranks count alike: the run's time is the mean of theirs. */
static void average(struct kymo__run_region *region, const struct kymo__digest *digest,
                    double weight_ns)
{
    kymo__digest_average(&region->digest, digest, region->n_processes);
    region->n_processes++;
    region->weight_ns += (weight_ns - region->weight_ns) / (double)region->n_processes;
}

bool kymo__run_take(struct kymo__compared_run *run, struct kymo__names *names,
                    const struct kymo__process_times *times)
{
    for (size_t i = 0; i < times->n_regions; i++) {
        const struct kymo__region_times *from = &times->regions[i];
        const uint32_t name = kymo__names_number(names, from->text, from->len);
        struct kymo__run_region *region = name != KYMO__NO_NAME ? kymo__run_region(run, name) : NULL;
        if (region == NULL)
            return false;
        average(region, &from->digest, from->weight_ns);
    }
    if (times->n_iterations != 0)
        average(&run->whole, &times->whole, times->whole_ns);
    run->n_iterations = KYMO__MAX(run->n_iterations, times->n_iterations);
    run->n_left_out = KYMO__MAX(run->n_left_out, times->n_left_out);
    run->has_sums |= times->has_sums;
    return true;
}
