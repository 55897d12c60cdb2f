/*
 * What waits in the dumper against a step of an earlier dump. The dumper lends each value for the time of a call, so each
 * is paired, by its path, and judged as it comes.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "container/container_internal.h"
#include "diff/diff_pending.h"

/* ---- the value that waits, as if it had been read ---- */

static kymo_status get_waiting(const struct kymo__diff_side *side, size_t value,
                               struct kymo_tensor *out)
{
    (void)value;
    *out = *(const struct kymo_tensor *)side->ctx;
    return KYMO_OK;
}

static bool read_entry(struct kymo__waiting *w, const struct kymo_dump_entry *entry)
{
    w->name.len = 0;
    kymo__name_put(&w->name, KYMO_DUMP_TENSORS, entry->parts, entry->n_parts);
    kymo__buf_put(&w->name, "", 1);
    w->tensor = (struct kymo_tensor){0};
    if (entry->value.kind == KYMO_DUMP_TENSOR)
        w->tensor = entry->value.tensor;
    else if (entry->value.kind == KYMO_DUMP_LITERAL)
        kymo__diff_read_literal(entry->value.text, entry->value.text_len, &w->number, &w->tensor);
    w->value = (struct kymo_dumped_value){
        .tree = entry->tree,
        .parts = entry->parts,
        .n_parts = entry->n_parts,
        .name = w->name.failed ? "" : w->name.data,
        .seq = w->n_seen++,
        .kind = entry->value.kind,
        .text = entry->value.text,
        .text_len = entry->value.text_len,
        .type = entry->value.type,
        .dtype = w->tensor.dtype,
        .rank = w->tensor.rank,
        .sizes = w->tensor.sizes,
        .n_bytes = w->tensor.dtype != KYMO_DTYPE_NONE ? kymo_tensor_bytes(&w->tensor) : 0,
        .has_data = w->tensor.dtype != KYMO_DTYPE_NONE,
        .phase = entry->value.phase,
    };
    w->side =
        (struct kymo__diff_side){.values = &w->value, .n = 1, .get = get_waiting, .ctx = &w->tensor};
    return !w->name.failed;
}

/* ---- its place in the reference ---- */

size_t kymo__diff_find_reference(const struct kymo__waiting *w, const char *name)
{
    for (size_t i = 0; i < w->reference.n; i++) {
        const struct kymo_dumped_value *value = &w->reference.values[i];
        if (value->tree == w->diff->pending.tree && strcmp(value->name, name) == 0)
            return i;
    }
    return KYMO__DIFF_NONE;
}

/*
 * A list of numbers is one tensor in a JSON, where the program has a value for each position. The element that such a
 * position is becomes a reference by itself; false when there is none.
 */
static bool find_element(struct kymo__waiting *w, size_t *list)
{
    char *name = w->name.data;
    uint64_t places[KYMO_MAX_RANK];
    size_t n = 0, n_parts = w->value.n_parts;
    while (n_parts > 0 && n < KYMO_MAX_RANK && w->value.parts[n_parts - 1].key == NULL) {
        places[n++] = w->value.parts[--n_parts].index;
        struct kymo__buf prefix = {0};
        kymo__name_put(&prefix, KYMO_DUMP_TENSORS, w->value.parts, n_parts);
        kymo__buf_put(&prefix, "", 1);
        *list = prefix.failed ? KYMO__DIFF_NONE : kymo__diff_find_reference(w, prefix.data);
        kymo__buf_fini(&prefix);
        if (*list == KYMO__DIFF_NONE)
            continue;
        const struct kymo_dumped_value *value = &w->reference.values[*list];
        if (!value->has_data || value->rank != n)
            return false;
        uint64_t index = 0;
        for (size_t d = 0; d < n; d++) {
            if (places[n - 1 - d] >= (uint64_t)value->sizes[d])
                return false;
            index = index * (uint64_t)value->sizes[d] + places[n - 1 - d];
        }
        struct kymo_tensor whole;
        if (w->reference.get(&w->reference, *list, &whole) != KYMO_OK)
            return false;
        w->element = (struct kymo_tensor){.dtype = whole.dtype,
                                          .data = (const char *)whole.data +
                                                  index * kymo_dtype_size(whole.dtype)};
        w->element_value = (struct kymo_dumped_value){.tree = value->tree,
                                                      .name = name,
                                                      .kind = KYMO_DUMP_LITERAL,
                                                      .type = value->type,
                                                      .is_untyped = value->is_untyped,
                                                      .dtype = whole.dtype,
                                                      .has_data = 1};
        w->element_side = (struct kymo__diff_side){
            .values = &w->element_value, .n = 1, .get = get_waiting, .ctx = &w->element};
        return true;
    }
    return false;
}

