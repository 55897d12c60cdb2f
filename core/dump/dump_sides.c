/*
 * Files of one value each: .bin, .png, .npy, .safetensors, .json, .pkl. Both layouts have them; they differ in folder, in
 * what stands in front of the name, and in the small text beside .bin and .png that ACCV-Lab's readers want.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dump/dump_internal.h"

struct side {
    struct kymo__dump_item *item;
    const struct kymo__dump_place *place;
    const struct kymo__dump_side *where;
    struct kymo__buf name; /* the value's, as a file may have it, without a suffix; and a NUL */
};

/* A name for the next file of the value; NULL without memory. Lent by the item. */
static const char *next_name(struct side *s, const char *suffix)
{
    struct kymo__dump_files *const files = &s->item->files;
    char *const name = kymo__alloc(s->name.len + strlen(suffix));
    if (name == NULL || !kymo__grow(&files->names, &files->cap, files->n + 1, sizeof *files->names)) {
        kymo__free(name);
        return NULL;
    }
    memcpy(name, s->name.data, s->name.len - 1);
    memcpy(name + s->name.len - 1, suffix, strlen(suffix) + 1);
    return files->names[files->n++] = name;
}

static kymo_status begin(struct side *s, struct kymo__dump_file *file, const char *suffix)
{
    const char *const name = next_name(s, suffix);
    struct kymo__buf full = {0};
    kymo__buf_puts(&full, s->where->prefix);
    kymo__buf_puts(&full, name != NULL ? name : "");
    kymo__buf_put(&full, "", 1);
    if (name == NULL || full.failed) {
        kymo__buf_fini(&full);
        return kymo__fail(KYMO_ENOMEM, "no memory for the name of a file of the dump");
    }
    kymo__dump_file_begin(file, s->where->folder, full.data, s->place->durable);
    kymo__buf_fini(&full);
    return KYMO_OK;
}

static kymo_status save(struct side *s, const char *suffix, const struct kymo__buf *head,
                        const void *bytes, size_t len)
{
    struct kymo__dump_file file;
    if (head != NULL && head->failed)
        return kymo__fail(KYMO_ENOMEM, "no memory for a file of the dump");
    KYMO_TRY(begin(s, &file, suffix));
    if (head != NULL)
        kymo__dump_file_put(&file, head->data, head->len);
    kymo__dump_file_put(&file, bytes, len);
    return kymo__dump_file_end(&file, true);
}

/* The text beside a file, under the same name with more behind; it is not among the value's files. */
static kymo_status save_meta(struct side *s, const struct kymo__buf *text)
{
    struct kymo__dump_files *const files = &s->item->files;
    char suffix[KYMO__FILE_NAME_MAX + 64];
    if (!s->where->has_meta)
        return KYMO_OK;
    const char *const of = files->names[files->n - 1];
    snprintf(suffix, sizeof suffix, "%s.meta.json", of + s->name.len - 1);
    const kymo_status st = save(s, suffix, text, NULL, 0);
    kymo__free(files->names[--files->n]);
    return st;
}

/* ---- the forms ---- */

static kymo_status save_json(struct side *s)
{
    struct kymo__dump_file file;
    KYMO_TRY(begin(s, &file, ".json"));
    kymo_status st = kymo__json_tensor_write(&s->item->value.tensor,
                                             &(struct kymo__json_style){.nan = KYMO__NAN_TEXT},
                                             kymo__dump_file_sink, &file);
    kymo__dump_file_put(&file, "\n", 1);
    const kymo_status ended = kymo__dump_file_end(&file, st == KYMO_OK);
    return ended != KYMO_OK ? ended : st;
}

static kymo_status save_binary(struct side *s)
{
    const struct kymo_tensor *const t = &s->item->value.tensor;
    struct kymo__buf meta = {0};
    kymo_status st = save(s, ".bin", NULL, t->data, s->item->n_bytes);
    kymo__bin_meta_put(&meta, t);
    if (st == KYMO_OK)
        st = save_meta(s, &meta);
    kymo__buf_fini(&meta);
    return st;
}

static kymo_status save_npy(struct side *s)
{
    const struct kymo_tensor *const t = &s->item->value.tensor;
    struct kymo__buf head = {0};
    kymo__npy_header_put(&head, t);
    const kymo_status st = save(s, kymo__npy_suffix(t->dtype), &head, t->data, s->item->n_bytes);
    kymo__buf_fini(&head);
    return st;
}

/* One tensor, under the name of its path. */
static kymo_status save_safetensors(struct side *s)
{
    const struct kymo_tensor *const t = &s->item->value.tensor;
    struct kymo__safetensors table = {0};
    struct kymo__buf head = {0};
    kymo__safetensors_add(&table, s->where->path->data, s->where->path->len, t);
    kymo_status st = kymo__safetensors_head_put(&head, &table, s->where->step, s->place->rank, 0);
    if (st == KYMO_OK && table.entries.failed)
        st = kymo__fail(KYMO_ENOMEM, "no memory for a file of the dump");
    if (st == KYMO_OK)
        st = save(s, ".safetensors", &head, t->data, s->item->n_bytes);
    kymo__safetensors_fini(&table);
    kymo__buf_fini(&head);
    return st;
}

