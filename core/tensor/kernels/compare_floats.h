/*
 * One block of floats, element by element, with any values: NaN, infinite, huge. Included with
 *
 *   REAL, WIDE   the type, and a wider one for sums
 *   BITS         an unsigned integer of its width
 *   FN(name)     the names of the functions defined here
 *   NO_FIND      defined: no search in blocks that a kernel has compared
 */

struct FN(side) {
    REAL value;
    BITS pattern;
};

/* The combined result of an element's parts. */
struct FN(verdict) {
    bool is_wrong, is_unequal, is_nan_a, is_nan_b, is_hopeless;
};

/* The number of values between two numbers; through zero, whose two patterns are one number. */
static BITS FN(apart)(BITS a, BITS b)
{
    const BITS sign = (BITS)1 << (8 * sizeof(BITS) - 1);
    const BITS size_a = a & (sign - 1), size_b = b & (sign - 1);
    return (a ^ b) & sign ? size_a + size_b : size_a > size_b ? size_a - size_b : size_b - size_a;
}

/* |a - b| / |b|: infinite if only b is 0. */
static REAL FN(ratio)(REAL distance, REAL reference)
{
    return distance != 0 ? distance / reference : 0;
}

/* The distance of two finite numbers. Different numbers are at least one apart, also between two patterns. */
static void FN(measure)(const struct marey__compare *job, struct FN(side) a, struct FN(side) b,
                        uint64_t index, struct FN(verdict) * verdict, struct marey__diff_part *part)
{
    const REAL distance = FN(abs)(a.value - b.value), reference = FN(abs)(b.value);
    const REAL allowed = (REAL)job->tolerance.abs + (REAL)job->tolerance.rel * reference;
    const uint64_t counted = (uint64_t)(FN(apart)(a.pattern, b.pattern) >> job->pattern_shift);
    const uint64_t apart = counted == 0 && distance != 0 ? 1 : counted;
    verdict->is_unequal |= apart != 0;
    verdict->is_wrong |= !(distance <= allowed) && apart > job->tolerance.ulp;
    const struct marey__where here = {index, false};
    MAREY__KEEP_LARGER(part, abs, (double)distance, here);
    MAREY__KEEP_LARGER(part, ulp, apart, here);
    MAREY__KEEP_LARGER(part, rel, (double)FN(ratio)(distance, reference), here);
    part->max_a = MAREY__MAX(part->max_a, (double)FN(abs)(a.value));
    part->max_b = MAREY__MAX(part->max_b, (double)reference);
    part->n_finite++;
}

static void FN(one)(const struct marey__compare *job, struct FN(side) a, struct FN(side) b,
                    uint64_t index, struct FN(verdict) * verdict, struct marey__diff_part *part)
{
    const bool nan_a = isnan(a.value), nan_b = isnan(b.value);
    if (isfinite(a.value) && isfinite(b.value)) {
        FN(measure)(job, a, b, index, verdict, part);
        return;
    }
    verdict->is_nan_a |= nan_a;
    verdict->is_nan_b |= nan_b;
    const bool is_equal = nan_a || nan_b ? nan_a && nan_b : a.value == b.value;
    const bool is_hopeless = !is_equal || (nan_a && !job->tolerance.nan_equal);
    verdict->is_unequal |= !is_equal;
    verdict->is_hopeless |= is_hopeless;
    verdict->is_wrong |= is_hopeless;
    if (!nan_a)
        part->max_a = MAREY__MAX(part->max_a, (double)FN(abs)(a.value));
    if (!nan_b)
        part->max_b = MAREY__MAX(part->max_b, (double)FN(abs)(b.value));
}

static void FN(sums)(const REAL *a, const REAL *b, size_t n_parts, struct marey__diff_part *part)
{
    WIDE sums[MAREY__N_SUMS] = {0};
    for (size_t i = 0; i < n_parts; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i]))
            continue;
        const WIDE x = a[i], y = b[i], d = x - y;
        sums[MAREY__SUM_A] += x;
        sums[MAREY__SUM_B] += y;
        sums[MAREY__SUM_ABS] += d < 0 ? -d : d;
        sums[MAREY__SUM_AA] += x * x;
        sums[MAREY__SUM_BB] += y * y;
        sums[MAREY__SUM_AB] += x * y;
        sums[MAREY__SUM_DD] += d * d;
    }
    for (size_t k = 0; k < MAREY__N_SUMS; k++)
        part->sums[k] += sums[k];
}

