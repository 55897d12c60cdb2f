/*
 * read: a recording's directory to batches of words with nanoseconds.
 *
 *   recording.c                     the directory, its logs in order, warnings
 *   log_folder.c, site_table.c      logs opened several at a time; names that they share
 *   log_check.c, log_twins.c        missing, duplicate and mixed logs of a directory
 *   log_file.c, log_content.c       first pass over a log: texts, sites, lanes, clocks, losses; decodes no words
 *   log_visit.c, log_order.c        second pass: decodes each block of words, in file order or in order of time
 *   log_batches.c, block_reader.c   checked records and blocks; resynchronizes after damage
 *   log_entries.c, log_samples.c    blocks of the call profiler and of the sampler
 *   pool_copy.c                     chunks of a process that still runs or cannot be finalized
 *   clock_map.c, unpack.c, sparse.c ticks to nanoseconds, bytes to words, arrays with holes
 *
 * Input: files; every length, count and offset is checked, and memory stays within a small multiple of the file size.
 * Output: struct marey_batch. Knows the log format of record/, no analysis.
 */
#ifndef MAREY_READ_INTERNAL_H
#define MAREY_READ_INTERNAL_H

#include "base/internal.h"
#include "record/log_format.h"
#include <marey/recording.h>

/* What a log may claim; beyond is damage. */
enum {
    MAREY__MAX_SITES = 1 << 20,
    MAREY__MAX_LANES = 1 << 18,
    MAREY__MAX_WORDS_BYTES = 256 << 10, /* of one block of words, unpacked; a chunk is 32 KiB today */
    MAREY__NEAR_BYTES = 32 << 10,       /* to read at a time by who jumps from block to block */
};

/* ---- warnings: one sentence each ---- */

struct marey__warnings {
    char **sentences;
    size_t n, cap;
    size_t n_damaged; /* places where bytes could not be read */
    bool failed;      /* no memory for one of them */
};
void marey__warn(struct marey__warnings *warnings, const char *fmt, ...) MAREY_PRINTF(2, 3);
/* The same, about bytes that are not as they were written. */
void marey__warn_damage(struct marey__warnings *warnings, const char *fmt, ...) MAREY_PRINTF(2, 3);
/* Hand all of them on, behind those that `into` has. */
void marey__warnings_move(struct marey__warnings *into, struct marey__warnings *from);
void marey__warnings_fini(struct marey__warnings *warnings);

/* ---- an array with holes: pages made on demand, elements zeroed and never moved ---- */

struct marey__sparse {
    void **pages;
    size_t n_pages;
};
/* Element `i`, or NULL when its page was never made. */
void *marey__sparse_get(const struct marey__sparse *sparse, size_t i, size_t size);
/* Element `i`, made when new; NULL on out of memory. */
void *marey__sparse_make(struct marey__sparse *sparse, size_t i, size_t size);
void marey__sparse_fini(struct marey__sparse *sparse);

/* ---- site_table.c: the sites of a process by id, and what logs share ---- */

/* Read by any thread once its log is open. Users come and go while a recording is opened or closed, by one thread at a time. */
struct marey__site_table {
    struct marey__sparse sites; /* struct marey_site_info by id; known when `name` is set */
    struct marey__arena texts;
    uint32_t n; /* the highest id */
    uint32_t n_users;
};
/* The table at `*table`, made when there is none; NULL on out of memory. */
struct marey__site_table *marey__site_table_make(struct marey__site_table **table);
/* One user less; the last one's frees it. Takes NULL. */
void marey__site_table_release(struct marey__site_table *table);
/* NULL for an id that was not said, or without a table. */
const struct marey_site_info *marey__site_table_get(const struct marey__site_table *table,
                                                    uint32_t id);
/* What an entry says, its four texts behind one another at `texts`. Returns false on out of memory. */
bool marey__site_table_add(struct marey__site_table *table, const struct marey__site_entry *entry,
                           const char *texts);

/* Texts that the logs of a recording share: equal ones are there once. Any thread. */
struct marey__log_texts {
    pthread_mutex_t lock; /* guards what follows */
    struct marey__names known;
    struct marey__arena arena;
};
void marey__log_texts_init(struct marey__log_texts *texts);
void marey__log_texts_fini(struct marey__log_texts *texts);
/* The copy of a text, which stays until fini; NULL on out of memory. */
const char *marey__log_text(struct marey__log_texts *texts, const char *text, size_t len);

