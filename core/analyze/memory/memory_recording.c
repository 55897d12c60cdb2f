/* Memory of a process, from its log: samples of blocks, resident memory, phases and iterations. */
#include <math.h>

#include "analyze/memory/internal.h"
#include "codec/internal.h"
#include "read/internal.h"
#include <marey/memory.h>

enum meter { NO_METER, RESIDENT, PEAK, LIMIT };

struct reading {
    struct marey__memory_report *report;
    marey_recording *recording;
    const struct marey_process *process;
    struct marey__memory_pool *pool;
    struct marey__progress progress;
    struct marey__elf_files *files;
    uint32_t *frames; /* by site: its name, plus one; 0: not looked up yet */
    uint8_t *meters;  /* by site */
    uint32_t *stacks; /* by the log's number: the report's, plus one; 0: not seen yet */
    size_t stacks_cap;
    struct number {
        uint64_t number;
        size_t block;
    } * numbers; /* of blocks, in the order of reading */
    size_t n_numbers, numbers_cap;
    struct freed {
        uint64_t number, ns;
    } * freed;
    size_t n_freed, freed_cap;
    uint64_t ns_mult; /* of the last batch */
    bool failed;
};

static const struct marey_site_info *site_of(const struct reading *r, uint32_t site)
{
    return marey_recording_site(r->recording, r->process->index, site);
}

/* ---- frames and stacks ---- */

/* "work (leak)", "train (train.py:12)", "solver+0x12f" for an unknown function. */
static uint32_t name_frame(struct reading *r, uint32_t site)
{
    const struct marey_site_info *info = site_of(r, site);
    const char *offset = strcmp(info->domain, "native") == 0 ? strstr(info->name, "+0x") : NULL;
    const char *function = NULL;
    if (offset != NULL)
        function = marey__elf_function(r->files, info->file, strtoull(offset + 1, NULL, 16),
                                       r->process->start_unix_ns);
    if (function != NULL)
        return marey__memory_frame(r->report, function, strlen(function), info->file, 0);
    return marey__memory_frame(r->report, info->name, info->name_len,
                               offset == NULL ? info->file : "", info->line);
}

static bool frame_of(struct reading *r, uint32_t site, uint32_t *name)
{
    if (site > r->process->n_sites)
        site = 0;
    if (r->frames[site] == 0) {
        const uint32_t number = name_frame(r, site);
        if (number == MAREY__NO_NAME)
            return false;
        r->frames[site] = number + 1;
    }
    *name = r->frames[site] - 1;
    return true;
}

static bool take_stack(struct reading *r, const uint64_t *words)
{
    enum { MAX_FRAMES = 256, MAX_STACKS = 1 << 24 };
    uint32_t names[MAX_FRAMES];
    size_t n = 0;
    const size_t n_words = marey_record_length(words[0]);
    const uint64_t number = words[1];
    const size_t before = r->stacks_cap;
    if (number >= MAX_STACKS)
        return true;
    for (size_t i = 2; i < n_words; i++)
        for (unsigned half = 0; half < 2; half++) {
            const uint32_t site = (uint32_t)(words[i] >> (32 * half)) & 0xfffffu;
            if (site != 0 && n < MAX_FRAMES && !frame_of(r, site, &names[n++]))
                return false;
        }
    if (!marey__grow(&r->stacks, &r->stacks_cap, number + 1, sizeof *r->stacks))
        return false;
    memset(r->stacks + before, 0, (r->stacks_cap - before) * sizeof *r->stacks);
    const uint32_t stack = marey__memory_stack_add(r->report, names, n);
    if (stack == MAREY__NO_STACK)
        return false;
    r->stacks[number] = stack + 1;
    return true;
}

/* ---- blocks ---- */

static uint64_t moment(const struct marey_batch *batch, uint64_t word, uint64_t age_ticks)
{
    const uint64_t ns = marey_batch_ns(batch, word), age = marey_batch_duration_ns(batch, age_ticks);
    return age < ns ? ns - age : 0;
}

