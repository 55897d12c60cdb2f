/* A report: created by the analysis of its name; owns the tables. */
#include <string.h>

#include "report/internal.h"
#include <marey/import.h>

/* ---- making ---- */

/* An analysis whose columns depend on the recording creates its tables itself. */
static marey_status create_tables(marey_report *report)
{
    const struct marey_analysis *const about = &report->analysis->about;
    report->tables = marey__calloc(about->n_tables + 1, sizeof(marey_table *));
    MAREY__TRY_MEMORY(report->tables != NULL);
    for (size_t i = 0; i < about->n_tables; i++)
        if (about->tables[i].columns != NULL)
            MAREY_TRY(marey_table_create(about->tables[i].name, about->tables[i].columns,
                                         about->tables[i].n_columns, &report->tables[i]));
    return MAREY_OK;
}

/* The table that the setting "by" selects; NULL: none. */
static const char *table_by(const struct marey_analysis *about, const char *by)
{
    for (size_t i = 0; by != NULL && i < about->n_tables; i++)
        if (about->tables[i].by != NULL && strcmp(about->tables[i].by, by) == 0)
            return about->tables[i].name;
    return NULL;
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    MAREY_TRY(create_tables(report));
    report->table = table_by(&report->analysis->about, marey__setting(request, "by"));
    const char *const sort = marey__setting(request, "sort");
    if (report->analysis->sorts_csv && sort != NULL)
        snprintf(report->sort, sizeof report->sort, "%s", sort);
    const size_t n_recordings = request->recordings != NULL ? request->n : 0;
    report->title = marey__recordings_title(request->recordings, n_recordings);
    MAREY__TRY_MEMORY(report->title != NULL);
    marey__cost_of(&report->cost, request->recordings, n_recordings);
    for (size_t i = 0; i < n_recordings; i++)
        report->is_damaged |= marey_recording_is_damaged(request->recordings[i]) != 0;
    if (report->analysis->visits_again)
        marey_recordings_keep_events(request->recordings, n_recordings);
    const marey_status status = report->analysis->make(report, request);
    if (report->analysis->visits_again)
        marey_recordings_drop_events(request->recordings, n_recordings);
    MAREY_TRY(status);
    for (size_t i = 0; i < report->analysis->about.n_tables; i++)
        if (report->tables[i] != NULL)
            MAREY_TRY(marey_table_status(report->tables[i]));
    return MAREY_OK;
}

marey_status marey__report_make(const char *analysis, const struct marey__request *request,
                                marey_report **out)
{
    marey_report *const report = marey__calloc(1, sizeof *report);
    MAREY__TRY_MEMORY(report != NULL);
    report->analysis = marey__analysis_find(analysis);
    const marey_status status = make(report, request);
    if (status != MAREY_OK) {
        marey_report_destroy(report);
        return status;
    }
    *out = report;
    return MAREY_OK;
}

static const struct marey_report_options defaults;

marey_status marey_report_create(const char *analysis, marey_recording *const *recordings, size_t n,
                                 const struct marey_report_options *options, marey_report **out)
{
    const struct marey__request request = {
        .recordings = recordings, .n = n, .options = options != NULL ? options : &defaults};
    MAREY_TRY(marey_report_check(analysis, request.options->settings));
    if (marey__analysis_find(analysis)->reads_paths)
        return marey__fail(MAREY_EINVAL, "%s reads paths: use marey_report_create_files()", analysis);
    return marey__report_make(analysis, &request, out);
}

static marey_status make_of_opened(const struct marey__analysis *analysis, const char *const *paths,
                                   size_t n, const struct marey_report_options *options,
                                   marey_report **out)
{
    const struct marey_import_options how = {.keep_arguments = analysis->about.needs_arguments};
    marey_recording **const recordings = marey__calloc(n + 1, sizeof *recordings);
    marey_status status = recordings != NULL ? MAREY_OK : marey__no_memory();
    size_t n_open = 0;
    for (; status == MAREY_OK && n_open < n; n_open += status == MAREY_OK)
        status = marey_open(paths[n_open], &how, &recordings[n_open]);
    if (status == MAREY_OK)
        status = marey_report_create(analysis->about.name, recordings, n, options, out);
    while (n_open > 0)
        marey_recording_close(recordings[--n_open]);
    marey__free(recordings);
    return status;
}

