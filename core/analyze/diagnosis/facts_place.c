/* Where samples are in the code: the innermost function with most of them, and the line of it that runs most. */
#include <string.h>

#include "analyze/diagnosis/internal.h"

/* A hook of marey, which is nobody's work. */
static bool is_mareys(const struct marey_samples_function *f)
{
    return strstr(f->file, "/marey/_auto") != NULL ||
           strstr(f->file, "/marey/_loader_workers.py") != NULL;
}

/* Frames around a loader are not loading. */
static bool is_loader(const struct marey_samples_function *f)
{
    return strstr(f->file, "/torch/utils/data/") != NULL;
}

static bool is_installed(const struct marey_samples_function *f)
{
    return strstr(f->file, "/site-packages/") != NULL ||
           strstr(f->file, "/dist-packages/") != NULL || is_mareys(f);
}

bool marey__facts_is_users(const struct marey_samples_function *f)
{
    return f->kind == MAREY_FRAME_PYTHON && f->file[0] != '<' && f->file[0] != '\0' &&
           strstr(f->file, "/lib/python") == NULL && !is_installed(f);
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

static bool is_in(const char *text, const char *const *list, size_t n)
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
    return file != NULL && is_in(file, libraries, MAREY__COUNT_OF(libraries));
}

/* Output: of a library for logging, or a function that is named so, or one that makes text for it. */
static bool is_writing(const struct marey_samples_function *f)
{
    static const char *const files[] = {"/json/",     "/csv.py",      "/pickle.py",
                                        "/codecs.py", "/matplotlib/", "/PIL/"},
                             *const names[] = {"write", "print", "dump"};
    const char *const file = package_of(f);
    return is_logging_library(f) || (file != NULL && is_in(file, files, MAREY__COUNT_OF(files))) ||
           is_in(f->name, names, MAREY__COUNT_OF(names));
}

/* Flags of a function that is named like logging: something that it calls writes. NULL on out of memory. */
static bool *find_named(const marey_samples *samples, uint32_t n_stacks)
{
    bool *const named = marey__calloc((size_t)marey_samples_n_functions(samples) + 1, sizeof *named);
    for (uint32_t i = 1; named != NULL && i <= n_stacks; i++) {
        struct marey_samples_stack stack = marey_samples_get_stack(samples, i);
        uint32_t function = marey_samples_get_location(samples, stack.location).function;
        if (!is_writing(marey_samples_get_function(samples, function)))
            continue;
        while (function != 0) {
            const struct marey_samples_function *const f =
                marey_samples_get_function(samples, function);
            named[function] |= marey__facts_is_users(f) && is_named_logging(f->name);
            stack = marey_samples_get_stack(samples, stack.parent);
            function = stack.location != 0
                           ? marey_samples_get_location(samples, stack.location).function
                           : 0;
        }
    }
    return named;
}

/* Progress bars and loggers that run other code around them do not count for it: a frame of the user's ends that. */
static uint8_t flags_of(const struct marey_samples_function *f, bool is_named, uint8_t around)
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
    if (strstr(f->file, "/multiprocessing/queues.py") != NULL && strstr(f->name, "get") != NULL)
        flags |= MAREY__FACT_IDLES;
    if (marey__facts_is_users(f)) {
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
    const bool *const named MAREY__FREED = find_named(samples, facts->n_stacks);
    facts->stack_flags = marey__calloc((size_t)facts->n_stacks + 1, 1);
    if (named == NULL || facts->stack_flags == NULL)
        return false;
    /* A stack comes after that of its caller. */
    for (uint32_t i = 1; i <= facts->n_stacks; i++) {
        const struct marey_samples_stack stack = marey_samples_get_stack(samples, i);
        const uint32_t function = marey_samples_get_location(samples, stack.location).function;
        facts->stack_flags[i] = flags_of(marey_samples_get_function(samples, function),
                                         named[function], facts->stack_flags[stack.parent]);
    }
    return true;
}

