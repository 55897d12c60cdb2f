/* Options by name: one table says what there is, what it means and how to read it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "switchboard/switchboard_internal.h"

enum { POOL_DEFAULT = 32u << 20 };

static bool read_size(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    const uint64_t number = strtoull(text, &end, 10);
    static const char letters[] = "kmgt";
    int shift = 0;
    if (text[0] < '0' || text[0] > '9' || errno != 0)
        return false;
    const char *letter = *end != '\0' ? strchr(letters, *end | 0x20) : NULL;
    if (letter != NULL) {
        shift = 10 * (int)(letter - letters + 1);
        end++;
    }
    if (strcasecmp(end, "") != 0 && strcasecmp(end, "b") != 0 && strcasecmp(end, "ib") != 0)
        return false;
    if (number > UINT64_MAX >> shift)
        return false;
    *out = number << shift;
    return true;
}

static bool read_bool(const char *text, bool *out)
{
    static const char *const words[][2] = {
        {"0", "1"}, {"false", "true"}, {"no", "yes"}, {"off", "on"}};
    for (size_t i = 0; i < MAREY__COUNT_OF(words); i++)
        for (int value = 0; value < 2; value++)
            if (strcasecmp(text, words[i][value]) == 0) {
                *out = value;
                return true;
            }
    return false;
}

static bool read_number(const char *text, int *out)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < 0 || value > INT32_MAX)
        return false;
    *out = (int)value;
    return true;
}

static bool read_word(const char *text, const char *const *words, int n, int *out)
{
    for (int i = 0; i < n; i++)
        if (strcasecmp(text, words[i]) == 0) {
            *out = i;
            return true;
        }
    return false;
}

static bool set_pool(struct marey__settings *s, const char *text)
{
    return read_size(text, &s->pool_bytes) && s->pool_bytes > 0 && s->pool_bytes <= UINT64_C(1) << 40;
}

static bool set_disk(struct marey__settings *s, const char *text)
{
    return read_size(text, &s->disk_bytes) && s->disk_bytes > 0;
}

static bool set_policy(struct marey__settings *s, const char *text)
{
    static const char *const words[] = {"keep-oldest", "keep-newest", "block"};
    int i;
    if (!read_word(text, words, MAREY__COUNT_OF(words), &i))
        return false;
    s->policy = (enum marey_policy)i;
    return true;
}

static bool set_clock(struct marey__settings *s, const char *text)
{
    static const char *const words[] = {"auto", "tsc", "monotonic"};
    int i;
    if (!read_word(text, words, MAREY__COUNT_OF(words), &i))
        return false;
    s->clock = (enum marey_clock)i;
    return true;
}

static bool set_place(struct marey__settings *s, const char *text)
{
    static const char *const words[] = {"auto", "dir", "shm", "memory"};
    int i;
    if (!read_word(text, words, MAREY__COUNT_OF(words), &i))
        return false;
    s->pool_place = (enum marey__pool_place)i;
    return true;
}

static bool set_check(struct marey__settings *s, const char *text)
{
    return read_bool(text, &s->check_nesting);
}

static bool set_nvtx(struct marey__settings *s, const char *text)
{
    return read_bool(text, &s->nvtx_out);
}

/* Any of the wrapper's options, also one that says no, switches the wrapper on. */
static bool set_wrapper_bit(struct marey__settings *s, const char *text, uint32_t bit)
{
    bool value;
    if (!read_bool(text, &value))
        return false;
    s->wrapper = MAREY_ON_WRAPPER | (value ? s->wrapper | bit : s->wrapper & ~bit);
    return true;
}

static bool set_sync_on_push(struct marey__settings *s, const char *text)
{
    return set_wrapper_bit(s, text, MAREY_ON_SYNC_PUSH);
}

static bool set_sync_on_pop(struct marey__settings *s, const char *text)
{
    return set_wrapper_bit(s, text, MAREY_ON_SYNC_POP);
}