/* Some tables that logs may share. Beyond a few different ones, each log keeps its own. */
enum { MAREY__MAX_SHARED_TABLES = 16 };
struct marey__site_tables {
    pthread_mutex_t lock; /* guards what follows, and `n_users` of tables that are shared */
    struct marey__site_table *known[MAREY__MAX_SHARED_TABLES];
    size_t n;
};
void marey__site_tables_init(struct marey__site_tables *tables);
void marey__site_tables_fini(struct marey__site_tables *tables);
/* Put an equal one in the place of `*table`, or remember it for others. Any thread. */
void marey__site_tables_share(struct marey__site_tables *tables, struct marey__site_table **table);

/* ---- ticks to nanoseconds ---- */

/* From `tick` on: ns = base_ns + ((t - tick) * mult >> 40), up to the next segment. */
struct marey__clock_segment {
    uint64_t tick, base_ns, mult;
};

/* Before the first segment and behind the last one, the nearest goes on. Never runs backwards. */
struct marey__clock_map {
    struct marey__clock_segment *segments; /* at least one after build */
    size_t n;
};

/* From `n` moments (any order, any content; sorted in place) and the rate to use when one moment is all there is. */
MAREY_WARN_UNUSED marey_status marey__clock_map_build(struct marey__clock_map *map,
                                                      struct marey__clock_entry *moments, size_t n,
                                                      uint64_t tick_hz);
void marey__clock_map_fini(struct marey__clock_map *map);
uint64_t marey__clock_map_ns(const struct marey__clock_map *map, uint64_t tick);
/* The segment that `tick` belongs to. */
size_t marey__clock_map_find(const struct marey__clock_map *map, uint64_t tick);
/* The mean over the whole log. */
double marey__clock_map_ns_per_tick(const struct marey__clock_map *map);

/* ---- bytes to words ---- */

/*
 * Undo the packing of `n` words (planes of `n` bytes each) and say whether a word may begin a record. Both 8 * n bytes.
 */
bool marey__unpack_words(const uint8_t *planes, uint64_t *words, size_t n);
/* Whether any of the words has the kind of a record. */
bool marey__words_have_records(const uint64_t *words, size_t n);

/* ---- log_entries.c: payloads of blocks CALLS and SAMPLES ---- */

/*
 * The payload of a block without words into `raw`; an empty one for what cannot be unpacked. Returns false on out of
 * memory.
 */
bool marey__unpack_payload(const struct marey__block *block, const uint8_t *packed,
                           struct marey__buf *raw);
/* A length and as many bytes, which are lent. */
bool marey__take_text(const uint8_t **at, const uint8_t *end, const char **text, size_t *len);

/* Numbers and texts in the order of docs/formats/recording.md, without lengths. Lent. */
struct marey__payload_entry {
    char tag;
    uint64_t numbers[7];
    double real; /* of P in CALLS */
    const char *texts[4];
    size_t lens[4];
    const uint8_t *list, *list_end; /* of L, K, O and A in SAMPLES */
    bool begins_block;              /* for takers */
};
enum marey__entry_step { MAREY__ENTRY_END, MAREY__ENTRY_TAKEN, MAREY__ENTRY_DAMAGED };
/* Read the entry at `*at`, which moves past it. `fields` by tag: n a number, r a real, t a text. */
enum marey__entry_step marey__entry_next(const void **at, const void *end,
                                         const char *const fields[128],
                                         struct marey__payload_entry *entry);
enum marey__entry_step marey__calls_next(const void **at, const void *end,
                                         struct marey__payload_entry *entry);

enum marey__payload_kind { MAREY__PAYLOAD_CALLS, MAREY__PAYLOAD_SAMPLES, MAREY__N_PAYLOADS };
struct marey__payload_blocks {
    uint64_t *offsets; /* in the log, in order */
    size_t n, cap;
    bool is_damage_reported;
};

/* What unpacking needs besides the block. */
struct marey__unpacker {
    struct ZSTD_DCtx_s *zstd;
    uint8_t *planes;
};
/* Returns false on out of memory. Fini accepts a partially initialized one. */
bool marey__unpacker_init(struct marey__unpacker *unpacker);
void marey__unpacker_fini(struct marey__unpacker *unpacker);
/* The words of a block that has some into `words`, raw_len bytes. False when they cannot be had. */
bool marey__unpack_block(struct marey__unpacker *unpacker, const struct marey__block *block,
                         const uint8_t *packed, uint64_t *words, bool *may_have_records);
