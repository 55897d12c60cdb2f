/* Files of GPU power and of epoch times, row by row. What the first line has tells which it is. */
#include <math.h>
#include <string.h>

#include "analyze/device/legacy_energy.h"
#include "codec/codec_internal.h"

enum gpu_column { INDEX, POWER, STRATEGY, NUM_GPUS, INTERVAL, LOCAL_RANK, NODE, USE, N_GPU };
static const char *const gpu_names[N_GPU] = {
    "sample_idx",       "power",      "strategy", "num_global_gpus",
    "probing_interval", "local_rank", "node_idx", "utilization",
};
enum epoch_column { EPOCH, TIME, NAME, NODES, N_EPOCH };
static const char *const epoch_names[N_EPOCH] = {"epoch_id", "time", "name", "nodes"};

/* What no machine has: damage. */
static const double max_w = 1e6, max_s = 1e9;
/* Runs in one file, one behind the other: more is no file of a person. */
enum { MAX_REPEATS = 100, MAX_RUNS = 10000 };

/* ---- series ---- */

/* Make the key's text stay, and the element behind it; false without memory. */
static bool keep_key(struct marey__old_energy *energy, struct marey__names *keys, uint32_t number,
                     const char *text, size_t len, void *array, size_t *cap, size_t size)
{
    const char *kept = marey__arena_text(&energy->texts, text, len);
    if (kept == NULL || !marey__grow(array, cap, (size_t)number + 1, size)) {
        keys->n--; /* it is never looked up again: the caller gives up */
        return false;
    }
    keys->names[number].text = kept;
    return true;
}

/* What tells runs apart besides their repeat. */
struct whose {
    struct marey__csv_field strategy;
    uint64_t number;
    bool is_epochs;
};

static struct marey__old_run *find_run(struct marey__old_energy *energy, const struct whose *whose,
                                       uint32_t repeat)
{
    struct marey__buf key = {0};
    struct marey__old_run *run = NULL;
    marey__buf_printf(&key, "%d %u %llu %zu ", whose->is_epochs, repeat,
                      (unsigned long long)whose->number, energy->run_name_len);
    const size_t name_at = key.len;
    marey__buf_put(&key, energy->run_name, energy->run_name_len);
    marey__buf_put(&key, "", 1);
    const size_t strategy_at = key.len;
    marey__buf_put(&key, whose->strategy.text, whose->strategy.len);
    const size_t n = energy->run_keys.n;
    const uint32_t number =
        key.failed ? MAREY__NO_NAME : marey__names_number(&energy->run_keys, key.data, key.len);
    if (number == n && keep_key(energy, &energy->run_keys, number, key.data, key.len, &energy->runs,
                                &energy->runs_cap, sizeof *energy->runs)) {
        const char *text = energy->run_keys.names[number].text;
        energy->runs[number] = (struct marey__old_run){.name = text + name_at,
                                                       .strategy = text + strategy_at,
                                                       .num_gpus = whose->number,
                                                       .repeat = repeat,
                                                       .is_epochs = whose->is_epochs,
                                                       .last_epoch = -1};
        run = &energy->runs[number];
    } else if (number < n) {
        run = &energy->runs[number];
    }
    marey__buf_fini(&key);
    return run;
}

static struct marey__old_gpu *find_gpu(struct marey__old_energy *energy, uint32_t run,
                                       uint64_t node, uint64_t local_rank)
{
    char key[96];
    const size_t n = energy->gpu_keys.n,
                 len = (size_t)snprintf(key, sizeof key, "%u %llu %llu", run,
                                        (unsigned long long)node, (unsigned long long)local_rank);
    const uint32_t number = marey__names_number(&energy->gpu_keys, key, len);
    if (number == MAREY__NO_NAME)
        return NULL;
    if (number < n)
        return &energy->gpus[number];
    if (!keep_key(energy, &energy->gpu_keys, number, key, len, &energy->gpus, &energy->gpus_cap,
                  sizeof *energy->gpus))
        return NULL;
    energy->gpus[number] =
        (struct marey__old_gpu){.run = run, .node = node, .local_rank = local_rank, .last_index = -1};
    return &energy->gpus[number];
}

/* ---- rows ---- */

static bool drop(struct marey__old_energy *energy)
{
    energy->n_dropped++;
    return true;
}

static void add_reading(struct marey__old_gpu *gpu, double index, double watts, double use)
{
    if (gpu->n == 0)
        gpu->first_w = watts;
    else
        gpu->trapezoids_w += (index - gpu->last_index) * (watts + gpu->last_w) / 2;
    gpu->n++;
    gpu->last_index = index;
    gpu->last_w = watts;
    gpu->sum_w += watts;
    gpu->peak_w = fmax(gpu->peak_w, watts);
    gpu->sum_use += use >= 0 ? use : 0;
    gpu->n_use += use >= 0;
}

