/*
 * codec: converts files of common formats to bytes, tokens and symbols, and back.
 *
 *   byte_source.c     a file from start to end in large pieces, gunzipped where needed (ISA-L or zlib)
 *   compress*.c       the other direction: gzip and zlib by ISA-L or zlib
 *   deflate.c, base64.c   number columns, for pages
 *   json_*.c          one JSON reader: token by token, from a stream in bounded memory or from a string
 *   csv_reader.c      rows of CSV
 *   decimal.c         decimal numbers, exactly
 *   elf_symbols.c     symbols of program files
 *
 * Input: untrusted files; every length is checked. Output: bytes, tokens, names. Does not know recordings, nor what the
 * bytes mean.
 */
#ifndef MAREY_CODEC_INTERNAL_H
#define MAREY_CODEC_INTERNAL_H

#include <elf.h>

#include "base/internal.h"

/* ---- byte_source.c ---- */

typedef struct marey__byte_source marey__byte_source;

/* Opens the file at `path`; detects gzip by its first bytes. MAREY_EIO; MAREY_EUNAVAILABLE for gzip in a build without it. */
MAREY_WARN_UNUSED marey_status marey__bytes_open(const char *path, marey__byte_source **out);
/* The same for `len` bytes in memory, lent until close. */
MAREY_WARN_UNUSED marey_status marey__bytes_open_memory(const void *bytes, size_t len,
                                                        marey__byte_source **out);
/* Opens the same bytes again from the start; fails for a file that is not regular and can be read only once. */
MAREY_WARN_UNUSED marey_status marey__bytes_open_again(const marey__byte_source *source,
                                                       marey__byte_source **out);
void marey__bytes_close(marey__byte_source *source);
/* Returns the first bytes without consuming them: as many as are available, at least 4096 if the file has them. */
MAREY_WARN_UNUSED marey_status marey__bytes_peek(marey__byte_source *source, const char **bytes,
                                                 size_t *len);
/* Returns the next bytes, lent until the next call; 0 bytes at the end. MAREY_EIO if the file cannot be read. */
MAREY_WARN_UNUSED marey_status marey__bytes_next(marey__byte_source *source, const char **bytes,
                                                 size_t *len);
/* At the end: why the bytes end before the file does (truncated or damaged gzip), or NULL. */
const char *marey__bytes_damage(const marey__byte_source *source);
/* The position in the file, 0..1, for progress; and the number of unpacked bytes returned. */
double marey__bytes_share(const marey__byte_source *source);
uint64_t marey__bytes_total(const marey__byte_source *source);
/* For tests: return at most `n` bytes per call from now on; 0: whole pieces. */
void marey__bytes_cut(marey__byte_source *source, size_t n);

/* ---- compress_isal.c or compress_zlib.c: decompressing gzip and zlib streams, one member at a time ---- */

typedef struct marey__inflate marey__inflate;

struct marey__flate_io {
    const uint8_t *in; /* input; advances */
    size_t n_in;
    uint8_t *out; /* output; advances */
    size_t n_out;
};

enum marey__inflate_result {
    MAREY__INFLATE_GOES_ON, /* needs more input or more room */
    MAREY__INFLATE_DONE,    /* end of a member, checksum correct */
    MAREY__INFLATE_BROKEN,
};

enum marey__inflate_format { MAREY__INFLATE_GZIP, MAREY__INFLATE_ZLIB };
/* Positioned at the start of a member. NULL on out of memory. destroy() accepts NULL. */
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
 * By default it accepts sloppy files: NaN and Infinity are numbers, commas may be missing or doubled, strings may
 * contain any bytes, an unknown escape is its letter, and values may follow one another.
 */
enum {
    /* RFC 8259 and a single value: everything else is a mistake. */
    MAREY__JSON_STRICT = 1,
    /* With STRICT: still accept NaN, nan, Infinity and -Infinity as numbers. */
    MAREY__JSON_NAN = 2,
    /* Half of a UTF-16 pair becomes three bytes, like Python's "surrogatepass"; otherwise U+FFFD. */
    MAREY__JSON_SURROGATES = 4,
};

