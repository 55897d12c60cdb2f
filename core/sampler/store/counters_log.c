/* Counters in a sampler's log: sites, a lane and COUNTER records, as programs write them. */
#include "sampler/store/internal.h"

const struct marey__counter_name marey__system_counter_names[MAREY__SYSTEM_COUNTERS] = {
    [MAREY__SYSTEM_RUNNING] = {"threads that run", "running"},
    [MAREY__SYSTEM_WAITING] = {"threads that wait for a CPU core", "waiting"},
    [MAREY__SYSTEM_CORES] = {"usable CPU cores", "cores"},
    [MAREY__SYSTEM_THREADS] = {"threads", "threads"},
    [MAREY__SYSTEM_PROCESSES] = {"processes", "processes"},
    [MAREY__SYSTEM_SWITCHES] = {"involuntary switches (1/s)", "switches"},
    [MAREY__SYSTEM_FAULTS] = {"major page faults (1/s)", "faults"},
    [MAREY__SYSTEM_BYTES_READ] = {"bytes read from storage (B/s)", "bytes_read"},
    [MAREY__SYSTEM_IO_STALL] = {"share of time with a task that waits for I/O, machine",
                                "io_stall"},
    [MAREY__SYSTEM_SWAP] = {"swapped memory (B)", "swap"},
    [MAREY__SYSTEM_THROTTLED] = {"threads throttled by the cgroup", "throttled"},
    [MAREY__SYSTEM_RESIDENT] = {"resident memory (B)", "resident"},
    [MAREY__SYSTEM_ANONYMOUS] = {"anonymous memory of the largest process (B)", "anonymous"},
    [MAREY__SYSTEM_GROUP_LIMIT] = {"memory limit of the cgroup (B)", "group_limit"},
    [MAREY__SYSTEM_MACHINE_MEMORY] = {"memory of the machine (B)", "machine_memory"},
    [MAREY__SYSTEM_UNIQUE] = {"unique resident memory (B)", "unique"},
};

enum { RECORD_WORDS = 3, MOST_WORDS = 1024 };

static marey_status append_sites(struct marey__samples_log *log)
{
    struct marey__buf sites MAREY__FINALLY(marey__buf_fini) = {0};
    struct marey__block block = {.type = MAREY__BLOCK_SITES};
    for (uint32_t i = 0; i < MAREY__SYSTEM_COUNTERS; i++) {
        const struct marey__counter_name *const counter = &marey__system_counter_names[i];
        const struct marey__site site = {.id = i + 1,
                                         .name = counter->name,
                                         .name_len = (uint32_t)strlen(counter->name),
                                         .category = MAREY__SYSTEM_CATEGORY,
                                         .domain = counter->key,
                                         .file = ""};
        marey__site_put(&sites, &site);
    }
    MAREY__TRY_MEMORY(!sites.failed);
    return marey__log_append(&log->file, &block, sites.data, sites.len);
}

static marey_status append_lane(struct marey__samples_log *log)
{
    static const char name[] = "process tree";
    struct {
        struct marey__lane_entry entry;
        char name[sizeof name - 1];
    } lane = {.entry = {.kind = MAREY_LANE_THREAD, .name_len = sizeof name - 1}};
    struct marey__block block = {.type = MAREY__BLOCK_LANE};
    memcpy(lane.name, name, sizeof lane.name);
    return marey__log_append(&log->file, &block, &lane, sizeof lane.entry + sizeof lane.name);
}

static marey_status begin(struct marey__samples_log *log)
{
    log->packer = marey__packer_create();
    MAREY__TRY_MEMORY(log->packer != NULL);
    MAREY_TRY(append_sites(log));
    return append_lane(log);
}

marey_status marey__samples_log_write_counters(struct marey__samples_log *log)
{
    if (log->n_words == 0)
        return MAREY_OK;
    if (log->packer == NULL)
        MAREY_TRY(begin(log));
    struct marey__block block = {.type = MAREY__BLOCK_WORDS,
                                 .sequence = log->n_word_blocks++,
                                 .first_tick = log->words_base_ns,
                                 .last_tick = log->words_last_ns,
                                 .n_events = (uint32_t)(log->n_words / RECORD_WORDS)};
    const void *const bytes = marey__pack_words(log->packer, log->words, log->n_words, &block);
    log->n_words = 0;
    return marey__log_append(&log->file, &block, bytes, block.packed_len);
}

marey_status marey__samples_log_counters(struct marey__samples_log *log, uint64_t at_ns,
                                         const double values[MAREY__SYSTEM_COUNTERS])
{
    if (log->n_words + RECORD_WORDS * MAREY__SYSTEM_COUNTERS > MOST_WORDS)
        MAREY_TRY(marey__samples_log_write_counters(log));
    MAREY__TRY_MEMORY(marey__grow(&log->words, &log->words_cap, MOST_WORDS, sizeof *log->words));
    if (log->n_words == 0)
        log->words_base_ns = at_ns;
    log->words_last_ns = at_ns;
    for (uint32_t i = 0; i < MAREY__SYSTEM_COUNTERS; i++) {
        uint64_t *const words = &log->words[log->n_words];
        words[0] = (at_ns - log->words_base_ns) << 24 | (uint64_t)MAREY_KIND_RECORD << 20 |
                   (uint64_t)MAREY_RECORD_COUNTER << 12 | RECORD_WORDS;
        words[1] = i + 1;
        memcpy(&words[2], &values[i], sizeof values[i]);
        log->n_words += RECORD_WORDS;
    }
    return MAREY_OK;
}