static bool take_sample(struct reading *r, const struct marey_batch *batch, const uint64_t *words)
{
    static const char *const categories[] = {"malloc", "Python objects"};
    struct marey_memory_sample sample;
    marey_record_memory_sample(words, &sample);
    const double size = (double)sample.bytes;
    const double chance = sample.interval <= 1 ? 1 : -expm1(-size / (double)sample.interval);
    const char *category = categories[sample.source == MAREY_MEMORY_PYTHON];
    struct marey__held_block block = {
        .begin_ns = moment(batch, words[0], sample.age_ticks),
        .end_ns = MAREY__ALIVE,
        .bytes = chance > 0 ? size / chance : 0,
        .count = chance > 0 ? 1 / chance : 0,
        .variance = chance > 0 ? size * size * (1 - chance) / (chance * chance) : 0,
        .stack = sample.stack, /* the log's number, until all stacks are known */
        .category = marey__memory_name(r->report, category, strlen(category)),
        .module = MAREY__NO_NAME};
    if (block.category == MAREY__NO_NAME ||
        !marey__grow(&r->numbers, &r->numbers_cap, r->n_numbers + 1, sizeof *r->numbers))
        return false;
    r->numbers[r->n_numbers++] = (struct number){sample.number, r->pool->n_blocks};
    r->pool->interval = r->pool->n_blocks == 0 ? sample.interval : r->pool->interval;
    r->pool->last_interval = MAREY__MAX(r->pool->last_interval, sample.interval);
    return marey__memory_block_add(r->pool, &block);
}

static bool take_free(struct reading *r, const struct marey_batch *batch, const uint64_t *words)
{
    return MAREY__PUSH(r->freed, r->n_freed, r->freed_cap,
                       (struct freed){words[2], moment(batch, words[0], words[1])});
}

MAREY__ORDER(by_number, struct number, MAREY__UP(number))

static void end_blocks(struct reading *r)
{
    if (r->n_numbers == 0)
        return;
    for (size_t i = 0; i < r->pool->n_blocks; i++) {
        const uint32_t number = r->pool->blocks[i].stack;
        const uint32_t known = number < r->stacks_cap ? r->stacks[number] : 0;
        r->pool->blocks[i].stack = known != 0 ? known - 1 : MAREY__NO_STACK;
    }
    qsort(r->numbers, r->n_numbers, sizeof *r->numbers, by_number);
    for (size_t i = 0; i < r->n_freed; i++) {
        const struct number key = {.number = r->freed[i].number};
        const struct number *found =
            bsearch(&key, r->numbers, r->n_numbers, sizeof *r->numbers, by_number);
        if (found == NULL)
            continue;
        struct marey__held_block *block = &r->pool->blocks[found->block];
        block->end_ns = MAREY__MAX(r->freed[i].ns, block->begin_ns);
    }
}

/* ---- other records ---- */

static bool take_counter(struct reading *r, const uint64_t *words, uint64_t ns)
{
    const uint32_t site = marey_record_site(words[1]);
    double value;
    memcpy(&value, &words[2], sizeof value);
    if (site > r->process->n_sites || !isfinite(value) || value < 0)
        return true;
    if (r->meters[site] == RESIDENT)
        return marey__memory_reading_add(&r->pool->resident, ns, value);
    if (r->meters[site] == PEAK)
        r->pool->peak_resident = value;
    else if (r->meters[site] == LIMIT)
        r->pool->limit = value;
    return true;
}

static bool take_span(struct reading *r, const struct marey__span *span)
{
    return marey__memory_progress_add(r->report, span, site_of(r, span->site), &r->pool->iterations,
                                      &r->pool->phases);
}

static bool take_record(struct reading *r, const struct marey_batch *batch, const uint64_t *words)
{
    struct marey__span span;
    const uint32_t type = marey_record_type_of(words[0]);
    switch (type) {
    case MAREY_RECORD_MEMORY_STACK:
        return take_stack(r, words);
    case MAREY_RECORD_MEMORY_TAKE:
        return take_sample(r, batch, words);
    case MAREY_RECORD_MEMORY_GIVE:
        return take_free(r, batch, words);
    case MAREY_RECORD_COUNTER:
        return take_counter(r, words, marey_batch_ns(batch, words[0]));
    default:
        break;
    }
    return !marey__is_progress(type) ||
           !marey__progress_take(&r->progress, words, marey_batch_ns(batch, words[0]), &span) ||
           take_span(r, &span);
}

static marey_status visit(void *ctx, const struct marey_batch *batch)
{
    struct reading *const r = ctx;
    if (batch->lane->kind != MAREY_LANE_THREAD || batch->n == 0)
        return MAREY_OK;
    r->ns_mult = batch->ns_mult;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t *const words = &batch->words[i];
        if (marey_word_kind(words[0]) != MAREY_KIND_RECORD) {
            i++;
            continue;
        }
        MAREY__TRY_MEMORY(take_record(r, batch, words));
        i += marey_record_length(words[0]);
    }
    return MAREY_OK;
}

/* ---- the process ---- */

