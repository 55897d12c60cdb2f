/*
 * One block of floats, element by element, whatever they are: NaN, infinite, huge. Included with
 *
 *   REAL, WIDE   the type, and a wider one for sums
 *   PLACE        a signed integer of its width
 *   FN(name)     the name of what is made here
 */

struct FN(side) {
    REAL value;
    PLACE place;
};

/* What the parts of one element say together. */
struct FN(verdict) {
    bool is_wrong, is_unequal, is_nan_a, is_nan_b, is_hopeless, is_off_zero;
};

/* Both are finite: how far are they apart? */
static void FN(measure)(const struct kymo__compare *job, struct FN(side) a, struct FN(side) b,
                        uint64_t index, struct FN(verdict) * verdict, struct kymo__diff_part *part)
{
    const REAL distance = FN(abs)(a.value - b.value), reference = FN(abs)(b.value);
    const REAL allowed = (REAL)job->tolerance.abs + (REAL)job->tolerance.rel * reference;
    const uint64_t apart = (uint64_t)(FN(apart)(a.place, b.place) >> job->place_shift);
    verdict->is_unequal |= apart != 0;
    verdict->is_wrong |= !(distance <= allowed) && apart > job->tolerance.ulp;
    verdict->is_off_zero |= apart != 0 && reference == 0;
    if (distance > part->abs.value)
        part->abs = (struct kymo__worst_float){distance, index};
    if (apart > part->ulp.value)
        part->ulp = (struct kymo__worst_places){apart, index};
    if (reference != 0 && distance / reference > (REAL)part->rel.value)
        part->rel = (struct kymo__worst_float){distance / reference, index};
    part->max_a = KYMO__MAX(part->max_a, (double)FN(abs)(a.value));
    part->max_b = KYMO__MAX(part->max_b, (double)reference);
    part->n_finite++;
}

static void FN(one)(const struct kymo__compare *job, struct FN(side) a, struct FN(side) b,
                    uint64_t index, struct FN(verdict) * verdict, struct kymo__diff_part *part)
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
        part->max_a = KYMO__MAX(part->max_a, (double)FN(abs)(a.value));
    if (!nan_b)
        part->max_b = KYMO__MAX(part->max_b, (double)FN(abs)(b.value));
}

static void FN(sums)(const REAL *a, const REAL *b, size_t n_parts, struct kymo__diff_part *part)
{
    WIDE sum_a = 0, sum_b = 0, sum_abs = 0, sum_aa = 0, sum_bb = 0, sum_ab = 0, sum_dd = 0;
    for (size_t i = 0; i < n_parts; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i]))
            continue;
        const WIDE x = a[i], y = b[i], d = x - y;
        sum_a += x;
        sum_b += y;
        sum_abs += d < 0 ? -d : d;
        sum_aa += x * x;
        sum_bb += y * y;
        sum_ab += x * y;
        sum_dd += d * d;
    }
    part->sum_a += sum_a;
    part->sum_b += sum_b;
    part->sum_abs += sum_abs;
    part->sum_aa += sum_aa;
    part->sum_bb += sum_bb;
    part->sum_ab += sum_ab;
    part->sum_dd += sum_dd;
}

static void FN(block)(const struct kymo__compare *job, const REAL *a, const REAL *b,
                      const PLACE *places_a, const PLACE *places_b, size_t n, uint64_t first,
                      struct kymo__diff_part *part)
{
    for (size_t i = 0; i < n; i++) {
        struct FN(verdict) verdict = {false};
        for (size_t k = i * job->n_parts; k < (i + 1) * job->n_parts; k++)
            FN(one)
        (job, (struct FN(side)){a[k], FN(place)(a, places_a, k)},
         (struct FN(side)){b[k], FN(place)(b, places_b, k)}, first + i, &verdict, part);
        part->n_unequal += verdict.is_unequal;
        part->n_nan_a += verdict.is_nan_a;
        part->n_nan_b += verdict.is_nan_b;
        part->n_nan_one += verdict.is_nan_a != verdict.is_nan_b;
        part->n_hopeless += verdict.is_hopeless;
        part->n_off_zero += verdict.is_off_zero;
        part->n_wrong += verdict.is_wrong;
        if (verdict.is_wrong && part->first_wrong == UINT64_MAX)
            part->first_wrong = first + i;
    }
    FN(sums)(a, b, n * job->n_parts, part);
}
