/*
 * The list of measured runs, and the sources at a path: each is read into its own list, in parallel, and merged in the
 * order of names. Folders are searched at any depth; other files are ignored.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/scaling/internal.h"
#include "analyze/walk/internal.h"
#include "base/internal.h"
#include "import/internal.h"

void marey__scaling_runs_fini(struct marey__scaling_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        marey__free(runs->list[i].owned);
    MAREY__FREE_ALL(runs->list, runs->notes);
    marey__arena_fini(&runs->texts);
}

/* ---- adding ---- */

static marey_status check_times(const struct marey__scaling_run *run, const char *what,
                                const double *times, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(times[i] > 0) || isinf(times[i]))
            return marey__fail(MAREY_EINVAL, "%s: %s %zu takes %g s; times are finite and above zero",
                               run->name != NULL ? run->name : "a run", what, i, times[i]);
    return MAREY_OK;
}

static marey_status check(const struct marey__scaling_run *run)
{
    if (run->workers == 0)
        return marey__fail(MAREY_EINVAL, "%s: a run has at least one worker",
                           run->name != NULL ? run->name : "a run");
    MAREY_TRY(check_times(run, "epoch", run->epoch_s, run->n_epochs));
    return check_times(run, "step", run->step_s, run->n_steps);
}

/* NULL if there is nothing to copy. */
static const double *copy_values(double *into, const double *values, size_t n)
{
    return values != NULL && n != 0 ? memcpy(into, values, n * sizeof *into) : NULL;
}

static bool copy_text(struct marey__arena *texts, const char **text)
{
    const char *old = *text != NULL ? *text : "";
    *text = marey__arena_text(texts, old, strlen(old));
    return *text != NULL;
}

marey_status marey__scaling_runs_add(struct marey__scaling_runs *runs,
                                     const struct marey__scaling_run *run)
{
    struct marey__scaling_run copy = *run;
    MAREY_TRY(check(run));
    const size_t n = run->n_epochs;
    copy.owned = marey__calloc(2 * n + run->n_steps + 1, sizeof *copy.owned);
    if (copy.owned == NULL || !copy_text(&runs->texts, &copy.experiment) ||
        !copy_text(&runs->texts, &copy.strategy) || !copy_text(&runs->texts, &copy.name) ||
        !marey__grow(&runs->list, &runs->cap, runs->n + 1, sizeof *runs->list)) {
        marey__free(copy.owned);
        return marey__no_memory();
    }
    copy.epoch_s = copy_values(copy.owned, run->epoch_s, n);
    copy.epoch_j = copy_values(copy.owned + n, run->epoch_j, n);
    copy.step_s = copy_values(copy.owned + 2 * n, run->step_s, run->n_steps);
    runs->list[runs->n++] = copy;
    return MAREY_OK;
}

marey_status marey__scaling_runs_note(struct marey__scaling_runs *runs, const char *sentence)
{
    MAREY__TRY_MEMORY(
        copy_text(&runs->texts, &sentence) &&
        marey__grow(&runs->notes, &runs->notes_cap, runs->n_notes + 1, sizeof *runs->notes));
    runs->notes[runs->n_notes++] = sentence;
    return MAREY_OK;
}

/* ---- reading ---- */

/* Depth of nested folders (MLflow's are six deep); limit on failed sources named one by one. */
enum { MAX_DEPTH = 16, MAX_FAILURES = 10 };

struct source {
    char *path;
    const char *name; /* for messages */
    enum marey__scaling_file kind;
    bool is_converted;               /* a temporary file, removed afterwards */
    struct marey__scaling_runs runs; /* the runs read from it */
    marey_status status;
    char failure[512];
};

struct sources {
    const struct marey__scaling_read_options *options;
    struct source *list;
    size_t n, cap;
    bool has_itwinai; /* there are CSV files of itwinai */
    size_t n_other;   /* files of unknown kinds */
    uint32_t n_jobs;
};

/* ---- helpers of all readers ---- */

struct marey__scaling_run marey__scaling_run_unknown(const char *name)
{
    struct marey__scaling_run run = {.experiment = "", .strategy = "", .name = name};
    for (size_t i = 0; i < MAREY__SCALING_NUMBERS; i++)
        run.numbers.all[i] = NAN;
    return run;
}

