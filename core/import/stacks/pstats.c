/*
 * pstats: profiles of cProfile and profile, a dict in Python's marshal format.
 *
 *   (file, line, function): (primitive calls, calls, self seconds, total seconds,
 *                            {caller: (calls, primitive calls, self seconds, total seconds)})
 *
 * Built-in functions are in the file "~" at line 0. profile has only the number of calls per caller. In Python 3.15 the
 * key ('__sampled__',) marks calls as samples. There are no timestamps and no paths: pstats_tree.c estimates paths, which
 * are laid out one after another.
 */
#include <math.h>

#include "import/stacks/internal.h"

enum { MAX_BYTES = 256 << 20, MAX_FOLLOWED = 1 << 18 };

struct reading {
    struct marey__import *import;
    struct marey__buf bytes;
    struct marey__python_values values;
    struct marey__frames frames;
    struct marey__paths paths;
    struct marey__profile profile;
    size_t functions_cap, edges_cap;
    uint64_t n_calls, n_bad;
    bool is_sampled;
};

/* ---- values ---- */

typedef const struct marey__python_value *value;

/* Element `i` of a list or dict; `i` must be in range. */
static value item(const struct reading *r, value of, size_t i)
{
    return &r->values.values[of->as.items[i]];
}

static bool is_list_of(value v, size_t n)
{
    return v->type == MAREY__PYTHON_LIST && v->n >= n;
}

static bool is_number(value v)
{
    return v->type == MAREY__PYTHON_INT || v->type == MAREY__PYTHON_FLOAT;
}

/* Clamped to 0 and what sums can hold; NaN is 0. */
static double to_number(value v)
{
    const double number = v->type == MAREY__PYTHON_INT ? (double)v->as.number : v->as.real;
    return number > 0 ? fmin(number, 1e15) : 0;
}

static double to_ns(value v)
{
    return fmin(to_number(v) * 1e9, 1e17);
}

/*
 * The function of a key (file, line, name). Returns false if it is not one, or on out of memory, which sets `*failed`.
 */
static bool find_function(struct reading *r, value key, uint32_t *function, bool *failed)
{
    if (!is_list_of(key, 3))
        return false;
    const value file = item(r, key, 0), line = item(r, key, 1), name = item(r, key, 2);
    if (file->type != MAREY__PYTHON_TEXT || name->type != MAREY__PYTHON_TEXT || !is_number(line))
        return false;
    const bool is_built_in = file->n == 1 && file->as.text[0] == '~';
    const double number = to_number(line);
    const struct marey__text_frame frame = {
        .name = name->as.text,
        .name_len = name->n,
        .file = is_built_in ? "" : file->as.text,
        .file_len = is_built_in ? 0 : file->n,
        .line = number <= UINT32_MAX ? (uint32_t)number : 0,
    };
    *function = marey__frames_of_function(&r->frames, &frame);
    *failed |= *function == MAREY__NO_FRAME;
    return *function != MAREY__NO_FRAME;
}

/* ---- entries ---- */

static bool add_edge(struct reading *r, uint32_t caller, uint32_t callee, value numbers)
{
    const struct marey__profiled *of = &r->profile.functions[callee];
    struct marey__profile *p = &r->profile;
    struct marey__profiled_edge edge = {.caller = caller, .callee = callee};
    if (!marey__grow(&p->edges, &r->edges_cap, p->n_edges + 1, sizeof *p->edges))
        return false;
    if (is_list_of(numbers, 4)) {
        edge.n_calls = to_number(item(r, numbers, 0));
        edge.self_ns = to_ns(item(r, numbers, 2));
        edge.total_ns = to_ns(item(r, numbers, 3));
    } else {
        const double share = to_number(numbers) / fmax((double)of->n_calls, 1);
        edge.n_calls = to_number(numbers);
        edge.self_ns = share * (double)of->self_ns;
        edge.total_ns = share * of->total_ns;
    }
    p->edges[p->n_edges++] = edge;
    return true;
}

static bool are_numbers(const struct reading *r, value list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_number(item(r, list, i)))
            return false;
    return true;
}

