/*
 * What does not fit: sorted by lane and time into a file without a name, as often as need be, and read back from all
 * these parts at once, in order. An entry there is followed by its extra words.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "import/sink_internal.h"

/* ---- out ---- */

struct spill {
    kymo__sink *sink;
    struct kymo__buf bytes;
};

enum { SPILL_BYTES = 1 << 20 };

static kymo_status write_out(struct spill *spill)
{
    if (spill->bytes.failed)
        return kymo__fail(KYMO_ENOMEM, "no memory to sort the events of a trace on disk");
    if (!kymo__write_all(spill->sink->spill_fd, spill->bytes.data, spill->bytes.len))
        return kymo__fail_errno("sort the events of a trace in a temporary file "
                                "(TMPDIR names another folder)");
    spill->sink->spill_size += spill->bytes.len;
    spill->bytes.len = 0;
    return KYMO_OK;
}

static uint64_t spill_at(const struct spill *spill)
{
    return spill->sink->spill_size + spill->bytes.len;
}

static kymo_status spill_entries(struct spill *spill, const kymo__sink_process *process,
                                 const struct kymo__sink_lane *lane)
{
    for (size_t i = 0; i < lane->n; i++) {
        const struct kymo__sink_entry *entry = &lane->entries[i];
        kymo__buf_put(&spill->bytes, entry, sizeof *entry);
        if (entry->extra != 0) {
            const uint64_t *extra = &process->extras[entry->extra];
            kymo__buf_put(&spill->bytes, extra, (size_t)(1 + *extra) * sizeof *extra);
        }
        if (spill->bytes.len >= SPILL_BYTES || spill->bytes.failed)
            KYMO_TRY(write_out(spill));
    }
    return KYMO_OK;
}

bool kymo__sink_sort_lane(struct kymo__sink_lane *lane)
{
    if (!lane->is_unsorted)
        return true;
    struct kymo__sink_entry *scratch = kymo__alloc(lane->n * sizeof *scratch);
    if (scratch == NULL)
        return false;
    kymo__entries_sort(lane->entries, lane->n, scratch);
    kymo__free(scratch);
    lane->is_unsorted = false;
    return true;
}

static kymo_status spill_lane(struct spill *spill, const kymo__sink_process *process,
                              struct kymo__sink_lane *lane)
{
    if (lane->n == 0)
        return KYMO_OK;
    if (!kymo__sink_sort_lane(lane) ||
        !kymo__grow(&lane->parts, &lane->parts_cap, lane->n_parts + 1, sizeof *lane->parts))
        return kymo__fail(KYMO_ENOMEM, "no memory to sort the events of a trace");
    struct kymo__sink_part *part = &lane->parts[lane->n_parts];
    part->at = spill_at(spill);
    KYMO_TRY(spill_entries(spill, process, lane));
    part->end = spill_at(spill);
    lane->n_parts++;
    kymo__free(lane->entries);
    lane->entries = NULL;
    lane->n = lane->cap = 0;
    return KYMO_OK;
}

static kymo_status spill_process(struct spill *spill, kymo__sink_process *process)
{
    for (size_t i = 0; i < process->n_lanes; i++)
        KYMO_TRY(spill_lane(spill, process, &process->lanes[i]));
    kymo__free(process->extras);
    process->extras = NULL;
    process->n_extras = process->extras_cap = 0;
    return KYMO_OK;
}

kymo_status kymo__sink_spill(kymo__sink *sink)
{
    struct spill spill = {.sink = sink};
    kymo_status status = KYMO_OK;
    if (sink->spill_fd < 0)
        status = kymo__temporary_open(&sink->spill_fd);
    for (size_t i = 0; status == KYMO_OK && i < sink->n_processes; i++)
        status = spill_process(&spill, sink->processes[i]);
    if (status == KYMO_OK)
        status = write_out(&spill);
    kymo__buf_fini(&spill.bytes);
    sink->held = 0;
    return status;
}

void kymo__sink_close_spill(kymo__sink *sink)
{
    if (sink->spill_fd >= 0)
        close(sink->spill_fd);
    sink->spill_fd = -1;
}

/* ---- back ---- */

struct kymo__part_reader {
    uint64_t at, end; /* of the file, not yet in the buffer */
    char *buffer;
    size_t size, from, to; /* bytes of the buffer that are to be taken */
    struct kymo__sink_entry entry;
    bool is_done;
    uint64_t *extra; /* words of the entry */
    size_t extra_cap;
};