marey_status marey_report_create_files(const char *analysis, const char *const *paths, size_t n,
                                       const struct marey_report_options *options, marey_report **out)
{
    const struct marey__request request = {
        .paths = paths, .n = n, .options = options != NULL ? options : &defaults};
    MAREY_TRY(marey_report_check(analysis, request.options->settings));
    const struct marey__analysis *const found = marey__analysis_find(analysis);
    return found->is_file != NULL || found->reads_paths
               ? marey__report_make(analysis, &request, out)
               : make_of_opened(found, paths, n, request.options, out);
}

int marey_report_is_file(const char *analysis, const char *path)
{
    const struct marey__analysis *const found = marey__analysis_find(analysis);
    return found != NULL && found->is_file != NULL && found->is_file(path);
}

int marey_report_is_there(const char *analysis, marey_recording *const *recordings, size_t n)
{
    const struct marey__analysis *const found = marey__analysis_find(analysis);
    return found != NULL && (found->is_there == NULL || found->is_there(recordings, n, NULL));
}

void marey_report_destroy(marey_report *report)
{
    if (report == NULL)
        return;
    if (report->data != NULL)
        report->analysis->destroy(report->data);
    for (size_t i = 0; report->tables != NULL && i < report->analysis->about.n_tables; i++)
        marey_table_destroy(report->tables[i]);
    MAREY__FREE_ALL(report->tables, report->title, report);
}

marey_status marey__report_missing(const marey_report *report)
{
    return marey__fail(MAREY_EFORMAT, "%s has no %s in it: %s", report->title,
                       report->analysis->about.name, report->analysis->about.needs);
}

void marey__report_progress(const struct marey__request *request, double share)
{
    if (request->options->progress != NULL)
        request->options->progress(request->options->progress_ctx, share);
}

/* ---- reading ---- */

const struct marey_analysis *marey_report_analysis(const marey_report *report)
{
    return &report->analysis->about;
}

marey_table *marey_report_table_at(const marey_report *report, size_t i)
{
    return i < report->analysis->about.n_tables ? report->tables[i] : NULL;
}

marey_table *marey__report_table(const marey_report *report, const char *name, size_t len)
{
    const struct marey_table_definition *const tables = report->analysis->about.tables;
    for (size_t i = 0; i < report->analysis->about.n_tables; i++)
        if (strlen(tables[i].name) == len && memcmp(tables[i].name, name, len) == 0)
            return report->tables[i];
    return NULL;
}

marey_table *marey_report_table(const marey_report *report, const char *name)
{
    return marey__report_table(report, name, strlen(name));
}

bool marey__is_listed(const char *list, const char *name)
{
    for (size_t len; *list != '\0'; list += len + (list[len] == ',')) {
        len = strcspn(list, ",");
        if (strlen(name) == len && memcmp(list, name, len) == 0)
            return true;
    }
    return false;
}

const marey_table *marey__report_notes(const marey_report *report)
{
    const marey_table *const notes = marey_report_table(report, "notes");
    return notes != NULL ? notes : marey_report_table(report, "warnings");
}

const char *marey_report_note(const marey_report *report, size_t i)
{
    const marey_table *const notes = marey__report_notes(report);
    return notes != NULL && i < marey_table_n_rows(notes) ? marey_table_cell(notes, i, 0).as.text
                                                          : NULL;
}

int marey_report_is_damaged(const marey_report *report)
{
    return report->is_damaged;
}

void marey_report_cost(const marey_report *report, struct marey_cost *out)
{
    *out = report->cost;
}