enum marey__json_token {
    MAREY__JSON_END, /* end of input, nothing open */
    MAREY__JSON_OBJECT,
    MAREY__JSON_OBJECT_END,
    MAREY__JSON_ARRAY,
    MAREY__JSON_ARRAY_END,
    MAREY__JSON_KEY,    /* a key in `text`; its value follows */
    MAREY__JSON_STRING, /* `text`, escapes decoded */
    MAREY__JSON_NUMBER, /* `text` as written; marey__decimal and marey__decimal_double convert it */
    MAREY__JSON_TRUE,
    MAREY__JSON_FALSE,
    MAREY__JSON_NULL,
    MAREY__JSON_MISTAKE, /* see `status`, `mistake` and marey__json_offset(); all later calls return it too */
};

enum {
    MAREY__JSON_MAX_DEPTH = 1024,
    MAREY__JSON_MAX_TEXT = 64 << 20, /* bytes of one string or number */
    MAREY__JSON_PADDING = 64,
};

struct marey__json {
    /* The text of the last token, valid until the next call. Keys and strings are NUL-terminated. */
    const char *text;
    size_t text_len;
    uint32_t depth; /* open objects and arrays */

    marey_status status; /* MAREY_EFORMAT; MAREY_EIO, MAREY_ENOMEM with the message in marey_last_error() */
    const char *mistake; /* a static phrase: "a key without a colon"; NULL: none so far */
    bool is_cut;         /* the input ends inside a value */

    /*
     * The window: unconsumed bytes, for callers that parse them directly. Two quotes follow at `end`, and
     * MAREY__JSON_PADDING bytes from there are readable.
     */
    const char *at, *end;

    /* The rest is private to json_read.c. */
    struct marey__byte_source *bytes; /* NULL: the window is the whole input */
    char *window;
    size_t window_cap;      /* 0: the window belongs to the caller */
    uint64_t window_offset; /* offset of window[0] in the input */
    unsigned rules;         /* MAREY__JSON_STRICT and others */
    bool is_last;           /* the window reaches the end of the input */
    bool wants_key;         /* in an object, before a key */
    uint8_t place;          /* for STRICT: whether a comma comes next */
    struct marey__buf decoded;
    uint64_t is_object[MAREY__JSON_MAX_DEPTH / 64]; /* one bit per level: object or array */
};

/* Reads from `bytes`, which the caller closes after fini. MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__json_init(struct marey__json *json,
                                                struct marey__byte_source *bytes);
/* Reads a copy of `text`. On out of memory the first token is a MISTAKE. */
void marey__json_init_text(struct marey__json *json, const char *text, size_t len, unsigned rules);
/* The same without a copy: `text` is modified, and MAREY__JSON_PADDING readable bytes must follow it. */
void marey__json_init_padded(struct marey__json *json, char *text, size_t len, unsigned rules);
void marey__json_fini(struct marey__json *json);

enum marey__json_token marey__json_next(struct marey__json *json);
/* In an object: true at the next key, false at its end and on a mistake. */
bool marey__json_next_key(struct marey__json *json);
/* In an array: true at the next item, whose token is *token; false at its end and on a mistake. */
bool marey__json_next_item(struct marey__json *json, enum marey__json_token *token);
/* The first character of the next token, not consumed; NUL at the end and on a mistake. */
char marey__json_peek(struct marey__json *json);
/* The caller parsed a value from `at`, as peek() left it, to `p`: continue there. */
void marey__json_taken(struct marey__json *json, const char *p);
/*
 * Skips a value: after a KEY its value, after OBJECT or ARRAY the rest including its end. Unless STRICT, brackets are
 * counted, not matched. False on a mistake.
 */
bool marey__json_skip(struct marey__json *json);
/* Skips the rest of the value that began with `token`: of an object or array; other values have none. */
bool marey__json_skip_from(struct marey__json *json, enum marey__json_token token);

