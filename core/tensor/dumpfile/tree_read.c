/*
 * A JSON as a tree: keys and positions form the path, lists of numbers are tensors, a string may name a file beside it.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tensor/dumpfile/internal.h"

enum { MAX_DEPTH = 256 };

struct tree_reader {
    struct marey__json json;
    struct marey_dumps *dumps;
    struct marey__dumpfile_step *step;
    enum marey_dump_tree tree;
    const char *folder, *prefix;
    struct marey_dump_part *parts; /* from the root to here */
    size_t n_parts, parts_cap;
    marey_status status; /* of errors outside the text */
};

static bool is_ok(struct tree_reader *r, marey_status status)
{
    r->status = status;
    return status == MAREY_OK;
}

static bool no_memory(struct tree_reader *r)
{
    return is_ok(r, marey__no_memory());
}

/* Adds a value; at the root it is called "data". */
static bool add(struct tree_reader *r)
{
    static const struct marey_dump_part root = {.key = "data", .key_len = 4};
    const bool is_root = r->n_parts == 0;
    return is_ok(r, marey__step_add(r->step, r->tree, is_root ? &root : r->parts,
                                    is_root ? 1 : r->n_parts, NULL));
}

static bool push(struct tree_reader *r, struct marey_dump_part part)
{
    if (!MAREY__PUSH(r->parts, r->n_parts, r->parts_cap, part))
        return no_memory(r);
    return true;
}

/* ---- leaves ---- */

static enum marey_dump_type type_by_suffix(const char *name)
{
    static const struct {
        const char *suffix;
        enum marey_dump_type type;
    } types[] = {{".bin", MAREY_DUMP_BINARY},
                 {".png", MAREY_DUMP_IMAGE_RGB},
                 {".pkl", MAREY_DUMP_PICKLE},
                 {".npy", MAREY_DUMP_NPY},
                 {".safetensors", MAREY_DUMP_SAFETENSORS}};
    for (size_t i = 0; name[0] != '\0' && i < MAREY__COUNT_OF(types); i++)
        if (marey__ends_with(name + 1, strlen(name + 1), types[i].suffix))
            return types[i].type;
    return MAREY_DUMP_CONTAINER;
}

/* Whether the string just read names a file of this step, never elsewhere; sets `path`. */
static bool is_side_file(const struct tree_reader *r, char *path, size_t size)
{
    const char *const name = r->json.text;
    if (r->folder == NULL || strlen(name) != r->json.text_len || strchr(name, '/') != NULL ||
        type_by_suffix(name) == MAREY_DUMP_CONTAINER)
        return false;
    const int n = snprintf(path, size, "%s/%s%s", r->folder, r->prefix, name);
    return n > 0 && (size_t)n < size && access(path, F_OK) == 0;
}

/* Sets type and sizes of the last value from its file. Notes damage and continues. */
static bool look(struct tree_reader *r)
{
    const marey_status status = marey__value_look(r->step);
    if (status != MAREY_OK && status != MAREY_ENOMEM) {
        marey__dumps_note(r->dumps, "%s", marey_last_error());
        marey__step_last(r->step)->missing = "damaged";
    }
    return is_ok(r, status == MAREY_ENOMEM ? status : MAREY_OK);
}

static bool take_text(struct tree_reader *r)
{
    char path[PATH_MAX];
    if (!marey__json_string(&r->json) || !add(r))
        return false;
    struct marey_dumped_value *const value = marey__step_last(r->step);
    if (is_side_file(r, path, sizeof path)) {
        value->type = type_by_suffix(r->json.text);
        value->kind = value->type == MAREY_DUMP_PICKLE ? MAREY_DUMP_BYTES : MAREY_DUMP_TENSOR;
        return is_ok(r, marey__step_file(r->step, path)) && look(r);
    }
    value->kind = MAREY_DUMP_TEXT;
    value->text_len = r->json.text_len;
    value->text = marey__arena_text(&r->step->memory, r->json.text, r->json.text_len);
    return value->text != NULL || no_memory(r);
}

/* Makes the numbers the last value. */
static bool put_numbers(struct tree_reader *r, struct marey__numbers *numbers)
{
    if (numbers->data != NULL && !marey__step_own(r->step, numbers->data))
        return no_memory(r);
    if (!is_ok(r, marey__step_shape(r->step, &numbers->shape)))
        return false;
    struct marey_dumped_value *const value = marey__step_last(r->step);
    value->type = MAREY_DUMP_JSON;
    value->is_untyped = 1;
    r->step->places[r->step->n_values - 1] = (struct marey__value_place){
        .has_numbers = true,
        .is_read = true,
        .tensor = {
            .data = numbers->data, .dtype = value->dtype, .rank = value->rank, .sizes = value->sizes}};
    return true;
}