/* A number of a manifest is a text there; it is compared as the number it is. */
static bool find_number(struct kymo__waiting *w, size_t reference)
{
    const struct kymo_dumped_value *const value = &w->reference.values[reference];
    if (value->kind != KYMO_DUMP_LITERAL || value->has_data || w->value.kind != KYMO_DUMP_LITERAL)
        return false;
    kymo__diff_read_literal(value->text, value->text_len, &w->number_b, &w->element);
    if (w->element.dtype == KYMO_DTYPE_NONE || !w->value.has_data)
        return false;
    w->element_value = *value;
    w->element_value.dtype = w->element.dtype;
    w->element_value.has_data = 1;
    w->element_side = (struct kymo__diff_side){
        .values = &w->element_value, .n = 1, .get = get_waiting, .ctx = &w->element};
    return true;
}

/* ---- judging ---- */

static kymo_status judge_waiting(struct kymo__waiting *w, const struct kymo__diff_side *b, size_t ib)
{
    struct kymo_diff *diff = w->diff;
    struct kymo__diff_result result = {.step = diff->step, .rank = -1, .order = w->value.seq};
    const struct kymo__diff_court court = {&diff->options, &w->side, b, NULL, 1};
    kymo_status status = kymo__diff_judge(&court, 0, ib, &result);
    if (status == KYMO_OK)
        status = kymo__diff_describe(diff, &w->value, &b->values[ib], &result);
    if (status == KYMO_OK)
        status = kymo__diff_put_errors(w, b, ib, &result);
    if (status != KYMO_OK) {
        kymo__free(result.details);
        kymo__free((void *)result.why);
        return status;
    }
    return kymo__diff_append(diff, &result);
}

/* A value that one side has alone; either is NULL. */
static kymo_status judge_alone(struct kymo__waiting *w, const struct kymo_dumped_value *a,
                               const struct kymo_dumped_value *b)
{
    struct kymo_diff *diff = w->diff;
    const struct kymo_dumped_value *one = a != NULL ? a : b;
    struct kymo__diff_result result = {
        .status = a == NULL ? KYMO_DIFF_MISSING : KYMO_DIFF_EXTRA,
        .step = diff->step,
        .rank = -1,
        .order = (a != NULL ? 0 : w->n_seen) + one->seq,
    };
    KYMO_TRY(kymo__diff_describe(diff, a, b, &result));
    if (kymo__diff_counts(diff, result.status))
        kymo__diff_put_alone(diff, &result);
    return kymo__diff_append(diff, &result);
}

kymo_status kymo__diff_judge_waiting(struct kymo__waiting *w, size_t reference)
{
    size_t list;
    if (reference != KYMO__DIFF_NONE) {
        w->was_seen[reference] = 1;
        return find_number(w, reference) ? judge_waiting(w, &w->element_side, 0)
                                         : judge_waiting(w, &w->reference, reference);
    }
    if (!find_element(w, &list))
        return judge_alone(w, &w->value, NULL);
    w->was_seen[list] = 1;
    return judge_waiting(w, &w->element_side, 0);
}

static bool is_picture(const struct kymo_dump_value *value)
{
    return value->kind == KYMO_DUMP_TENSOR &&
           (value->type == KYMO_DUMP_IMAGE_RGB || value->type == KYMO_DUMP_IMAGE_BGR ||
            value->type == KYMO_DUMP_IMAGE_I);
}

static int visit(void *ctx, const struct kymo_dump_entry *entry)
{
    struct kymo__waiting *w = ctx;
    if (entry->tree != w->diff->pending.tree)
        return 1;
    if (!read_entry(w, entry)) {
        w->status = kymo__fail(KYMO_ENOMEM, "no memory to compare with an earlier dump");
        return 0;
    }
    w->status = is_picture(&entry->value)
                    ? kymo__diff_judge_pictures(w, entry)
                    : kymo__diff_judge_waiting(w, kymo__diff_find_reference(w, w->value.name));
    return w->status == KYMO_OK;
}

