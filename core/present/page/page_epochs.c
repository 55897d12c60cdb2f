/* Epochs, as a few more of the page's tables, where the program told of some. */
#include "present/page/page_internal.h"

marey_status marey__page_time_epochs(struct marey__page *page)
{
    const marey_table *told = page->summary->tables[MAREY__TABLE_EPOCHS];
    if (marey_table_n_rows(told) == 0)
        return MAREY_OK;
    const marey_status status =
        marey_epoch_report_create(page->recordings, page->n_recordings, NULL, &page->epochs);
    return status == MAREY_EFORMAT ? MAREY_OK : status;
}

void marey__page_put_epochs(const struct marey__page *page, struct marey__buf *json)
{
    static const struct {
        const char *table, *title; /* the summary has an `epochs` and a `phases` of its own */
    } tables[] = {
        {"epochs", "epoch times"},
        {"averages", "epoch averages"},
        {"phases", "phases of epochs"},
        {"ranks", "epochs by rank"},
    };
    for (size_t i = 0; page->epochs != NULL && i < MAREY__COUNT_OF(tables); i++)
        marey__page_named_table(json, tables[i].title,
                                marey_epoch_report_table(page->epochs, tables[i].table),
                                MAREY__PAGE_TABLE_ROWS);
}