static kymo_status fill(int fd, struct kymo__part_reader *part)
{
    const size_t want = (size_t)KYMO__MIN((uint64_t)part->size, part->end - part->at);
    part->from = part->to = 0;
    while (part->to < want) {
        const ssize_t n =
            pread(fd, part->buffer + part->to, want - part->to, (off_t)(part->at + part->to));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return kymo__fail_errno("read the temporary file of an import");
        part->to += (size_t)n;
    }
    part->at += want;
    return KYMO_OK;
}

static kymo_status take_bytes(int fd, struct kymo__part_reader *part, void *out, size_t n)
{
    char *to = out;
    while (n != 0) {
        if (part->from == part->to)
            KYMO_TRY(fill(fd, part));
        const size_t some = KYMO__MIN(n, part->to - part->from);
        KYMO_ASSERT(some != 0);
        memcpy(to, part->buffer + part->from, some);
        part->from += some;
        to += some;
        n -= some;
    }
    return KYMO_OK;
}

/* The part's next entry becomes the one at hand. */
static kymo_status next_entry(int fd, struct kymo__part_reader *part)
{
    if (part->from == part->to && part->at == part->end) {
        part->is_done = true;
        return KYMO_OK;
    }
    KYMO_TRY(take_bytes(fd, part, &part->entry, sizeof part->entry));
    if (part->entry.extra == 0)
        return KYMO_OK;
    uint64_t n;
    KYMO_TRY(take_bytes(fd, part, &n, sizeof n));
    if (!kymo__grow(&part->extra, &part->extra_cap, (size_t)n + 1, sizeof n))
        return kymo__fail(KYMO_ENOMEM, "no memory to sort the events of a trace");
    part->extra[0] = n;
    return take_bytes(fd, part, part->extra + 1, (size_t)n * sizeof n);
}

kymo_status kymo__sink_reader_open(struct kymo__sink_reader *reader,
                                   const kymo__sink_process *process,
                                   const struct kymo__sink_lane *lane, size_t buffer_bytes)
{
    *reader = (struct kymo__sink_reader){.process = process, .lane = lane};
    if (lane->n_parts == 0)
        return KYMO_OK;
    reader->parts = kymo__calloc(lane->n_parts, sizeof *reader->parts);
    if (reader->parts == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory to sort the events of a trace");
    for (size_t i = 0; i < lane->n_parts; i++) {
        struct kymo__part_reader *part = &reader->parts[i];
        *part = (struct kymo__part_reader){.at = lane->parts[i].at,
                                           .end = lane->parts[i].end,
                                           .size = buffer_bytes,
                                           .buffer = kymo__alloc(buffer_bytes)};
        if (part->buffer == NULL)
            return kymo__fail(KYMO_ENOMEM, "no memory to sort the events of a trace");
        KYMO_TRY(next_entry(process->sink->spill_fd, part));
    }
    return KYMO_OK;
}

void kymo__sink_reader_close(struct kymo__sink_reader *reader)
{
    for (size_t i = 0; reader->parts != NULL && i < reader->lane->n_parts; i++) {
        kymo__free(reader->parts[i].buffer);
        kymo__free(reader->parts[i].extra);
    }
    kymo__free(reader->parts);
    reader->parts = NULL;
}

/* The part whose entry comes first, the earlier part among equals; NULL when all are done. */
static struct kymo__part_reader *first_part(const struct kymo__sink_reader *reader)
{
    struct kymo__part_reader *first = NULL;
    for (size_t i = 0; i < reader->lane->n_parts; i++) {
        struct kymo__part_reader *part = &reader->parts[i];
        if (!part->is_done && (first == NULL || kymo__entry_is_before(&part->entry, &first->entry)))
            first = part;
    }
    return first;
}

const struct kymo__sink_entry *kymo__sink_reader_peek(struct kymo__sink_reader *reader,
                                                      const uint64_t **extra)
{
    const struct kymo__sink_lane *lane = reader->lane;
    const struct kymo__sink_entry *held =
        reader->next < lane->n ? &lane->entries[reader->next] : NULL;
    reader->from = reader->parts != NULL ? first_part(reader) : NULL;
    if (reader->from == NULL || (held != NULL && kymo__entry_is_before(held, &reader->from->entry))) {
        reader->from = NULL;
        *extra = held != NULL && held->extra != 0 ? &reader->process->extras[held->extra] : NULL;
        return held;
    }
    *extra = reader->from->entry.extra != 0 ? reader->from->extra : NULL;
    return &reader->from->entry;
}

kymo_status kymo__sink_reader_take(struct kymo__sink_reader *reader)
{
    if (reader->from != NULL)
        return next_entry(reader->process->sink->spill_fd, reader->from);
    reader->next++;
    return KYMO_OK;
}
