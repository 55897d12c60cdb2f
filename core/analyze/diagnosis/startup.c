/*
 * Start-up, until the end of warm-up, by activity: imports by module, compilation, CUDA, the user's
 * own lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

enum { WHAT_SIZE = 200 };

struct row {
    uint32_t number;
    uint64_t ns;
};

struct startup {
    const struct marey__facts *facts;
    struct marey__names names;
    struct marey__arena texts;
    struct row *rows; /* by number of the name */
    size_t n_rows, rows_cap;
};

static bool is_in(const char *file, const char *folder)
{
    return strstr(file, folder) != NULL;
}

const char *marey__path_below(const char *file, const char *folder)
{
    const char *found = NULL;
    for (const char *at = file; (at = strstr(at, folder)) != NULL;)
        found = at += strlen(folder);
    return found;
}

/* "torch" of .../site-packages/torch/nn/modules.py, "data" of .../data.py. */
static void name_module(const char *file, char what[WHAT_SIZE])
{
    const char *start = marey__path_below(file, "/site-packages/");
    if (strcmp(file, "<frozen site>") == 0) {
        snprintf(what, WHAT_SIZE, "start of Python");
        return;
    }
    if (start == NULL)
        start = marey__path_below(file, "/dist-packages/");
    if (start == NULL && is_in(file, "/lib/python3")) {
        snprintf(what, WHAT_SIZE, "import the standard library");
        return;
    }
    if (start == NULL)
        start = marey__base_name(file);
    snprintf(what, WHAT_SIZE, "import %.*s", (int)strcspn(start, "/."), start);
}

/*
 * Walks from the innermost frame outwards, so the outermost import wins: a module that a script
 * imports includes all its own imports. Returns false if only the line is known.
 */
static bool name_stack(const struct marey__facts *facts, uint32_t stack, char what[WHAT_SIZE])
{
    const marey_samples *const samples = facts->set.samples;
    const char *module = NULL;
    bool has_user = false, is_decided = false;
    snprintf(what, WHAT_SIZE, "other");
    for (uint32_t at = stack; at != 0;) {
        const struct marey_samples_stack frame = marey_samples_get_stack(samples, at);
        const struct marey_samples_location location =
            marey_samples_get_location(samples, frame.location);
        const struct marey_samples_function *const f =
            marey_samples_get_function(samples, location.function);
        if (marey__is_importlib(f->file)) {
            if (module != NULL)
                name_module(module, what);
            else
                snprintf(what, WHAT_SIZE, "import: search for modules");
            is_decided = true;
        } else if (marey__is_top_level(f)) {
            module = f->file;
        }
        if (!is_decided &&
            (is_in(f->file, "/torch/_dynamo/") || is_in(f->file, "/torch/_inductor/"))) {
            snprintf(what, WHAT_SIZE, "compilation (torch.compile)");
            is_decided = true;
        } else if (!is_decided && strcmp(f->name, "_lazy_init") == 0 &&
                   is_in(f->file, "/torch/cuda/")) {
            snprintf(what, WHAT_SIZE, "start of CUDA");
            is_decided = true;
        } else if (!is_decided && !has_user && marey__facts_is_users(facts, f)) {
            snprintf(what, WHAT_SIZE, "%s (%s:%u)", f->name, marey__base_name(f->file),
                     location.line);
            has_user = true;
        }
        at = frame.parent;
    }
    return is_decided;
}

static bool add(struct startup *s, const char *what, uint64_t ns)
{
    const uint32_t number = marey__names_keep(&s->names, &s->texts, what, strlen(what));
    if (number == MAREY__NO_NAME ||
        (number == s->n_rows &&
         !MAREY__PUSH(s->rows, s->n_rows, s->rows_cap, (struct row){.number = number})))
        return false;
    s->rows[number].ns += ns;
    return true;
}

MAREY__ORDER(by_ns, struct row, MAREY__DOWN(ns) MAREY__UP(number))

static bool add_all(struct startup *s)
{
    const uint64_t first_steps = MAREY__FACT_ONLY(MAREY__FACT_FIRST_STEPS);
    for (size_t i = 0; i < s->facts->n_buckets; i++) {
        const struct marey__sample_bucket *const bucket = &s->facts->buckets[i];
        const uint32_t stack = marey__sample_bucket_stack(bucket);
        char what[WHAT_SIZE];
        if (stack == 0 || !marey__sample_bucket_has_kind(
                              bucket, first_steps | MAREY__FACT_ONLY(MAREY__FACT_STARTUP)))
            continue;
        if (!name_stack(s->facts, stack, what) && marey__sample_bucket_has_kind(bucket, first_steps))
            snprintf(what, sizeof what, "first steps");
        if (!add(s, what, bucket->sum.ns))
            return false;
    }
    return true;
}

bool marey__facts_put_startup(const struct marey__facts *facts, marey_table *table)
{
    struct startup s = {.facts = facts};
    double all_ns = 0;
    const bool done = !facts->has_samples || add_all(&s);
    if (s.n_rows != 0)
        qsort(s.rows, s.n_rows, sizeof *s.rows, by_ns);
    for (size_t i = 0; i < s.n_rows; i++)
        all_ns += (double)s.rows[i].ns;
    const double whole_ns = facts->n_steps != 0 ? (double)facts->startup_ns : all_ns;
    for (size_t i = 0; i < s.n_rows; i++) {
        marey__put_string(table, s.names.names[s.rows[i].number].text);
        const double share = (double)s.rows[i].ns / all_ns;
        marey_table_u64(table, (uint64_t)(share * whole_ns + 0.5));
        marey_table_f64(table, share);
    }
    marey__names_fini(&s.names);
    marey__arena_fini(&s.texts);
    marey__free(s.rows);
    return done;
}
