/*
 * Stats files, docs/formats/stats.md: an object of which these keys are read and all others skipped:
 *
 *   "series"     {"forward": [ns, ns, ...], ...}, or as a Stopwatch writes it,
 *                [{"iteration": 0, "name": "forward", "total_ns": ns}, ...]; the name "(iteration)" is the whole
 *   "start"      seconds since 1970
 *   "runs"       a list of such objects, each a run
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/compare/internal.h"
#include "codec/internal.h"

struct values {
    float *ns;
    size_t n, cap;
};

struct file {
    struct marey__json *json;
    const char *text;
    struct marey__comparison *c;
    const struct marey__source *source;
    const struct marey__compare_options *options;
};

/* One run while it is read. */
struct stats {
    const struct file *file;
    struct marey__json *json; /* of the file */
    struct values *ranges;    /* by name */
    size_t n_ranges, cap;
    struct values whole;
    double start;
    bool has_times;
};

static marey_status wrong(const struct file *file, const char *words)
{
    size_t line = 1;
    const char *const end = file->text + marey__json_offset(file->json);
    if (file->json->status == MAREY_ENOMEM)
        return marey__no_memory();
    for (const char *at = file->text; at < end; at++)
        line += *at == '\n';
    return marey__fail(MAREY_EFORMAT, "%s is not a file of stats: %s, line %zu", file->source->path,
                       file->json->mistake != NULL ? file->json->mistake : words, line);
}

/* Call at the end of a list or object, which may be due to an error. */
static marey_status end(const struct file *file)
{
    return file->json->mistake != NULL ? wrong(file, "") : MAREY_OK;
}

/* ---- values ---- */

static struct values *values_of(struct stats *stats, const char *name, size_t len)
{
    if (marey__text_is(name, len, MAREY__WHOLE))
        return &stats->whole;
    struct marey__comparison *const c = stats->file->c;
    const uint32_t number =
        marey__names_keep(&c->names[MAREY__COMPARED_RANGES], &c->texts, name, len);
    return number != MAREY__NO_NAME && marey__extend(&stats->ranges, &stats->n_ranges, &stats->cap,
                                                     (size_t)number + 1, sizeof *stats->ranges)
               ? &stats->ranges[number]
               : NULL;
}

/* `name` is for the message. */
static marey_status add_value(struct stats *stats, struct values *values, const char *name,
                              enum marey__json_token token, double ns)
{
    if (token != MAREY__JSON_NUMBER || !(ns >= 0) || isinf(ns))
        return marey__fail(
            MAREY_EINVAL,
            "%s: time %zu of range '%s' is %s; times are nanoseconds, finite and not "
            "negative",
            stats->file->source->path, values->n, name,
            token != MAREY__JSON_NUMBER ? "no number"
            : isnan(ns)                 ? "NaN"
            : isinf(ns)                 ? "infinite"
                                        : "negative");
    MAREY__TRY_MEMORY(MAREY__PUSH(values->ns, values->n, values->cap, (float)ns));
    stats->has_times = true;
    return MAREY_OK;
}

static marey_status take_list(struct stats *stats, struct values *values, const char *name)
{
    enum marey__json_token token;
    while (marey__json_next_item(stats->json, &token))
        MAREY_TRY(add_value(stats, values, name, token, marey__json_number(stats->json, token)));
    return end(stats->file);
}

/* ---- series ---- */

/* {"forward": [..]} */
static marey_status take_by_name(struct stats *stats)
{
    while (marey__json_next_key(stats->json)) {
        struct values *values = values_of(stats, stats->json->text, stats->json->text_len);
        char *const name MAREY__FREED = marey__strndup(stats->json->text, stats->json->text_len);
        MAREY__TRY_MEMORY(values != NULL && name != NULL);
        MAREY_TRY(marey__json_next(stats->json) == MAREY__JSON_ARRAY
                      ? take_list(stats, values, name)
                      : wrong(stats->file, "a range of \"series\" is not a list of times"));
    }
    return end(stats->file);
}