marey_status marey__scaling_read_add(const struct marey__scaling_reading *reading,
                                     struct marey__scaling_run *run)
{
    const struct marey__scaling_read_options *options = reading->options;
    for (size_t i = 0; i < MAREY__SCALING_NUMBERS; i++) /* sums of foreign numbers may overflow */
        if (!isfinite(run->numbers.all[i]) || run->numbers.all[i] < 0)
            run->numbers.all[i] = NAN;
    if (options->experiment != NULL)
        run->experiment = options->experiment;
    if (options->strategy != NULL)
        run->strategy = options->strategy;
    if (options->workers != 0)
        run->workers = options->workers;
    const marey_status status = marey__scaling_runs_add(reading->runs, run);
    return status == MAREY_EINVAL ? marey__scaling_read_note(reading, "%s.", marey_last_error())
                                  : status;
}

marey_status marey__scaling_read_note(const struct marey__scaling_reading *reading, const char *fmt,
                                      ...)
{
    va_list args;
    va_start(args, fmt);
    const int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *const sentence MAREY__FREED = marey__alloc((size_t)MAREY__MAX(len, 0) + 1);
    MAREY__TRY_MEMORY(sentence != NULL);
    va_start(args, fmt);
    (void)vsnprintf(sentence, (size_t)MAREY__MAX(len, 0) + 1, fmt, args);
    va_end(args);
    return marey__scaling_runs_note(reading->runs, sentence);
}

/* ---- sources ---- */

static bool add_source(struct sources *sources, const char *path, enum marey__scaling_file kind)
{
    char *copy = marey__strndup(path, strlen(path));
    if (copy == NULL ||
        !marey__grow(&sources->list, &sources->cap, sources->n + 1, sizeof *sources->list)) {
        marey__free(copy);
        return false;
    }
    sources->list[sources->n++] = (struct source){.path = copy, .name = copy, .kind = kind};
    return true;
}

static bool ends_in(const char *path, const char *end)
{
    return marey__ends_with(path, strlen(path), end);
}

/* The kind of a file, by its first bytes. An unreadable file has kind OTHER; the only error is MAREY_ENOMEM. */
static marey_status find_kind(const char *path, enum marey__scaling_file *out)
{
    marey__byte_source *bytes = NULL;
    const char *text = "";
    size_t len = 0;
    *out = MAREY__FILE_OTHER;
    marey_status status = marey__bytes_open(path, &bytes);
    if (status == MAREY_OK)
        status = marey__bytes_peek(bytes, &text, &len);
    if (status == MAREY_OK && len != 0)
        *out = marey__scaling_csv_kind(text, len);
    if (*out == MAREY__FILE_OTHER && len != 0 && marey__import_chrome.looks_like(text, len))
        *out = MAREY__FILE_TRACE;
    marey__bytes_close(bytes);
    return status == MAREY_ENOMEM ? status : MAREY_OK;
}

/* ---- a folder ---- */

/* A folder is a recording if any name in it is a log's, or if it has our meta.json before any log exists. */
static bool is_recording(struct dirent **entries, int n, const char *folder)
{
    for (int i = 0; i < n; i++)
        if (ends_in(entries[i]->d_name, ".klog"))
            return true;
    return (ends_in(folder, ".marey") || ends_in(folder, MAREY__OLD_SUFFIX)) && n > 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Check a file of a folder; sets `*has_traces` for a trace. Other files are recognized by name without opening them. */
static bool look_at_file(struct sources *sources, const char *path, bool *has_traces)
{
    static const char *const endings[] = {".csv", ".csv.gz", ".json", ".json.gz"};
    enum marey__scaling_file kind = MAREY__FILE_OTHER;
    for (size_t i = 0; i < MAREY__COUNT_OF(endings); i++)
        if (ends_in(path, endings[i]) && find_kind(path, &kind) != MAREY_OK)
            return false;
    sources->has_itwinai |= kind == MAREY__FILE_ITWINAI;
    *has_traces |= kind == MAREY__FILE_TRACE;
    sources->n_other += kind == MAREY__FILE_OTHER;
    return kind != MAREY__FILE_MEASUREMENTS || add_source(sources, path, kind);
}

static bool look_into(struct sources *sources, const char *folder, int depth);

/* Links are not followed, because they may form cycles. */
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
        is_done = add_source(sources, folder, MAREY__FILE_OTHER);
    for (int i = 0; i < n; i++) {
        struct marey__buf path = {0};
        if (is_done && !is_whole) {
            marey__buf_printf(&path, "%s%s%s", folder, ends_in(folder, "/") ? "" : "/",
                              entries[i]->d_name);
            marey__buf_put(&path, "", 1);
            is_done = !path.failed && look_at(sources, path.data, depth, &has_traces);
        }
        marey__buf_fini(&path);
        free(entries[i]);
    }
    free(entries);
    return is_done && (!has_traces || add_source(sources, folder, MAREY__FILE_TRACE));
}

