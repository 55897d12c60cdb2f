/* A value that was added, with everything copied from it; and the step that it belongs to. */
#include <assert.h>
#include <string.h>

#include "instrument/dump/internal.h"

/* ---- image options, which are lent for the call that adds a value ---- */

static void *duplicate(const void *bytes, size_t len, bool *ok)
{
    if (bytes == NULL || len == 0)
        return NULL;
    void *const copy = marey__alloc(len);
    *ok = *ok && copy != NULL;
    return copy != NULL ? memcpy(copy, bytes, len) : NULL;
}

/* Copies the mask, row-major, with its sizes. */
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

static void destroy_image_options(struct marey_image_options *options)
{
    if (options == NULL)
        return;
    MAREY__FREE_ALL((void *)(uintptr_t)options->boxes, (void *)(uintptr_t)options->points,
                    (void *)(uintptr_t)options->mask.data, (void *)(uintptr_t)options->mask.sizes,
                    options);
}

static marey_status copy_image_options(const struct marey_image_options *options,
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
        destroy_image_options(copy);
        return marey__no_memory();
    }
    *out = copy;
    return MAREY_OK;
}

/* ---- copies besides the data, in one allocation ---- */

static bool is_literal(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)text[i];
        const bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        if (!is_letter && !(c >= '0' && c <= '9') && c != '+' && c != '-' && c != '.')
            return false;
    }
    return len > 0;
}

static marey_status check_permutation(const uint32_t *permutation, uint32_t rank)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (permutation[i] >= rank || (seen & UINT64_C(1) << permutation[i]) != 0)
            return marey__fail(MAREY_EINVAL, "a permutation of %u axes has %u at %u", rank,
                               permutation[i], i);
        seen |= UINT64_C(1) << permutation[i];
    }
    return MAREY_OK;
}

static marey_status check_value(const struct marey_dump_value *value)
{
    static_assert(MAREY_MAX_RANK <= 64, "a permutation's axes are bits of one word");
    if ((unsigned)value->type >= MAREY_N_DUMP_TYPES || (unsigned)value->kind > MAREY_DUMP_BYTES)
        return marey__fail(MAREY_EINVAL, "type %d or kind %d is none of those marey/dump.h names",
                           (int)value->type, (int)value->kind);
    if (value->kind == MAREY_DUMP_LITERAL && !is_literal(value->text, value->text_len))
        return marey__fail(MAREY_EINVAL, "'%.*s' is not a number, true, false or null",
                           (int)MAREY__MIN(value->text_len, (size_t)40), (const char *)value->text);
    if (value->kind == MAREY_DUMP_BYTES && value->type != MAREY_DUMP_PICKLE)
        return marey__fail(MAREY_EINVAL, "bytes are dumped only as a pickle");
    if (value->kind != MAREY_DUMP_TENSOR)
        return MAREY_OK;
    if (value->type == MAREY_DUMP_PICKLE)
        return marey__fail(MAREY_EINVAL, "a pickle is made by Python: add its bytes");
    MAREY_TRY(marey_tensor_check(&value->tensor));
    return value->permutation != NULL ? check_permutation(value->permutation, value->tensor.rank)
                                      : MAREY_OK;
}

