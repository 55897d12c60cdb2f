/*
 * Files of stats, docs/formats/stats.md: an object, of which these keys are read and all others are stepped over:
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

#include "analyze/compare_internal.h"
#include "analyze/json_reader.h"

struct values {
    float *ns;
    size_t n, cap;
};

/* One run in the making. */
struct stats {
    struct kymo__json_reader *json;
    struct kymo__compared_runs *side;
    struct kymo__names *names;
    struct kymo__arena *texts;
    const char *path;
    const struct kymo_compare_options *options;
    struct values *regions; /* by name */
    size_t n_regions, cap;
    struct values whole;
    double start;
    bool has_times;
};

static kymo_status no_memory(const struct stats *stats)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the stats in %s", stats->path);
}

static kymo_status wrong(const struct stats *stats, const char *words)
{
    size_t line = 1;
    for (const char *at = stats->json->start; at < stats->json->at; at++)
        line += *at == '\n';
    if (stats->json->mistake != NULL)
        return kymo__fail(KYMO_EFORMAT, "%s is no file of stats: it has %s", stats->path,
                          stats->json->mistake);
    return kymo__fail(KYMO_EFORMAT, "%s is no file of stats: %s, line %zu", stats->path, words, line);
}

/* ---- values ---- */

static struct values *values_of(struct stats *stats, const char *name, size_t len)
{
    if (len == strlen(KYMO__WHOLE) && memcmp(name, KYMO__WHOLE, len) == 0)
        return &stats->whole;
    const char *kept = kymo__arena_text(stats->texts, name, len);
    const uint32_t number =
        kept != NULL ? kymo__names_number(stats->names, kept, len) : KYMO__NO_NAME;
    if (number == KYMO__NO_NAME ||
        !kymo__grow(&stats->regions, &stats->cap, (size_t)number + 1, sizeof *stats->regions))
        return NULL;
    while (stats->n_regions <= number)
        stats->regions[stats->n_regions++] = (struct values){0};
    return &stats->regions[number];
}

/* `name` for the sentence. */
static kymo_status add_value(struct stats *stats, struct values *values, const char *name,
                             enum kymo__json_token token)
{
    if (token != KYMO__JSON_NUMBER || !(stats->json->number >= 0) || isinf(stats->json->number))
        return kymo__fail(
            KYMO_EINVAL,
            "%s: time %zu of region '%s' is %s; times are nanoseconds, finite and not "
            "negative",
            stats->path, values->n, name,
            token != KYMO__JSON_NUMBER   ? "no number"
            : isnan(stats->json->number) ? "NaN"
            : isinf(stats->json->number) ? "infinite"
                                         : "negative");
    if (!kymo__grow(&values->ns, &values->cap, values->n + 1, sizeof *values->ns))
        return no_memory(stats);
    values->ns[values->n++] = (float)stats->json->number;
    stats->has_times = true;
    return KYMO_OK;
}

static kymo_status take_list(struct stats *stats, struct values *values, const char *name)
{
    bool is_first = true;
    enum kymo__json_token token;
    while (kymo__json_next_item(stats->json, &is_first, &token))
        KYMO_TRY(add_value(stats, values, name, token));
    return stats->json->mistake != NULL ? wrong(stats, "") : KYMO_OK;
}

/* ---- series ---- */

/* {"forward": [..]} */
static kymo_status take_by_name(struct stats *stats)
{
    bool is_first = true;
    while (kymo__json_next_key(stats->json, &is_first)) {
        struct values *values = values_of(stats, stats->json->text.data, stats->json->text.len);
        if (values == NULL)
            return no_memory(stats);
        char *name = kymo__strndup(stats->json->text.data, stats->json->text.len);
        if (name == NULL)
            return no_memory(stats);
        const kymo_status status =
            kymo__json_next(stats->json) == KYMO__JSON_LIST
                ? take_list(stats, values, name)
                : wrong(stats, "a region of \"series\" is not a list of times");
        kymo__free(name);
        KYMO_TRY(status);
    }
    return stats->json->mistake != NULL ? wrong(stats, "") : KYMO_OK;
}

