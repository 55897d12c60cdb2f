/* <marey/dumpfile.h>: steps in order, each read on demand. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tensor/dumpfile/internal.h"

marey_status marey_dumps_open(const char *path, marey_dumps **out)
{
    struct marey_dumps *const dumps = marey__calloc(1, sizeof *dumps);
    MAREY__TRY_MEMORY(dumps != NULL);
    const marey_status status = marey__steps_find(dumps, path);
    if (status == MAREY_OK)
        *out = dumps;
    else
        marey_dumps_close(dumps);
    return status;
}

void marey_dumps_close(marey_dumps *dumps)
{
    if (dumps == NULL)
        return;
    for (size_t i = 0; i < dumps->n_steps; i++)
        marey__step_fini(&dumps->steps[i]);
    for (size_t i = 0; i < dumps->n_notes; i++)
        marey__free(dumps->notes[i]);
    MAREY__FREE_ALL(dumps->steps, dumps->notes, dumps);
}

/* Reports each message once, though a step may be read several times. Skipped on out of memory. */
void marey__dumps_note(struct marey_dumps *dumps, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (size_t i = 0; i < dumps->n_notes; i++)
        if (strcmp(dumps->notes[i], text) == 0)
            return;
    if (!marey__grow(&dumps->notes, &dumps->notes_cap, dumps->n_notes + 1, sizeof *dumps->notes))
        return;
    dumps->notes[dumps->n_notes] = marey__strndup(text, strlen(text));
    dumps->n_notes += dumps->notes[dumps->n_notes] != NULL;
}

size_t marey_dumps_n_notes(const marey_dumps *dumps)
{
    return dumps->n_notes;
}

const char *marey_dumps_note(const marey_dumps *dumps, size_t i)
{
    return dumps->notes[i];
}

size_t marey_dumps_count(const marey_dumps *dumps)
{
    return dumps->n_steps;
}

static marey_status check_step(const marey_dumps *dumps, size_t i)
{
    return i < dumps->n_steps
               ? MAREY_OK
               : marey__fail(MAREY_EINVAL, "step number %zu of %zu", i, dumps->n_steps);
}

marey_status marey_dumps_step(marey_dumps *dumps, size_t i, struct marey_dumped_step *out)
{
    MAREY_TRY(check_step(dumps, i));
    MAREY_TRY(marey__step_info(&dumps->steps[i]));
    *out = dumps->steps[i].info;
    return MAREY_OK;
}

marey_status marey_dumps_values(marey_dumps *dumps, size_t i,
                                const struct marey_dumped_value **values, size_t *n_values)
{
    MAREY_TRY(check_step(dumps, i));
    MAREY_TRY(marey__step_load(dumps, &dumps->steps[i]));
    *values = dumps->steps[i].values;
    *n_values = dumps->steps[i].n_values;
    return MAREY_OK;
}

static marey_status nothing_to_give(const struct marey_dumped_value *value)
{
    if (value->missing != NULL)
        return marey__fail(MAREY_ESTATE, "'%s' has no numbers: %s", value->name, value->missing);
    if (value->type == MAREY_DUMP_PICKLE)
        return marey__fail(MAREY_ESTATE, "'%s' is a pickle, which is never loaded", value->name);
    return marey__fail(MAREY_ESTATE, "'%s' has no numbers: %s", value->name,
                       value->kind == MAREY_DUMP_TENSOR ? "they were not kept"
                                                        : "it is not a tensor");
}

static marey_status find_place(marey_dumps *dumps, size_t i, size_t value,
                               struct marey__dumpfile_step **step)
{
    MAREY_TRY(check_step(dumps, i));
    *step = &dumps->steps[i];
    MAREY_TRY(marey__step_load(dumps, *step));
    if (value >= (*step)->n_values)
        return marey__fail(MAREY_EINVAL, "value number %zu of %zu", value, (*step)->n_values);
    return (*step)->places[value].has_numbers ? MAREY_OK : nothing_to_give(&(*step)->values[value]);
}

marey_status marey_dumps_get(marey_dumps *dumps, size_t i, size_t value, struct marey_tensor *out)
{
    struct marey__dumpfile_step *step;
    MAREY_TRY(find_place(dumps, i, value, &step));
    if (!step->places[value].is_read)
        MAREY_TRY(marey__value_read(step, value));
    step->places[value].n_lent++;
    *out = step->places[value].tensor;
    return MAREY_OK;
}

void marey_dumps_drop(marey_dumps *dumps, size_t i, size_t value)
{
    if (i >= dumps->n_steps || value >= dumps->steps[i].n_values)
        return;
    struct marey__value_place *const place = &dumps->steps[i].places[value];
    if (place->n_lent > 0 && --place->n_lent == 0 && place->numbers != NULL)
        marey__place_drop(place);
}

marey_status marey__dumps_open_value(marey_dumps *dumps, size_t i, size_t value,
                                     struct marey__tensor_file *file, struct marey_tensor *out)
{
    struct marey__dumpfile_step *step;
    struct marey__numbers_file numbers = {0};
    if (file == NULL)
        return marey_dumps_get(dumps, i, value, out);
    file->fd = -1;
    atomic_init(&file->error, 0);
    MAREY_TRY(find_place(dumps, i, value, &step));
    if (!step->places[value].is_read)
        MAREY_TRY(marey__value_find(step, value, &numbers, &file->at));
    if (numbers.path == NULL)
        return marey_dumps_get(dumps, i, value, out);
    MAREY_TRY(marey__numbers_reopen(&numbers, &file->fd));
    file->path = numbers.path;
    const struct marey_dumped_value *const about = &step->values[value];
    *out = (struct marey_tensor){.data = file,
                                 .dtype = about->dtype,
                                 .rank = about->rank,
                                 .sizes = about->sizes,
                                 .memory = (enum marey_memory)MAREY__MEMORY_FILE};
    return MAREY_OK;
}

void marey__dumps_close_value(marey_dumps *dumps, size_t i, size_t value,
                              struct marey__tensor_file *file)
{
    if (file != NULL && file->fd >= 0)
        close(file->fd);
    else
        marey_dumps_drop(dumps, i, value);
}

size_t marey_dumps_find(marey_dumps *dumps, size_t i, enum marey_dump_tree tree, const char *name)
{
    const struct marey_dumped_value *values;
    size_t n;
    if (marey_dumps_values(dumps, i, &values, &n) != MAREY_OK)
        return SIZE_MAX;
    for (size_t v = 0; v < n; v++)
        if (values[v].tree == tree && strcmp(values[v].name, name) == 0)
            return v;
    return SIZE_MAX;
}

void marey_dumps_release(marey_dumps *dumps, size_t i)
{
    if (i < dumps->n_steps)
        marey__step_release(&dumps->steps[i]);
}
