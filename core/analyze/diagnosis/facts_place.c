/*
 * Finds the place of samples: the innermost function with at least half of them, and its most
 * frequent line.
 */
#include <string.h>

#include "analyze/diagnosis/internal.h"

/* marey's own hook; excluded. */
static bool is_mareys(const struct marey_samples_function *f)
{
    return strstr(f->file, "/marey/_auto") != NULL ||
           strstr(f->file, "/marey/_loader_workers.py") != NULL;
}

/* Frames around the loader do not belong to loading. */
static bool is_loader(const struct marey_samples_function *f)
{
    return strstr(f->file, "/torch/utils/data/") != NULL;
}

static bool is_installed(const struct marey_samples_function *f)
{
    return strstr(f->file, "/site-packages/") != NULL ||
           strstr(f->file, "/dist-packages/") != NULL || is_mareys(f);
}

static const struct marey_samples_function *function_of(const marey_samples *samples, uint32_t stack)
{
    const uint32_t location = marey_samples_get_stack(samples, stack).location;
    return marey_samples_get_function(samples,
                                      marey_samples_get_location(samples, location).function);
}

bool marey__facts_is_users(const struct marey__facts *facts, const struct marey_samples_function *f)
{
    return f->kind == MAREY_FRAME_PYTHON && f->file[0] != '<' && f->file[0] != '\0' &&
           ((strstr(f->file, "/lib/python") == NULL && !is_installed(f)) ||
            (facts->package_len != 0 && strncmp(f->file, facts->package, facts->package_len) == 0));
}

/* Of the first bucket: the outermost frame is __main__; a command's script in bin/ calls the package that it belongs to. */
static void find_package(struct marey__facts *facts)
{
    const marey_samples *const samples = facts->set.samples;
    for (size_t i = 0; i < facts->n_buckets && facts->package_len == 0; i++) {
        const char *files[2] = {"", ""}; /* of __main__, and of what it calls */
        if (!marey__sample_bucket_has_kind(&facts->buckets[i], MAREY__FACT_STEPS))
            continue;
        for (uint32_t at = marey__sample_bucket_stack(&facts->buckets[i]); at != 0;
             at = marey_samples_get_stack(samples, at).parent) {
            const struct marey_samples_function *const f = function_of(samples, at);
            if (f->kind == MAREY_FRAME_PYTHON && f->file[0] != '<' &&
                (strstr(f->file, "/lib/python") == NULL || is_installed(f))) {
                files[1] = files[0];
                files[0] = f->file;
            }
        }
        const bool is_command = strstr(files[0], "/bin/") != NULL && strstr(files[0], ".py") == NULL;
        const char *const file = files[is_command],
                          *start = marey__path_below(file, "/site-packages/");
        if (start == NULL)
            start = marey__path_below(file, "/dist-packages/");
        if (start == NULL || strncmp(start, "torch/", 6) == 0)
            continue;
        facts->package = file;
        facts->package_len = (size_t)(start - file) + strcspn(start, "/");
    }
}

/* ---- flags ---- */

/* The path of an installed file or of the standard library, from its package on; NULL: of the user's. */
static const char *package_of(const struct marey_samples_function *f)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/lib/python"};
    for (size_t i = 0; i < MAREY__COUNT_OF(folders); i++) {
        const char *const at = strstr(f->file, folders[i]);
        if (at != NULL)
            return strchr(at + strlen(folders[i]) - 1, '/');
    }
    return NULL;
}

static bool contains_any(const char *text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(text, list[i]) != NULL)
            return true;
    return false;
}

/* "log", "log_metrics", a method of a "...Logger"; but not "log_prob". */
static bool is_named_logging(const char *name)
{
    static const char *const objects[] = {
        "all",    "batch", "epoch", "event", "grad",  "hist", "imag", "info",  "memo", "messag",
        "metric", "param", "progr", "resul", "scala", "stat", "step", "summa", "train"};
    const char *const dot = strrchr(name, '.'), *last = dot != NULL ? dot + 1 : name;
    last += strspn(last, "_");
    if (strstr(name, "Logger.") != NULL || strcmp(last, "log") == 0 || strcmp(last, "on_log") == 0)
        return true;
    for (size_t i = 0; strncmp(last, "log_", 4) == 0 && i < MAREY__COUNT_OF(objects); i++)
        if (strncmp(last + 4, objects[i], strlen(objects[i])) == 0)
            return true;
    return false;
}