/* ---- places ---- */

struct place_search {
    const struct marey__facts *facts;
    bool is_loading;         /* frames around the innermost one of torch's loader are left out */
    const uint64_t *weights; /* by stack */
    const uint64_t *others;  /* the same of other samples, to compare with; NULL: none */
    uint64_t *ns, *other_ns; /* by function: of the samples it is in */
    double *depth_ns;        /* by function: the same times the depth of its innermost frame */
    uint32_t *seen;          /* by function: the last stack that had it */
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

/* The innermost on average of those that at least half of the samples are in, and few of the others where there are any. */
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
            (only_users && !marey__facts_is_users(f)) ||
            (double)s->other_ns[i] * (double)all_ns >
                most_typical * (double)s->ns[i] * (double)others_ns)
            continue;
        found = i;
        deepest = depth;
    }
    return found;
}

/* Of the innermost frame of a function in a stack; 0: it is not in it. */
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

/* The line of the function's innermost frame that has most of the time. */
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
    out->ns = s->ns[out->function];
    out->share = (double)out->ns / (double)all_ns;
    return find_line(s, out);
}

static bool find_place_of(const struct marey__facts *facts, const uint64_t *weights,
                          const uint64_t *others, bool is_loading, bool only_users,
                          struct marey__fact_place *out)
{
    const size_t n = (size_t)marey_samples_n_functions(facts->set.samples) + 1;
    const struct place_search s = {.facts = facts,
                                   .is_loading = is_loading,
                                   .weights = weights,
                                   .others = others,
                                   .ns = marey__calloc(n, sizeof *s.ns),
                                   .other_ns = marey__calloc(n, sizeof *s.other_ns),
                                   .depth_ns = marey__calloc(n, sizeof *s.depth_ns),
                                   .seen = marey__calloc(n, sizeof *s.seen)};
    *out = (struct marey__fact_place){0};
    const bool done = s.ns != NULL && s.other_ns != NULL && s.depth_ns != NULL && s.seen != NULL &&
                      search(&s, only_users, out);
    MAREY__FREE_ALL(s.ns, s.other_ns, s.depth_ns, s.seen);
    return done;
}

bool marey__facts_find_place_of(const struct marey__facts *facts, const uint64_t *weights,
                                bool is_loading, bool only_users, struct marey__fact_place *out)
{
    return find_place_of(facts, weights, NULL, is_loading, only_users, out);
}

static const struct marey_samples_function *function_of(const marey_samples *samples, uint32_t stack)
{
    const uint32_t location = marey_samples_get_stack(samples, stack).location;
    return marey_samples_get_function(samples,
                                      marey_samples_get_location(samples, location).function);
}

/* Whether a stack runs code of the user's, or of the standard library for it, or if asked of numpy and torch. */
static bool is_for_user(const marey_samples *samples, uint32_t stack, bool with_arrays)
{
    while (stack != 0) {
        const struct marey_samples_function *const f = function_of(samples, stack);
        const bool is_arrays = with_arrays && (strstr(f->file, "/numpy/") != NULL ||
                                               strstr(f->file, "/torch/") != NULL);
        if (marey__facts_is_users(f))
            return true;
        if ((is_installed(f) && !is_arrays) || marey__is_importlib(f->file))
            return false;
        stack = marey_samples_get_stack(samples, stack).parent;
    }
    return false;
}