/* Ignores a caller without an entry. */
static bool add_callers(struct reading *r, uint32_t callee, value callers)
{
    bool failed = false;
    for (size_t i = 0; i < callers->n; i += 2) {
        const value numbers = item(r, callers, i + 1);
        const bool is_sound =
            is_number(numbers) || (is_list_of(numbers, 4) && are_numbers(r, numbers, 4));
        uint32_t caller;
        if (is_sound && find_function(r, item(r, callers, i), &caller, &failed)) {
            if (caller < r->profile.n_functions && !add_edge(r, caller, callee, numbers))
                return false;
        } else {
            r->n_bad++;
        }
        if (failed)
            return false;
    }
    return true;
}

static bool is_entry(const struct reading *r, value entry)
{
    return is_list_of(entry, 5) && are_numbers(r, entry, 4) &&
           item(r, entry, 4)->type == MAREY__PYTHON_DICT;
}

/* Functions get numbers in the order of the dict, so those with an entry come first. */
static bool add_function(struct reading *r, value key, value entry)
{
    struct marey__profile *p = &r->profile;
    uint32_t function;
    bool failed = false;
    if (!is_entry(r, entry) || !find_function(r, key, &function, &failed) ||
        function < p->n_functions) {
        r->n_bad++;
        return !failed;
    }
    if (!marey__grow(&p->functions, &r->functions_cap, p->n_functions + 1, sizeof *p->functions))
        return false;
    const double n_calls = to_number(item(r, entry, 1));
    p->functions[p->n_functions++] = (struct marey__profiled){
        .n_calls = (uint64_t)n_calls,
        .self_ns = (uint64_t)(to_ns(item(r, entry, 2)) + 0.5),
        .total_ns = to_ns(item(r, entry, 3)),
    };
    r->n_calls += (uint64_t)n_calls;
    return true;
}

static bool is_sampled_mark(const struct reading *r, value key)
{
    if (!is_list_of(key, 1) || key->n != 1)
        return false;
    return marey__python_is(item(r, key, 0), "__sampled__");
}

static bool add_all(struct reading *r, value top)
{
    MAREY_ASSERT(top != NULL); /* anything but a dict was refused */
    for (size_t i = 0; i < top->n; i += 2) {
        const value key = item(r, top, i);
        if (is_sampled_mark(r, key))
            r->is_sampled = true;
        else if (!add_function(r, key, item(r, top, i + 1)))
            return false;
    }
    /* After all functions have their numbers. */
    for (size_t i = 0; i < top->n; i += 2) {
        const value entry = item(r, top, i + 1);
        bool failed = false;
        uint32_t function;
        if (!is_entry(r, entry))
            continue;
        if (find_function(r, item(r, top, i), &function, &failed) &&
            !add_callers(r, function, item(r, entry, 4)))
            return false;
        if (failed)
            return false;
    }
    return true;
}

MAREY__ORDER(by_both, struct marey__profiled_edge, MAREY__UP(callee) MAREY__UP(caller))

/* A key may be duplicated in a file that Python did not write. */
static void merge_edges(struct marey__profile *p)
{
    size_t n = 0;
    if (p->n_edges == 0)
        return;
    qsort(p->edges, p->n_edges, sizeof *p->edges, by_both);
    for (size_t i = 1; i < p->n_edges; i++) {
        if (by_both(&p->edges[n], &p->edges[i]) != 0)
            p->edges[++n] = p->edges[i];
    }
    p->n_edges = n + 1;
}

/* ---- the file ---- */

static marey_status read_bytes(struct reading *r)
{
    const char *bytes;
    size_t len;
    for (;;) {
        MAREY_TRY(marey__bytes_next(r->import->bytes, &bytes, &len));
        if (len == 0)
            return r->bytes.failed ? marey__no_memory() : MAREY_OK;
        if (r->bytes.len + len > MAX_BYTES)
            return marey__fail(MAREY_EFORMAT, "%s is larger than a profile of Python can be (%d MiB)",
                               r->import->path, MAX_BYTES >> 20);
        marey__buf_put(&r->bytes, bytes, len);
    }
}

