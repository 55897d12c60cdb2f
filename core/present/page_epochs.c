/* Epochs, as a few more of the page's tables, where the program told of some. */
#include "present/page_internal.h"

kymo_status kymo__page_time_epochs(struct kymo__page *page)
{
    const kymo_table *told = page->summary->tables[KYMO__TABLE_EPOCHS];
    if (kymo_table_n_rows(told) == 0)
        return KYMO_OK;
    const kymo_status status =
        kymo_epoch_report_create(page->recordings, page->n_recordings, NULL, &page->epochs);
    return status == KYMO_EFORMAT ? KYMO_OK : status;
}

void kymo__page_put_epochs(const struct kymo__page *page, struct kymo__buf *json)
{
    static const struct {
        const char *table, *title; /* the summary has an `epochs` and a `phases` of its own */
    } tables[] = {
        {"epochs", "epoch times"},
        {"averages", "epoch averages"},
        {"phases", "phases of epochs"},
        {"ranks", "epochs by rank"},
    };
    for (size_t i = 0; page->epochs != NULL && i < KYMO__COUNT_OF(tables); i++)
        kymo__page_named_table(json, tables[i].title,
                               kymo_epoch_report_table(page->epochs, tables[i].table),
                               KYMO__PAGE_TABLE_ROWS);
}
