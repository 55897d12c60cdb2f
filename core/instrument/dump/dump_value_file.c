/* One file per value: .bin, .png, .npy, .safetensors, .json, .pkl. Layout accvlab has a small JSON beside .bin and .png. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "instrument/dump/internal.h"
#include "tensor/kernels/internal.h"

struct value_writer {
    struct marey__dump_item *item;
    const struct marey__dump_place *place;
    const struct marey__dump_value_target *where;
    struct marey__buf name; /* the value's name, made safe for a file, without suffix; and a NUL */
};

/* A name for the next file of the value; NULL on out of memory. Owned by the item. */
static const char *next_name(struct value_writer *s, const char *suffix)
{
    struct marey__dump_files *const files = &s->item->files;
    char *const name = marey__alloc(s->name.len + strlen(suffix));
    if (name == NULL || !marey__grow(&files->names, &files->cap, files->n + 1, sizeof *files->names)) {
        marey__free(name);
        return NULL;
    }
    memcpy(name, s->name.data, s->name.len - 1);
    memcpy(name + s->name.len - 1, suffix, strlen(suffix) + 1);
    return files->names[files->n++] = name;
}

static marey_status begin(struct value_writer *s, struct marey__dump_file *file, const char *suffix)
{
    const char *const name = next_name(s, suffix);
    struct marey__buf full MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_printf(&full, "%s%s", s->where->prefix, name != NULL ? name : "");
    marey__buf_put(&full, "", 1);
    MAREY__TRY_MEMORY(name != NULL && !full.failed);
    marey__dump_file_begin(file, s->where->folder, full.data, s->place->durable);
    return MAREY_OK;
}

static marey_status save(struct value_writer *s, const char *suffix, const struct marey__buf *head,
                         const void *bytes, size_t len)
{
    struct marey__dump_file file;
    if (head != NULL && head->failed)
        return marey__no_memory();
    MAREY_TRY(begin(s, &file, suffix));
    if (head != NULL)
        marey__dump_file_put(&file, head->data, head->len);
    marey__dump_file_put(&file, bytes, len);
    return marey__dump_file_end(&file, true);
}

/* The text beside a file, under the same name with a longer suffix; not listed among the value's files. */
static marey_status save_meta(struct value_writer *s, const struct marey__buf *text)
{
    struct marey__dump_files *const files = &s->item->files;
    char suffix[MAREY__FILE_NAME_MAX + 64];
    if (!s->where->has_meta)
        return MAREY_OK;
    const char *const of = files->names[files->n - 1];
    snprintf(suffix, sizeof suffix, "%s.meta.json", of + s->name.len - 1);
    const marey_status st = save(s, suffix, text, NULL, 0);
    marey__free(files->names[--files->n]);
    return st;
}

/* ---- the forms ---- */

static marey_status save_json(struct value_writer *s)
{
    struct marey__dump_file file;
    MAREY_TRY(begin(s, &file, ".json"));
    marey_status st = marey__json_tensor_write(
        &s->item->value.tensor, &(struct marey__json_style){0}, marey__dump_file_sink, &file);
    marey__dump_file_put(&file, "\n", 1);
    const marey_status ended = marey__dump_file_end(&file, st == MAREY_OK);
    return ended != MAREY_OK ? ended : st;
}

/* As .bin, .npy, or .safetensors with the path as the tensor's name. */
static marey_status save_bytes(struct value_writer *s, const char *suffix)
{
    const struct marey_tensor *const t = &s->item->value.tensor;
    struct marey__buf head MAREY__FINALLY(marey__buf_fini) = {0};
    struct marey__buf meta MAREY__FINALLY(marey__buf_fini) = {0};
    MAREY_TRY(marey__tensor_header_put(&head, t, s->item->value.type, s->where->path->data,
                                       s->where->path->len, s->where->step, s->place->rank));
    MAREY_TRY(save(s, suffix, &head, t->data, s->item->n_bytes));
    marey__bin_meta_put(&meta, t);
    return s->item->value.type == MAREY_DUMP_BINARY ? save_meta(s, &meta) : MAREY_OK;
}

/* ---- images: made by libmarey-tools, which is opened for the first one and stays loaded ---- */

static struct {
    pthread_mutex_t lock; /* guards the search */
    const struct marey__dump_images *found;
    struct marey__dump_images table;
} image_library = {.lock = PTHREAD_MUTEX_INITIALIZER};

void marey__dump_images_set(const struct marey__dump_images *table)
{
    MAREY__HOLD(&image_library.lock);
    image_library.found = table;
}