/* A number, true, false or null: text, and for numbers also a tensor of rank 0. */
static bool take_literal(struct tree_reader *r)
{
    struct marey__numbers numbers = {0};
    const char *const text = r->json.at;
    const enum marey__numbers_result result = marey__numbers_read(&r->json, false, &numbers);
    const bool is_null = result == MAREY__NUMBERS_NONE;
    if (result == MAREY__NUMBERS_NO_MEMORY)
        return no_memory(r);
    if (is_null && !marey__json_expect(&r->json, MAREY__JSON_NULL, "a value is missing"))
        return false;
    if (!add(r)) {
        marey__free(numbers.data);
        return false;
    }
    struct marey_dumped_value *const value = marey__step_last(r->step);
    value->kind = MAREY_DUMP_LITERAL;
    value->text_len = (size_t)(r->json.at - text);
    value->text = marey__arena_text(&r->step->memory, text, value->text_len);
    if (value->text == NULL) {
        marey__free(numbers.data);
        return no_memory(r);
    }
    return is_null || put_numbers(r, &numbers);
}

/* ---- branches ---- */

static bool take_value(struct tree_reader *r);

static bool take_object(struct tree_reader *r)
{
    size_t n = 0;
    marey__json_next(&r->json);
    for (; marey__json_next_key(&r->json); n++) {
        char *const key = marey__arena_text(&r->step->memory, r->json.text, r->json.text_len);
        if (key == NULL)
            return no_memory(r);
        if (!push(r, (struct marey_dump_part){.key = key, .key_len = r->json.text_len}) ||
            !take_value(r))
            return false;
        r->n_parts--;
    }
    if (r->json.mistake != NULL)
        return false;
    if (n > 0 || r->n_parts == 0)
        return true;
    if (!add(r))
        return false;
    marey__step_last(r->step)->kind = MAREY_DUMP_DICT;
    return true;
}

static bool take_items(struct tree_reader *r)
{
    marey__json_next(&r->json);
    for (uint64_t i = 0; marey__json_peek(&r->json) != ']'; i++) {
        if (!push(r, (struct marey_dump_part){.index = i}) || !take_value(r))
            return false;
        r->n_parts--;
    }
    return marey__json_next(&r->json) == MAREY__JSON_ARRAY_END;
}

static bool take_list(struct tree_reader *r)
{
    struct marey__numbers numbers = {0};
    switch (marey__numbers_read(&r->json, false, &numbers)) {
    case MAREY__NUMBERS_NO_MEMORY:
        return no_memory(r);
    case MAREY__NUMBERS_NONE:
        return take_items(r);
    case MAREY__NUMBERS_TENSOR:
        break;
    }
    if (!add(r)) {
        marey__free(numbers.data);
        return false;
    }
    /* An empty list may be a tensor or a list. */
    if (numbers.shape.rank == 1 && numbers.shape.sizes[0] == 0)
        marey__step_last(r->step)->kind = MAREY_DUMP_LIST;
    return put_numbers(r, &numbers);
}

static bool take_value(struct tree_reader *r)
{
    if (r->n_parts > MAX_DEPTH) {
        marey__json_fail(&r->json, "it is nested too deeply");
        return false;
    }
    switch (marey__json_peek(&r->json)) {
    case '{':
        return take_object(r);
    case '[':
        return take_list(r);
    case '"':
        return take_text(r);
    default:
        return take_literal(r);
    }
}

marey_status marey__tree_parse(struct marey_dumps *dumps, struct marey__dumpfile_step *step,
                               enum marey_dump_tree tree, const struct marey__map *text,
                               const char *path, const char *folder, const char *prefix)
{
    struct tree_reader r = {
        .dumps = dumps, .step = step, .tree = tree, .folder = folder, .prefix = prefix};
    marey__json_init_padded(&r.json, text->data, text->len, MAREY__DUMP_JSON);
    const bool is_fine = take_value(&r) && marey__json_end(&r.json);
    const marey_status status =
        is_fine || r.status != MAREY_OK ? r.status : marey__json_status(&r.json, path, "JSON");
    marey__json_fini(&r.json);
    marey__free(r.parts);
    return status;
}
