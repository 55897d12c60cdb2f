/*
 * codec: bytes of files, packed or not, and the texts in them.
 *
 *   byte_source.c ── a file from its begin to its end, unpacked where it is gzip, in large pieces
 *     gzip_isal.c, or gzip_zlib.c in builds without ISA-L
 *   deflate.c ── the other way, for the report page: deflate.h
 *   json_scan.c ── JSON in one pass over such bytes, with memory that does not grow with the file
 *     json_text.c ── escapes;  json_skip.c ── past a value;  json_chars.h ── many characters at once
 *   decimal.c ── numbers as they are written, exactly
 */
#ifndef MAREY_CODEC_INTERNAL_H
#define MAREY_CODEC_INTERNAL_H

#include "base/base_internal.h"

/* ---- byte_source.c ---- */

typedef struct marey__byte_source marey__byte_source;

/* Open the file at `path`; gzip is known by its first bytes. MAREY_EIO; MAREY_EUNAVAILABLE: gzip in a build without. */
MAREY_WARN_UNUSED marey_status marey__bytes_open(const char *path, marey__byte_source **out);
/* The same over `len` bytes in memory, lent until close. */
MAREY_WARN_UNUSED marey_status marey__bytes_open_memory(const void *bytes, size_t len,
                                                        marey__byte_source **out);
/* The same bytes from their begin, a second time; fails for what is no file, and can be read but once. */
MAREY_WARN_UNUSED marey_status marey__bytes_open_again(const marey__byte_source *source,
                                                       marey__byte_source **out);
void marey__bytes_close(marey__byte_source *source);
/* The first bytes without taking them, as many as are at hand, at least 4096 where the file has them. */
MAREY_WARN_UNUSED marey_status marey__bytes_peek(marey__byte_source *source, const char **bytes,
                                                 size_t *len);
/* The next bytes, lent until the next call; 0 of them at the end. MAREY_EIO when the file cannot be read. */
MAREY_WARN_UNUSED marey_status marey__bytes_next(marey__byte_source *source, const char **bytes,
                                                 size_t *len);
/* At the end: why the bytes stop before the file does (gzip that is cut off or damaged), or NULL. */
const char *marey__bytes_damage(const marey__byte_source *source);
/* How far in the file, 0..1, for progress; and how many unpacked bytes were handed out. */
double marey__bytes_share(const marey__byte_source *source);
uint64_t marey__bytes_total(const marey__byte_source *source);
/* Tests: hand out at most `n` bytes at once from now on; 0: whole pieces. */
void marey__bytes_cut(marey__byte_source *source, size_t n);

/* ---- gzip_*.c: gzip unpacked, one member at a time ---- */

typedef struct marey__inflate marey__inflate;

struct marey__inflate_io {
    const uint8_t *in; /* taken from; moves forward */
    size_t n_in;
    uint8_t *out; /* filled; moves forward */
    size_t n_out;
};

enum marey__inflate_result {
    MAREY__INFLATE_GOES_ON, /* until there is more to read, or more room */
    MAREY__INFLATE_DONE,    /* a member's end, its checksum right */
    MAREY__INFLATE_BROKEN,
};

/* At the begin of a member; NULL without memory. */
marey__inflate *marey__inflate_create(void);
void marey__inflate_destroy(marey__inflate *inflate);
void marey__inflate_reset(marey__inflate *inflate);
enum marey__inflate_result marey__inflate_run(marey__inflate *state, struct marey__inflate_io *io);

/* ---- json_scan*.c ---- */

/*
 *   while ((token = marey__scan_next(scan)) != MAREY__SCAN_END && token != MAREY__SCAN_MISTAKE) ...
 *
 * What programs write though JSON has none of it is read all the same: NaN and Infinity are numbers, commas may be
 * missing, double or left over, strings hold any bytes, an escape that is unknown is its own letter.
 */
