/*
 * codec: files of common formats to bytes, tokens and symbols, and back.
 *
 *   byte_source.c     a file from start to end in large pieces, gunzipped where needed (ISA-L or zlib)
 *   compress*.c       the other direction: gzip and zlib by ISA-L or zlib
 *   deflate.c         deflate of number columns, for pages
 *   json_*.c          one JSON reader: token by token, from a stream in bounded memory or from a string
 *   decimal.c         decimal numbers, exactly
 *   elf_symbols.c     symbols of program files
 *
 * Input: files that anyone may have written; every length is checked. Output: bytes, tokens, names. Knows nothing
 * of recordings or of what the bytes mean.
 */
#ifndef MAREY_CODEC_INTERNAL_H
#define MAREY_CODEC_INTERNAL_H

#include <elf.h>

#include "base/internal.h"

/* ---- byte_source.c ---- */

typedef struct marey__byte_source marey__byte_source;

/* Open the file at `path`; gzip is known by its first bytes. MAREY_EIO; MAREY_EUNAVAILABLE: gzip in a build without. */
MAREY_WARN_UNUSED marey_status marey__bytes_open(const char *path, marey__byte_source **out);
/* The same over `len` bytes in memory, lent until close. */
MAREY_WARN_UNUSED marey_status marey__bytes_open_memory(const void *bytes, size_t len,
                                                        marey__byte_source **out);
/* The same bytes from their begin, a second time; fails for what is not a regular file and can be read only once. */
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

/* ---- compress_isal.c or compress_zlib.c: gzip and zlib streams decompressed, one member at a time ---- */

typedef struct marey__inflate marey__inflate;

struct marey__flate_io {
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

enum marey__inflate_format { MAREY__INFLATE_GZIP, MAREY__INFLATE_ZLIB };
/* At the start of a member; NULL on out of memory. Destroy takes NULL. */
marey__inflate *marey__inflate_create(enum marey__inflate_format format);
void marey__inflate_destroy(marey__inflate *inflate);
void marey__inflate_reset(marey__inflate *inflate);
enum marey__inflate_result marey__inflate_run(marey__inflate *state, struct marey__flate_io *io);

/* ---- json_read.c ---- */

/*
 * JSON, token by token:
 *
 *   marey__json_init_text(&json, text, len, MAREY__JSON_STRICT);
 *   if (marey__json_next(&json) == MAREY__JSON_OBJECT)
 *       while (marey__json_next_key(&json))
 *           if (marey__json_is(&json, "name")) ... marey__json_next(&json) ...
 *           else marey__json_skip(&json);
 *   if (json.mistake != NULL) ...
 *   marey__json_fini(&json);
 *
 * By default it also reads the files that careless programs write: NaN and Infinity are numbers, commas may be missing or
 * doubled, strings hold any bytes, an unknown escape is its letter, and values may follow one another.
 */
enum {
    /* As RFC 8259 has it, and one value only: everything else is a mistake. */
    MAREY__JSON_STRICT = 1,
    /* With STRICT: NaN, nan, Infinity and -Infinity are numbers all the same. */
    MAREY__JSON_NAN = 2,
    /* Half of a UTF-16 pair becomes three bytes, as Python's "surrogatepass" writes it; else it becomes U+FFFD. */
    MAREY__JSON_SURROGATES = 4,
};

enum marey__json_token {
    MAREY__JSON_END, /* of the bytes, with nothing open */
    MAREY__JSON_OBJECT,
    MAREY__JSON_OBJECT_END,
    MAREY__JSON_ARRAY,
    MAREY__JSON_ARRAY_END,
    MAREY__JSON_KEY,    /* of an object, `text`; its value comes next */
    MAREY__JSON_STRING, /* `text`, escapes decoded */
    MAREY__JSON_NUMBER, /* `text` as written; marey__decimal and marey__decimal_double convert it */
    MAREY__JSON_TRUE,
    MAREY__JSON_FALSE,
    MAREY__JSON_NULL,
    MAREY__JSON_MISTAKE, /* see `status`, `mistake` and marey__json_offset(); every later call returns it too */
};

enum {
    MAREY__JSON_MAX_DEPTH = 1024,
    MAREY__JSON_MAX_TEXT = 64 << 20, /* bytes of one string or number */
    MAREY__JSON_PADDING = 64,
};

struct marey__json {
    /* The latest token's text, valid until the next call. A NUL follows keys and strings. */
    const char *text;
    size_t text_len;
    uint32_t depth; /* objects and arrays that are open */

