/*
 * Samples of programs without Python: work and lock waits of threads, by place in the user's code.
 *
 * A sample counts if it is on a CPU core or at a lock. At a lock means: off the CPU in a function
 * of libc or OpenMP that takes a lock, or on the CPU in one that is called only under contention.
 * Taking a free lock is work. Waits for conditions, barriers and the end of threads do not count:
 * such threads may have nothing to do.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

enum { FEWEST_SAMPLES = 50 };

bool marey__native_is_users(const struct marey_samples_function *f)
{
    return f->kind == MAREY_FRAME_NATIVE &&
           (f->file[0] != '\0' || (strncmp(f->module, "lib", 3) != 0 && f->module[0] != '[' &&
                                   strncmp(f->module, "ld-", 3) != 0 && f->module[0] != '\0'));
}

enum lock { NO_LOCK, TAKES_LOCK, WAITS_FOR_LOCK };

/* Functions of libc and OpenMP that take a lock; the first N_WAITS run only under contention. */
static enum lock lock_of(const struct marey_samples_function *f)
{
    static const char *const names[] = {"lll_lock_wa",   "GOMP_critical", "__kmp_acquire",
                                        "__kmp_release", "spin_lock", /* then: also without */
                                        "mutex_lock",    "mutex_unlock",  "rwlock_"};
    enum { N_WAITS = 5 };
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        if (strstr(f->name, names[i]) != NULL)
            return i < N_WAITS ? WAITS_FOR_LOCK : TAKES_LOCK;
    return NO_LOCK;
}

/* The innermost location of the user's code; 0: none. */
static uint32_t find_users(const marey_samples *samples, uint32_t stack, enum lock *at)
{
    *at = NO_LOCK;
    while (stack != 0) {
        const struct marey_samples_stack frame = marey_samples_get_stack(samples, stack);
        const uint32_t function = marey_samples_get_location(samples, frame.location).function;
        const struct marey_samples_function *const f = marey_samples_get_function(samples, function);
        if (marey__native_is_users(f))
            return frame.location;
        *at = MAREY__MAX(*at, lock_of(f));
        stack = frame.parent;
    }
    return 0;
}

static marey_status take_round(void *ctx, const struct marey_samples_round *round)
{
    struct marey__native *const s = ctx;
    struct marey__native_process *const process = &s->processes[round->process];
    bool is_busy = false;
    if (marey_samples_get_process(s->samples, round->process)->python != 0)
        return MAREY_OK;
    for (size_t i = 0; i < round->n_seen; i++) {
        enum lock at;
        const struct marey_samples_seen *const seen = &round->seen[i];
        const bool is_on_cpu = (seen->flags & MAREY_SAMPLE_ON_CPU) != 0;
        const uint32_t location = find_users(s->samples, seen->stack, &at),
                       function = marey_samples_get_location(s->samples, location).function;
        const bool is_at_lock = at >= (is_on_cpu ? WAITS_FOR_LOCK : TAKES_LOCK);
        if (!is_at_lock && !is_on_cpu)
            continue;
        s->calls_ns += is_on_cpu && at == TAKES_LOCK ? round->weight_ns : 0;
        s->n++;
        is_busy = true;
        process->threads_ns += round->weight_ns;
        *(is_at_lock ? &s->lock_ns : &s->work_ns) += round->weight_ns;
        (is_at_lock ? s->lock_by_location : s->hot_by_location)[location] += round->weight_ns;
        (is_at_lock ? s->lock_by_function : s->hot_by_function)[function] += round->weight_ns;
    }
    process->run_ns += round->weight_ns;
    process->busy_ns += is_busy ? round->weight_ns : 0;
    return MAREY_OK;
}

void marey__native_fini(struct marey__native *s)
{
    MAREY__FREE_ALL(s->hot_by_location, s->hot_by_function, s->lock_by_location,
                    s->lock_by_function, s->processes);
}

