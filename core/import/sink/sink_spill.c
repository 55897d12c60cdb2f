/*
 * Spills events beyond the budget: sorted by lane and time into an unnamed file, once per overflow, and merged from all
 * runs when read back. Each entry in the file is followed by its extra words.
 */
#include <unistd.h>

#include "import/sink/internal.h"

/* ---- out ---- */

struct spill {
    marey__sink *sink;
    struct marey__buf bytes;
};

enum { SPILL_BYTES = 1 << 20 };

static marey_status write_out(struct spill *spill)
{
    MAREY__TRY_MEMORY(!spill->bytes.failed);
    if (!marey__write_all(spill->sink->spill_fd, spill->bytes.data, spill->bytes.len))
        return marey__fail_errno("sort the events of a trace in a temporary file "
                                 "(TMPDIR names another folder)");
    spill->sink->spill_size += spill->bytes.len;
    spill->bytes.len = 0;
    return MAREY_OK;
}

static uint64_t spill_at(const struct spill *spill)
{
    return spill->sink->spill_size + spill->bytes.len;
}

static marey_status spill_entries(struct spill *spill, const marey__sink_process *process,
                                  const struct marey__sink_lane *lane)
{
    for (size_t i = 0; i < lane->n; i++) {
        const struct marey__sink_entry *entry = &lane->entries[i];
        marey__buf_put(&spill->bytes, entry, sizeof *entry);
        if (entry->extra != 0) {
            const uint64_t *extra = &process->extras[entry->extra];
            marey__buf_put(&spill->bytes, extra, (size_t)(1 + *extra) * sizeof *extra);
        }
        if (spill->bytes.len >= SPILL_BYTES || spill->bytes.failed)
            MAREY_TRY(write_out(spill));
    }
    return MAREY_OK;
}

bool marey__sink_sort_lane(struct marey__sink_lane *lane)
{
    if (!lane->is_unsorted)
        return true;
    struct marey__sink_entry *scratch MAREY__FREED = marey__alloc(lane->n * sizeof *scratch);
    if (scratch == NULL)
        return false;
    marey__entries_sort(lane->entries, lane->n, scratch);
    lane->is_unsorted = false;
    return true;
}

static marey_status spill_lane(struct spill *spill, const marey__sink_process *process,
                               struct marey__sink_lane *lane)
{
    if (lane->n == 0)
        return MAREY_OK;
    MAREY__TRY_MEMORY(
        marey__sink_sort_lane(lane) &&
        marey__grow(&lane->parts, &lane->parts_cap, lane->n_parts + 1, sizeof *lane->parts));
    struct marey__sink_part *part = &lane->parts[lane->n_parts];
    part->at = spill_at(spill);
    MAREY_TRY(spill_entries(spill, process, lane));
    part->end = spill_at(spill);
    lane->n_parts++;
    marey__free(lane->entries);
    lane->entries = NULL;
    lane->n = lane->cap = 0;
    return MAREY_OK;
}

static marey_status spill_process(struct spill *spill, marey__sink_process *process)
{
    for (size_t i = 0; i < process->n_lanes; i++)
        MAREY_TRY(spill_lane(spill, process, &process->lanes[i]));
    marey__free(process->extras);
    process->extras = NULL;
    process->n_extras = process->extras_cap = 0;
    return MAREY_OK;
}

marey_status marey__sink_spill(marey__sink *sink)
{
    struct spill spill = {.sink = sink};
    marey_status status = MAREY_OK;
    if (sink->spill_fd < 0)
        status = marey__temporary_open(NULL, &sink->spill_fd);
    for (size_t i = 0; status == MAREY_OK && i < sink->n_processes; i++)
        status = spill_process(&spill, sink->processes[i]);
    if (status == MAREY_OK)
        status = write_out(&spill);
    marey__buf_fini(&spill.bytes);
    sink->held = 0;
    return status;
}

void marey__sink_close_spill(marey__sink *sink)
{
    if (sink->spill_fd >= 0)
        close(sink->spill_fd);
    sink->spill_fd = -1;
}

/* ---- back ---- */

struct marey__part_reader {
    uint64_t at, end; /* not yet read from the file */
    char *buffer;
    size_t size, from, to; /* unread bytes of the buffer */
    struct marey__sink_entry entry;
    bool is_done;
    uint64_t *extra; /* extra words of the entry */
    size_t extra_cap;
};

