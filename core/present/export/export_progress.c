/*
 * Iterations, epochs and phases in exports. Events come in order of time as far as these go, except to formats that
 * take lanes one by one, which show none.
 */
#include "present/export/internal.h"

#include <inttypes.h>

void marey__export_progress_start(struct marey__export *x)
{
    const uint64_t first_ns = x->process->first_ns + (uint64_t)x->shift_ns;
    marey__progress_init(&x->progress, MAREY__MAX(first_ns, x->origin_ns));
    x->span_kinds = 0;
}

void marey__export_progress(struct marey__export *x, const uint64_t *words, uint64_t ns)
{
    struct marey__span span;
    if (marey__progress_take(&x->progress, words, ns, &span) && x->format->span != NULL)
        x->format->span(x, &span);
}

void marey__export_progress_end(struct marey__export *x)
{
    struct marey__span span;
    while (marey__progress_finish(&x->progress, x->process->last_ns + (uint64_t)x->shift_ns, &span))
        if (x->format->span != NULL)
            x->format->span(x, &span);
}

const char *marey__span_track(enum marey__span_kind kind)
{
    return kind == MAREY__SPAN_ITERATION ? "iterations"
           : kind == MAREY__SPAN_EPOCH   ? "epochs"
                                         : "phases";
}

void marey__span_name(const struct marey__export *x, struct marey__buf *buf,
                      const struct marey__span *span)
{
    if (span->kind == MAREY__SPAN_PHASE) {
        const struct marey_site_info *site = marey__export_site(x, span->site);
        marey__buf_put(buf, site->name, site->name_len);
        return;
    }
    marey__buf_printf(buf, "%s %" PRIu64, span->kind == MAREY__SPAN_EPOCH ? "epoch" : "iteration",
                      span->number);
}

bool marey__span_is_first(struct marey__export *x, enum marey__span_kind kind)
{
    const uint32_t bit = 1u << kind;
    const bool is_first = (x->span_kinds & bit) == 0;
    x->span_kinds |= bit;
    return is_first;
}