/* Whether it is a block of words that this version can read. */
static inline bool marey__block_has_words(const struct marey__block *block)
{
    return block->type == MAREY__BLOCK_WORDS && block->version <= MAREY__LOG_VERSION &&
           block->raw_len <= MAREY__MAX_WORDS_BYTES && block->raw_len % 8 == 0 &&
           block->raw_len != 0;
}

/* ---- blocks of a file, one after the other ---- */

/* With its header, up to where the next one begins. */
static inline uint64_t marey__block_bytes(const struct marey__block *block)
{
    return sizeof *block + (((uint64_t)block->packed_len + 7) & ~UINT64_C(7));
}

struct marey__block_reader {
    int fd;           /* lent */
    const char *path; /* lent, for sentences */
    uint64_t size;    /* what is read: the file may grow meanwhile */
    uint64_t offset;  /* of the next block */
    const char *torn; /* at the end: why nothing whole follows `offset`; NULL when all was read */
    struct marey__warnings *warnings; /* NULL: say nothing */
    uint64_t resync_left; /* bytes that may still be spent on looking for the next whole block */
    size_t read_ahead;    /* bytes to read at a time, where a block is not longer */
    char *window;         /* part of the file */
    uint64_t window_at;
    size_t window_len, window_cap;
    bool is_lent; /* the window: it is the whole log, kept by struct marey__log_file */
};

void marey__block_reader_init(struct marey__block_reader *reader, int fd, const char *path,
                              uint64_t size);
void marey__block_reader_fini(struct marey__block_reader *reader);

/*
 * The next whole block: its header, and its packed bytes lent until the next call. `*done` is set at the end of the
 * file; a block that is only half there stays unread and sets `torn`, for it may be in the middle of being written.
 * Damage before a whole block is stepped over with a warning. MAREY_EIO and MAREY_ENOMEM end it.
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

/* A chunk of the pool, copied. */
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
    bool is_found, is_broken; /* broken: the log could not be written to its end */
    uint64_t broken_tick;     /* since when, 0: unknown; and why */
    char *failure;
};

/* Where words are: a block of the log, or a chunk of its pool's copy. 32 bytes for some 4000 words. */
struct marey__piece {
    uint64_t at; /* the block's offset, or the chunk's number */
    uint64_t first_tick;
    uint32_t lane, sequence;
    uint32_t n_words : 31, is_in_pool : 1;
    uint32_t next; /* of the lane, from 1; 0: none */
};

struct marey__log_file {
    struct marey_process info;
    int fd; /* of a log that is a part of a file without a name, lent; -1: by its path */
    uint64_t start, size; /* of the file: where the log is, up to where it ended when it was opened */
    char *bytes; /* the whole file, where it was small enough to keep; NULL: it is read again */
    struct marey__log_texts *texts;  /* lent */
    struct marey__site_table *sites; /* may be that of other logs, too; NULL: none was said */
    struct marey__sparse lanes;      /* struct marey__log_lane by number */
    struct marey__clock_map clock;
    struct marey__pool_copy pool;
    struct marey__piece *pieces; /* each lane's in order, at most 2^32 - 2; NULL: there is one lane at most */
    size_t n_pieces, pieces_cap;
    /* What the log says about GPUs; NULL: nothing. */
    const char *visible, *device_order; /* CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER */
    const char *gpus;                   /* of the machine */
    struct marey__payload_blocks payloads[MAREY__N_PAYLOADS];
    struct marey__kept_events *_Atomic kept; /* NULL: none */
    _Atomic bool is_keeping;                 /* a visit keeps events, or has tried to */
};

/*
 * Give each process that does not say its devices those that its CUDA_VISIBLE_DEVICES means on its machine, where any log
 * says which GPUs that has. Returns false on out of memory.
 */
bool marey__log_devices_find(struct marey__log_file *const *logs, size_t n);

/* A log while it is read for the first time. */
struct marey__log_scan {
    struct marey__log_file *log;
    struct marey__warnings *warnings;
    struct marey__block_reader reader;
    struct marey__sparse next_sequence; /* uint64_t by lane */
    struct marey__clock_entry *moments;
    size_t n_moments, moments_cap;
    struct marey__buf notes, raw;
    struct marey__arena texts;                          /* of the next four */
    const char *pool, *pool_id, *failure, *failed_tick; /* NULL: not said */
    uint64_t tick_hz;
    uint64_t n_blocks, n_events, first_tick, last_tick;
    bool has_log, has_words, has_end, has_no_memory;
    uint32_t newest; /* the format of blocks that are too new; 0: none is */
    struct marey__loss_entry loss;
    struct marey__loss_entry beyond; /* events of lanes from MAREY__MAX_LANES on, which are not read */
};