static bool is_logging_library(const struct marey_samples_function *f)
{
    static const char *const libraries[] = {"/logging/__init__.py",
                                            "/logging/handlers.py",
                                            "/tqdm/",
                                            "/tensorboard/",
                                            "/tensorboardX/",
                                            "/loguru/",
                                            "/rich/"};
    const char *const file = package_of(f);
    return file != NULL && contains_any(file, libraries, MAREY__COUNT_OF(libraries));
}

/* Writes output: a logging library, a function with such a name, or one that formats text for it. */
static bool is_writing(const struct marey_samples_function *f)
{
    static const char *const files[] = {"/json/",     "/csv.py",      "/pickle.py",
                                        "/codecs.py", "/matplotlib/", "/PIL/"},
                             *const names[] = {"write", "print", "dump"};
    const char *const file = package_of(f);
    return is_logging_library(f) ||
           (file != NULL && contains_any(file, files, MAREY__COUNT_OF(files))) ||
           contains_any(f->name, names, MAREY__COUNT_OF(names));
}

/* By function: named like logging, and something that it calls writes. NULL on out of memory. */
static bool *find_named(const struct marey__facts *facts)
{
    const marey_samples *const samples = facts->set.samples;
    bool *const named = marey__calloc((size_t)marey_samples_n_functions(samples) + 1, sizeof *named);
    for (uint32_t i = 1; named != NULL && i <= facts->n_stacks; i++) {
        struct marey_samples_stack stack = marey_samples_get_stack(samples, i);
        uint32_t function = marey_samples_get_location(samples, stack.location).function;
        if (!is_writing(marey_samples_get_function(samples, function)))
            continue;
        while (function != 0) {
            const struct marey_samples_function *const f =
                marey_samples_get_function(samples, function);
            named[function] |= marey__facts_is_users(facts, f) && is_named_logging(f->name);
            stack = marey_samples_get_stack(samples, stack.parent);
            function = stack.location != 0
                           ? marey_samples_get_location(samples, stack.location).function
                           : 0;
        }
    }
    return named;
}

/*
 * Flags pass to callees. A frame of the user's code clears logging: progress bars and loggers may
 * call it.
 */
static uint8_t flags_of(const struct marey__facts *facts, const struct marey_samples_function *f,
                        bool is_named, uint8_t around)
{
    enum { IN_LIBRARY = 128 };
    uint8_t flags = around;
    if (strstr(f->file, "/torch/nn/modules/module.py") != NULL)
        flags |= MAREY__FACT_MODEL;
    if (strstr(f->file, "/torch/amp/grad_scaler.py") != NULL)
        flags |= MAREY__FACT_SCALES;
    if (strstr(f->file, "/torch/_dynamo/convert_frame.py") != NULL)
        flags |= MAREY__FACT_COMPILES;
    if (strstr(f->file, "/torch/distributed/") != NULL)
        flags |= MAREY__FACT_COMMUNICATES;
    if (strcmp(f->name, "_worker_loop") == 0 && is_loader(f))
        flags |= MAREY__FACT_IN_WORKER;
    if (marey__facts_is_users(facts, f)) {
        if ((flags & IN_LIBRARY) != 0)
            flags &= (uint8_t) ~(IN_LIBRARY | MAREY__FACT_LOGS);
        flags |= is_named ? MAREY__FACT_LOGS : 0;
    }
    if ((flags & MAREY__FACT_LOGS) == 0 && is_logging_library(f))
        flags |= IN_LIBRARY | MAREY__FACT_LOGS;
    return flags;
}

