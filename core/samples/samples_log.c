/*
 * The log of a sampler: rounds are gathered by process, as changes to the round before, and written once a second as one
 * block SAMPLES, which begins with whatever was defined since the block before. In each block the first round of a process
 * tells of all its threads, so that a block that is lost takes no other with it.
 *
 * Ticks of this log are nanoseconds of CLOCK_MONOTONIC: what a round costs is some microseconds, and a clock of its own would
 * not pay.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "samples/samples_log.h"

enum {
    MOST_SHIFT = 16,        /* times are known to 33 us, one way or the other */
    MANY_ROUNDS = 1 << 16,  /* of these, and of changes, as many are gathered */
    MANY_SAMPLES = 1 << 22, /* and so many samples; readers refuse twice as many in a block */
    FEW_SAMPLES = 1000,     /* that are left for another second */
    ZSTD_LEVEL = 3,
};
static const uint64_t second_ns = 1000000000;

/* ---- opening ---- */

static void put_options(struct kymo__buf *texts, const struct kymo__samples_log_options *options)
{
    kymo__texts_printf(texts, KYMO__KEY_SAMPLING, "rate=%.6g\nstrategy=%s\nnative=%s\nseed=%" PRIu64,
                       options->rate_hz, options->strategy != NULL ? options->strategy : "",
                       options->is_native ? "yes" : "no", options->seed);
}

static kymo_status append_opening(struct kymo__samples_log *log,
                                  const struct kymo__samples_log_options *options)
{
    struct kymo__buf texts = {0}, command = {0};
    char host[256], boot[64] = "", run_id[64] = "";
    kymo__identity_host(host, sizeof host);
    kymo__identity_boot_id(boot, sizeof boot);
    kymo__identity_command(&command);
    kymo__buf_put(&command, "", 1);
    kymo__texts_put(&texts, KYMO__KEY_VERSION, KYMO_VERSION);
    kymo__texts_printf(&texts, KYMO__KEY_PID, "%d", (int)getpid());
    kymo__texts_printf(&texts, KYMO__KEY_PPID, "%d", (int)getppid());
    kymo__texts_printf(&texts, KYMO__KEY_START_TIME, "%" PRIu64, kymo__identity_start_time(getpid()));
    kymo__texts_printf(&texts, KYMO__KEY_PID_NS, "%" PRIu64, kymo__identity_pid_namespace());
    kymo__texts_put(&texts, KYMO__KEY_BOOT_ID, boot);
    kymo__texts_put(&texts, KYMO__KEY_HOST, host);
    if (kymo__identity_run_id(run_id, sizeof run_id))
        kymo__texts_put(&texts, KYMO__KEY_RUN_ID, run_id);
    kymo__texts_put(&texts, KYMO__KEY_COMMAND, command.failed ? "" : command.data);
    kymo__texts_put(&texts, KYMO__KEY_CLOCK, "monotonic");
    kymo__texts_put(&texts, KYMO__KEY_TICK_HZ, "1000000000");
    kymo__texts_put(&texts, KYMO__KEY_POOL, "");
    kymo__texts_put(&texts, KYMO__KEY_ROLE, KYMO__ROLE_SAMPLER);
    put_options(&texts, options);
    const kymo_status status = kymo__log_append_texts(&log->file, KYMO__BLOCK_LOG, &texts);
    kymo__buf_fini(&command);
    kymo__buf_fini(&texts);
    return status;
}

static kymo_status append_moment(struct kymo__samples_log *log, uint64_t now_ns)
{
    log->moment_ns = now_ns;
    return kymo__log_append_moment(&log->file, false);
}

static void destroy(struct kymo__samples_log *log)
{
    for (size_t i = 0; i < log->n_runs; i++) {
        kymo__free(log->runs[i].at_ns);
        kymo__free(log->runs[i].weights_ns);
        kymo__free(log->runs[i].changes);
        kymo__free(log->runs[i].present);
    }
    kymo__free(log->runs);
    kymo__free(log->known);
    kymo__free(log->thread_names);
    kymo__free(log->processes_told);
    kymo__buf_fini(&log->raw);
    kymo__buf_fini(&log->packed);
    ZSTD_freeCCtx(log->zstd);
    kymo__log_close(&log->file);
    kymo__free(log);
}

static unsigned shift_of_resolution(uint64_t resolution_ns)
{
    return resolution_ns == 0 ? (unsigned)MOST_SHIFT
                              : 63u - (unsigned)__builtin_clzll(KYMO__MIN(resolution_ns, second_ns));
}