static size_t text_bytes(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static char *put_text(char **at, const char *text, size_t len)
{
    if (text == NULL)
        return NULL;
    char *const put = *at;
    if (len > 0)
        memcpy(put, text, len);
    put[len] = '\0';
    *at += len + 1;
    return put;
}

/* Sizes and strides in permuted order. */
static void put_axes(struct marey__dump_item *item, const struct marey_dump_value *value,
                     int64_t *axes)
{
    const struct marey_tensor *const t = &value->tensor;
    int64_t row_major[MAREY_MAX_RANK], step = 1;
    for (uint32_t i = t->rank; i-- > 0; step *= t->sizes[i])
        row_major[i] = step;
    const int64_t *const strides = t->strides != NULL ? t->strides : row_major;
    for (uint32_t i = 0; i < t->rank; i++) {
        const uint32_t from = value->permutation != NULL ? value->permutation[i] : i;
        axes[i] = t->sizes[from];
        axes[t->rank + i] = strides[from];
    }
    item->value.tensor.sizes = axes;
    item->value.tensor.strides = axes + t->rank;
    if (!marey_tensor_is_row_major(&item->value.tensor))
        item->strides = axes + t->rank;
    item->n_bytes = marey_tensor_bytes(&item->value.tensor);
}

marey_status marey__dump_item_create(const struct marey_dump_value *value,
                                     struct marey__dump_item **out)
{
    MAREY_TRY(check_value(value));
    const bool is_tensor = value->kind == MAREY_DUMP_TENSOR;
    const size_t rank = is_tensor ? value->tensor.rank : 0;
    const size_t text_len = is_tensor || value->text == NULL ? 0 : value->text_len;
    struct marey__dump_item *const item =
        marey__alloc(sizeof *item + 2 * rank * sizeof(int64_t) + text_len + 1 +
                     text_bytes(value->file) + text_bytes(value->phase));
    MAREY__TRY_MEMORY(item != NULL);
    *item = (struct marey__dump_item){.value = *value};
    int64_t *const axes = (int64_t *)(item + 1);
    char *at = (char *)(axes + 2 * rank);
    item->value.text = put_text(&at, value->text != NULL ? value->text : "", text_len);
    item->value.text_len = text_len;
    item->value.file = put_text(&at, value->file, text_bytes(value->file) - 1);
    item->value.phase = put_text(&at, value->phase, text_bytes(value->phase) - 1);
    item->value.permutation = NULL;
    item->value.image = NULL;
    item->value.release = NULL;
    if (is_tensor)
        put_axes(item, value, axes);
    else
        item->value.tensor = (struct marey_tensor){0};
    const marey_status st =
        value->image != NULL ? copy_image_options(value->image, &item->image) : MAREY_OK;
    if (st == MAREY_OK)
        *out = item;
    else
        marey__free(item);
    return st;
}

void marey__dump_item_forget_data(struct marey__dump_item *item)
{
    marey__dump_item_give_room(item, item->copy);
    item->copy = NULL;
    if (item->value.release != NULL)
        item->value.release(item->value.owner);
    item->value.release = NULL;
    item->value.tensor.data = NULL;
}

void marey__dump_files_fini(struct marey__dump_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        marey__free(files->names[i]);
    marey__free(files->names);
    *files = (struct marey__dump_files){0};
}

void marey__dump_item_destroy(struct marey__dump_item *item)
{
    marey__dump_item_forget_data(item);
    if (item->measure != NULL)
        marey__dump_measure_fini(item->measure);
    marey__free(item->measure);
    destroy_image_options(item->image);
    marey__dump_files_fini(&item->files);
    marey__free(item);
}

/* ---- the data ---- */

marey_status marey__dump_item_measure(struct marey__dump_item *item, uint32_t what)
{
    item->measure = marey__alloc(sizeof *item->measure);
    MAREY__TRY_MEMORY(item->measure != NULL);
    marey__dump_measure(&item->value.tensor, what, item->measure);
    item->is_measured_only = true;
    return MAREY_OK;
}

marey_status marey__dump_item_take_room(struct marey__dump_item *item, void **out)
{
    if (item->is_spilled)
        return marey__dump_spill_take(marey__dump.dir, item->n_bytes, out);
    *out = marey__dump_memory_take(item->n_bytes);
    return *out != NULL ? MAREY_OK : marey__no_memory();
}

void marey__dump_item_give_room(struct marey__dump_item *item, void *bytes)
{
    if (item->is_spilled)
        marey__dump_spill_give(bytes, item->n_bytes);
    else
        marey__dump_memory_give(bytes, item->n_bytes);
}

marey_status marey__dump_item_copy(struct marey__dump_item *item)
{
    void *copy = NULL;
    MAREY_TRY(marey__dump_item_take_room(item, &copy));
    const marey_status st = marey_tensor_gather(&item->value.tensor, copy);
    if (st == MAREY_OK)
        marey__dump_item_own(item, copy);
    else
        marey__dump_item_give_room(item, copy);
    return st;
}

void marey__dump_item_own(struct marey__dump_item *item, void *copy)
{
    struct marey_tensor *const t = &item->value.tensor;
    item->copy = copy;
    t->data = copy;
    t->strides = NULL;
    t->memory = MAREY_MEMORY_HOST;
}

/* ---- steps ---- */

struct marey__dump_step *marey__dump_step_create(void)
{
    return marey__calloc(1, sizeof(struct marey__dump_step));
}

void marey__dump_path_init(struct marey__dump_path *path, size_t n_parts)
{
    path->n_parts = n_parts;
    path->parts = n_parts <= MAREY__COUNT_OF(path->few)
                      ? path->few
                      : marey__alloc(n_parts * sizeof *path->parts);
}

void marey__dump_path_fini(struct marey__dump_path *path)
{
    if (path->parts != path->few)
        marey__free(path->parts);
}

void marey__dump_item_path(const struct marey__dump_step *step, const struct marey__dump_item *item,
                           struct marey__dump_path *path)
{
    const struct marey__dump_tree *const tree = &step->trees[item->tree];
    marey__dump_path_init(path, tree->nodes[item->node].depth);
    if (path->parts != NULL)
        marey__dump_tree_path(tree, item->node, path->parts);
}

void marey__dump_item_name(const struct marey__dump_step *step, const struct marey__dump_item *item,
                           bool is_dotted, struct marey__buf *out)
{
    struct marey__dump_path path MAREY__FINALLY(marey__dump_path_fini) = {0};
    marey__dump_item_path(step, item, &path);
    if (path.parts == NULL)
        out->failed = true;
    else if (is_dotted)
        marey__name_put_dotted(out, path.parts, path.n_parts);
    else
        marey__name_put(out, item->tree, path.parts, path.n_parts);
}

void marey__dump_step_put(struct marey__dump_step *step, struct marey__dump_item *item)
{
    item->next = NULL;
    *(step->last != NULL ? &step->last->next : &step->first) = item;
    step->last = item;
    step->n_items[item->tree]++;
    struct marey__dump_node *const node = &step->trees[item->tree].nodes[item->node];
    if (node->item == NULL || item->value.kind != MAREY_DUMP_DICT)
        node->item = item;
}

struct marey__dump_item *marey__dump_step_take(struct marey__dump_step *step,
                                               enum marey_dump_tree tree)
{
    struct marey__dump_item *taken = NULL, **end = &taken, **keep = &step->first;
    step->last = NULL;
    for (struct marey__dump_item *item = step->first, *next; item != NULL; item = next) {
        next = item->next;
        if (item->tree == tree) {
            *end = item;
            end = &item->next;
        } else {
            *keep = step->last = item;
            keep = &item->next;
        }
    }
    *keep = *end = NULL;
    step->n_items[tree] = 0;
    marey__dump_tree_fini(&step->trees[tree]);
    return taken;
}

void marey__dump_step_destroy(struct marey__dump_step *step)
{
    if (step == NULL)
        return;
    for (struct marey__dump_item *item = step->first, *next; item != NULL; item = next) {
        next = item->next;
        marey__dump_item_destroy(item);
    }
    marey__dump_tree_fini(&step->trees[0]);
    marey__dump_tree_fini(&step->trees[1]);
    MAREY__FREE_ALL(step->reason, step);
}
