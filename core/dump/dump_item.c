/* A value that was added, with all that is copied of it; and the step that it is added to. */
#include <assert.h>
#include <string.h>

#include "dump/dump_internal.h"

/* ---- what is copied beside the data: one allocation holds it all ---- */

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

static kymo_status check_permutation(const uint32_t *permutation, uint32_t rank)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (permutation[i] >= rank || (seen & UINT64_C(1) << permutation[i]) != 0)
            return kymo__fail(KYMO_EINVAL, "a permutation of %u axes has %u at %u", rank,
                              permutation[i], i);
        seen |= UINT64_C(1) << permutation[i];
    }
    return KYMO_OK;
}

static kymo_status check_value(const struct kymo_dump_value *value)
{
    static_assert(KYMO_MAX_RANK <= 64, "a permutation's axes are bits of one word");
    if ((unsigned)value->type >= KYMO_N_DUMP_TYPES || (unsigned)value->kind > KYMO_DUMP_BYTES)
        return kymo__fail(KYMO_EINVAL, "type %d or kind %d is none of those kymo/dump.h names",
                          (int)value->type, (int)value->kind);
    if (value->kind == KYMO_DUMP_LITERAL && !is_literal(value->text, value->text_len))
        return kymo__fail(KYMO_EINVAL, "'%.*s' is no number, true, false or null",
                          (int)KYMO__MIN(value->text_len, (size_t)40), (const char *)value->text);
    if (value->kind == KYMO_DUMP_BYTES && value->type != KYMO_DUMP_PICKLE)
        return kymo__fail(KYMO_EINVAL, "bytes are dumped as a pickle alone");
    if (value->kind != KYMO_DUMP_TENSOR)
        return KYMO_OK;
    if (value->type == KYMO_DUMP_PICKLE)
        return kymo__fail(KYMO_EINVAL, "a pickle is made by Python: add its bytes");
    KYMO_TRY(kymo_tensor_check(&value->tensor));
    return value->permutation != NULL ? check_permutation(value->permutation, value->tensor.rank)
                                      : KYMO_OK;
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

/* Sizes and strides in the order that the permutation asks for. */
static void put_axes(struct kymo__dump_item *item, const struct kymo_dump_value *value, int64_t *axes)
{
    const struct kymo_tensor *const t = &value->tensor;
    int64_t row_major[KYMO_MAX_RANK], step = 1;
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
    if (!kymo_tensor_is_row_major(&item->value.tensor))
        item->strides = axes + t->rank;
    item->n_bytes = kymo_tensor_bytes(&item->value.tensor);
}

kymo_status kymo__dump_item_create(const struct kymo_dump_value *value, struct kymo__dump_item **out)
{
    KYMO_TRY(check_value(value));
    const bool is_tensor = value->kind == KYMO_DUMP_TENSOR;
    const size_t rank = is_tensor ? value->tensor.rank : 0;
    const size_t text_len = is_tensor || value->text == NULL ? 0 : value->text_len;
    struct kymo__dump_item *const item =
        kymo__alloc(sizeof *item + 2 * rank * sizeof(int64_t) + text_len + 1 +
                    text_bytes(value->file) + text_bytes(value->phase));
    if (item == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for a value of the dump");
    *item = (struct kymo__dump_item){.value = *value};
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
        item->value.tensor = (struct kymo_tensor){0};
    const kymo_status st =
        value->image != NULL ? kymo__image_options_copy(value->image, &item->image) : KYMO_OK;
    if (st == KYMO_OK)
        *out = item;
    else
        kymo__free(item);
    return st;
}

void kymo__dump_item_forget_data(struct kymo__dump_item *item)
{
    kymo__dump_item_give_room(item, item->copy);
    item->copy = NULL;
    if (item->value.release != NULL)
        item->value.release(item->value.owner);
    item->value.release = NULL;
    item->value.tensor.data = NULL;
}

void kymo__dump_files_fini(struct kymo__dump_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        kymo__free(files->names[i]);
    kymo__free(files->names);
    *files = (struct kymo__dump_files){0};
}

void kymo__dump_item_destroy(struct kymo__dump_item *item)
{
    kymo__dump_item_forget_data(item);
    if (item->measure != NULL)
        kymo__dump_measure_fini(item->measure);
    kymo__free(item->measure);
    kymo__image_options_destroy(item->image);
    kymo__dump_files_fini(&item->files);
    kymo__free(item);
}

/* ---- the data ---- */

kymo_status kymo__dump_item_measure(struct kymo__dump_item *item, uint32_t what)
{
    item->measure = kymo__alloc(sizeof *item->measure);
    if (item->measure == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for the statistics of a tensor");
    kymo__dump_measure(&item->value.tensor, what, item->measure);
    item->is_measured_only = true;
    return KYMO_OK;
}

kymo_status kymo__dump_item_take_room(struct kymo__dump_item *item, void **out)
{
    if (item->is_spilled)
        return kymo__dump_spill_take(kymo__dump.dir, item->n_bytes, out);
    *out = kymo__dump_memory_take(item->n_bytes);
    return *out != NULL ? KYMO_OK
                        : kymo__fail(KYMO_ENOMEM, "no memory for a copy of %llu bytes",
                                     (unsigned long long)item->n_bytes);
}

void kymo__dump_item_give_room(struct kymo__dump_item *item, void *bytes)
{
    if (item->is_spilled)
        kymo__dump_spill_give(bytes, item->n_bytes);
    else
        kymo__dump_memory_give(bytes, item->n_bytes);
}

kymo_status kymo__dump_item_copy(struct kymo__dump_item *item)
{
    void *copy = NULL;
    KYMO_TRY(kymo__dump_item_take_room(item, &copy));
    const kymo_status st = kymo_tensor_gather(&item->value.tensor, copy);
    if (st == KYMO_OK)
        kymo__dump_item_own(item, copy);
    else
        kymo__dump_item_give_room(item, copy);
    return st;
}

void kymo__dump_item_own(struct kymo__dump_item *item, void *copy)
{
    struct kymo_tensor *const t = &item->value.tensor;
    item->copy = copy;
    t->data = copy;
    t->strides = NULL;
    t->memory = KYMO_MEMORY_HOST;
}

/* ---- steps ---- */

struct kymo__dump_step *kymo__dump_step_create(void)
{
    return kymo__calloc(1, sizeof(struct kymo__dump_step));
}

struct kymo_dump_part *kymo__dump_item_path(const struct kymo__dump_step *step,
                                            const struct kymo__dump_item *item,
                                            struct kymo_dump_part few[KYMO__FEW_PARTS],
                                            size_t *n_parts)
{
    const struct kymo__dump_tree *const tree = &step->trees[item->tree];
    *n_parts = tree->nodes[item->node].depth;
    struct kymo_dump_part *const parts =
        *n_parts <= KYMO__FEW_PARTS ? few : kymo__alloc(*n_parts * sizeof *parts);
    if (parts != NULL)
        kymo__dump_tree_path(tree, item->node, parts);
    return parts;
}

void kymo__dump_item_name(const struct kymo__dump_step *step, const struct kymo__dump_item *item,
                          struct kymo__buf *out)
{
    struct kymo_dump_part few[KYMO__FEW_PARTS];
    size_t n_parts;
    struct kymo_dump_part *const parts = kymo__dump_item_path(step, item, few, &n_parts);
    if (parts != NULL)
        kymo__name_put(out, item->tree, parts, n_parts);
    else
        out->failed = true;
    if (parts != few)
        kymo__free(parts);
}

void kymo__dump_item_dotted(const struct kymo__dump_step *step, const struct kymo__dump_item *item,
                            struct kymo__buf *out)
{
    struct kymo_dump_part few[KYMO__FEW_PARTS];
    size_t n_parts;
    struct kymo_dump_part *const parts = kymo__dump_item_path(step, item, few, &n_parts);
    if (parts != NULL)
        kymo__name_put_dotted(out, parts, n_parts);
    else
        out->failed = true;
    if (parts != few)
        kymo__free(parts);
}

void kymo__dump_step_put(struct kymo__dump_step *step, struct kymo__dump_item *item)
{
    item->next = NULL;
    *(step->last != NULL ? &step->last->next : &step->first) = item;
    step->last = item;
    step->n_items[item->tree]++;
    struct kymo__dump_node *const node = &step->trees[item->tree].nodes[item->node];
    if (node->item == NULL || item->value.kind != KYMO_DUMP_DICT)
        node->item = item;
}

struct kymo__dump_item *kymo__dump_step_take(struct kymo__dump_step *step, enum kymo_dump_tree tree)
{
    struct kymo__dump_item *taken = NULL, **end = &taken, **keep = &step->first;
    step->last = NULL;
    for (struct kymo__dump_item *item = step->first, *next; item != NULL; item = next) {
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
    kymo__dump_tree_fini(&step->trees[tree]);
    return taken;
}

void kymo__dump_step_destroy(struct kymo__dump_step *step)
{
    if (step == NULL)
        return;
    for (struct kymo__dump_item *item = step->first, *next; item != NULL; item = next) {
        next = item->next;
        kymo__dump_item_destroy(item);
    }
    kymo__dump_tree_fini(&step->trees[0]);
    kymo__dump_tree_fini(&step->trees[1]);
    kymo__free(step->reason);
    kymo__free(step);
}
