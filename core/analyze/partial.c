/* A part of a summary, that is a merge which was not finished, and what its texts are lent from. */
#include <kymo/partial.h>

#include "analyze/summary_bytes.h"
#include "read/log_check.h"

struct kymo_partial {
    kymo_recording *const *recordings; /* lent */
    size_t n_recordings;
    struct kymo__merge merge;
    struct kymo__lender lender;
    struct kymo__buf packed;
    struct kymo__warnings warnings; /* about all logs together */
};

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the summary");
}

void kymo_partial_destroy(kymo_partial *partial)
{
    if (partial == NULL)
        return;
    kymo__merge_fini(&partial->merge);
    kymo__lender_fini(&partial->lender);
    kymo__buf_fini(&partial->packed);
    kymo__warnings_fini(&partial->warnings);
    kymo__free(partial);
}

static const struct kymo_summary_options defaults;

kymo_status kymo_partial_create(kymo_recording *const *recordings, size_t n,
                                const struct kymo_summary_options *options, kymo_partial **out)
{
    kymo_partial *partial = kymo__calloc(1, sizeof *partial);
    if (partial == NULL)
        return no_memory();
    partial->recordings = recordings;
    partial->n_recordings = n;
    kymo_status status = kymo__merge_init(&partial->merge);
    partial->merge.iterations.keeps_courses = true;
    if (status == KYMO_OK)
        status = kymo__summary_merge(recordings, n, options != NULL ? options : &defaults, NULL,
                                     &partial->merge);
    if (status != KYMO_OK)
        kymo_partial_destroy(partial);
    else
        *out = partial;
    return status;
}

kymo_status kymo_partial_pack(kymo_partial *partial, const void **bytes, size_t *len)
{
    kymo__buf_fini(&partial->packed);
    partial->packed = (struct kymo__buf){0};
    kymo__merge_pack(&partial->merge, &partial->packed);
    if (partial->packed.failed)
        return no_memory();
    *bytes = partial->packed.data;
    *len = partial->packed.len;
    return KYMO_OK;
}

kymo_status kymo_partial_join(kymo_partial *partial, const void *bytes, size_t len)
{
    struct kymo__merge other;
    KYMO_TRY(kymo__merge_init(&other));
    kymo_status status = kymo__merge_unpack(&other, &partial->lender, bytes, len);
    if (status == KYMO_OK && !kymo__merge_join(&partial->merge, &other))
        status = no_memory();
    kymo__merge_fini(&other);
    return status;
}

/* ---- all logs together, which nobody has seen so far ---- */

static int by_rank(const void *a, const void *b)
{
    return kymo__process_compare(*(const struct kymo_process *const *)a,
                                 *(const struct kymo_process *const *)b);
}

/* The processes of a recording, in order, and behind them those that measured. */
static size_t list_processes(const struct kymo__merge *merge, const struct kymo__left_out *left_out,
                             const struct kymo_process **list)
{
    size_t n = 0;
    for (size_t i = 0; i < merge->n_processes; i++)
        if (merge->process_recordings[i] == left_out->recording)
            list[n++] = merge->processes[i];
    for (size_t i = 0; i < left_out->n_measuring; i++)
        list[n + i] = left_out->measuring[i];
    if (left_out->n_measuring > 1)
        qsort(list + n, left_out->n_measuring, sizeof *list, by_rank);
    return n + left_out->n_measuring;
}

static bool tell(struct kymo__merge *merge, const struct kymo__warnings *warnings, size_t first,
                 uint32_t recording)
{
    if (!kymo__grow(&merge->told, &merge->told_cap, merge->n_told + warnings->n - first,
                    sizeof *merge->told))
        return false;
    for (size_t i = first; i < warnings->n; i++)
        merge->told[merge->n_told++] =
            (struct kymo__told_row){recording, true, warnings->sentences[i]};
    return !warnings->failed;
}

static bool check_recording(kymo_partial *partial, const struct kymo__left_out *left_out)
{
    struct kymo__merge *merge = &partial->merge;
    const size_t first = partial->warnings.n;
    const struct kymo_process **list =
        kymo__calloc(merge->n_processes + left_out->n_measuring + 1, sizeof(struct kymo_process *));
    if (list == NULL)
        return false;
    const size_t n = list_processes(merge, left_out, list);
    kymo__logs_check(&(struct kymo__checked_logs){list, n, (size_t)left_out->n_broken,
                                                  (size_t)left_out->n_empty},
                     &partial->warnings);
    kymo__free(list);
    return tell(merge, &partial->warnings, first, left_out->recording);
}

kymo_status kymo_partial_summary(kymo_partial *partial, const struct kymo_summary_options *options,
                                 kymo_summary **out)
{
    KYMO_TRY(kymo__merge_finish(&partial->merge));
    for (size_t i = 0; i < partial->merge.n_left_out; i++)
        if (!check_recording(partial, &partial->merge.left_out[i]))
            return no_memory();
    return kymo__summary_make(&partial->merge, partial->recordings, partial->n_recordings,
                              options != NULL ? options : &defaults, out);
}
