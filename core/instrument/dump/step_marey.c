/*
 * Layout marey: a step is a safetensors file and a manifest.
 *
 *      NAME.part      [ head, blank │ tensor │ pad │ tensor │ ...            grows; small tensors in batches
 *      NAME.jsonl       line, line, ...                                       a line when its data are in the file
 *
 * A line is written after the data that it describes, so a value with a line is complete even if the process dies. At
 * the end the head is written in front and the file gets its name. If a write fails, the values in it are missing, but
 * later ones may still find room.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "instrument/dump/internal.h"
#include "record/internal.h"

enum { PAGE = 4096, BATCH = 1 << 20, PIECE = 16 << 20, MEASURED_BESIDE = 4 << 20 };

struct writer {
    struct marey__dump_step *step;
    struct marey__dump_place *place;
    struct marey__dump_result *result;
    struct marey__held_file folder;
    struct marey__held_file data, manifest;
    struct marey__buf name; /* "step-00000012.rank-3", and a NUL */
    bool is_direct;         /* bypass the page cache, in whole pages */

    struct marey__safetensors table; /* including waiting values */
    struct marey__dump_mark written; /* without them */
    uint64_t data_start, at;         /* `at`: where the batch goes */
    char *batch;                     /* BATCH bytes */
    size_t n_batch;
    struct marey__dump_item *waiting; /* the first without a written line */
    size_t n_waiting;
    struct marey__buf lines;
    uint64_t n_values;
};

/* ---- bytes ---- */

static bool write_at(struct writer *w, const char *bytes, size_t len)
{
    struct stat st;
    if (!marey__held_is_ours(&w->data, &st)) { /* the program closed it */
        errno = EBADF;
        return false;
    }
    while (len > 0) {
        const ssize_t n = pwrite(w->data.fd, bytes, MAREY__MIN(len, (size_t)PIECE), (off_t)w->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            return false;
        }
        marey__dump_progress((uint64_t)n);
        bytes += n;
        len -= (size_t)n;
        w->at += (uint64_t)n;
    }
    return true;
}

/* Writes the batch; with O_DIRECT only whole pages, the rest waits. */
static bool write_batch(struct writer *w)
{
    const size_t n = w->is_direct ? w->n_batch / PAGE * PAGE : w->n_batch;
    if (!write_at(w, w->batch, n))
        return false;
    memmove(w->batch, w->batch + n, w->n_batch - n);
    w->n_batch -= n;
    return true;
}

/* `bytes` NULL: zeros. */
static bool put_bytes(struct writer *w, const char *bytes, size_t len)
{
    while (len > 0) {
        const size_t n = MAREY__MIN(len, BATCH - w->n_batch);
        if (bytes != NULL)
            memcpy(w->batch + w->n_batch, bytes, n);
        else
            memset(w->batch + w->n_batch, 0, n);
        w->n_batch += n;
        bytes += bytes != NULL ? n : 0;
        len -= n;
        if (w->n_batch == BATCH && !write_batch(w))
            return false;
    }
    return true;
}

/* Large data are written directly from their memory, if O_DIRECT permits. */
static bool put_data(struct writer *w, const char *bytes, size_t len)
{
    if (len >= BATCH && (!w->is_direct || (uintptr_t)bytes % PAGE == 0)) {
        if (!write_batch(w))
            return false;
        const size_t whole = w->n_batch > 0 ? 0 : w->is_direct ? len / PAGE * PAGE : len;
        if (!write_at(w, bytes, whole))
            return false;
        bytes += whole;
        len -= whole;
    }
    return put_bytes(w, bytes, len);
}

/* Switches to buffered writes, for the rest and the head. */
static void stop_direct(struct writer *w)
{
    const int flags = fcntl(w->data.fd, F_GETFL);
    if (w->is_direct && flags >= 0)
        fcntl(w->data.fd, F_SETFL, flags & ~O_DIRECT);
    w->is_direct = false;
}

/* ---- lines ---- */

