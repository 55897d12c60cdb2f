/*
 * rank_logs DIR RANKS [ITERATIONS]: write the recording of a job with many ranks, without running
 * one.
 *
 * Each log is that of a rank of a training loop: 1,000 iterations (or ITERATIONS) of 30 ranges
 * each, on one thread, written by the recorder's encoder and writer. Ranks differ by their jitter,
 * so no two logs have the same times. Eight ranks are a node, and ranks start some milliseconds
 * apart.
 *
 * A tick is a nanosecond, and every time follows from a rule of three lines (next_step), so that a
 * test can compute the expected report. tests/cli/rank_model.py has the same rule; change both
 * together.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "record/internal.h"

enum { N_LAYERS = 10, RANKS_OF_NODE = 8, RANGE_WORDS = 60, RECORD_WORDS = 4 };

/* An iteration: each word is a begin or an end, a fixed time plus jitter after the previous one. */
struct step {
    uint32_t kind, site;
    uint32_t base_ns, jitter_bits;
};

struct job {
    const char *dir;
    uint32_t n_ranks, n_iterations;
    struct step steps[RANGE_WORDS];
    size_t n_steps;
    struct marey__buf sites;
    uint32_t n_sites;
    marey__packer *packer;
};

/* One rank's log during writing. */
struct rank {
    struct job *job;
    struct marey__log log;
    uint32_t number, sequence;
    uint64_t random, now, base_tick;
    uint64_t words[MAREY__CHUNK_WORDS];
    size_t n_words;
};

static void die(const char *what)
{
    fprintf(stderr, "rank_logs: %s: %s\n", what, marey_last_error());
    exit(1);
}

/* ---- the loop that all ranks run ---- */

static uint32_t add_site(struct job *job, const char *name)
{
    const struct marey__site site = {.id = ++job->n_sites,
                                     .name = name,
                                     .name_len = (uint32_t)strlen(name),
                                     .category = "",
                                     .domain = "",
                                     .file = "train.py",
                                     .line = 10 * job->n_sites};
    marey__site_put(&job->sites, &site);
    return site.id;
}

static void add_step(struct job *job, uint32_t kind, uint32_t site, uint32_t base_ns, uint32_t bits)
{
    job->steps[job->n_steps++] = (struct step){kind, site, base_ns, bits};
}

static void add_range(struct job *job, const char *name, uint32_t base_ns, uint32_t bits)
{
    const uint32_t site = add_site(job, name);
    add_step(job, MAREY_KIND_BEGIN, site, 300, 8);
    add_step(job, MAREY_KIND_END, site, base_ns, bits);
}

static void add_pass(struct job *job, const char *name, uint32_t layer_ns)
{
    const uint32_t site = add_site(job, name);
    add_step(job, MAREY_KIND_BEGIN, site, 500, 8);
    for (int i = 0; i < N_LAYERS; i++) {
        char layer[64];
        snprintf(layer, sizeof layer, "%s.layer%d", name, i);
        add_range(job, layer, layer_ns + 1000 * (uint32_t)i, 14);
    }
    add_step(job, MAREY_KIND_END, site, 700, 8);
}

static void describe_loop(struct job *job)
{
    add_site(job, "(other names)"); /* the first site of every process */
    const uint32_t step = add_site(job, "step");
    add_step(job, MAREY_KIND_BEGIN, step, 2000, 10);
    add_range(job, "data", 150000, 17);
    add_range(job, "to_device", 20000, 13);
    add_pass(job, "forward", 40000);
    add_range(job, "loss", 8000, 11);
    add_range(job, "zero_grad", 5000, 11);
    add_pass(job, "backward", 90000);
    add_range(job, "allreduce", 200000, 17);
    add_range(job, "optimizer", 60000, 14);
    add_range(job, "metrics", 3000, 10);
    add_step(job, MAREY_KIND_END, step, 900, 9);
    MAREY_ASSERT(job->n_steps == RANGE_WORDS);
}

/* ---- one rank ---- */

/* The rule: a step takes its base and the upper bits of the rank's next random number. */
static uint64_t next_step(struct rank *rank, const struct step *step)
{
    rank->random = rank->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return step->base_ns + (rank->random >> (64 - step->jitter_bits));
}

static void flush(struct rank *rank)
{
    if (rank->n_words == 0)
        return;
    struct marey__block block = {.type = MAREY__BLOCK_WORDS,
                                 .sequence = rank->sequence++,
                                 .first_tick = rank->base_tick,
                                 .last_tick = rank->now};
    const void *bytes = marey__pack_words(rank->job->packer, rank->words, rank->n_words, &block);
    if (marey__log_append(&rank->log, &block, bytes, block.packed_len) != MAREY_OK)
        die("cannot write");
    rank->n_words = 0;
}

/* Make room for `n` words in one chunk; the header word with the current time. */
static uint64_t head(struct rank *rank, size_t n, uint64_t then, uint32_t tag)
{
    if (rank->n_words + n > MAREY__CHUNK_WORDS)
        flush(rank);
    if (rank->n_words == 0)
        rank->base_tick = then;
    rank->now = then;
    return (then - rank->base_tick) << 24 | tag;
}

static void put_iteration(struct rank *rank, uint64_t number)
{
    const double samples = 32;
    for (size_t i = 0; i < rank->job->n_steps; i++) {
        const struct step *step = &rank->job->steps[i];
        const uint64_t then = rank->now + next_step(rank, step);
        const uint64_t word = head(rank, 1, then, step->kind << 20 | step->site);
        rank->words[rank->n_words++] = word;
    }
    const uint64_t word = head(rank, RECORD_WORDS, rank->now,
                               MAREY_KIND_RECORD << 20 | MAREY_RECORD_ITERATION << 12 | RECORD_WORDS);
    uint64_t *const record = &rank->words[rank->n_words];
    record[0] = word;
    record[1] = number;
    record[2] = 0;
    memcpy(&record[3], &samples, sizeof samples);
    rank->n_words += RECORD_WORDS;
}

