/* <kymo/dumpfile.h>: steps in their order, each read when it is asked for. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dumpfile/dumpfile_internal.h"

kymo_status kymo_dumps_open(const char *path, kymo_dumps **out)
{
    struct kymo_dumps *const dumps = kymo__calloc(1, sizeof *dumps);
    if (dumps == NULL)
        return kymo__fail(KYMO_ENOMEM, "out of memory while opening %s", path);
    const kymo_status status = kymo__steps_find(dumps, path);
    if (status == KYMO_OK)
        *out = dumps;
    else
        kymo_dumps_close(dumps);
    return status;
}

void kymo_dumps_close(kymo_dumps *dumps)
{
    if (dumps == NULL)
        return;
    for (size_t i = 0; i < dumps->n_steps; i++)
        kymo__step_fini(&dumps->steps[i]);
    for (size_t i = 0; i < dumps->n_notes; i++)
        kymo__free(dumps->notes[i]);
    kymo__free(dumps->steps);
    kymo__free(dumps->notes);
    kymo__free(dumps);
}

/* Each sentence once, though a step may be read several times. Without memory it goes untold. */
void kymo__dumps_note(struct kymo_dumps *dumps, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (size_t i = 0; i < dumps->n_notes; i++)
        if (strcmp(dumps->notes[i], text) == 0)
            return;
    if (!kymo__grow(&dumps->notes, &dumps->notes_cap, dumps->n_notes + 1, sizeof *dumps->notes))
        return;
    dumps->notes[dumps->n_notes] = kymo__strndup(text, strlen(text));
    dumps->n_notes += dumps->notes[dumps->n_notes] != NULL;
}

size_t kymo_dumps_n_notes(const kymo_dumps *dumps)
{
    return dumps->n_notes;
}

const char *kymo_dumps_note(const kymo_dumps *dumps, size_t i)
{
    return dumps->notes[i];
}

size_t kymo_dumps_count(const kymo_dumps *dumps)
{
    return dumps->n_steps;
}

static kymo_status check_step(const kymo_dumps *dumps, size_t i)
{
    return i < dumps->n_steps ? KYMO_OK
                              : kymo__fail(KYMO_EINVAL, "step number %zu of %zu", i, dumps->n_steps);
}

kymo_status kymo_dumps_step(kymo_dumps *dumps, size_t i, struct kymo_dumped_step *out)
{
    KYMO_TRY(check_step(dumps, i));
    KYMO_TRY(kymo__step_info(&dumps->steps[i]));
    *out = dumps->steps[i].info;
    return KYMO_OK;
}

kymo_status kymo_dumps_values(kymo_dumps *dumps, size_t i, const struct kymo_dumped_value **values,
                              size_t *n_values)
{
    KYMO_TRY(check_step(dumps, i));
    KYMO_TRY(kymo__step_load(dumps, &dumps->steps[i]));
    *values = dumps->steps[i].values;
    *n_values = dumps->steps[i].n_values;
    return KYMO_OK;
}

static kymo_status nothing_to_give(const struct kymo_dumped_value *value)
{
    if (value->missing != NULL)
        return kymo__fail(KYMO_ESTATE, "'%s' has no numbers: %s", value->name, value->missing);
    if (value->type == KYMO_DUMP_PICKLE)
        return kymo__fail(KYMO_ESTATE, "'%s' is a pickle, which is never loaded", value->name);
    return kymo__fail(KYMO_ESTATE, "'%s' has no numbers: %s", value->name,
                      value->kind == KYMO_DUMP_TENSOR ? "they were not kept" : "it is no tensor");
}

static kymo_status find_place(kymo_dumps *dumps, size_t i, size_t value, struct kymo__step **step)
{
    KYMO_TRY(check_step(dumps, i));
    *step = &dumps->steps[i];
    KYMO_TRY(kymo__step_load(dumps, *step));
    if (value >= (*step)->n_values)
        return kymo__fail(KYMO_EINVAL, "value number %zu of %zu", value, (*step)->n_values);
    return (*step)->places[value].has_numbers ? KYMO_OK : nothing_to_give(&(*step)->values[value]);
}

kymo_status kymo_dumps_get(kymo_dumps *dumps, size_t i, size_t value, struct kymo_tensor *out)
{
    struct kymo__step *step;
    KYMO_TRY(find_place(dumps, i, value, &step));
    if (!step->places[value].is_read)
        KYMO_TRY(kymo__value_read(step, value));
    step->places[value].n_lent++;
    *out = step->places[value].tensor;
    return KYMO_OK;
}

void kymo_dumps_drop(kymo_dumps *dumps, size_t i, size_t value)
{
    if (i >= dumps->n_steps || value >= dumps->steps[i].n_values)
        return;
    struct kymo__place *const place = &dumps->steps[i].places[value];
    if (place->n_lent > 0 && --place->n_lent == 0 && place->numbers != NULL)
        kymo__place_drop(place);
}

kymo_status kymo__dumps_open_value(kymo_dumps *dumps, size_t i, size_t value,
                                   struct kymo__tensor_file *file, struct kymo_tensor *out)
{
    struct kymo__step *step;
    struct kymo__numbers_file numbers = {0};
    file->fd = -1;
    atomic_init(&file->error, 0);
    KYMO_TRY(find_place(dumps, i, value, &step));
    if (!step->places[value].is_read)
        KYMO_TRY(kymo__value_find(step, value, &numbers, &file->at));
    if (numbers.path == NULL)
        return kymo_dumps_get(dumps, i, value, out);
    KYMO_TRY(kymo__numbers_reopen(&numbers, &file->fd));
    file->path = numbers.path;
    const struct kymo_dumped_value *const about = &step->values[value];
    *out = (struct kymo_tensor){.data = file,
                                .dtype = about->dtype,
                                .rank = about->rank,
                                .sizes = about->sizes,
                                .memory = (enum kymo_memory)KYMO__MEMORY_FILE};
    return KYMO_OK;
}

void kymo__dumps_close_value(kymo_dumps *dumps, size_t i, size_t value, struct kymo__tensor_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    else
        kymo_dumps_drop(dumps, i, value);
}

size_t kymo_dumps_find(kymo_dumps *dumps, size_t i, enum kymo_dump_tree tree, const char *name)
{
    const struct kymo_dumped_value *values;
    size_t n;
    if (kymo_dumps_values(dumps, i, &values, &n) != KYMO_OK)
        return SIZE_MAX;
    for (size_t v = 0; v < n; v++)
        if (values[v].tree == tree && strcmp(values[v].name, name) == 0)
            return v;
    return SIZE_MAX;
}

void kymo_dumps_release(kymo_dumps *dumps, size_t i)
{
    if (i < dumps->n_steps)
        kymo__step_release(&dumps->steps[i]);
}
