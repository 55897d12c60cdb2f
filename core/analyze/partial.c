/* A part of a summary, that is a merge which was not finished, and what its texts are lent from. */
#include <kymo/partial.h>

#include "analyze/summary_bytes.h"

struct kymo_partial {
    kymo_recording *const *recordings; /* lent */
    size_t n_recordings;
    struct kymo__merge merge;
    struct kymo__lender lender;
    struct kymo__buf packed;
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

kymo_status kymo_partial_summary(kymo_partial *partial, const struct kymo_summary_options *options,
                                 kymo_summary **out)
{
    return kymo__summary_make(&partial->merge, partial->recordings, partial->n_recordings,
                              options != NULL ? options : &defaults, out);
}
