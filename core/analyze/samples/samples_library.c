/*
 * Tables of samples by calls into a library: the sampled function, and the innermost frame of the library around it.
 *
 * A frame belongs to a library "torch" if a folder in its file's path has that name, or the file itself without
 * extensions: "torch.py", "libtorch.so.2". So "torch" matches neither /home/torchard/train.py nor torchvision.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "analyze/samples/internal.h"

/* ---- membership ---- */

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

/* Match one component of a name against one component of a path, of `len` bytes. */
static bool is_part(const char *name, size_t name_len, const char *part, size_t len)
{
    char pattern[256], text[256];
    if (len == name_len && memcmp(part, name, len) == 0)
        return true;
    if (name_len >= sizeof pattern || len >= sizeof text || strcspn(name, "*?[") >= name_len)
        return false;
    snprintf(pattern, sizeof pattern, "%.*s", (int)name_len, name);
    snprintf(text, sizeof text, "%.*s", (int)len, part);
    return fnmatch(pattern, text, 0) == 0;
}

/* The last component of a name may also be a file without extensions and without the prefix "lib". */
static bool is_last_part(const char *name, size_t name_len, const char *part, size_t len)
{
    const char *const point = memchr(part, '.', len);
    const size_t stem = point != NULL ? (size_t)(point - part) : len;
    return is_part(name, name_len, part, len) || is_part(name, name_len, part, stem) ||
           (stem > 3 && memcmp(part, "lib", 3) == 0 && is_part(name, name_len, part + 3, stem - 3));
}

/* Whether the components of `name`, "torch/nn" or "torch.nn", are successive components of `path`. */
static bool goes_on_with(const char *path, const char *name, const char *between)
{
    for (;;) {
        size_t len = 0;
        const size_t name_len = strcspn(name, between);
        const bool is_last = name[name_len + strspn(name + name_len, "/")] == '\0';
        while (path[len] != '\0' && !is_separator(path[len]))
            len++;
        if (!(is_last ? is_last_part : is_part)(name, name_len, path, len))
            return false;
        if (is_last || path[len] == '\0')
            return is_last;
        path += len + 1;
        name += name_len + 1;
    }
}

static bool has_parts(const char *path, const char *name)
{
    for (const char *at = path; *at != '\0'; at++)
        if ((at == path || is_separator(at[-1])) &&
            (goes_on_with(at, name, "/") || goes_on_with(at, name, ".")))
            return true;
    return false;
}

static bool is_of_library(const struct marey_samples_function *f, const char *library)
{
    const char *const name = library + strspn(library, "/");
    return *name != '\0' && (has_parts(f->file, name) || has_parts(f->module, name));
}

/* By location: whether it belongs to the library. The caller frees it; NULL on out of memory. */
static uint8_t *find_members(const struct marey__samples_report *report)
{
    const marey_samples *const s = report->set.samples;
    const uint32_t n = marey_samples_n_functions(s), n_locations = marey_samples_n_locations(s);
    uint8_t *const functions MAREY__FREED = marey__calloc((size_t)n + 1, 1);
    uint8_t *const members = functions != NULL ? marey__calloc((size_t)n_locations + 1, 1) : NULL;
    if (members == NULL)
        return NULL;
    for (uint32_t i = 1; i <= n; i++)
        functions[i] = is_of_library(marey_samples_get_function(s, i), report->options.library);
    for (uint32_t i = 1; i <= n_locations; i++)
        members[i] = functions[marey_samples_get_location(s, i).function];
    return members;
}

/* The innermost frame of the library, and the innermost frame outside that called into it. */
static void find_contact(const struct marey__samples_report *report, const uint8_t *members,
                         uint32_t stack, uint32_t *contact, uint32_t *caller)
{
    const marey_samples *const s = report->set.samples;
    *contact = *caller = 0;
    while (stack != 0 && !members[marey__samples_leaf(report, stack)])
        stack = marey_samples_get_stack(s, stack).parent;
    *contact = stack != 0 ? marey__samples_leaf(report, stack) : 0;
    while (stack != 0 && members[marey__samples_leaf(report, stack)])
        stack = marey_samples_get_stack(s, stack).parent;
    *caller = stack != 0 ? marey__samples_leaf(report, stack) : 0;
}

/* ---- rows ---- */

/* Key of a row: the leaf, the library's frame, and the caller or the whole stack. */
enum { BY_STACK, BY_LEAF, BY_CALLER, N_WAYS };
static const enum marey__samples_table table_of[N_WAYS] = {
    [BY_STACK] = MAREY__SAMPLES_LEAVES,
    [BY_LEAF] = MAREY__SAMPLES_LEAF_PATHS,
    [BY_CALLER] = MAREY__SAMPLES_CONTACTS,
};

static void put_group(marey_table *table, const struct marey__samples_report *report,
                      const struct marey__samples_group *group, int way)
{
    const struct marey__samples_sums *const sums = &report->sums;
    for (size_t k = 0; k < (way == BY_CALLER ? 3 : 2); k++)
        marey__samples_put_place(table, report->set.samples, group->key[k]);
    MAREY__PUT_ROW(table, U64(group->sum.n), U64(group->sum.ns), RATIO(group->sum.ns, sums->whole.ns),
                   F64(marey__samples_error(sums, group->sum.ns)));
}

static bool put_way(struct marey__samples_report *report, const uint8_t *members, int way)
{
    const struct marey__samples_sums *const sums = &report->sums;
    struct marey__samples_group *const groups MAREY__FREED =
        marey__calloc(sums->n_cells + 1, sizeof *groups);
    if (groups == NULL)
        return false;
    size_t n = 0;
    for (size_t i = 0; i < sums->n_cells; i++) {
        const struct marey__samples_cell *const cell = &sums->cells[i];
        if (!cell->is_chosen)
            continue;
        struct marey__samples_group *const group = &groups[n++];
        *group = (struct marey__samples_group){.key = {marey__samples_leaf(report, cell->stack)},
                                               .sum = cell->sum};
        find_contact(report, members, cell->stack, &group->key[1], &group->key[2]);
        if (way != BY_CALLER)
            group->key[2] = way == BY_STACK ? cell->stack : 0;
    }
    n = marey__samples_groups_add(groups, n);
    for (size_t i = 0; i < n; i++)
        put_group(report->tables[table_of[way]], report, &groups[i], way);
    return true;
}

bool marey__samples_put_library_calls(struct marey__samples_report *report)
{
    if (report->options.library == NULL)
        return true;
    uint8_t *const members MAREY__FREED = find_members(report);
    bool done = members != NULL;
    for (int way = 0; done && way < N_WAYS; way++)
        done = put_way(report, members, way);
    return done;
}