/* Nothing is known: empty texts, unknown ranks. */
void marey__log_info_init(struct marey_process *info);
/* Read the content of a block. Returns false on out of memory. */
bool marey__log_take_block(struct marey__log_scan *scan, const struct marey__block *block,
                           const uint8_t *packed);
void marey__loss_add(struct marey__loss_entry *loss, const struct marey__loss_entry *more);
/*
 * Count the words and events of a piece unless they came before, and make the lane known. Where events were not counted
 * (0), each word is one. Returns false on out of memory.
 */
bool marey__log_count_words(struct marey__log_scan *scan, const struct marey__piece *piece,
                            uint64_t last_tick, size_t n_events);
/* Say whose a lane is; `kind` is an enum marey_lane_kind, or one of a later version. Returns false on out of memory. */
bool marey__log_name_lane(struct marey__log_scan *scan, uint32_t lane, uint32_t kind, int64_t tid,
                          const char *name, size_t len);

/* ---- log_folder.c: the logs of a folder, in the order of their names ---- */

struct marey__log_entry {
    char *name;
    struct marey__log_file *log; /* NULL: it could not be read, or is empty so far */
    marey_status status;
    struct marey__warnings warnings;
};
struct marey__log_folder {
    struct marey__log_texts *texts; /* lent */
    struct marey__log_entry *entries;
    size_t n, cap;
    bool has_meta; /* a meta.json is there as well */
};
/* Pass 1 over all of them by `n_jobs` threads, 0: as many as there are cores. Fini takes what a failure leaves, too. */
MAREY_WARN_UNUSED marey_status marey__log_folder_open(struct marey__log_folder *folder,
                                                      const char *path, size_t n_jobs);
/* Only those with these names. */
MAREY_WARN_UNUSED marey_status marey__log_folder_open_some(struct marey__log_folder *folder,
                                                           const char *path, const char *const *names,
                                                           size_t n, size_t n_jobs);
void marey__log_folder_fini(struct marey__log_folder *folder);
/* marey_recording_open with so many threads. */
MAREY_WARN_UNUSED marey_status marey__recording_open(const char *path, size_t n_jobs,
                                                     marey_recording **out);

/* Where a log is in a file without a name. */
struct marey__log_part {
    uint64_t at, size;
};
/* A recording of logs in one file, which is the recording's from now on; left alone on failure. */
MAREY_WARN_UNUSED marey_status marey__recording_open_parts(const char *name, int fd,
                                                           const struct marey__log_part *parts,
                                                           size_t n, marey_recording **out);
/*
 * Some logs of a recording, those for which `keep` is set, as a recording of their own: one run, of that id, which is
 * lent. It lives on the whole, which is closed after it. Warnings stay with the whole. With a run id of NULL each log
 * keeps its own, and the part has the warnings, too.
 */
MAREY_WARN_UNUSED marey_status marey__recording_part(const marey_recording *whole, const bool *keep,
                                                     const char *run_id, marey_recording **out);

/*
 * Pass 1. MAREY_EFORMAT when the file is not a log; the sentence names it. On failure `log` is left finished. A finalized
 * log of up to `most_kept` bytes stays in memory, so that no later pass reads the file.
 */
MAREY_WARN_UNUSED marey_status marey__log_file_open(struct marey__log_file *log, const char *path,
                                                    struct marey__log_texts *texts, size_t most_kept,
                                                    struct marey__warnings *warnings);
/* The bytes that each of `n` logs may keep. */
size_t marey__log_file_most_kept(size_t n);
/* The same of a part of `fd`, lent until fini; `name` is for sentences. */
MAREY_WARN_UNUSED marey_status marey__log_file_open_part(struct marey__log_file *log,
                                                         struct marey__log_texts *texts,
                                                         const char *name, int fd,
                                                         const struct marey__log_part *part,
                                                         struct marey__warnings *warnings);