/* {"name": .., "total_ns": ..}, in any order, further keys skipped; behind its brace. */
static kymo_status take_row(struct stats *stats, struct kymo__buf *name)
{
    bool is_first = true;
    double number = NAN;
    enum kymo__json_token time = KYMO__JSON_NULL;
    name->len = 0;
    while (kymo__json_next_key(stats->json, &is_first)) {
        const bool is_name =
                       stats->json->text.len == 4 && memcmp(stats->json->text.data, "name", 4) == 0,
                   is_time = stats->json->text.len == 8 &&
                             memcmp(stats->json->text.data, "total_ns", 8) == 0;
        const enum kymo__json_token token = kymo__json_next(stats->json);
        if (is_name && token == KYMO__JSON_TEXT)
            kymo__buf_put(name, stats->json->text.data, stats->json->text.len);
        else if (is_time)
            time = token, number = stats->json->number;
        if (!kymo__json_skip(stats->json, token))
            return wrong(stats, "");
    }
    kymo__buf_put(name, "", 1);
    if (stats->json->mistake != NULL)
        return wrong(stats, "");
    struct values *values = name->failed ? NULL : values_of(stats, name->data, name->len - 1);
    if (values == NULL)
        return no_memory(stats);
    stats->json->number = number;
    return add_value(stats, values, name->data, time);
}

/* [{"name": .., "total_ns": ..}, ..] */
static kymo_status take_rows(struct stats *stats)
{
    bool is_first = true;
    enum kymo__json_token token;
    struct kymo__buf name = {0};
    kymo_status status = KYMO_OK;
    while (status == KYMO_OK && kymo__json_next_item(stats->json, &is_first, &token))
        status = token == KYMO__JSON_OBJECT
                     ? take_row(stats, &name)
                     : wrong(stats, "a row of \"series\" is no object with name and total_ns");
    kymo__buf_fini(&name);
    KYMO_TRY(status);
    return stats->json->mistake != NULL ? wrong(stats, "") : KYMO_OK;
}

/* ---- a run ---- */

static bool digest_values(struct stats *stats, struct kymo__process_times *times,
                          const struct kymo__name *name, struct values *values, size_t n_iterations)
{
    const size_t skip = KYMO__MIN(stats->options->skip, values->n);
    uint32_t *scratch = kymo__calloc(values->n + 1, sizeof *scratch);
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
    bool ok = true;
    if (n != 0 && name == NULL) {
        kymo__digest_make(&times->whole, values->ns, n, scratch);
        if (times->wants_quantiles)
            kymo__digest_spread(&times->whole, values->ns, n, scratch);
        times->whole_ns = mean;
    } else if (n != 0) {
        ok = kymo__process_times_add(times, name, values->ns, n, mean, scratch);
    }
    kymo__free(scratch);
    return ok;
}

static kymo_status finish_run(struct stats *stats)
{
    struct kymo__process_times times = {.wants_quantiles = stats->options->wants_quantiles != 0};
    const size_t skip = KYMO__MIN(stats->options->skip, stats->whole.n);
    times.n_iterations = stats->whole.n - skip;
    times.n_left_out = skip;
    bool ok = digest_values(stats, &times, NULL, &stats->whole, times.n_iterations);
    for (size_t i = 0; ok && i < stats->n_regions; i++) {
        const struct kymo__name name = stats->names->names[i];
        if (kymo__name_matches(stats->options->filter, name.text, name.len))
            ok = digest_values(stats, &times, &name, &stats->regions[i], times.n_iterations);
    }
    struct kymo__compared_run *run = ok ? kymo__runs_add(stats->side) : NULL;
    if (run != NULL) {
        run->path = stats->path;
        run->start = stats->start;
        run->n_processes = 1;
        ok = kymo__run_take(run, stats->names, &times);
    }
    kymo__process_times_fini(&times);
    return ok && run != NULL ? KYMO_OK : no_memory(stats);
}

static void free_run(struct stats *stats)
{
    for (size_t i = 0; i < stats->n_regions; i++)
        kymo__free(stats->regions[i].ns);
    kymo__free(stats->regions);
    kymo__free(stats->whole.ns);
}

static kymo_status take_runs(const struct stats *around);

