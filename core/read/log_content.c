/*
 * Interprets the blocks of a log: texts about the process, sites, lanes, clocks, losses. Words are
 * only counted.
 */
#include "read/internal.h"

/* ---- key/value texts ---- */

enum field_type { FIELD_TEXT, FIELD_I64, FIELD_I32, FIELD_U64 };

static const struct field {
    const char *key;
    enum field_type type;
    size_t offset; /* in struct marey_process */
} fields[] = {
    {MAREY__KEY_PID, FIELD_I64, offsetof(struct marey_process, pid)},
    {MAREY__KEY_PPID, FIELD_I64, offsetof(struct marey_process, ppid)},
    {MAREY__KEY_RANK, FIELD_I32, offsetof(struct marey_process, rank)},
    {MAREY__KEY_WORLD, FIELD_I32, offsetof(struct marey_process, world_size)},
    {MAREY__KEY_LOCAL_RANK, FIELD_I32, offsetof(struct marey_process, local_rank)},
    {MAREY__KEY_WORKER, FIELD_I32, offsetof(struct marey_process, worker)},
    {MAREY__KEY_HOST, FIELD_TEXT, offsetof(struct marey_process, host)},
    {MAREY__KEY_COMMAND, FIELD_TEXT, offsetof(struct marey_process, command)},
    {MAREY__KEY_RUN_ID, FIELD_TEXT, offsetof(struct marey_process, run_id)},
    {MAREY__KEY_CLOCK, FIELD_TEXT, offsetof(struct marey_process, clock)},
    {MAREY__KEY_END, FIELD_TEXT, offsetof(struct marey_process, end)},
    {MAREY__KEY_CPU, FIELD_TEXT, offsetof(struct marey_process, cpu)},
    {MAREY__KEY_CPUS, FIELD_TEXT, offsetof(struct marey_process, cpus)},
    {MAREY__KEY_GOVERNOR, FIELD_TEXT, offsetof(struct marey_process, governor)},
    {MAREY__KEY_GPU, FIELD_TEXT, offsetof(struct marey_process, gpu)},
    {MAREY__KEY_KERNEL, FIELD_TEXT, offsetof(struct marey_process, kernel)},
    {MAREY__KEY_VERSIONS, FIELD_TEXT, offsetof(struct marey_process, versions)},
    {MAREY__KEY_VERSION, FIELD_TEXT, offsetof(struct marey_process, version)},
    {MAREY__KEY_SOURCE, FIELD_TEXT, offsetof(struct marey_process, source)},
    {MAREY__KEY_BACKEND, FIELD_TEXT, offsetof(struct marey_process, backend)},
    {MAREY__KEY_DEVICES, FIELD_TEXT, offsetof(struct marey_process, devices)},
    {MAREY__KEY_ROLE, FIELD_TEXT, offsetof(struct marey_process, role)},
    {MAREY__KEY_ENERGY_SOURCES, FIELD_TEXT, offsetof(struct marey_process, energy_sources)},
    {MAREY__KEY_MEMORY, FIELD_TEXT, offsetof(struct marey_process, memory)},
    {MAREY__KEY_MEMORY_COUNTS, FIELD_TEXT, offsetof(struct marey_process, memory_counts)},
    {MAREY__KEY_SAMPLING, FIELD_TEXT, offsetof(struct marey_process, sampling)},
    {MAREY__KEY_EXPERIMENT, FIELD_TEXT, offsetof(struct marey_process, experiment)},
    {MAREY__KEY_STRATEGY, FIELD_TEXT, offsetof(struct marey_process, strategy)},
    {MAREY__KEY_STEPS, FIELD_TEXT, offsetof(struct marey_process, steps)},
    {MAREY__KEY_EXIT, FIELD_TEXT, offsetof(struct marey_process, exit_status)},
    {MAREY__KEY_WALL, FIELD_U64, offsetof(struct marey_process, wall_ns)},
    {MAREY__KEY_RUN_CPU, FIELD_U64, offsetof(struct marey_process, cpu_ns)},
    {MAREY__KEY_GPU_COST, FIELD_TEXT, offsetof(struct marey_process, gpu_cost)},
    {MAREY__KEY_CALLS_COST, FIELD_TEXT, offsetof(struct marey_process, calls_cost)},
    {MAREY__KEY_MEMORY_COST, FIELD_TEXT, offsetof(struct marey_process, memory_cost)},
    {MAREY__KEY_START_TIME, FIELD_U64, offsetof(struct marey_process, start_time)},
    {MAREY__KEY_EVENTS, FIELD_U64, offsetof(struct marey_process, n_events)},
    {MAREY__KEY_FLUSH_CPU, FIELD_U64, offsetof(struct marey_process, flush_cpu_ns)},
    {MAREY__KEY_ENERGY_CPU, FIELD_U64, offsetof(struct marey_process, energy_cpu_ns)},
};

