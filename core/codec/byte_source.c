/*
 * Reads a file in pieces of 256 KiB, small enough to stay in the cache between producer and consumer.
 *
 * Uncompressed files are read piece by piece on request. gzip is decompressed by a separate thread, a few pieces ahead
 * of the reader, starting with the second piece: a small file never starts a thread. The pieces form a ring:
 *
 *     handed out | full | full | being filled
 *
 * The thread fills piece `n_filled % N_PIECES` while n_filled - n_given < N_PIECES; the reader holds piece (n_given -
 * 1) until its next call returns it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/internal.h"

enum { PIECE_BYTES = 256 << 10, N_PIECES = 4, MAX_SENTENCE = 512 };
enum { GZIP_FIRST_BYTE = 0x1f, GZIP_SECOND_BYTE = 0x8b };

struct piece {
    const char *bytes; /* in `room`, or where they were read */
    size_t len;
    uint8_t *room;       /* NULL: uncompressed */
    marey_status status; /* why nothing follows */
    bool is_last;        /* may be empty */
};

struct marey__byte_source {
    /* The file or the caller's memory; used only by the filler. */
    char *path;
    int fd; /* -1: memory */
    const uint8_t *memory;
    uint64_t file_bytes; /* 0: unknown */
    _Atomic uint64_t file_at; /* stored by the filler, loaded by the thread that shows progress; both relaxed */
    uint8_t *raw;             /* bytes as in the file; NULL: memory */

    /* Decompression; used only by the filler. `io.in` is the unused rest of the last raw bytes, compressed or not. */
    marey__inflate *inflate; /* NULL: uncompressed */
    struct marey__flate_io io;
    bool is_between_members;
    uint64_t n_unpacked;
    char damage[MAX_SENTENCE], error[MAX_SENTENCE]; /* read after the last piece was handed out */

    /* The ring. */
    struct piece pieces[N_PIECES];
    pthread_mutex_t lock; /* guards the next three */
    pthread_cond_t changed;
    uint64_t n_filled; /* stored by the filler */
    uint64_t n_freed;  /* stored by the reader */
    bool stops;        /* stored by the reader: the filler ends */
    bool has_thread;   /* used by the reader, like `thread` */
    pthread_t thread;

    /* Reader only. */
    uint64_t n_given;         /* pieces received */
    const struct piece *held; /* the last of them; NULL before the first */
    size_t held_at, cut;      /* bytes of it handed out; the limit per call */
    uint64_t total;
};

/* ---- the file ---- */

static marey_status read_file(marey__byte_source *source)
{
    const ssize_t n = marey__read_all(source->fd, source->raw, PIECE_BYTES, -1);
    if (n < 0) {
        snprintf(source->error, sizeof source->error, "cannot read %s: %s", source->path,
                 strerror(errno));
        return MAREY_EIO;
    }
    atomic_fetch_add_explicit(&source->file_at, (uint64_t)n, memory_order_relaxed);
    source->io.in = source->raw;
    source->io.n_in = (size_t)n;
    return MAREY_OK;
}

/* Reads the next raw bytes once the previous ones are used; none at the end of the file. */
static marey_status take_raw(marey__byte_source *source)
{
    if (source->io.n_in > 0)
        return MAREY_OK;
    if (source->raw != NULL)
        return read_file(source);
    const uint64_t at = atomic_load_explicit(&source->file_at, memory_order_relaxed);
    source->io.in = source->memory + at;
    source->io.n_in = MAREY__MIN(source->file_bytes - at, PIECE_BYTES);
    atomic_store_explicit(&source->file_at, at + source->io.n_in, memory_order_relaxed);
    return MAREY_OK;
}

/* ---- unpacking ---- */

