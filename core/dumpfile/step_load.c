/* The values of a step, by the kind of files it has. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dumpfile/dumpfile_internal.h"

static kymo_status path_of(char *out, size_t size, const char *stem, const char *rest)
{
    const int n = snprintf(out, size, "%s%s", stem, rest);
    return n >= 0 && (size_t)n < size ? KYMO_OK
                                      : kymo__fail(KYMO_EIO, "the path of %s is too long", stem);
}

/* ---- kymo's layout ---- */

/* Open the file that has the tensors of all; its first bytes into `head`. */
static kymo_status open_tensors(struct kymo__step *step, const char *path, size_t n_head,
                                struct kymo__map *head)
{
    struct kymo__numbers_file file;
    KYMO_TRY(kymo__numbers_open(path, n_head, &file, head));
    file.path = kymo__strndup(path, strlen(path));
    if (file.path == NULL) {
        kymo__map_close(head);
        return kymo__fail(KYMO_ENOMEM, "out of memory while opening %s", path);
    }
    kymo__free((char *)step->file.path);
    step->file = file;
    return KYMO_OK;
}

static kymo_status load_manifest(struct kymo_dumps *dumps, struct kymo__step *step)
{
    struct kymo__map text, head = {0};
    char path[PATH_MAX];
    KYMO_TRY(path_of(path, sizeof path, step->stem, ".safetensors"));
    if (access(path, F_OK) != 0)
        KYMO_TRY(path_of(path, sizeof path, step->stem, ".part"));
    /* Neither: statistics or digests alone. */
    if (access(path, F_OK) == 0)
        KYMO_TRY(open_tensors(step, path, 0, &head));
    KYMO_TRY(kymo__map_text(step->path, &text));
    const kymo_status status = kymo__manifest_parse(dumps, step, &text);
    kymo__map_close(&text);
    return status;
}

struct safetensors_loader {
    struct kymo__step *step;
    size_t first; /* the values that this file added */
    uint64_t *offsets;
    size_t cap;
};

/* A name of ours tells a path; one of others is a key. */
static kymo_status add_tensor(void *ctx, const char *name, size_t len,
                              const struct kymo__shape *shape, uint64_t offset)
{
    struct safetensors_loader *const loader = ctx;
    struct kymo__step *const step = loader->step;
    struct kymo__path path = {0};
    if (strncmp(name, "__pad__", 7) == 0)
        return KYMO_OK;
    if (!kymo__grow(&loader->offsets, &loader->cap, step->n_values + 1, sizeof *loader->offsets))
        return kymo__fail(KYMO_ENOMEM, "out of memory while reading %s", step->path);
    loader->offsets[step->n_values] = offset;
    const kymo_status parsed = kymo__name_parse(name, len, &path);
    if (parsed == KYMO_ENOMEM)
        return parsed;
    const struct kymo_dump_part whole = {.key = name, .key_len = len};
    const bool is_ours = parsed == KYMO_OK;
    kymo_status status =
        kymo__step_add(step, is_ours ? path.tree : KYMO_DUMP_TENSORS, is_ours ? path.parts : &whole,
                       is_ours ? path.n_parts : 1, is_ours ? NULL : name);
    kymo__path_fini(&path);
    KYMO_TRY(status);
    return kymo__step_shape(step, shape);
}

static kymo_status load_safetensors(struct kymo__step *step)
{
    struct kymo__map head;
    struct safetensors_loader loader = {.step = step};
    size_t data_at;
    KYMO_TRY(open_tensors(step, step->path, 8, &head));
    const size_t n_head = kymo__safetensors_head(head.data, head.len);
    kymo__map_close(&head);
    KYMO_TRY(open_tensors(step, step->path, n_head, &head));
    const kymo_status status = kymo__safetensors_parse(step->path, head.data, step->file.len,
                                                       add_tensor, &loader, &data_at);
    for (size_t i = 0; i < step->n_values && status == KYMO_OK; i++)
        kymo__step_inside(step, i, data_at + loader.offsets[i]);
    kymo__free(loader.offsets);
    kymo__map_close(&head);
    return status;
}

/* ---- ACCV-Lab's layout ---- */

static kymo_status load_tree(struct kymo_dumps *dumps, struct kymo__step *step, const char *folder,
                             const char *name, enum kymo_dump_tree tree)
{
    char path[PATH_MAX], prefix[64];
    struct kymo__map text;
    KYMO_TRY(path_of(path, sizeof path, folder, "/"));
    const size_t len = strlen(path);
    KYMO_TRY(path_of(path + len, sizeof path - len, name, ""));
    snprintf(prefix, sizeof prefix, "[%s]", name);
    KYMO_TRY(kymo__map_text(path, &text));
    const kymo_status status = kymo__tree_parse(dumps, step, tree, &text, path, folder, prefix);
    kymo__map_close(&text);
    return status;
}

static kymo_status load_accvlab(struct kymo_dumps *dumps, struct kymo__step *step)
{
    char path[PATH_MAX];
    KYMO_TRY(path_of(path, sizeof path, step->path, "/grads.json"));
    KYMO_TRY(load_tree(dumps, step, step->path, "tensors.json", KYMO_DUMP_TENSORS));
    if (access(path, F_OK) != 0)
        return KYMO_OK;
    return load_tree(dumps, step, step->path, "grads.json", KYMO_DUMP_GRADIENTS);
}

