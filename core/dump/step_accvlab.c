/*
 * Layout accvlab: a folder for each step with the tree as JSON and files of values. The JSON has the bytes that Python's
 * json.dump(tree, indent=2) gives, so that dumps of ACCV-Lab and of kymo can be compared by any means. Each file appears under its name when
 * it is whole, tensors.json last, so that a step that has it is complete. What an earlier run left in the folder goes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump/dump_internal.h"

static const char *const tree_files[] = {"tensors.json", "grads.json"};
static const char *const tree_prefixes[] = {"[tensors.json]", "[grads.json]"};

struct writer {
    struct kymo__dump_step *step;
    struct kymo__dump_place *place;
    struct kymo__dump_result *result;
    struct kymo__held_file folder;
    struct kymo__dump_file file; /* of the tree that is being written */
    const struct kymo__dump_tree *tree;
};

static void put_text(struct writer *w, const char *text)
{
    kymo__dump_file_put(&w->file, text, strlen(text));
}

static void put_string(struct writer *w, const char *text, size_t len)
{
    struct kymo__buf quoted = {0};
    kymo__json_python_string_put(&quoted, text, len);
    if (quoted.failed && w->file.status == KYMO_OK)
        w->file.status = kymo__fail(KYMO_ENOMEM, "no memory to write step %" PRIu64, w->step->number);
    kymo__dump_file_put(&w->file, quoted.data, quoted.len);
    kymo__buf_fini(&quoted);
}

static void put_indent(struct writer *w, uint32_t level)
{
    put_text(w, "\n");
    for (uint32_t i = 0; i < level; i++)
        put_text(w, "  ");
}

/* ---- values ---- */

static bool is_in_json(const struct kymo__dump_item *item)
{
    return item->value.kind == KYMO_DUMP_TENSOR &&
           (item->value.type == KYMO_DUMP_JSON || item->value.type == KYMO_DUMP_CONTAINER);
}

static bool has_file(const struct kymo__dump_item *item)
{
    return (item->value.kind == KYMO_DUMP_TENSOR || item->value.kind == KYMO_DUMP_BYTES) &&
           !is_in_json(item);
}

/* Names of a value's files, as nested lists where axes of the tensor count pictures. */
static void put_names(struct writer *w, const struct kymo__dump_item *item, uint32_t axis,
                      size_t *next, uint32_t level)
{
    if (axis == item->files.n_axes) {
        const char *const name = *next < item->files.n ? item->files.names[*next] : "";
        ++*next;
        put_string(w, name, strlen(name));
        return;
    }
    const int64_t n = item->value.tensor.sizes[axis];
    put_text(w, "[");
    for (int64_t i = 0; i < n; i++) {
        put_text(w, i > 0 ? "," : "");
        put_indent(w, level + 1);
        put_names(w, item, axis + 1, next, level + 1);
    }
    if (n > 0)
        put_indent(w, level);
    put_text(w, "]");
}

static void put_tensor(struct writer *w, const struct kymo__dump_item *item, uint32_t level)
{
    const struct kymo__json_style style = {.nan = KYMO__NAN_WORD, .level = level, .is_python = true};
    const kymo_status st =
        kymo__json_tensor_write(&item->value.tensor, &style, kymo__dump_file_sink, &w->file);
    if (st != KYMO_OK && w->file.status == KYMO_OK)
        w->file.status = st;
}

static void put_item(struct writer *w, const struct kymo__dump_item *item, uint32_t level)
{
    size_t next = 0;
    if (item->missing != NULL || item->is_measured_only)
        put_text(w, "null");
    else if (item->value.kind == KYMO_DUMP_TEXT)
        put_string(w, item->value.text, item->value.text_len);
    else if (item->value.kind == KYMO_DUMP_LITERAL)
        kymo__dump_file_put(&w->file, item->value.text, item->value.text_len);
    else if (is_in_json(item))
        put_tensor(w, item, level);
    else
        put_names(w, item, 0, &next, level);
}

static void put_node(struct writer *w, uint32_t number, uint32_t level)
{
    const struct kymo__dump_node *const node = &w->tree->nodes[number];
    if (node->kind == KYMO__NODE_LEAF) {
        put_item(w, node->item, level);
        return;
    }
    const bool is_list = node->kind == KYMO__NODE_LIST;
    put_text(w, is_list ? "[" : "{");
    for (uint32_t child = node->first; child != KYMO__NO_NODE; child = w->tree->nodes[child].next) {
        put_text(w, child != node->first ? "," : "");
        put_indent(w, level + 1);
        if (!is_list) {
            put_string(w, w->tree->nodes[child].part.key, w->tree->nodes[child].part.key_len);
            put_text(w, ": ");
        }
        put_node(w, child, level + 1);
    }
    if (node->n_children > 0)
        put_indent(w, level);
    put_text(w, is_list ? "]" : "}");
}