bool marey__native_read(const struct marey__facts *facts, struct marey__native *s)
{
    *s = (struct marey__native){.samples = facts->set.samples};
    if (!facts->has_samples || facts->n_steps != 0 || facts->has_device || facts->n_trainers != 1 ||
        facts->trainers[0].target == 0 ||
        marey_samples_get_process(s->samples, facts->trainers[0].target)->python != 0)
        return false;
    const size_t n_locations = (size_t)marey_samples_n_locations(s->samples) + 1,
                 n_functions = (size_t)marey_samples_n_functions(s->samples) + 1;
    s->hot_by_location = marey__calloc(n_locations, sizeof *s->hot_by_location);
    s->lock_by_location = marey__calloc(n_locations, sizeof *s->lock_by_location);
    s->hot_by_function = marey__calloc(n_functions, sizeof *s->hot_by_function);
    s->lock_by_function = marey__calloc(n_functions, sizeof *s->lock_by_function);
    s->processes =
        marey__calloc((size_t)marey_samples_n_processes(s->samples) + 1, sizeof *s->processes);
    const bool has_room = s->processes != NULL && s->hot_by_location != NULL &&
                          s->lock_by_location != NULL && s->hot_by_function != NULL &&
                          s->lock_by_function != NULL;
    /* A visit without a choice does not change the set. */
    return has_room &&
           marey__samples_visit((struct marey__samples_set *)&facts->set, NULL, take_round, s) ==
               MAREY_OK &&
           s->n >= FEWEST_SAMPLES;
}

void marey__place_find_heaviest(const marey_samples *samples, const uint64_t *by_function,
                                const uint64_t *by_location, struct marey__fact_place *place)
{
    *place = (struct marey__fact_place){0};
    for (uint32_t i = 1; i <= marey_samples_n_functions(samples); i++)
        if (by_function[i] > by_function[place->function])
            place->function = i;
    place->ns = by_function[place->function];
    uint64_t most_ns = 0;
    for (uint32_t i = 1; i <= marey_samples_n_locations(samples); i++) {
        const struct marey_samples_location location = marey_samples_get_location(samples, i);
        if (location.function == place->function && by_location[i] > most_ns) {
            most_ns = by_location[i];
            place->line = location.line;
        }
    }
}

double marey__native_share(const struct marey__native *s, uint64_t part_ns, struct marey__finding *out)
{
    const double all_ns = (double)(s->work_ns + s->lock_ns), part = (double)part_ns / all_ns;
    double busy = 0;
    for (uint32_t i = 1; i <= marey_samples_n_processes(s->samples); i++) {
        const struct marey__native_process *const p = &s->processes[i];
        if (p->run_ns != 0)
            busy += (double)p->threads_ns / all_ns * (double)p->busy_ns / (double)p->run_ns;
    }
    marey__finding_set_share(out, part * busy, sqrt(part * (1 - part) / (double)s->n));
    return part;
}

void marey__native_append_hottest(const struct marey__facts *facts, char *text, size_t size,
                                  size_t *len)
{
    const double least = 1.0 / 3;
    struct marey__native s;
    struct marey__fact_place place;
    if (marey__native_read(facts, &s)) {
        s.hot_by_function[0] = 0;
        marey__place_find_heaviest(s.samples, s.hot_by_function, s.hot_by_location, &place);
        const double share = (double)place.ns / (double)(s.work_ns + s.lock_ns);
        const struct marey_samples_function *const f =
            marey_samples_get_function(s.samples, place.function);
        if (place.function != 0 && share >= least && place.line != 0)
            marey__append(text, size, len, " %s (%s:%u) has %.0f %% of its CPU time.", f->name,
                          marey__base_name(f->file), place.line, share * 100);
        else if (place.function != 0 && share >= least)
            marey__append(text, size, len, " %s (%s) has %.0f %% of its CPU time.", f->name,
                          f->module, share * 100);
    }
    marey__native_fini(&s);
}
