/*
 * The inside of the sink.
 *
 *   put ── an entry of 24 bytes in its lane's array; what an event has besides, as ready words in the process's `extras`
 *   over the budget ── every lane is sorted and written to a file without a name: one part more of each (sink_spill.c)
 *   finish ── lanes take turns by time (sink_write.c); each is read in order from its parts and its array, its slices
 *             become begins and ends (sink_nest.c), and words become blocks (sink_blocks.c)
 */
#ifndef MAREY_SINK_INTERNAL_H
#define MAREY_SINK_INTERNAL_H

#include "base/map.h"
#include "import/sink/internal.h"
#include "read/read_internal.h"
#include "record/record_internal.h"

/* ---- entries ---- */

/* What comes first where times are equal; then longer slices, lower iterations, and the order of the file. */
enum marey__sink_class {
    MAREY__CLASS_ITERATION,
    MAREY__CLASS_EDGE, /* a begin or an end by itself */
    MAREY__CLASS_SLICE,
    MAREY__CLASS_POINT, /* behind the slices that begin with it: a flow belongs to the range around it */
};

/* A tag: bits 0 to 19 the site, 20 to 23 the kind of its word, 24 and 25 the class. */
struct marey__sink_entry {
    uint64_t ns;
    uint64_t duration; /* of an iteration's two ends: a number that puts them in order */
    uint32_t tag;
    uint32_t extra; /* where in `extras`: how many words, then whole records whose ticks are 0. 0: nothing */
};

static inline uint32_t marey__entry_class(const struct marey__sink_entry *entry)
{
    return entry->tag >> 24;
}

static inline bool marey__entry_is_before(const struct marey__sink_entry *a,
                                          const struct marey__sink_entry *b)
{
    if (MAREY_LIKELY(a->ns != b->ns))
        return a->ns < b->ns;
    const uint32_t class = marey__entry_class(a);
    if (class != marey__entry_class(b))
        return class < marey__entry_class(b);
    if (class == MAREY__CLASS_SLICE)
        return a->duration > b->duration;
    return class == MAREY__CLASS_ITERATION && a->duration < b->duration;
}

/* Stable. `scratch` has room for `n`. */
void marey__entries_sort(struct marey__sink_entry *entries, size_t n,
                         struct marey__sink_entry *scratch);

/* ---- what the sink holds ---- */

/* One lane's share of what was once written to the spill file, in order. */
struct marey__sink_part {
    uint64_t at, end;
};

struct marey__sink_lane {
    int64_t tid;
    enum marey_lane_kind kind;
    char *name;
    size_t name_len;
    struct marey__sink_entry *entries;
    size_t n, cap;
    bool is_unsorted;
    struct marey__sink_part *parts;
    size_t n_parts, parts_cap;
};

struct marey__sink_process {
    marey__sink *sink;
    uint64_t key;
    int64_t pid, ppid;
    int32_t rank, world_size;
    char *command, *host, *source, *backend, *gpu, *run_id; /* NULL: not said */
    char **notes;
    size_t n_notes, notes_cap;
    struct marey__sink_lane *lanes;
    size_t n_lanes, lanes_cap;
    uint32_t last_lane; /* that was asked for */
    struct marey__index lanes_index;
    struct marey__buf sites;   /* as blocks of sites have them, from id 1 on */
    uint64_t *site_offsets;    /* by id */
    size_t n_sites, sites_cap; /* the last id */
    struct marey__index sites_index;
    uint64_t *extras;
    size_t n_extras, extras_cap;
    uint64_t n_events;
    uint64_t first_ns;
    uint64_t shift_ns;  /* to add to all times */
    int64_t to_unix_ns; /* and besides, for the wall clock */
    uint64_t n_other_names, n_other_lanes, n_long_arguments, n_misplaced; /* told when it is written */
};

struct marey__sink {
    struct marey__log_store *store;
    const char *command, *source, *run_id; /* lent */
    void (*tick)(void *ctx, double written);
    void *tick_ctx;
    uint64_t n_written; /* events */
    uint64_t seed;
    uint64_t budget, held; /* bytes of entries and extras */
    marey__sink_process **processes;
    size_t n_processes, processes_cap;
    struct marey__index processes_index;
    marey__sink_process *last; /* that was asked for */
    int spill_fd;              /* -1: nothing was spilled */
    uint64_t spill_size;
    uint64_t n_events;
    marey_status status;
    char failure[512]; /* its sentence */
};

/* Events between two ticks. */
enum { MAREY__TICK_EVENTS = 1 << 14 };

