/* Building the list of values while a step is read. */
#include <string.h>

#include "tensor/dumpfile/internal.h"

bool marey__step_own(struct marey__dumpfile_step *step, void *memory)
{
    if (MAREY__PUSH(step->owned, step->n_owned, step->owned_cap, memory))
        return true;
    marey__free(memory);
    return false;
}

void *marey__step_copy(struct marey__dumpfile_step *step, const void *bytes, size_t n)
{
    void *const copy = marey__arena_take(&step->memory, n, 16);
    return copy != NULL && n > 0 ? memcpy(copy, bytes, n) : copy;
}

/* ---- values ---- */

static struct marey_dump_part *copy_parts(struct marey__dumpfile_step *step,
                                          const struct marey_dump_part *parts, size_t n_parts)
{
    struct marey_dump_part *const copy = marey__step_copy(step, parts, n_parts * sizeof *copy);
    for (size_t i = 0; i < n_parts && copy != NULL; i++) {
        if (parts[i].key == NULL)
            continue;
        copy[i].key = marey__arena_text(&step->memory, parts[i].key, parts[i].key_len);
        if (copy[i].key == NULL)
            return NULL;
    }
    return copy;
}

static char *name_of(struct marey__dumpfile_step *step, const struct marey_dump_part *parts,
                     size_t n_parts)
{
    struct marey__buf name MAREY__FINALLY(marey__buf_fini) = {0};
    marey__name_put(&name, MAREY_DUMP_TENSORS, parts, n_parts);
    return name.failed ? NULL : marey__arena_text(&step->memory, name.data, name.len);
}

marey_status marey__step_add(struct marey__dumpfile_step *step, enum marey_dump_tree tree,
                             const struct marey_dump_part *parts, size_t n_parts, const char *name)
{
    const size_t n = step->n_values;
    MAREY__TRY_MEMORY(marey__grow(&step->values, &step->values_cap, n + 1, sizeof *step->values) &&
                      marey__grow(&step->places, &step->places_cap, n + 1, sizeof *step->places));
    struct marey_dumped_value *const value = &step->values[n];
    *value = (struct marey_dumped_value){.tree = tree, .seq = n, .n_parts = n_parts};
    step->places[n] = (struct marey__value_place){0};
    value->parts = copy_parts(step, parts, n_parts);
    value->name = name != NULL ? marey__arena_text(&step->memory, name, strlen(name))
                               : name_of(step, parts, n_parts);
    MAREY__TRY_MEMORY(value->parts != NULL && value->name != NULL);
    step->n_values++;
    return MAREY_OK;
}

struct marey_dumped_value *marey__step_last(struct marey__dumpfile_step *step)
{
    return &step->values[step->n_values - 1];
}

marey_status marey__step_shape(struct marey__dumpfile_step *step, const struct marey__shape *shape)
{
    struct marey_dumped_value *const value = marey__step_last(step);
    const int64_t *const sizes =
        marey__step_copy(step, shape->sizes, shape->rank * sizeof *shape->sizes);
    MAREY__TRY_MEMORY(sizes != NULL);
    value->dtype = shape->dtype;
    value->rank = shape->rank;
    value->sizes = sizes;
    if (!marey__shape_bytes(shape, &value->n_bytes))
        value->n_bytes = 0;
    return MAREY_OK;
}

void marey__step_set_offset(struct marey__dumpfile_step *step, size_t i, uint64_t at)
{
    step->places[i] = (struct marey__value_place){.has_numbers = true, .is_inside = true, .at = at};
}

void marey__place_drop(struct marey__value_place *place)
{
    MAREY__FREE_ALL(place->numbers, place->sizes);
    place->numbers = NULL;
    place->sizes = NULL;
    place->is_read = false;
}

marey_status marey__step_file(struct marey__dumpfile_step *step, const char *path)
{
    struct marey_dumped_value *const value = marey__step_last(step);
    const char **const files = marey__arena_take(&step->memory, sizeof *files, 16);
    MAREY__TRY_MEMORY(files != NULL &&
                      (*files = marey__arena_text(&step->memory, path, strlen(path))) != NULL);
    value->files = files;
    value->n_files = 1;
    return MAREY_OK;
}

void marey__step_release(struct marey__dumpfile_step *step)
{
    for (size_t i = 0; i < step->n_values; i++)
        marey__place_drop(&step->places[i]);
    while (step->n_owned > 0)
        marey__free(step->owned[--step->n_owned]);
    marey__arena_fini(&step->memory);
    step->n_values = 0;
    marey__free((char *)step->file.path);
    step->file = (struct marey__numbers_file){0};
    step->is_loaded = false;
}

void marey__step_fini(struct marey__dumpfile_step *step)
{
    marey__step_release(step);
    MAREY__FREE_ALL(step->owned, step->values, step->places, step->path, step->stem);
    for (size_t i = 0; i < MAREY__COUNT_OF(step->texts); i++)
        marey__free(step->texts[i]);
}
