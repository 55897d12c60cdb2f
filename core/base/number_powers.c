/*
 * The leading 128 bits of the powers of ten. 10^n is 5^n and a shift, so powers of five suffice: positive ones by
 * multiplication, negative ones by dividing 2^960 repeatedly. That is exact, because floor(floor(x / 5) / 5) is floor(x
 * / 25).
 */
#include "base/number_shortest.h"

enum { LIMBS = 30, LIMB_BITS = 32 }; /* 960 bits; 5^342 has 795, the quotient 165 */

struct marey__power marey__power_table[MAREY__POWER_MAX - MAREY__POWER_MIN + 1];
struct marey__f32_power marey__f32_powers[256];
_Atomic bool marey__has_powers;

/* The 64 bits from `bit` downwards. */
static uint64_t bits_below(const uint32_t *limbs, int bit)
{
    uint64_t out = 0;
    for (int i = 0; i < 64; i++) {
        const int at = bit - i;
        out = out << 1 | (at >= 0 ? limbs[at / LIMB_BITS] >> (at % LIMB_BITS) & 1 : 0);
    }
    return out;
}

static struct marey__power leading_bits(const uint32_t *limbs)
{
    int top = LIMBS - 1;
    while (limbs[top] == 0)
        top--;
    const int bit = top * LIMB_BITS + LIMB_BITS - 1 - __builtin_clz(limbs[top]);
    return (struct marey__power){.high = bits_below(limbs, bit), .low = bits_below(limbs, bit - 64)};
}

static void times_five(uint32_t *limbs)
{
    uint64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)limbs[i] * 5;
        limbs[i] = (uint32_t)carry;
        carry >>= LIMB_BITS;
    }
}

static void by_five(uint32_t *limbs)
{
    uint64_t rest = 0;
    for (int i = LIMBS - 1; i >= 0; i--) {
        rest = rest << LIMB_BITS | limbs[i];
        limbs[i] = (uint32_t)(rest / 5);
        rest %= 5;
    }
}

static void compute(void)
{
    uint32_t up[LIMBS] = {1};
    for (int n = 0; n <= MAREY__POWER_MAX; n++, times_five(up))
        marey__power_table[n - MAREY__POWER_MIN] = leading_bits(up);
    uint32_t down[LIMBS] = {[LIMBS - 1] = (uint32_t)1 << (LIMB_BITS - 1)};
    for (int n = -1; n >= MAREY__POWER_MIN; n--) {
        by_five(down);
        marey__power_table[n - MAREY__POWER_MIN] = leading_bits(down);
    }
    for (int32_t exponent = 1; exponent < 255; exponent++) {
        const int32_t q = exponent - 150, k = log10_of(q, false);
        const struct marey__power *const power = &marey__power_table[-k - MAREY__POWER_MIN];
        marey__f32_powers[exponent] =
            (struct marey__f32_power){.power = power->high + (power->low != 0),
                                      .k = k,
                                      .shift = (uint32_t)(q + marey__log2_of_power(-k) + 1)};
    }
}

void marey__powers_make(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, compute);
    atomic_store_explicit(&marey__has_powers, true, memory_order_release);
}