void marey__log_info_init(struct marey_process *info)
{
    *info = (struct marey_process){
        .rank = -1, .world_size = -1, .local_rank = -1, .worker = -1, .load = -1, .note = ""};
    for (size_t f = 0; f < MAREY__COUNT_OF(fields); f++)
        if (fields[f].type == FIELD_TEXT)
            memcpy((char *)info + fields[f].offset, &(const char *){""}, sizeof(const char *));
}

static int64_t to_number(const char *text, size_t len)
{
    char digits[32] = {0};
    memcpy(digits, text, MAREY__MIN(len, sizeof digits - 1));
    return strtoll(digits, NULL, 10);
}

static bool set_field(struct marey__log_file *log, const struct field *field, const char *value,
                      size_t len)
{
    char *at = (char *)&log->info + field->offset;
    const int64_t number = field->type == FIELD_TEXT ? 0 : to_number(value, len);
    switch (field->type) {
    case FIELD_TEXT: {
        const char *kept = marey__log_text(log->texts, value, len);
        if (kept == NULL)
            return false;
        memcpy(at, &kept, sizeof kept);
        break;
    }
    case FIELD_I32:
        *(int32_t *)at = number < INT32_MIN || number > INT32_MAX ? -1 : (int32_t)number;
        break;
    case FIELD_U64:
        *(uint64_t *)at = number < 0 ? 0 : (uint64_t)number;
        break;
    case FIELD_I64:
        *(int64_t *)at = number;
        break;
    }
    return true;
}

/* Texts that only the reader uses. Returns false for any other key. */
static bool take_reader_text(struct marey__log_scan *scan, const char *key, size_t key_len,
                             const char *value, size_t len)
{
    enum { N_OF_SCAN = 4 };
    const struct {
        const char *key, **text;
    } texts[] = {{MAREY__KEY_POOL, &scan->pool},
                 {MAREY__KEY_POOL_ID, &scan->pool_id},
                 {MAREY__KEY_FAILURE, &scan->failure},
                 {MAREY__KEY_FAILED_TICK, &scan->failed_tick},
                 {MAREY__KEY_VISIBLE, &scan->log->visible},
                 {MAREY__KEY_DEVICE_ORDER, &scan->log->device_order},
                 {MAREY__KEY_GPUS, &scan->log->gpus}};
    for (size_t i = 0; i < MAREY__COUNT_OF(texts); i++)
        if (marey__text_is(key, key_len, texts[i].key)) {
            *texts[i].text = i < N_OF_SCAN ? marey__arena_text(&scan->texts, value, len)
                                           : marey__log_text(scan->log->texts, value, len);
            scan->has_no_memory |= *texts[i].text == NULL;
            return true;
        }
    return false;
}

static bool take_pair(struct marey__log_scan *scan, const char *key, size_t key_len,
                      const char *value, size_t len)
{
    if (take_reader_text(scan, key, key_len, value, len))
        return !scan->has_no_memory;
    for (size_t f = 0; f < MAREY__COUNT_OF(fields); f++)
        if (marey__text_is(key, key_len, fields[f].key))
            return set_field(scan->log, &fields[f], value, len);
    if (marey__text_is(key, key_len, MAREY__KEY_TICK_HZ))
        scan->tick_hz = (uint64_t)MAREY__MAX(to_number(value, len), 0);
    else if (marey__text_is(key, key_len, MAREY__KEY_EVENT_COST))
        scan->log->info.event_cost_ns = (double)MAREY__MAX(to_number(value, len), 0) / 1000;
    else if (marey__text_is(key, key_len, MAREY__KEY_LOAD))
        scan->log->info.load = (double)MAREY__MAX(to_number(value, len), 0) / 100;
    else if (marey__text_is(key, key_len, MAREY__KEY_NOTE)) {
        if (scan->notes.len != 0)
            marey__buf_puts(&scan->notes, "\n");
        marey__buf_put(&scan->notes, value, len);
        return !scan->notes.failed;
    }
    return true; /* a key of a later version */
}