bool marey__facts_flag_stacks(struct marey__facts *facts)
{
    const marey_samples *const samples = facts->set.samples;
    find_package(facts);
    const bool *const named MAREY__FREED = find_named(facts);
    if (facts->stack_flags == NULL)
        facts->stack_flags = marey__calloc((size_t)facts->n_stacks + 1, 1);
    if (named == NULL || facts->stack_flags == NULL)
        return false;
    /* A caller's stack has a smaller number. */
    for (uint32_t i = 1; i <= facts->n_stacks; i++) {
        const struct marey_samples_stack stack = marey_samples_get_stack(samples, i);
        const uint32_t function = marey_samples_get_location(samples, stack.location).function;
        facts->stack_flags[i] = flags_of(facts, marey_samples_get_function(samples, function),
                                         named[function], facts->stack_flags[stack.parent]);
    }
    return true;
}

/* ---- places ---- */

static const double nearly_all = 0.95; /* samples of steps */

struct place_search {
    const struct marey__facts *facts;
    bool keeps_users;        /* the place is a line of the user's code, in any phase */
    bool is_loading;         /* ignores frames around the innermost one of torch's loader */
    const uint64_t *weights; /* by stack */
    const uint64_t *others;  /* weights of the samples to compare with; NULL: none */
    uint64_t *ns, *other_ns; /* by function: weight of the samples that contain it */
    double *depth_ns;        /* by function: weight times the depth of its innermost frame */
    uint32_t *seen;          /* by function: the last stack that contained it */
};

static void add_other(const struct place_search *s, uint32_t stack)
{
    const marey_samples *const samples = s->facts->set.samples;
    for (uint32_t at = stack; at != 0;) {
        const struct marey_samples_stack frame = marey_samples_get_stack(samples, at);
        const uint32_t function = marey_samples_get_location(samples, frame.location).function;
        if (s->seen[function] != stack) {
            s->seen[function] = stack;
            s->other_ns[function] += s->others[stack];
        }
        at = frame.parent;
    }
}

static void add_stack(const struct place_search *s, uint32_t stack)
{
    const marey_samples *const samples = s->facts->set.samples;
    for (uint32_t at = stack; at != 0;) {
        const struct marey_samples_stack frame = marey_samples_get_stack(samples, at);
        const uint32_t function = marey_samples_get_location(samples, frame.location).function;
        if (s->seen[function] != stack) {
            s->seen[function] = stack;
            s->ns[function] += s->weights[stack];
            s->depth_ns[function] += (double)s->weights[stack] * frame.depth;
        }
        if (s->is_loading && is_loader(marey_samples_get_function(samples, function)))
            return;
        at = frame.parent;
    }
}

/*
 * The innermost function, on average, of those in at least half of the samples and in few of the
 * other samples.
 */
static uint32_t innermost(const struct place_search *s, uint64_t all_ns, uint64_t others_ns,
                          bool only_users)
{
    const double most_typical = 0.1;
    const marey_samples *const samples = s->facts->set.samples;
    uint32_t found = 0;
    double deepest = 0;
    for (uint32_t i = 1; i <= marey_samples_n_functions(samples); i++) {
        const double depth = s->ns[i] != 0 ? s->depth_ns[i] / (double)s->ns[i] : 0;
        const struct marey_samples_function *const f = marey_samples_get_function(samples, i);
        if (s->ns[i] * 2 < all_ns || depth <= deepest || is_mareys(f) ||
            (only_users && !marey__facts_is_users(s->facts, f)) ||
            (double)s->other_ns[i] * (double)all_ns >
                most_typical * (double)s->ns[i] * (double)others_ns)
            continue;
        found = i;
        deepest = depth;
    }
    return found;
}

/* The location of the function's innermost frame in a stack; 0: not in it. */
static uint32_t location_in(const struct marey__facts *facts, uint32_t stack, uint32_t function)
{
    while (stack != 0) {
        const struct marey_samples_stack frame = marey_samples_get_stack(facts->set.samples, stack);
        if (marey_samples_get_location(facts->set.samples, frame.location).function == function)
            return frame.location;
        stack = frame.parent;
    }
    return 0;
}

