/*
 * Entries of a block SAMPLES: a tag and numbers as LEB128. docs/formats/recording.md has the bytes.
 *
 * Rounds of a process lie in columns: first all times, then all changes, field by field. A thread that is as it was in the
 * round before takes no byte, so what a round costs is its time. That is kept as precisely as one byte allows where a
 * process has one or two threads, and with one byte more where that is shared by many.
 */
#include "sampler/store/internal.h"

static void put_tag(struct marey__buf *bytes, char tag)
{
    marey__buf_put(bytes, &tag, 1);
}

static void put_text(struct marey__buf *bytes, const char *text)
{
    const size_t len = strlen(text);
    marey__buf_put_leb128(bytes, len);
    marey__buf_put(bytes, text, len);
}

/* ---- definitions ---- */

void marey__samples_pack_process(struct marey__buf *out, const marey_samples *samples,
                                 uint32_t process)
{
    const struct marey_samples_process *const p = marey_samples_get_process(samples, process);
    put_tag(out, 'M');
    marey__buf_put_leb128(out, process);
    marey__buf_put_leb128(out, (uint64_t)p->pid);
    marey__buf_put_leb128(out, (uint64_t)p->ppid);
    marey__buf_put_leb128(out, p->start_time);
    marey__buf_put_leb128(out, (uint64_t)((int64_t)p->rank + 1));
    marey__buf_put_leb128(out, (uint64_t)((int64_t)p->worker + 1));
    marey__buf_put_leb128(out, p->python);
    put_text(out, p->command);
}

void marey__samples_pack_thread(struct marey__buf *out, const marey_samples *samples, uint32_t thread)
{
    const struct marey_samples_thread *const t = marey_samples_get_thread(samples, thread);
    put_tag(out, 'T');
    marey__buf_put_leb128(out, thread);
    marey__buf_put_leb128(out, t->process);
    marey__buf_put_leb128(out, (uint64_t)t->tid);
    marey__buf_put_leb128(out, t->interpreter);
    marey__buf_put_leb128(out, t->is_main != 0);
    put_text(out, t->name);
}

void marey__samples_pack_functions(struct marey__buf *out, const marey_samples *samples, uint32_t from)
{
    for (uint32_t i = from + 1; i <= marey_samples_n_functions(samples); i++) {
        const struct marey_samples_function *const f = marey_samples_get_function(samples, i);
        put_tag(out, 'F');
        marey__buf_put_leb128(out, i);
        marey__buf_put_leb128(out, (uint64_t)f->kind);
        marey__buf_put_leb128(out, f->first_line);
        put_text(out, f->name);
        put_text(out, f->file);
        put_text(out, f->module);
    }
}

void marey__samples_pack_locations(struct marey__buf *out, const marey_samples *samples, uint32_t from)
{
    const uint32_t n = marey_samples_n_locations(samples);
    if (n <= from)
        return;
    put_tag(out, 'L');
    marey__buf_put_leb128(out, (uint64_t)from + 1);
    marey__buf_put_leb128(out, n - from);
    for (uint32_t i = from + 1; i <= n; i++) {
        const struct marey_samples_location l = marey_samples_get_location(samples, i);
        marey__buf_put_leb128(out, l.function);
        marey__buf_put_leb128(out, l.line);
    }
}

/* A parent is most often the stack before. */
void marey__samples_pack_stacks(struct marey__buf *out, const marey_samples *samples, uint32_t from)
{
    const uint32_t n = marey_samples_n_stacks(samples);
    if (n <= from)
        return;
    put_tag(out, 'K');
    marey__buf_put_leb128(out, (uint64_t)from + 1);
    marey__buf_put_leb128(out, n - from);
    for (uint32_t i = from + 1; i <= n; i++) {
        const struct marey_samples_stack k = marey_samples_get_stack(samples, i);
        marey__buf_put_leb128(out, k.parent != 0 ? i - k.parent : 0);
        marey__buf_put_leb128(out, k.location);
    }
}

void marey__samples_pack_counts(struct marey__buf *out, const marey_samples *samples, uint32_t process)
{
    const struct marey_samples_counts counts = marey_samples_get_counts(samples, process);
    uint64_t all[sizeof counts / sizeof(uint64_t)]; /* in the order of the struct */
    memcpy(all, &counts, sizeof all);
    put_tag(out, 'O');
    marey__buf_put_leb128(out, process);
    marey__buf_put_leb128(out, MAREY__COUNT_OF(all));
    for (size_t i = 0; i < MAREY__COUNT_OF(all); i++)
        marey__buf_put_leb128(out, all[i]);
}

