/*
 * The shortest decimal of a binary number, by Raffaello Giulietti's Schubfach ("The Schubfach way to render doubles").
 *
 * v = c * 2^q lies between two bounds halfway to its neighbors; every decimal between them reads back to v. Exactly one
 * power of ten, 10^k, is so large that no two multiples of 10^(k+1) fit between the bounds, and so small that at least
 * one of 10^k does. So there are at most four candidates: the multiples of 10^(k+1) and of 10^k below and above v. To
 * compare them with the bounds, v and the bounds are divided by 10^k: multiplied by 10^-k, of which the leading bits
 * suffice, since the lowest bit records whether a remainder was cut off ("rounded to odd"). All values are in quarters,
 * so that the bounds are integers: 4c, and two quarters to each side.
 */
#ifndef MAREY_NUMBER_SHORTEST_H
#define MAREY_NUMBER_SHORTEST_H

#include "base/internal.h"

/* digits * 10^exponent */
struct marey__decimal_digits {
    uint64_t digits;
    int32_t exponent;
};

/* floor(log10(2^q)), or floor(log10(3/4 * 2^q)) if the lower bound is closer; for |q| up to 1500. */
static inline int32_t log10_of(int32_t q, bool is_lower_closer)
{
    return (int32_t)((q * (int64_t)1262611 - (is_lower_closer ? 524031 : 0)) >> 22);
}

/* Chooses one of the four candidates; all values are in quarters of 10^k. */
static inline struct marey__decimal_digits choose(uint64_t low, uint64_t v, uint64_t high, int32_t k)
{
    const uint64_t s = v / 4, tens = s / 10;
    const bool is_ten_in = low <= 40 * tens, is_next_ten_in = 40 * tens + 40 <= high;
    const bool is_low_in = low <= 4 * s, is_high_in = 4 * s + 4 <= high;
    /* Both or neither: the nearer one, on a tie the even one. */
    const bool is_nearer = (v & 3) + (s & 1) > 2;
    const bool is_one_in = is_low_in ^ is_high_in;
    const bool is_up = (is_one_in & is_high_in) | (!is_one_in & is_nearer);
    /* A single digit cannot be shortened. */
    const bool is_tens = (s >= 10) & (is_ten_in ^ is_next_ten_in);
    /* Branchless: a branch would be mispredicted for half of all numbers. */
    const uint64_t one = s + is_up, ten = tens + is_next_ten_in;
    return (struct marey__decimal_digits){.digits = one ^ ((one ^ ten) & -(uint64_t)is_tens),
                                          .exponent = k + is_tens};
}

/* x * power / 2^128, rounded to odd. The power is at most one unit too large, which does not count as a remainder. */
static inline uint64_t times(struct marey__power power, uint64_t x)
{
    const unsigned __int128 low = (unsigned __int128)power.low * x;
    const unsigned __int128 sum = (unsigned __int128)power.high * x + (uint64_t)(low >> 64);
    return (uint64_t)(sum >> 64) | ((uint64_t)sum > 1);
}

/*
 * The decimal that rounds to c * 2^q, has the fewest digits, and of those is the nearest. Adjacent numbers differ by
 * one unit of `c`; the lower one by half if `is_lower_closer`. c from 1 to 2^53, q from -1074 to 971.
 */
static inline struct marey__decimal_digits shortest(uint64_t c, int32_t q, bool is_lower_closer)
{
    const int32_t k = log10_of(q, is_lower_closer);
    const int32_t shift = q + marey__log2_of_power(-k) + 1;
    struct marey__power power = marey__powers()[-k - MAREY__POWER_MIN];
    if (k > 0 || -k > MAREY__POWER_EXACT) { /* truncated: the next one is an upper bound */
        power.low++;
        power.high += power.low == 0;
    }
    /* For even c the bounds read back to v too, since ties round to even. */
    const uint64_t open = c & 1;
    const uint64_t low = times(power, (4 * c - 2 + is_lower_closer) << shift) + open;
    const uint64_t high = times(power, (4 * c + 2) << shift) - open;
    return choose(low, times(power, (4 * c) << shift), high, k);
}

/* ---- the same for float32, with fewer bits ---- */

static inline uint32_t times_f32(uint64_t power, uint32_t x)
{
    const unsigned __int128 product = (unsigned __int128)power * x;
    return (uint32_t)(product >> 64) | ((uint64_t)product >> 33 != 0);
}

/* As choose(), with more than one digit. */
static inline struct marey__decimal_digits choose_f32(uint32_t low, uint32_t v, uint32_t high,
                                                      int32_t k)
{
    const uint32_t s = v / 4, tens = s / 10;
    const uint32_t is_ten_in = low <= 40 * tens, is_next_ten_in = 40 * tens + 40 <= high;
    const uint32_t is_low_in = low <= 4 * s, is_high_in = 4 * s + 4 <= high;
    const uint32_t is_nearer = (v & 3) + (s & 1) > 2; /* over the middle; on it, if s is odd */
    const uint32_t is_up = is_low_in != is_high_in ? is_high_in : is_nearer;
    const uint32_t is_tens = is_ten_in ^ is_next_ten_in;
    const uint32_t one = s + is_up, ten = tens + is_next_ten_in;
    return (struct marey__decimal_digits){.digits = one ^ ((one ^ ten) & -is_tens),
                                          .exponent = k + (int32_t)is_tens};
}

/* c from 2^23 + 1 to 2^24 - 1; `power` has the values for the exponent. */
static inline struct marey__decimal_digits shortest_f32(uint32_t c,
                                                        const struct marey__f32_power *power)
{
    const uint32_t open = c & 1;
    const uint32_t low = times_f32(power->power, (4 * c - 2) << power->shift) + open;
    const uint32_t high = times_f32(power->power, (4 * c + 2) << power->shift) - open;
    return choose_f32(low, times_f32(power->power, (4 * c) << power->shift), high, power->k);
}

#endif
