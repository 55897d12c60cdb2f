/*
 * Writes a process's log: its identity, its names, then its lanes, one block at a time, always of the lane that is
 * furthest behind. The blocks are then in roughly the order a recorder would write, and reading all lanes in order of
 * time is mostly sequential.
 */
#include "import/sink/internal.h"

/* ---- texts ---- */

static const char *first_text(const char *said, const char *otherwise)
{
    return said != NULL ? said : otherwise != NULL ? otherwise : "";
}

static marey_status write_identity(struct marey__log *log, const marey__sink_process *process)
{
    const marey__sink *sink = process->sink;
    const struct {
        const char *key, *value;
    } texts[] = {
        {MAREY__KEY_VERSION, MAREY_VERSION},
        {MAREY__KEY_HOST, first_text(process->host, NULL)},
        {MAREY__KEY_COMMAND, first_text(process->command, sink->options.command)},
        {MAREY__KEY_SOURCE, first_text(process->source, sink->options.source)},
        {MAREY__KEY_RUN_ID, first_text(process->run_id, sink->options.run_id)},
        {MAREY__KEY_BACKEND, first_text(process->backend, NULL)},
        {MAREY__KEY_GPU, first_text(process->gpu, NULL)},
        {MAREY__KEY_CLOCK, "trace"},
        {MAREY__KEY_TICK_HZ, "1000000000"},
        {MAREY__KEY_POOL, ""},
    };
    struct marey__buf pairs MAREY__FINALLY(marey__buf_fini) = {0};
    for (size_t i = 0; i < MAREY__COUNT_OF(texts); i++)
        marey__texts_put(&pairs, texts[i].key, texts[i].value);
    marey__texts_printf(&pairs, MAREY__KEY_EVENTS, "%" PRIu64, process->n_events);
    marey__texts_printf(&pairs, MAREY__KEY_PID, "%" PRId64, process->pid);
    if (process->ppid > 0)
        marey__texts_printf(&pairs, MAREY__KEY_PPID, "%" PRId64, process->ppid);
    marey__texts_printf(&pairs, MAREY__KEY_RANK, "%" PRId32, process->rank);
    marey__texts_printf(&pairs, MAREY__KEY_WORLD, "%" PRId32, process->world_size);
    return marey__log_append_texts(log, MAREY__BLOCK_LOG, &pairs);
}

/* One clock sample: ticks are nanoseconds of the trace's clock, offset from the times that the log shall have. */
static marey_status write_clock(struct marey__log *log, const marey__sink_process *process)
{
    const uint64_t ns = process->first_ns, shown_ns = ns + process->shift_ns;
    const struct marey__clock_entry entry = {ns, shown_ns, shown_ns + (uint64_t)process->to_unix_ns,
                                             0};
    struct marey__block block = {.type = MAREY__BLOCK_CLOCK, .first_tick = ns, .last_tick = ns};
    return marey__log_append(log, &block, &entry, sizeof entry);
}

static marey_status write_sites(struct marey__log *log, const marey__sink_process *process)
{
    enum { BLOCK_BYTES = 1 << 20 };
    size_t from = 0;
    for (size_t id = 1; id <= process->n_sites; id++) {
        const size_t end = id < process->n_sites ? process->site_offsets[id + 1] : process->sites.len;
        if (end - from < BLOCK_BYTES && id < process->n_sites)
            continue;
        struct marey__block block = {.type = MAREY__BLOCK_SITES};
        MAREY_TRY(marey__log_append(log, &block, process->sites.data + from, end - from));
        from = end;
    }
    return MAREY_OK;
}

static void put_count(struct marey__buf *pairs, uint64_t n, const char *words)
{
    if (n != 0)
        marey__texts_printf(pairs, MAREY__KEY_NOTE, "%" PRIu64 " %s", n, words);
}

static marey_status write_end(struct marey__sink_log *log, const marey__sink_process *process)
{
    struct marey__buf pairs MAREY__FINALLY(marey__buf_fini) = {0};
    for (size_t i = 0; i < process->n_notes; i++)
        marey__texts_put(&pairs, MAREY__KEY_NOTE, process->notes[i]);
    put_count(&pairs, log->n_orphans, "ends without a begin in the trace: left out.");
    put_count(&pairs, log->n_crowded, "ranges overlap on too many lanes: left out.");
    put_count(&pairs, process->n_other_names,
              "uses of names after the first million: shown as (other names).");
    put_count(&pairs, process->n_other_lanes,
              "uses of threads after the first hundred thousand: shown as the last of those.");
    put_count(&pairs, process->n_long_arguments,
              "events have arguments of more than 32 KiB: left out.");
    put_count(&pairs, process->n_misplaced, "events of a GPU stream are not GPU activity: left out.");
    marey__texts_put(&pairs, MAREY__KEY_END, "stop");
    return marey__log_append_texts(&log->log, MAREY__BLOCK_END, &pairs);
}

/* ---- lanes, block by block ---- */

struct turn {
    struct marey__sink_reader reader;
    struct marey__nest *nest;
    uint64_t next_ns;
};

struct turns {
    struct marey__sink_log *log;
    struct turn *all;
    size_t n;
    struct marey__heap heap; /* ordered by time, earliest first */
};

