/*
 * memory: files of memory timelines.
 *
 *   memory_files_out.c                 the files of a timeline: memory_json_out.c (torch's two JSON files),
 *                                      memory_page_out.c (the page), memory_snapshot_out.c (the allocator's snapshot)
 *   memory_pickle_out.c, memory_arenas.c   pickles; blocks placed into segments
 *
 * Input: a timeline of analyze/memory. Output: whole files into a descriptor that stays open.
 */
#ifndef MAREY_PRESENT_MEMORY_INTERNAL_H
#define MAREY_PRESENT_MEMORY_INTERNAL_H

#include "analyze/memory/internal.h"
#include "present/export/internal.h"

/* ---- memory_json_out.c: of the main device, gzip ---- */

/* [times, sizes]: microseconds, and for each 0 and the bytes of the eight categories. */
MAREY_WARN_UNUSED marey_status marey__memory_json_write(const struct marey__memory_timeline *timeline,
                                                        int fd);
/* [time, action, signed bytes, category] of each change; nanoseconds, -1 for what was there before. */
MAREY_WARN_UNUSED marey_status marey__memory_raw_write(const struct marey__memory_timeline *timeline,
                                                       int fd);

/* ---- memory_page_out.c: all devices ---- */

MAREY_WARN_UNUSED marey_status marey__memory_page_write(const struct marey__memory_timeline *timeline,
                                                        const char *title, int fd);

/* ---- memory_snapshot_out.c: all devices, for PyTorch's memory viewer ---- */

MAREY_WARN_UNUSED marey_status
marey__memory_snapshot_write(const struct marey__memory_timeline *timeline, int fd);

/* ==== memory_pickle_out ==== */

/*
 * Python's pickle, protocol 4, of dictionaries, lists, numbers and texts: what the allocator's snapshot needs, with no
 * opcode besides those that PyTorch's memory viewer knows. It knows none above protocol 4 and takes lists in pieces that
 * fit the arguments of a call, so that pieces have at most 1000 items, as Python's own.
 *
 *   marey__pickle_begin(&p, out, words, n);
 *     marey__pickle_dict(&p);  word, value, word, value ...  marey__pickle_dict_end(&p);
 *     struct marey__pickle_list list = marey__pickle_list(&p);
 *       marey__pickle_item(&p, &list);  value ...
 *     marey__pickle_list_end(&p, &list);
 *   marey__pickle_end(&p);
 */

/* Places in the reader's memory; NONE: not there. */
#define MAREY__PICKLE_NONE UINT32_MAX
enum { MAREY__PICKLE_BATCH = 1000, MAREY__PICKLE_WORDS = 64 };

struct marey__pickle {
    struct marey__out *out;
    const char *const *words; /* texts that come often, lent: each is written once */
    uint32_t places[MAREY__PICKLE_WORDS];
    uint32_t n_kept; /* values that the reader has in memory */
};

struct marey__pickle_list {
    uint64_t n;
};

/* At most MAREY__PICKLE_WORDS words. Failures are those of `out`. */
void marey__pickle_begin(struct marey__pickle *pickle, struct marey__out *out,
                         const char *const *words, size_t n_words);
void marey__pickle_end(struct marey__pickle *pickle);
void marey__pickle_dict(struct marey__pickle *pickle);
void marey__pickle_dict_end(struct marey__pickle *pickle);
struct marey__pickle_list marey__pickle_list(struct marey__pickle *pickle);
/* An item comes next. */
void marey__pickle_item(struct marey__pickle *pickle, struct marey__pickle_list *list);
void marey__pickle_list_end(struct marey__pickle *pickle, struct marey__pickle_list *list);
void marey__pickle_int(struct marey__pickle *pickle, int64_t value);
/* Bytes that are no UTF-8 become U+FFFD. */
void marey__pickle_text(struct marey__pickle *pickle, const char *text, size_t len);
void marey__pickle_word(struct marey__pickle *pickle, size_t word);
void marey__pickle_false(struct marey__pickle *pickle);
/* Two small numbers as a tuple. */
void marey__pickle_pair(struct marey__pickle *pickle, int64_t a, int64_t b);
/* Let the reader keep the value that was written last, and return its place for marey__pickle_again. */
uint32_t marey__pickle_keep(struct marey__pickle *pickle);
void marey__pickle_again(struct marey__pickle *pickle, uint32_t place);

/* Segments for the allocator's snapshot of one device, and what lies in them at the end. */

struct marey__memory_arena {
    uint64_t begin, end;
    size_t first_live, n_live; /* of marey__memory_arenas.live */
    int64_t live_bytes;
    bool is_small;
};
struct marey__memory_arenas {
    struct marey__memory_arena *arenas; /* by address; they do not touch */
    size_t n_arenas;
    uint32_t *live; /* blocks by address; they do not overlap */
    size_t n_live;
};

/* Whether the viewer can draw a block: its numbers are doubles, and what has no address has no place. */
static inline bool marey__memory_is_shown(const struct marey__memory_block *block)
{
    const uint64_t most = UINT64_C(1) << 53;
    return block->address != 0 && block->address < most &&
           (uint64_t)block->bytes < most - block->address;
}

/* MAREY_ENOMEM; fini in any case. */
MAREY_WARN_UNUSED marey_status marey__memory_arenas_init(struct marey__memory_arenas *arenas,
                                                         const struct marey__memory_timeline *timeline,
                                                         uint32_t device);
void marey__memory_arenas_fini(struct marey__memory_arenas *arenas);

#endif
