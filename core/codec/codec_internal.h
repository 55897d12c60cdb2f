/*
 * codec: bytes of files, packed or not, and the texts in them.
 *
 *   byte_source.c ── a file from its begin to its end, unpacked where it is gzip, in large pieces
 *     gzip_isal.c, gzip_zlib.c, gzip_missing.c ── one of them, as the build found it
 *   deflate.c ── the other way, for the report page: deflate.h
 *   json_scan.c ── JSON in one pass over such bytes, with memory that does not grow with the file
 *     json_text.c ── escapes;  json_skip.c ── past a value;  json_chars.h ── many characters at once
 *   decimal.c ── numbers as they are written, exactly
 */
#ifndef KYMO_CODEC_INTERNAL_H
#define KYMO_CODEC_INTERNAL_H

#include "base/base_internal.h"

/* ---- byte_source.c ---- */

typedef struct kymo__byte_source kymo__byte_source;

/* Open the file at `path`; gzip is known by its first bytes. KYMO_EIO; KYMO_EUNAVAILABLE: gzip in a build without. */
KYMO_WARN_UNUSED kymo_status kymo__bytes_open(const char *path, kymo__byte_source **out);
/* The same over `len` bytes in memory, lent until close. */
KYMO_WARN_UNUSED kymo_status kymo__bytes_open_memory(const void *bytes, size_t len,
                                                     kymo__byte_source **out);
/* The same bytes from their begin, a second time; fails for what is no file, and can be read but once. */
KYMO_WARN_UNUSED kymo_status kymo__bytes_open_again(const kymo__byte_source *source,
                                                    kymo__byte_source **out);
void kymo__bytes_close(kymo__byte_source *source);
/* The first bytes without taking them, as many as are at hand, at least 4096 where the file has them. */
KYMO_WARN_UNUSED kymo_status kymo__bytes_peek(kymo__byte_source *source, const char **bytes,
                                              size_t *len);
/* The next bytes, lent until the next call; 0 of them at the end. KYMO_EIO when the file cannot be read. */
KYMO_WARN_UNUSED kymo_status kymo__bytes_next(kymo__byte_source *source, const char **bytes,
                                              size_t *len);
/* At the end: why the bytes stop before the file does (gzip that is cut off or damaged), or NULL. */
const char *kymo__bytes_damage(const kymo__byte_source *source);
/* How far in the file, 0..1, for progress; and how many unpacked bytes were handed out. */
double kymo__bytes_share(const kymo__byte_source *source);
uint64_t kymo__bytes_total(const kymo__byte_source *source);
/* Tests: hand out at most `n` bytes at once from now on; 0: whole pieces. */
void kymo__bytes_cut(kymo__byte_source *source, size_t n);

/* ---- gzip_*.c: gzip unpacked, one member at a time ---- */

typedef struct kymo__inflate kymo__inflate;

struct kymo__inflate_io {
    const uint8_t *in; /* taken from; moves forward */
    size_t n_in;
    uint8_t *out; /* filled; moves forward */
    size_t n_out;
};

enum kymo__inflate_result {
    KYMO__INFLATE_GOES_ON, /* until there is more to read, or more room */
    KYMO__INFLATE_DONE,    /* a member's end, its checksum right */
    KYMO__INFLATE_BROKEN,
};

/* NULL for a build that cannot, with what to install. */
extern const char *const kymo__gzip_missing;
/* At the begin of a member; NULL without memory. */
kymo__inflate *kymo__inflate_create(void);
void kymo__inflate_destroy(kymo__inflate *inflate);
void kymo__inflate_reset(kymo__inflate *inflate);
enum kymo__inflate_result kymo__inflate_run(kymo__inflate *state, struct kymo__inflate_io *io);

/* ---- json_scan*.c ---- */

/*
 *   while ((token = kymo__scan_next(scan)) != KYMO__SCAN_END && token != KYMO__SCAN_MISTAKE) ...
 *
 * What programs write though JSON has none of it is read all the same: NaN and Infinity are numbers, commas may be
 * missing, double or left over, strings hold any bytes, an escape that is unknown is its own letter.
 */