/* Whether the last token's text is `word`. */
static inline bool marey__json_is(const struct marey__json *json, const char *word)
{
    return json->text_len == strlen(word) && memcmp(json->text, word, json->text_len) == 0;
}
/* The last token as a double; NaN unless it is a NUMBER. */
double marey__json_number(const struct marey__json *json, enum marey__json_token token);
/* The last token as an integer, if it is a NUMBER or a STRING of digits; else `otherwise`. */
int64_t marey__json_integer(const struct marey__json *json, enum marey__json_token token,
                            int64_t otherwise);

/*
 * Reads the next value, which must be `wanted`, a string, an integer from 0 to INT64_MAX, or the end of the text.
 * Otherwise returns false with a mistake.
 */
bool marey__json_expect(struct marey__json *json, enum marey__json_token wanted, const char *mistake);
bool marey__json_string(struct marey__json *json);
bool marey__json_count(struct marey__json *json, uint64_t *out);
bool marey__json_end(struct marey__json *json);
/* A key and the function that reads its value, which returns false on a mistake. */
struct marey__json_key {
    const char *name; /* NULL ends the list */
    bool (*read)(struct marey__json *json, void *into);
    size_t offset; /* in the struct that the object is read into */
};
/* Reads the next value, an object, by its keys. Unknown keys are skipped, so that later versions may add some. */
bool marey__json_object(struct marey__json *json, const struct marey__json_key *keys, void *into);

/*
 * Reads the next value, of any kind: enters the wanted object or array, else skips the value; reads an integer, quoted
 * or not; tests for true or a positive integer.
 */
bool marey__json_enter(struct marey__json *json, enum marey__json_token wanted);
int64_t marey__json_read_integer(struct marey__json *json, int64_t otherwise);
bool marey__json_read_flag(struct marey__json *json);

/* The offset of the next token, or of the mistake. */
uint64_t marey__json_offset(const struct marey__json *json);
/* Records a mistake here, unless there is one. Returns MAREY__JSON_MISTAKE. */
enum marey__json_token marey__json_fail(struct marey__json *json, const char *mistake);
/* The same for out of memory. */
enum marey__json_token marey__json_fail_memory(struct marey__json *json);
/* The mistake as a message, "PATH is not WHAT: MISTAKE at byte N", and its status. */
marey_status marey__json_status(const struct marey__json *json, const char *path, const char *what);
/*
 * Appends input to the window, which keeps the bytes from `at` on; invalidates pointers into it. False at the end of
 * the input, and on failure, which sets `status`.
 */
bool marey__json_refill(struct marey__json *json);

/* Appends the content of a quoted string of `len` bytes, escapes decoded. False for an escape against `rules`. */
bool marey__json_decode(struct marey__buf *buf, const char *text, size_t len, unsigned rules);

/* ---- decimal.c ---- */

struct marey__number {
    double value;
    uint64_t digits; /* magnitude, if it is an integer */
    bool is_negative;
    bool is_integer; /* only digits, and at most UINT64_MAX */
};
/* Parses the JSON number at `p` to the nearest double. Returns its end, NULL if it is not a number. It must be
   followed by a non-digit and 8 readable bytes. */
const char *marey__number_read(const char *p, struct marey__number *out);
/*
 * The nearest float32 to a number that was parsed. Usually the double rounded; but if that lies halfway between two
 * floats, it may itself have been rounded there: 7.038531e-26 is an example.
 */
float marey__number_read_f32(const char *p);

/*
 * Parses all of `text` as a number, times ten to the power of `scale`, rounded to the nearest integer (ties away from
 * zero): "1712195495505582.988" with scale 3 is 1712195495505582988. False if it is not a number, or exceeds 63 bits.
 */
MAREY_WARN_UNUSED bool marey__decimal(const char *text, size_t len, int scale, int64_t *out);
/* The nearest double; accepts NaN and Infinity. False if it is not a number. */
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

