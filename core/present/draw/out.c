/*
 * The buffer before write(2), and numbers as text. Both are used for every event: no printf, no division except by
 * constants, eight digits at a time.
 */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "present/draw/internal.h"

/* ---- a thread that writes one buffer while the next is filled ---- */

static void *writer_main(void *arg)
{
    struct marey__writer *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->len == 0 && !w->is_ending)
            pthread_cond_wait(&w->changed, &w->lock);
        if (w->len == 0)
            break;
        const char *const bytes = w->bytes;
        const size_t len = w->len;
        const int fd = w->fd;
        pthread_mutex_unlock(&w->lock);
        const int error = marey__write_all(fd, bytes, len) ? 0 : errno;
        pthread_mutex_lock(&w->lock);
        w->error = w->error != 0 ? w->error : error;
        w->len = 0;
        pthread_cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static bool writer_start(struct marey__writer *w, int fd)
{
    *w = (struct marey__writer){
        .fd = fd, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    w->is_running = marey__thread_create(&w->thread, 0, writer_main, w) == 0;
    return w->is_running;
}

/* Wait until nothing is being written. Caller holds the lock. */
static int wait_until_idle(struct marey__writer *w)
{
    while (w->len != 0)
        pthread_cond_wait(&w->changed, &w->lock);
    return w->error;
}

static int writer_put(struct marey__writer *w, const char *bytes, size_t len)
{
    MAREY__HOLD(&w->lock);
    const int error = wait_until_idle(w);
    if (error == 0) {
        w->bytes = bytes;
        w->len = len;
        pthread_cond_signal(&w->changed);
    }
    return error;
}

static int writer_drain(struct marey__writer *w, int fd)
{
    MAREY__HOLD(&w->lock);
    const int error = wait_until_idle(w);
    w->fd = fd;
    return error;
}

static int writer_stop(struct marey__writer *w)
{
    if (!w->is_running)
        return 0;
    pthread_mutex_lock(&w->lock);
    const int error = wait_until_idle(w);
    w->is_ending = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    w->is_running = false;
    return error;
}

/* ---- the buffer ---- */

/* A writer thread pays off only if write(2) is slow: for a file on disk, not for a pipe or /dev/null. */
static void start_writer(struct marey__out *out)
{
    struct stat st;
    if (fstat(out->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    out->other = marey__alloc(MAREY__OUT_BYTES);
    if (out->other != NULL && !writer_start(&out->writer, out->fd)) {
        marey__free(out->other);
        out->other = NULL;
    }
}

static void fill(struct marey__out *out, char *data)
{
    out->data = out->p = data;
    out->limit = data + MAREY__OUT_BYTES - MAREY__OUT_EVENT;
}

marey_status marey__out_init(struct marey__out *out, int fd)
{
    *out = (struct marey__out){.fd = fd};
    char *data = marey__alloc(MAREY__OUT_BYTES);
    MAREY__TRY_MEMORY(data != NULL);
    fill(out, data);
    start_writer(out);
    return MAREY_OK;
}

void marey__out_fini(struct marey__out *out)
{
    writer_stop(&out->writer);
    MAREY__FREE_ALL(out->data, out->other);
    *out = (struct marey__out){.fd = -1};
}

static void take_error(struct marey__out *out, int error)
{
    if (error == 0 || out->status != MAREY_OK)
        return;
    errno = error;
    out->status = marey__fail_errno("write the export");
}

void marey__out_flush(struct marey__out *out)
{
    const size_t len = (size_t)(out->p - out->data);
    out->p = out->data;
    out->n_flushed += len;
    if (out->status != MAREY_OK || len == 0)
        return;
    if (out->other != NULL) {
        char *const filled = out->data;
        take_error(out, writer_put(&out->writer, filled, len));
        fill(out, out->other);
        out->other = filled;
    } else if (!marey__write_all(out->fd, out->data, len)) {
        take_error(out, errno);
    }
}

void marey__out_redirect(struct marey__out *out, int fd)
{
    marey__out_flush(out);
    if (out->other != NULL)
        take_error(out, writer_drain(&out->writer, fd));
    out->fd = fd;
}

void marey__out_drain(struct marey__out *out)
{
    marey__out_redirect(out, out->fd);
}

void marey__out_finish(struct marey__out *out)
{
    marey__out_flush(out);
    take_error(out, writer_stop(&out->writer));
}

void marey__out_put(struct marey__out *out, const void *bytes, size_t len)
{
    const char *from = bytes;
    while (len > 0) {
        const size_t room = (size_t)(out->data + MAREY__OUT_BYTES - out->p);
        const size_t n = MAREY__MIN(len, room);
        memcpy(out->p, from, n);
        out->p += n;
        from += n;
        len -= n;
        if (n == room)
            marey__out_flush(out);
    }
}

marey_status marey__temporary_copy(int fd, struct marey__out *out)
{
    ssize_t n;
    marey__out_flush(out); /* the copy below uses the whole buffer */
    for (off_t at = 0; (n = pread(fd, out->data, MAREY__OUT_BYTES, at)) != 0; at += n) {
        if (n < 0)
            return marey__fail_errno("read the temporary file of the export");
        out->p = out->data + n;
        marey__out_flush(out);
    }
    return out->status;
}

/* ---- numbers ---- */

/* ".000" to ".999" in a row. */
#define TEN(h, t)                                                                                  \
    "." h t "0." h t "1." h t "2." h t "3." h t "4." h t "5." h t "6." h t "7." h t "8." h t "9"
#define HUNDRED(h)                                                                                 \
    TEN(h, "0")                                                                                    \
    TEN(h, "1")                                                                                    \
    TEN(h, "2") TEN(h, "3") TEN(h, "4") TEN(h, "5") TEN(h, "6") TEN(h, "7") TEN(h, "8") TEN(h, "9")
static const char thousandths[] = HUNDRED("0") HUNDRED("1") HUNDRED("2") HUNDRED("3") HUNDRED("4")
    HUNDRED("5") HUNDRED("6") HUNDRED("7") HUNDRED("8") HUNDRED("9");

char *marey__put_us(char *p, uint64_t ns)
{
    p = marey__u64_text(p, ns / 1000);
    memcpy(p, thousandths + 4 * (ns % 1000), 4);
    return p + 4;
}

char *marey__put_f64_csv(char *p, double value)
{
    if (isfinite(value))
        return marey__put_f64(p, value);
    return stpcpy(p, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

char *marey__put_f64(char *p, double value)
{
    if (!isfinite(value)) {
        memcpy(p, "null", 4);
        return p + 4;
    }
    /* Most counters are integers, written without a point. */
    if (value == (double)(int64_t)(fabs(value) < 0x1p53 ? value : 0))
        return marey__i64_text(p, (int64_t)value);
    return marey__f64_text(p, value);
}

void marey__json_put_f64(struct marey__buf *buf, double value)
{
    char number[MAREY__NUMBER_ROOM];
    marey__buf_put(buf, number, (size_t)(marey__put_f64(number, value) - number));
}