enum kymo__scan_token {
    KYMO__SCAN_END, /* of the bytes, with nothing open */
    KYMO__SCAN_OBJECT,
    KYMO__SCAN_OBJECT_END,
    KYMO__SCAN_ARRAY,
    KYMO__SCAN_ARRAY_END,
    KYMO__SCAN_KEY,    /* of an object, `text`; its value comes next */
    KYMO__SCAN_STRING, /* `text`, escapes decoded */
    KYMO__SCAN_NUMBER, /* `text` as it stands; kymo__decimal and kymo__decimal_double read it */
    KYMO__SCAN_TRUE,
    KYMO__SCAN_FALSE,
    KYMO__SCAN_NULL,
    KYMO__SCAN_MISTAKE, /* `status`, `mistake` and `offset` tell; it stays so */
};

enum {
    KYMO__SCAN_MAX_DEPTH = 1024,
    KYMO__SCAN_MAX_TEXT = 64 << 20, /* bytes of one string or number */
};

struct kymo__scan {
    /* Of the latest token; `text` is lent until the next call, and not NUL-terminated. */
    const char *text;
    size_t text_len;
    uint32_t depth; /* objects and arrays that are open */

    /* Of a mistake. */
    kymo_status status; /* KYMO_EFORMAT; KYMO_EIO, KYMO_ENOMEM with the sentence in kymo_last_error() */
    const char *mistake; /* a few words: "a key without a colon"; lent for ever */
    bool is_cut;         /* the bytes end where something is open */

    /*
     * The window: bytes that are not taken yet, for whoever reads faster than token by token. Two quotes stand
     * at `end`, and KYMO__SCAN_PADDING bytes from there may be read.
     */
    const char *at, *end;

    /* The rest is json_scan.c's. */
    struct kymo__byte_source *bytes;
    char *window;
    size_t window_cap;
    uint64_t window_offset; /* of window[0] in the bytes */
    bool is_last;           /* no bytes behind the window */
    bool wants_key;         /* in an object, before a key */
    struct kymo__buf decoded;
    uint64_t is_object[KYMO__SCAN_MAX_DEPTH / 64]; /* a bit for each level: an object, else an array */
};

enum { KYMO__SCAN_PADDING = 64 };

/* `bytes` is lent until fini. KYMO_ENOMEM. */
KYMO_WARN_UNUSED kymo_status kymo__scan_init(struct kymo__scan *scan,
                                             struct kymo__byte_source *bytes);
void kymo__scan_fini(struct kymo__scan *scan);
enum kymo__scan_token kymo__scan_next(struct kymo__scan *scan);
/*
 * Go past a value: behind a KEY its value, behind OBJECT or ARRAY the rest of it with its end. Brackets are counted, not
 * matched. False at a mistake, which kymo__scan_next then returns too.
 */
bool kymo__scan_skip(struct kymo__scan *scan);
/* Where in the bytes the next token is looked for, or the mistake is. */
uint64_t kymo__scan_offset(const struct kymo__scan *scan);
/* Note a mistake here. Returns KYMO__SCAN_MISTAKE. */
enum kymo__scan_token kymo__scan_fail(struct kymo__scan *scan, const char *mistake);
/*
 * More bytes behind those of the window, which stay from `at` on; pointers into it are void afterwards. False at the end
 * of the bytes, and when something failed, which `status` tells.
 */
bool kymo__scan_refill(struct kymo__scan *scan);

/* For json_skip.c: the innermost that is open is an object; it was left, its end taken. */
bool kymo__scan_in_object(const struct kymo__scan *scan);
void kymo__scan_leave(struct kymo__scan *scan);

/* Append the string between two quotes, `len` bytes as they stand, with its escapes decoded. */
void kymo__json_decode(struct kymo__buf *buf, const char *text, size_t len);

/* ---- decimal.c ---- */

/*
 * The number that all of `text` is, times ten to the power of `scale`, rounded to the nearest integer (a half: away from
 * zero): "1712195495505582.988" with scale 3 is 1712195495505582988. False for what is no number, or beyond 63 bits.
 */
KYMO_WARN_UNUSED bool kymo__decimal(const char *text, size_t len, int scale, int64_t *out);
/* As a double, the nearest; NaN and Infinity are themselves. False for what is no number. */
KYMO_WARN_UNUSED bool kymo__decimal_double(const char *text, size_t len, double *out);

#endif
