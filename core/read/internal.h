/*
 * read: from a recording's directory to batches of event words with nanoseconds.
 *
 *   recording.c                     the directory, its logs in order, warnings
 *   log_folder.c, site_table.c      logs opened several at a time; the site tables they share
 *   log_check.c, log_duplicates.c   missing, duplicate and mixed logs of a directory
 *   log_file.c, log_content.c       first pass over a log: texts, sites, lanes, clocks, losses; does not decode words
 *   log_visit.c, log_order.c        second pass: decodes each block of words, in file order or in order of time
 *   log_batches.c, block_reader.c   checked records and blocks; resynchronizes after damage
 *   log_entries.c, log_samples.c    blocks of the call profiler and of the sampler
 *   log_keep.c, log_devices.c       decoded events kept for the next analysis; the GPUs that each process may use
 *   pool_copy.c                     chunks of a process that still runs or cannot be finalized
 *   clock_map.c, unpack.c, sparse.c ticks to nanoseconds, bytes to words, arrays with holes
 *
 * Input: files; every length, count and offset is checked, and memory stays within a small multiple of the file size.
 * Output: struct marey_batch. Knows the log format of record/ and energy's rule for visible GPUs; does not know
 * analyses.
 */
#ifndef MAREY_READ_INTERNAL_H
#define MAREY_READ_INTERNAL_H

#include "base/internal.h"
#include "record/log_format.h"
#include <marey/recording.h>

/* Limits on what a log may contain; anything beyond is damage. */
enum {
    MAREY__MAX_SITES = 1 << 20,
    MAREY__MAX_LANES = 1 << 18,
    MAREY__MAX_WORDS_BYTES =
        256 << 10,                /* of one block of words, decompressed; a chunk is 32 KiB today */
    MAREY__NEAR_BYTES = 32 << 10, /* bytes per read where readers jump from block to block */
};

/* ---- warnings: one sentence each ---- */

struct marey__warnings {
    char **sentences;
    size_t n, cap;
    size_t n_damaged; /* places where bytes could not be read */
    bool failed;      /* out of memory for one of them */
};
void marey__warn(struct marey__warnings *warnings, const char *fmt, ...) MAREY_PRINTF(2, 3);
/* The same, for damaged bytes. */
void marey__warn_damage(struct marey__warnings *warnings, const char *fmt, ...) MAREY_PRINTF(2, 3);
/* Append all warnings to `into`. */
void marey__warnings_move(struct marey__warnings *into, struct marey__warnings *from);
void marey__warnings_fini(struct marey__warnings *warnings);

/* ---- sparse array: pages allocated on demand, elements zeroed and never moved ---- */

struct marey__sparse {
    void **pages;
    size_t n_pages;
};
/* Element `i`, or NULL if its page is not allocated. */
void *marey__sparse_get(const struct marey__sparse *sparse, size_t i, size_t size);
/* Element `i`, created if needed; NULL on out of memory. */
void *marey__sparse_make(struct marey__sparse *sparse, size_t i, size_t size);
void marey__sparse_fini(struct marey__sparse *sparse);

/* ---- site_table.c: the sites of a process by id, and tables shared by logs ---- */

/*
 * Once its log is open, any thread may read it. Only one thread at a time opens or closes a recording and so changes
 * the number of users.
 */
struct marey__site_table {
    struct marey__sparse sites; /* struct marey_site_info by id; known when `name` is set */
    struct marey__arena texts;
    uint32_t n; /* the highest id */
    uint32_t n_users;
};
/* The table at `*table`, created if needed; NULL on out of memory. */
struct marey__site_table *marey__site_table_make(struct marey__site_table **table);
/* Drop one reference and free the table with the last one. Accepts NULL. */
void marey__site_table_release(struct marey__site_table *table);
/* NULL for an unknown id, or without a table. */
const struct marey_site_info *marey__site_table_get(const struct marey__site_table *table,
                                                    uint32_t id);
/* Add an entry whose four strings follow one another at `texts`. Returns false on out of memory. */
bool marey__site_table_add(struct marey__site_table *table, const struct marey__site_entry *entry,
                           const char *texts);