/* A GPU's numbers count up: where they do not, its readings begin anew, as those of a repeat do. */
static bool take_reading(void *ctx, const struct marey__csv *csv)
{
    struct marey__old_energy *energy = ctx;
    struct whose whose = {0};
    uint64_t index, local_rank = 0, node = 0;
    double watts, interval, use;
    if (!marey__csv_find(csv, STRATEGY, &whose.strategy) ||
        !marey__csv_count(csv, NUM_GPUS, &whose.number) || !marey__csv_count(csv, INDEX, &index) ||
        !marey__csv_number(csv, POWER, &watts) || !(watts >= 0 && watts <= max_w) ||
        !marey__csv_number(csv, INTERVAL, &interval) || !(interval > 0 && interval <= max_s) ||
        energy->run_keys.n >= MAX_RUNS)
        return drop(energy);
    (void)marey__csv_count(csv, LOCAL_RANK, &local_rank);
    (void)marey__csv_count(csv, NODE, &node);
    if (!marey__csv_number(csv, USE, &use) || !(use >= 0 && use <= 100))
        use = -1;
    for (uint32_t repeat = 0; repeat < MAX_REPEATS; repeat++) {
        struct marey__old_run *run = find_run(energy, &whose, repeat);
        if (run == NULL)
            return false;
        const uint32_t number = (uint32_t)(run - energy->runs);
        struct marey__old_gpu *gpu = find_gpu(energy, number, node, local_rank);
        if (gpu == NULL)
            return false;
        if ((double)index <= gpu->last_index)
            continue; /* it is of a later repeat, the last of which has room for it */
        run->has_intervals |= run->interval_s != 0 && run->interval_s != interval;
        run->interval_s = interval;
        add_reading(gpu, (double)index, watts, use);
        return true;
    }
    return drop(energy);
}

static bool take_epoch(void *ctx, const struct marey__csv *csv)
{
    struct marey__old_energy *energy = ctx;
    struct whose whose = {.is_epochs = true};
    uint64_t epoch;
    double s;
    if (!marey__csv_find(csv, NAME, &whose.strategy) ||
        !marey__csv_count(csv, NODES, &whose.number) || !marey__csv_count(csv, EPOCH, &epoch) ||
        !marey__csv_number(csv, TIME, &s) || !(s >= 0 && s <= max_s)) {
        return drop(energy);
    }
    for (uint32_t repeat = 0; repeat < MAX_REPEATS; repeat++) {
        struct marey__old_run *run = find_run(energy, &whose, repeat);
        if (run == NULL)
            return false;
        if ((double)epoch <= run->last_epoch)
            continue;
        if (!MAREY__PUSH(energy->epochs, energy->n_epochs, energy->epochs_cap,
                         (struct marey__old_epoch){.run = (uint32_t)(run - energy->runs), .s = s}))
            return false;
        run->last_epoch = (double)epoch;
        run->n_epochs++;
        run->epochs_s += s;
        return true;
    }
    return drop(energy);
}

/* ---- a file ---- */

/* The folder above "gpu-energy-data" or "epoch-time", where it is a run's: ".../RUN/gpu-energy-data/ddp_4.csv". */
static void name_run(struct marey__old_energy *energy, const char *path)
{
    static const char root[] = "scalability-metrics";
    const char *ends[3] = {path, path, path};
    for (const char *at = path; (at = strchr(at, '/')) != NULL; at++) {
        ends[0] = ends[1];
        ends[1] = ends[2];
        ends[2] = at;
    }
    const char *begin = *ends[0] == '/' ? ends[0] + 1 : ends[0];
    const size_t len = ends[1] > begin ? (size_t)(ends[1] - begin) : 0;
    const bool is_root = len == sizeof root - 1 && memcmp(begin, root, len) == 0;
    energy->run_name = begin;
    energy->run_name_len = is_root ? 0 : len;
}

/* The first line tells which kind it is: it is looked at, and not taken. */
static bool has_epochs(marey__byte_source *bytes)
{
    static const char first[] = "epoch_id";
    const char *text;
    size_t len;
    if (marey__bytes_peek(bytes, &text, &len) != MAREY_OK)
        return false;
    const char *end = memchr(text, '\n', len);
    return memmem(text, end != NULL ? (size_t)(end - text) : len, first, sizeof first - 1) != NULL;
}

marey_status marey__old_energy_read(struct marey__old_energy *energy, marey__byte_source *bytes,
                                    const char *path, bool *is_other)
{
    const bool is_epochs = has_epochs(bytes);
    struct marey__csv csv = {.path = path,
                             .what = is_epochs ? "epoch times as itwinai writes"
                                               : "GPU power as itwinai writes",
                             .names = is_epochs ? epoch_names : gpu_names,
                             .n_names = is_epochs ? (size_t)N_EPOCH : (size_t)N_GPU,
                             .n_needed = is_epochs ? (size_t)N_EPOCH : (size_t)LOCAL_RANK,
                             .take = is_epochs ? take_epoch : take_reading,
                             .ctx = energy};
    name_run(energy, path);
    return marey__csv_read(&csv, bytes, is_other);
}

void marey__old_energy_fini(struct marey__old_energy *energy)
{
    marey__names_fini(&energy->gpu_keys);
    marey__names_fini(&energy->run_keys);
    marey__arena_fini(&energy->texts);
    marey__free(energy->gpus);
    marey__free(energy->runs);
    marey__free(energy->epochs);
    *energy = (struct marey__old_energy){0};
}