/* ---- a path ---- */

/* Older versions of itwinai store traces beside epoch times: the same run again, which would be another series. */
static void leave_out_itwinai_traces(struct sources *sources)
{
    for (size_t i = 0; i < sources->n; i++) {
        struct source *source = &sources->list[i];
        if (source->kind != MAREY__FILE_TRACE || !ends_in(source->path, "/torch-traces"))
            continue;
        source->status = MAREY_EFORMAT;
        snprintf(source->failure, sizeof source->failure,
                 "%s, found next to itwinai's epoch times; pass it to read it", source->path);
    }
}

static marey_status find_in_folder(struct sources *sources, const char *path)
{
    if (!look_into(sources, path, 0))
        return marey__no_memory();
    if (sources->has_itwinai)
        leave_out_itwinai_traces(sources);
    if (sources->n != 0 || sources->has_itwinai)
        return MAREY_OK;
    return marey__fail(
        MAREY_EFORMAT,
        "%s has nothing measured in it: no recording, no trace of torch.profiler, no CSV "
        "of measurements and none of itwinai's; %zu files are something else",
        path, sources->n_other);
}

static marey_status find_file(struct sources *sources, const char *path)
{
    enum marey__scaling_file kind;
    MAREY_TRY(find_kind(path, &kind));
    sources->has_itwinai = kind == MAREY__FILE_ITWINAI;
    if (sources->has_itwinai)
        return MAREY_OK;
    if (kind == MAREY__FILE_OTHER && !ends_in(path, ".klog"))
        return marey__fail(
            MAREY_EFORMAT,
            "%s is not a recording, a trace of torch.profiler, or a CSV with a column "
            "workers and measures or as itwinai writes",
            path);
    return add_source(sources, path, kind) ? MAREY_OK : marey__no_memory();
}

