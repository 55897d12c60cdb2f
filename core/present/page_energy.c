/* Joules, as a few more of the page's tables, for recordings that have counters of power or energy. */
#include "present/page_internal.h"

kymo_status kymo__page_measure(struct kymo__page *page)
{
    const struct kymo_energy_report_options options = {.filter = page->options->summary.filter};
    if (!kymo_energy_is_there(page->recordings, page->n_recordings))
        return KYMO_OK;
    const kymo_status status =
        kymo_energy_report_create(page->recordings, page->n_recordings, &options, &page->energy);
    /* Counters without a reading, after all: the page does without. */
    return status == KYMO_EFORMAT ? KYMO_OK : status;
}

void kymo__page_put_energy(const struct kymo__page *page, struct kymo__buf *json)
{
    static const struct {
        const char *table, *title; /* others have a table of the same name */
    } tables[] = {
        {"runs", "energy of runs"},       {"devices", "energy of devices"},
        {"epochs", "energy of epochs"},   {"iterations", "energy of iterations"},
        {"phases", "energy of phases"},   {"ranges", "energy of ranges"},
        {"repeats", "energy of repeats"}, {"notes", "energy notes"},
    };
    for (size_t i = 0; page->energy != NULL && i < KYMO__COUNT_OF(tables); i++)
        kymo__page_named_table(json, tables[i].title,
                               kymo_energy_report_table(page->energy, tables[i].table),
                               KYMO__PAGE_TABLE_ROWS);
}
