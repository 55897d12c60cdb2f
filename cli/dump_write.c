/* marey dump cat and image: write one value. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <marey/image.h>

#include "dump.h"

/* ---- cat ---- */

static enum marey_dump_type wanted_form(void)
{
    return strcmp(dump_given.as, "npy") == 0           ? MAREY_DUMP_NPY
           : strcmp(dump_given.as, "json") == 0        ? MAREY_DUMP_JSON
           : strcmp(dump_given.as, "safetensors") == 0 ? MAREY_DUMP_SAFETENSORS
                                                       : MAREY_DUMP_BINARY;
}

static int write_value(void *ctx, FILE *out)
{
    const struct dump_choice *const choice = ctx;
    struct marey_tensor tensor;
    if (choice->value->dtype == MAREY_DTYPE_NONE && choice->value->text != NULL)
        return fwrite(choice->value->text, 1, choice->value->text_len, out) == choice->value->text_len
                   ? CLI_FINE
                   : cli_fail("cannot write %s: %s", choice->value->name, strerror(errno));
    CLI_TRY(dump_get(choice, &tensor));
    return cli_status(marey_tensor_write(&tensor, wanted_form(), choice->value->name, out));
}

static int cat_value(void *ctx, const struct dump_choice *choice)
{
    (void)ctx;
    return cli_print_file(dump_given.output, write_value, (void *)choice, NULL);
}

static int count_value(void *ctx, const struct dump_choice *choice)
{
    size_t *n = ctx;
    (void)choice;
    return ++*n > 1 ? cli_fail("several values have this name; select one with --step and --rank")
                    : CLI_FINE;
}

/* Writes nothing unless exactly one value matches. */
static int use_one(marey_dumps *dumps, const char *name, dump_use *use)
{
    size_t n = 0;
    const int status = dump_choose(dumps, name, count_value, &n);
    return status == CLI_FINE ? dump_choose(dumps, name, use, NULL) : status;
}

int dump_cat(marey_dumps *dumps, const char *name)
{
    return use_one(dumps, name, cat_value);
}

/* ---- image ---- */

static bool parse_range(struct marey_image_options *options)
{
    char *end;
    if (dump_given.range == NULL)
        return true;
    options->range = MAREY_RANGE_FIXED;
    options->low = strtod(dump_given.range, &end);
    if (end != dump_given.range && *end == ',') {
        const char *high = end + 1;
        options->high = strtod(high, &end);
        if (end != high && *end == '\0' && options->high > options->low)
            return true;
    }
    return cli_refuse("--range takes two numbers, the lower first, such as 0,1, not '%s'",
                      dump_given.range);
}

static enum marey_color_map wanted_map(void)
{
    if (dump_given.map == NULL)
        return MAREY_MAP_NONE;
    return strcmp(dump_given.map, "viridis") == 0 ? MAREY_MAP_VIRIDIS
           : strcmp(dump_given.map, "heat") == 0  ? MAREY_MAP_HEAT
                                                  : MAREY_MAP_DIVERGING;
}

/* Uses colors if the tensor can have them, unless a color map was requested. */
static marey_status make_images(const struct marey_tensor *tensor,
                                const struct marey_image_options *options, marey_images **out)
{
    if (dump_given.type != NULL)
        return marey_images_create(tensor,
                                   strcmp(dump_given.type, "rgb") == 0   ? MAREY_IMAGE_RGB
                                   : strcmp(dump_given.type, "bgr") == 0 ? MAREY_IMAGE_BGR
                                                                         : MAREY_IMAGE_GREY,
                                   options, out);
    if (options->map == MAREY_MAP_NONE &&
        marey_images_create(tensor, MAREY_IMAGE_RGB, options, out) == MAREY_OK)
        return MAREY_OK;
    return marey_images_create(tensor, MAREY_IMAGE_GREY, options, out);
}

static int print_image(void *ctx, FILE *out)
{
    void *bytes;
    size_t len;
    CLI_TRY(cli_status(marey_png_pack(ctx, NULL, &bytes, &len)));
    const bool is_out = fwrite(bytes, 1, len, out) == len;
    marey_png_free(bytes);
    return is_out ? CLI_FINE : cli_fail("cannot write the image: %s", strerror(errno));
}

static int save_image(const struct marey_image *image, const char *path)
{
    return cli_print_file(path, print_image, (void *)image, NULL);
}

/* Image 3 of "out.png" goes to "out-3.png". */
static int save_numbered(const struct marey_image *image, const char *path, size_t i)
{
    char numbered[4096];
    const size_t len = strlen(path),
                 stem = len > 4 && strcmp(path + len - 4, ".png") == 0 ? len - 4 : len;
    if (snprintf(numbered, sizeof numbered, "%.*s-%zu.png", (int)stem, path, i) >=
        (int)sizeof numbered)
        return cli_fail("the name %s is too long", path);
    return save_image(image, numbered);
}

static int save_images(const marey_images *images)
{
    const char *path = dump_given.output != NULL ? dump_given.output : "-";
    const size_t n = marey_images_count(images);
    if (dump_given.picture != UINT32_MAX && dump_given.picture >= n)
        return cli_fail("no image %u: there are %zu, from 0 on", dump_given.picture, n);
    if (dump_given.picture != UINT32_MAX || n == 1)
        return save_image(marey_images_get(images, n == 1 ? 0 : dump_given.picture), path);
    if (strcmp(path, "-") == 0)
        return cli_fail("the value has %zu images: select one with --picture, or write all with "
                        "--output FILE.png",
                        n);
    for (size_t i = 0; i < n; i++)
        CLI_TRY(save_numbered(marey_images_get(images, i), path, i));
    return CLI_FINE;
}

static int draw_value(void *ctx, const struct dump_choice *choice)
{
    struct marey_image_options options = {.map = wanted_map()};
    struct marey_tensor tensor;
    marey_images *images;
    (void)ctx;
    CLI_TRY(parse_range(&options) ? dump_get(choice, &tensor) : CLI_BAD);
    if (make_images(&tensor, &options, &images) != MAREY_OK)
        return cli_fail("%s cannot be drawn: %s", choice->value->name, marey_last_error());
    const int status = save_images(images);
    marey_images_destroy(images);
    return status;
}

int dump_image(marey_dumps *dumps, const char *name)
{
    return use_one(dumps, name, draw_value);
}
