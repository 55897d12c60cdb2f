/*
 * The log of a sampler: rounds are collected by process, as changes to the previous round, and written once a second as
 * one SAMPLES block, which begins with the definitions made since the previous block. In each block the first round of
 * a process has all its threads, so a lost block does not affect others.
 *
 * Ticks of this log are nanoseconds of CLOCK_MONOTONIC: a round takes some microseconds, so a faster clock would not
 * help.
 *
 * Entries of a block: a tag and LEB128 numbers. docs/formats/recording.md describes the bytes.
 *
 * Rounds of a process are stored in columns: first all times, then all changes, field by field. A thread unchanged
 * since the previous round takes no byte, so the cost of a round is its time. The time has a precision that fits into
 * one byte for a process with one or two threads, and into one more byte if many threads share it.
 */
#include <inttypes.h>
#include <unistd.h>

#include <zstd.h>

#include "sampler/store/internal.h"

/* How a thread changed since the previous round. */
enum change_kind {
    CHANGE_STACK = 1,
    CHANGE_FLAGS = 2,
    CHANGE_WAIT = 4,
    CHANGE_GONE = 8,
};
struct samples_change {
    uint32_t round; /* round of the process in this block, from 0 */
    uint32_t what;
    struct marey_samples_seen now;
};

/* Unwritten rounds of one process. */
struct marey__samples_run {
    uint64_t *at_ns, *weights_ns; /* 0: the time since the previous round */
    size_t n_rounds, at_cap, weights_cap;
    struct samples_change *changes;
    size_t n_changes, changes_cap;
    uint32_t *present; /* threads of the last round */
    size_t n_present, present_cap;
    uint64_t n_samples;
    uint64_t last_ns; /* time of the last round; 0: none */
};

/* A thread's state in the last round. */
struct marey__samples_known {
    struct marey_samples_seen seen;
    uint64_t turn; /* the last round with it; 0: not in this block */
};

/* ---- entries of a block ---- */

static void put_numbers(struct marey__buf *bytes, const uint64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        marey__buf_put_leb128(bytes, numbers[i]);
}

/* A tag and its numbers. */
#define PUT_ENTRY(bytes, tag, ...)                                                                 \
    do {                                                                                           \
        const uint64_t numbers_[] = {__VA_ARGS__};                                                 \
        marey__buf_put(bytes, tag, 1);                                                             \
        put_numbers(bytes, numbers_, MAREY__COUNT_OF(numbers_));                                   \
    } while (0)

static void put_text(struct marey__buf *bytes, const char *text)
{
    const size_t len = strlen(text);
    marey__buf_put_leb128(bytes, len);
    marey__buf_put(bytes, text, len);
}

/* ---- definitions ---- */

static void pack_process(struct marey__buf *out, const marey_samples *samples, uint32_t process)
{
    const struct marey_samples_process *const p = marey_samples_get_process(samples, process);
    PUT_ENTRY(out, "M", process, (uint64_t)p->pid, (uint64_t)p->ppid, p->start_time,
              (uint64_t)((int64_t)p->rank + 1), (uint64_t)((int64_t)p->worker + 1), p->python);
    put_text(out, p->command);
}

static void pack_thread(struct marey__buf *out, const marey_samples *samples, uint32_t thread)
{
    const struct marey_samples_thread *const t = marey_samples_get_thread(samples, thread);
    PUT_ENTRY(out, "T", thread, t->process, (uint64_t)t->tid, t->interpreter, t->is_main != 0);
    put_text(out, t->name);
}

static void pack_functions(struct marey__buf *out, const marey_samples *samples, uint32_t from)
{
    for (uint32_t i = from + 1; i <= marey_samples_n_functions(samples); i++) {
        const struct marey_samples_function *const f = marey_samples_get_function(samples, i);
        PUT_ENTRY(out, "F", i, (uint64_t)f->kind, f->first_line);
        put_text(out, f->name);
        put_text(out, f->file);
        put_text(out, f->module);
    }
}