/* Columns to read, and the current row. The caller sets the first five members and `ctx`; the rest starts zeroed. */
struct marey__csv {
    const char *path, *what;  /* for error messages: "measurements" */
    const char *const *names; /* column names; those from `n_needed` on are optional */
    size_t n_names, n_needed;
    bool (*take)(void *ctx, const struct marey__csv *csv); /* a row; returns false on out of memory */
    void *ctx;
    int state;              /* in the current field */
    bool was_return;        /* the last byte was a \r that ended a row; ignore a \n after it */
    struct marey__buf text; /* fields of the row, concatenated */
    size_t ends[MAREY__CSV_FIELDS];  /* end of each in `text` */
    size_t n_fields;                 /* complete ones */
    bool has_names;                  /* the first row was read and has the wanted columns */
    int columns[MAREY__CSV_COLUMNS]; /* positions; -1: missing */
};

/* Reads all rows. MAREY_EFORMAT with a message about `path`. */
MAREY_WARN_UNUSED marey_status marey__csv_read(struct marey__csv *csv, marey__byte_source *bytes);
/* A column of the row. Returns false if it is missing, empty, not a finite number, or (count) not a non-negative integer. */
bool marey__csv_find(const struct marey__csv *csv, size_t column, struct marey__csv_field *out);
bool marey__csv_number(const struct marey__csv *csv, size_t column, double *out);
/* Accepts 4.0, which pandas writes if other rows have no value. */
bool marey__csv_count(const struct marey__csv *csv, size_t column, uint64_t *out);

/* ==== deflate ==== */

/*
 * deflate: bytes as a deflate stream (RFC 1951), for readers that have only that: a browser's DecompressionStream.
 *
 * deflate.c is made for columns of numbers split into byte planes. These compress through the frequencies of bytes and
 * runs of one byte, hardly through longer repeats. So each block gets its own Huffman codes and searches only for runs,
 * in a quarter of the time of zlib's fastest level. Text and images use a library where the build has one.
 */

/* A stream being written. Zero it and set `out`, which is lent; out of memory sets out->failed. */
struct marey__deflate {
    struct marey__buf *out;
    uint64_t bits; /* not yet in `out`, first bit lowest */
    uint32_t n_bits;
};

enum { MAREY__DEFLATE_BLOCK = 65535 };

/* Appends a block: up to MAREY__DEFLATE_BLOCK bytes of one kind. */
void marey__deflate_block(struct marey__deflate *stream, const uint8_t *bytes, size_t n);
/* Appends as many blocks as `n` bytes need. */
void marey__deflate_bytes(struct marey__deflate *stream, const void *bytes, size_t n);
/* Ends the stream. */
void marey__deflate_finish(struct marey__deflate *stream);

/* ---- compress_isal.c, or compress_zlib.c in builds without ISA-L ---- */

enum marey__deflate_effort { MAREY__DEFLATE_QUICK, MAREY__DEFLATE_SMALL };

/* Appends `n` bytes as a whole stream; out of memory sets out->failed. */
void marey__deflate_all(struct marey__buf *out, const void *bytes, size_t n,
                        enum marey__deflate_effort effort);

/* The same in pieces that form one stream; the last one ends it. */
typedef struct marey__deflater marey__deflater;
/* NULL on out of memory. destroy() accepts NULL. */
marey__deflater *marey__deflater_create(enum marey__deflate_effort effort);
void marey__deflater_destroy(marey__deflater *deflater);
/* Consumes some input and fills some of the room; `is_last`: no input follows. */
void marey__deflater_run(marey__deflater *deflater, struct marey__flate_io *io, bool is_last);
/* Appends the output for `n` bytes, as far as it is available. In compress.c. */
void marey__deflater_put(marey__deflater *deflater, struct marey__buf *out, const void *bytes,
                         size_t n, bool is_last);

/* ---- base64.c ---- */

/* Appends `n` bytes as padded base64 (RFC 4648). */
void marey__base64_put(struct marey__buf *out, const uint8_t *bytes, size_t n);

/* elf_symbols.c: sections of an ELF file, its functions by address, and addresses by name. */

