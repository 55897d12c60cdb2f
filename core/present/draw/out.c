/*
 * The buffer in front of write(2), and numbers as text. Both are on the path of every event: no
 * printf, no division by anything but constants, eight digits at a time.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "present/draw/internal.h"

/* The writer pays where write(2) takes long: at a file on a disk, not at a pipe or /dev/null. */
static void start_writer(struct marey__out *out)
{
    struct stat st;
    if (fstat(out->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    out->other = marey__alloc(MAREY__OUT_BYTES);
    if (out->other != NULL && !marey__writer_start(&out->writer, out->fd)) {
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
    marey__writer_stop(&out->writer);
    marey__free(out->data);
    marey__free(out->other);
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
        take_error(out, marey__writer_put(&out->writer, filled, len));
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
        take_error(out, marey__writer_drain(&out->writer, fd));
    out->fd = fd;
}

void marey__out_drain(struct marey__out *out)
{
    marey__out_redirect(out, out->fd);
}

void marey__out_finish(struct marey__out *out)
{
    marey__out_flush(out);
    take_error(out, marey__writer_stop(&out->writer));
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

/*
 * Eight digits of a value below 10^8, zeros in front, the first in the lowest byte: the value is
 * halved into two lanes of four digits, four of two, eight of one, all lanes at once. 10486 / 2^20
 * and 103 / 2^10 divide by 100 and by 10.
 */
static inline uint64_t eight_digits(uint32_t value)
{
    const uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    const uint64_t hundreds = (fours * 10486 >> 20) & 0x0000007f0000007f;
    const uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
    const uint64_t tens = (twos * 103 >> 10) & 0x000f000f000f000f;
    const uint64_t ones = tens | (twos - tens * 10) << 8;
    return ones | 0x3030303030303030;
}

/* ".000" to ".999" in a row. */
#define TEN(h, t)                                                                                  \
    "." h t "0." h t "1." h t "2." h t "3." h t "4." h t "5." h t "6." h t "7." h t "8." h t "9"
#define HUNDRED(h)                                                                                 \
    TEN(h, "0")                                                                                    \
    TEN(h, "1")                                                                                    \
    TEN(h, "2") TEN(h, "3") TEN(h, "4") TEN(h, "5") TEN(h, "6") TEN(h, "7") TEN(h, "8") TEN(h, "9")
static const char thousandths[] = HUNDRED("0") HUNDRED("1") HUNDRED("2") HUNDRED("3") HUNDRED("4")
    HUNDRED("5") HUNDRED("6") HUNDRED("7") HUNDRED("8") HUNDRED("9");

/* Decimal digits of a value below 10^8; 1233 / 4096 is the logarithm of 2. */
static inline uint32_t n_digits(uint32_t value)
{
    static const uint32_t powers[] = {0,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};
    const uint32_t n = (32u - (uint32_t)__builtin_clz(value | 1)) * 1233 >> 12;
    return n + (value >= powers[n]);
}

/*
 * Up to eight digits without zeros in front: all eight, moved down over the zeros in one shift.
 * Stores 8 bytes.
 */
static inline char *put_small(char *p, uint32_t value)
{
    const uint32_t n = n_digits(value);
    const uint64_t digits = eight_digits(value) >> (8 * (8 - n));
    memcpy(p, &digits, sizeof digits);
    return p + n;
}

#define EIGHT_DIGITS 100000000u

static inline char *put_eight(char *p, uint32_t value)
{
    const uint64_t digits = eight_digits(value);
    memcpy(p, &digits, sizeof digits);
    return p + sizeof digits;
}

static inline char *put_u64(char *p, uint64_t value)
{
    if (value < EIGHT_DIGITS)
        return put_small(p, (uint32_t)value);
    const uint64_t high = value / EIGHT_DIGITS;
    p = high < EIGHT_DIGITS ? put_small(p, (uint32_t)high)
                            : put_eight(put_small(p, (uint32_t)(high / EIGHT_DIGITS)),
                                        (uint32_t)(high % EIGHT_DIGITS));
    return put_eight(p, (uint32_t)(value % EIGHT_DIGITS));
}

char *marey__put_u64(char *p, uint64_t value)
{
    return put_u64(p, value);
}

char *marey__put_us(char *p, uint64_t ns)
{
    p = put_u64(p, ns / 1000);
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
    /* Most counters count: the integers of a double need no printf. */
    if (value == (double)(int64_t)(fabs(value) < 0x1p53 ? value : 0))
        return marey__put_i64(p, (int64_t)value);
    int len = 0;
    for (int precision = 15; precision <= 17; precision++) {
        len = snprintf(p, 32, "%.*g", precision, value);
        if (strtod(p, NULL) == value)
            break;
    }
    return p + len;
}