static uint64_t number_in(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at != NULL ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void describe_source(struct reading *r)
{
    struct marey__memory_pool *const pool = r->pool;
    const char *counts = r->process->memory_counts;
    const char *malloc_line = strstr(r->process->memory, "malloc=");
    const bool has_malloc = strstr(r->process->memory, "malloc=yes") != NULL,
               has_python = strstr(r->process->memory, "python=yes") != NULL;
    pool->source = has_malloc && has_python ? "samples of malloc and of Python's objects"
                   : has_malloc             ? "samples of malloc"
                   : has_python             ? "samples of Python's objects"
                                            : "resident memory only";
    pool->n_samples = pool->n_blocks;
    pool->n_dropped = number_in(counts, "dropped=");
    pool->n_unfollowed = number_in(counts, "unfollowed=");
    const struct marey_batch clock = {.ns_mult = r->ns_mult};
    pool->cost_ns = marey_batch_duration_ns(&clock, number_in(counts, "ticks="));
    if (!has_malloc && malloc_line != NULL && strncmp(malloc_line, "malloc=no: ", 11) == 0)
        marey__put_note(r->report->tables[MAREY__MEMORY_NOTES],
                        "process %lld: malloc was not traced: %.*s", (long long)r->process->pid,
                        (int)strcspn(malloc_line + 11, "\n"), malloc_line + 11);
    if (pool->n_dropped + pool->n_unfollowed != 0)
        marey__put_note(r->report->tables[MAREY__MEMORY_NOTES],
                        "process %lld: %llu allocations or frees were not recorded, because there "
                        "were too many to write (%llu) or to track (%llu): freed blocks may look "
                        "alive; use a larger --memory-sample",
                        (long long)r->process->pid,
                        (unsigned long long)(pool->n_dropped + pool->n_unfollowed),
                        (unsigned long long)pool->n_dropped, (unsigned long long)pool->n_unfollowed);
    if (r->process->lost_events != 0)
        marey__put_note(r->report->tables[MAREY__MEMORY_NOTES],
                        "process %lld lost %llu events: blocks whose free is among them look alive",
                        (long long)r->process->pid, (unsigned long long)r->process->lost_events);
    if (counts[0] == '\0')
        marey__put_note(r->report->tables[MAREY__MEMORY_NOTES],
                        "process %lld did not exit normally: the last tenth of a second of its "
                        "allocations is missing",
                        (long long)r->process->pid);
}

static bool look_at_sites(struct reading *r)
{
    static const char *const domains[] = {
        [RESIDENT] = "process|resident", [PEAK] = "process|peak", [LIMIT] = "process|limit"};
    r->frames = marey__calloc((size_t)r->process->n_sites + 1, sizeof *r->frames);
    r->meters = marey__calloc((size_t)r->process->n_sites + 1, sizeof *r->meters);
    for (uint32_t site = 1; r->frames != NULL && r->meters != NULL && site <= r->process->n_sites;
         site++)
        for (uint8_t meter = RESIDENT; meter <= LIMIT; meter++)
            if (strcmp(site_of(r, site)->category, "memory") == 0 &&
                strcmp(site_of(r, site)->domain, domains[meter]) == 0)
                r->meters[site] = meter;
    return r->frames != NULL && r->meters != NULL;
}

static marey_status read_process(struct reading *r)
{
    struct marey__span span;
    r->pool = marey__memory_pool_add(r->report);
    MAREY__TRY_MEMORY(r->pool != NULL && look_at_sites(r));
    r->pool->pid = r->process->pid;
    r->pool->rank = r->process->rank;
    memcpy(r->pool->device, "host", 5);
    r->pool->first_ns = r->process->first_ns;
    r->pool->last_ns = r->process->last_ns;
    marey__progress_init(&r->progress, r->process, r->process->first_ns);
    MAREY_TRY(marey__recording_visit_in_order(r->recording, r->process->index, visit, r));
    while (marey__progress_finish(&r->progress, r->process->last_ns, &span))
        MAREY__TRY_MEMORY(take_span(r, &span));
    end_blocks(r);
    describe_source(r);
    return MAREY_OK;
}

marey_status marey__memory_read_recording(struct marey__memory_report *report,
                                          marey_recording *recording)
{
    struct marey__elf_files files = {0};
    marey_status status = MAREY_OK;
    for (size_t i = 0; status == MAREY_OK && i < marey_recording_n_processes(recording); i++) {
        struct reading r = {.report = report,
                            .recording = recording,
                            .process = marey_recording_process(recording, i),
                            .files = &files};
        if (r.process->memory[0] != '\0')
            status = read_process(&r);
        if (status == MAREY_OK)
            status = marey__memory_read_cuda(report, recording, r.process);
        MAREY__FREE_ALL(r.frames, r.meters, r.stacks, r.numbers, r.freed);
    }
    if (files.n_newer != 0)
        marey__put_note(report->tables[MAREY__MEMORY_NOTES],
                        "%zu program files changed after the run: their functions are shown as "
                        "offsets",
                        files.n_newer);
    marey__elf_files_fini(&files);
    return status;
}