static void put_line(struct writer *w, struct marey__dump_item *item)
{
    struct marey__dump_path path MAREY__FINALLY(marey__dump_path_fini) = {0};
    marey__dump_item_path(w->step, item, &path);
    if (path.parts == NULL) {
        w->lines.failed = true;
        return;
    }
    const bool is_tensor = item->value.kind == MAREY_DUMP_TENSOR;
    marey__dump_measure_finish(item);
    struct marey__dump_measure made MAREY__FINALLY(marey__dump_measure_fini) = {0};
    const struct marey__dump_measure *const measure = item->measure ? item->measure : &made;
    if (is_tensor && item->measure == NULL && item->value.tensor.data != NULL)
        marey__dump_measure(&item->value.tensor, w->place->measures, &made);
    struct marey__buf source MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_printf(&source, "%s:%u", item->value.file != NULL ? item->value.file : "",
                      item->value.line);
    marey__buf_put(&source, "", 1);
    w->lines.failed |= source.failed;
    const struct marey_dumped_value line = {
        .seq = item->seq,
        .tree = item->tree,
        .parts = path.parts,
        .n_parts = path.n_parts,
        .kind = item->value.kind,
        .text = item->value.text,
        .text_len = item->value.text_len,
        .type = item->value.type,
        .dtype = item->value.tensor.dtype,
        .rank = item->value.tensor.rank,
        .sizes = item->value.tensor.sizes,
        .strides = item->strides,
        .n_bytes = is_tensor ? item->n_bytes : item->value.text_len,
        .phase = item->value.phase,
        .source = item->value.file != NULL ? source.data : NULL,
        .digest = measure->has_digest ? &measure->digest : NULL,
        .blocks = measure->blocks,
        .n_blocks = measure->n_blocks,
        .stats = measure->has_stats ? &measure->stats : NULL,
        .files = (const char *const *)item->files.names,
        .n_files = item->files.n,
        .missing = item->missing,
    };
    marey__manifest_value_put(&w->lines, &line, item->is_stored ? item->offset : MAREY__NO_OFFSET);
}

static marey_status write_lines(struct writer *w)
{
    marey_status st = MAREY_OK;
    if (w->lines.failed)
        st = marey__no_memory();
    else if (!marey__held_write(&w->manifest, w->lines.data, w->lines.len))
        st = marey__fail_errno("write %s/%s.jsonl", w->place->dir, w->name.data);
    w->lines.len = 0;
    w->lines.failed = false;
    return st;
}

/* A dictionary or list added empty and filled later needs no line. */
static bool has_line(const struct marey__dump_step *step, const struct marey__dump_item *item)
{
    const enum marey_dump_kind kind = item->value.kind;
    return (kind != MAREY_DUMP_DICT && kind != MAREY_DUMP_LIST) ||
           step->trees[item->tree].nodes[item->node].n_children == 0;
}

static void finish(struct writer *w, struct marey__dump_item *item)
{
    if (has_line(w->step, item)) {
        put_line(w, item);
        w->n_values++;
    }
    if (item->value.kind == MAREY_DUMP_TENSOR && item->missing == NULL) {
        w->result->n_tensors++;
        w->result->n_bytes += item->is_measured_only ? 0 : item->n_bytes;
    }
    w->written = item->mark;
    marey__dump_item_done(item);
}

/* Writes the lines of waiting values up to `end` whose data are in the file. */
static marey_status write_waiting(struct writer *w, const struct marey__dump_item *end)
{
    for (; w->waiting != end; w->waiting = w->waiting->next) {
        if (w->waiting->is_stored && w->data_start + w->waiting->mark.n_bytes > w->at)
            break;
        finish(w, w->waiting);
    }
    w->n_waiting = 0;
    return write_lines(w);
}

/* A write failed: the values in it are missing, and their space is reused. */
static void take_back(struct writer *w, const struct marey__dump_item *end, int error)
{
    marey__dump_report(w->result, "cannot write all of the dump in %s: %s; tensors are missing in it",
                       w->place->dir, strerror(error));
    w->table.entries.len = w->written.entries_len;
    w->table.n_bytes = w->written.n_bytes;
    w->table.n_pads = w->written.n_pads;
    for (struct marey__dump_item *item = w->waiting; item != end; item = item->next) {
        item->mark = w->written;
        if (!item->is_stored)
            continue;
        item->is_stored = false;
        item->missing = "disk";
        w->result->n_failed++;
    }
    w->n_batch = 0;
    w->at = w->data_start + w->table.n_bytes;
    if (w->at % PAGE != 0)
        stop_direct(w);
    /* If this fails, the rest is overwritten or truncated at the end. */
    if (ftruncate(w->data.fd, (off_t)w->at) != 0)
        errno = 0;
}

/* ---- a value ---- */

static struct marey__dump_mark mark(const struct writer *w)
{
    return (struct marey__dump_mark){
        .entries_len = w->table.entries.len, .n_bytes = w->table.n_bytes, .n_pads = w->table.n_pads};
}