/* Measurements converted to CSV by `command` of marey.itwinai. */
static marey_status add_converted(struct sources *sources, const char *command, const char *from)
{
    const struct marey__scaling_read_options *const options = sources->options;
    struct marey__buf csv MAREY__FINALLY(marey__buf_fini) = {0};
    const char *const folder = getenv("TMPDIR");
    marey__buf_printf(&csv, "%s/marey-XXXXXX.csv",
                      folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    marey__buf_put(&csv, "", 1);
    MAREY__TRY_MEMORY(!csv.failed);
    const int fd = mkstemps(csv.data, 4);
    if (fd < 0)
        return marey__fail_errno("write %s", csv.data);
    close(fd);
    if (!add_source(sources, csv.data, MAREY__FILE_MEASUREMENTS)) {
        unlink(csv.data);
        return marey__no_memory();
    }
    sources->list[sources->n - 1].is_converted = true;
    sources->list[sources->n - 1].name = from;
    return options->convert(options->convert_ctx, command, from, csv.data);
}

static marey_status find_sources(struct sources *sources, const char *path, bool is_store)
{
    struct stat info;
    if (is_store && sources->options->convert == NULL)
        return marey__fail(MAREY_EINVAL, "an MLflow store is read by marey.itwinai (Python)");
    if (is_store)
        return add_converted(sources, "mlflow", path);
    if (stat(path, &info) != 0)
        return marey__fail_errno("open %s", path);
    MAREY_TRY(S_ISDIR(info.st_mode) ? find_in_folder(sources, path) : find_file(sources, path));
    return sources->has_itwinai && sources->options->convert != NULL
               ? add_converted(sources, "measurements", path)
               : MAREY_OK;
}

/* ---- reading ---- */

/* Errors of a source are reported later; out of memory ends reading. */
static marey_status read_nth(void *ctx, size_t i)
{
    struct sources *sources = ctx;
    struct source *source = &sources->list[i];
    if (source->status != MAREY_OK)
        return MAREY_OK; /* skipped */
    const char *const name = sources->options->source;
    const struct marey__scaling_reading reading = {.runs = &source->runs,
                                                   .options = sources->options,
                                                   .name = name != NULL ? name : source->name,
                                                   .n_jobs = sources->n_jobs};
    source->status = source->kind == MAREY__FILE_MEASUREMENTS
                         ? marey__scaling_read_csv(&reading, source->path)
                         : marey__scaling_read_recording(&reading, source->path,
                                                         source->kind == MAREY__FILE_TRACE);
    if (source->status != MAREY_OK)
        snprintf(source->failure, sizeof source->failure, "%s", marey_last_error());
    return source->status == MAREY_ENOMEM ? marey__fail(MAREY_ENOMEM, "%s", source->failure)
                                          : MAREY_OK;
}

static marey_status read_all(struct sources *sources)
{
    const struct marey__scaling_read_options *options = sources->options;
    const struct marey__tasks tasks = {.run = read_nth,
                                       .ctx = sources,
                                       .n = sources->n,
                                       .n_jobs = options->n_jobs,
                                       .progress = options->progress,
                                       .progress_ctx = options->progress_ctx};
    /* A single source uses all threads; several use one each. */
    sources->n_jobs = sources->n == 1 ? options->n_jobs : 1;
    return marey__tasks_run(&tasks);
}

/* ---- merging ---- */

static marey_status take_all(struct marey__scaling_runs *runs, const struct sources *sources,
                             const char *path)
{
    const struct marey__scaling_reading reading = {.runs = runs, .options = sources->options};
    const struct source *failed = NULL;
    const size_t n_before = runs->n;
    size_t n_failed = 0;
    for (size_t i = 0; i < sources->n; i++) {
        const struct source *source = &sources->list[i];
        if (source->status != MAREY_OK) {
            failed = n_failed++ == 0 ? source : failed;
            if (n_failed <= MAX_FAILURES && sources->n > 1)
                MAREY_TRY(marey__scaling_read_note(&reading, "Left out: %s.", source->failure));
            continue;
        }
        for (size_t k = 0; k < source->runs.n; k++)
            MAREY_TRY(marey__scaling_runs_add(runs, &source->runs.list[k]));
        for (size_t k = 0; k < source->runs.n_notes; k++)
            MAREY_TRY(marey__scaling_runs_note(runs, source->runs.notes[k]));
    }
    if (runs->n == n_before && sources->has_itwinai && sources->options->convert == NULL)
        return marey__fail(MAREY_EFORMAT,
                           "%s has CSV files of itwinai, which marey.itwinai (Python) converts",
                           path);
    if (runs->n == n_before && failed != NULL)
        return marey__fail(failed->status, "%s", failed->failure);
    if (runs->n == n_before)
        return marey__fail(MAREY_EFORMAT, "%s has no measured run in it", path);
    if (n_failed > 1)
        MAREY_TRY(marey__scaling_read_note(&reading, "%s: %zu of %zu parts could not be read.",
                                           path, n_failed, sources->n));
    return MAREY_OK;
}

static void sources_fini(struct sources *sources)
{
    for (size_t i = 0; i < sources->n; i++) {
        if (sources->list[i].is_converted)
            unlink(sources->list[i].path);
        marey__free(sources->list[i].path);
        marey__scaling_runs_fini(&sources->list[i].runs);
    }
    marey__free(sources->list);
}

marey_status marey__scaling_runs_read(struct marey__scaling_runs *runs, const char *path,
                                      bool is_store,
                                      const struct marey__scaling_read_options *options)
{
    struct sources sources MAREY__FINALLY(sources_fini) = {.options = options};
    MAREY_TRY(find_sources(&sources, path, is_store));
    MAREY_TRY(read_all(&sources));
    return take_all(runs, &sources, path);
}
