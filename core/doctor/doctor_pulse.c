/*
 * How often a counter gets a new value: it is read again and again, and the distances between changes are kept. The middle
 * one of them is the period: a value that happens to stay the same over an update makes one distance twice as long, and
 * that one is not in the middle. A period is never known more finely than the reads lie apart.
 */
#include "doctor/internal.h"

void marey__pulse_put(struct marey__pulse *pulse, uint64_t value, uint64_t now_ns, uint64_t cost_ns)
{
    pulse->cost_ns = pulse->n_reads++ == 0 ? cost_ns : MAREY__MIN(pulse->cost_ns, cost_ns);
    if (pulse->n_reads > 1 && value != pulse->value) {
        /* The first change only says when an update was; distances count from there. */
        if (pulse->n_changes > 0 && pulse->n_changes <= MAREY__PULSE_GAPS)
            pulse->gaps_ns[pulse->n_changes - 1] = now_ns - pulse->changed_ns;
        pulse->n_changes++;
        pulse->changed_ns = now_ns;
    }
    pulse->value = value;
}

static int compare_gaps(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t marey__pulse_period_ns(struct marey__pulse *pulse)
{
    if (pulse->n_changes < 2)
        return 0;
    const size_t n = MAREY__MIN(pulse->n_changes - 1, (unsigned)MAREY__PULSE_GAPS);
    qsort(pulse->gaps_ns, n, sizeof pulse->gaps_ns[0], compare_gaps);
    return pulse->gaps_ns[n / 2];
}

/* ---- from the child that measures to the parent ---- */

void marey__pulse_write(struct marey__pulse *pulse, const char *key, unsigned device,
                        const char *refusal, int fd)
{
    if (pulse->n_reads == 0)
        dprintf(fd, "%s%u=no %.80s\n", key, device, refusal);
    else
        dprintf(fd, "%s%u=ok %llu %u %llu\n", key, device,
                (unsigned long long)marey__pulse_period_ns(pulse), pulse->n_changes,
                (unsigned long long)pulse->cost_ns);
}

bool marey__parse_measured(const char *text, size_t len, const char *key,
                           struct marey__doctor_measured *out)
{
    char value[128];
    uint64_t numbers[3] = {0};
    *out = (struct marey__doctor_measured){0};
    if (!marey__parse_field(text, len, key, value, sizeof value))
        return false;
    if (strncmp(value, "no ", 3) == 0)
        snprintf(out->refusal, sizeof out->refusal, "%.80s", value + 3);
    else if (strncmp(value, "ok ", 3) == 0) {
        const char *at = value + 3;
        for (size_t i = 0; i < MAREY__COUNT_OF(numbers); i++) {
            if (!marey__parse_number(at, strlen(at), &numbers[i]))
                return false;
            at += strspn(at, "0123456789");
            at += strspn(at, " ");
        }
        out->is_readable = true;
        out->period_ns = (double)numbers[0];
        out->n_changes = numbers[1];
        out->cost_ns = (double)numbers[2];
    } else {
        return false;
    }
    return true;
}