/* Strings shared by the logs of a recording, each stored once. Any thread. */
struct marey__log_texts {
    pthread_mutex_t lock; /* guards the members below */
    struct marey__names known;
    struct marey__arena arena;
};
void marey__log_texts_init(struct marey__log_texts *texts);
void marey__log_texts_fini(struct marey__log_texts *texts);
/* The stored copy of a string, valid until fini; NULL on out of memory. */
const char *marey__log_text(struct marey__log_texts *texts, const char *text, size_t len);

/* Tables that logs may share. After this many different ones, each log keeps its own. */
enum { MAREY__MAX_SHARED_TABLES = 16 };
struct marey__site_tables {
    pthread_mutex_t lock; /* guards the members below, and `n_users` of shared tables */
    struct marey__site_table *known[MAREY__MAX_SHARED_TABLES];
    size_t n;
};
void marey__site_tables_init(struct marey__site_tables *tables);
void marey__site_tables_fini(struct marey__site_tables *tables);
/* Replace `*table` with an equal shared one, or keep it to be shared. Any thread. */
void marey__site_tables_share(struct marey__site_tables *tables, struct marey__site_table **table);

/* ---- ticks to nanoseconds ---- */

/* From `tick` on: ns = base_ns + ((t - tick) * mult >> 40), up to the next segment. */
struct marey__clock_segment {
    uint64_t tick, base_ns, mult;
};

/* Before the first and after the last segment, the nearest one is extended. Never runs backwards. */
struct marey__clock_map {
    struct marey__clock_segment *segments; /* at least one after build */
    size_t n;
};

/*
 * From `n` clock samples (any order, any content; sorted in place). `tick_hz` gives the rate if there is at most one
 * usable sample.
 */
MAREY_WARN_UNUSED marey_status marey__clock_map_build(struct marey__clock_map *map,
                                                      struct marey__clock_entry *moments, size_t n,
                                                      uint64_t tick_hz);
void marey__clock_map_fini(struct marey__clock_map *map);
uint64_t marey__clock_map_ns(const struct marey__clock_map *map, uint64_t tick);
/* The segment that contains `tick`. */
size_t marey__clock_map_find(const struct marey__clock_map *map, uint64_t tick);
/* Mean over the whole log. */
double marey__clock_map_ns_per_tick(const struct marey__clock_map *map);

/* ---- bytes to words ---- */

/*
 * Decompose `n` words from planes of `n` bytes each; both have 8 * n bytes. Returns whether a word may begin a record.
 */
bool marey__unpack_words(const uint8_t *planes, uint64_t *words, size_t n);
/* Whether any of the words has the kind of a record. */
bool marey__words_have_records(const uint64_t *words, size_t n);

/* ---- log_entries.c: payloads of blocks CALLS and SAMPLES ---- */

/*
 * Decompress the payload of a block without words into `raw`; empty if it cannot be decompressed. Returns false on out
 * of memory.
 */
bool marey__unpack_payload(const struct marey__block *block, const uint8_t *packed,
                           struct marey__buf *raw);
/* Read a length and that many bytes, which stay owned by the payload. */
bool marey__take_text(const uint8_t **at, const uint8_t *end, const char **text, size_t *len);

/* Numbers and strings in the order of docs/formats/recording.md, without lengths. Pointers into the payload. */
struct marey__payload_entry {
    char tag;
    uint64_t numbers[7];
    double real; /* of P in CALLS */
    const char *texts[4];
    size_t lens[4];
    const uint8_t *list, *list_end; /* of tags L, K, O and A in SAMPLES */
    bool begins_block;              /* set for payload takers */
};
enum marey__entry_step { MAREY__ENTRY_END, MAREY__ENTRY_TAKEN, MAREY__ENTRY_DAMAGED };
/* Read the entry at `*at` and advance past it. `fields` by tag: n a number, r a real, t a text. */
enum marey__entry_step marey__entry_next(const void **at, const void *end,
                                         const char *const fields[128],
                                         struct marey__payload_entry *entry);