static bool take_pairs(struct marey__log_scan *scan, const char *at, size_t len)
{
    while (len >= 8) {
        uint32_t lengths[2];
        memcpy(lengths, at, sizeof lengths);
        at += 8;
        len -= 8;
        if (lengths[0] > len || lengths[1] > len - lengths[0])
            return true;
        if (!take_pair(scan, at, lengths[0], at + lengths[0], lengths[1]))
            return false;
        at += lengths[0] + lengths[1];
        len -= lengths[0] + lengths[1];
    }
    return true;
}

/* ---- sites and lanes ---- */

static bool take_site(struct marey__log_scan *scan, const struct marey__site_entry *entry,
                      const char *texts)
{
    /* Sites are numbered from 1 and all are written, so a number cannot exceed the file's size. */
    if (entry->id == 0 || entry->id >= MAREY__MAX_SITES || entry->id > scan->reader.size)
        return true;
    struct marey__site_table *sites = marey__site_table_make(&scan->log->sites);
    if (sites == NULL || !marey__site_table_add(sites, entry, texts))
        return false;
    scan->log->info.n_sites = sites->n;
    return true;
}

static bool take_sites(struct marey__log_scan *scan, const char *at, size_t len)
{
    while (len >= sizeof(struct marey__site_entry)) {
        struct marey__site_entry entry;
        memcpy(&entry, at, sizeof entry);
        at += sizeof entry;
        len -= sizeof entry;
        const uint64_t texts =
            (uint64_t)entry.name_len + entry.category_len + entry.domain_len + entry.file_len;
        if (texts > len)
            return true;
        if (!take_site(scan, &entry, at))
            return false;
        const size_t step = (size_t)MAREY__MIN((texts + 3) & ~UINT64_C(3), (uint64_t)len);
        at += step;
        len -= step;
    }
    return true;
}

/* The lane, created if needed; NULL on out of memory. `number` is below MAREY__MAX_LANES. */
static struct marey__log_lane *make_lane(struct marey__log_scan *scan, uint32_t number)
{
    struct marey__log_file *log = scan->log;
    struct marey__log_lane *lane = marey__sparse_make(&log->lanes, number, sizeof *lane);
    if (lane != NULL && !lane->is_known) {
        *lane = (struct marey__log_lane){.info = {.lane = number, .name = ""}, .is_known = true};
        log->info.n_lanes = MAREY__MAX(log->info.n_lanes, number + 1);
    }
    return lane;
}

bool marey__log_name_lane(struct marey__log_scan *scan, uint32_t number, uint32_t kind, int64_t tid,
                          const char *name, size_t len)
{
    struct marey__log_lane *lane = make_lane(scan, number);
    if (lane == NULL)
        return false;
    lane->info.kind = (enum marey_lane_kind)kind;
    lane->info.tid = tid;
    if (kind == MAREY_LANE_GPU) {
        lane->info.device = (int32_t)(tid >> 32);
        lane->info.stream = (uint32_t)tid;
    }
    if (len != 0)
        lane->info.name = marey__log_text(scan->log->texts, name, len);
    return lane->info.name != NULL;
}

static bool take_lane(struct marey__log_scan *scan, uint32_t number, const char *at, size_t len)
{
    struct marey__lane_entry entry;
    if (number >= MAREY__MAX_LANES || len < sizeof entry)
        return true;
    memcpy(&entry, at, sizeof entry);
    const size_t name_len = MAREY__MIN((size_t)entry.name_len, len - sizeof entry);
    return marey__log_name_lane(scan, number, entry.kind, entry.tid, at + sizeof entry, name_len);
}

/* ---- words, clocks, loss ---- */

void marey__loss_add(struct marey__loss_entry *loss, const struct marey__loss_entry *more)
{
    const bool is_first = loss->n_events == 0;
    if (more->n_events == 0)
        return;
    loss->first_tick = is_first ? more->first_tick : MAREY__MIN(loss->first_tick, more->first_tick);
    loss->last_tick = is_first ? more->last_tick : MAREY__MAX(loss->last_tick, more->last_tick);
    loss->n_events += more->n_events;
}