enum marey__scan_token {
    MAREY__SCAN_END, /* of the bytes, with nothing open */
    MAREY__SCAN_OBJECT,
    MAREY__SCAN_OBJECT_END,
    MAREY__SCAN_ARRAY,
    MAREY__SCAN_ARRAY_END,
    MAREY__SCAN_KEY,    /* of an object, `text`; its value comes next */
    MAREY__SCAN_STRING, /* `text`, escapes decoded */
    MAREY__SCAN_NUMBER, /* `text` as it stands; marey__decimal and marey__decimal_double read it */
    MAREY__SCAN_TRUE,
    MAREY__SCAN_FALSE,
    MAREY__SCAN_NULL,
    MAREY__SCAN_MISTAKE, /* `status`, `mistake` and `offset` tell; it stays so */
};

enum {
    MAREY__SCAN_MAX_DEPTH = 1024,
    MAREY__SCAN_MAX_TEXT = 64 << 20, /* bytes of one string or number */
};

struct marey__scan {
    /* Of the latest token; `text` is lent until the next call, and not NUL-terminated. */
    const char *text;
    size_t text_len;
    uint32_t depth; /* objects and arrays that are open */

    /* Of a mistake. */
    marey_status status; /* MAREY_EFORMAT; MAREY_EIO, MAREY_ENOMEM with the sentence in marey_last_error() */
    const char *mistake; /* a few words: "a key without a colon"; lent for ever */
    bool is_cut;         /* the bytes end where something is open */

    /*
     * The window: bytes that are not taken yet, for whoever reads faster than token by token. Two quotes stand
     * at `end`, and MAREY__SCAN_PADDING bytes from there may be read.
     */
    const char *at, *end;

    /* The rest is json_scan.c's. */
    struct marey__byte_source *bytes;
    char *window;
    size_t window_cap;
    uint64_t window_offset; /* of window[0] in the bytes */
    bool is_last;           /* no bytes behind the window */
    bool wants_key;         /* in an object, before a key */
    struct marey__buf decoded;
    uint64_t is_object[MAREY__SCAN_MAX_DEPTH / 64]; /* a bit for each level: an object, else an array */
};

enum { MAREY__SCAN_PADDING = 64 };

/* `bytes` is lent until fini. MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__scan_init(struct marey__scan *scan,
                                                struct marey__byte_source *bytes);
void marey__scan_fini(struct marey__scan *scan);
enum marey__scan_token marey__scan_next(struct marey__scan *scan);
/*
 * Go past a value: behind a KEY its value, behind OBJECT or ARRAY the rest of it with its end. Brackets are counted, not
 * matched. False at a mistake, which marey__scan_next then returns too.
 */
bool marey__scan_skip(struct marey__scan *scan);
/* Where in the bytes the next token is looked for, or the mistake is. */
uint64_t marey__scan_offset(const struct marey__scan *scan);
/* Note a mistake here. Returns MAREY__SCAN_MISTAKE. */
enum marey__scan_token marey__scan_fail(struct marey__scan *scan, const char *mistake);
/*
 * More bytes behind those of the window, which stay from `at` on; pointers into it are void afterwards. False at the end
 * of the bytes, and when something failed, which `status` tells.
 */
bool marey__scan_refill(struct marey__scan *scan);

/* For json_skip.c: the innermost that is open is an object; it was left, its end taken. */
bool marey__scan_in_object(const struct marey__scan *scan);
void marey__scan_leave(struct marey__scan *scan);

/* Append the string between two quotes, `len` bytes as they stand, with its escapes decoded. */
void marey__json_decode(struct marey__buf *buf, const char *text, size_t len);

/* ---- decimal.c ---- */

/*
 * The number that all of `text` is, times ten to the power of `scale`, rounded to the nearest integer (a half: away from
 * zero): "1712195495505582.988" with scale 3 is 1712195495505582988. False for what is no number, or beyond 63 bits.
 */
MAREY_WARN_UNUSED bool marey__decimal(const char *text, size_t len, int scale, int64_t *out);
/* As a double, the nearest; NaN and Infinity are themselves. False for what is no number. */
MAREY_WARN_UNUSED bool marey__decimal_double(const char *text, size_t len, double *out);

#endif
