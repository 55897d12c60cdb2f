/*
 * What is at a path: sources, read several at a time, each into a list of its own, and then put together in the order of
 * their names. A folder is looked through at any depth; what is nothing of ours there is passed over.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/scaling_read.h"
#include "analyze/scaling_whole.h"
#include "analyze/tasks.h"
#include "import/import_files.h"

/* Folders within folders; those of MLflow are six deep. Sources that fail and are named one by one. */
enum { MAX_DEPTH = 16, MAX_FAILURES = 10 };

enum kind { RECORDING, TRACES, CSV, OLD };

struct source {
    char *path;
    enum kind kind;
    kymo_scaling_runs *runs; /* what came of it */
    kymo_status status;
    char failure[512];
};

struct sources {
    const struct kymo_scaling_read_options *options;
    struct source *list;
    size_t n, cap;
    bool has_old;   /* itwinai's older files are in the folder: one source, the folder as a whole */
    size_t n_other; /* files that are nothing of ours */
    uint32_t n_jobs;
};

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for measured runs");
}

/* ---- for all readers ---- */

struct kymo_scaling_run kymo__scaling_run_unknown(const char *name)
{
    return (struct kymo_scaling_run){.experiment = "",
                                     .strategy = "",
                                     .name = name,
                                     .samples_per_epoch = NAN,
                                     .batch = NAN,
                                     .compute_s = NAN,
                                     .communication_s = NAN,
                                     .memory_s = NAN,
                                     .idle_s = NAN,
                                     .joules = NAN,
                                     .utilization = NAN,
                                     .computation_fraction = NAN,
                                     .computation_vs_communication = NAN};
}

/* A sum of large numbers from outside may be none. */
static void clean(struct kymo_scaling_run *run)
{
    double *const numbers[] = {&run->samples_per_epoch,
                               &run->batch,
                               &run->compute_s,
                               &run->communication_s,
                               &run->memory_s,
                               &run->idle_s,
                               &run->joules,
                               &run->utilization,
                               &run->computation_fraction,
                               &run->computation_vs_communication};
    for (size_t i = 0; i < KYMO__COUNT_OF(numbers); i++)
        if (!isfinite(*numbers[i]) || *numbers[i] < 0)
            *numbers[i] = NAN;
}

kymo_status kymo__scaling_read_add(const struct kymo__scaling_reading *reading,
                                   struct kymo_scaling_run *run)
{
    const struct kymo_scaling_read_options *options = reading->options;
    clean(run);
    if (options->experiment != NULL)
        run->experiment = options->experiment;
    if (options->strategy != NULL)
        run->strategy = options->strategy;
    if (options->workers != 0)
        run->workers = options->workers;
    const kymo_status status = kymo_scaling_runs_add(reading->runs, run);
    return status == KYMO_EINVAL ? kymo__scaling_read_note(reading, "%s.", kymo_last_error())
                                 : status;
}

kymo_status kymo__scaling_read_note(const struct kymo__scaling_reading *reading, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *sentence = kymo__alloc((size_t)KYMO__MAX(len, 0) + 1);
    if (sentence == NULL)
        return no_memory();
    va_start(args, fmt);
    (void)vsnprintf(sentence, (size_t)KYMO__MAX(len, 0) + 1, fmt, args);
    va_end(args);
    const kymo_status status = kymo_scaling_runs_note(reading->runs, sentence);
    kymo__free(sentence);
    return status;
}

/* ---- sources ---- */

static bool add_source(struct sources *sources, const char *path, enum kind kind)
{
    char *copy = kymo__strndup(path, strlen(path));
    if (copy == NULL ||
        !kymo__grow(&sources->list, &sources->cap, sources->n + 1, sizeof *sources->list)) {
        kymo__free(copy);
        return false;
    }
    sources->list[sources->n++] = (struct source){.path = copy, .kind = kind};
    return true;
}

static bool ends_in(const char *path, const char *end)
{
    const size_t len = strlen(path), end_len = strlen(end);
    return len >= end_len && strcmp(path + len - end_len, end) == 0;
}