/* The line with the most time among the function's innermost frames. */
static bool find_line(const struct place_search *s, struct marey__fact_place *out)
{
    const marey_samples *const samples = s->facts->set.samples;
    uint64_t most_ns = 0, *const by_location = marey__calloc(
                              (size_t)marey_samples_n_locations(samples) + 1, sizeof *by_location);
    if (by_location == NULL)
        return false;
    for (uint32_t i = 1; i <= s->facts->n_stacks; i++) {
        const uint32_t location = s->weights[i] != 0 ? location_in(s->facts, i, out->function) : 0;
        if (location == 0)
            continue;
        by_location[location] += s->weights[i];
        if (by_location[location] > most_ns) {
            most_ns = by_location[location];
            out->line = marey_samples_get_location(samples, location).line;
        }
    }
    marey__free(by_location);
    return true;
}

/* Whether a function, or a line of it (0: any), is in so many of the samples of some kinds. */
static bool is_in(const struct marey__facts *facts, uint64_t kinds, double least, uint32_t function,
                  uint32_t line)
{
    uint64_t all_ns = 0, in_ns = 0;
    for (size_t i = 0; i < facts->n_buckets; i++) {
        const struct marey__sample_bucket *const bucket = &facts->buckets[i];
        if (!marey__sample_bucket_has_kind(bucket, kinds))
            continue;
        const struct marey_samples_location at = marey_samples_get_location(
            facts->set.samples, location_in(facts, marey__sample_bucket_stack(bucket), function));
        all_ns += bucket->sum.ns;
        in_ns += at.function == function && (line == 0 || at.line == line) ? bucket->sum.ns : 0;
    }
    return all_ns != 0 && (double)in_ns >= least * (double)all_ns;
}

static bool search(const struct place_search *s, bool only_users, struct marey__fact_place *out)
{
    uint64_t all_ns = 0, others_ns = 0;
    for (uint32_t i = 1; s->others != NULL && i <= s->facts->n_stacks; i++)
        if (s->others[i] != 0) {
            others_ns += s->others[i];
            add_other(s, i);
        }
    memset(s->seen, 0,
           ((size_t)marey_samples_n_functions(s->facts->set.samples) + 1) * sizeof *s->seen);
    for (uint32_t i = 1; i <= s->facts->n_stacks; i++)
        if (s->weights[i] != 0) {
            all_ns += s->weights[i];
            add_stack(s, i);
        }
    if (all_ns == 0)
        return true;
    if (others_ns != 0)
        out->function = innermost(s, all_ns, others_ns, true);
    memset(s->other_ns, 0,
           ((size_t)marey_samples_n_functions(s->facts->set.samples) + 1) * sizeof *s->other_ns);
    for (int users = 1; out->function == 0 && users >= (only_users ? 1 : 0); users--)
        out->function = innermost(s, all_ns, 0, users != 0);
    if (out->function == 0)
        return true;
    if (!find_line(s, out))
        return false;
    /* A line that nearly all samples of steps are in, as trainer.train(), says nothing about a part of them. */
    const uint32_t any =
        only_users || s->is_loading || s->keeps_users ? 0 : innermost(s, all_ns, 0, false);
    if (any != 0 && any != out->function &&
        is_in(s->facts, MAREY__FACT_STEPS, nearly_all, out->function, out->line)) {
        out->caller = out->function;
        out->caller_line = out->line;
        out->function = any;
    }
    out->ns = s->ns[out->function];
    out->share = (double)out->ns / (double)all_ns;
    return out->caller == 0 || find_line(s, out);
}

static bool find_place_of(const struct marey__facts *facts, const uint64_t *weights,
                          const uint64_t *others, bool keeps_users, bool is_loading,
                          bool only_users, struct marey__fact_place *out)
{
    *out = (struct marey__fact_place){0};
    if (!facts->has_samples)
        return true;
    const size_t n = (size_t)marey_samples_n_functions(facts->set.samples) + 1;
    const struct place_search s = {.facts = facts,
                                   .keeps_users = keeps_users,
                                   .is_loading = is_loading,
                                   .weights = weights,
                                   .others = others,
                                   .ns = marey__calloc(n, sizeof *s.ns),
                                   .other_ns = marey__calloc(n, sizeof *s.other_ns),
                                   .depth_ns = marey__calloc(n, sizeof *s.depth_ns),
                                   .seen = marey__calloc(n, sizeof *s.seen)};
    const bool done = s.ns != NULL && s.other_ns != NULL && s.depth_ns != NULL && s.seen != NULL &&
                      search(&s, only_users, out);
    MAREY__FREE_ALL(s.ns, s.other_ns, s.depth_ns, s.seen);
    return done;
}

