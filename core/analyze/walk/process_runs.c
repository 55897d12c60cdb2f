/* Groups processes that were started together by their common id. */
#include "analyze/walk/internal.h"

bool marey__process_runs_find(struct marey__process_runs *runs, const struct marey_process *process,
                              uint32_t *out)
{
    for (size_t i = 0; i < runs->n; i++)
        if (strcmp(runs->list[i].id, process->run_id) == 0) {
            *out = (uint32_t)i;
            runs->list[i].start_unix_ns =
                MAREY__MIN(runs->list[i].start_unix_ns, process->start_unix_ns);
            return true;
        }
    *out = (uint32_t)runs->n;
    return MAREY__PUSH(runs->list, runs->n, runs->cap,
                       (struct marey__process_run){process->run_id, process->start_unix_ns, *out});
}

bool marey__process_run_is_before(const struct marey__process_run *a,
                                  const struct marey__process_run *b)
{
    return a->start_unix_ns != b->start_unix_ns ? a->start_unix_ns < b->start_unix_ns
                                                : a->number < b->number;
}

uint32_t marey__process_runs_place(const struct marey__process_runs *runs, uint32_t run)
{
    uint32_t place = 0;
    for (size_t i = 0; i < runs->n; i++)
        place += marey__process_run_is_before(&runs->list[i], &runs->list[run]);
    return place;
}
