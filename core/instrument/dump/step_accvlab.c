/*
 * Layout accvlab: a folder per step with the tree as JSON and files of values. The JSON is byte-identical to Python's
 * json.dump(tree, indent=2), so that dumps of ACCV-Lab and marey can be compared by any means. Each file gets its name
 * when it is complete, tensors.json last: a step that has it is complete. Files of an earlier run in the folder are
 * removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "instrument/dump/internal.h"

static const char *const tree_files[] = {"tensors.json", "grads.json"};
static const char *const tree_prefixes[] = {"[tensors.json]", "[grads.json]"};

struct writer {
    struct marey__dump_step *step;
    struct marey__dump_place *place;
    struct marey__dump_result *result;
    struct marey__held_file folder;
    struct marey__dump_file file; /* for the tree being written */
    const struct marey__dump_tree *tree;
};

static void put_text(struct writer *w, const char *text)
{
    marey__dump_file_put(&w->file, text, strlen(text));
}

static void put_string(struct writer *w, const char *text, size_t len)
{
    struct marey__buf quoted MAREY__FINALLY(marey__buf_fini) = {0};
    marey__json_python_string_put(&quoted, text, len);
    if (quoted.failed && w->file.status == MAREY_OK)
        w->file.status = marey__no_memory();
    marey__dump_file_put(&w->file, quoted.data, quoted.len);
}

static void put_indent(struct writer *w, uint32_t level)
{
    put_text(w, "\n");
    for (uint32_t i = 0; i < level; i++)
        put_text(w, "  ");
}

/* ---- values ---- */

static bool is_in_json(const struct marey__dump_item *item)
{
    return item->value.kind == MAREY_DUMP_TENSOR &&
           (item->value.type == MAREY_DUMP_JSON || item->value.type == MAREY_DUMP_CONTAINER);
}

static bool has_file(const struct marey__dump_item *item)
{
    return (item->value.kind == MAREY_DUMP_TENSOR || item->value.kind == MAREY_DUMP_BYTES) &&
           !is_in_json(item);
}

/* Writes the names of a value's files, as nested lists if axes of the tensor count images. */
static void put_names(struct writer *w, const struct marey__dump_item *item, uint32_t axis,
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

static void put_tensor(struct writer *w, const struct marey__dump_item *item, uint32_t level)
{
    const struct marey__json_style style = {.level = level, .is_python = true};
    const marey_status st =
        marey__json_tensor_write(&item->value.tensor, &style, marey__dump_file_sink, &w->file);
    if (st != MAREY_OK && w->file.status == MAREY_OK)
        w->file.status = st;
}

static void put_item(struct writer *w, const struct marey__dump_item *item, uint32_t level)
{
    size_t next = 0;
    if (item->missing != NULL || item->is_measured_only)
        put_text(w, "null");
    else if (item->value.kind == MAREY_DUMP_TEXT)
        put_string(w, item->value.text, item->value.text_len);
    else if (item->value.kind == MAREY_DUMP_LITERAL)
        marey__dump_file_put(&w->file, item->value.text, item->value.text_len);
    else if (is_in_json(item))
        put_tensor(w, item, level);
    else
        put_names(w, item, 0, &next, level);
}

static void put_node(struct writer *w, uint32_t number, uint32_t level)
{
    const struct marey__dump_node *const node = &w->tree->nodes[number];
    if (node->kind == MAREY__NODE_LEAF) {
        put_item(w, node->item, level);
        return;
    }
    const bool is_list = node->kind == MAREY__NODE_LIST;
    put_text(w, is_list ? "[" : "{");
    for (uint32_t child = node->first; child != MAREY__NO_NODE; child = w->tree->nodes[child].next) {
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

static marey_status write_tree(struct writer *w, enum marey_dump_tree tree)
{
    w->tree = &w->step->trees[tree];
    marey__dump_file_begin(&w->file, &w->folder, tree_files[tree], w->place->durable);
    if (w->tree->n > 0)
        put_node(w, 0, 0);
    else
        put_text(w, "{}");
    return marey__dump_file_end(&w->file, true);
}

static void write_file(struct writer *w, struct marey__dump_item *item)
{
    struct marey__buf path MAREY__FINALLY(marey__buf_fini) = {0};
    struct marey__buf dotted MAREY__FINALLY(marey__buf_fini) = {0};
    marey__dump_item_name(w->step, item, false, &path);
    marey__dump_item_name(w->step, item, true, &dotted);
    const struct marey__dump_value_target target = {.folder = &w->folder,
                                                    .prefix = tree_prefixes[item->tree],
                                                    .name = &dotted,
                                                    .path = &path,
                                                    .step = w->step->number,
                                                    .has_meta = true};
    if (path.failed || dotted.failed)
        item->missing = "memory";
    else
        marey__dump_value_write(item, w->place, &target, w->result);
}

static void count(struct writer *w, struct marey__dump_item *item)
{
    if (item->value.kind == MAREY_DUMP_TENSOR && item->missing == NULL) {
        w->result->n_tensors++;
        w->result->n_bytes += item->n_bytes;
    }
    marey__dump_item_done(item);
}

static marey_status open_folder(struct writer *w)
{
    struct marey__buf below MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_printf(&below, "%s/", w->place->below);
    if (w->place->world > 1 && w->place->rank >= 0)
        marey__buf_printf(&below, "rank-%" PRId64 "/", w->place->rank);
    if (w->place->pid != 0)
        marey__buf_printf(&below, "pid-%" PRIu64 "/", w->place->pid);
    marey__buf_printf(&below, "%" PRIu64, w->step->number);
    marey__buf_put(&below, "", 1);
    MAREY__TRY_MEMORY(!below.failed);
    MAREY_TRY(marey__dump_open_below(w->place->dir, below.data, &w->folder));
    marey__dump_replacing(w->place, marey__held_fd(&w->folder), tree_files[0]);
    for (size_t i = 0; i < MAREY__COUNT_OF(tree_files); i++) {
        unlinkat(marey__held_fd(&w->folder), tree_files[i], 0);
        marey__dump_empty_folder(marey__held_fd(&w->folder), ".", tree_prefixes[i]);
    }
    return MAREY_OK;
}

static marey_status write_step(struct writer *w)
{
    MAREY_TRY(open_folder(w));
    for (struct marey__dump_item *item = w->step->first; item != NULL; item = item->next) {
        const bool has_data = item->missing == NULL && !item->is_measured_only &&
                              (has_file(item) || is_in_json(item));
        if (has_data && marey__dump_take_room(w->place, item, w->result) && has_file(item)) {
            write_file(w, item);
            count(w, item);
        }
    }
    if (w->step->n_items[MAREY_DUMP_GRADIENTS] > 0)
        MAREY_TRY(write_tree(w, MAREY_DUMP_GRADIENTS));
    MAREY_TRY(write_tree(w, MAREY_DUMP_TENSORS));
    for (struct marey__dump_item *item = w->step->first; item != NULL; item = item->next)
        if (!has_file(item) && item->missing == NULL)
            count(w, item);
    if (w->place->durable && fsync(marey__held_fd(&w->folder)) != 0)
        return marey__fail_errno("write step %" PRIu64 " of the dump in %s", w->step->number,
                                 w->place->dir);
    return MAREY_OK;
}

marey_status marey__dump_write_accvlab(struct marey__dump_step *step, struct marey__dump_place *place,
                                       struct marey__dump_result *result)
{
    struct writer w = {.step = step, .place = place, .result = result, .folder.fd = -1};
    const marey_status st = write_step(&w);
    marey__held_close(&w.folder);
    return st;
}