static bool set_range_order(struct marey__settings *s, const char *text)
{
    return set_wrapper_bit(s, text, MAREY_ON_ORDER);
}

static bool read_count(const char *text, uint64_t *out)
{
    int value;
    if (!read_number(text, &value))
        return false;
    *out = (uint64_t)value;
    return true;
}

static bool set_warmup(struct marey__settings *s, const char *text)
{
    return s->has_warmup = read_count(text, &s->warmup);
}

/* Any of the stopwatch's options, also one that says no, switches the stopwatch on. */
static bool set_stopwatch_warmup(struct marey__settings *s, const char *text)
{
    struct marey__stopwatch_settings *const w = &s->stopwatch;
    return w->is_wanted = w->has_warmup = read_count(text, &w->warmup);
}

static bool set_print_every(struct marey__settings *s, const char *text)
{
    struct marey__stopwatch_settings *const w = &s->stopwatch;
    return w->is_wanted = w->has_print_every = read_count(text, &w->print_every);
}

static bool set_gpu(struct marey__settings *s, const char *text)
{
    static const char *const words[] = {"none", "sync", "events"}; /* as enum marey_stopwatch_gpu */
    struct marey__stopwatch_settings *const w = &s->stopwatch;
    return w->is_wanted = w->has_gpu = read_word(text, words, MAREY__COUNT_OF(words), &w->gpu);
}

static bool set_cuda_sync(struct marey__settings *s, const char *text)
{
    bool value;
    return read_bool(text, &value) && set_gpu(s, value ? "sync" : "none");
}

/* Any of the dumper's options switches the dumper on. */
static bool given(struct marey__settings *s, uint32_t field, bool is_right)
{
    s->dump.given |= is_right ? field : 0;
    return is_right;
}

static bool set_dump_dir(struct marey__settings *s, const char *text)
{
    return given(s, MAREY__GIVEN_DIR,
                 text[0] != '\0' && snprintf(s->dump.dir, sizeof s->dump.dir, "%s", text) <
                                        (int)sizeof s->dump.dir);
}

static bool set_dump_layout(struct marey__settings *s, const char *text)
{
    static const char *const words[] = {"marey", "accvlab"}; /* as enum marey_dump_layout */
    return given(s, MAREY__GIVEN_LAYOUT,
                 read_word(text, words, MAREY__COUNT_OF(words), &s->dump.layout));
}

static bool set_dump_mode(struct marey__settings *s, const char *text)
{
    static const char *const words[] = {"full", "stats", "digests"}; /* as enum marey_dump_mode */
    return given(s, MAREY__GIVEN_MODE, read_word(text, words, MAREY__COUNT_OF(words), &s->dump.mode));
}

static bool set_dump_policy(struct marey__settings *s, const char *text)
{
    static const char *const words[] = {"block", "drop", "stats"}; /* as enum marey_dump_policy */
    return given(s, MAREY__GIVEN_POLICY,
                 read_word(text, words, MAREY__COUNT_OF(words), &s->dump.policy));
}

static bool set_dump_memory(struct marey__settings *s, const char *text)
{
    return given(s, MAREY__GIVEN_MEMORY,
                 read_size(text, &s->dump.memory_bytes) && s->dump.memory_bytes > 0);
}

static bool set_dump_disk(struct marey__settings *s, const char *text)
{
    return given(s, MAREY__GIVEN_DISK,
                 read_size(text, &s->dump.disk_bytes) && s->dump.disk_bytes > 0);
}

static bool set_dump_first(struct marey__settings *s, const char *text)
{
    return given(s, MAREY__GIVEN_FIRST, read_count(text, &s->dump.first));
}

static bool set_dump_last(struct marey__settings *s, const char *text)
{
    return given(s, MAREY__GIVEN_LAST, read_count(text, &s->dump.last));
}

static bool set_dump_every(struct marey__settings *s, const char *text)
{
    return given(s, MAREY__GIVEN_EVERY, read_count(text, &s->dump.every) && s->dump.every > 0);
}