kymo_status kymo__samples_log_open(const char *directory,
                                   const struct kymo__samples_log_options *options,
                                   const kymo_samples *samples, struct kymo__samples_log **out)
{
    struct kymo__samples_log *const log = kymo__calloc(1, sizeof *log);
    if (log == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for the log of a sampler");
    log->file.file.fd = -1;
    log->samples = samples;
    log->most_shift = shift_of_resolution(options->resolution_ns);
    log->zstd = ZSTD_createCCtx();
    char host[128], name[256];
    kymo__identity_host(host, sizeof host);
    snprintf(name, sizeof name, "r0-%s-%d-%08" PRIx32 ".klog", host, (int)getpid(),
             (uint32_t)kymo__identity_random());
    kymo_status status = log->zstd == NULL
                             ? kymo__fail(KYMO_ENOMEM, "no memory for the log of a sampler")
                             : kymo__log_create(&log->file, directory, name);
    const uint64_t now_ns = kymo__clock_ns(CLOCK_MONOTONIC);
    log->written_ns = log->counted_ns = now_ns;
    if (status == KYMO_OK)
        status = append_opening(log, options);
    if (status == KYMO_OK)
        status = append_moment(log, now_ns);
    if (status == KYMO_OK)
        *out = log;
    else
        destroy(log);
    return status;
}

/* ---- a block ---- */

static bool is_told(const struct kymo_samples_process *told, const struct kymo_samples_process *now)
{
    return told->command == now->command && told->rank == now->rank &&
           told->worker == now->worker && told->python == now->python;
}

/* Texts of the store stay where they are until they change: another address is another text. */
static void put_processes_and_threads(struct kymo__samples_log *log)
{
    const kymo_samples *const s = log->samples;
    const uint32_t n_processes = kymo_samples_n_processes(s), n_threads = kymo_samples_n_threads(s);
    if (!kymo__grow(&log->processes_told, &log->processes_told_cap, n_processes,
                    sizeof *log->processes_told) ||
        !kymo__grow(&log->thread_names, &log->thread_names_cap, n_threads, sizeof *log->thread_names)) {
        log->raw.failed = true;
        return;
    }
    for (uint32_t i = 0; i < n_processes; i++) {
        const struct kymo_samples_process *const p = kymo_samples_get_process(s, i + 1);
        if (i >= log->n_processes || !is_told(&log->processes_told[i], p))
            kymo__samples_pack_process(&log->raw, s, i + 1);
        log->processes_told[i] = *p;
    }
    for (uint32_t i = 0; i < n_threads; i++) {
        const char *const name = kymo_samples_get_thread(s, i + 1)->name;
        if (i >= log->n_threads || log->thread_names[i] != name)
            kymo__samples_pack_thread(&log->raw, s, i + 1);
        log->thread_names[i] = name;
    }
    log->n_processes = n_processes;
    log->n_threads = n_threads;
}

static void put_definitions(struct kymo__samples_log *log)
{
    const kymo_samples *const s = log->samples;
    put_processes_and_threads(log);
    kymo__samples_pack_functions(&log->raw, s, log->n_functions);
    kymo__samples_pack_locations(&log->raw, s, log->n_locations);
    kymo__samples_pack_stacks(&log->raw, s, log->n_stacks);
    log->n_functions = kymo_samples_n_functions(s);
    log->n_locations = kymo_samples_n_locations(s);
    log->n_stacks = kymo_samples_n_stacks(s);
}

static void put_counts(struct kymo__samples_log *log, uint64_t now_ns)
{
    log->counted_ns = now_ns;
    for (uint32_t i = 0; i <= kymo_samples_n_processes(log->samples); i++)
        kymo__samples_pack_counts(&log->raw, log->samples, i);
}

static void put_runs(struct kymo__samples_log *log, struct kymo__block *block)
{
    for (size_t i = 0; i < log->n_runs; i++) {
        struct kymo__samples_run *const run = &log->runs[i];
        if (run->n_rounds == 0)
            continue;
        const struct kymo__samples_run_pack how = {(uint32_t)i + 1, log->most_shift};
        kymo__samples_pack_run(&log->raw, run, how);
        if (block->first_tick == 0 || run->at_ns[0] < block->first_tick)
            block->first_tick = run->at_ns[0];
        block->last_tick = KYMO__MAX(block->last_tick, run->last_ns);
        for (size_t k = 0; k < run->n_present; k++)
            log->known[run->present[k] - 1].turn = 0;
        run->n_rounds = run->n_changes = run->n_present = 0;
        run->n_samples = 0;
    }
    log->n_rounds = log->n_changes = 0;
    log->n_samples = 0;
}

static kymo_status append_block(struct kymo__samples_log *log, struct kymo__block *block)
{
    if (log->raw.failed)
        return kymo__fail(KYMO_ENOMEM, "no memory for a block of samples");
    if (log->raw.len == 0)
        return KYMO_OK;
    log->n_blocks++;
    log->packed.len = 0;
    const size_t bound = ZSTD_compressBound(log->raw.len);
    void *const into = kymo__buf_extend(&log->packed, bound);
    if (into == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for a block of samples");
    const size_t n =
        ZSTD_compressCCtx(log->zstd, into, bound, log->raw.data, log->raw.len, ZSTD_LEVEL);
    if (ZSTD_isError(n) || n >= log->raw.len || !kymo__packing_is_sound(log->raw.len, n))
        return kymo__log_append(&log->file, block, log->raw.data, log->raw.len);
    block->flags = KYMO__FLAG_ZSTD;
    block->raw_len = (uint32_t)log->raw.len;
    return kymo__log_append(&log->file, block, into, n);
}

static kymo_status write_all(struct kymo__samples_log *log, uint64_t now_ns, bool with_counts)
{
    struct kymo__block block = {.type = KYMO__BLOCK_SAMPLES, .sequence = log->n_blocks};
    log->written_ns = now_ns;
    log->raw.len = 0;
    put_definitions(log);
    put_runs(log, &block);
    if (with_counts)
        put_counts(log, now_ns);
    return append_block(log, &block);
}

/* ---- rounds ---- */

static bool grow_known(struct kymo__samples_log *log, size_t n)
{
    if (n <= log->n_known)
        return true;
    if (!kymo__grow(&log->known, &log->known_cap, n, sizeof *log->known))
        return false;
    memset(log->known + log->n_known, 0, (n - log->n_known) * sizeof *log->known);
    log->n_known = n;
    return true;
}

static struct kymo__samples_run *run_of(struct kymo__samples_log *log, uint32_t process)
{
    if (process > log->n_runs) {
        if (!kymo__grow(&log->runs, &log->runs_cap, process, sizeof *log->runs))
            return NULL;
        memset(log->runs + log->n_runs, 0, (process - log->n_runs) * sizeof *log->runs);
        log->n_runs = process;
    }
    return &log->runs[process - 1];
}

static bool put_change(struct kymo__samples_log *log, struct kymo__samples_run *run, uint32_t what,
                       const struct kymo_samples_seen *now)
{
    if (!kymo__grow(&run->changes, &run->changes_cap, run->n_changes + 1, sizeof *run->changes))
        return false;
    run->changes[run->n_changes++] =
        (struct kymo__samples_change){(uint32_t)run->n_rounds, what, *now};
    log->n_changes++;
    return true;
}

static bool put_new(struct kymo__samples_log *log, struct kymo__samples_run *run,
                    const struct kymo_samples_seen *now)
{
    const uint32_t what = (now->stack != 0 ? KYMO__CHANGE_STACK : 0) |
                          (now->flags != 0 ? KYMO__CHANGE_FLAGS : 0) |
                          (now->wait != 0 ? KYMO__CHANGE_WAIT : 0);
    if (!kymo__grow(&run->present, &run->present_cap, run->n_present + 1, sizeof *run->present) ||
        !put_change(log, run, what, now))
        return false;
    run->present[run->n_present++] = now->thread;
    return true;
}

static bool take_seen(struct kymo__samples_log *log, struct kymo__samples_run *run,
                      const struct kymo_samples_seen *now)
{
    struct kymo__samples_known *const known = &log->known[now->thread - 1];
    const struct kymo_samples_seen before = known->seen;
    const bool is_new = known->turn == 0;
    known->seen = *now;
    known->turn = log->turn;
    if (is_new)
        return put_new(log, run, now);
    const uint32_t what = (now->stack != before.stack ? KYMO__CHANGE_STACK : 0) |
                          (now->flags != before.flags ? KYMO__CHANGE_FLAGS : 0) |
                          (now->wait != before.wait ? KYMO__CHANGE_WAIT : 0);
    return what == 0 || put_change(log, run, what, now);
}

/* Threads that were in the round before and are not in this one. */
static bool put_gone(struct kymo__samples_log *log, struct kymo__samples_run *run)
{
    size_t n = 0;
    for (size_t i = 0; i < run->n_present; i++) {
        struct kymo__samples_known *const known = &log->known[run->present[i] - 1];
        if (known->turn == log->turn) {
            run->present[n++] = run->present[i];
            continue;
        }
        if (!put_change(log, run, KYMO__CHANGE_GONE, &known->seen))
            return false;
        known->turn = 0;
    }
    run->n_present = n;
    return true;
}

/* What the reader would not find by itself: it is told once, and holds for all rounds until it changes. */
static uint64_t weight_to_tell(const struct kymo__samples_run *run,
                               const struct kymo_samples_round *round)
{
    const uint64_t gap = run->last_ns != 0 ? round->at_ns - run->last_ns : 0;
    const uint64_t weight = round->weight_ns;
    const uint64_t off = weight > gap ? weight - gap : gap - weight;
    if (run->n_rounds != 0 && weight == run->weights_ns[run->n_rounds - 1])
        return weight;
    return off > (UINT64_C(1) << MOST_SHIFT) && off > gap / 32 ? weight : 0;
}

static bool take_round(struct kymo__samples_log *log, const struct kymo_samples_round *round)
{
    struct kymo__samples_run *const run = run_of(log, round->process);
    if (run == NULL || !grow_known(log, kymo_samples_n_threads(log->samples)) ||
        !kymo__grow(&run->at_ns, &run->at_cap, run->n_rounds + 1, sizeof *run->at_ns) ||
        !kymo__grow(&run->weights_ns, &run->weights_cap, run->n_rounds + 1, sizeof *run->weights_ns))
        return false;
    size_t n = 0;
    log->turn++;
    for (size_t i = 0; i < round->n_seen; i++) {
        const struct kymo_samples_seen *const seen = &round->seen[i];
        /* A thread that came twice, or has no number as memory was out. */
        if (seen->thread == 0 || seen->thread > log->n_known ||
            log->known[seen->thread - 1].turn == log->turn)
            continue;
        if (!take_seen(log, run, seen))
            return false;
        n++;
    }
    if (n != run->n_present && !put_gone(log, run))
        return false;
    run->at_ns[run->n_rounds] = KYMO__MAX(round->at_ns, run->last_ns);
    run->weights_ns[run->n_rounds] = round->weight_ns != 0 ? weight_to_tell(run, round) : 0;
    run->last_ns = run->at_ns[run->n_rounds++];
    run->n_samples += n;
    log->n_samples += n;
    log->n_rounds++;
    return true;
}

kymo_status kymo__samples_log_round(struct kymo__samples_log *log,
                                    const struct kymo_samples_round *round)
{
    if (round->process == 0 || round->process > kymo_samples_n_processes(log->samples))
        return kymo__fail(KYMO_EINVAL, "a round of a process that the samples do not have");
    if (!take_round(log, round))
        return kymo__fail(KYMO_ENOMEM, "no memory for a round of samples");
    if (log->n_rounds < MANY_ROUNDS && log->n_changes < MANY_ROUNDS && log->n_samples < MANY_SAMPLES)
        return KYMO_OK;
    return write_all(log, kymo__clock_ns(CLOCK_MONOTONIC), false);
}

kymo_status kymo__samples_log_tick(struct kymo__samples_log *log)
{
    enum { COUNTS_S = 5, MOMENT_S = 10 };
    const uint64_t now_ns = kymo__clock_ns(CLOCK_MONOTONIC), age_ns = now_ns - log->written_ns;
    if (kymo__log_is_broken(&log->file))
        return kymo__fail(KYMO_EIO, "%s", log->file.failure);
    if (age_ns < second_ns || (age_ns < 2 * second_ns && log->n_samples < FEW_SAMPLES))
        return KYMO_OK;
    if (now_ns - log->moment_ns >= MOMENT_S * second_ns)
        KYMO_TRY(append_moment(log, now_ns));
    return write_all(log, now_ns, now_ns - log->counted_ns >= COUNTS_S * second_ns);
}

/* ---- the rest ---- */

void kymo__samples_log_note(struct kymo__samples_log *log, const char *sentence)
{
    struct kymo__buf texts = {0};
    kymo__texts_put(&texts, KYMO__KEY_NOTE, sentence);
    /* A log that cannot be written to says so with the next round. */
    if (kymo__log_append_texts(&log->file, KYMO__BLOCK_LOG, &texts) != KYMO_OK)
        log->raw.failed = log->raw.failed || texts.failed;
    kymo__buf_fini(&texts);
}

const char *kymo__samples_log_path(const struct kymo__samples_log *log)
{
    return log->file.path;
}

uint64_t kymo__samples_log_size(struct kymo__samples_log *log)
{
    return kymo__log_size(&log->file);
}

static kymo_status append_end(struct kymo__samples_log *log, const char *how)
{
    struct kymo__buf texts = {0};
    kymo__texts_put(&texts, KYMO__KEY_END, how);
    const kymo_status status = kymo__log_append_texts(&log->file, KYMO__BLOCK_END, &texts);
    kymo__buf_fini(&texts);
    return status;
}

kymo_status kymo__samples_log_close(struct kymo__samples_log *log, const char *how)
{
    if (log == NULL)
        return KYMO_OK;
    const uint64_t now_ns = kymo__clock_ns(CLOCK_MONOTONIC);
    kymo_status status = write_all(log, now_ns, true);
    if (status == KYMO_OK)
        status = append_moment(log, now_ns);
    if (status == KYMO_OK)
        status = append_end(log, how);
    destroy(log);
    return status;
}
