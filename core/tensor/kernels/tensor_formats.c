/* Floats of 4 to 32 bits: decoding, and rounding wider ones to them. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "tensor/kernels/internal.h"

enum { NONE = 0 };

/* A sign, an exponent, a fraction; the meaning of the largest patterns differs. */
struct format {
    uint8_t bits, n_fraction;
    int16_t min_exponent;
    uint16_t max_finite;    /* as bits */
    uint16_t nan, infinity; /* as bits; NONE: no infinity, larger values become NaN or the maximum */
    bool is_fnuz;           /* the pattern of -0 is its only NaN */
};

/* NULL for other types. */
static const struct format *format_of(enum marey_dtype part)
{
    static const struct format formats[MAREY_N_DTYPES] = {
        [MAREY_F16] = {16, 10, -14, 0x7bff, 0x7e00, 0x7c00, false},
        [MAREY_BF16] = {16, 7, -126, 0x7f7f, 0x7fc0, 0x7f80, false},
        [MAREY_F8_E4M3FN] = {8, 3, -6, 0x7e, 0x7f, NONE, false},
        [MAREY_F8_E5M2] = {8, 2, -14, 0x7b, 0x7e, 0x7c, false},
        [MAREY_F8_E4M3FNUZ] = {8, 3, -7, 0x7f, 0x80, NONE, true},
        [MAREY_F8_E5M2FNUZ] = {8, 2, -15, 0x7f, 0x80, NONE, true},
        [MAREY_F4_E2M1X2] = {4, 1, 0, 0x7, NONE, NONE, false},
    };
    return formats[part].bits != 0 ? &formats[part] : NULL;
}

/* ---- decoding ---- */

static float value_of(const struct format *f, uint32_t raw)
{
    const uint32_t sign = 1u << (f->bits - 1);
    const uint32_t magnitude = raw & (sign - 1);
    if (f->is_fnuz && raw == f->nan)
        return NAN;
    if (magnitude > f->max_finite)
        return magnitude == f->infinity ? (raw & sign ? -INFINITY : INFINITY) : NAN;
    const int exponent = (int)(magnitude >> f->n_fraction);
    const uint32_t fraction = magnitude & ((1u << f->n_fraction) - 1);
    const float value = exponent == 0 ? ldexpf((float)fraction, f->min_exponent - f->n_fraction)
                                      : ldexpf((float)(fraction + (1u << f->n_fraction)),
                                               exponent - 1 + f->min_exponent - f->n_fraction);
    return raw & sign ? -value : value;
}

/* All numbers of the types with at most 8 bits. */
static float tables[MAREY_N_DTYPES][256];

static void make_tables(void)
{
    for (int type = MAREY_F8_E4M3FN; type <= MAREY_F4_E2M1X2; type++) {
        const struct format *f = format_of((enum marey_dtype)type);
        for (uint32_t raw = 0; raw < 256; raw++)
            tables[type][raw] = f == NULL && raw == 0xff   ? NAN
                                : f == NULL                ? ldexpf(1, (int)raw - 127) /* e8m0 */
                                : f->bits == 8 || raw < 16 ? value_of(f, raw)
                                                           : 0;
    }
}

static const float *table_of(enum marey_dtype part)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_tables);
    return tables[part];
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float f16_value(uint32_t raw)
{
    const uint32_t sign = (raw & 0x8000) << 16, rest = raw & 0x7fff;
    if (rest >= 0x7c00)
        return float_of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    /* Both exponents are moved to float32's position; the multiplication then corrects the bias, also for denormals. */
    return float_of_bits(sign | rest << 13) * 0x1p112f;
}

static void widen_halves(const float *table, const unsigned char *from, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = table[i % 2 == 0 ? from[i / 2] & 15 : from[i / 2] >> 4];
}

void marey__widen(enum marey_dtype part, const void *from, size_t n, float *to)
{
    const unsigned char *bytes = from;
    const float *table;
    uint16_t half;
    switch (part) {
    case MAREY_F32:
        memcpy(to, from, n * sizeof *to);
        break;
    case MAREY_BF16:
        for (size_t i = 0; i < n; i++) {
            memcpy(&half, bytes + 2 * i, 2);
            to[i] = float_of_bits((uint32_t)half << 16);
        }
        break;
    case MAREY_F16:
        for (size_t i = 0; i < n; i++) {
            memcpy(&half, bytes + 2 * i, 2);
            to[i] = f16_value(half);
        }
        break;
    case MAREY_F4_E2M1X2:
        widen_halves(table_of(part), from, n, to);
        break;
    default:
        table = table_of(part);
        for (size_t i = 0; i < n; i++)
            to[i] = table[bytes[i]];
        break;
    }
}

#define WIDEN_INTEGERS(TYPE)                                                                       \
    for (size_t i = 0; i < n; i++) {                                                               \
        TYPE x;                                                                                    \
        memcpy(&x, bytes + i * sizeof x, sizeof x);                                                \
        to[i] = (double)x;                                                                         \
    }                                                                                              \
    break