/* Remember the first failure with the sentence that was just left. */
void marey__sink_fail(marey__sink *sink, marey_status status);

/* ---- sink_spill.c ---- */

/* Sort all that is held and write it to the spill file. */
MAREY_WARN_UNUSED marey_status marey__sink_spill(marey__sink *sink);
/* Sort a lane's array in place. False without memory. */
bool marey__sink_sort_lane(struct marey__sink_lane *lane);
void marey__sink_close_spill(marey__sink *sink);

/* A lane's entries in order, from its parts and its array. */
struct marey__sink_reader {
    const marey__sink_process *process;
    const struct marey__sink_lane *lane;
    struct marey__part_reader *parts, *from; /* `from`: the part that was peeked at; NULL: the array */
    size_t next;                             /* of the array */
};
/* A lane's array is sorted. `buffer_bytes` is for each part. */
MAREY_WARN_UNUSED marey_status marey__sink_reader_open(struct marey__sink_reader *reader,
                                                       const marey__sink_process *process,
                                                       const struct marey__sink_lane *lane,
                                                       size_t buffer_bytes);
/* The next entry without taking it, and its extra words (how many, then they), lent until taken; NULL: none is left. */
const struct marey__sink_entry *marey__sink_reader_peek(struct marey__sink_reader *reader,
                                                        const uint64_t **extra);
/* Take what was peeked at. */
MAREY_WARN_UNUSED marey_status marey__sink_reader_take(struct marey__sink_reader *reader);
void marey__sink_reader_close(struct marey__sink_reader *reader);

/* ---- sink_blocks.c: words of one lane of the log ---- */

struct marey__sink_log {
    struct marey__log log;
    marey__packer *packer;
    uint32_t n_lanes; /* numbers given so far */
};

struct marey__sink_track {
    const struct marey__sink_lane *of; /* whose tid and name it has */
    uint32_t number, sequence;
    bool is_told;
    uint64_t *words;
    size_t n_words, words_cap;
    uint64_t base_ns, last_ns, end_ns; /* of the block; `end_ns` is where the longest GPU work ends */
};
/* Words for one event at `ns`, all in one block: a plain word, or whole records whose ticks are filled in. */
MAREY_WARN_UNUSED marey_status marey__track_word(struct marey__sink_log *log,
                                                 struct marey__sink_track *lane, uint64_t ns,
                                                 uint32_t tag);
/* A begin when `tag` is not 0, with its records: those of type REPEAT stand before it, the others behind. */
MAREY_WARN_UNUSED marey_status marey__track_records(struct marey__sink_log *log,
                                                    struct marey__sink_track *lane, uint64_t ns,
                                                    uint32_t tag, const uint64_t *records, size_t n);
MAREY_WARN_UNUSED marey_status marey__track_flush(struct marey__sink_log *log,
                                                  struct marey__sink_track *lane);

/* The most words of the records of one event, so that they and its begin fit into a block. */
enum { MAREY__EXTRA_WORDS_MAX = MAREY__CHUNK_WORDS - 1 };

/* ---- sink_nest.c: entries of a lane to words of one or several ---- */

struct marey__nest;
marey_status marey__nest_create(struct marey__sink_log *log, const struct marey__sink_lane *of,
                                struct marey__nest **out);
MAREY_WARN_UNUSED marey_status marey__nest_put(struct marey__nest *nest,
                                               const struct marey__sink_entry *entry,
                                               const uint64_t *extra);
/* Blocks of the lane itself written so far. */
uint32_t marey__nest_n_blocks(const struct marey__nest *nest);
/* End what is open, and write all. */
MAREY_WARN_UNUSED marey_status marey__nest_finish(struct marey__nest *nest);
/* Ends that had no begin; slices for which there was no lane left. */
void marey__nest_losses(const struct marey__nest *nest, uint64_t *n_orphans, uint64_t *n_crowded);
void marey__nest_destroy(struct marey__nest *nest);

/* ---- sink_write.c ---- */

MAREY_WARN_UNUSED marey_status marey__sink_write(marey__sink *sink, marey__sink_process *process);

/* ---- log_store.c ---- */

/* A new log to be written; `end` takes it into the store as the file `name`, or throws it away when `status` is bad. */
MAREY_WARN_UNUSED marey_status marey__log_store_begin(struct marey__log_store *store,
                                                      struct marey__log *log);
MAREY_WARN_UNUSED marey_status marey__log_store_end(struct marey__log_store *store, const char *name,
                                                    struct marey__log *log, marey_status status);

#endif