enum marey__entry_step marey__calls_next(const void **at, const void *end,
                                         struct marey__payload_entry *entry);

enum marey__payload_kind { MAREY__PAYLOAD_CALLS, MAREY__PAYLOAD_SAMPLES, MAREY__N_PAYLOADS };
struct marey__payload_blocks {
    uint64_t *offsets; /* in the log, in order */
    size_t n, cap;
    struct marey__kept_payload {
        struct marey__buf raw;
        uint64_t sequence;
        bool is_there;
    } * kept; /* of each block; NULL: none */
    bool is_damage_reported;
};

/* Buffers for decompression. */
struct marey__unpacker {
    struct ZSTD_DCtx_s *zstd;
    uint8_t *planes;
};
/* Returns false on out of memory. fini() accepts a partially initialized one. */
bool marey__unpacker_init(struct marey__unpacker *unpacker);
void marey__unpacker_fini(struct marey__unpacker *unpacker);
/* Decode the words of a block into `words`, raw_len bytes. Returns false if they cannot be decoded. */
bool marey__unpack_block(struct marey__unpacker *unpacker, const struct marey__block *block,
                         const uint8_t *packed, uint64_t *words, bool *may_have_records);
/* Whether it is a block of words that this version can read. */
static inline bool marey__block_has_words(const struct marey__block *block)
{
    return block->type == MAREY__BLOCK_WORDS && block->version <= MAREY__LOG_VERSION &&
           block->raw_len <= MAREY__MAX_WORDS_BYTES && block->raw_len % 8 == 0 &&
           block->raw_len != 0;
}

/* ---- blocks of a file, one after another ---- */

/* With the header, up to where the next block begins. */
static inline uint64_t marey__block_bytes(const struct marey__block *block)
{
    return sizeof *block + (((uint64_t)block->packed_len + 7) & ~UINT64_C(7));
}

struct marey__block_reader {
    int fd;           /* borrowed */
    const char *path; /* borrowed, for messages */
    uint64_t size;    /* bytes to read: the file may grow meanwhile */
    uint64_t offset;  /* of the next block */
    const char *torn; /* at the end: why no intact block follows `offset`; NULL if everything was read */
    struct marey__warnings *warnings; /* NULL: no warnings */
    uint64_t resync_left; /* bytes that may still be read to find the next intact block */
    size_t read_ahead;    /* minimum bytes per read */
    char *window;         /* a section of the file */
    uint64_t window_at;
    size_t window_len, window_cap;
    bool is_lent; /* the window is the whole log, owned by struct marey__log_file */
};

void marey__block_reader_init(struct marey__block_reader *reader, int fd, const char *path,
                              uint64_t size);
void marey__block_reader_fini(struct marey__block_reader *reader);

/*
 * The next intact block: its header, and its compressed bytes, valid until the next call. Sets `*done` at the end of
 * the file. A truncated block at the end stays unread and sets `torn`, because it may still be being written. Damage
 * before an intact block is skipped with a warning. Fails with MAREY_EIO or MAREY_ENOMEM.
 */
MAREY_WARN_UNUSED marey_status marey__block_reader_next(struct marey__block_reader *reader,
                                                        struct marey__block *block,
                                                        const uint8_t **packed, bool *done);

/* ---- one log ---- */

struct marey__log_lane {
    struct marey_lane_info info;
    bool is_known;
    uint32_t first_piece, last_piece; /* of the log's pieces, from 1; 0: none */
};

/* A copied chunk of the pool. */
struct marey__pool_chunk {
    uint32_t lane, sequence, kind;
    int64_t tid;
    char thread_name[17];
    uint64_t base_tick, last_tick;
    size_t first_word, n_words; /* in marey__pool_copy.words */
    size_t n_events;
};

struct marey__pool_copy {
    struct marey__pool_chunk *chunks; /* by lane, then sequence */
    size_t n_chunks, chunks_cap;
    uint64_t *words;
    size_t n_words, words_cap;
    uint64_t n_lost, lost_first_tick, lost_last_tick;
    bool is_found, is_broken; /* broken: writing the log failed before its end */
    uint64_t broken_tick;     /* when writing failed (0: unknown), and why */
    char *failure;
};

