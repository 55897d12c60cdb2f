/* Tables of the registered analyses; the entry of each selects the tables of the page. */
#include "present/page/internal.h"

static bool is_there(const struct marey__page *page, const struct marey__analysis *analysis)
{
    return analysis->page != NULL &&
           (analysis->is_there == NULL ||
            analysis->is_there(page->recordings, page->n_recordings, page->summary));
}

static marey_status make(struct marey__page *page, const struct marey__analysis *analysis,
                         marey_report **out)
{
    const char *const filter = page->wants.filter;
    struct marey__buf setting MAREY__FINALLY(marey__buf_fini) = {0};
    const char *settings[2] = {analysis->page_setting, NULL};
    if (settings[0] != NULL && strcmp(settings[0], "filter") == 0) {
        marey__buf_printf(&setting, "filter=%s", filter != NULL ? filter : "");
        marey__buf_put(&setting, "", 1);
        if (setting.failed)
            return marey__no_memory();
        settings[0] = filter != NULL ? setting.data : NULL;
    }
    const struct marey_report_options options = {.settings = settings, .n_jobs = page->wants.n_jobs};
    const marey_status status = marey_report_create(analysis->about.name, page->recordings,
                                                    page->n_recordings, &options, out);
    if (status == MAREY_OK && analysis->is_on_page != NULL && !analysis->is_on_page(*out)) {
        marey_report_destroy(*out);
        *out = NULL;
    }
    return status == MAREY_EFORMAT ? MAREY_OK : status; /* no data after all */
}

marey_status marey__page_make_reports(struct marey__page *page)
{
    const struct marey__analysis *analysis;
    for (size_t i = 0; (analysis = marey__analysis_at(i)) != NULL; i++)
        if (is_there(page, analysis))
            MAREY_TRY(make(page, analysis, &page->reports[i]));
    return MAREY_OK;
}

static void put_tables(const marey_report *report, struct marey__buf *json)
{
    const struct marey_analysis *const about = &report->analysis->about;
    for (const struct marey__page_table *one = report->analysis->page; one->table != NULL; one++)
        for (size_t i = 0; i < about->n_tables; i++)
            if (strcmp(about->tables[i].name, one->table) == 0)
                marey__page_table(json, report, i, one->title, MAREY__PAGE_TABLE_ROWS);
}

void marey__page_put_reports(const struct marey__page *page, bool as_lists, struct marey__buf *json)
{
    for (size_t i = 0; i < MAREY__MAX_ANALYSES; i++) {
        const marey_report *const report = page->reports[i];
        if (report == NULL || (report->analysis->page_key != NULL) != as_lists)
            continue;
        if (as_lists)
            marey__page_open(json, report->analysis->page_key, "[");
        put_tables(report, json);
        if (as_lists)
            marey__page_close(json, "],");
    }
}