uint64_t marey__fact_weight(const struct marey__facts *facts, const struct marey__sample_bucket *bucket,
                            enum marey__fact_samples which)
{
    const marey_samples *const samples = facts->set.samples;
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
        return is_for_user(samples, stack, false) ? sum->gil_ns : 0;
    case MAREY__FACT_WAITING:
        return marey__sample_bucket_has_kind(bucket, MAREY__FACT_BOTH(MAREY__FACT_BACKWARD)) ||
                       (flags & MAREY__FACT_COMMUNICATES) != 0
                   ? sum->off_ns
                   : 0;
    case MAREY__FACT_IDLE:
        return (flags & MAREY__FACT_IDLES) != 0 ? sum->ns : 0;
    case MAREY__FACT_GC:
        return (flags & facts->claimed) != 0 ? 0 : sum->gc_ns;
    case MAREY__FACT_PYTHON:
        return (flags & facts->claimed) == 0 && is_for_user(samples, stack, true)
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
        const uint64_t own_ns =
            marey__sample_bucket_has_kind(bucket, kinds) ? marey__fact_weight(facts, bucket, which) : 0;
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

/* By stack. NULL on out of memory. */
static uint64_t *weigh_stacks(const struct marey__facts *facts, uint64_t kinds,
                              enum marey__fact_samples which)
{
    uint64_t *const weights = marey__calloc((size_t)facts->n_stacks + 1, sizeof *weights);
    for (size_t i = 0; weights != NULL && i < facts->n_buckets; i++)
        if (marey__sample_bucket_has_kind(&facts->buckets[i], kinds) &&
            marey__sample_bucket_stack(&facts->buckets[i]) != 0)
            weights[marey__sample_bucket_stack(&facts->buckets[i])] +=
                marey__fact_weight(facts, &facts->buckets[i], which);
    return weights;
}

bool marey__facts_find_place(const struct marey__facts *facts, uint64_t kinds,
                             enum marey__fact_samples which, struct marey__fact_place *out)
{
    const uint64_t loading =
        MAREY__FACT_BOTH(MAREY__FACT_DATA) | MAREY__FACT_ONLY(MAREY__FACT_WORKER);
    *out = (struct marey__fact_place){0};
    uint64_t *const weights MAREY__FREED = weigh_stacks(facts, kinds, which);
    if (weights == NULL)
        return false;
    return !facts->has_samples ||
           marey__facts_find_place_of(facts, weights, (kinds & ~loading) == 0,
                                      which == MAREY__FACT_PYTHON || which == MAREY__FACT_USER_STARTUP,
                                      out);
}

bool marey__facts_find_typical_place(const struct marey__facts *facts, uint64_t kinds,
                                     uint64_t others, struct marey__fact_place *out)
{
    *out = (struct marey__fact_place){0};
    uint64_t *const weights MAREY__FREED = weigh_stacks(facts, kinds, MAREY__FACT_ALL),
                            *const other_weights MAREY__FREED =
                                weigh_stacks(facts, others, MAREY__FACT_ALL);
    if (weights == NULL || other_weights == NULL)
        return false;
    return !facts->has_samples || find_place_of(facts, weights, other_weights, false, false, out);
}

uint64_t marey__facts_weigh_lines(const struct marey__facts *facts, uint64_t kinds, uint32_t function)
{
    enum { LEAST = 10 };
    const size_t n = (size_t)marey_samples_n_locations(facts->set.samples) + 1;
    uint64_t *const all MAREY__FREED = marey__calloc(n, sizeof *all),
                        *const python MAREY__FREED = marey__calloc(n, sizeof *python), ns = 0;
    for (size_t i = 0; all != NULL && python != NULL && i < facts->n_buckets; i++) {
        const struct marey__sample_bucket *const bucket = &facts->buckets[i];
        const uint32_t location = marey__sample_bucket_has_kind(bucket, kinds)
                                      ? location_in(facts, marey__sample_bucket_stack(bucket), function)
                                      : 0;
        all[location] += marey__fact_weight(facts, bucket, MAREY__FACT_ALL);
        python[location] += marey__fact_weight(facts, bucket, MAREY__FACT_PYTHON);
    }
    for (size_t i = 1; all != NULL && python != NULL && i < n; i++)
        ns += python[i] * LEAST >= all[i] ? all[i] : 0;
    return ns;
}
