/*
 * Pictures are drawn and packed by libmarey-tools, which a program that dumps none need not carry. It is looked for beside
 * this library when the first one is written, and stays.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "instrument/dump/internal.h"

static struct {
    pthread_mutex_t lock; /* guards the search */
    const struct marey__dump_images *found;
    struct marey__dump_images table;
} images = {.lock = PTHREAD_MUTEX_INITIALIZER};

void marey__dump_images_set(const struct marey__dump_images *table)
{
    pthread_mutex_lock(&images.lock);
    images.found = table;
    pthread_mutex_unlock(&images.lock);
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

static const struct marey__dump_images *find(void)
{
    struct marey__dump_images *const t = &images.table;
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

marey_status marey__dump_images_get(const struct marey__dump_images **out)
{
    pthread_mutex_lock(&images.lock);
    if (images.found == NULL)
        images.found = find();
    *out = images.found;
    pthread_mutex_unlock(&images.lock);
    return *out != NULL
               ? MAREY_OK
               : marey__fail(MAREY_EUNAVAILABLE,
                             "pictures are drawn by libmarey-tools.so.0, which is not beside %s",
                             marey_library_path());
}

/* ---- options, which are lent for the call that adds a value ---- */

static void *duplicate(const void *bytes, size_t len, bool *ok)
{
    if (bytes == NULL || len == 0)
        return NULL;
    void *const copy = marey__alloc(len);
    *ok = *ok && copy != NULL;
    return copy != NULL ? memcpy(copy, bytes, len) : NULL;
}

/* The mask, row-major, with its sizes. */
static bool duplicate_mask(struct marey_tensor *mask)
{
    bool ok = true;
    const struct marey_tensor from = *mask;
    mask->data = NULL;
    mask->sizes = duplicate(from.sizes, from.rank * sizeof *from.sizes, &ok);
    if (from.data == NULL)
        return ok;
    void *const data = marey__alloc(marey_tensor_bytes(&from) + 1);
    mask->data = data;
    mask->strides = NULL;
    return ok && data != NULL && marey_tensor_gather(&from, data) == MAREY_OK;
}

marey_status marey__image_options_copy(const struct marey_image_options *options,
                                       struct marey_image_options **out)
{
    if (options->mask.data != NULL)
        MAREY_TRY(marey_tensor_check(&options->mask));
    bool ok = true;
    struct marey_image_options *const copy = duplicate(options, sizeof *options, &ok);
    MAREY__TRY_MEMORY(copy != NULL);
    copy->boxes = duplicate(options->boxes, options->n_boxes * sizeof *options->boxes, &ok);
    copy->points = duplicate(options->points, options->n_points * sizeof *options->points, &ok);
    if (!duplicate_mask(&copy->mask) || !ok) {
        marey__image_options_destroy(copy);
        return marey__no_memory();
    }
    *out = copy;
    return MAREY_OK;
}

void marey__image_options_destroy(struct marey_image_options *options)
{
    if (options == NULL)
        return;
    marey__free((void *)(uintptr_t)options->boxes);
    marey__free((void *)(uintptr_t)options->points);
    marey__free((void *)(uintptr_t)options->mask.data);
    marey__free((void *)(uintptr_t)options->mask.sizes);
    marey__free(options);
}