/* ---- rounds ---- */

/* The largest power of two that is no larger; 0 for 0. */
static unsigned log2_of(uint64_t value)
{
    return value > 1 ? 63u - (unsigned)__builtin_clzll(value) : 0;
}

/*
 * Gaps between rounds are drawn at random, so their bits cannot be packed away. with units of 1/12 to 1/24 of the usual gap
 * a time has some five and a half bits; three threads or more pay for seven bits besides.
 */
static unsigned shift_of(const struct marey__samples_run *run, unsigned most)
{
    enum { USUAL = 12, MORE = 7, MANY = 3, LEAST_FOR_MANY = 8 };
    const uint64_t span = run->at_ns[run->n_rounds - 1] - run->at_ns[0];
    unsigned shift = most;
    if (run->n_rounds > 1)
        shift = MAREY__MIN(most, log2_of(span / (run->n_rounds - 1) / USUAL));
    if (run->n_samples < MANY * (uint64_t)run->n_rounds || shift <= LEAST_FOR_MANY)
        return shift;
    return MAREY__MAX(shift - MORE, (unsigned)LEAST_FOR_MANY);
}

static uint64_t in_units(uint64_t ns, unsigned shift)
{
    return (ns + (shift > 0 ? UINT64_C(1) << (shift - 1) : 0)) >> shift;
}

static void put_times(struct marey__buf *out, const struct marey__samples_run *run, unsigned shift)
{
    uint64_t before = 0;
    marey__buf_put_leb128(out, shift);
    marey__buf_put_leb128(out, run->n_rounds);
    for (size_t i = 0; i < run->n_rounds; i++) {
        const uint64_t at = in_units(run->at_ns[i], shift);
        marey__buf_put_leb128(out, at - before);
        before = at;
    }
}

/* Where it changes what rounds stand for: samplers give all rounds one weight, or none. */
static void put_weights(struct marey__buf *out, const struct marey__samples_run *run)
{
    size_t n = 0, before = 0;
    for (size_t i = 0; i < run->n_rounds; i++)
        n += run->weights_ns[i] != (i > 0 ? run->weights_ns[i - 1] : 0);
    marey__buf_put_leb128(out, n);
    for (size_t i = 0; i < run->n_rounds; i++)
        if (run->weights_ns[i] != (i > 0 ? run->weights_ns[i - 1] : 0)) {
            marey__buf_put_leb128(out, i - before);
            marey__buf_put_leb128(out, run->weights_ns[i]);
            before = i;
        }
}

static void put_changes(struct marey__buf *out, const struct marey__samples_run *run)
{
    const struct marey__samples_change *const changes = run->changes;
    uint32_t before = 0;
    marey__buf_put_leb128(out, run->n_changes);
    for (size_t i = 0; i < run->n_changes; i++) {
        marey__buf_put_leb128(out, changes[i].round - before);
        before = changes[i].round;
    }
    for (size_t i = 0; i < run->n_changes; i++)
        marey__buf_put_leb128(out, changes[i].now.thread);
    for (size_t i = 0; i < run->n_changes; i++)
        marey__buf_put_leb128(out, changes[i].what);
    for (size_t i = 0; i < run->n_changes; i++)
        if ((changes[i].what & MAREY__CHANGE_STACK) != 0)
            marey__buf_put_leb128(out, changes[i].now.stack);
    for (size_t i = 0; i < run->n_changes; i++)
        if ((changes[i].what & MAREY__CHANGE_FLAGS) != 0)
            marey__buf_put_leb128(out, changes[i].now.flags);
    for (size_t i = 0; i < run->n_changes; i++)
        if ((changes[i].what & MAREY__CHANGE_WAIT) != 0)
            marey__buf_put_leb128(out, changes[i].now.wait);
}

void marey__samples_pack_run(struct marey__buf *out, const struct marey__samples_run *run,
                             struct marey__samples_run_pack how)
{
    put_tag(out, 'A');
    marey__buf_put_leb128(out, how.process);
    put_times(out, run, shift_of(run, how.most_shift));
    put_weights(out, run);
    put_changes(out, run);
}
