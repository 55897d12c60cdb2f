/*
 * What samplers saw, on the page: the tree of their samples, drawn as calls are, and the tables of `kymo report --samples`,
 * with the audit among them. Which samples count is what counts by default.
 */
#include "analyze/calls.h"
#include "present/page_internal.h"

static const char *const tables[] = {"lines", "functions", "threads", "waits",  "processes",
                                     "ranks", "files",     "modules", "stacks", "gil",
                                     "audit", "totals",    "notes"};

kymo_status kymo__page_sample(struct kymo__page *page)
{
    if (!kymo_samples_are_there(page->recordings, page->n_recordings))
        return KYMO_OK;
    page->samples = kymo__calloc(1, sizeof *page->samples);
    if (page->samples == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for the page's samples");
    KYMO_TRY(
        kymo__calls_read_samples(page->samples, page->recordings, page->n_recordings, NULL, false));
    KYMO_TRY(kymo__page_put_nodes(page->packer, page->samples, "samples-0"));
    const kymo_status status =
        kymo_samples_report_create(page->recordings, page->n_recordings, NULL, &page->sampled);
    /* A sampler that saw nothing: the page does without. */
    return status == KYMO_EFORMAT ? KYMO_OK : status;
}

void kymo__page_put_samples(const struct kymo__page *page, struct kymo__buf *json)
{
    if (page->sampled == NULL)
        return;
    kymo__page_put_key(json, "samples");
    kymo__buf_puts(json, "{");
    kymo__page_put_key(json, "calls");
    kymo__buf_puts(json, "[");
    kymo__page_put_profile(json, page->samples, page->summary->title);
    kymo__page_close(json, "],");
    kymo__page_put_key(json, "tables");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < KYMO__COUNT_OF(tables); i++)
        kymo__page_table(json, kymo_samples_report_table(page->sampled, tables[i]),
                         KYMO__PAGE_TABLE_ROWS);
    kymo__page_close(json, "]},");
}

void kymo__page_free_samples(struct kymo__page *page)
{
    if (page->samples != NULL)
        kymo__calls_fini(page->samples);
    kymo__free(page->samples);
    kymo_samples_report_destroy(page->sampled);
}
