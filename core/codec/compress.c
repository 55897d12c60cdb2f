/* Whole streams in the zlib (RFC 1950) and gzip (RFC 1952) formats in memory, and gzip files. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/internal.h"

/* Deflate, without name, time, level or system, so that equal input gives equal files. */
static const uint8_t gzip_header[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};

static void put_u32(struct marey__buf *out, uint32_t value)
{
    const uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                              (uint8_t)(value >> 24)};
    marey__buf_put(out, bytes, sizeof bytes);
}

void marey__deflater_put(marey__deflater *deflater, struct marey__buf *out, const void *bytes,
                         size_t n, bool is_last)
{
    enum { ROOM = 1 << 18 }; /* for its output per call */
    struct marey__flate_io io = {.in = bytes, .n_in = n};
    do {
        io.out = marey__buf_extend(out, ROOM);
        io.n_out = ROOM;
        if (io.out == NULL)
            return;
        marey__deflater_run(deflater, &io, is_last);
        out->len -= io.n_out;
    } while (io.n_in != 0 || io.n_out == 0);
}

void marey__deflate_all(struct marey__buf *out, const void *bytes, size_t n,
                        enum marey__deflate_effort effort)
{
    marey__deflater *deflater = marey__deflater_create(effort);
    if (deflater == NULL) {
        out->failed = true;
        return;
    }
    marey__deflater_put(deflater, out, bytes, n, true);
    marey__deflater_destroy(deflater);
}

void marey__zlib_pack(struct marey__buf *out, const uint8_t *bytes, size_t n)
{
    const uint32_t sum = marey__adler32(bytes, n);
    marey__buf_put(out, "\x78\x01", 2);
    marey__deflate_all(out, bytes, n, MAREY__DEFLATE_QUICK);
    put_u32(out, __builtin_bswap32(sum)); /* big-endian */
}

void marey__gzip_pack(struct marey__buf *out, const void *bytes, size_t n)
{
    marey__buf_put(out, gzip_header, sizeof gzip_header);
    marey__deflate_all(out, bytes, n, MAREY__DEFLATE_SMALL);
    put_u32(out, marey__crc32(0, bytes, n));
    put_u32(out, (uint32_t)n);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): it is written through `io`. */
bool marey__zlib_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t n)
{
    marey__inflate *inflate = marey__inflate_create(MAREY__INFLATE_ZLIB);
    struct marey__flate_io io = {.in = bytes, .n_in = len, .out = out, .n_out = n};
    enum marey__inflate_result result = MAREY__INFLATE_GOES_ON;
    size_t left = SIZE_MAX; /* of both; the loop ends when neither changes */
    while (inflate != NULL && result == MAREY__INFLATE_GOES_ON && io.n_in + io.n_out < left) {
        left = io.n_in + io.n_out;
        result = marey__inflate_run(inflate, &io);
    }
    marey__inflate_destroy(inflate);
    return result == MAREY__INFLATE_DONE && io.n_out == 0;
}

/* ---- files ---- */

enum { PIECE = 1 << 20 };

struct packing {
    const char *path;
    int in, out;
    uint64_t size, n_read;
    uint8_t *piece; /* PIECE bytes */
    marey__deflater *deflater;
    struct marey__buf packed;
    uint32_t crc;
    bool is_gzip; /* copied unchanged */
};

/* Reads a whole piece, less only at the end of the file. */
static marey_status read_piece(struct packing *p, size_t *n)
{
    const ssize_t got = marey__read_all(p->in, p->piece, PIECE, -1);
    if (got < 0)
        return marey__fail_errno("read %s", p->path);
    *n = (size_t)got;
    p->n_read += *n;
    return MAREY_OK;
}

static void pack_piece(struct packing *p, size_t n)
{
    const bool is_last = n < PIECE;
    if (p->is_gzip) {
        marey__buf_put(&p->packed, p->piece, n);
        return;
    }
    p->crc = marey__crc32(p->crc, p->piece, n);
    marey__deflater_put(p->deflater, &p->packed, p->piece, n, is_last);
    if (is_last) {
        put_u32(&p->packed, p->crc);
        put_u32(&p->packed, (uint32_t)p->n_read);
    }
}

static marey_status pack_all(struct packing *p, void (*progress)(void *ctx, double share), void *ctx)
{
    for (size_t n = PIECE; n == PIECE;) {
        const bool is_first = p->n_read == 0;
        MAREY_TRY(read_piece(p, &n));
        if (is_first) {
            p->is_gzip = n >= 2 && memcmp(p->piece, gzip_header, 2) == 0;
            marey__buf_put(&p->packed, gzip_header, p->is_gzip ? 0 : sizeof gzip_header);
        }
        pack_piece(p, n);
        MAREY__TRY_MEMORY(!p->packed.failed);
        if (!marey__write_all(p->out, p->packed.data, p->packed.len))
            return marey__fail_errno("write %s packed", p->path);
        p->packed.len = 0;
        if (progress != NULL && p->size > 0)
            progress(ctx, (double)MAREY__MIN(p->n_read, p->size) / (double)p->size);
    }
    return MAREY_OK;
}

marey_status marey__gzip_file(const char *path, int fd, void (*progress)(void *ctx, double share),
                              void *progress_ctx)
{
    struct packing p = {.path = path, .out = fd, .in = open(path, O_RDONLY | O_CLOEXEC)};
    struct stat st;
    if (p.in < 0)
        return marey__fail_errno("open %s", path);
    p.size = fstat(p.in, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
    p.piece = marey__alloc(PIECE);
    p.deflater = marey__deflater_create(MAREY__DEFLATE_SMALL);
    const marey_status status = p.piece != NULL && p.deflater != NULL
                                    ? pack_all(&p, progress, progress_ctx)
                                    : marey__no_memory();
    marey__deflater_destroy(p.deflater);
    marey__buf_fini(&p.packed);
    marey__free(p.piece);
    close(p.in);
    return status;
}
