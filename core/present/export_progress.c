/*
 * Iterations, epochs and phases in exports. Events come in order of time as far as these go, except to formats that
 * take lanes one by one, which show none.
 */
#include "present/export_internal.h"

#include <inttypes.h>

void kymo__export_progress_start(struct kymo__export *x)
{
    const uint64_t first_ns = x->process->first_ns + (uint64_t)x->shift_ns;
    kymo__progress_init(&x->progress, KYMO__MAX(first_ns, x->origin_ns));
    x->span_kinds = 0;
}

void kymo__export_progress(struct kymo__export *x, const uint64_t *words, uint64_t ns)
{
    struct kymo__span span;
    if (kymo__progress_take(&x->progress, words, ns, &span) && x->format->span != NULL)
        x->format->span(x, &span);
}

void kymo__export_progress_end(struct kymo__export *x)
{
    struct kymo__span span;
    while (kymo__progress_finish(&x->progress, x->process->last_ns + (uint64_t)x->shift_ns, &span))
        if (x->format->span != NULL)
            x->format->span(x, &span);
}

const char *kymo__span_track(enum kymo__span_kind kind)
{
    return kind == KYMO__SPAN_ITERATION ? "iterations"
           : kind == KYMO__SPAN_EPOCH   ? "epochs"
                                        : "phases";
}

void kymo__span_name(const struct kymo__export *x, struct kymo__buf *buf,
                     const struct kymo__span *span)
{
    if (span->kind == KYMO__SPAN_PHASE) {
        const struct kymo_site_info *site = kymo__export_site(x, span->site);
        kymo__buf_put(buf, site->name, site->name_len);
        return;
    }
    kymo__buf_printf(buf, "%s %" PRIu64, span->kind == KYMO__SPAN_EPOCH ? "epoch" : "iteration",
                     span->number);
}

bool kymo__span_is_first(struct kymo__export *x, enum kymo__span_kind kind)
{
    const uint32_t bit = 1u << kind;
    const bool is_first = (x->span_kinds & bit) == 0;
    x->span_kinds |= bit;
    return is_first;
}
