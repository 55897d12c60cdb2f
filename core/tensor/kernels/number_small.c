/* Floats of 16 bits and fewer: there are so few that a table has the text of each. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/internal.h"
#include "tensor/kernels/internal.h"

bool marey__is_small(enum marey_dtype dtype)
{
    const struct marey__dtype *const type = marey__dtype_get(dtype);
    return type != NULL && type->kind == MAREY__IS_FLOAT && type->part_bits <= 16 &&
           type->part == dtype;
}

double marey__small_value(enum marey_dtype dtype, uint16_t bits)
{
    float values[2] = {NAN, NAN}; /* for a half byte: including the other half, which is 0 */
    if (marey__is_small(dtype))
        marey__widen(dtype, &bits, dtype == MAREY_F4_E2M1X2 ? 2 : 1, values);
    return values[0];
}

static char *put_value(char *out, const struct marey__dtype *type, double value)
{
    int exponent; /* of 2, above the highest bit */
    const double fraction = frexp(fabs(value), &exponent);
    const int least = type->min_exponent + 1;
    const int32_t q = (exponent > least ? exponent : least) - type->digits;
    *out = '-';
    out += signbit(value) != 0;
    /* Below a power of two numbers are twice as dense, unless they are denormal. */
    return marey__binary_text(out, (uint64_t)ldexp(fraction, exponent - q), q,
                              fraction == 0.5 && exponent > least);
}

static void put_text(struct marey__small_text *out, const struct marey__dtype *type, double value)
{
    char text[MAREY__NUMBER_ROOM];
    if (!isfinite(value))
        return;
    /* In a type of powers of two 1e+03 would identify 1024, but would confuse readers. */
    const bool is_plain = value == 0 || type->part == MAREY_F8_E8M0FNU;
    const char *const end =
        is_plain ? marey__f32_text(text, (float)value) : put_value(text, type, value);
    out->len = (uint8_t)(end - text);
    MAREY_ASSERT(out->len <= sizeof out->text);
    memcpy(out->text, text, out->len);
}

static struct marey__small_text *make(enum marey_dtype dtype)
{
    const struct marey__dtype *const type = marey__dtype_get(dtype);
    const uint32_t n = 1u << type->part_bits;
    struct marey__small_text *const texts = marey__calloc(n, sizeof *texts);
    for (uint32_t bits = 0; bits < n && texts != NULL; bits++)
        put_text(&texts[bits], type, marey__small_value(dtype, (uint16_t)bits));
    return texts;
}

const struct marey__small_text *marey__small_texts(enum marey_dtype dtype)
{
    static struct marey__small_text *_Atomic made[MAREY_N_DTYPES]; /* each stored once, never freed */
    if (!marey__is_small(dtype))
        return NULL;
    /* Acquire: pairs with the release of the exchange, so that the texts are complete. */
    struct marey__small_text *texts = atomic_load_explicit(&made[dtype], memory_order_acquire);
    if (texts != NULL)
        return texts;
    struct marey__small_text *const mine = make(dtype);
    /* Lock-free, because a forked child could inherit a held lock: if several threads make one, the first wins. */
    if (mine == NULL || atomic_compare_exchange_strong_explicit(
                            &made[dtype], &texts, mine, memory_order_acq_rel, memory_order_acquire))
        return mine;
    marey__free(mine);
    return texts;
}
