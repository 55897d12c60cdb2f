/*
 * Compares values not yet written by the dumper with a step of an earlier dump. Each is lent for one call.
 */
#include <string.h>

#include "tensor/diff/internal.h"

/* ---- the pending value, in the form of one that was read ---- */

static marey_status open_waiting(const struct marey__diff_side *side, size_t value,
                                 struct marey__tensor_file *file, struct marey_tensor *out)
{
    (void)value;
    (void)file;
    *out = *(const struct marey_tensor *)side->ctx;
    return MAREY_OK;
}

static struct marey__diff_side side_of(const struct marey_dumped_value *value,
                                       struct marey_tensor *tensor)
{
    return (struct marey__diff_side){.values = value, .n = 1, .open = open_waiting, .ctx = tensor};
}

static bool read_entry(struct marey__waiting *w, const struct marey_dump_entry *entry)
{
    w->name.len = 0;
    marey__name_put(&w->name, MAREY_DUMP_TENSORS, entry->parts, entry->n_parts);
    marey__buf_put(&w->name, "", 1);
    w->tensor = (struct marey_tensor){0};
    if (entry->value.kind == MAREY_DUMP_TENSOR)
        w->tensor = entry->value.tensor;
    else if (entry->value.kind == MAREY_DUMP_LITERAL)
        marey__diff_read_literal(entry->value.text, entry->value.text_len, &w->number, &w->tensor);
    w->value = (struct marey_dumped_value){
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
        .n_bytes = w->tensor.dtype != MAREY_DTYPE_NONE ? marey_tensor_bytes(&w->tensor) : 0,
        .has_data = w->tensor.dtype != MAREY_DTYPE_NONE,
        .phase = entry->value.phase,
    };
    w->side = side_of(&w->value, &w->tensor);
    return !w->name.failed;
}

/* ---- its place in the reference ---- */

/* JSON has a list of numbers as one tensor: selects the element at one position. False if there is none. */
static bool find_element(struct marey__waiting *w, size_t *list)
{
    const struct marey_dump_part *const parts = w->value.parts;
    size_t n_parts = w->value.n_parts;
    for (*list = MAREY__DIFF_NONE;
         *list == MAREY__DIFF_NONE && n_parts > 0 && parts[n_parts - 1].key == NULL;) {
        struct marey__buf prefix MAREY__FINALLY(marey__buf_fini) = {0};
        marey__name_put(&prefix, MAREY_DUMP_TENSORS, parts, --n_parts);
        marey__buf_put(&prefix, "", 1);
        *list = prefix.failed ? MAREY__DIFF_NONE : marey__diff_find_reference(w, prefix.data);
    }
    const struct marey_dumped_value *const value =
        *list != MAREY__DIFF_NONE ? &w->reference.values[*list] : NULL;
    if (value == NULL || !value->has_data || value->rank != w->value.n_parts - n_parts)
        return false;
    uint64_t index = 0;
    for (size_t d = 0; d < value->rank; d++) {
        if (parts[n_parts + d].index >= (uint64_t)value->sizes[d])
            return false;
        index = index * (uint64_t)value->sizes[d] + parts[n_parts + d].index;
    }
    struct marey_tensor whole;
    if (w->reference.open(&w->reference, *list, NULL, &whole) != MAREY_OK)
        return false;
    w->element = (struct marey_tensor){.dtype = whole.dtype,
                                       .data = (const char *)whole.data +
                                               index * marey_dtype_size(whole.dtype)};
    w->element_value = (struct marey_dumped_value){.tree = value->tree,
                                                   .name = w->name.data,
                                                   .kind = MAREY_DUMP_LITERAL,
                                                   .type = value->type,
                                                   .is_untyped = value->is_untyped,
                                                   .dtype = whole.dtype,
                                                   .has_data = 1};
    w->element_side = side_of(&w->element_value, &w->element);
    return true;
}

/* Numbers are strings in a manifest; they are compared as numbers. */
static bool find_number(struct marey__waiting *w, size_t reference)
{
    const struct marey_dumped_value *const value = &w->reference.values[reference];
    if (value->kind != MAREY_DUMP_LITERAL || value->has_data || w->value.kind != MAREY_DUMP_LITERAL)
        return false;
    marey__diff_read_literal(value->text, value->text_len, &w->number_b, &w->element);
    if (w->element.dtype == MAREY_DTYPE_NONE || !w->value.has_data)
        return false;
    w->element_value = *value;
    w->element_value.dtype = w->element.dtype;
    w->element_value.has_data = 1;
    w->element_side = side_of(&w->element_value, &w->element);
    return true;
}

/* ---- comparing ---- */

static marey_status compare_value(struct marey__waiting *w, const struct marey__diff_side *b,
                                  size_t ib)
{
    struct marey_diff *diff = w->diff;
    struct marey__diff_result result = {.step = diff->step, .rank = -1, .order = w->value.seq};
    const struct marey__diff_inputs inputs = {&diff->options, &w->side, b, NULL, 1};
    marey_status status = marey__diff_compare_pair(&inputs, 0, ib, &result);
    if (status == MAREY_OK)
        status = marey__diff_describe(diff, &w->value, &b->values[ib], &result);
    if (status == MAREY_OK)
        status = marey__diff_put_errors(w, b, ib, &result);
    if (status != MAREY_OK) {
        MAREY__FREE_ALL(result.details, (void *)result.why);
        return status;
    }
    return marey__diff_append(diff, &result);
}

