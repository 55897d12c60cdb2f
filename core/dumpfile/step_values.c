/* What is held of a step while it is looked at. */
#include <string.h>

#include "dumpfile/dumpfile_internal.h"

/* Memory is handed out from large pieces, since a step has many small texts. */
enum { PIECE = 64 << 10 };
struct kymo__kept {
    struct kymo__kept *next;
    void *owned; /* not NULL: memory that somebody else allocated, and nothing is handed out here */
    size_t used, size;
    _Alignas(16) char bytes[];
};

static struct kymo__kept *keep_piece(struct kymo__step *step, size_t size)
{
    struct kymo__kept *const piece = kymo__calloc(1, sizeof *piece + size);
    if (piece == NULL)
        return NULL;
    piece->size = size;
    piece->next = step->kept;
    step->kept = piece;
    return piece;
}

void *kymo__step_keep(struct kymo__step *step, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    struct kymo__kept *piece = step->kept;
    if (piece == NULL || piece->size - piece->used < size)
        piece = keep_piece(step, KYMO__MAX(size, (size_t)PIECE));
    if (piece == NULL)
        return NULL;
    char *const at = piece->bytes + piece->used;
    piece->used += size;
    return at;
}

bool kymo__step_own(struct kymo__step *step, void *memory)
{
    struct kymo__kept *const piece = keep_piece(step, 0);
    if (piece != NULL)
        piece->owned = memory;
    else
        kymo__free(memory);
    return piece != NULL;
}

char *kymo__step_text(struct kymo__step *step, const char *text, size_t len)
{
    char *const copy = kymo__step_keep(step, len + 1);
    if (copy != NULL)
        memcpy(copy, text, len);
    return copy;
}

/* ---- values ---- */

static kymo_status no_memory(const struct kymo__step *step)
{
    return kymo__fail(KYMO_ENOMEM, "out of memory while reading %s", step->path);
}

static struct kymo_dump_part *copy_parts(struct kymo__step *step,
                                         const struct kymo_dump_part *parts, size_t n_parts)
{
    struct kymo_dump_part *const copy = kymo__step_keep(step, n_parts * sizeof *copy);
    for (size_t i = 0; i < n_parts && copy != NULL; i++) {
        copy[i] = parts[i];
        if (parts[i].key == NULL)
            continue;
        copy[i].key = kymo__step_text(step, parts[i].key, parts[i].key_len);
        if (copy[i].key == NULL)
            return NULL;
    }
    return copy;
}

static char *name_of(struct kymo__step *step, const struct kymo_dump_part *parts, size_t n_parts)
{
    struct kymo__buf name = {0};
    kymo__name_put(&name, KYMO_DUMP_TENSORS, parts, n_parts);
    char *const text = name.failed ? NULL : kymo__step_text(step, name.data, name.len);
    kymo__buf_fini(&name);
    return text;
}

kymo_status kymo__step_add(struct kymo__step *step, enum kymo_dump_tree tree,
                           const struct kymo_dump_part *parts, size_t n_parts, const char *name)
{
    const size_t n = step->n_values;
    if (!kymo__grow(&step->values, &step->values_cap, n + 1, sizeof *step->values) ||
        !kymo__grow(&step->places, &step->places_cap, n + 1, sizeof *step->places))
        return no_memory(step);
    struct kymo_dumped_value *const value = &step->values[n];
    *value = (struct kymo_dumped_value){.tree = tree, .seq = n, .n_parts = n_parts};
    step->places[n] = (struct kymo__place){0};
    value->parts = copy_parts(step, parts, n_parts);
    value->name =
        name != NULL ? kymo__step_text(step, name, strlen(name)) : name_of(step, parts, n_parts);
    if (value->parts == NULL || value->name == NULL)
        return no_memory(step);
    step->n_values++;
    return KYMO_OK;
}

struct kymo_dumped_value *kymo__step_last(struct kymo__step *step)
{
    return &step->values[step->n_values - 1];
}

kymo_status kymo__step_shape(struct kymo__step *step, const struct kymo__shape *shape)
{
    struct kymo_dumped_value *const value = kymo__step_last(step);
    int64_t *const sizes = kymo__step_keep(step, shape->rank * sizeof *sizes);
    if (sizes == NULL)
        return no_memory(step);
    memcpy(sizes, shape->sizes, shape->rank * sizeof *sizes);
    value->dtype = shape->dtype;
    value->rank = shape->rank;
    value->sizes = sizes;
    if (!kymo__shape_bytes(shape, &value->n_bytes))
        value->n_bytes = 0;
    return KYMO_OK;
}

void kymo__step_numbers(struct kymo__step *step, size_t i, const void *data)
{
    const struct kymo_dumped_value *const value = &step->values[i];
    step->places[i] = (struct kymo__place){
        .has_numbers = true,
        .is_read = true,
        .tensor = {.data = data, .dtype = value->dtype, .rank = value->rank, .sizes = value->sizes}};
}

void kymo__step_inside(struct kymo__step *step, size_t i, uint64_t at)
{
    step->places[i] = (struct kymo__place){.has_numbers = true, .is_inside = true, .at = at};
}

void kymo__place_drop(struct kymo__place *place)
{
    kymo__free(place->numbers);
    kymo__free(place->sizes);
    place->numbers = NULL;
    place->sizes = NULL;
    place->is_read = false;
}

kymo_status kymo__step_files(struct kymo__step *step, char *const *paths, size_t n)
{
    struct kymo_dumped_value *const value = kymo__step_last(step);
    const char **const files = kymo__step_keep(step, n * sizeof *files);
    if (files == NULL)
        return no_memory(step);
    for (size_t i = 0; i < n; i++) {
        files[i] = kymo__step_text(step, paths[i], strlen(paths[i]));
        if (files[i] == NULL)
            return no_memory(step);
    }
    value->files = files;
    value->n_files = n;
    return KYMO_OK;
}

void kymo__step_release(struct kymo__step *step)
{
    for (size_t i = 0; i < step->n_values; i++)
        kymo__place_drop(&step->places[i]);
    while (step->kept != NULL) {
        struct kymo__kept *const next = step->kept->next;
        kymo__free(step->kept->owned);
        kymo__free(step->kept);
        step->kept = next;
    }
    step->n_values = 0;
    kymo__free((char *)step->file.path);
    step->file = (struct kymo__numbers_file){0};
    step->is_loaded = false;
}

void kymo__step_fini(struct kymo__step *step)
{
    kymo__step_release(step);
    kymo__free(step->values);
    kymo__free(step->places);
    kymo__free(step->path);
    kymo__free(step->stem);
    for (size_t i = 0; i < KYMO__COUNT_OF(step->texts); i++)
        kymo__free(step->texts[i]);
}