/* {"name": .., "total_ns": ..}, in any order, skipping other keys; starts after the brace. */
static marey_status take_row(struct stats *stats, struct marey__buf *name)
{
    double ns = NAN;
    enum marey__json_token time = MAREY__JSON_NULL;
    name->len = 0;
    while (marey__json_next_key(stats->json)) {
        const bool is_name = marey__json_is(stats->json, "name"),
                   is_time = marey__json_is(stats->json, "total_ns");
        const enum marey__json_token token = marey__json_next(stats->json);
        if (is_name && token == MAREY__JSON_STRING)
            marey__buf_put(name, stats->json->text, stats->json->text_len);
        else if (is_time)
            time = token, ns = marey__json_number(stats->json, token);
        if (!marey__json_skip_from(stats->json, token))
            return wrong(stats->file, "");
    }
    marey__buf_put(name, "", 1);
    MAREY_TRY(end(stats->file));
    struct values *values = name->failed ? NULL : values_of(stats, name->data, name->len - 1);
    MAREY__TRY_MEMORY(values != NULL);
    return add_value(stats, values, name->data, time, ns);
}

/* [{"name": .., "total_ns": ..}, ..] */
static marey_status take_rows(struct stats *stats)
{
    enum marey__json_token token;
    struct marey__buf name MAREY__FINALLY(marey__buf_fini) = {0};
    while (marey__json_next_item(stats->json, &token))
        MAREY_TRY(token == MAREY__JSON_OBJECT
                      ? take_row(stats, &name)
                      : wrong(stats->file,
                              "a row of \"series\" is not an object with name and total_ns"));
    return end(stats->file);
}

/* ---- a run ---- */

static bool digest_values(struct stats *stats, struct marey__process_times *times,
                          const struct marey__name *name, struct values *values, size_t n_iterations)
{
    const size_t skip = MAREY__MIN(stats->file->options->skip, values->n);
    uint32_t *const scratch MAREY__FREED = marey__calloc(values->n + 1, sizeof *scratch);
    size_t n = 0;
    double sum = 0;
    if (scratch == NULL)
        return false;
    for (size_t i = skip; i < values->n; i++) {
        sum += (double)values->ns[i];
        values->ns[n] = values->ns[i];
        n += values->ns[i] > 0 || name == NULL;
    }
    const double mean = n_iterations != 0 ? sum / (double)n_iterations : sum;
    if (n != 0 && name != NULL)
        return marey__process_times_add(times, name, values->ns, n, mean, scratch);
    if (n != 0) {
        marey__digest_make_whole(&times->whole, values->ns, n, scratch);
        times->whole_ns = mean;
    }
    return true;
}

static marey_status finish_run(struct stats *stats)
{
    struct marey__comparison *const c = stats->file->c;
    const struct marey__source *const source = stats->file->source;
    struct marey__process_times times MAREY__FINALLY(marey__process_times_fini) = {0};
    const size_t skip = MAREY__MIN(stats->file->options->skip, stats->whole.n);
    times.n_iterations = stats->whole.n - skip;
    times.n_left_out = skip;
    MAREY__TRY_MEMORY(digest_values(stats, &times, NULL, &stats->whole, times.n_iterations));
    for (size_t i = 0; i < stats->n_ranges; i++) {
        const struct marey__name name = c->names[MAREY__COMPARED_RANGES].names[i];
        if (marey__name_matches(stats->file->options->filter, name.text, name.len))
            MAREY__TRY_MEMORY(
                digest_values(stats, &times, &name, &stats->ranges[i], times.n_iterations));
    }
    struct marey__compared_run *const run = marey__runs_add(&c->sides[source->side]);
    MAREY__TRY_MEMORY(run != NULL);
    run->path = source->path;
    run->start = stats->start;
    run->n_processes = 1;
    MAREY__TRY_MEMORY(marey__run_take(run, &c->names[MAREY__COMPARED_RANGES], &times));
    return MAREY_OK;
}