static bool set_dump_flight(struct marey__settings *s, const char *text)
{
    return given(s, MAREY__GIVEN_FLIGHT, read_count(text, &s->dump.flight_steps));
}

static bool set_dump_durable(struct marey__settings *s, const char *text)
{
    return given(s, MAREY__GIVEN_DURABLE, read_bool(text, &s->dump.durable));
}

static bool set_gpu_tracing(struct marey__settings *s, const char *text)
{
    return read_bool(text, &s->gpu.is_wanted);
}

static bool set_gpu_syncs(struct marey__settings *s, const char *text)
{
    return read_bool(text, &s->gpu.syncs);
}

/* "WAIT:WARMUP:ACTIVE" or "WAIT:WARMUP:ACTIVE:REPEAT", in iterations. It does not switch tracing on. */
static bool set_gpu_schedule(struct marey__settings *s, const char *text)
{
    uint32_t numbers[4] = {0};
    size_t n = 0;
    for (const char *at = text; n < MAREY__COUNT_OF(numbers); n++) {
        char *end;
        errno = 0;
        const unsigned long value = strtoul(at, &end, 10);
        if (*at < '0' || *at > '9' || errno != 0 || value > INT32_MAX)
            return false;
        numbers[n] = (uint32_t)value;
        if (*end == '\0') {
            n++;
            break;
        }
        if (*end != ':' || n + 1 == MAREY__COUNT_OF(numbers))
            return false;
        at = end + 1;
    }
    if (n < 3 || numbers[2] == 0)
        return false;
    s->gpu.wait = numbers[0], s->gpu.warmup = numbers[1];
    s->gpu.active = numbers[2], s->gpu.repeat = numbers[3];
    return true;
}

static bool set_energy(struct marey__settings *s, const char *text)
{
    return read_bool(text, &s->energy.is_wanted);
}

static bool set_energy_hz(struct marey__settings *s, const char *text)
{
    enum { MOST_HZ = 100 };
    uint64_t hz;
    if (!read_count(text, &hz) || hz < 1 || hz > MOST_HZ)
        return false;
    s->energy.hz = (uint32_t)hz;
    return true;
}

static bool set_memory(struct marey__settings *s, const char *text)
{
    return read_bool(text, &s->memory.is_wanted);
}

static bool set_memory_sample(struct marey__settings *s, const char *text)
{
    return read_size(text, &s->memory.interval) && s->memory.interval > 0 &&
           s->memory.interval <= UINT64_C(1) << 40;
}

static bool set_calls(struct marey__settings *s, const char *text)
{
    return read_bool(text, &s->calls.is_wanted);
}

static bool set_calls_modules(struct marey__settings *s, const char *text)
{
    return snprintf(s->calls.modules, sizeof s->calls.modules, "%s", text) <
           (int)sizeof s->calls.modules;
}

static bool set_calls_signatures(struct marey__settings *s, const char *text)
{
    static const char *const words[] = {"none", "types", "dtype", "shape", "layout"};
    bool value;
    if (read_bool(text, &value)) {
        s->calls.signatures = value ? -1 : 0;
        return true;
    }
    return read_word(text, words, MAREY__COUNT_OF(words), &s->calls.signatures);
}

static bool set_calls_builtins(struct marey__settings *s, const char *text)
{
    bool value;
    if (!read_bool(text, &value))
        return false;
    s->calls.no_builtins = !value;
    return true;
}

static bool set_calls_memory(struct marey__settings *s, const char *text)
{
    return read_size(text, &s->calls.memory_bytes) && s->calls.memory_bytes > 0;
}

static bool set_children(struct marey__settings *s, const char *text)
{
    return read_bool(text, &s->follow_fork);
}

static bool set_rank(struct marey__settings *s, const char *text)
{
    return read_number(text, &s->rank);
}

static bool set_world(struct marey__settings *s, const char *text)
{
    return read_number(text, &s->world_size);
}