static void count_written(marey__sink *sink)
{
    if (++sink->n_written % MAREY__TICK_EVENTS == 0 && sink->options.tick != NULL)
        sink->options.tick(sink->options.tick_ctx,
                           (double)sink->n_written / (double)(sink->n_events + 1));
}

/* Write a lane until one of its blocks is full; `*done` if it has no more. */
static marey_status take_turn(struct turn *turn, bool *done)
{
    const uint32_t n_blocks = marey__nest_n_blocks(turn->nest);
    const struct marey__sink_entry *entry;
    const uint64_t *extra;
    *done = false;
    while ((entry = marey__sink_reader_peek(&turn->reader, &extra)) != NULL) {
        turn->next_ns = entry->ns;
        if (marey__nest_n_blocks(turn->nest) != n_blocks)
            return MAREY_OK;
        MAREY_TRY(marey__nest_put(turn->nest, entry, extra));
        MAREY_TRY(marey__sink_reader_take(&turn->reader));
        count_written(turn->reader.process->sink);
    }
    *done = true;
    return marey__nest_finish(turn->nest);
}

static void close_turn(struct turn *turn)
{
    marey__nest_destroy(turn->nest);
    turn->nest = NULL;
    marey__sink_reader_close(&turn->reader);
}

static marey_status take_turns(struct turns *turns)
{
    while (turns->heap.n != 0) {
        const uint32_t number = turns->heap.items[0].number;
        struct turn *turn = &turns->all[number];
        bool done;
        MAREY_TRY(take_turn(turn, &done));
        if (done) {
            close_turn(turn);
            marey__heap_remove(&turns->heap, number);
        } else if (!marey__heap_put(&turns->heap, number, turn->next_ns)) {
            return marey__no_memory();
        }
    }
    return MAREY_OK;
}

static marey_status add_turn(struct turns *turns, const marey__sink_process *process,
                             struct marey__sink_lane *lane, size_t buffer_bytes)
{
    const uint32_t number = (uint32_t)turns->n++;
    struct turn *turn = &turns->all[number];
    MAREY__TRY_MEMORY(marey__sink_sort_lane(lane));
    MAREY_TRY(marey__sink_reader_open(&turn->reader, process, lane, buffer_bytes));
    MAREY_TRY(marey__nest_create(turns->log, lane, &turn->nest));
    const uint64_t *extra;
    turn->next_ns = marey__sink_reader_peek(&turn->reader, &extra)->ns;
    return marey__heap_put(&turns->heap, number, turn->next_ns) ? MAREY_OK : marey__no_memory();
}

/* Buffer size for each of the lanes' parts. */
static size_t buffer_bytes(const marey__sink_process *process)
{
    enum { LEAST = 256, MOST = 64 << 10 };
    uint64_t n_parts = 1;
    for (size_t i = 0; i < process->n_lanes; i++)
        n_parts += process->lanes[i].n_parts;
    return (size_t)MAREY__MIN(MAREY__MAX(process->sink->budget / n_parts, (uint64_t)LEAST),
                              (uint64_t)MOST);
}

static marey_status write_lanes(struct turns *turns, marey__sink_process *process)
{
    const size_t size = buffer_bytes(process);
    for (size_t i = 0; i < process->n_lanes; i++)
        if (process->lanes[i].n != 0 || process->lanes[i].n_parts != 0)
            MAREY_TRY(add_turn(turns, process, &process->lanes[i], size));
    return take_turns(turns);
}

/* ---- the whole log ---- */

static marey_status write_log(struct marey__sink_log *log, marey__sink_process *process)
{
    struct turns turns = {.log = log, .all = marey__calloc(process->n_lanes, sizeof *turns.all)};
    const marey_status status = turns.all != NULL ? write_lanes(&turns, process) : marey__no_memory();
    for (size_t i = 0; i < turns.n; i++)
        close_turn(&turns.all[i]);
    marey__free(turns.all);
    marey__heap_fini(&turns.heap);
    return status == MAREY_OK ? write_end(log, process) : status;
}

static void name_log(const marey__sink_process *process, char *name, size_t size)
{
    char host[64];
    snprintf(host, sizeof host, "%s", first_text(process->host, NULL));
    for (char *c = host; *c != '\0'; c++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._", *c) == NULL)
            *c = '_';
    snprintf(name, size, "r%" PRId32 "-%s-%" PRId64 "-%08" PRIx32 ".klog",
             MAREY__MAX(process->rank, 0), host[0] != '\0' ? host : "trace", process->pid,
             (uint32_t)marey__identity_random());
}

marey_status marey__sink_write(marey__sink *sink, marey__sink_process *process)
{
    char name[160];
    struct marey__sink_log log = {.packer = marey__packer_create()};
    MAREY__TRY_MEMORY(log.packer != NULL);
    name_log(process, name, sizeof name);
    marey_status status = marey__log_store_begin(sink->options.store, &log.log);
    if (status == MAREY_OK) {
        status = write_identity(&log.log, process);
        if (status == MAREY_OK)
            status = write_clock(&log.log, process);
        if (status == MAREY_OK)
            status = write_sites(&log.log, process);
        if (status == MAREY_OK)
            status = write_log(&log, process);
        status = marey__log_store_end(sink->options.store, name, &log.log, status);
    }
    marey__packer_destroy(log.packer);
    return status;
}
