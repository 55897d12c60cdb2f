/* Loads the values of a step, depending on its kind of files. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tensor/dumpfile/internal.h"

static marey_status path_of(char *out, size_t size, const char *stem, const char *rest)
{
    const int n = snprintf(out, size, "%s%s", stem, rest);
    return n >= 0 && (size_t)n < size ? MAREY_OK
                                      : marey__fail(MAREY_EIO, "the path of %s is too long", stem);
}

/* ---- marey's layout ---- */

/* Makes `file`, opened by `path`, the one with all tensors of the step. */
static marey_status set_file(struct marey__dumpfile_step *step, const char *path,
                             struct marey__numbers_file file)
{
    file.path = marey__strndup(path, strlen(path));
    MAREY__TRY_MEMORY(file.path != NULL);
    marey__free((char *)step->file.path);
    step->file = file;
    return MAREY_OK;
}

static marey_status load_manifest(struct marey_dumps *dumps, struct marey__dumpfile_step *step)
{
    struct marey__map text MAREY__FINALLY(marey__map_close) = {0};
    struct marey__numbers_file file;
    char path[PATH_MAX];
    MAREY_TRY(path_of(path, sizeof path, step->stem, ".safetensors"));
    if (access(path, F_OK) != 0)
        MAREY_TRY(path_of(path, sizeof path, step->stem, ".part"));
    /* Without either there are only statistics or digests. */
    if (access(path, F_OK) == 0) {
        MAREY_TRY(marey__numbers_open(path, 0, &file, NULL));
        MAREY_TRY(set_file(step, path, file));
    }
    MAREY_TRY(marey__map_text(step->path, &text));
    return marey__manifest_parse(dumps, step, &text);
}

struct safetensors_loader {
    struct marey__dumpfile_step *step;
    uint64_t *offsets; /* by value */
    size_t cap;
};

static void loader_fini(struct safetensors_loader *loader)
{
    marey__free(loader->offsets);
}

/* A name in our format is a path, any other one is a key. */
static marey_status add_tensor(void *ctx, const char *name, size_t len,
                               const struct marey__shape *shape, uint64_t offset)
{
    struct safetensors_loader *const loader = ctx;
    struct marey__dumpfile_step *const step = loader->step;
    struct marey__path path MAREY__FINALLY(marey__path_fini) = {0};
    if (strncmp(name, "__pad__", 7) == 0)
        return MAREY_OK;
    MAREY__TRY_MEMORY(
        marey__grow(&loader->offsets, &loader->cap, step->n_values + 1, sizeof *loader->offsets));
    loader->offsets[step->n_values] = offset;
    const marey_status parsed = marey__name_parse(name, len, &path);
    if (parsed == MAREY_ENOMEM)
        return parsed;
    const struct marey_dump_part whole = {.key = name, .key_len = len};
    const bool is_ours = parsed == MAREY_OK;
    MAREY_TRY(marey__step_add(step, is_ours ? path.tree : MAREY_DUMP_TENSORS,
                              is_ours ? path.parts : &whole, is_ours ? path.n_parts : 1,
                              is_ours ? NULL : name));
    return marey__step_shape(step, shape);
}

static marey_status load_safetensors(struct marey__dumpfile_step *step)
{
    struct marey__map head MAREY__FINALLY(marey__map_close) = {0};
    struct marey__numbers_file file;
    struct safetensors_loader loader MAREY__FINALLY(loader_fini) = {.step = step};
    size_t data_at;
    MAREY_TRY(marey__safetensors_open(step->path, &file, &head));
    MAREY_TRY(set_file(step, step->path, file));
    MAREY_TRY(marey__safetensors_parse(step->path, head.data, step->file.len, add_tensor, &loader,
                                       &data_at));
    for (size_t i = 0; i < step->n_values; i++)
        marey__step_set_offset(step, i, data_at + loader.offsets[i]);
    return MAREY_OK;
}

/* ---- ACCV-Lab's layout ---- */

static marey_status load_tree(struct marey_dumps *dumps, struct marey__dumpfile_step *step,
                              const char *folder, const char *name, enum marey_dump_tree tree)
{
    char path[PATH_MAX], prefix[64];
    struct marey__map text MAREY__FINALLY(marey__map_close) = {0};
    MAREY_TRY(path_of(path, sizeof path, folder, "/"));
    const size_t len = strlen(path);
    MAREY_TRY(path_of(path + len, sizeof path - len, name, ""));
    snprintf(prefix, sizeof prefix, "[%s]", name);
    MAREY_TRY(marey__map_text(path, &text));
    return marey__tree_parse(dumps, step, tree, &text, path, folder, prefix);
}

