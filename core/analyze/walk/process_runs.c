/* Processes that were started together, by the id that they share. */
#include <string.h>

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
    if (!marey__grow(&runs->list, &runs->cap, runs->n + 1, sizeof *runs->list))
        return false;
    *out = (uint32_t)runs->n;
    runs->list[runs->n++] =
        (struct marey__process_run){.id = process->run_id, .start_unix_ns = process->start_unix_ns};
    return true;
}