/* Where words are: a block of the log, or a chunk of the pool's copy. 32 bytes for about 4000 words. */
struct marey__piece {
    uint64_t at; /* the block's offset, or the chunk's number */
    uint64_t first_tick;
    uint32_t lane, sequence;
    uint32_t n_words : 31, is_in_pool : 1;
    uint32_t next; /* next piece of the lane, from 1; 0: none */
};

struct marey__log_file {
    struct marey_process info;
    int fd;               /* of a log embedded in an unnamed file, borrowed; -1: opened by path */
    uint64_t start, size; /* where the log is in the file, and its size when it was opened */
    char *bytes;          /* the whole file if small enough to keep; NULL: read again from disk */
    struct marey__log_texts *texts;  /* borrowed */
    struct marey__site_table *sites; /* may be shared with other logs; NULL: no sites */
    struct marey__sparse lanes;      /* struct marey__log_lane by number */
    struct marey__clock_map clock;
    struct marey__pool_copy pool;
    struct marey__piece *pieces; /* each lane's in order, at most 2^32 - 2; NULL: at most one lane */
    size_t n_pieces, pieces_cap;
    /* What the log records about GPUs; NULL: nothing. */
    const char *visible, *device_order; /* CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER */
    const char *gpus;                   /* GPUs of the machine */
    struct marey__payload_blocks payloads[MAREY__N_PAYLOADS];
    struct marey__kept_events *_Atomic kept; /* NULL: none */
    _Atomic bool is_keeping;                 /* a visit keeps events, or has tried to */
};

/*
 * Give each process without recorded devices those that its CUDA_VISIBLE_DEVICES selects on its machine, if any log
 * lists the machine's GPUs. Returns false on out of memory.
 */
bool marey__log_devices_find(struct marey__log_file *const *logs, size_t n);

/* State of the first pass over a log. */
struct marey__log_scan {
    struct marey__log_file *log;
    struct marey__warnings *warnings;
    struct marey__block_reader reader;
    struct marey__sparse next_sequence; /* uint64_t by lane */
    struct marey__clock_entry *moments;
    size_t n_moments, moments_cap;
    struct marey__buf notes, raw;
    struct marey__arena texts;                          /* storage of the next four */
    const char *pool, *pool_id, *failure, *failed_tick; /* NULL: not recorded */
    uint64_t tick_hz;
    uint64_t n_blocks, n_events, first_tick, last_tick;
    bool has_log, has_words, has_end, has_no_memory;
    uint32_t newest; /* format of blocks that are too new; 0: none */
    struct marey__loss_entry loss;
    struct marey__loss_entry beyond; /* events of lanes from MAREY__MAX_LANES on, which are skipped */
};

/* Everything unknown: empty strings, unknown ranks. */
void marey__log_info_init(struct marey_process *info);
/* Read the content of a block. Returns false on out of memory. */
bool marey__log_take_block(struct marey__log_scan *scan, const struct marey__block *block,
                           const uint8_t *packed);
void marey__loss_add(struct marey__loss_entry *loss, const struct marey__loss_entry *more);
/*
 * Count the words and events of a piece unless already counted, and create its lane. Where the event count is 0 (not
 * recorded), each word is one. Returns false on out of memory.
 */
bool marey__log_count_words(struct marey__log_scan *scan, const struct marey__piece *piece,
                            uint64_t last_tick, size_t n_events);
/*
 * Set the name and thread of a lane; `kind` is an enum marey_lane_kind, or one of a later version. Returns false on out
 * of memory.
 */
bool marey__log_name_lane(struct marey__log_scan *scan, uint32_t lane, uint32_t kind, int64_t tid,
                          const char *name, size_t len);

/* ---- log_folder.c: the logs of a folder, in the order of their names ---- */