static void put_texts(struct rank *rank)
{
    const uint32_t number = rank->number;
    struct marey__buf texts = {0};
    marey__texts_put(&texts, MAREY__KEY_VERSION, MAREY_VERSION);
    marey__texts_put(&texts, MAREY__KEY_COMMAND, "python train.py");
    marey__texts_put(&texts, MAREY__KEY_RUN_ID, "rank-logs");
    marey__texts_put(&texts, MAREY__KEY_CLOCK, "monotonic");
    marey__texts_put(&texts, MAREY__KEY_TICK_HZ, "1000000000");
    marey__texts_put(&texts, MAREY__KEY_POOL, "");
    marey__texts_put(&texts, MAREY__KEY_EVENT_COST, "9000");
    marey__texts_printf(&texts, MAREY__KEY_HOST, "node%04" PRIu32, number / RANKS_OF_NODE);
    marey__texts_printf(&texts, MAREY__KEY_PID, "%" PRIu32, 1000 + number);
    marey__texts_printf(&texts, MAREY__KEY_RANK, "%" PRIu32, number);
    marey__texts_printf(&texts, MAREY__KEY_WORLD, "%" PRIu32, rank->job->n_ranks);
    marey__texts_printf(&texts, MAREY__KEY_LOCAL_RANK, "%" PRIu32, number % RANKS_OF_NODE);
    if (marey__log_append_texts(&rank->log, MAREY__BLOCK_LOG, &texts) != MAREY_OK)
        die("cannot write");
    marey__buf_fini(&texts);
}

static void put_moment(struct rank *rank)
{
    const struct marey__clock_entry entry = {rank->now, rank->now,
                                             rank->now + UINT64_C(1700000000000000000), 100};
    struct marey__block block = {
        .type = MAREY__BLOCK_CLOCK, .first_tick = rank->now, .last_tick = rank->now};
    if (marey__log_append(&rank->log, &block, &entry, sizeof entry) != MAREY_OK)
        die("cannot write");
}

static void put_names(struct rank *rank)
{
    static const char main_thread[] = "main";
    struct {
        struct marey__lane_entry entry;
        char name[4];
    } lane = {.entry = {.tid = 1000 + (int64_t)rank->number, .name_len = sizeof lane.name}};
    memcpy(lane.name, main_thread, sizeof lane.name);
    struct marey__block of_lane = {.type = MAREY__BLOCK_LANE};
    if (marey__log_append_texts(&rank->log, MAREY__BLOCK_SITES, &rank->job->sites) != MAREY_OK ||
        marey__log_append(&rank->log, &of_lane, &lane, sizeof lane.entry + sizeof lane.name) !=
            MAREY_OK)
        die("cannot write");
}

static void put_end(struct rank *rank)
{
    struct marey__buf texts = {0};
    marey__texts_put(&texts, MAREY__KEY_END, "stop");
    marey__texts_put(&texts, MAREY__KEY_FLUSH_CPU, "1000000");
    if (marey__log_append_texts(&rank->log, MAREY__BLOCK_END, &texts) != MAREY_OK)
        die("cannot write");
    marey__buf_fini(&texts);
}

static void write_rank(struct job *job, struct rank *rank, uint32_t number)
{
    char name[64];
    snprintf(name, sizeof name, "r%" PRIu32 "-node%04" PRIu32 "-%" PRIu32 "-%08" PRIx32 ".klog",
             number, number / RANKS_OF_NODE, 1000 + number, number);
    *rank = (struct rank){.job = job,
                          .number = number,
                          .random = (number + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15),
                          .now = 5000000000 + UINT64_C(1000000) * (number % 100)};
    if (marey__log_create(&rank->log, job->dir, name) != MAREY_OK)
        die("cannot create");
    put_texts(rank);
    put_moment(rank);
    put_names(rank);
    for (uint32_t i = 0; i < job->n_iterations; i++)
        put_iteration(rank, i);
    flush(rank);
    put_moment(rank);
    put_end(rank);
    marey__log_close(&rank->log);
}

/* ---- all of them ---- */

static void write_meta(const struct job *job)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/meta.json", job->dir);
    FILE *out = mkdir(job->dir, 0755) == 0 ? fopen(path, "w") : NULL;
    if (out == NULL) {
        fprintf(stderr, "rank_logs: cannot make %s; it must not be there before\n", job->dir);
        exit(2);
    }
    fputs("{\"format\": \"marey recording\", \"format_version\": 1}\n", out);
    fclose(out);
}

int main(int n_args, char **args)
{
    static struct rank rank;
    struct job job = {.dir = n_args > 1 ? args[1] : NULL,
                      .n_ranks = n_args > 2 ? (uint32_t)strtoul(args[2], NULL, 10) : 0,
                      .n_iterations = n_args > 3 ? (uint32_t)strtoul(args[3], NULL, 10) : 1000,
                      .packer = marey__packer_create()};
    if (n_args < 3 || n_args > 4 || job.n_ranks == 0) {
        fprintf(stderr, "rank_logs DIR RANKS [ITERATIONS]\n");
        return 2;
    }
    if (job.packer == NULL)
        die("no memory");
    describe_loop(&job);
    write_meta(&job);
    for (uint32_t i = 0; i < job.n_ranks; i++)
        write_rank(&job, &rank, i);
    marey__packer_destroy(job.packer);
    marey__buf_fini(&job.sites);
    return 0;
}