static bool is_zeros(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static void note_damage(marey__byte_source *source, const char *what)
{
    snprintf(source->damage, sizeof source->damage, "%s %s after %" PRIu64 " bytes were unpacked",
             source->path, what, source->n_unpacked);
}

/* Between gzip members: another one follows, the file ends, or there are other bytes. True: continue. */
static bool begin_member(marey__byte_source *source)
{
    if (source->io.in[0] == GZIP_FIRST_BYTE) {
        marey__inflate_reset(source->inflate);
        source->is_between_members = false;
        return true;
    }
    /* Some writers pad their last block with zeros, which gzip ignores too. */
    if (!is_zeros(source->io.in, source->io.n_in))
        note_damage(source, "has other bytes after its gzip data,");
    return false;
}

/* Decompresses as much as the input or the room allows. False at the end. */
static bool unpack_some(marey__byte_source *source, struct piece *piece)
{
    piece->status = take_raw(source);
    if (piece->status != MAREY_OK)
        return false;
    const bool is_at_end = source->io.n_in == 0;
    if (source->is_between_members && (is_at_end || !begin_member(source)))
        return false;
    /* Also at the end: not all output may have been returned yet. */
    const size_t room = source->io.n_out;
    const enum marey__inflate_result result = marey__inflate_run(source->inflate, &source->io);
    source->n_unpacked += room - source->io.n_out;
    source->is_between_members = result == MAREY__INFLATE_DONE;
    const bool is_cut = result == MAREY__INFLATE_GOES_ON && is_at_end && source->io.n_out == room;
    if (is_cut)
        note_damage(source, "is cut off: its gzip data ends");
    if (result == MAREY__INFLATE_BROKEN)
        note_damage(source, "is damaged: its gzip data cannot be read");
    return !is_cut && result != MAREY__INFLATE_BROKEN;
}

static void fill(marey__byte_source *source, struct piece *piece)
{
    if (source->inflate == NULL) {
        piece->status = take_raw(source);
        piece->bytes = (const char *)source->io.in;
        piece->len = source->io.n_in;
        piece->is_last = piece->status != MAREY_OK || piece->len == 0;
        source->io.n_in = 0;
        return;
    }
    source->io.out = piece->room;
    source->io.n_out = PIECE_BYTES;
    bool goes_on = true;
    while (goes_on && source->io.n_out > 0)
        goes_on = unpack_some(source, piece);
    piece->bytes = (const char *)piece->room;
    piece->len = PIECE_BYTES - source->io.n_out;
    piece->is_last = !goes_on;
}

/* ---- the ring ---- */

static void *run_filler(void *arg)
{
    marey__byte_source *source = arg;
    pthread_mutex_lock(&source->lock);
    for (bool is_last = false; !is_last;) {
        while (!source->stops && source->n_filled - source->n_freed == N_PIECES)
            pthread_cond_wait(&source->changed, &source->lock);
        if (source->stops)
            break;
        struct piece *piece = &source->pieces[source->n_filled % N_PIECES];
        pthread_mutex_unlock(&source->lock);
        fill(source, piece);
        is_last = piece->is_last;
        pthread_mutex_lock(&source->lock);
        source->n_filled++;
        pthread_cond_signal(&source->changed);
    }
    pthread_mutex_unlock(&source->lock);
    return NULL;
}

/* Returns the reader's piece and waits for the next one. */
static const struct piece *next_piece(marey__byte_source *source)
{
    struct piece *piece = &source->pieces[source->n_given % N_PIECES];
    if (source->inflate != NULL && source->n_given == 1)
        source->has_thread = marey__thread_create(&source->thread, 0, run_filler, source) == 0;
    if (source->has_thread) {
        pthread_mutex_lock(&source->lock);
        source->n_freed = source->n_given;
        pthread_cond_signal(&source->changed);
        while (source->n_filled == source->n_given)
            pthread_cond_wait(&source->changed, &source->lock);
        pthread_mutex_unlock(&source->lock);
    } else {
        fill(source, piece);
        source->n_filled = source->n_freed = source->n_given + 1;
    }
    source->n_given++;
    return piece;
}

/* Makes sure that the reader holds unread bytes, unless the file is at its end. */
static marey_status hold(marey__byte_source *source)
{
    while (source->held == NULL || (source->held_at == source->held->len && !source->held->is_last)) {
        source->held = next_piece(source);
        source->held_at = 0;
    }
    if (source->held_at == source->held->len && source->held->status != MAREY_OK)
        return marey__fail(source->held->status, "%s", source->error);
    return MAREY_OK;
}

/* ---- public functions ---- */

/* Reads the first bytes and detects the format. */
static marey_status prepare(marey__byte_source *source)
{
    if (source->fd >= 0 && (source->raw = marey__alloc(PIECE_BYTES)) == NULL)
        return marey__no_memory();
    if (take_raw(source) != MAREY_OK)
        return marey__fail(MAREY_EIO, "%s", source->error);
    const uint8_t *first = source->io.in;
    if (source->io.n_in < 2 || first[0] != GZIP_FIRST_BYTE || first[1] != GZIP_SECOND_BYTE)
        return MAREY_OK;
    source->inflate = marey__inflate_create(MAREY__INFLATE_GZIP);
    bool has_memory = source->inflate != NULL;
    for (size_t i = 0; has_memory && i < N_PIECES; i++)
        has_memory = (source->pieces[i].room = marey__alloc(PIECE_BYTES)) != NULL;
    return has_memory ? MAREY_OK : marey__no_memory();
}

static marey_status create(const char *path, int fd, const void *memory, uint64_t file_bytes,
                           marey__byte_source **out)
{
    marey__byte_source *source = marey__calloc(1, sizeof *source);
    if (source == NULL || (source->path = marey__strndup(path, strlen(path))) == NULL) {
        marey__free(source);
        if (fd >= 0)
            close(fd);
        return marey__no_memory();
    }
    source->fd = fd;
    source->memory = memory;
    source->file_bytes = file_bytes;
    pthread_mutex_init(&source->lock, NULL);
    pthread_cond_init(&source->changed, NULL);
    const marey_status status = prepare(source);
    if (status != MAREY_OK)
        marey__bytes_close(source);
    else
        *out = source;
    return status;
}

marey_status marey__bytes_open(const char *path, marey__byte_source **out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    if (fd < 0 || fstat(fd, &stat) != 0) {
        const marey_status status = marey__fail_errno("open %s", path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return create(path, fd, NULL, S_ISREG(stat.st_mode) ? (uint64_t)stat.st_size : 0, out);
}

marey_status marey__bytes_open_memory(const void *bytes, size_t len, marey__byte_source **out)
{
    return create("the data", -1, bytes, len, out);
}

marey_status marey__bytes_open_again(const marey__byte_source *source, marey__byte_source **out)
{
    struct stat stat;
    if (source->fd >= 0 && (fstat(source->fd, &stat) != 0 || !S_ISREG(stat.st_mode)))
        return marey__fail(
            MAREY_EFORMAT,
            "%s has to be read twice and is not a regular file: save it as one first", source->path);
    MAREY_TRY(source->fd >= 0 ? marey__bytes_open(source->path, out)
                              : marey__bytes_open_memory(source->memory, source->file_bytes, out));
    (*out)->cut = source->cut;
    return MAREY_OK;
}

void marey__bytes_close(marey__byte_source *source)
{
    if (source == NULL)
        return;
    if (source->has_thread) {
        pthread_mutex_lock(&source->lock);
        source->stops = true;
        pthread_cond_signal(&source->changed);
        pthread_mutex_unlock(&source->lock);
        pthread_join(source->thread, NULL);
    }
    pthread_cond_destroy(&source->changed);
    pthread_mutex_destroy(&source->lock);
    for (size_t i = 0; i < N_PIECES; i++)
        marey__free(source->pieces[i].room);
    marey__inflate_destroy(source->inflate);
    MAREY__FREE_ALL(source->raw, source->path);
    if (source->fd >= 0)
        close(source->fd);
    marey__free(source);
}

marey_status marey__bytes_peek(marey__byte_source *source, const char **bytes, size_t *len)
{
    MAREY_TRY(hold(source));
    *bytes = source->held->bytes + source->held_at;
    *len = source->held->len - source->held_at;
    return MAREY_OK;
}

marey_status marey__bytes_next(marey__byte_source *source, const char **bytes, size_t *len)
{
    MAREY_TRY(marey__bytes_peek(source, bytes, len));
    if (source->cut > 0)
        *len = MAREY__MIN(*len, source->cut);
    source->held_at += *len;
    source->total += *len;
    return MAREY_OK;
}

const char *marey__bytes_damage(const marey__byte_source *source)
{
    const bool is_at_end = source->held != NULL && source->held->is_last;
    return is_at_end && source->damage[0] != '\0' ? source->damage : NULL;
}

double marey__bytes_share(const marey__byte_source *source)
{
    const uint64_t at = atomic_load_explicit(&source->file_at, memory_order_relaxed);
    return source->file_bytes > 0 ? MAREY__MIN((double)at / (double)source->file_bytes, 1.0) : 0;
}

uint64_t marey__bytes_total(const marey__byte_source *source)
{
    return source->total;
}

void marey__bytes_cut(marey__byte_source *source, size_t n)
{
    source->cut = n;
}
