/* Runs: what the processes of one launch gave, by region. */
#include <string.h>

#include "analyze/compare/internal.h"

struct marey__compared_run *marey__runs_add(struct marey__compared_runs *side)
{
    if (!marey__grow(&side->runs, &side->cap, side->n + 1, sizeof *side->runs))
        return NULL;
    struct marey__compared_run *run = &side->runs[side->n++];
    *run = (struct marey__compared_run){.path = "", .id = "", .exit_status = "", .world_size = -1};
    return run;
}

struct marey__compared_run *marey__runs_find(struct marey__compared_runs *side, const char *path,
                                             const struct marey_process *process)
{
    for (size_t i = 0; i < side->n; i++)
        if (side->runs[i].path == path && strcmp(side->runs[i].id, process->run_id) == 0)
            return &side->runs[i];
    struct marey__compared_run *run = marey__runs_add(side);
    if (run == NULL)
        return NULL;
    run->path = path;
    run->id = process->run_id;
    run->first = process;
    run->start = (double)process->start_unix_ns / 1e9;
    run->world_size = process->world_size;
    return run;
}

void marey__runs_fini(struct marey__compared_runs *side)
{
    for (size_t i = 0; i < side->n; i++) {
        marey__free(side->runs[i].regions);
        marey__free(side->runs[i].functions);
    }
    marey__free(side->runs);
    *side = (struct marey__compared_runs){0};
}

struct marey__run_region *marey__run_region(struct marey__compared_run *run, uint32_t name)
{
    if (!marey__grow(&run->regions, &run->cap, (size_t)name + 1, sizeof *run->regions))
        return NULL;
    while (run->n_regions <= name)
        run->regions[run->n_regions++] = (struct marey__run_region){0};
    return &run->regions[name];
}

/* Ranks count alike: the run's time is the mean of theirs. */
static void average(struct marey__run_region *region, const struct marey__digest *digest,
                    double weight_ns)
{
    marey__digest_average(&region->digest, digest, region->n_processes);
    region->n_processes++;
    region->weight_ns += (weight_ns - region->weight_ns) / (double)region->n_processes;
}

bool marey__run_take(struct marey__compared_run *run, struct marey__names *names,
                     const struct marey__process_times *times)
{
    for (size_t i = 0; i < times->n_regions; i++) {
        const struct marey__region_times *from = &times->regions[i];
        const uint32_t name = marey__names_number(names, from->text, from->len);
        struct marey__run_region *region =
            name != MAREY__NO_NAME ? marey__run_region(run, name) : NULL;
        if (region == NULL)
            return false;
        average(region, &from->digest, from->weight_ns);
    }
    if (times->n_iterations != 0)
        average(&run->whole, &times->whole, times->whole_ns);
    run->n_iterations = MAREY__MAX(run->n_iterations, times->n_iterations);
    run->n_left_out = MAREY__MAX(run->n_left_out, times->n_left_out);
    run->has_sums |= times->has_sums;
    return true;
}