static marey_status fill(int fd, struct marey__part_reader *part)
{
    const size_t want = (size_t)MAREY__MIN((uint64_t)part->size, part->end - part->at);
    part->from = part->to = 0;
    if (marey__read_all(fd, part->buffer, want, (off_t)part->at) != (ssize_t)want)
        return marey__fail_errno("read the temporary file of an import");
    part->to = want;
    part->at += want;
    return MAREY_OK;
}

static marey_status take_bytes(int fd, struct marey__part_reader *part, void *out, size_t n)
{
    char *to = out;
    while (n != 0) {
        if (part->from == part->to)
            MAREY_TRY(fill(fd, part));
        const size_t some = MAREY__MIN(n, part->to - part->from);
        MAREY_ASSERT(some != 0);
        memcpy(to, part->buffer + part->from, some);
        part->from += some;
        to += some;
        n -= some;
    }
    return MAREY_OK;
}

/* Load the part's next entry. */
static marey_status next_entry(int fd, struct marey__part_reader *part)
{
    if (part->from == part->to && part->at == part->end) {
        part->is_done = true;
        return MAREY_OK;
    }
    MAREY_TRY(take_bytes(fd, part, &part->entry, sizeof part->entry));
    if (part->entry.extra == 0)
        return MAREY_OK;
    uint64_t n;
    MAREY_TRY(take_bytes(fd, part, &n, sizeof n));
    MAREY__TRY_MEMORY(marey__grow(&part->extra, &part->extra_cap, (size_t)n + 1, sizeof n));
    part->extra[0] = n;
    return take_bytes(fd, part, part->extra + 1, (size_t)n * sizeof n);
}

marey_status marey__sink_reader_open(struct marey__sink_reader *reader,
                                     const marey__sink_process *process,
                                     const struct marey__sink_lane *lane, size_t buffer_bytes)
{
    *reader = (struct marey__sink_reader){.process = process, .lane = lane};
    if (lane->n_parts == 0)
        return MAREY_OK;
    reader->parts = marey__calloc(lane->n_parts, sizeof *reader->parts);
    MAREY__TRY_MEMORY(reader->parts != NULL);
    for (size_t i = 0; i < lane->n_parts; i++) {
        struct marey__part_reader *part = &reader->parts[i];
        *part = (struct marey__part_reader){.at = lane->parts[i].at,
                                            .end = lane->parts[i].end,
                                            .size = buffer_bytes,
                                            .buffer = marey__alloc(buffer_bytes)};
        MAREY__TRY_MEMORY(part->buffer != NULL);
        MAREY_TRY(next_entry(process->sink->spill_fd, part));
    }
    return MAREY_OK;
}

void marey__sink_reader_close(struct marey__sink_reader *reader)
{
    for (size_t i = 0; reader->parts != NULL && i < reader->lane->n_parts; i++) {
        MAREY__FREE_ALL(reader->parts[i].buffer, reader->parts[i].extra);
    }
    marey__free(reader->parts);
    reader->parts = NULL;
}

/* The part with the first entry, the earlier part if equal; NULL at the end. */
static struct marey__part_reader *first_part(const struct marey__sink_reader *reader)
{
    struct marey__part_reader *first = NULL;
    for (size_t i = 0; i < reader->lane->n_parts; i++) {
        struct marey__part_reader *part = &reader->parts[i];
        if (!part->is_done && (first == NULL || marey__entry_is_before(&part->entry, &first->entry)))
            first = part;
    }
    return first;
}

const struct marey__sink_entry *marey__sink_reader_peek(struct marey__sink_reader *reader,
                                                        const uint64_t **extra)
{
    const struct marey__sink_lane *lane = reader->lane;
    const struct marey__sink_entry *held =
        reader->next < lane->n ? &lane->entries[reader->next] : NULL;
    reader->from = reader->parts != NULL ? first_part(reader) : NULL;
    if (reader->from == NULL || (held != NULL && marey__entry_is_before(held, &reader->from->entry))) {
        reader->from = NULL;
        *extra = held != NULL && held->extra != 0 ? &reader->process->extras[held->extra] : NULL;
        return held;
    }
    *extra = reader->from->entry.extra != 0 ? reader->from->extra : NULL;
    return &reader->from->entry;
}

marey_status marey__sink_reader_take(struct marey__sink_reader *reader)
{
    if (reader->from != NULL)
        return next_entry(reader->process->sink->spill_fd, reader->from);
    reader->next++;
    return MAREY_OK;
}