bool marey__facts_find_place_of(const struct marey__facts *facts, const uint64_t *weights,
                                bool is_loading, bool only_users, struct marey__fact_place *out)
{
    return find_place_of(facts, weights, NULL, false, is_loading, only_users, out);
}

/*
 * Whether the user's code runs, or code that it calls in the standard library and, `with_arrays`,
 * in numpy and torch.
 */
static bool is_for_user(const struct marey__facts *facts, uint32_t stack, bool with_arrays)
{
    const marey_samples *const samples = facts->set.samples;
    while (stack != 0) {
        const struct marey_samples_function *const f = function_of(samples, stack);
        const bool is_arrays = with_arrays && (strstr(f->file, "/numpy/") != NULL ||
                                               strstr(f->file, "/torch/") != NULL);
        if (marey__facts_is_users(facts, f))
            return true;
        if ((is_installed(f) && !is_arrays) || marey__is_importlib(f->file))
            return false;
        stack = marey_samples_get_stack(samples, stack).parent;
    }
    return false;
}

uint64_t marey__fact_weight(const struct marey__facts *facts,
                            const struct marey__sample_bucket *bucket, enum marey__fact_samples which)
{
    const struct marey__fact_sum *const sum = &bucket->sum;
    const uint32_t stack = marey__sample_bucket_stack(bucket);
    const uint8_t flags = facts->stack_flags[stack];
    switch (which) {
    case MAREY__FACT_COMPILING:
        return (flags & MAREY__FACT_COMPILES) != 0 ? sum->ns : 0;
    case MAREY__FACT_LOGGED:
        return (flags & MAREY__FACT_LOGS) != 0 ||
                       marey__sample_bucket_has_kind(bucket, MAREY__FACT_BOTH(MAREY__FACT_LOGGING))
                   ? sum->ns
                   : 0;
    case MAREY__FACT_SCALING:
        return (flags & MAREY__FACT_SCALES) != 0 ? sum->ns : 0;
    case MAREY__FACT_USER_STARTUP:
        return is_for_user(facts, stack, false) ? sum->gil_ns : 0;
    case MAREY__FACT_WAITING:
        return marey__sample_bucket_has_kind(bucket, MAREY__FACT_BOTH(MAREY__FACT_BACKWARD)) ||
                       (flags & MAREY__FACT_COMMUNICATES) != 0
                   ? sum->off_ns
                   : 0;
    case MAREY__FACT_GC:
        return (flags & facts->claimed) != 0 ? 0 : sum->gc_ns;
    case MAREY__FACT_PYTHON:
        return (flags & facts->claimed) == 0 && is_for_user(facts, stack, true)
                   ? sum->gil_ns - MAREY__MIN(sum->gc_ns, sum->gil_ns)
                   : 0;
    default:
        return (flags & facts->claimed) != 0 ? 0 : sum->ns;
    }
}

uint64_t marey__facts_weigh(const struct marey__facts *facts, uint64_t kinds,
                            enum marey__fact_samples which, uint64_t *n)
{
    uint64_t ns = 0;
    *n = 0;
    for (size_t i = 0; i < facts->n_buckets; i++) {
        const struct marey__sample_bucket *const bucket = &facts->buckets[i];
        const uint64_t own_ns = marey__sample_bucket_has_kind(bucket, kinds)
                                    ? marey__fact_weight(facts, bucket, which)
                                    : 0;
        ns += own_ns;
        *n += own_ns != 0 ? bucket->sum.n : 0;
    }
    return ns;
}

double marey__facts_unclaimed_gc(const struct marey__facts *facts)
{
    const uint64_t all_ns = marey__facts_sum(facts, MAREY__FACT_STEPS).gc_ns;
    uint64_t n;
    return all_ns == 0 ? 1
                       : (double)marey__facts_weigh(facts, MAREY__FACT_STEPS, MAREY__FACT_GC, &n) /
                             (double)all_ns;
}

