/* A part of a summary: an unfinished merge, and the owner of its texts. */
#include <marey/partial.h>

#include "analyze/summary/internal.h"
#include "read/internal.h"

struct marey_partial {
    marey_recording *const *recordings; /* borrowed */
    size_t n_recordings;
    struct marey__merge merge;
    struct marey__merge_storage storage;
    struct marey__buf packed;
    struct marey__warnings warnings; /* about all logs together */
};

void marey_partial_destroy(marey_partial *partial)
{
    if (partial == NULL)
        return;
    marey__merge_fini(&partial->merge);
    marey__merge_storage_fini(&partial->storage);
    marey__buf_fini(&partial->packed);
    marey__warnings_fini(&partial->warnings);
    marey__free(partial);
}

static const struct marey_report_options defaults;

marey_status marey_partial_create(marey_recording *const *recordings, size_t n,
                                  const struct marey_report_options *options, marey_partial **out)
{
    const struct marey__request request = {.options = options != NULL ? options : &defaults};
    const struct marey__summary_options wants = marey__summary_options_of(&request);
    marey_partial *partial = marey__calloc(1, sizeof *partial);
    MAREY__TRY_MEMORY(partial != NULL);
    partial->recordings = recordings;
    partial->n_recordings = n;
    marey_status status = marey__merge_init(&partial->merge);
    partial->merge.iterations.keeps_rank_steps = true;
    if (status == MAREY_OK)
        status = marey__summary_merge(recordings, n, &wants, NULL, &partial->merge);
    if (status != MAREY_OK)
        marey_partial_destroy(partial);
    else
        *out = partial;
    return status;
}

marey_status marey_partial_pack(marey_partial *partial, const void **bytes, size_t *len)
{
    marey__buf_fini(&partial->packed);
    partial->packed = (struct marey__buf){0};
    marey__merge_pack(&partial->merge, &partial->packed);
    MAREY__TRY_MEMORY(!partial->packed.failed);
    *bytes = partial->packed.data;
    *len = partial->packed.len;
    return MAREY_OK;
}

marey_status marey_partial_join(marey_partial *partial, const void *bytes, size_t len)
{
    return marey__merge_unpack(&partial->merge, &partial->storage, bytes, len);
}

/* ---- checks of all logs together ---- */

static int by_rank(const void *a, const void *b)
{
    return marey__process_compare(*(const struct marey_process *const *)a,
                                  *(const struct marey_process *const *)b);
}

/* The processes of a recording in order, followed by those that measured. */
static size_t list_processes(const struct marey__merge *merge,
                             const struct marey__exclusions *exclusions,
                             const struct marey_process **list)
{
    size_t n = 0;
    for (size_t i = 0; i < merge->n_processes; i++)
        if (merge->process_recordings[i] == exclusions->recording)
            list[n++] = merge->processes[i];
    for (size_t i = 0; i < exclusions->n_measuring; i++)
        list[n + i] = exclusions->measuring[i];
    if (exclusions->n_measuring > 1)
        qsort(list + n, exclusions->n_measuring, sizeof *list, by_rank);
    return n + exclusions->n_measuring;
}

static bool tell(struct marey__merge *merge, const struct marey__warnings *warnings, size_t first,
                 uint32_t recording)
{
    if (!marey__grow(&merge->notes, &merge->notes_cap, merge->n_notes + warnings->n - first,
                     sizeof *merge->notes))
        return false;
    for (size_t i = first; i < warnings->n; i++)
        merge->notes[merge->n_notes++] =
            (struct marey__note_row){recording, true, warnings->sentences[i]};
    return !warnings->failed;
}

static bool check_recording(marey_partial *partial, const struct marey__exclusions *exclusions)
{
    struct marey__merge *merge = &partial->merge;
    const size_t first = partial->warnings.n;
    const struct marey_process **const list MAREY__FREED =
        marey__calloc(merge->n_processes + exclusions->n_measuring + 1, sizeof *list);
    if (list == NULL)
        return false;
    const size_t n = list_processes(merge, exclusions, list);
    marey__logs_check(&(struct marey__checked_logs){list, n, (size_t)exclusions->n_broken,
                                                    (size_t)exclusions->n_empty},
                      &partial->warnings);
    return tell(merge, &partial->warnings, first, exclusions->recording);
}

marey_status marey_partial_report(marey_partial *partial,
                                  const struct marey_report_options *options, marey_report **out)
{
    const struct marey__summary_input input = {.merge = &partial->merge};
    const struct marey__request request = {.recordings = partial->recordings,
                                           .n = partial->n_recordings,
                                           .input = &input,
                                           .options = options != NULL ? options : &defaults};
    MAREY_TRY(marey_report_check("ranges", request.options->settings));
    MAREY_TRY(marey__merge_finish(&partial->merge));
    for (size_t i = 0; i < partial->merge.n_exclusions; i++)
        MAREY__TRY_MEMORY(check_recording(partial, &partial->merge.exclusions[i]));
    return marey__report_make("ranges", &request, out);
}