/* Writes to the safetensors file. A small tensor that would cross the end of the batch begins the next. */
static marey_status put_tensor(struct writer *w, struct marey__dump_item *item)
{
    struct marey__buf name MAREY__FINALLY(marey__buf_fini) = {0};
    marey__dump_item_name(w->step, item, false, &name);
    const uint64_t before = w->table.n_bytes;
    item->offset = marey__safetensors_add(&w->table, name.data, name.len, &item->value.tensor);
    item->mark = mark(w);
    MAREY__TRY_MEMORY(!name.failed && !w->table.entries.failed);
    item->is_stored = true;
    const uint64_t gap = item->offset - before;
    if (item->n_bytes >= MEASURED_BESIDE)
        marey__dump_measure_begin(item, w->place->measures);
    const bool fits = w->n_batch + gap + item->n_bytes <= BATCH;
    if ((!fits && !write_batch(w)) || !put_bytes(w, NULL, gap) ||
        !put_data(w, item->value.tensor.data, item->n_bytes)) {
        const int error = errno;
        MAREY_TRY(write_waiting(w, item));
        take_back(w, item->next, error);
        return write_waiting(w, item->next);
    }
    return MAREY_OK;
}

static void put_files(struct writer *w, struct marey__dump_item *item)
{
    struct marey__buf path MAREY__FINALLY(marey__buf_fini) = {0};
    marey__dump_item_name(w->step, item, false, &path);
    if (mkdirat(marey__held_fd(&w->folder), w->name.data, 0755) != 0 && errno != EEXIST)
        path.failed = true;
    struct marey__held_file folder MAREY__FINALLY(marey__held_close);
    const bool is_open =
        marey__held_set(&folder, marey__open_at(marey__held_fd(&w->folder), w->name.data,
                                                O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
    const struct marey__dump_value_target target = {
        .folder = &folder, .prefix = "", .name = &path, .path = &path, .step = w->step->number};
    if (path.failed || !is_open) {
        item->missing = path.failed ? "memory" : "disk";
        w->result->n_failed++;
        marey__dump_report(w->result, "cannot make the folder %s/%s: %s", w->place->dir,
                           w->name.data, strerror(errno));
    } else {
        marey__dump_value_write(item, w->place, &target, w->result);
    }
}

static marey_status put_item(struct writer *w, struct marey__dump_item *item)
{
    enum { MANY = 256 };
    const bool has_data =
        item->missing == NULL && !item->is_measured_only &&
        (item->value.kind == MAREY_DUMP_TENSOR || item->value.kind == MAREY_DUMP_BYTES);
    const uint64_t at = w->at;
    item->mark = mark(w);
    if (has_data && marey__dump_take_room(w->place, item, w->result)) {
        if (item->value.type == MAREY_DUMP_CONTAINER)
            MAREY_TRY(put_tensor(w, item));
        else
            put_files(w, item);
    }
    return w->at != at || ++w->n_waiting >= MANY ? write_waiting(w, item->next) : MAREY_OK;
}

/* ---- a step ---- */

/* An upper bound for an entry of the head. */
static uint64_t entry_room(const struct writer *w, const struct marey__dump_item *item)
{
    enum { PLAIN = 110, AXIS = 21, PAD = 110, ESCAPED = 6 };
    const struct marey__dump_tree *const tree = &w->step->trees[item->tree];
    uint64_t room = PLAIN + AXIS * (uint64_t)item->value.tensor.rank + PAD;
    for (uint32_t at = item->node; at != 0; at = tree->nodes[at].parent) {
        const struct marey_dump_part *const part = &tree->nodes[at].part;
        room += part->key == NULL ? AXIS : 4;
        for (size_t i = 0; part->key != NULL && i < part->key_len; i++)
            room += (part->key[i] | 0x20) >= 'a' && (part->key[i] | 0x20) <= 'z' ? 1
                    : part->key[i] >= '0' && part->key[i] <= '9'                 ? 1
                                                                                 : ESCAPED;
    }
    return room;
}

/* The data begin after the largest possible head, so that the head is written only once. */
static void plan_head(struct writer *w)
{
    uint64_t room = 256;
    for (const struct marey__dump_item *item = w->step->first; item != NULL; item = item->next)
        if (item->value.kind == MAREY_DUMP_TENSOR && item->value.type == MAREY_DUMP_CONTAINER &&
            !item->is_measured_only && item->missing == NULL)
            room += entry_room(w, item);
    w->data_start = w->at = (room + PAGE - 1) / PAGE * PAGE;
}

/* The name of one of its files. */
struct file_name {
    char text[MAREY__FILE_NAME_MAX + 32];
};
static struct file_name name_of(const struct writer *w, const char *suffix)
{
    struct file_name name;
    snprintf(name.text, sizeof name.text, "%s%s", w->name.data, suffix);
    return name;
}

static bool open_file(struct writer *w, const char *suffix, int flags, struct marey__held_file *out)
{
    return marey__held_set(out, marey__open_at(marey__held_fd(&w->folder), name_of(w, suffix).text,
                                               flags | O_WRONLY | O_CREAT | O_NOFOLLOW, 0644));
}

/* Removes an earlier step with the same name. */
static void replace(struct writer *w)
{
    const int folder = marey__held_fd(&w->folder);
    marey__dump_replacing(w->place, folder, name_of(w, ".jsonl").text);
    unlinkat(folder, name_of(w, ".jsonl").text, 0);
    unlinkat(folder, name_of(w, ".safetensors").text, 0);
    marey__dump_empty_folder(folder, w->name.data, "");
    unlinkat(folder, w->name.data, AT_REMOVEDIR);
}

static marey_status open_step(struct writer *w)
{
    marey__step_name_put(&w->name, w->step->number, w->place->rank, w->place->pid);
    marey__buf_put(&w->name, "", 1);
    w->batch = marey__dump_memory_take(BATCH);
    MAREY__TRY_MEMORY(!w->name.failed && w->batch != NULL);
    plan_head(w);
    MAREY_TRY(marey__dump_open_below(w->place->dir, w->place->below, &w->folder));
    replace(w);
    if (!open_file(w, ".jsonl", O_TRUNC | O_APPEND, &w->manifest))
        return marey__fail_errno("create %s/%s.jsonl", w->place->dir, w->name.data);
    w->is_direct = w->place->durable && open_file(w, ".part", O_TRUNC | O_DIRECT, &w->data);
    if (!w->is_direct && !open_file(w, ".part", O_TRUNC, &w->data))
        return marey__fail_errno("create %s/%s.part", w->place->dir, w->name.data);
    static const char *const modes[] = {"full", "stats", "digests"};
    marey__manifest_step_put(&w->lines,
                             &(struct marey_dumped_step){.step = w->step->number,
                                                         .rank = w->place->rank,
                                                         .world = w->place->world,
                                                         .pid = (uint64_t)getpid(),
                                                         .unix_ns = marey__clock_ns(CLOCK_REALTIME),
                                                         .host = w->place->host,
                                                         .run = w->place->run,
                                                         .mode = modes[w->place->mode],
                                                         .reason = w->step->reason},
                             w->data_start);
    return write_lines(w);
}

/* Writes the head before the data, and truncates the file after them. */
static marey_status write_head(struct writer *w)
{
    struct marey__buf head MAREY__FINALLY(marey__buf_fini) = {0};
    MAREY_TRY(marey__safetensors_head_put(&head, &w->table, w->step->number, w->place->rank,
                                          w->data_start));
    MAREY__TRY_MEMORY(!head.failed);
    w->at = 0;
    return write_at(w, head.data, head.len) &&
                   ftruncate(w->data.fd, (off_t)(w->data_start + w->table.n_bytes)) == 0 &&
                   (!w->place->durable || fdatasync(w->data.fd) == 0)
               ? MAREY_OK
               : marey__fail_errno("write %s/%s.part", w->place->dir, w->name.data);
}

/* Writes the rest of the data and the head, and renames the file. */
static marey_status close_data(struct writer *w)
{
    const struct file_name part = name_of(w, ".part"), whole = name_of(w, ".safetensors");
    stop_direct(w);
    if (!write_batch(w)) {
        const int error = errno;
        MAREY_TRY(write_waiting(w, NULL));
        take_back(w, NULL, error);
    }
    MAREY_TRY(write_waiting(w, NULL));
    MAREY_TRY(write_head(w));
    const int folder = marey__held_fd(&w->folder);
    return renameat(folder, part.text, folder, whole.text) == 0
               ? MAREY_OK
               : marey__fail_errno("give %s/%s its name", w->place->dir, whole.text);
}

static marey_status write_step(struct writer *w)
{
    MAREY_TRY(open_step(w));
    w->waiting = w->step->first;
    for (struct marey__dump_item *item = w->step->first; item != NULL; item = item->next)
        MAREY_TRY(put_item(w, item));
    MAREY_TRY(close_data(w));
    marey__manifest_end_put(&w->lines, w->result->n_tensors, w->n_values, w->table.n_bytes);
    MAREY_TRY(write_lines(w));
    if (w->place->durable && (fsync(w->manifest.fd) != 0 || fsync(marey__held_fd(&w->folder)) != 0))
        return marey__fail_errno("write %s/%s.jsonl", w->place->dir, w->name.data);
    return MAREY_OK;
}

marey_status marey__dump_write_marey(struct marey__dump_step *step, struct marey__dump_place *place,
                                     struct marey__dump_result *result)
{
    struct writer w = {.step = step,
                       .place = place,
                       .result = result,
                       .folder.fd = -1,
                       .data.fd = -1,
                       .manifest.fd = -1};
    const marey_status st = write_step(&w);
    marey__held_close(&w.data);
    marey__held_close(&w.manifest);
    marey__held_close(&w.folder);
    marey__dump_memory_give(w.batch, BATCH);
    marey__buf_fini(&w.name);
    marey__buf_fini(&w.lines);
    marey__safetensors_fini(&w.table);
    return st;
}