struct marey__log_entry {
    char *name;
    struct marey__log_file *log; /* NULL: unreadable, or empty so far */
    marey_status status;
    struct marey__warnings warnings;
};
struct marey__log_folder {
    struct marey__log_texts *texts; /* borrowed */
    struct marey__log_entry *entries;
    size_t n, cap;
    bool has_meta; /* the folder also has a meta.json */
};
/* Pass 1 over all logs with `n_jobs` threads (0: one per CPU core). fini() also accepts what a failure leaves. */
MAREY_WARN_UNUSED marey_status marey__log_folder_open(struct marey__log_folder *folder,
                                                      const char *path, size_t n_jobs);
/* Only logs with these names. */
MAREY_WARN_UNUSED marey_status marey__log_folder_open_some(struct marey__log_folder *folder,
                                                           const char *path, const char *const *names,
                                                           size_t n, size_t n_jobs);
void marey__log_folder_fini(struct marey__log_folder *folder);
/* marey_recording_open with `n_jobs` threads. */
MAREY_WARN_UNUSED marey_status marey__recording_open(const char *path, size_t n_jobs,
                                                     marey_recording **out);

/* Where a log is in an unnamed file. */
struct marey__log_part {
    uint64_t at, size;
};
/* Open a recording of logs in one file. Takes ownership of `fd`, except on failure. */
MAREY_WARN_UNUSED marey_status marey__recording_open_parts(const char *name, int fd,
                                                           const struct marey__log_part *parts,
                                                           size_t n, marey_recording **out);
/*
 * A recording of the logs of `whole` with `keep` set, as one run with id `run_id` (borrowed). Close it before `whole`.
 * Warnings stay with the whole. If `run_id` is NULL, each log keeps its own id, and the part gets the warnings as well.
 */
MAREY_WARN_UNUSED marey_status marey__recording_part(const marey_recording *whole, const bool *keep,
                                                     const char *run_id, marey_recording **out);

/*
 * Pass 1. MAREY_EFORMAT if the file is not a log; the message names it. On failure fini() has run on `log`. A finalized
 * log of up to `most_kept` bytes stays in memory, so that later passes need not read the file.
 */
MAREY_WARN_UNUSED marey_status marey__log_file_open(struct marey__log_file *log, const char *path,
                                                    struct marey__log_texts *texts, size_t most_kept,
                                                    struct marey__warnings *warnings);
/* How many bytes each of `n` logs may keep. */
size_t marey__log_file_most_kept(size_t n);
/* The same for a section of `fd`, which is borrowed until fini; `name` is for messages. */
MAREY_WARN_UNUSED marey_status marey__log_file_open_part(struct marey__log_file *log,
                                                         struct marey__log_texts *texts,
                                                         const char *name, int fd,
                                                         const struct marey__log_part *part,
                                                         struct marey__warnings *warnings);
void marey__log_file_fini(struct marey__log_file *log);
/* For pass 2: the log's blocks from its start, until release. Fails with MAREY_EIO. */
MAREY_WARN_UNUSED marey_status marey__log_file_acquire(const struct marey__log_file *log,
                                                       struct marey__block_reader *reader);
void marey__log_file_release(const struct marey__log_file *log, struct marey__block_reader *reader);

/* State of a lane during a visit. */
struct marey__lane_state {
    uint64_t next_sequence;
    uint64_t last_ns; /* of its last word */
    int gap;          /* words are missing before the next batch */
};

/* Words of one lane, relative to one tick, and their visitor. */
struct marey__run {
    const struct marey__log_file *log;
    struct marey__lane_state *state;
    const struct marey_lane_info *lane;
    const uint64_t *words;
    size_t n;
    uint64_t base_tick;
    marey_visitor *visitor;
    void *ctx;
};
/*
 * Split a run of at least one word into batches, at clock segments and at invalid records, and pass them to the
 * visitor.
 */
MAREY_WARN_UNUSED marey_status marey__run_deliver(const struct marey__run *run,
                                                  bool may_have_records);

/* Pass 2, over all lanes in the order written. */
MAREY_WARN_UNUSED marey_status marey__log_file_visit(const struct marey__log_file *log,
                                                     marey_visitor *visitor, void *ctx);
/*
 * As marey_recording_visit, for one lane: for callers that write a thread's events in one piece. Reads only that lane's
 * blocks.
 */