static void free_run(struct stats *stats)
{
    for (size_t i = 0; i < stats->n_ranges; i++)
        marey__free(stats->ranges[i].ns);
    MAREY__FREE_ALL(stats->ranges, stats->whole.ns);
}

static marey_status take_runs(const struct file *file);

static marey_status take_entry(struct stats *stats, bool may_have_runs)
{
    const bool is_series = marey__json_is(stats->json, "series"),
               is_start = marey__json_is(stats->json, "start"),
               is_runs = marey__json_is(stats->json, "runs");
    const enum marey__json_token token = marey__json_next(stats->json);
    if (is_series && token == MAREY__JSON_OBJECT)
        return take_by_name(stats);
    if (is_series && token == MAREY__JSON_ARRAY)
        return take_rows(stats);
    if (is_runs && token == MAREY__JSON_ARRAY && may_have_runs)
        return take_runs(stats->file);
    const double number = marey__json_number(stats->json, token);
    if (is_start && isfinite(number))
        stats->start = number;
    return marey__json_skip_from(stats->json, token) ? MAREY_OK : wrong(stats->file, "");
}

/* Starts after the brace. */
static marey_status take_object(struct stats *stats, bool may_have_runs)
{
    while (marey__json_next_key(stats->json))
        MAREY_TRY(take_entry(stats, may_have_runs));
    MAREY_TRY(end(stats->file));
    return stats->has_times ? finish_run(stats) : MAREY_OK;
}

static marey_status take_runs(const struct file *file)
{
    enum marey__json_token token;
    while (marey__json_next_item(file->json, &token)) {
        struct stats stats = {.file = file, .json = file->json};
        const marey_status status = token == MAREY__JSON_OBJECT
                                        ? take_object(&stats, false)
                                        : wrong(file, "an entry of \"runs\" is not an object");
        free_run(&stats);
        MAREY_TRY(status);
    }
    return end(file);
}

marey_status marey__stats_parse(struct marey__comparison *c, const struct marey__source *source,
                                const char *text, size_t len,
                                const struct marey__compare_options *options)
{
    struct marey__json json;
    const struct file file = {&json, text, c, source, options};
    struct stats stats = {.file = &file, .json = &json};
    const struct marey__compared_runs *const side = &c->sides[source->side];
    const size_t n_before = side->n;
    marey__json_init_text(&json, text, len, MAREY__JSON_STRICT | MAREY__JSON_NAN);
    marey_status status = marey__json_next(&json) == MAREY__JSON_OBJECT
                              ? take_object(&stats, true)
                              : wrong(&file, "it does not begin with an object");
    if (status == MAREY_OK && marey__json_next(&json) != MAREY__JSON_END)
        status = wrong(&file, "something follows the object");
    if (status == MAREY_OK && side->n == n_before)
        status = marey__fail(MAREY_EMISMATCH,
                             "%s has no times in it: \"series\" is missing or empty", source->path);
    free_run(&stats);
    marey__json_fini(&json);
    return status;
}

/* ---- the file ---- */

bool marey__is_stats(const char *path)
{
    char first[64];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    const ssize_t n = is_file ? read(fd, first, sizeof first - 1) : 0;
    close(fd);
    first[n > 0 ? n : 0] = '\0';
    return first[strspn(first, " \t\r\n")] == '{';
}

marey_status marey__stats_read(struct marey__comparison *c, const struct marey__source *source,
                               const struct marey__compare_options *options)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__byte_source *opened = NULL;
    const char *bytes;
    size_t len = 1;
    marey_status status = marey__bytes_open(source->path, &opened);
    while (status == MAREY_OK && len != 0 && !text.failed) {
        status = marey__bytes_next(opened, &bytes, &len);
        if (status == MAREY_OK)
            marey__buf_put(&text, bytes, len);
    }
    marey__bytes_close(opened);
    MAREY_TRY(status);
    MAREY__TRY_MEMORY(!text.failed);
    return marey__stats_parse(c, source, text.data, text.len, options);
}