void marey__widen_to_double(enum marey_dtype part, const void *from, size_t n, double *to)
{
    const unsigned char *bytes = from;
    switch (part) {
    case MAREY_F64:
        memcpy(to, from, n * sizeof *to);
        break;
    case MAREY_BOOL:
        for (size_t i = 0; i < n; i++)
            to[i] = bytes[i] != 0;
        break;
    case MAREY_U8:
        WIDEN_INTEGERS(uint8_t);
    case MAREY_I8:
        WIDEN_INTEGERS(int8_t);
    case MAREY_U16:
        WIDEN_INTEGERS(uint16_t);
    case MAREY_I16:
        WIDEN_INTEGERS(int16_t);
    case MAREY_U32:
        WIDEN_INTEGERS(uint32_t);
    case MAREY_I32:
        WIDEN_INTEGERS(int32_t);
    case MAREY_U64:
        WIDEN_INTEGERS(uint64_t);
    case MAREY_I64:
        WIDEN_INTEGERS(int64_t);
    case MAREY_U4X2:
    case MAREY_I4X2:
        for (size_t i = 0; i < n; i++) {
            const int x = i % 2 == 0 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4;
            to[i] = part == MAREY_I4X2 ? (x ^ 8) - 8 : x;
        }
        break;
    default:
        for (size_t done = 0; done < n;) {
            float some[256];
            const size_t now = MAREY__MIN(n - done, MAREY__COUNT_OF(some));
            const struct marey__dtype *type = marey__dtype_get(part);
            marey__widen(part, bytes + done * type->part_bits / 8, now, some);
            for (size_t i = 0; i < now; i++)
                to[done + i] = some[i];
            done += now;
        }
        break;
    }
}

/* ---- patterns ---- */

void marey__patterns(enum marey_dtype part, const void *from, size_t n, uint32_t *to)
{
    const unsigned char *bytes = from;
    uint16_t half;
    switch (part) {
    case MAREY_F32:
        memcpy(to, from, n * sizeof *to);
        break;
    case MAREY_BF16:
    case MAREY_F16:
        for (size_t i = 0; i < n; i++) {
            memcpy(&half, bytes + 2 * i, 2);
            to[i] = (uint32_t)half << 16;
        }
        break;
    case MAREY_F4_E2M1X2:
        for (size_t i = 0; i < n; i++)
            to[i] = (i % 2 == 0 ? bytes[i / 2] & 15u : (uint32_t)bytes[i / 2] >> 4) << 28;
        break;
    default:
        for (size_t i = 0; i < n; i++)
            to[i] = (uint32_t)bytes[i] << marey__pattern_shift(part);
        break;
    }
}

unsigned marey__pattern_shift(enum marey_dtype part)
{
    /* Powers of two have no sign: all eight bits are magnitude. */
    return part == MAREY_F8_E8M0FNU ? 23 : 32u - marey__dtype_get(part)->part_bits;
}

/* ---- encoding ---- */

static uint32_t narrow_e8m0(double value)
{
    if (!(value > 0) || isinf(value))
        return value == 0 ? 0 : 0xff;
    int exponent;
    const double fraction = frexp(value, &exponent);     /* in [0.5, 1) */
    const int power = exponent - 1 + (fraction >= 0.75); /* ties go up, as in torch and ml_dtypes */
    return power < -127 ? 0 : power > 127 ? 0xff : (uint32_t)(power + 127);
}

/* Infinity, if the type has one. Otherwise e4m3fn takes its maximum for a finite value, others NaN, as in torch. */
static uint32_t too_large(const struct format *f, uint32_t sign, bool is_infinite)
{
    if (f->infinity != NONE)
        return sign | f->infinity;
    if (f->is_fnuz)
        return f->nan;
    return is_infinite && f->nan != NONE ? sign | f->nan : sign | f->max_finite;
}

uint32_t marey__narrow(enum marey_dtype part, double value)
{
    if (part == MAREY_F8_E8M0FNU)
        return narrow_e8m0(value);
    const struct format *f = format_of(part);
    MAREY_ASSERT(f != NULL);
    const uint32_t sign = signbit(value) ? 1u << (f->bits - 1) : 0;
    if (isnan(value))
        return f->nan != NONE ? f->nan : f->max_finite;
    uint32_t magnitude = f->max_finite + 1u;
    if (isfinite(value)) {
        int exponent;
        (void)frexp(value, &exponent);
        const int least = f->min_exponent - f->n_fraction;
        const int quantum = value == 0 ? least : MAREY__MAX(exponent - 1 - f->n_fraction, least);
        /* At a power of two the count of quanta carries into the exponent, as it should. */
        const double quanta = rint(ldexp(fabs(value), -quantum));
        const double bits = ldexp((double)(quantum - least), f->n_fraction) + quanta;
        magnitude = bits > f->max_finite ? f->max_finite + 1u : (uint32_t)bits;
    }
    if (magnitude > f->max_finite)
        return too_large(f, sign, isinf(value));
    return f->is_fnuz && magnitude == 0 ? 0 : sign | magnitude;
}

void marey__float_enter(fenv_t *saved)
{
    fegetenv(saved);
    fesetenv(FE_DFL_ENV);
}

void marey__float_leave(const fenv_t *saved)
{
    fesetenv(saved);
}