/* ---- a tree and its files ---- */

static kymo_status write_tree(struct writer *w, enum kymo_dump_tree tree)
{
    w->tree = &w->step->trees[tree];
    kymo__dump_file_begin(&w->file, &w->folder, tree_files[tree], w->place->durable);
    if (w->tree->n > 0)
        put_node(w, 0, 0);
    else
        put_text(w, "{}");
    return kymo__dump_file_end(&w->file, true);
}

static void write_file(struct writer *w, struct kymo__dump_item *item)
{
    struct kymo__buf path = {0}, dotted = {0};
    kymo__dump_item_name(w->step, item, &path);
    kymo__dump_item_dotted(w->step, item, &dotted);
    const struct kymo__dump_side side = {.folder = &w->folder,
                                         .prefix = tree_prefixes[item->tree],
                                         .name = &dotted,
                                         .path = &path,
                                         .step = w->step->number,
                                         .has_meta = true};
    if (path.failed || dotted.failed)
        item->missing = "memory";
    else
        kymo__dump_side_write(item, w->place, &side, w->result);
    kymo__buf_fini(&path);
    kymo__buf_fini(&dotted);
}

static void count(struct writer *w, struct kymo__dump_item *item)
{
    if (item->value.kind == KYMO_DUMP_TENSOR && item->missing == NULL) {
        w->result->n_tensors++;
        w->result->n_bytes += item->n_bytes;
    }
    kymo__dump_item_done(item);
}

static kymo_status open_folder(struct writer *w)
{
    struct kymo__buf below = {0};
    kymo__buf_printf(&below, "%s/", w->place->below);
    if (w->place->world > 1 && w->place->rank >= 0)
        kymo__buf_printf(&below, "rank-%" PRId64 "/", w->place->rank);
    if (w->place->pid != 0)
        kymo__buf_printf(&below, "pid-%" PRIu64 "/", w->place->pid);
    kymo__buf_printf(&below, "%" PRIu64, w->step->number);
    kymo__buf_put(&below, "", 1);
    const kymo_status st =
        below.failed ? kymo__fail(KYMO_ENOMEM, "no memory to write step %" PRIu64, w->step->number)
                     : kymo__dump_open_below(w->place->dir, below.data, &w->folder);
    kymo__buf_fini(&below);
    KYMO_TRY(st);
    kymo__dump_replacing(w->place, kymo__held_fd(&w->folder), tree_files[0]);
    for (size_t i = 0; i < KYMO__COUNT_OF(tree_files); i++) {
        unlinkat(kymo__held_fd(&w->folder), tree_files[i], 0);
        kymo__dump_empty_folder(kymo__held_fd(&w->folder), ".", tree_prefixes[i]);
    }
    return KYMO_OK;
}

static kymo_status write_step(struct writer *w)
{
    KYMO_TRY(open_folder(w));
    for (struct kymo__dump_item *item = w->step->first; item != NULL; item = item->next) {
        const bool has_data = item->missing == NULL && !item->is_measured_only &&
                              (has_file(item) || is_in_json(item));
        if (has_data && kymo__dump_take_room(w->place, item, w->result) && has_file(item)) {
            write_file(w, item);
            count(w, item);
        }
    }
    if (w->step->n_items[KYMO_DUMP_GRADIENTS] > 0)
        KYMO_TRY(write_tree(w, KYMO_DUMP_GRADIENTS));
    KYMO_TRY(write_tree(w, KYMO_DUMP_TENSORS));
    for (struct kymo__dump_item *item = w->step->first; item != NULL; item = item->next)
        if (!has_file(item) && item->missing == NULL)
            count(w, item);
    if (w->place->durable && fsync(kymo__held_fd(&w->folder)) != 0)
        return kymo__fail_errno("write step %" PRIu64 " of the dump in %s", w->step->number,
                                w->place->dir);
    return KYMO_OK;
}

kymo_status kymo__dump_write_accvlab(struct kymo__dump_step *step, struct kymo__dump_place *place,
                                     struct kymo__dump_result *result)
{
    struct writer w = {.step = step, .place = place, .result = result, .folder.fd = -1};
    const kymo_status st = write_step(&w);
    kymo__held_close(&w.folder);
    return st;
}