static bool set_run_id(struct marey__settings *s, const char *text)
{
    return text[0] != '\0' &&
           snprintf(s->run_id, sizeof s->run_id, "%s", text) < (int)sizeof s->run_id;
}

static bool set_experiment(struct marey__settings *s, const char *text)
{
    return snprintf(s->experiment, sizeof s->experiment, "%s", text) < (int)sizeof s->experiment;
}

static bool set_strategy(struct marey__settings *s, const char *text)
{
    return snprintf(s->strategy, sizeof s->strategy, "%s", text) < (int)sizeof s->strategy;
}

static const struct {
    const char *key, *values, *fallback, *meaning;
    bool (*set)(struct marey__settings *s, const char *text);
} options[] = {
    {"pool", "SIZE", "32MiB", "memory for events not yet written", set_pool},
    {"disk", "SIZE", "4GiB or a tenth of what is free", "the most that one process's log may take",
     set_disk},
    {"policy", "keep-oldest|keep-newest|block", "keep-oldest",
     "what happens when memory and disk budget are full", set_policy},
    {"clock", "auto|tsc|monotonic", "auto", "where time comes from", set_clock},
    {"check", "0|1", "0", "check that ranges nest", set_check},
    {"children", "0|1", "1", "forked children record too", set_children},
    {"rank", "N", "from the launcher", "this process's rank", set_rank},
    {"world_size", "N", "from the launcher", "how many ranks there are", set_world},
    {"run_id", "TEXT", "from the launcher, else random", "what joins the logs of one run", set_run_id},
    {"experiment", "TEXT", "none", "what reports of scaling compare", set_experiment},
    {"strategy", "TEXT", "none", "how it is distributed: a series in reports of scaling",
     set_strategy},
    {"pool_in", "auto|dir|shm|memory", "auto",
     "where the pool lies; memory does not survive kill -9", set_place},
    {"nvtx", "0|1", "1", "ranges also go to an NVTX tool when there is one", set_nvtx},
    {"nvtx.sync_on_push", "0|1", "0", "NVTXRangeWrapper waits for the GPU before a push",
     set_sync_on_push},
    {"nvtx.sync_on_pop", "0|1", "0", "NVTXRangeWrapper waits for the GPU before a pop",
     set_sync_on_pop},
    {"nvtx.keep_track_of_range_order", "0|1", "0", "NVTXRangeWrapper checks that ranges nest",
     set_range_order},
    {"warmup", "N", "0", "the first N iterations are marked as warm-up", set_warmup},
    {"stopwatch.warmup", "N", "0", "Stopwatch leaves out N iterations", set_stopwatch_warmup},
    {"stopwatch.print_every", "N", "0", "Stopwatch prints its report every N measured iterations",
     set_print_every},
    {"stopwatch.cuda_sync", "0|1", "0", "Stopwatch waits for the GPU at both ends", set_cuda_sync},
    {"stopwatch.gpu", "none|sync|events", "none", "how Stopwatch measures GPU work", set_gpu},
    {"dump.dir", "DIR", "dumps, in the recording", "TensorDumper writes there", set_dump_dir},
    {"dump.layout", "marey|accvlab", "marey", "which files TensorDumper writes", set_dump_layout},
    {"dump.mode", "full|stats|digests", "full", "what is kept of a tensor", set_dump_mode},
    {"dump.policy", "block|drop|stats", "block", "what happens when dump.memory is full",
     set_dump_policy},
    {"dump.memory", "SIZE", "1GiB", "memory for tensors not yet written", set_dump_memory},
    {"dump.disk", "SIZE", "until a tenth is left", "the most that one process's dumps may take",
     set_dump_disk},
    {"dump.first", "N", "0", "the first step that is kept", set_dump_first},
    {"dump.last", "N", "none", "the last step that is kept", set_dump_last},
    {"dump.every", "N", "1", "every N-th step is kept", set_dump_every},
    {"dump.flight", "N", "0", "only the last N steps, and only when something happens",
     set_dump_flight},
    {"dump.durable", "0|1", "0", "a step counts as written when it is on the disk", set_dump_durable},
    {"gpu", "0|1", "0", "records what NVIDIA GPUs do", set_gpu_tracing},
    {"gpu.schedule", "WAIT:WARMUP:ACTIVE[:REPEAT]", "always", "the iterations in which it does",
     set_gpu_schedule},
    {"gpu.syncs", "0|1", "0", "also records streams that wait, which slows launches", set_gpu_syncs},
    {"energy", "0|1", "0", "records energy, power and utilization", set_energy},
    {"energy.hz", "N", "50, 20 without samples", "values of power a second, 1 to 100", set_energy_hz},
    {"memory", "0|1", "0", "records resident memory, and allocations by samples", set_memory},
    {"memory.sample", "SIZE", "512KiB, more where needed",
     "bytes between two samples of allocations; 1: every allocation", set_memory_sample},
    {"calls", "0|1", "0", "records calls of Python functions", set_calls},
    {"calls.modules", "NAME[:NAME...]", "all", "modules and packages whose functions are recorded",
     set_calls_modules},
    {"calls.signatures", "0|1|types|dtype|shape|layout", "1, which is shape",
     "what of the arguments tells calls apart", set_calls_signatures},
    {"calls.builtins", "0|1", "1", "calls of functions written in C are recorded too",
     set_calls_builtins},
    {"calls.memory", "SIZE", "64MiB", "memory for paths of calls", set_calls_memory},
};