bool marey__log_count_words(struct marey__log_scan *scan, const struct marey__piece *piece,
                            uint64_t last_tick, size_t n_events)
{
    const uint64_t first_tick = piece->first_tick;
    struct marey__log_file *log = scan->log;
    n_events = n_events != 0 && n_events < piece->n_words ? n_events : piece->n_words;
    if (piece->n_words == 0)
        return true;
    if (piece->lane >= MAREY__MAX_LANES) {
        marey__loss_add(&scan->beyond, &(struct marey__loss_entry){n_events, first_tick, last_tick});
        return true;
    }
    uint64_t *next = marey__sparse_make(&scan->next_sequence, piece->lane, sizeof *next);
    struct marey__log_lane *lane = make_lane(scan, piece->lane);
    if (next == NULL || lane == NULL)
        return false;
    int gap;
    if (!marey__sequence_is_new(piece->sequence, next, &gap) || log->n_pieces >= UINT32_MAX - 1)
        return true;
    if (!MAREY__PUSH(log->pieces, log->n_pieces, log->pieces_cap, *piece))
        return false;
    const uint32_t number = (uint32_t)log->n_pieces;
    if (lane->last_piece != 0)
        log->pieces[lane->last_piece - 1].next = number;
    else
        lane->first_piece = number;
    lane->last_piece = number;
    log->info.n_words += piece->n_words;
    scan->n_events += n_events;
    last_tick = MAREY__MAX(first_tick, last_tick);
    scan->first_tick = scan->has_words ? MAREY__MIN(scan->first_tick, first_tick) : first_tick;
    scan->last_tick = scan->has_words ? MAREY__MAX(scan->last_tick, last_tick) : last_tick;
    scan->has_words = true;
    return true;
}

/* Called with the reader after the block. */
static bool count_block(struct marey__log_scan *scan, const struct marey__block *block)
{
    const struct marey__piece piece = {
        .at = scan->reader.offset - marey__block_bytes(block),
        .first_tick = block->first_tick,
        .lane = block->lane,
        .sequence = block->sequence,
        .n_words = (block->raw_len / 8) & INT32_MAX,
    };
    return block->raw_len > MAREY__MAX_WORDS_BYTES ||
           marey__log_count_words(scan, &piece, block->last_tick, block->n_events);
}

static bool take_moments(struct marey__log_scan *scan, const char *at, size_t len)
{
    const size_t n = len / sizeof(struct marey__clock_entry);
    if (n == 0)
        return true;
    if (!marey__grow(&scan->moments, &scan->moments_cap, scan->n_moments + n, sizeof *scan->moments))
        return false;
    memcpy(scan->moments + scan->n_moments, at, n * sizeof *scan->moments);
    scan->n_moments += n;
    return true;
}

static bool take_loss(struct marey__log_scan *scan, const char *at, size_t len)
{
    if (len >= sizeof scan->loss)
        memcpy(&scan->loss, at, sizeof scan->loss);
    return true;
}

/* ---- blocks ---- */

/* Store the block's offset. Returns false on out of memory. */
static bool note_payload(struct marey__log_scan *scan, enum marey__payload_kind payload,
                         const struct marey__block *block)
{
    struct marey__payload_blocks *const list = &scan->log->payloads[payload];
    return MAREY__PUSH(list->offsets, list->n, list->cap,
                       scan->reader.offset - marey__block_bytes(block));
}

bool marey__log_take_block(struct marey__log_scan *scan, const struct marey__block *block,
                           const uint8_t *packed)
{
    if (block->type == MAREY__BLOCK_WORDS)
        return count_block(scan, block);
    if (block->type == MAREY__BLOCK_CALLS)
        return note_payload(scan, MAREY__PAYLOAD_CALLS, block);
    if (block->type == MAREY__BLOCK_SAMPLES)
        return note_payload(scan, MAREY__PAYLOAD_SAMPLES, block);
    if (!marey__unpack_payload(block, packed, &scan->raw))
        return false;
    const char *const at = scan->raw.data;
    const size_t len = scan->raw.len;
    switch (block->type) {
    case MAREY__BLOCK_LOG:
        scan->has_log = true;
        return take_pairs(scan, at, len);
    case MAREY__BLOCK_END:
        scan->has_end = true;
        return take_pairs(scan, at, len);
    case MAREY__BLOCK_SITES:
        return take_sites(scan, at, len);
    case MAREY__BLOCK_LANE:
        return take_lane(scan, block->lane, at, len);
    case MAREY__BLOCK_CLOCK:
        return take_moments(scan, at, len);
    case MAREY__BLOCK_LOSS:
        return take_loss(scan, at, len);
    default:
        return true; /* a type of a later version */
    }
}
