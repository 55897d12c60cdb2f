/* Compares two steps: aligns their values, compares the pairs in several threads, and stores the results. */
#include <stdatomic.h>
#include <string.h>

#include "analyze/walk/internal.h"
#include "tensor/diff/internal.h"

enum {
    MAX_VALUE_TEXT = 200,   /* for a value that is not a tensor */
    BEFORE_DIFFERENCE = 40, /* characters shown before the first difference */
    FEW_BYTES = 1 << 20,    /* not worth a thread */
    MAX_UNKNOWN = 5,        /* messages about values that could not be compared */
};

/* ---- describing values ---- */

static uint32_t phase_order(const struct marey_dumped_value *value)
{
    if (value->phase != NULL && strncmp(value->phase, "optim", 5) == 0)
        return 2;
    return value->tree == MAREY_DUMP_GRADIENTS ||
           (value->phase != NULL && strncmp(value->phase, "backward", 8) == 0);
}

/* Where to start showing two texts so that their first difference is visible: at 0, or a few characters before it. */
static size_t first_shown(const struct marey_dumped_value *a, const struct marey_dumped_value *b)
{
    size_t i = 0;
    if (a == NULL || b == NULL)
        return 0;
    while (i < a->text_len && i < b->text_len && a->text[i] == b->text[i])
        i++;
    if (i <= BEFORE_DIFFERENCE || i == MAREY__MAX(a->text_len, b->text_len))
        return 0;
    i -= BEFORE_DIFFERENCE;
    while (i > 0 && ((unsigned char)a->text[i] & 0xc0) == 0x80)
        i--; /* back to the start of a character */
    return i;
}

/* A copy owned by the diff; NULL for NULL. */
static const char *keep(struct marey_diff *diff, const char *text, bool *has_memory)
{
    const char *const copy =
        text != NULL ? marey__arena_text(&diff->texts, text, strlen(text)) : NULL;
    *has_memory &= copy != NULL || text == NULL;
    return copy;
}

static const char *form_of(struct marey_diff *diff, const struct marey_dumped_value *value,
                           size_t from, bool *has_memory)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    if (value == NULL)
        return NULL;
    if (marey__diff_is_tensor(value)) {
        marey__buf_puts(&text, "[");
        for (uint32_t i = 0; i < value->rank; i++)
            marey__buf_printf(&text, "%s%lld", i == 0 ? "" : ",", (long long)value->sizes[i]);
        marey__buf_puts(&text, "]");
    } else if (value->kind == MAREY_DUMP_DICT || value->kind == MAREY_DUMP_LIST) {
        marey__buf_puts(&text, value->kind == MAREY_DUMP_DICT ? "{}" : "[]");
    } else {
        const size_t n = MAREY__MIN(value->text_len - from, (size_t)MAX_VALUE_TEXT);
        if (value->text_len == 0 && value->kind == MAREY_DUMP_TEXT)
            marey__buf_puts(&text, "\"\"");
        marey__buf_puts(&text, from != 0 ? "..." : "");
        marey__utf8_put(&text, value->text + from, n);
        marey__buf_puts(&text, from + n < value->text_len ? "..." : "");
    }
    marey__buf_put(&text, "", 1);
    *has_memory &= !text.failed;
    return text.failed ? NULL : keep(diff, text.data, has_memory);
}

marey_status marey__diff_describe(struct marey_diff *diff, const struct marey_dumped_value *a,
                                  const struct marey_dumped_value *b, struct marey__diff_result *out)
{
    const struct marey_dumped_value *value = a != NULL ? a : b;
    MAREY_ASSERT(value != NULL); /* at least one side has it */
    const bool is_renamed = a != NULL && b != NULL && strcmp(a->name, b->name) != 0;
    const size_t from = first_shown(a, b);
    bool has_memory = true;
    out->tree = value->tree;
    out->seq = value->seq;
    out->phase_order = phase_order(value);
    out->path = keep(diff, value->name, &has_memory);
    out->path_b = keep(diff, is_renamed ? b->name : NULL, &has_memory);
    out->phase = keep(diff, value->phase, &has_memory);
    out->source = keep(diff, value->source, &has_memory);
    out->dtype_a = a != NULL ? a->dtype : MAREY_DTYPE_NONE;
    out->dtype_b = b != NULL ? b->dtype : MAREY_DTYPE_NONE;
    out->form_a = form_of(diff, a, from, &has_memory);
    out->form_b = form_of(diff, b, from, &has_memory);
    return has_memory ? MAREY_OK : marey__no_memory();
}

/* ---- one result ---- */

static void drop(struct marey__diff_result *result)
{
    MAREY__FREE_ALL(result->details, (void *)result->why);
}

marey_status marey__diff_append(struct marey_diff *diff, struct marey__diff_result *result)
{
    if (!marey__grow(&diff->results, &diff->cap, diff->n + 1, sizeof *diff->results)) {
        drop(result);
        return marey__no_memory();
    }
    if (result->why != NULL && diff->n_reported++ < MAX_UNKNOWN)
        marey__diff_warn(diff, "%s of step %llu could not be compared: %s", result->path,
                         (unsigned long long)result->step, result->why);
    marey__free((void *)result->why);
    result->why = NULL;
    diff->results[diff->n++] = *result;
    diff->n_retyped += result->is_retyped;
    diff->n_renamed += result->path_b != NULL;
    diff->n_by_status[result->status]++;
    return MAREY_OK;
}

/* ---- comparing ---- */