/* Adds a value that only one side has; the other is NULL. */
static marey_status add_unpaired(struct marey__waiting *w, const struct marey_dumped_value *a,
                                 const struct marey_dumped_value *b)
{
    struct marey_diff *diff = w->diff;
    const struct marey_dumped_value *one = a != NULL ? a : b;
    struct marey__diff_result result = {
        .status = a == NULL ? MAREY_DIFF_MISSING : MAREY_DIFF_EXTRA,
        .step = diff->step,
        .rank = -1,
        .order = (a != NULL ? 0 : w->n_seen) + one->seq,
    };
    MAREY_TRY(marey__diff_describe(diff, a, b, &result));
    if (marey__diff_counts(diff, result.status))
        marey__diff_put_alone(diff, &result);
    return marey__diff_append(diff, &result);
}

marey_status marey__diff_compare_waiting(struct marey__waiting *w, size_t reference)
{
    size_t list;
    if (reference != MAREY__DIFF_NONE) {
        w->was_seen[reference] = 1;
        return find_number(w, reference) ? compare_value(w, &w->element_side, 0)
                                         : compare_value(w, &w->reference, reference);
    }
    if (!find_element(w, &list))
        return add_unpaired(w, &w->value, NULL);
    w->was_seen[list] = 1;
    return compare_value(w, &w->element_side, 0);
}

static int visit(void *ctx, const struct marey_dump_entry *entry)
{
    struct marey__waiting *w = ctx;
    if (entry->tree != w->diff->pending.tree)
        return 1;
    if (!read_entry(w, entry)) {
        w->status = marey__no_memory();
        return 0;
    }
    w->status = entry->value.kind == MAREY_DUMP_TENSOR && marey__is_image(entry->value.type)
                    ? marey__diff_compare_images(w, entry)
                    : marey__diff_compare_waiting(w, marey__diff_find_reference(w, w->value.name));
    return w->status == MAREY_OK;
}

/* ---- the earlier dump ---- */

static marey_status find_step(marey_dumps *dumps, const char *dir, const struct marey_diff *diff,
                              size_t *number)
{
    const struct marey_diff_pending_options *const o = &diff->pending;
    for (size_t i = marey_dumps_count(dumps); i-- > 0;) {
        struct marey_dumped_step step;
        MAREY_TRY(marey_dumps_step(dumps, i, &step));
        *number = i;
        if (step.step == diff->step &&
            (!o->has_rank || step.rank < 0 || step.rank == (int64_t)o->rank))
            return MAREY_OK;
    }
    return marey__fail(MAREY_EIO, "there is no dump %llu in %s to compare with; write one first",
                       (unsigned long long)diff->step, dir);
}

static marey_status compare_step(struct marey__waiting *w, marey_dumps *dumps, const char *dir)
{
    size_t number = 0;
    MAREY_TRY(find_step(dumps, dir, w->diff, &number));
    MAREY_TRY(marey__diff_side_open(dumps, number, &w->reference));
    w->was_seen = marey__calloc(w->reference.n + 1, 1);
    MAREY__TRY_MEMORY(w->was_seen != NULL);
    MAREY_TRY(marey_dump_visit_pending(visit, w));
    MAREY_TRY(w->status);
    for (size_t i = 0; i < w->reference.n; i++)
        if (!w->was_seen[i] && w->reference.values[i].tree == w->diff->pending.tree)
            MAREY_TRY(add_unpaired(w, NULL, &w->reference.values[i]));
    w->diff->n_steps = 1;
    return marey__diff_conclude(w->diff);
}

static marey_status run_pending(struct marey_diff *diff, const char *dir)
{
    struct marey__waiting w = {.diff = diff};
    marey_dumps *dumps = NULL;
    marey_status status = marey_dumps_open(dir, &dumps);
    if (status == MAREY_OK)
        status = compare_step(&w, dumps, dir);
    if (status == MAREY_OK)
        status = marey_table_status(diff->tables[MAREY__DIFF_ERRORS]);
    marey_dumps_close(dumps);
    marey__free(w.was_seen);
    marey__buf_fini(&w.name);
    return status;
}

marey_status marey_diff_pending(const char *dir, uint64_t step,
                                const struct marey_diff_pending_options *options, marey_diff **out)
{
    const struct marey_tolerance tolerance = {.abs = options->eps, .nan_equal = 1};
    const struct marey_diff_options wants = {.tolerance = &tolerance,
                                             .allow_missing = options->allow_missing,
                                             .allow_extra = options->allow_extra,
                                             .allow_dtype = options->allow_dtype};
    struct marey_diff *diff;
    MAREY_TRY(marey__diff_create(&wants, &diff));
    diff->step = step;
    diff->pending = *options;
    const marey_status status = run_pending(diff, dir);
    if (status != MAREY_OK) {
        marey_diff_close(diff);
        return status;
    }
    diff->options.tolerance = NULL; /* owned by this function */
    *out = diff;
    return MAREY_OK;
}