MAREY_WARN_UNUSED marey_status marey__log_file_visit_lane(const struct marey__log_file *log,
                                                          uint32_t lane, marey_visitor *visitor,
                                                          void *ctx);
MAREY_WARN_UNUSED marey_status marey__recording_visit_lane(marey_recording *recording,
                                                           size_t process, uint32_t lane,
                                                           marey_visitor *visitor, void *ctx);

/*
 * Pass 2 over all lanes, ordered around records of the whole process (an iteration, epoch or phase): such a record
 * comes after all earlier words of other lanes and before all later ones. Between two of these records, lanes come in
 * any order, each lane in its own order. An empty batch reports a gap as soon as the lane's words before it are
 * delivered, and the end of a lane in a process that lost events. Holds one block of each lane that has begun and not
 * ended; if that could exceed 512 MiB, words come in the order written.
 */
MAREY_WARN_UNUSED marey_status marey__log_file_visit_in_order(const struct marey__log_file *log,
                                                              marey_visitor *visitor, void *ctx);
MAREY_WARN_UNUSED marey_status marey__recording_visit_in_order(marey_recording *recording,
                                                               size_t process,
                                                               marey_visitor *visitor, void *ctx);

/* ---- log_keep.c: decoded events in memory, for commands that visit a process several times ---- */

/* As marey__log_file_visit_in_order. The first visit keeps the events it decodes, if `budget` has enough bytes. */
MAREY_WARN_UNUSED marey_status marey__log_file_visit_kept(struct marey__log_file *log,
                                                          _Atomic uint64_t *budget,
                                                          marey_visitor *visitor, void *ctx);
void marey__log_file_drop_kept(struct marey__log_file *log);
/* Take over the unpacked block, if `budget` has the bytes; NULL otherwise. */
const struct marey__kept_payload *marey__keep_payload(struct marey__payload_blocks *blocks, size_t i,
                                                      uint64_t sequence, struct marey__buf *raw,
                                                      _Atomic uint64_t *budget);
#define MAREY__KEPT_BYTES (UINT64_C(256) << 20)

/* Compare two processes of a recording, by rank, then start; negative if `a` comes first. */
int marey__process_compare(const struct marey_process *a, const struct marey_process *b);
/* How many warnings are about logs; the others are notes from processes that measured the program. */
size_t marey__recording_n_of_logs(const marey_recording *recording);
/* The number of logs that could not be read, and of those that are empty so far. */
void marey__recording_left_out(const marey_recording *recording, uint64_t *n_broken,
                               uint64_t *n_empty);
/* Iterates over a log's blocks of one kind. */
struct marey__payload_reader {
    struct marey__log_file *log; /* borrowed; NULL: closed */
    enum marey__payload_kind payload;
    struct marey__warnings *warnings;
    struct marey__block_reader blocks;
    struct marey__buf raw;
    _Atomic uint64_t *budget; /* for blocks that are kept; NULL: none is */
    size_t next;
    uint64_t next_sequence;
    bool has_gap; /* a block before this one is missing */
    size_t n_damaged; /* blocks; callers add those with a damaged entry. Closing the reader warns once per log */
};
MAREY_WARN_UNUSED marey_status marey__payload_reader_open(struct marey__payload_reader *reader,
                                                          struct marey__log_file *log,
                                                          enum marey__payload_kind payload,
                                                          _Atomic uint64_t *budget,
                                                          struct marey__warnings *warnings);
void marey__payload_reader_close(struct marey__payload_reader *reader);
/* The payload of the next block, valid until the next call; of length 0 if damaged. */
MAREY_WARN_UNUSED marey_status marey__payload_reader_next(struct marey__payload_reader *reader,
                                                          const void **payload, size_t *len,
                                                          bool *done);
/* Open a reader of a log of a recording. */
MAREY_WARN_UNUSED marey_status marey__recording_read_payload(marey_recording *recording, size_t log,
                                                             enum marey__payload_kind payload,
                                                             struct marey__payload_reader *reader);
bool marey__recording_has_payload(const marey_recording *recording, size_t log,
                                  enum marey__payload_kind payload);