void marey__settings_init(struct marey__settings *s)
{
    *s = (struct marey__settings){.pool_bytes = POOL_DEFAULT,
                                  .follow_fork = true,
                                  .nvtx_out = true,
                                  .calls = {.signatures = -1},
                                  .rank = -1,
                                  .world_size = -1,
                                  .local_rank = -1};
}

static marey_status unknown_key(const char *key)
{
    char list[2048];
    size_t len = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(options); i++)
        marey__append(list, sizeof list, &len, "%s%s", i > 0 ? ", " : "", options[i].key);
    return marey__fail(MAREY_EINVAL, "no option is called '%s'; the options are %s", key, list);
}

static marey_status apply(struct marey__settings *s, const char *key, const char *value)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(options); i++) {
        if (strcmp(key, options[i].key) != 0)
            continue;
        if (options[i].set(s, value))
            return MAREY_OK;
        return marey__fail(MAREY_EINVAL, "option %s cannot be '%s'; it takes %s", key, value,
                           options[i].values);
    }
    return unknown_key(key);
}

marey_status marey__settings_parse(struct marey__settings *s, const char *text)
{
    char pair[512];
    for (const char *at = text != NULL ? text : ""; *at != '\0';) {
        const size_t len = strcspn(at, ",");
        if (len >= sizeof pair)
            return marey__fail(MAREY_EINVAL, "an option of %zu bytes is too long", len);
        memcpy(pair, at, len);
        pair[len] = '\0';
        at += at[len] == ',' ? len + 1 : len;
        if (len == 0)
            continue;
        char *equals = strchr(pair, '=');
        if (equals == NULL)
            return marey__fail(MAREY_EINVAL, "option '%s' lacks a value: write %s=VALUE", pair, pair);
        *equals = '\0';
        MAREY_TRY(apply(s, pair, equals + 1));
    }
    return MAREY_OK;
}

marey_status marey_options_check(const char *text)
{
    struct marey__settings s;
    marey__settings_init(&s);
    return marey__settings_parse(&s, text);
}

static char help[8192];

static void make_help(void)
{
    size_t len = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(options); i++) {
        char left[64];
        snprintf(left, sizeof left, "%s=%s", options[i].key, options[i].values);
        marey__append(help, sizeof help, &len, "%-38s %s (%s)\n", left, options[i].meaning,
                      options[i].fallback);
    }
}

const char *marey_options_help(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_help);
    return help;
}