void marey__log_file_fini(struct marey__log_file *log);
/* For pass 2: the log's blocks from its begin on, until release. MAREY_EIO. */
MAREY_WARN_UNUSED marey_status marey__log_file_acquire(const struct marey__log_file *log,
                                                       struct marey__block_reader *reader);
void marey__log_file_release(const struct marey__log_file *log, struct marey__block_reader *reader);

/* What a visit knows of a lane. */
struct marey__lane_state {
    uint64_t next_sequence;
    uint64_t last_ns; /* of its latest word */
    int gap;          /* words are missing before the next batch */
};

/* Words of one lane, relative to one tick, and who gets them. */
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
/* Cut a run of at least one word into batches, at clock segments and at records that are unsound, and hand them on. */
MAREY_WARN_UNUSED marey_status marey__run_hand_on(const struct marey__run *run,
                                                  bool may_have_records);

/* Pass 2, over all lanes as they were written. */
MAREY_WARN_UNUSED marey_status marey__log_file_visit(const struct marey__log_file *log,
                                                     marey_visitor *visitor, void *ctx);
/* As marey_recording_visit, of one lane: for callers that write a thread's events in one piece. Reads only its blocks. */
MAREY_WARN_UNUSED marey_status marey__log_file_visit_lane(const struct marey__log_file *log,
                                                          uint32_t lane, marey_visitor *visitor,
                                                          void *ctx);
MAREY_WARN_UNUSED marey_status marey__recording_visit_lane(marey_recording *recording,
                                                           size_t process, uint32_t lane,
                                                           marey_visitor *visitor, void *ctx);

/*
 * Pass 2 over all lanes, so that a record about the whole process (an iteration, epoch or phase) comes behind all words
 * of other lanes that lie before it and before all others; between two of these, lanes come in any order, each in its
 * own. A gap is reported as soon as the lane's words before it were handed on, by an empty batch; so is the end of a lane in
 * a process that has lost events. Holds one block of each lane that has begun and not ended; where that could be more
 * than 512 MiB, words come as they were written.
 */
MAREY_WARN_UNUSED marey_status marey__log_file_visit_in_order(const struct marey__log_file *log,
                                                              marey_visitor *visitor, void *ctx);
MAREY_WARN_UNUSED marey_status marey__recording_visit_in_order(marey_recording *recording,
                                                               size_t process,
                                                               marey_visitor *visitor, void *ctx);

/* ---- log_keep.c: decoded events in memory, for commands that visit a process several times ---- */

/* As marey__log_file_visit_in_order. The first visit keeps what it decodes, as long as `budget` has the bytes. */
MAREY_WARN_UNUSED marey_status marey__log_file_visit_kept(struct marey__log_file *log,
                                                          _Atomic uint64_t *budget,
                                                          marey_visitor *visitor, void *ctx);
void marey__log_file_drop_kept(struct marey__log_file *log);
/*
 * Until as many calls of drop, visits in order of a recording's processes decode each log once, as long as their events
 * take at most MAREY__KEPT_BYTES together; others are decoded again. For the thread that has the recording.
 */
#define MAREY__KEPT_BYTES (UINT64_C(256) << 20)
void marey__recordings_keep_events(marey_recording *const *recordings, size_t n);
void marey__recordings_drop_events(marey_recording *const *recordings, size_t n);

/* Which of two processes of a recording comes first, negative for `a`: by rank, then start. */
int marey__process_compare(const struct marey_process *a, const struct marey_process *b);
/* How many warnings are about logs; those behind are what measuring processes left as notes. */
size_t marey__recording_n_of_logs(const marey_recording *recording);
/* Logs that could not be read, and those that are empty so far. */
void marey__recording_left_out(const marey_recording *recording, uint64_t *n_broken,
                               uint64_t *n_empty);
/* The blocks of one kind of a log, one after the other. */
struct marey__payload_reader {
    struct marey__log_file *log; /* lent; NULL: closed */
    enum marey__payload_kind payload;
    struct marey__warnings *warnings;
    struct marey__block_reader blocks;
    struct marey__buf raw;
    size_t next;
    uint64_t next_sequence;
    bool has_gap;     /* a block before this one is missing */
    size_t n_damaged; /* blocks; callers add those with a damaged entry. Close warns, once per log */
};
MAREY_WARN_UNUSED marey_status marey__payload_reader_open(struct marey__payload_reader *reader,
                                                          struct marey__log_file *log,
                                                          enum marey__payload_kind payload,
                                                          struct marey__warnings *warnings);