/* Weights by stack. Sets `*process` to that of the samples, 0 if they are too few for a place. NULL on out of memory. */
static uint64_t *weigh_stacks(const struct marey__facts *facts, uint64_t kinds,
                              enum marey__fact_samples which, uint32_t *process)
{
    enum { FEWEST = 5 };
    uint64_t *const weights = marey__calloc((size_t)facts->n_stacks + 1, sizeof *weights), n = 0;
    for (size_t i = 0; weights != NULL && i < facts->n_buckets; i++) {
        const struct marey__sample_bucket *const bucket = &facts->buckets[i];
        const uint32_t stack = marey__sample_bucket_stack(bucket);
        if (!marey__sample_bucket_has_kind(bucket, kinds) || stack == 0)
            continue;
        const uint64_t ns = marey__fact_weight(facts, bucket, which);
        weights[stack] += ns;
        if (ns == 0)
            continue;
        *process = marey__fact_process_of(n == 0, *process, bucket->sum.process);
        n += bucket->sum.n;
    }
    *process = n >= FEWEST ? *process : 0;
    return weights;
}

/* 0: too few samples, which name nothing. */
static void set_process(struct marey__fact_place *place, uint32_t process)
{
    if (process == 0)
        *place = (struct marey__fact_place){.is_unknown = true};
    place->process = process;
}

bool marey__facts_find_place(const struct marey__facts *facts, uint64_t kinds,
                             enum marey__fact_samples which, struct marey__fact_place *out)
{
    const uint64_t loading =
        MAREY__FACT_BOTH(MAREY__FACT_DATA) | MAREY__FACT_ONLY(MAREY__FACT_WORKER);
    uint32_t process = 0;
    uint64_t *const weights MAREY__FREED = weigh_stacks(facts, kinds, which, &process);
    const bool done =
        weights != NULL &&
        find_place_of(facts, weights, NULL, which != MAREY__FACT_ALL && which != MAREY__FACT_WAITING,
                      (kinds & ~loading) == 0,
                      which == MAREY__FACT_PYTHON || which == MAREY__FACT_USER_STARTUP, out);
    set_process(out, process);
    return done;
}

bool marey__facts_find_typical_place(const struct marey__facts *facts, uint64_t kinds,
                                     uint64_t others, struct marey__fact_place *out)
{
    uint32_t process = 0, other_process = 0;
    uint64_t *const weights MAREY__FREED = weigh_stacks(facts, kinds, MAREY__FACT_ALL, &process),
                            *const other_weights MAREY__FREED =
                                weigh_stacks(facts, others, MAREY__FACT_ALL, &other_process);
    const bool done = weights != NULL && other_weights != NULL &&
                      find_place_of(facts, weights, other_weights, false, false, false, out);
    set_process(out, process);
    return done;
}

/* ---- hot lines ---- */

/* By location: time of samples that have it as the innermost one of the function; of its own code. */
struct hot_lines {
    uint64_t *ns, *own_ns;
    uint64_t all_own_ns, leaf_ns; /* own; without libraries that it calls */
};

/* Own code: no other function of the user's is further in. */
static void add_hot_stack(const struct marey__facts *facts, uint32_t stack, uint32_t function,
                          uint64_t ns, struct hot_lines *into)
{
    const marey_samples *const samples = facts->set.samples;
    bool is_own = true;
    for (uint32_t at = stack; at != 0; at = marey_samples_get_stack(samples, at).parent) {
        const uint32_t location = marey_samples_get_stack(samples, at).location;
        if (marey_samples_get_location(samples, location).function != function) {
            is_own = is_own && !marey__facts_is_users(facts, function_of(samples, at));
            continue;
        }
        into->ns[location] += ns;
        into->own_ns[location] += is_own ? ns : 0;
        into->all_own_ns += is_own ? ns : 0;
        into->leaf_ns += at == stack ? ns : 0;
        return;
    }
}