static void pack_locations(struct marey__buf *out, const marey_samples *samples, uint32_t from)
{
    const uint32_t n = marey_samples_n_locations(samples);
    if (n > from)
        PUT_ENTRY(out, "L", (uint64_t)from + 1, n - from);
    for (uint32_t i = from + 1; i <= n; i++) {
        const struct marey_samples_location l = marey_samples_get_location(samples, i);
        marey__buf_put_leb128(out, l.function);
        marey__buf_put_leb128(out, l.line);
    }
}

/* The parent is usually the previous stack. */
static void pack_stacks(struct marey__buf *out, const marey_samples *samples, uint32_t from)
{
    const uint32_t n = marey_samples_n_stacks(samples);
    if (n > from)
        PUT_ENTRY(out, "K", (uint64_t)from + 1, n - from);
    for (uint32_t i = from + 1; i <= n; i++) {
        const struct marey_samples_stack k = marey_samples_get_stack(samples, i);
        marey__buf_put_leb128(out, k.parent != 0 ? i - k.parent : 0);
        marey__buf_put_leb128(out, k.location);
    }
}

static void pack_counts(struct marey__buf *out, const marey_samples *samples, uint32_t process)
{
    const struct marey_samples_counts counts = marey_samples_get_counts(samples, process);
    uint64_t all[sizeof counts / sizeof(uint64_t)]; /* in the order of the struct */
    memcpy(all, &counts, sizeof all);
    PUT_ENTRY(out, "O", process, MAREY__COUNT_OF(all));
    put_numbers(out, all, MAREY__COUNT_OF(all));
}

/* ---- rounds ---- */

/* floor(log2(value)); 0 for 0. */
static unsigned log2_of(uint64_t value)
{
    return value > 1 ? 63u - (unsigned)__builtin_clzll(value) : 0;
}

/*
 * Intervals are random, so their bits cannot be compressed. With units of 1/12 to 1/24 of the typical interval a time
 * takes about 5.5 bits; three threads or more justify seven more bits.
 */
static unsigned shift_of(const struct marey__samples_run *run, unsigned most)
{
    enum { UNITS = 12, MORE = 7, MANY = 3, LEAST_FOR_MANY = 8 };
    const uint64_t span = run->at_ns[run->n_rounds - 1] - run->at_ns[0];
    unsigned shift = most;
    if (run->n_rounds > 1)
        shift = MAREY__MIN(most, log2_of(span / (run->n_rounds - 1) / UNITS));
    if (run->n_samples < MANY * (uint64_t)run->n_rounds || shift <= LEAST_FOR_MANY)
        return shift;
    return MAREY__MAX(shift - MORE, (unsigned)LEAST_FOR_MANY);
}

static void put_times(struct marey__buf *out, const struct marey__samples_run *run, unsigned shift)
{
    const uint64_t half = shift > 0 ? UINT64_C(1) << (shift - 1) : 0;
    uint64_t before = 0;
    marey__buf_put_leb128(out, shift);
    marey__buf_put_leb128(out, run->n_rounds);
    for (size_t i = 0; i < run->n_rounds; i++) {
        const uint64_t at = (run->at_ns[i] + half) >> shift;
        marey__buf_put_leb128(out, at - before);
        before = at;
    }
}

/* Writes where the weight of rounds changes: samplers give all rounds one weight, or none. */
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
    const struct samples_change *const changes = run->changes;
    uint32_t before = 0;
    marey__buf_put_leb128(out, run->n_changes);
    for (size_t i = 0; i < run->n_changes; i++) {
        marey__buf_put_leb128(out, changes[i].round - before);
        before = changes[i].round;
    }
#define PUT_COLUMN(field, condition)                                                               \
    for (size_t i = 0; i < run->n_changes; i++)                                                    \
        if (condition)                                                                             \
            marey__buf_put_leb128(out, changes[i].field);
    PUT_COLUMN(now.thread, true)
    PUT_COLUMN(what, true)
    PUT_COLUMN(now.stack, (changes[i].what & CHANGE_STACK) != 0)
    PUT_COLUMN(now.flags, (changes[i].what & CHANGE_FLAGS) != 0)
    PUT_COLUMN(now.wait, (changes[i].what & CHANGE_WAIT) != 0)
