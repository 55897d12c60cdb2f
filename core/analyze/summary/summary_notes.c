/* The tables of sites and of warnings. */
#include <inttypes.h>
#include <string.h>

#include "analyze/summary/internal.h"

/* ---- sites ---- */

void marey__fill_sites(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__site_rows *sites = &m->merge->sites;
    for (size_t i = 0; i < sites->n; i++) {
        const struct marey_site_info *const site = &sites->rows[i].info;
        if (marey__name_matches(m->filter, site->name, site->name_len))
            MAREY__PUT_ROW(table, STRING_N(site->name, site->name_len), STRING(site->category),
                           STRING(site->domain), U64(site->color), STRING(site->file),
                           U64(site->line));
    }
}

/* ---- warnings ---- */

/* "N THING[s] REST" */
static void put_count(marey_table *table, uint64_t n, const char *thing, const char *rest)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    if (n == 0)
        return;
    marey__buf_printf(&text, "%" PRIu64 " %s%s %s", n, thing, n == 1 ? "" : "s", rest);
    if (text.failed)
        marey__put_string(table, rest);
    else
        marey_table_text(table, text.data, text.len);
}

static void put_iteration_notes(marey_table *table, const struct marey__iteration_merge *iterations)
{
    uint64_t n_cut = 0;
    bool has_data = false;
    for (size_t i = 0; i < iterations->n_rows; i++) {
        n_cut += iterations->rows[i].n_cut;
        has_data |= iterations->rows[i].has_data;
    }
    put_count(table, n_cut, "iteration",
              "with lost events or an unknown begin: left out of the times by iteration.");
    if (iterations->data == NULL || has_data)
        return;
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_printf(
        &text, "No range '%s' ran in an iteration; the share of waiting for data is unknown.",
        iterations->data);
    if (!text.failed)
        marey_table_text(table, text.data, text.len);
}

void marey__fill_warnings(marey_table *table, const struct marey__table_context *m)
{
    for (size_t i = 0; i < m->merge->n_notes; i++)
        marey__put_string(table, m->merge->notes[i].text);
    for (size_t p = 0; p < m->merge->n_processes; p++)
        marey__put_notes(table, m->merge->processes[p], m->merge->n_processes == 1);
    put_count(table, m->merge->n_cut_off, "range",
              "had begun when events were lost; the duration is unknown.");
    put_count(table, m->merge->n_unwound, "range", "left open inside another and ended with it.");
    put_count(table, m->merge->n_orphans, "end", "without a begin: left out.");
    put_count(
        table, m->merge->n_overlapping, "range",
        "overlapping others of the same thread: self times and the call tree count shared time "
        "once, for the range that ends first.");
    put_count(table, m->merge->n_too_deep, "range", "nested too deep: left out.");
    put_count(table, m->merge->n_async_dropped, "async event",
              "left out: too many async ranges were in flight.");
    put_iteration_notes(table, &m->merge->iterations);
}