static marey_status load_accvlab(struct marey_dumps *dumps, struct marey__dumpfile_step *step)
{
    char path[PATH_MAX];
    MAREY_TRY(path_of(path, sizeof path, step->path, "/grads.json"));
    MAREY_TRY(load_tree(dumps, step, step->path, "tensors.json", MAREY_DUMP_TENSORS));
    if (access(path, F_OK) != 0)
        return MAREY_OK;
    return load_tree(dumps, step, step->path, "grads.json", MAREY_DUMP_GRADIENTS);
}

/* A single JSON file may have that layout. */
static marey_status load_json(struct marey_dumps *dumps, struct marey__dumpfile_step *step)
{
    char folder[PATH_MAX];
    const char *const slash = strrchr(step->path, '/');
    const char *const name = marey__base_name(step->path);
    MAREY_TRY(path_of(folder, sizeof folder, slash != NULL ? step->path : ".", ""));
    if (slash != NULL)
        folder[slash == step->path ? 1 : slash - step->path] = '\0';
    const bool is_gradients = strcmp(name, "grads.json") == 0;
    return load_tree(dumps, step, folder, name,
                     is_gradients ? MAREY_DUMP_GRADIENTS : MAREY_DUMP_TENSORS);
}

/* ---- one tensor ---- */

static marey_status load_file(struct marey__dumpfile_step *step, enum marey_dump_type type)
{
    static const struct marey_dump_part root = {.key = "data", .key_len = 4};
    MAREY_TRY(marey__step_add(step, MAREY_DUMP_TENSORS, &root, 1, NULL));
    marey__step_last(step)->type = type;
    MAREY_TRY(marey__step_file(step, step->path));
    return marey__value_look(step);
}

static marey_status load(struct marey_dumps *dumps, struct marey__dumpfile_step *step)
{
    switch (step->source) {
    case MAREY__SOURCE_MANIFEST:
        return load_manifest(dumps, step);
    case MAREY__SOURCE_ACCVLAB:
        return load_accvlab(dumps, step);
    case MAREY__SOURCE_SAFETENSORS:
        return load_safetensors(step);
    case MAREY__SOURCE_NPY:
        return load_file(step, MAREY_DUMP_NPY);
    case MAREY__SOURCE_JSON:
        return load_json(dumps, step);
    case MAREY__SOURCE_PNG:
        return load_file(step, MAREY_DUMP_IMAGE_RGB);
    case MAREY__SOURCE_BIN:
        return load_file(step, MAREY_DUMP_BINARY);
    }
    return MAREY_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct marey_dumped_value *const x = *(const struct marey_dumped_value *const *)a;
    const struct marey_dumped_value *const y = *(const struct marey_dumped_value *const *)b;
    return x->tree != y->tree ? (int)x->tree - (int)y->tree : strcmp(x->name, y->name);
}

/* Checks that paths are unique in a step. */
static marey_status check_names(const struct marey__dumpfile_step *step)
{
    if (step->n_values < 2)
        return MAREY_OK;
    const struct marey_dumped_value **const sorted MAREY__FREED =
        marey__calloc(step->n_values, sizeof *sorted);
    MAREY__TRY_MEMORY(sorted != NULL);
    for (size_t i = 0; i < step->n_values; i++)
        sorted[i] = &step->values[i];
    qsort(sorted, step->n_values, sizeof *sorted, by_name);
    for (size_t i = 1; i < step->n_values; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            return marey__fail(MAREY_EFORMAT, "%s has '%s' twice", step->path, sorted[i]->name);
    return MAREY_OK;
}

marey_status marey__step_load(struct marey_dumps *dumps, struct marey__dumpfile_step *step)
{
    if (step->is_loaded)
        return MAREY_OK;
    marey_status status = load(dumps, step);
    if (status == MAREY_OK)
        status = check_names(step);
    if (status != MAREY_OK) {
        marey__step_release(step);
        return status;
    }
    for (size_t i = 0; i < step->n_values; i++)
        step->values[i].has_data = step->places[i].has_numbers;
    step->is_loaded = true;
    return MAREY_OK;
}

/* The last line of a complete manifest is short and begins like this. */
static bool ends_whole(const struct marey__map *text)
{
    static const char begin[] = "{\"end\":true";
    if (text->len == 0 || text->data[text->len - 1] != '\n')
        return false;
    const char *const before = memrchr(text->data, '\n', text->len - 1);
    const char *const line = before != NULL ? before + 1 : text->data;
    return strncmp(line, begin, sizeof begin - 1) == 0;
}

marey_status marey__step_info(struct marey__dumpfile_step *step)
{
    if (step->has_info || step->source != MAREY__SOURCE_MANIFEST)
        return MAREY_OK;
    struct marey__map text MAREY__FINALLY(marey__map_close) = {0};
    const char *next;
    MAREY_TRY(marey__map_text(step->path, &text));
    MAREY_TRY(marey__manifest_head(step, &text, &next));
    step->info.is_complete = ends_whole(&text);
    step->has_info = true;
    return MAREY_OK;
}