#undef PUT_COLUMN
}

static void pack_run(struct marey__buf *out, const struct marey__samples_run *run, uint32_t process,
                     unsigned most_shift)
{
    PUT_ENTRY(out, "A", process);
    put_times(out, run, shift_of(run, most_shift));
    put_weights(out, run);
    put_changes(out, run);
}

/* ---- the log ---- */

enum {
    MOST_SHIFT = 16,        /* times are accurate to 33 us */
    MANY_ROUNDS = 1 << 16,  /* maximum of collected rounds, and of changes */
    MANY_SAMPLES = 1 << 22, /* maximum of samples; readers refuse blocks with twice as many */
    FEW_SAMPLES = 1000,     /* that may wait for another second */
    ZSTD_LEVEL = 3,
};
static const uint64_t second_ns = 1000000000;

/* ---- opening ---- */

static marey_status append_opening(struct marey__samples_log *log,
                                   const struct marey__samples_log_options *options)
{
    struct marey__buf texts MAREY__FINALLY(marey__buf_fini) = {0};
    struct marey__buf command MAREY__FINALLY(marey__buf_fini) = {0};
    char run_id[64] = "";
    marey__identity_command(&command);
    marey__buf_put(&command, "", 1);
    marey__identity_describe(&texts);
    if (marey__identity_run_id(run_id, sizeof run_id))
        marey__texts_put(&texts, MAREY__KEY_RUN_ID, run_id);
    marey__texts_put(&texts, MAREY__KEY_COMMAND, command.failed ? "" : command.data);
    marey__texts_put(&texts, MAREY__KEY_CLOCK, "monotonic");
    marey__texts_put(&texts, MAREY__KEY_TICK_HZ, "1000000000");
    marey__texts_put(&texts, MAREY__KEY_POOL, "");
    marey__texts_put(&texts, MAREY__KEY_ROLE, MAREY__ROLE_SAMPLER);
    marey__texts_printf(&texts, MAREY__KEY_SAMPLING,
                        "rate=%.6g\nstrategy=%s\nnative=%s\nseed=%" PRIu64 "%s", options->rate_hz,
                        options->strategy != NULL ? options->strategy : "",
                        options->is_native ? "yes" : "no", options->seed,
                        options->has_pauses ? "\npauses=yes" : "");
    return marey__log_append_texts(&log->file, MAREY__BLOCK_LOG, &texts);
}

static marey_status append_moment(struct marey__samples_log *log, uint64_t now_ns)
{
    log->moment_ns = now_ns;
    return marey__log_append_moment(&log->file, false);
}

static void destroy(struct marey__samples_log *log)
{
    for (size_t i = 0; i < log->n_runs; i++)
        MAREY__FREE_ALL(log->runs[i].at_ns, log->runs[i].weights_ns, log->runs[i].changes,
                        log->runs[i].present);
    MAREY__FREE_ALL(log->runs, log->known, log->thread_names, log->processes_written, log->words);
    marey__packer_destroy(log->packer);
    marey__buf_fini(&log->raw);
    marey__buf_fini(&log->packed);
    ZSTD_freeCCtx(log->zstd);
    marey__log_close(&log->file);
    marey__free(log);
}