static marey_status read_values(struct reading *r, value *top)
{
    const bool done = marey__unmarshal(&r->values, r->bytes.data, r->bytes.len);
    if (!done && r->values.mistake != NULL)
        return marey__fail(MAREY_EFORMAT,
                           "%s is not a profile of cProfile, or a damaged one: at byte %zu, %s",
                           r->import->path, r->values.offset, r->values.mistake);
    MAREY__TRY_MEMORY(done);
    *top = &r->values.values[r->values.top];
    if ((*top)->type != MAREY__PYTHON_DICT)
        return marey__fail(MAREY_EFORMAT,
                           "%s is not a profile of cProfile: it holds no dict of functions",
                           r->import->path);
    return MAREY_OK;
}

static void put_notes(const struct reading *r, marey__sink_process *process)
{
    const char *path = r->import->path;
    const struct marey__profile *p = &r->profile;
    marey__sink_note(process,
                     "%s has sums over %llu %s and no timestamps: they are laid out one after "
                     "another; the times of paths are estimated from the callers of each function",
                     path, (unsigned long long)r->n_calls, r->is_sampled ? "samples" : "calls");
    if (p->n_off != 0)
        marey__sink_note(
            process,
            "%s: %zu functions are recursive, or called from recursive ones: their calls and self "
            "times match the file, their totals do not. The largest difference is %.3g s, for %.*s",
            path, p->n_off, p->most_off_ns / 1e9,
            (int)MAREY__MIN(r->frames.frames[p->most_off].name_len, (size_t)80),
            r->frames.frames[p->most_off].name);
    if (p->n_folded != 0 && p->folded_ns > 0)
        marey__sink_note(process,
                         "%s: %llu paths were not followed further; %.3g s below them are shown "
                         "below the same functions elsewhere",
                         path, (unsigned long long)p->n_folded, p->folded_ns / 1e9);
    if (r->n_bad != 0)
        marey__sink_note(process, "%s: left out %llu invalid entries", path,
                         (unsigned long long)r->n_bad);
}

static marey_status lay_out(struct reading *r)
{
    static const char name[] = "profile";
    r->profile.max_paths = MAX_FOLLOWED;
    if (r->profile.n_functions == 0)
        return marey__fail(MAREY_EFORMAT, "%s has no functions in it", r->import->path);
    MAREY__TRY_MEMORY(marey__paths_init(&r->paths) && marey__profile_expand(&r->profile, &r->paths) &&
                      marey__frames_name(&r->frames) && marey__paths_finish(&r->paths) &&
                      marey__profile_check(&r->profile, &r->paths));
    marey__sink_process *process = marey__sink_process_get(r->import->sink, r->import->number);
    if (process == NULL)
        return marey__sink_status(r->import->sink);
    const uint32_t lane = marey__sink_thread(process, 0);
    marey__sink_name_lane(process, lane, name, strlen(name));
    marey__paths_write_ranges(&r->paths, 0, &r->frames, process, lane, 1);
    put_notes(r, process);
    return marey__sink_status(r->import->sink);
}

static marey_status read_all(struct reading *r)
{
    value top = NULL;
    MAREY_TRY(read_bytes(r));
    MAREY_TRY(read_values(r, &top));
    MAREY__TRY_MEMORY(add_all(r, top));
    merge_edges(&r->profile);
    return lay_out(r);
}

static marey_status read_pstats(struct marey__import *import)
{
    struct reading r = {.import = import};
    marey__frames_init(&r.frames);
    r.frames.names_lines = true;
    const marey_status status = read_all(&r);
    marey__buf_fini(&r.bytes);
    marey__python_values_fini(&r.values);
    marey__frames_fini(&r.frames);
    marey__paths_fini(&r.paths);
    MAREY__FREE_ALL(r.profile.functions, r.profile.edges);
    return status;
}

/* A dict whose first key is a tuple, or an empty dict; the highest bit of a type marks a shared value. */
static bool looks_like_pstats(const char *bytes, size_t len)
{
    if (len < 2 || (bytes[0] & 0x7f) != '{')
        return false;
    const char first = (char)(bytes[1] & 0x7f);
    return first == '(' || first == ')' || (first == '0' && len == 2);
}

const struct marey__import_format marey__import_pstats = {
    .info = {.name = "pstats",
             .noun = "a profile of cProfile",
             .brief = "profiles of cProfile",
             .extensions = ".prof .pstats"},
    .looks_like = looks_like_pstats,
    .read = read_pstats,
};