/* A 64-bit ELF file in this machine's byte order, untrusted. */
struct marey__elf {
    const uint8_t *bytes;
    size_t len;
    Elf64_Ehdr head;
};
/* False if it is not such a file. */
bool marey__elf_init(struct marey__elf *elf, const void *bytes, size_t len);
/* Bytes from `at` on; NULL if they are not all in the file. */
const void *marey__elf_part(const struct marey__elf *elf, uint64_t at, uint64_t len);
/* The i-th section or segment; false past the last. */
bool marey__elf_section_head(const struct marey__elf *elf, uint64_t i, Elf64_Shdr *out);
bool marey__elf_segment_head(const struct marey__elf *elf, uint64_t i, Elf64_Phdr *out);
/* The bytes of the section `name`; NULL if it is missing or truncated. */
const uint8_t *marey__elf_named(const struct marey__elf *elf, const char *name, size_t *len);

struct marey__elf_symbol {
    uint64_t begin, end;
    const char *name; /* lent, in the file's bytes */
};
/* The named functions of a 64-bit ELF file, sorted by address; none for other files. False on out of memory. */
MAREY_WARN_UNUSED bool marey__elf_symbols(const void *bytes, size_t len,
                                          struct marey__elf_symbol **out, size_t *n);

/* The one of `n` sorted symbols that contains `address`; NULL if none does. */
const struct marey__elf_symbol *marey__elf_symbol_at(const struct marey__elf_symbol *symbols,
                                                     size_t n, uint64_t address);
/*
 * Finds a defined symbol of any kind by its exact name: among the dynamic symbols (they survive strip), then, if
 * `is_thorough`, in the full table, which may take long. `value` is its address before loading; false if it is missing.
 */
bool marey__elf_find(const void *bytes, size_t len, const char *name, bool is_thorough,
                     uint64_t *value);
/* Finds a section by name: its address before loading and its length; false if it is missing. */
bool marey__elf_section(const void *bytes, size_t len, const char *name, uint64_t *begin,
                        uint64_t *n_bytes);
/* The lowest address of the file's segments, page-aligned: the lowest mapped address minus this is the load bias. */
bool marey__elf_first_address(const void *bytes, size_t len, uint64_t *out);

/* Files read so far, zeroed at first. */
struct marey__elf_files {
    struct marey__elf_file {
        char *path;
        void *bytes; /* mapped; NULL: unavailable */
        size_t len;
        struct marey__elf_symbol *symbols;
        size_t n_symbols;
    } * files;
    size_t n, cap;
    size_t n_newer; /* modified after the run, and therefore unusable */
};
/*
 * The function at `address` of the file `path`, lent as long as `files`; NULL if unknown, or if the file is newer than
 * `run_unix_ns`. C++ names are mangled.
 */
const char *marey__elf_function(struct marey__elf_files *files, const char *path, uint64_t address,
                                uint64_t run_unix_ns);
void marey__elf_files_fini(struct marey__elf_files *files);

/* ---- compress.c: whole streams in memory, files, and the checksums of PNG ---- */

/* Appends `n` bytes in zlib format, fast rather than small. Out of memory sets out->failed. */
void marey__zlib_pack(struct marey__buf *out, const uint8_t *bytes, size_t n);

/* Appends `n` bytes as a gzip file, small rather than fast. Out of memory sets out->failed. */
void marey__gzip_pack(struct marey__buf *out, const void *bytes, size_t n);

/*
 * Writes the file at `path` to `fd` as one gzip member; copies a file that is already gzip. `progress` may be NULL.
 * MAREY_EIO, MAREY_ENOMEM.
 */
MAREY_WARN_UNUSED marey_status marey__gzip_file(const char *path, int fd,
                                                void (*progress)(void *ctx, double share),
                                                void *progress_ctx);

/* Decompresses to `out`; false unless the stream is intact and has exactly `n` bytes. */
MAREY_WARN_UNUSED bool marey__zlib_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t n);
/* CRC-32 as in PNG and gzip; the running value starts at 0. */
uint32_t marey__crc32(uint32_t crc, const void *bytes, size_t n);
/* Adler-32 of all bytes. */
uint32_t marey__adler32(const uint8_t *bytes, size_t n);

#endif