marey_status marey__samples_log_open(const char *directory,
                                     const struct marey__samples_log_options *options,
                                     const marey_samples *samples, struct marey__samples_log **out)
{
    struct marey__samples_log *const log = marey__calloc(1, sizeof *log);
    MAREY__TRY_MEMORY(log != NULL);
    log->file.file.fd = -1;
    log->samples = samples;
    log->most_shift = options->resolution_ns == 0
                          ? (unsigned)MOST_SHIFT
                          : log2_of(MAREY__MIN(options->resolution_ns, second_ns));
    log->zstd = ZSTD_createCCtx();
    char host[128], name[256];
    marey__identity_host(host, sizeof host);
    snprintf(name, sizeof name, "r0-%s-%d-%08" PRIx32 ".klog", host, (int)getpid(),
             (uint32_t)marey__identity_random());
    marey_status status =
        log->zstd == NULL ? marey__no_memory() : marey__log_create(&log->file, directory, name);
    const uint64_t now_ns = marey__clock_ns(CLOCK_MONOTONIC);
    log->written_ns = log->counted_ns = now_ns;
    if (status == MAREY_OK)
        status = append_opening(log, options);
    if (status == MAREY_OK)
        status = append_moment(log, now_ns);
    if (status == MAREY_OK)
        *out = log;
    else
        destroy(log);
    return status;
}

/* ---- a block ---- */

static bool is_written(const struct marey_samples_process *written,
                       const struct marey_samples_process *now)
{
    return written->command == now->command && written->rank == now->rank &&
           written->worker == now->worker && written->python == now->python;
}

/* Strings in the store do not move until they change, so another address means another string. */
static void put_processes_and_threads(struct marey__samples_log *log)
{
    const marey_samples *const s = log->samples;
    const uint32_t n_processes = marey_samples_n_processes(s), n_threads = marey_samples_n_threads(s);
    if (!marey__grow(&log->processes_written, &log->processes_told_cap, n_processes,
                     sizeof *log->processes_written) ||
        !marey__grow(&log->thread_names, &log->thread_names_cap, n_threads,
                     sizeof *log->thread_names)) {
        log->raw.failed = true;
        return;
    }
    for (uint32_t i = 0; i < n_processes; i++) {
        const struct marey_samples_process *const p = marey_samples_get_process(s, i + 1);
        if (i >= log->n_processes || !is_written(&log->processes_written[i], p))
            pack_process(&log->raw, s, i + 1);
        log->processes_written[i] = *p;
    }
    for (uint32_t i = 0; i < n_threads; i++) {
        const char *const name = marey_samples_get_thread(s, i + 1)->name;
        if (i >= log->n_threads || log->thread_names[i] != name)
            pack_thread(&log->raw, s, i + 1);
        log->thread_names[i] = name;
    }
    log->n_processes = n_processes;
    log->n_threads = n_threads;
}

static void put_definitions(struct marey__samples_log *log)
{
    const marey_samples *const s = log->samples;
    put_processes_and_threads(log);
    pack_functions(&log->raw, s, log->n_functions);
    pack_locations(&log->raw, s, log->n_locations);
    pack_stacks(&log->raw, s, log->n_stacks);
    log->n_functions = marey_samples_n_functions(s);
    log->n_locations = marey_samples_n_locations(s);
    log->n_stacks = marey_samples_n_stacks(s);
}

static void put_runs(struct marey__samples_log *log, struct marey__block *block)
{
    for (size_t i = 0; i < log->n_runs; i++) {
        struct marey__samples_run *const run = &log->runs[i];
        if (run->n_rounds == 0)
            continue;
        pack_run(&log->raw, run, (uint32_t)i + 1, log->most_shift);
        if (block->first_tick == 0 || run->at_ns[0] < block->first_tick)
            block->first_tick = run->at_ns[0];
        block->last_tick = MAREY__MAX(block->last_tick, run->last_ns);
        for (size_t k = 0; k < run->n_present; k++)
            log->known[run->present[k] - 1].turn = 0;
        run->n_rounds = run->n_changes = run->n_present = 0;
        run->n_samples = 0;
    }
    log->n_rounds = log->n_changes = 0;
    log->n_samples = 0;
}

