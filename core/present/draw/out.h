/* Buffered output of events and large tables, and numbers as text. No printf on the path of an event. */
#ifndef MAREY_OUT_H
#define MAREY_OUT_H

#include <pthread.h>
#include <string.h>

#include "base/base_internal.h"

/* ---- out_writer.c: a thread that writes to a regular file ---- */

struct marey__writer {
    bool is_running;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int fd;
    const char *bytes; /* on their way, `len` of them; lent by whoever fills the buffers */
    size_t len;
    bool is_ending;
    int error; /* the first errno */
};
bool marey__writer_start(struct marey__writer *writer, int fd);
/* Write `bytes`, which stay as they are until the next call returns. 0, or the errno of an earlier write. */
int marey__writer_put(struct marey__writer *writer, const char *bytes, size_t len);
/* Wait for what is on its way, then go on into `fd`. 0 or the errno. */
int marey__writer_drain(struct marey__writer *writer, int fd);
/* Wait for what is on its way and end the thread, if there is one. 0 or the errno. */
int marey__writer_stop(struct marey__writer *writer);

/* ---- output: one large buffer in front of write(2), or two in turns in front of the writer ---- */

#define MAREY__OUT_BYTES (1u << 20)
/* What one event of plain words may take in any format; a single reservation covers it. */
#define MAREY__OUT_EVENT 256u

struct marey__out {
    int fd;
    marey_status status; /* the first failure; what comes after is swallowed */
    char *p;             /* where the next byte goes */
    char *limit;         /* past this, MAREY__OUT_EVENT bytes no longer fit */
    char *data;
    uint64_t n_flushed; /* bytes that have left the buffer */
    char *other;        /* the buffer that the writer may be writing; NULL without a writer */
    struct marey__writer writer;
};

MAREY_WARN_UNUSED marey_status marey__out_init(struct marey__out *out, int fd);
void marey__out_fini(struct marey__out *out);
/* Hand what is there to write(2), or to the writer. */
void marey__out_flush(struct marey__out *out);
/* Flush, and wait until it is written; `status` then tells. */
void marey__out_drain(struct marey__out *out);
/* Drain, then go on into `fd`. */
void marey__out_redirect(struct marey__out *out, int fd);
/* The last drain: it also ends the writer. */
void marey__out_finish(struct marey__out *out);
/* Append `len` bytes, however many. */
void marey__out_put(struct marey__out *out, const void *bytes, size_t len);

static inline void marey__out_puts(struct marey__out *out, const char *text)
{
    marey__out_put(out, text, strlen(text));
}

/* How many bytes have been put so far. */
static inline uint64_t marey__out_tell(const struct marey__out *out)
{
    return out->n_flushed + (uint64_t)(out->p - out->data);
}

/* Byte number `at` while it has not left the buffer, else NULL. */
static inline char *marey__out_at(const struct marey__out *out, uint64_t at)
{
    return at >= out->n_flushed ? out->data + (at - out->n_flushed) : NULL;
}

/* Room for MAREY__OUT_EVENT bytes; the caller writes them and moves out->p itself. */
static inline char *marey__out_room(struct marey__out *out)
{
    if (MAREY_UNLIKELY(out->p > out->limit))
        marey__out_flush(out);
    return out->p;
}

/* ---- temporary.c ---- */

/* Put the whole file, one of marey__temporary_open, into `out`. */
MAREY_WARN_UNUSED marey_status marey__temporary_copy(int fd, struct marey__out *out);

/* ---- numbers as text ---- */

/*
 * Write at `p`, without a terminator, and return the place behind; up to 32 bytes from `p` on are
 * overwritten.
 */
char *marey__put_u64(char *p, uint64_t value);
/* Nanoseconds as microseconds with three decimals: 1234567 is 1234.567. */
char *marey__put_us(char *p, uint64_t ns);
/* The shortest text that reads back as `value`; "null" when it is not finite. */
char *marey__put_f64(char *p, double value);
/* The same for CSV: nan, inf and -inf, which spreadsheets and pandas know. */
char *marey__put_f64_csv(char *p, double value);

static inline char *marey__put_i64(char *p, int64_t value)
{
    if (value < 0)
        *p++ = '-';
    return marey__put_u64(p, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

#endif