static bool key_is(const struct stats *stats, const char *key)
{
    const struct kymo__buf *text = &stats->json->text;
    return text->len == strlen(key) && memcmp(text->data, key, text->len) == 0;
}

static kymo_status take_entry(struct stats *stats, bool may_have_runs)
{
    const bool is_series = key_is(stats, "series"), is_start = key_is(stats, "start"),
               is_runs = key_is(stats, "runs");
    const enum kymo__json_token token = kymo__json_next(stats->json);
    if (is_series && token == KYMO__JSON_OBJECT)
        return take_by_name(stats);
    if (is_series && token == KYMO__JSON_LIST)
        return take_rows(stats);
    if (is_runs && token == KYMO__JSON_LIST && may_have_runs)
        return take_runs(stats);
    if (is_start && token == KYMO__JSON_NUMBER && isfinite(stats->json->number))
        stats->start = stats->json->number;
    return kymo__json_skip(stats->json, token) ? KYMO_OK : wrong(stats, "");
}

/* Behind its brace. */
static kymo_status take_object(struct stats *stats, bool may_have_runs)
{
    bool is_first = true;
    while (kymo__json_next_key(stats->json, &is_first))
        KYMO_TRY(take_entry(stats, may_have_runs));
    if (stats->json->mistake != NULL)
        return wrong(stats, "");
    return stats->has_times ? finish_run(stats) : KYMO_OK;
}

static kymo_status take_runs(const struct stats *around)
{
    bool is_first = true;
    enum kymo__json_token token;
    while (kymo__json_next_item(around->json, &is_first, &token)) {
        struct stats stats = {.json = around->json,
                              .side = around->side,
                              .names = around->names,
                              .texts = around->texts,
                              .path = around->path,
                              .options = around->options};
        const kymo_status status = token == KYMO__JSON_OBJECT
                                       ? take_object(&stats, false)
                                       : wrong(&stats, "an entry of \"runs\" is no object");
        free_run(&stats);
        KYMO_TRY(status);
    }
    return around->json->mistake != NULL ? wrong(around, "") : KYMO_OK;
}

kymo_status kymo__stats_parse(struct kymo__compared_runs *side, struct kymo__names *names,
                              struct kymo__arena *texts, const char *path, const char *text,
                              size_t len, const struct kymo_compare_options *options)
{
    struct kymo__json_reader json = {.start = text, .at = text, .end = text + len};
    struct stats stats = {
        .json = &json, .side = side, .names = names, .texts = texts, .path = path, .options = options};
    const size_t n_before = side->n;
    kymo_status status = kymo__json_next(&json) == KYMO__JSON_OBJECT
                             ? take_object(&stats, true)
                             : wrong(&stats, "it does not begin with an object");
    if (status == KYMO_OK && kymo__json_next(&json) != KYMO__JSON_END)
        status = wrong(&stats, "something follows behind the object");
    if (status == KYMO_OK && side->n == n_before)
        status = kymo__fail(KYMO_EMISMATCH, "%s has no times in it: \"series\" is missing or empty",
                            path);
    free_run(&stats);
    kymo__json_fini(&json);
    return status;
}

/* ---- the file ---- */

bool kymo__is_stats(const char *path)
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

kymo_status kymo__stats_read(struct kymo__compared_runs *side, struct kymo__names *names,
                             struct kymo__arena *texts, const char *path,
                             const struct kymo_compare_options *options)
{
    enum { STEP = 1 << 20 };
    struct kymo__buf text = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && !text.failed) {
        char *room = kymo__buf_extend(&text, STEP);
        n = room != NULL ? read(fd, room, STEP) : 0;
        text.len -= room != NULL ? (size_t)(STEP - (n > 0 ? n : 0)) : 0;
    }
    kymo_status status = n < 0         ? kymo__fail_errno("read %s", path)
                         : text.failed ? kymo__fail(KYMO_ENOMEM, "no memory to read %s", path)
                                       : KYMO_OK;
    if (fd >= 0)
        close(fd);
    if (status == KYMO_OK)
        status = kymo__stats_parse(side, names, texts, path, text.data, text.len, options);
    kymo__buf_fini(&text);
    return status;
}