struct job {
    struct marey__diff_inputs inputs;
    const struct marey__diff_pair *pairs;
    struct marey__diff_result *results;
    size_t *heavy; /* pairs whose numbers are read */
    size_t n_heavy;
    uint64_t n_bytes;
    atomic_size_t next; /* index in `heavy`; relaxed, as joining the threads orders the results */
    atomic_int has_failed; /* on out of memory */
};

static void compare_one(struct job *job, size_t i)
{
    if (marey__diff_compare_pair(&job->inputs, job->pairs[i].a, job->pairs[i].b, &job->results[i]) !=
        MAREY_OK)
        atomic_store_explicit(&job->has_failed, 1, memory_order_relaxed);
}

static void compare_some(void *ctx, bool may_tell)
{
    struct job *job = ctx;
    (void)may_tell;
    for (;;) {
        const size_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (i >= job->n_heavy)
            return;
        compare_one(job, job->heavy[i]);
    }
}

static bool is_heavy(const struct job *job, const struct marey__diff_pair *pair)
{
    const struct marey_dumped_value *a = &job->inputs.a->values[pair->a],
                                    *b = &job->inputs.b->values[pair->b];
    const struct marey_tolerance any = {.nan_equal = 1};
    return (a->has_data || b->has_data) && !marey__diff_equal_digests(a, b, &any);
}

/* Equal digests, texts and the like are compared immediately; the rest is distributed to threads. */
static void compare_all(struct job *job, size_t n, uint32_t n_jobs)
{
    for (size_t i = 0; i < n; i++) {
        const struct marey__diff_pair *pair = &job->pairs[i];
        if (pair->a == MAREY__DIFF_NONE || pair->b == MAREY__DIFF_NONE) {
            job->results[i].status =
                pair->a == MAREY__DIFF_NONE ? MAREY_DIFF_MISSING : MAREY_DIFF_EXTRA;
        } else if (is_heavy(job, pair)) {
            job->n_bytes += job->inputs.b->values[pair->b].n_bytes;
            job->heavy[job->n_heavy++] = i;
        } else {
            compare_one(job, i);
        }
    }
    if (job->n_heavy == 1)
        job->inputs.n_threads = n_jobs;
    if (job->n_heavy == 1 || job->n_bytes < FEW_BYTES)
        compare_some(job, true);
    else
        marey__run_parallel(compare_some, job, n_jobs, job->n_heavy);
}

/* ---- a step ---- */

static void keep_wanted(const struct marey_diff *diff, const struct marey__diff_side *a,
                        const struct marey__diff_side *b, struct marey__diff_pairs *pairs)
{
    size_t n = 0;
    for (size_t i = 0; i < pairs->n; i++) {
        const struct marey__diff_pair pair = pairs->list[i];
        const char *name =
            pair.a != MAREY__DIFF_NONE ? a->values[pair.a].name : b->values[pair.b].name;
        if (marey__name_matches(diff->options.filter, name, strlen(name)))
            pairs->list[n++] = pair;
    }
    pairs->n = n;
}

static marey_status put_down(struct marey_diff *diff, const struct marey__diff_place *place,
                             const struct marey__diff_side *a, const struct marey__diff_side *b,
                             const struct marey__diff_pair *pair, struct marey__diff_result *result)
{
    result->step = place->step;
    result->rank = place->rank;
    const marey_status status =
        marey__diff_describe(diff, pair->a != MAREY__DIFF_NONE ? &a->values[pair->a] : NULL,
                             pair->b != MAREY__DIFF_NONE ? &b->values[pair->b] : NULL, result);
    if (status == MAREY_OK)
        return marey__diff_append(diff, result);
    drop(result);
    return status;
}

static marey_status compare_pairs(struct marey_diff *diff, const struct marey__diff_place *place,
                                  struct job *job, size_t n)
{
    MAREY__TRY_MEMORY(job->results != NULL && job->heavy != NULL);
    compare_all(job, n, diff->options.n_jobs);
    size_t i = 0;
    marey_status status = MAREY_OK;
    if (atomic_load_explicit(&job->has_failed, memory_order_relaxed))
        status = marey__no_memory();
    for (; i < n && status == MAREY_OK; i++) {
        job->results[i].order = i;
        status =
            put_down(diff, place, job->inputs.a, job->inputs.b, &job->pairs[i], &job->results[i]);
    }
    for (; i < n; i++)
        drop(&job->results[i]);
    return status;
}

marey_status marey__diff_sides(struct marey_diff *diff, const struct marey__diff_place *place,
                               const struct marey__diff_side *a, const struct marey__diff_side *b,
                               const struct marey__diff_side *noise)
{
    struct marey__diff_pairs pairs MAREY__FINALLY(marey__diff_pairs_fini) = {0};
    MAREY_TRY(marey__diff_align(a, b, &pairs));
    keep_wanted(diff, a, b, &pairs);
    struct marey__diff_result *const results MAREY__FREED =
        marey__calloc(pairs.n + 1, sizeof *results);
    size_t *const heavy MAREY__FREED = marey__calloc(pairs.n + 1, sizeof *heavy);
    struct job job = {.inputs = {&diff->options, a, b, noise, 1},
                      .pairs = pairs.list,
                      .results = results,
                      .heavy = heavy};
    MAREY_TRY(compare_pairs(diff, place, &job, pairs.n));
    if (pairs.by_names)
        marey__diff_warn(
            diff, "step %llu: the two sides have different names, and too many to align by order",
            (unsigned long long)place->step);
    return MAREY_OK;
}