/* A JSON by itself may be one of that layout. */
static kymo_status load_json(struct kymo_dumps *dumps, struct kymo__step *step)
{
    char folder[PATH_MAX];
    const char *const slash = strrchr(step->path, '/');
    const char *const name = slash != NULL ? slash + 1 : step->path;
    KYMO_TRY(path_of(folder, sizeof folder, slash != NULL ? step->path : ".", ""));
    if (slash != NULL)
        folder[slash == step->path ? 1 : slash - step->path] = '\0';
    const bool is_gradients = strcmp(name, "grads.json") == 0;
    return load_tree(dumps, step, folder, name,
                     is_gradients ? KYMO_DUMP_GRADIENTS : KYMO_DUMP_TENSORS);
}

/* ---- one tensor ---- */

static kymo_status load_file(struct kymo__step *step, enum kymo_dump_type type)
{
    static const struct kymo_dump_part root = {.key = "data", .key_len = 4};
    KYMO_TRY(kymo__step_add(step, KYMO_DUMP_TENSORS, &root, 1, NULL));
    kymo__step_last(step)->type = type;
    KYMO_TRY(kymo__step_files(step, &step->path, 1));
    return kymo__value_look(step);
}

static kymo_status load(struct kymo_dumps *dumps, struct kymo__step *step)
{
    switch (step->source) {
    case KYMO__SOURCE_MANIFEST:
        return load_manifest(dumps, step);
    case KYMO__SOURCE_ACCVLAB:
        return load_accvlab(dumps, step);
    case KYMO__SOURCE_SAFETENSORS:
        return load_safetensors(step);
    case KYMO__SOURCE_NPY:
        return load_file(step, KYMO_DUMP_NPY);
    case KYMO__SOURCE_JSON:
        return load_json(dumps, step);
    case KYMO__SOURCE_PNG:
        return load_file(step, KYMO_DUMP_IMAGE_RGB);
    case KYMO__SOURCE_BIN:
        return load_file(step, KYMO_DUMP_BINARY);
    }
    return KYMO_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct kymo_dumped_value *const x = *(const struct kymo_dumped_value *const *)a;
    const struct kymo_dumped_value *const y = *(const struct kymo_dumped_value *const *)b;
    return x->tree != y->tree ? (int)x->tree - (int)y->tree : strcmp(x->name, y->name);
}

/* A path is used once in a step. */
static kymo_status check_names(const struct kymo__step *step)
{
    if (step->n_values < 2)
        return KYMO_OK;
    const struct kymo_dumped_value **const sorted = kymo__calloc(step->n_values, sizeof *sorted);
    if (sorted == NULL)
        return kymo__fail(KYMO_ENOMEM, "out of memory while reading %s", step->path);
    for (size_t i = 0; i < step->n_values; i++)
        sorted[i] = &step->values[i];
    qsort(sorted, step->n_values, sizeof *sorted, by_name);
    kymo_status status = KYMO_OK;
    for (size_t i = 1; i < step->n_values && status == KYMO_OK; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            status = kymo__fail(KYMO_EFORMAT, "%s has '%s' twice", step->path, sorted[i]->name);
    kymo__free(sorted);
    return status;
}

kymo_status kymo__step_load(struct kymo_dumps *dumps, struct kymo__step *step)
{
    if (step->is_loaded)
        return KYMO_OK;
    kymo_status status = load(dumps, step);
    if (status == KYMO_OK)
        status = check_names(step);
    if (status != KYMO_OK) {
        kymo__step_release(step);
        return status;
    }
    for (size_t i = 0; i < step->n_values; i++)
        step->values[i].has_data = step->places[i].has_numbers;
    step->is_loaded = true;
    return KYMO_OK;
}

/* The last line of a whole manifest is short and begins so. */
static bool ends_whole(const struct kymo__map *text)
{
    static const char begin[] = "{\"end\":true";
    if (text->len == 0 || text->data[text->len - 1] != '\n')
        return false;
    const char *const before = memrchr(text->data, '\n', text->len - 1);
    const char *const line = before != NULL ? before + 1 : text->data;
    return strncmp(line, begin, sizeof begin - 1) == 0;
}

kymo_status kymo__step_info(struct kymo__step *step)
{
    if (step->has_info || step->source != KYMO__SOURCE_MANIFEST)
        return KYMO_OK;
    struct kymo__map text;
    uint64_t data_start;
    KYMO_TRY(kymo__map_text(step->path, &text));
    const char *const stop = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;
    const kymo_status status =
        stop == NULL
            ? kymo__fail(KYMO_EFORMAT, "%s is no manifest of a dump: its first line does not end",
                         step->path)
            : kymo__manifest_head(step, text.data, (size_t)(stop - text.data), &data_start);
    step->info.is_complete = status == KYMO_OK && ends_whole(&text);
    step->has_info = status == KYMO_OK;
    kymo__map_close(&text);
    return status;
}