    marey_status status; /* MAREY_EFORMAT; MAREY_EIO, MAREY_ENOMEM with the sentence in marey_last_error() */
    const char *mistake; /* a few words: "a key without a colon"; static. NULL: none so far */
    bool is_cut;         /* the bytes end inside a value */

    /*
     * The window: bytes that are not consumed yet, for callers that parse them directly. Two quotes follow at `end`, and
     * MAREY__JSON_PADDING bytes from there are readable.
     */
    const char *at, *end;

    /* The rest is private to json_read.c. */
    struct marey__byte_source *bytes; /* NULL: the window is all there is */
    char *window;
    size_t window_cap;      /* 0: the window is the caller's */
    uint64_t window_offset; /* of window[0] in the bytes */
    unsigned rules;         /* MAREY__JSON_STRICT and others */
    bool is_last;           /* no bytes follow the window */
    bool wants_key;         /* in an object, before a key */
    uint8_t place;          /* for STRICT: whether a comma comes next */
    struct marey__buf decoded;
    uint64_t is_object[MAREY__JSON_MAX_DEPTH / 64]; /* a bit for each level: an object, else an array */
};

/* From bytes, which the caller closes after fini. MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__json_init(struct marey__json *json,
                                                struct marey__byte_source *bytes);
/* From a copy of `text`. Out of memory: the first token is a MISTAKE. */
void marey__json_init_text(struct marey__json *json, const char *text, size_t len, unsigned rules);
/* Likewise without a copy: `text` is modified, and MAREY__JSON_PADDING bytes follow it. */
void marey__json_init_padded(struct marey__json *json, char *text, size_t len, unsigned rules);
void marey__json_fini(struct marey__json *json);

enum marey__json_token marey__json_next(struct marey__json *json);
/* In an object: true at the next key, false at the object's end and for a mistake. */
bool marey__json_next_key(struct marey__json *json);
/* In an array: true at the next item, whose token is *token; false at the array's end and for a mistake. */
bool marey__json_next_item(struct marey__json *json, enum marey__json_token *token);
/* The first character of the next token, which is not consumed; NUL at the end and for a mistake. */
char marey__json_peek(struct marey__json *json);
/* The caller parsed a value, from `at` as peek() left it to `p`: go on there. */
void marey__json_taken(struct marey__json *json, const char *p);
/*
 * Skip a value: after a KEY its value, after OBJECT or ARRAY the rest of it with its end. Unless STRICT, brackets are counted,
 * not matched. False at a mistake.
 */
bool marey__json_skip(struct marey__json *json);
/* Skip the rest of the value that `token` began: of an object or array; other values have none. */
bool marey__json_skip_from(struct marey__json *json, enum marey__json_token token);

/* Whether the latest token's text is `word`. */
static inline bool marey__json_is(const struct marey__json *json, const char *word)
{
    return json->text_len == strlen(word) && memcmp(json->text, word, json->text_len) == 0;
}
/* The latest token as a double; NaN for anything but a NUMBER. */
double marey__json_number(const struct marey__json *json, enum marey__json_token token);
/* The latest token as an integer: a NUMBER, or a STRING of digits; `otherwise` for anything else. */
int64_t marey__json_integer(const struct marey__json *json, enum marey__json_token token,
                            int64_t otherwise);

/*
 * The next value, of one kind; false with a mistake where it is another: `wanted`, a string, an integer from 0 to INT64_MAX, the
 * end of the text.
 */
bool marey__json_expect(struct marey__json *json, enum marey__json_token wanted, const char *mistake);
bool marey__json_string(struct marey__json *json);
bool marey__json_count(struct marey__json *json, uint64_t *out);
bool marey__json_end(struct marey__json *json);
/* A key and the function that reads its value, which returns false for a mistake. */
struct marey__json_key {
    const char *name; /* NULL: the end of a list of them */
    bool (*read)(struct marey__json *json, void *into);
    size_t offset; /* in what the object is read into */
};
/* The next value: an object, by its keys. Other keys are skipped, so that later versions may have more. */
bool marey__json_object(struct marey__json *json, const struct marey__json_key *keys, void *into);

/*
 * The next value where any kind is allowed: an object or array to go into, else it is skipped; an integer, in quotes or not;
 * true or a positive integer.
 */
bool marey__json_enter(struct marey__json *json, enum marey__json_token wanted);
int64_t marey__json_read_integer(struct marey__json *json, int64_t otherwise);
bool marey__json_read_flag(struct marey__json *json);

/* Where in the bytes the next token is searched, or the mistake is. */
uint64_t marey__json_offset(const struct marey__json *json);
/* Note a mistake here, unless there is one. Returns MAREY__JSON_MISTAKE. */
enum marey__json_token marey__json_fail(struct marey__json *json, const char *mistake);
/* Likewise of memory that ran out. */
enum marey__json_token marey__json_fail_memory(struct marey__json *json);
/* The mistake as a sentence, "PATH is not WHAT: MISTAKE at byte N", and its status. */
marey_status marey__json_status(const struct marey__json *json, const char *path, const char *what);
/*
 * More bytes after those of the window, which keeps those from `at` on; pointers into it become invalid. False at the end
 * of the bytes, and for a failure, which sets `status`.
 */
bool marey__json_refill(struct marey__json *json);

/*
 * Append the string between two quotes, `len` bytes as written, with its escapes decoded. False for an escape that `rules`
 * do not allow.
 */
bool marey__json_decode(struct marey__buf *buf, const char *text, size_t len, unsigned rules);

/* ---- decimal.c ---- */

struct marey__number {
    double value;
    uint64_t digits; /* of an integer: its magnitude */
    bool is_negative;
    bool is_integer; /* only digits, and at most UINT64_MAX */
};
/* The JSON number at `p`, the nearest double; its end, NULL for what is none. A byte that is not a digit follows, and
 * 8 bytes after it are readable. */
const char *marey__number_read(const char *p, struct marey__number *out);
/*
 * The nearest float32 to a number that was read. It is that of the double, unless the double lies halfway between two, to
 * which it may have been rounded: 7.038531e-26 is such a one.
 */
float marey__number_read_f32(const char *p);

/*
 * The number that all of `text` is, times ten to the power of `scale`, rounded to the nearest integer (a half: away from
 * zero): "1712195495505582.988" with scale 3 is 1712195495505582988. False for what is not a number, or beyond 63 bits.
 */
MAREY_WARN_UNUSED bool marey__decimal(const char *text, size_t len, int scale, int64_t *out);
/* As a double, the nearest; NaN and Infinity are themselves. False for what is not a number. */
MAREY_WARN_UNUSED bool marey__decimal_double(const char *text, size_t len, double *out);

/* The value of a hexadecimal digit, 16 for any other character. */
static inline unsigned marey__hex_value(char c)
{
    const char lower = (char)(c | 0x20);
    if (marey__is_digit(c))
        return (unsigned)(c - '0');
    return lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a' + 10) : 16;
}

/* CSV files with a line of column names: csv_reader.c. */

enum { MAREY__CSV_FIELDS = 64, MAREY__CSV_COLUMNS = 32 };

struct marey__csv_field {
    const char *text; /* not NUL-terminated */
    size_t len;
};

/* Columns to read, and the current row. The first five members and `ctx` are the caller's; the rest starts zeroed. */
struct marey__csv {
    const char *path, *what;  /* for error messages: "measurements" */
    const char *const *names; /* of columns; those from `n_needed` on may be missing */
    size_t n_names, n_needed;
    bool (*take)(void *ctx, const struct marey__csv *csv); /* a row; returns false on out of memory */
    void *ctx;
    int state;       /* of the current field */
    bool was_return; /* the last byte was a \r that ended a row; a \n after it belongs to it */
    struct marey__buf text;          /* fields of the row, one after the other */
    size_t ends[MAREY__CSV_FIELDS];  /* of each in `text` */
    size_t n_fields;                 /* whole ones */
    bool has_names;                  /* the first row was there, with the wanted columns */
    int columns[MAREY__CSV_COLUMNS]; /* where they are; -1: not there */
};

/* Read all rows. MAREY_EFORMAT with a sentence about `path`. */
MAREY_WARN_UNUSED marey_status marey__csv_read(struct marey__csv *csv, marey__byte_source *bytes);
/* A column of the row. Returns false when it is missing or empty, or not a finite number, or not a whole one from 0. */
bool marey__csv_find(const struct marey__csv *csv, size_t column, struct marey__csv_field *out);
bool marey__csv_number(const struct marey__csv *csv, size_t column, double *out);
/* Also 4.0, which pandas writes where other rows have no value. */
bool marey__csv_count(const struct marey__csv *csv, size_t column, uint64_t *out);

/* ==== deflate ==== */

/*
 * deflate.h: bytes as a deflate stream (RFC 1951), for readers that have nothing else: a browser's DecompressionStream.
 *
 * deflate.c is made for columns of numbers split into planes of bytes. There, what is to be gained lies in how often each
 * byte comes and in runs of one byte, and hardly in repeats of longer pieces. So each block gets Huffman codes of its own
 * and searches only for runs, which takes a quarter of the time of zlib's fastest level. Texts and pictures go to a library
 * where the build has one.
 */

/* A stream in the making. Zero it and set `out`, lent; out of memory sets out->failed. */
struct marey__deflate {
    struct marey__buf *out;
    uint64_t bits; /* not yet in `out`, the first lowest */
    uint32_t n_bits;
};

enum { MAREY__DEFLATE_BLOCK = 65535 };

/* Append a block: up to MAREY__DEFLATE_BLOCK bytes of one sort. */
void marey__deflate_block(struct marey__deflate *stream, const uint8_t *bytes, size_t n);
/* Append as many blocks as `n` bytes take. */
void marey__deflate_bytes(struct marey__deflate *stream, const void *bytes, size_t n);
/* Nothing comes any more. */
void marey__deflate_finish(struct marey__deflate *stream);

/* ---- compress_isal.c, or compress_zlib.c in builds without ISA-L ---- */

enum marey__deflate_effort { MAREY__DEFLATE_QUICK, MAREY__DEFLATE_SMALL };

/* Append `n` bytes as a whole stream; out of memory sets out->failed. */
void marey__deflate_all(struct marey__buf *out, const void *bytes, size_t n,
                        enum marey__deflate_effort effort);

/* The same in pieces: all of them one stream, which the last one ends. */
typedef struct marey__deflater marey__deflater;
/* NULL on out of memory. Destroy takes NULL. */
marey__deflater *marey__deflater_create(enum marey__deflate_effort effort);
void marey__deflater_destroy(marey__deflater *deflater);
/* Take some of the input and fill some of the room; `is_last`: nothing follows the input. */
void marey__deflater_run(marey__deflater *deflater, struct marey__flate_io *io, bool is_last);
/* Append what `n` bytes make, as far as it is known by now. In compress.c. */
void marey__deflater_put(marey__deflater *deflater, struct marey__buf *out, const void *bytes,
                         size_t n, bool is_last);

/* ---- base64.c ---- */

/* Append `n` bytes as base64 (RFC 4648) with its padding. */
void marey__base64_put(struct marey__buf *out, const uint8_t *bytes, size_t n);

/* elf_symbols.c: parts of a program file, which of its functions an address belongs to, and where a named thing is. */

/* A program file of 64 bits in this machine's byte order, trusted in nothing. */
struct marey__elf {
    const uint8_t *bytes;
    size_t len;
    Elf64_Ehdr head;
};
/* False: the bytes are not such a file. */
bool marey__elf_init(struct marey__elf *elf, const void *bytes, size_t len);
/* Bytes from `at` on, NULL when they are not all there. */
const void *marey__elf_part(const struct marey__elf *elf, uint64_t at, uint64_t len);
/* The i-th section and segment; false when there are no more. */
bool marey__elf_section_head(const struct marey__elf *elf, uint64_t i, Elf64_Shdr *out);
bool marey__elf_segment_head(const struct marey__elf *elf, uint64_t i, Elf64_Phdr *out);
/* The bytes of the section called `name`; NULL: there is none, or not all of it. */
const uint8_t *marey__elf_named(const struct marey__elf *elf, const char *name, size_t *len);

struct marey__elf_symbol {
    uint64_t begin, end;
    const char *name; /* lent by the bytes */
};
/* The functions that an ELF file of 64 bits names, by address; false on out of memory. Bytes that are none give none. */
MAREY_WARN_UNUSED bool marey__elf_symbols(const void *bytes, size_t len,
                                          struct marey__elf_symbol **out, size_t *n);

/* The one of `n` symbols in order that reaches over `address`; NULL: none. */
const struct marey__elf_symbol *marey__elf_symbol_at(const struct marey__elf_symbol *symbols,
                                                     size_t n, uint64_t address);
/*
 * A symbol that is not undefined, of any kind, by its exact name: among those that the loader uses (they survive strip),
 * then, if `is_thorough`, in the full table, which may take long. Its value, an address before the file is loaded
 * somewhere; false when there is none.
 */
bool marey__elf_find(const void *bytes, size_t len, const char *name, bool is_thorough,
                     uint64_t *value);
/* A section by its name: its address before loading and its length; false when there is none. */
bool marey__elf_section(const void *bytes, size_t len, const char *name, uint64_t *begin,
                        uint64_t *n_bytes);
/* The lowest address that the file asks for, rounded down to a page: what was mapped lowest less this is the bias. */
bool marey__elf_first_address(const void *bytes, size_t len, uint64_t *out);

/* Files that were looked into, zeroed at first. */
struct marey__elf_files {
    struct marey__elf_file {
        char *path;
        void *bytes; /* mapped; NULL: it cannot be had */
        size_t len;
        struct marey__elf_symbol *symbols;
        size_t n_symbols;
    } * files;
    size_t n, cap;
    size_t n_newer; /* that were changed after the run, and so are of no use */
};
/*
 * The function at `address` of the file `path`, lent while `files` is there; NULL when that is not known, or the file is
 * younger than `run_unix_ns`. C++ names are as the linker has them.
 */
const char *marey__elf_function(struct marey__elf_files *files, const char *path, uint64_t address,
                                uint64_t run_unix_ns);
void marey__elf_files_fini(struct marey__elf_files *files);

/* ---- compress.c: whole streams in memory, files, and the checksums of PNG ---- */

/* Append `n` bytes in the format of zlib, fast rather than small. Out of memory sets out->failed. */
void marey__zlib_pack(struct marey__buf *out, const uint8_t *bytes, size_t n);

/* Append `n` bytes as a gzip file, small rather than fast. Out of memory sets out->failed. */
void marey__gzip_pack(struct marey__buf *out, const void *bytes, size_t n);

/*
 * Write the file at `path` to `fd` as gzip, one member; a file that is gzip already as it is. `progress` may be NULL.
 * MAREY_EIO, MAREY_ENOMEM.
 */
MAREY_WARN_UNUSED marey_status marey__gzip_file(const char *path, int fd,
                                                void (*progress)(void *ctx, double share),
                                                void *progress_ctx);

/* Unpack to `out`; false unless the stream is sound and has exactly `n` bytes. */
MAREY_WARN_UNUSED bool marey__zlib_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t n);
/* CRC-32 of PNG and gzip, the running value starting from 0. */
uint32_t marey__crc32(uint32_t crc, const void *bytes, size_t n);
/* Adler-32 of a whole. */
uint32_t marey__adler32(const uint8_t *bytes, size_t n);

#endif