static void FN(block)(const struct marey__compare *job, const REAL *a, const REAL *b,
                      const BITS *patterns_a, const BITS *patterns_b, size_t n, uint64_t first,
                      struct marey__diff_part *part)
{
    for (size_t i = 0; i < n; i++) {
        struct FN(verdict) verdict = {false};
        for (size_t k = i * job->n_parts; k < (i + 1) * job->n_parts; k++)
            FN(one)
        (job, (struct FN(side)){a[k], FN(pattern)(a, patterns_a, k)},
         (struct FN(side)){b[k], FN(pattern)(b, patterns_b, k)}, first + i, &verdict, part);
        part->n_unequal += verdict.is_unequal;
        part->n_nan_a += verdict.is_nan_a;
        part->n_nan_b += verdict.is_nan_b;
        part->n_nan_one += verdict.is_nan_a != verdict.is_nan_b;
        part->is_hopeless |= verdict.is_hopeless;
        part->n_wrong += verdict.is_wrong;
        if (verdict.is_wrong && part->wrong_at.index == UINT64_MAX)
            part->wrong_at.index = first + i;
    }
    FN(sums)(a, b, n * job->n_parts, part);
}

#ifndef NO_FIND

/* ---- the worst element of a block that a kernel has compared ---- */

static bool FN(is_wrong)(const struct marey__compare *job, REAL a, REAL b, BITS apart)
{
    if (!isfinite(a) || !isfinite(b))
        return isnan(a) && isnan(b) ? !job->tolerance.nan_equal : a != b;
    const REAL allowed = (REAL)job->tolerance.abs + (REAL)job->tolerance.rel * FN(abs)(b);
    return !(FN(abs)(a - b) <= allowed) &&
           (uint64_t)(apart >> job->pattern_shift) > job->tolerance.ulp;
}

/* Records the index of an element that was found. */
static void FN(found)(bool *wanted, uint64_t index, struct marey__where *at)
{
    *wanted = false;
    *at = (struct marey__where){index, false};
}

/* Sets requested results to the first element with the worst value. Most elements cost one multiplication per request. */
static void FN(find)(const struct marey__compare *job, const REAL *a, const REAL *b,
                     const BITS *patterns_a, const BITS *patterns_b, size_t n, uint64_t first,
                     struct wanted *wanted, struct marey__diff_part *part)
{
    const REAL abs = (REAL)job->tolerance.abs, rel = (REAL)job->tolerance.rel;
    const REAL worst_abs = (REAL)part->abs, worst_rel = (REAL)part->rel;
    const REAL nearly_worst = worst_rel - worst_rel * (REAL)1e-6;
    for (size_t k = 0; k < n * job->n_parts; k++) {
        const uint64_t index = first + k / job->n_parts;
        const REAL distance = FN(abs)(a[k] - b[k]), reference = FN(abs)(b[k]);
        const BITS apart = FN(apart)(FN(pattern)(a, patterns_a, k), FN(pattern)(b, patterns_b, k));
        if (wanted->wrong && (!(distance <= abs + rel * reference) || !(distance < (REAL)INFINITY)) &&
            FN(is_wrong)(job, a[k], b[k], apart))
            FN(found)(&wanted->wrong, index, &part->wrong_at);
        if (!(distance < (REAL)INFINITY) && !(isfinite(a[k]) && isfinite(b[k])))
            continue;
        if (wanted->abs && distance == worst_abs)
            FN(found)(&wanted->abs, index, &part->abs_at);
        if (wanted->ulp && (uint64_t)(apart >> job->pattern_shift) == part->ulp)
            FN(found)(&wanted->ulp, index, &part->ulp_at);
        if (wanted->rel && !(distance < nearly_worst * reference) &&
            FN(ratio)(distance, reference) == worst_rel)
            FN(found)(&wanted->rel, index, &part->rel_at);
        if (!wanted->wrong && !wanted->abs && !wanted->ulp && !wanted->rel)
            return;
    }
}

#endif