static void *open_tools(void)
{
    static const char name[] = "libmarey-tools.so.0";
    char path[PATH_MAX + 32];
    const char *const mine = marey_library_path(), *const slash = strrchr(mine, '/');
    snprintf(path, sizeof path, "%.*s%s", slash != NULL ? (int)(slash + 1 - mine) : 0, mine, name);
    void *const beside = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return beside != NULL ? beside : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static const struct marey__dump_images *find_library(void)
{
    struct marey__dump_images *const t = &image_library.table;
    void *const library = open_tools();
    if (library == NULL)
        return NULL;
    *(void **)&t->create = dlsym(library, "marey_images_create");
    *(void **)&t->destroy = dlsym(library, "marey_images_destroy");
    *(void **)&t->count = dlsym(library, "marey_images_count");
    *(void **)&t->get = dlsym(library, "marey_images_get");
    *(void **)&t->axes = dlsym(library, "marey_images_axes");
    *(void **)&t->pack = dlsym(library, "marey_png_pack");
    *(void **)&t->free_png = dlsym(library, "marey_png_free");
    return t->create && t->destroy && t->count && t->get && t->axes && t->pack && t->free_png ? t
                                                                                              : NULL;
}

/* NULL if it is missing. */
static const struct marey__dump_images *find_images(void)
{
    MAREY__HOLD(&image_library.lock);
    if (image_library.found == NULL)
        image_library.found = find_library();
    return image_library.found;
}

static marey_status save_image(struct value_writer *s, const struct marey__dump_images *lib,
                               const struct marey_image *image, const char *suffix)
{
    static const char *const formats[] = {"RGB", "BGR", "Intensity"};
    void *bytes;
    size_t len;
    MAREY_TRY(lib->pack(image, NULL, &bytes, &len));
    const marey_status st = save(s, suffix, NULL, bytes, len);
    lib->free_png(bytes);
    MAREY_TRY(st);
    struct marey__buf meta MAREY__FINALLY(marey__buf_fini) = {0};
    marey__image_meta_put(&meta, s->item->value.tensor.dtype, image->low, image->high,
                          formats[marey__image_type(s->item->value.type)]);
    return save_meta(s, &meta);
}

/* ".0.2.png": the indices on the axes that count images. */
static void image_suffix(char *out, size_t size, size_t number, uint32_t n_axes, const int64_t *sizes)
{
    uint64_t positions[MAREY_MAX_RANK];
    size_t len = 0;
    marey__index_of(sizes, n_axes, number, positions);
    for (uint32_t i = 0; i < n_axes; i++)
        marey__append(out, size, &len, ".%" PRIu64, positions[i]);
    marey__append(out, size, &len, ".png");
}

static marey_status save_images(struct value_writer *s)
{
    static const struct marey_image_options accvlab = {.truncates = 1};
    const bool is_accvlab = s->where->has_meta && s->item->image == NULL;
    const struct marey__dump_images *const lib = find_images();
    if (lib == NULL)
        return marey__fail(MAREY_EUNAVAILABLE,
                           "images are drawn by libmarey-tools.so.0, which is not beside %s",
                           marey_library_path());
    marey_images *images;
    MAREY_TRY(lib->create(&s->item->value.tensor, marey__image_type(s->item->value.type),
                          is_accvlab ? &accvlab : s->item->image, &images));
    const int64_t *sizes;
    const uint32_t n_axes = lib->axes(images, &sizes);
    const size_t n = lib->count(images);
    marey_status st = MAREY_OK;
    for (size_t i = 0; i < n && st == MAREY_OK; i++) {
        char suffix[MAREY_MAX_RANK * 21 + 8];
        image_suffix(suffix, sizeof suffix, i, n_axes, sizes);
        st = save_image(s, lib, lib->get(images, i), suffix);
    }
    s->item->files.n_axes = MAREY__MIN(n_axes, s->item->value.tensor.rank);
    lib->destroy(images);
    return st;
}

static marey_status save_value(struct value_writer *s)
{
    switch (s->item->value.type) {
    case MAREY_DUMP_BINARY:
        return save_bytes(s, ".bin");
    case MAREY_DUMP_NPY:
        return save_bytes(s, marey__npy_suffix(s->item->value.tensor.dtype));
    case MAREY_DUMP_SAFETENSORS:
        return save_bytes(s, ".safetensors");
    case MAREY_DUMP_IMAGE_RGB:
    case MAREY_DUMP_IMAGE_BGR:
    case MAREY_DUMP_IMAGE_I:
        return save_images(s);
    case MAREY_DUMP_PICKLE:
        return save(s, ".pkl", NULL, s->item->value.text, s->item->value.text_len);
    default:
        return save_json(s);
    }
}

void marey__dump_value_write(struct marey__dump_item *item, const struct marey__dump_place *place,
                             const struct marey__dump_value_target *where,
                             struct marey__dump_result *result)
{
    struct value_writer s = {.item = item, .place = place, .where = where};
    marey__file_name_put(&s.name, where->name->data, where->name->len, "");
    marey__buf_put(&s.name, "", 1);
    const marey_status st = s.name.failed ? marey__no_memory() : save_value(&s);
    marey__buf_fini(&s.name);
    if (st == MAREY_OK)
        return;
    item->missing = st == MAREY_ENOMEM ? "memory" : st == MAREY_EIO ? "disk" : "form";
    marey__dump_files_fini(&item->files);
    result->n_failed++;
    marey__dump_report(result, "step %" PRIu64 " of the dump in %s lacks '%.*s': %s", where->step,
                       place->dir, (int)MAREY__MIN(where->path->len, (size_t)100),
                       where->path->data, marey_last_error());
}