static marey_status append_block(struct marey__samples_log *log, struct marey__block *block)
{
    MAREY__TRY_MEMORY(!log->raw.failed);
    if (log->raw.len == 0)
        return MAREY_OK;
    log->n_blocks++;
    log->packed.len = 0;
    const size_t bound = ZSTD_compressBound(log->raw.len);
    void *const into = marey__buf_extend(&log->packed, bound);
    MAREY__TRY_MEMORY(into != NULL);
    const size_t n =
        ZSTD_compressCCtx(log->zstd, into, bound, log->raw.data, log->raw.len, ZSTD_LEVEL);
    if (ZSTD_isError(n) || n >= log->raw.len || !marey__packing_is_sound(log->raw.len, n))
        return marey__log_append(&log->file, block, log->raw.data, log->raw.len);
    block->flags = MAREY__FLAG_ZSTD;
    block->raw_len = (uint32_t)log->raw.len;
    return marey__log_append(&log->file, block, into, n);
}

static marey_status write_all(struct marey__samples_log *log, uint64_t now_ns, bool with_counts)
{
    struct marey__block block = {.type = MAREY__BLOCK_SAMPLES, .sequence = log->n_blocks};
    log->written_ns = now_ns;
    log->raw.len = 0;
    MAREY_TRY(marey__samples_log_write_counters(log));
    put_definitions(log);
    put_runs(log, &block);
    if (with_counts)
        log->counted_ns = now_ns;
    for (uint32_t i = 0; with_counts && i <= marey_samples_n_processes(log->samples); i++)
        pack_counts(&log->raw, log->samples, i);
    return append_block(log, &block);
}

/* ---- rounds ---- */

static bool put_change(struct marey__samples_log *log, struct marey__samples_run *run,
                       uint32_t what, const struct marey_samples_seen *now)
{
    if (!MAREY__PUSH(run->changes, run->n_changes, run->changes_cap,
                     (struct samples_change){(uint32_t)run->n_rounds, what, *now}))
        return false;
    log->n_changes++;
    return true;
}

static uint32_t difference(const struct marey_samples_seen *a, const struct marey_samples_seen *b)
{
    return (a->stack != b->stack ? CHANGE_STACK : 0) | (a->flags != b->flags ? CHANGE_FLAGS : 0) |
           (a->wait != b->wait ? CHANGE_WAIT : 0);
}

static bool put_new(struct marey__samples_log *log, struct marey__samples_run *run,
                    const struct marey_samples_seen *now)
{
    static const struct marey_samples_seen nothing;
    const uint32_t what = difference(now, &nothing);
    if (!marey__grow(&run->present, &run->present_cap, run->n_present + 1, sizeof *run->present) ||
        !put_change(log, run, what, now))
        return false;
    run->present[run->n_present++] = now->thread;
    return true;
}

static bool take_seen(struct marey__samples_log *log, struct marey__samples_run *run,
                      const struct marey_samples_seen *now)
{
    struct marey__samples_known *const known = &log->known[now->thread - 1];
    const struct marey_samples_seen before = known->seen;
    const bool is_new = known->turn == 0;
    known->seen = *now;
    known->turn = log->turn;
    if (is_new)
        return put_new(log, run, now);
    const uint32_t what = difference(now, &before);
    return what == 0 || put_change(log, run, what, now);
}

/* Records threads of the previous round that are missing in this one. */
static bool put_gone(struct marey__samples_log *log, struct marey__samples_run *run)
{
    size_t n = 0;
    for (size_t i = 0; i < run->n_present; i++) {
        struct marey__samples_known *const known = &log->known[run->present[i] - 1];
        if (known->turn == log->turn) {
            run->present[n++] = run->present[i];
            continue;
        }
        if (!put_change(log, run, CHANGE_GONE, &known->seen))
            return false;
        known->turn = 0;
    }
    run->n_present = n;
    return true;
}

/* The weight if readers cannot derive it: written once, valid for all rounds until it changes. */
static uint64_t weight_to_write(const struct marey__samples_run *run,
                                const struct marey_samples_round *round)
{
    const uint64_t gap = run->last_ns != 0 ? round->at_ns - run->last_ns : 0;
    const uint64_t weight = round->weight_ns;
    const uint64_t off = weight > gap ? weight - gap : gap - weight;
    if (run->n_rounds != 0 && weight == run->weights_ns[run->n_rounds - 1])
        return weight;
    return off > (UINT64_C(1) << MOST_SHIFT) && off > gap / 32 ? weight : 0;
}