/* Receives the entries of a log. */
struct marey__payload_taker {
    /*
     * Returns false for an invalid entry, which skips the rest of its block, and on out of memory, with `failed` set.
     */
    bool (*take)(void *ctx, struct marey__payload_entry *entry);
    void *ctx;
    bool failed;
    struct marey__arena scratch; /* texts of the current block */
};
/* All blocks of the kind, in order. Entries before the damage in a damaged block count. */
MAREY_WARN_UNUSED marey_status marey__recording_take_payload(marey_recording *recording, size_t log,
                                                             enum marey__payload_kind payload,
                                                             struct marey__payload_taker *taker);
/* A text of the entry as a C string, valid until the end of its block; "" on out of memory. */
const char *marey__payload_text(struct marey__payload_taker *taker,
                                const struct marey__payload_entry *entry, size_t i);
double marey__recording_ns_per_tick(const marey_recording *recording, size_t process);
/* Size of the process's log in bytes: an upper limit for the numbers in it. */
uint64_t marey__recording_log_size(const marey_recording *recording, size_t process);

/* ---- log_samples.c: what a sampler recorded ---- */

enum marey__entry_step marey__samples_next(const void **at, const void *end,
                                           struct marey__payload_entry *entry);
/* Read the next number of the entry's list. */
bool marey__samples_take(struct marey__payload_entry *entry, uint64_t *number);

/* How a thread changed in a round: bits of `what` are 1 stack, 2 flags, 4 wait, 8 gone. */
struct marey__samples_event {
    uint32_t round, thread, what, stack, flags, wait;
};
/* The parsed list of an A entry. Zero-initialize it; it can be reused. */
struct marey__samples_rounds {
    uint64_t *at_ns, *weights_ns; /* 0: not recorded */
    size_t n, at_cap, weights_cap;
    struct marey__samples_event *events; /* in order of rounds */
    size_t n_events, events_cap;
};
/* Also returns the status for damage on out of memory, with `*failed` set. */
enum marey__entry_step marey__samples_rounds(struct marey__payload_entry *entry,
                                             struct marey__samples_rounds *rounds, bool *failed);
void marey__samples_rounds_fini(struct marey__samples_rounds *rounds);

/*
 * Copy the chunks of the pool at `path`; `log_path` may also give the folder. Copies nothing from an unsuitable file.
 */
MAREY_WARN_UNUSED marey_status marey__pool_copy(struct marey__pool_copy *copy, const char *path,
                                                uint64_t id, const struct marey__block_reader *log);
void marey__pool_copy_fini(struct marey__pool_copy *copy);

/*
 * Whether words of `sequence` are new in a lane that expects `*next`, which is then advanced; `*gap` is set if words
 * before them are missing.
 */
static inline bool marey__sequence_is_new(uint32_t sequence, uint64_t *next, int *gap)
{
    if (sequence < *next)
        return false;
    *gap = sequence > *next;
    *next = (uint64_t)sequence + 1;
    return true;
}

/* The logs of a directory, checked together; see log_check.c. */

struct marey__checked_logs {
    const struct marey_process *const *logs; /* by rank */
    size_t n;
    size_t n_broken; /* files that are not logs, or whose first block is missing */
    size_t n_empty;
};

/* Warn about inconsistencies. On out of memory, `warnings` records that. */
void marey__logs_check(const struct marey__checked_logs *all, struct marey__warnings *warnings);

/* A rank of a run, with its start and end by the wall clock of its machine. */
struct marey__run_rank {
    const struct marey_process *process;
    const char *run;    /* its run's id */
    const char *joined; /* the same; "" for a run with only this rank */
    uint64_t begin_ns, end_ns;
};

/* log_duplicates.c: ranks that appear more than once; sorted by run, rank and start. */
void marey__check_duplicate_ranks(const struct marey__run_rank *ranks, size_t n,
                                  struct marey__warnings *warnings);
/* Hosts whose clocks disagree; sorted by joined run. */
void marey__check_clocks(const struct marey__run_rank *ranks, size_t n,
                         struct marey__warnings *warnings);

#endif