void marey__payload_reader_close(struct marey__payload_reader *reader);
/* The payload of the next block, lent until the one after it; of length 0 when it is damaged. */
MAREY_WARN_UNUSED marey_status marey__payload_reader_next(struct marey__payload_reader *reader,
                                                          const void **payload, size_t *len,
                                                          bool *done);
/* Open a reader of a log of a recording. */
MAREY_WARN_UNUSED marey_status marey__recording_read_payload(marey_recording *recording, size_t log,
                                                             enum marey__payload_kind payload,
                                                             struct marey__payload_reader *reader);
bool marey__recording_has_payload(const marey_recording *recording, size_t log,
                                  enum marey__payload_kind payload);

/* Takes the entries of a log. */
struct marey__payload_taker {
    /* False for an entry that leads nowhere, which ends its block, and on out of memory, with `failed` set. */
    bool (*take)(void *ctx, struct marey__payload_entry *entry);
    void *ctx;
    bool failed;
    struct marey__arena scratch; /* texts of the block at hand */
};
/* All blocks of the kind, in order. What a damaged block said before the damage counts. */
MAREY_WARN_UNUSED marey_status marey__recording_take_payload(marey_recording *recording, size_t log,
                                                             enum marey__payload_kind payload,
                                                             struct marey__payload_taker *taker);
/* A text of the entry with a NUL behind it, until the end of its block; "" on out of memory. */
const char *marey__payload_text(struct marey__payload_taker *taker,
                                const struct marey__payload_entry *entry, size_t i);
double marey__recording_ns_per_tick(const marey_recording *recording, size_t process);
/* Bytes of the process's log, within which the numbers in it stay. */
uint64_t marey__recording_log_size(const marey_recording *recording, size_t process);

/* ---- log_samples.c: what a sampler left ---- */

enum marey__entry_step marey__samples_next(const void **at, const void *end,
                                           struct marey__payload_entry *entry);
/* The next number of its list. */
bool marey__samples_take(struct marey__payload_entry *entry, uint64_t *number);

/* What became of a thread in a round: bits of `what` are 1 stack, 2 flags, 4 wait, 8 it is gone. */
struct marey__samples_event {
    uint32_t round, thread, what, stack, flags, wait;
};
/* The list of an A, taken apart. A zeroed one is empty, and is used again. */
struct marey__samples_rounds {
    uint64_t *at_ns, *weights_ns; /* 0: not said */
    size_t n, at_cap, weights_cap;
    struct marey__samples_event *events; /* in order of rounds */
    size_t n_events, events_cap;
};
/* Damaged also without memory, which sets `*failed`. */
enum marey__entry_step marey__samples_rounds(struct marey__payload_entry *entry,
                                             struct marey__samples_rounds *rounds, bool *failed);
void marey__samples_rounds_fini(struct marey__samples_rounds *rounds);

/* Copy what the pool at `path` holds, for which `log_path` may also give the folder. An unfit file copies nothing. */
MAREY_WARN_UNUSED marey_status marey__pool_copy(struct marey__pool_copy *copy, const char *path,
                                                uint64_t id, const struct marey__block_reader *log);
void marey__pool_copy_fini(struct marey__pool_copy *copy);

/*
 * Whether words of `sequence` are new in a lane that expects `*next`, which then moves on; `*gap` says whether some
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

/* The logs of a directory looked at together; log_check.c says for what. */

struct marey__checked_logs {
    const struct marey_process *const *logs; /* by rank */
    size_t n;
    size_t n_broken; /* files that are not logs, or whose first block is gone */
    size_t n_empty;
};

/* Say what is odd. Without memory `warnings` says so. */
void marey__logs_check(const struct marey__checked_logs *all, struct marey__warnings *warnings);

/* One rank of a run, and when it ran by the wall clock of its machine. */
struct marey__run_rank {
    const struct marey_process *process;
    const char *run;    /* its run's id */
    const char *joined; /* the same; "" for a run with only this rank */
    uint64_t begin_ns, end_ns;
};

/* log_twins.c: ranks that are there more than once; by run, rank and begin. */
void marey__check_twins(const struct marey__run_rank *ranks, size_t n,
                        struct marey__warnings *warnings);
/* Hosts whose clocks disagree; by joined run. */
void marey__check_clocks(const struct marey__run_rank *ranks, size_t n,
                         struct marey__warnings *warnings);

#endif