/* ---- pictures ---- */

static enum kymo_image_type image_type(enum kymo_dump_type type)
{
    return type == KYMO_DUMP_IMAGE_RGB   ? KYMO_IMAGE_RGB
           : type == KYMO_DUMP_IMAGE_BGR ? KYMO_IMAGE_BGR
                                         : KYMO_IMAGE_GREY;
}

static kymo_status save_picture(struct side *s, const struct kymo__dump_images *lib,
                                const struct kymo_image *image, const char *suffix)
{
    static const char *const formats[] = {"RGB", "BGR", "Intensity"};
    void *bytes;
    size_t len;
    KYMO_TRY(lib->pack(image, NULL, &bytes, &len));
    kymo_status st = save(s, suffix, NULL, bytes, len);
    lib->free_png(bytes);
    struct kymo__buf meta = {0};
    kymo__image_meta_put(&meta, s->item->value.tensor.dtype, image->low, image->high,
                         formats[image_type(s->item->value.type)]);
    if (st == KYMO_OK)
        st = save_meta(s, &meta);
    kymo__buf_fini(&meta);
    return st;
}

/* ".0.2.png": the positions on the axes that count pictures. */
static void picture_suffix(char *out, size_t size, size_t number, uint32_t n_axes,
                           const int64_t *sizes)
{
    size_t positions[KYMO_MAX_RANK] = {0}, len = 0;
    for (uint32_t i = n_axes; i-- > 0; number /= (size_t)sizes[i])
        positions[i] = number % (size_t)sizes[i];
    for (uint32_t i = 0; i < n_axes; i++)
        kymo__append(out, size, &len, ".%zu", positions[i]);
    kymo__append(out, size, &len, ".png");
}

static kymo_status save_pictures(struct side *s)
{
    static const struct kymo_image_options accvlab = {.truncates = 1};
    const bool is_accvlab = s->where->has_meta && s->item->image == NULL;
    const struct kymo__dump_images *lib;
    KYMO_TRY(kymo__dump_images_get(&lib));
    kymo_images *images;
    KYMO_TRY(lib->create(&s->item->value.tensor, image_type(s->item->value.type),
                         is_accvlab ? &accvlab : s->item->image, &images));
    const int64_t *sizes;
    const uint32_t n_axes = lib->axes(images, &sizes);
    const size_t n = lib->count(images);
    kymo_status st = KYMO_OK;
    for (size_t i = 0; i < n && st == KYMO_OK; i++) {
        char suffix[KYMO_MAX_RANK * 21 + 8];
        picture_suffix(suffix, sizeof suffix, i, n_axes, sizes);
        st = save_picture(s, lib, lib->get(images, i), suffix);
    }
    s->item->files.n_axes = KYMO__MIN(n_axes, s->item->value.tensor.rank);
    lib->destroy(images);
    return st;
}

static kymo_status save_value(struct side *s)
{
    switch (s->item->value.type) {
    case KYMO_DUMP_BINARY:
        return save_binary(s);
    case KYMO_DUMP_NPY:
        return save_npy(s);
    case KYMO_DUMP_SAFETENSORS:
        return save_safetensors(s);
    case KYMO_DUMP_IMAGE_RGB:
    case KYMO_DUMP_IMAGE_BGR:
    case KYMO_DUMP_IMAGE_I:
        return save_pictures(s);
    case KYMO_DUMP_PICKLE:
        return save(s, ".pkl", NULL, s->item->value.text, s->item->value.text_len);
    default:
        return save_json(s);
    }
}

void kymo__dump_side_write(struct kymo__dump_item *item, const struct kymo__dump_place *place,
                           const struct kymo__dump_side *where, struct kymo__dump_result *result)
{
    struct side s = {.item = item, .place = place, .where = where};
    kymo__file_name_put(&s.name, where->name->data, where->name->len, "");
    kymo__buf_put(&s.name, "", 1);
    const kymo_status st =
        s.name.failed ? kymo__fail(KYMO_ENOMEM, "no memory for the name of a file of the dump")
                      : save_value(&s);
    kymo__buf_fini(&s.name);
    if (st == KYMO_OK)
        return;
    item->missing = st == KYMO_ENOMEM ? "memory" : st == KYMO_EIO ? "disk" : "form";
    kymo__dump_files_fini(&item->files);
    result->n_failed++;
    kymo__dump_told(result, "step %" PRIu64 " of the dump in %s lacks '%.*s': %s", where->step,
                    place->dir, (int)KYMO__MIN(where->path->len, (size_t)100), where->path->data,
                    kymo_last_error());
}