/* What a file is, by how it begins. One that cannot be read is none; KYMO_ENOMEM alone is a failure. */
enum what { IS_OTHER, IS_MEASUREMENTS, IS_OLD, IS_TRACE };
static kymo_status look_at_bytes(const char *path, enum what *out)
{
    kymo__byte_source *bytes = NULL;
    const char *text = "";
    size_t len = 0;
    *out = IS_OTHER;
    kymo_status status = kymo__bytes_open(path, &bytes);
    if (status == KYMO_OK)
        status = kymo__bytes_peek(bytes, &text, &len);
    if (status == KYMO_OK && len != 0) {
        const enum kymo__scaling_csv csv = kymo__scaling_csv_kind(text, len);
        *out = csv == KYMO__CSV_MEASUREMENTS                     ? IS_MEASUREMENTS
               : csv == KYMO__CSV_OLD                            ? IS_OLD
               : kymo__import_chrome.looks_like(path, text, len) ? IS_TRACE
                                                                 : IS_OTHER;
    }
    kymo__bytes_close(bytes);
    return status == KYMO_ENOMEM ? status : KYMO_OK;
}

/* ---- a folder ---- */

/* Anything whose name is a log's makes the folder a recording; so does a meta.json of ours, before any log is there. */
static bool is_recording(struct dirent **entries, int n, const char *folder)
{
    for (int i = 0; i < n; i++)
        if (ends_in(entries[i]->d_name, ".klog"))
            return true;
    return ends_in(folder, ".kymo") && n > 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* A file of a folder; `*has_traces` is set by one of a trace. Others are known by their names, and not opened. */
static bool look_at_file(struct sources *sources, const char *path, bool *has_traces)
{
    static const char *const endings[] = {".csv", ".csv.gz", ".json", ".json.gz"};
    enum what what = IS_OTHER;
    for (size_t i = 0; i < KYMO__COUNT_OF(endings); i++)
        if (ends_in(path, endings[i]) && look_at_bytes(path, &what) != KYMO_OK)
            return false;
    sources->has_old |= what == IS_OLD;
    *has_traces |= what == IS_TRACE;
    sources->n_other += what == IS_OTHER;
    return what != IS_MEASUREMENTS || add_source(sources, path, CSV);
}

static bool look_into(struct sources *sources, const char *folder, int depth);

/* A link is not followed: it may lead back. */
static bool look_at(struct sources *sources, const char *path, int depth, bool *has_traces)
{
    struct stat info;
    if (lstat(path, &info) != 0)
        return true;
    if (S_ISDIR(info.st_mode))
        return depth >= MAX_DEPTH || look_into(sources, path, depth + 1);
    return !S_ISREG(info.st_mode) || look_at_file(sources, path, has_traces);
}

static bool look_into(struct sources *sources, const char *folder, int depth)
{
    struct dirent **entries = NULL;
    const int n = scandir(folder, &entries, is_visible, by_name);
    bool is_done = true, has_traces = false;
    const bool is_whole = n > 0 && is_recording(entries, n, folder);
    if (is_whole)
        is_done = add_source(sources, folder, RECORDING);
    for (int i = 0; i < n; i++) {
        struct kymo__buf path = {0};
        if (is_done && !is_whole) {
            kymo__buf_printf(&path, "%s%s%s", folder, ends_in(folder, "/") ? "" : "/",
                             entries[i]->d_name);
            kymo__buf_put(&path, "", 1);
            is_done = !path.failed && look_at(sources, path.data, depth, &has_traces);
        }
        kymo__buf_fini(&path);
        free(entries[i]);
    }
    free(entries);
    return is_done && (!has_traces || add_source(sources, folder, TRACES));
}

/* ---- a path ---- */

/* itwinai's older versions put traces beside epoch times: the same run once more, which would be a series of its own. */
static void leave_out_old_traces(struct sources *sources)
{
    for (size_t i = 0; i < sources->n; i++) {
        struct source *source = &sources->list[i];
        if (source->kind != TRACES || !ends_in(source->path, "/torch-traces"))
            continue;
        source->status = KYMO_EFORMAT;
        snprintf(source->failure, sizeof source->failure,
                 "%s, which lies beside itwinai's epoch times; name it to have it read",
                 source->path);
    }
}

static kymo_status find_in_folder(struct sources *sources, const char *path)
{
    if (!look_into(sources, path, 0) || (sources->has_old && !add_source(sources, path, OLD)))
        return no_memory();
    if (sources->has_old)
        leave_out_old_traces(sources);
    if (sources->n != 0)
        return KYMO_OK;
    return kymo__fail(
        KYMO_EFORMAT,
        "%s has nothing measured in it: no recording, no trace of torch.profiler, no CSV "
        "of measurements and none of itwinai's; %zu files are something else",
        path, sources->n_other);
}

static kymo_status find_file(struct sources *sources, const char *path)
{
    static const enum kind kinds[] = {RECORDING, CSV, OLD, TRACES}; /* by what it is */
    enum what what;
    KYMO_TRY(look_at_bytes(path, &what));
    if (what == IS_OTHER && !ends_in(path, ".klog"))
        return kymo__fail(
            KYMO_EFORMAT,
            "%s is no recording, no trace of torch.profiler, and no CSV with a column "
            "workers and measures or as itwinai writes",
            path);
    return add_source(sources, path, kinds[what]) ? KYMO_OK : no_memory();
}

static kymo_status find_sources(struct sources *sources, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return kymo__fail_errno("open %s", path);
    return S_ISDIR(info.st_mode) ? find_in_folder(sources, path) : find_file(sources, path);
}

/* ---- reading ---- */

static kymo_status read_source(const struct kymo__scaling_reading *reading,
                               const struct source *source)
{
    switch (source->kind) {
    case CSV:
        return kymo__scaling_read_csv(reading, source->path);
    case OLD:
        return kymo__scaling_read_old(reading, source->path);
    default:
        return kymo__scaling_read_recording(reading, source->path, source->kind == TRACES);
    }
}

/* What is wrong with one source is told later; without memory there is no later. */
static kymo_status read_nth(void *ctx, size_t i)
{
    struct sources *sources = ctx;
    struct source *source = &sources->list[i];
    if (source->status != KYMO_OK)
        return KYMO_OK; /* it is left out */
    KYMO_TRY(kymo_scaling_runs_create(&source->runs));
    const struct kymo__scaling_reading reading = {
        .runs = source->runs, .options = sources->options, .n_jobs = sources->n_jobs};
    source->status = read_source(&reading, source);
    if (source->status != KYMO_OK)
        snprintf(source->failure, sizeof source->failure, "%s", kymo_last_error());
    return source->status == KYMO_ENOMEM ? kymo__fail(KYMO_ENOMEM, "%s", source->failure) : KYMO_OK;
}

static kymo_status read_all(struct sources *sources)
{
    const struct kymo_scaling_read_options *options = sources->options;
    const struct kymo__tasks tasks = {.run = read_nth,
                                      .ctx = sources,
                                      .n = sources->n,
                                      .n_jobs = options->n_jobs,
                                      .progress = options->progress,
                                      .progress_ctx = options->progress_ctx};
    /* One source has all threads; several have one each. */
    sources->n_jobs = sources->n == 1 ? options->n_jobs : 1;
    return kymo__tasks_run(&tasks);
}

/* ---- putting together ---- */

static kymo_status take(kymo_scaling_runs *runs, const kymo_scaling_runs *from)
{
    for (size_t i = 0; i < from->n; i++)
        KYMO_TRY(kymo_scaling_runs_add(runs, &from->list[i]));
    for (size_t i = 0; i < from->n_notes; i++)
        KYMO_TRY(kymo_scaling_runs_note(runs, from->notes[i]));
    return KYMO_OK;
}

static kymo_status take_all(kymo_scaling_runs *runs, const struct sources *sources, const char *path)
{
    const struct kymo__scaling_reading reading = {.runs = runs, .options = sources->options};
    const struct source *failed = NULL;
    const size_t n_before = runs->n;
    size_t n_failed = 0;
    for (size_t i = 0; i < sources->n; i++) {
        const struct source *source = &sources->list[i];
        if (source->status != KYMO_OK) {
            failed = n_failed++ == 0 ? source : failed;
            if (n_failed <= MAX_FAILURES && sources->n > 1)
                KYMO_TRY(kymo__scaling_read_note(&reading, "Left out: %s.", source->failure));
            continue;
        }
        KYMO_TRY(take(runs, source->runs));
    }
    if (runs->n == n_before && failed != NULL)
        return kymo__fail(failed->status, "%s", failed->failure);
    if (runs->n == n_before)
        return kymo__fail(KYMO_EFORMAT, "%s has no measured run in it", path);
    if (n_failed > 1)
        KYMO_TRY(kymo__scaling_read_note(&reading, "%s: %zu of %zu parts could not be read.", path,
                                         n_failed, sources->n));
    return KYMO_OK;
}

kymo_status kymo_scaling_runs_read(kymo_scaling_runs *runs, const char *path,
                                   const struct kymo_scaling_read_options *options)
{
    static const struct kymo_scaling_read_options defaults;
    struct sources sources = {.options = options != NULL ? options : &defaults};
    kymo_status status = find_sources(&sources, path);
    if (status == KYMO_OK)
        status = read_all(&sources);
    if (status == KYMO_OK)
        status = take_all(runs, &sources, path);
    for (size_t i = 0; i < sources.n; i++) {
        kymo__free(sources.list[i].path);
        kymo_scaling_runs_destroy(sources.list[i].runs);
    }
    kymo__free(sources.list);
    return status;
}