static bool take_round(struct marey__samples_log *log, const struct marey_samples_round *round)
{
    if (!marey__extend(&log->runs, &log->n_runs, &log->runs_cap, round->process, sizeof *log->runs))
        return false;
    struct marey__samples_run *const run = &log->runs[round->process - 1];
    if (!marey__extend(&log->known, &log->n_known, &log->known_cap,
                       marey_samples_n_threads(log->samples), sizeof *log->known) ||
        !marey__grow(&run->at_ns, &run->at_cap, run->n_rounds + 1, sizeof *run->at_ns) ||
        !marey__grow(&run->weights_ns, &run->weights_cap, run->n_rounds + 1, sizeof *run->weights_ns))
        return false;
    size_t n = 0;
    log->turn++;
    for (size_t i = 0; i < round->n_seen; i++) {
        const struct marey_samples_seen *const seen = &round->seen[i];
        /* Skip a duplicate thread, or one without a number due to out of memory. */
        if (seen->thread == 0 || seen->thread > log->n_known ||
            log->known[seen->thread - 1].turn == log->turn)
            continue;
        if (!take_seen(log, run, seen))
            return false;
        n++;
    }
    if (n != run->n_present && !put_gone(log, run))
        return false;
    run->at_ns[run->n_rounds] = MAREY__MAX(round->at_ns, run->last_ns);
    run->weights_ns[run->n_rounds] = round->weight_ns != 0 ? weight_to_write(run, round) : 0;
    run->last_ns = run->at_ns[run->n_rounds++];
    run->n_samples += n;
    log->n_samples += n;
    log->n_rounds++;
    return true;
}

marey_status marey__samples_log_round(struct marey__samples_log *log,
                                      const struct marey_samples_round *round)
{
    if (round->process == 0 || round->process > marey_samples_n_processes(log->samples))
        return marey__fail(MAREY_EINVAL, "a round of a process that the samples do not have");
    MAREY__TRY_MEMORY(take_round(log, round));
    if (log->n_rounds < MANY_ROUNDS && log->n_changes < MANY_ROUNDS && log->n_samples < MANY_SAMPLES)
        return MAREY_OK;
    return write_all(log, marey__clock_ns(CLOCK_MONOTONIC), false);
}

marey_status marey__samples_log_tick(struct marey__samples_log *log)
{
    enum { COUNTS_S = 5, MOMENT_S = 10 };
    const uint64_t now_ns = marey__clock_ns(CLOCK_MONOTONIC), age_ns = now_ns - log->written_ns;
    if (marey__log_is_broken(&log->file))
        return marey__fail(MAREY_EIO, "%s", log->file.failure);
    if (age_ns < second_ns || (age_ns < 2 * second_ns && log->n_samples < FEW_SAMPLES))
        return MAREY_OK;
    if (now_ns - log->moment_ns >= MOMENT_S * second_ns)
        MAREY_TRY(append_moment(log, now_ns));
    return write_all(log, now_ns, now_ns - log->counted_ns >= COUNTS_S * second_ns);
}

/* ---- the rest ---- */

uint64_t marey__samples_log_size(struct marey__samples_log *log)
{
    return marey__log_size(&log->file);
}

marey_status marey__samples_log_close(struct marey__samples_log *log, const char *how)
{
    if (log == NULL)
        return MAREY_OK;
    struct marey__buf texts MAREY__FINALLY(marey__buf_fini) = {0};
    const uint64_t now_ns = marey__clock_ns(CLOCK_MONOTONIC);
    marey_status status = write_all(log, now_ns, true);
    if (status == MAREY_OK)
        status = append_moment(log, now_ns);
    marey__texts_put(&texts, MAREY__KEY_END, how);
    if (status == MAREY_OK)
        status = marey__log_append_texts(&log->file, MAREY__BLOCK_END, &texts);
    destroy(log);
    return status;
}