/* Adjacent lines with most of the own time, which is returned; of these the line that has most. */
static uint64_t find_hottest(const marey_samples *samples, const struct hot_lines *hot,
                             struct marey__fact_place *place, struct marey__fact_lines *lines)
{
    enum { ADJACENT = 3 };
    const uint32_t n = marey_samples_n_locations(samples);
    uint64_t most_ns = 0;
    for (uint32_t i = 1; i <= n; i++) {
        const uint32_t first = marey_samples_get_location(samples, i).line;
        uint64_t own_ns = 0, ns = 0;
        uint32_t best = i;
        for (uint32_t k = 1; hot->own_ns[i] != 0 && k <= n; k++) {
            if (marey_samples_get_location(samples, k).line - first >= ADJACENT) /* or below */
                continue;
            own_ns += hot->own_ns[k];
            ns += hot->ns[k];
            best = hot->own_ns[k] > hot->own_ns[best] ? k : best;
        }
        if (own_ns <= most_ns)
            continue;
        most_ns = own_ns;
        place->line = marey_samples_get_location(samples, best).line;
        place->ns = ns;
        *lines = (struct marey__fact_lines){first, first + ADJACENT - 1};
    }
    return most_ns;
}

bool marey__facts_find_hot_lines(const struct marey__facts *facts, uint64_t kinds,
                                 struct marey__fact_place *place, struct marey__fact_lines *lines)
{
    const uint64_t phases = MAREY__FACT_STEPS & ~MAREY__FACT_BOTH(MAREY__FACT_OTHER);
    const size_t n = (size_t)marey_samples_n_locations(facts->set.samples) + 1;
    uint32_t process = 0;
    uint64_t *const ns MAREY__FREED = marey__calloc(n, sizeof *ns),
                       *const own_ns MAREY__FREED = marey__calloc(n, sizeof *own_ns),
                       *const weights MAREY__FREED =
                           weigh_stacks(facts, kinds, MAREY__FACT_PYTHON, &process);
    struct hot_lines hot = {.ns = ns, .own_ns = own_ns};
    struct marey__fact_place found = *place;
    if (ns == NULL || own_ns == NULL || weights == NULL)
        return false;
    for (uint32_t i = 1; i <= facts->n_stacks; i++)
        if (weights[i] != 0)
            add_hot_stack(facts, i, place->function, weights[i], &hot);
    /* The training loop has the framework's phases in it; a program's main() has all of its samples. */
    const bool is_main = is_in(facts, MAREY__FACT_STEPS, nearly_all, place->function, 0),
               is_loop = is_in(facts, phases, 0.5, place->function, 0);
    if (!is_loop && (is_main ? hot.leaf_ns : hot.all_own_ns) * 2 >= place->ns) {
        *lines = (struct marey__fact_lines){0, UINT32_MAX};
        return true;
    }
    if (find_hottest(facts->set.samples, &hot, &found, lines) * 2 < place->ns)
        found.function = 0;
    *place = found;
    return true;
}

uint64_t marey__facts_weigh_lines(const struct marey__facts *facts, uint64_t kinds,
                                  uint32_t function, const struct marey__fact_lines *lines)
{
    enum { LEAST = 10 };
    const size_t n = (size_t)marey_samples_n_locations(facts->set.samples) + 1;
    uint64_t *const all MAREY__FREED = marey__calloc(n, sizeof *all),
                        *const python MAREY__FREED = marey__calloc(n, sizeof *python), ns = 0;
    for (size_t i = 0; all != NULL && python != NULL && i < facts->n_buckets; i++) {
        const struct marey__sample_bucket *const bucket = &facts->buckets[i];
        if (!marey__sample_bucket_has_kind(bucket, kinds)) /* a holder's bucket has no stack */
            continue;
        const uint32_t location = location_in(facts, marey__sample_bucket_stack(bucket), function),
                       line = marey_samples_get_location(facts->set.samples, location).line;
        if (line < lines->first || line > lines->last)
            continue;
        all[location] += marey__fact_weight(facts, bucket, MAREY__FACT_ALL);
        python[location] += marey__fact_weight(facts, bucket, MAREY__FACT_PYTHON);
    }
    for (size_t i = 1; all != NULL && python != NULL && i < n; i++)
        ns += python[i] * LEAST >= all[i] ? all[i] : 0;
    return ns;
}