static kymo_status judge_unseen(struct kymo__waiting *w)
{
    for (size_t i = 0; i < w->reference.n; i++)
        if (!w->was_seen[i] && w->reference.values[i].tree == w->diff->pending.tree)
            KYMO_TRY(judge_alone(w, NULL, &w->reference.values[i]));
    return KYMO_OK;
}

/* ---- the earlier dump ---- */

static kymo_status get_reference(const struct kymo__diff_side *side, size_t value,
                                 struct kymo_tensor *out)
{
    return kymo_dumps_get(side->ctx, side->number, value, out);
}

static void drop_reference(const struct kymo__diff_side *side, size_t value)
{
    kymo_dumps_drop(side->ctx, side->number, value);
}

static kymo_status find_step(kymo_dumps *dumps, const char *dir, const struct kymo_diff *diff,
                             size_t *number)
{
    size_t n = 0;
    for (size_t i = 0; i < kymo_dumps_count(dumps); i++) {
        struct kymo_dumped_step step;
        KYMO_TRY(kymo_dumps_step(dumps, i, &step));
        const bool is_rank =
            !diff->pending.has_rank || step.rank < 0 || step.rank == (int64_t)diff->pending.rank;
        if (step.step != diff->step || !is_rank)
            continue;
        *number = i;
        n++;
    }
    if (n == 0)
        return kymo__fail(KYMO_EIO, "there is no dump %llu in %s to compare with; write one first",
                          (unsigned long long)diff->step, dir);
    return KYMO_OK;
}

static kymo_status compare_waiting(struct kymo__waiting *w, kymo_dumps *dumps, const char *dir)
{
    size_t number = 0;
    KYMO_TRY(find_step(dumps, dir, w->diff, &number));
    w->reference = (struct kymo__diff_side){
        .get = get_reference, .drop = drop_reference, .ctx = dumps, .number = number};
    KYMO_TRY(kymo_dumps_values(dumps, number, &w->reference.values, &w->reference.n));
    w->was_seen = kymo__calloc(w->reference.n + 1, 1);
    if (w->was_seen == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory to compare with an earlier dump");
    KYMO_TRY(kymo_dump_visit_pending(visit, w));
    KYMO_TRY(w->status);
    KYMO_TRY(judge_unseen(w));
    w->diff->n_steps = 1;
    return kymo__diff_conclude(w->diff);
}

static kymo_status run_pending(struct kymo_diff *diff, const char *dir)
{
    struct kymo__waiting w = {.diff = diff};
    kymo_dumps *dumps = NULL;
    kymo_status status = kymo__diff_errors_create(diff);
    if (status == KYMO_OK)
        status = kymo_dumps_open(dir, &dumps);
    if (status == KYMO_OK)
        status = compare_waiting(&w, dumps, dir);
    if (status == KYMO_OK)
        status = kymo_table_status(diff->tables[KYMO__DIFF_ERRORS]);
    kymo_dumps_close(dumps);
    kymo__free(w.was_seen);
    kymo__buf_fini(&w.name);
    return status;
}

kymo_status kymo_diff_pending(const char *dir, uint64_t step,
                              const struct kymo_diff_pending_options *options, kymo_diff **out)
{
    const struct kymo_tolerance tolerance = {.abs = options->eps, .nan_equal = 1};
    const struct kymo_diff_options wants = {.tolerance = &tolerance,
                                            .allow_missing = options->allow_missing,
                                            .allow_extra = options->allow_extra,
                                            .allow_dtype = options->allow_dtype};
    struct kymo_diff *diff;
    KYMO_TRY(kymo__diff_create(&wants, &diff));
    diff->is_pending = true;
    diff->step = step;
    diff->pending = *options;
    const kymo_status status = run_pending(diff, dir);
    if (status != KYMO_OK) {
        kymo_diff_close(diff);
        return status;
    }
    diff->options.tolerance = NULL; /* it was this function's */
    *out = diff;
    return KYMO_OK;
}
