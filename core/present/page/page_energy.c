/* Joules, as a few more of the page's tables, for recordings that have counters of power or energy. */
#include "present/page/internal.h"

marey_status marey__page_measure(struct marey__page *page)
{
    const struct marey_energy_report_options options = {.filter = page->options->summary.filter};
    if (!marey_energy_is_there(page->recordings, page->n_recordings))
        return MAREY_OK;
    const marey_status status =
        marey_energy_report_create(page->recordings, page->n_recordings, &options, &page->energy);
    /* Counters without a reading, after all: the page does without. */
    return status == MAREY_EFORMAT ? MAREY_OK : status;
}

void marey__page_put_energy(const struct marey__page *page, struct marey__buf *json)
{
    static const struct {
        const char *table, *title; /* others have a table of the same name */
    } tables[] = {
        {"runs", "energy of runs"},       {"devices", "energy of devices"},
        {"epochs", "energy of epochs"},   {"iterations", "energy of iterations"},
        {"phases", "energy of phases"},   {"ranges", "energy of ranges"},
        {"repeats", "energy of repeats"}, {"notes", "energy notes"},
    };
    for (size_t i = 0; page->energy != NULL && i < MAREY__COUNT_OF(tables); i++)
        marey__page_named_table(json, tables[i].title,
                                marey_energy_report_table(page->energy, tables[i].table),
                                MAREY__PAGE_TABLE_ROWS);
}
