/* The call tree: strings and paths to numbers, equal ones to equal numbers. */
#include <string.h>

#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"

/* ---- init and fini ---- */

bool marey__calls_init(struct marey__calls *calls)
{
    *calls = (struct marey__calls){0};
    const struct marey__call_function other = {.name = "(other paths)",
                                               .qualified = "(other paths)",
                                               .file = "~",
                                               .module = "",
                                               .kind = MAREY__CALL_COMPILED};
    if (marey__grow(&calls->nodes, &calls->nodes_cap, 1, sizeof *calls->nodes) &&
        marey__calls_function(calls, &other) == 0 &&
        marey__calls_signature(calls, &(struct marey__call_signature){.text = ""}) == 0) {
        calls->nodes[0] = (struct marey__call_node){0};
        calls->n_nodes = 1;
        return true;
    }
    marey__calls_fini(calls);
    return false;
}

void marey__calls_fini(struct marey__calls *calls)
{
    MAREY__FREE_ALL(calls->functions, calls->signatures, calls->threads, calls->nodes);
    marey__key_map_fini(&calls->nodes_by_key);
    marey__names_fini(&calls->function_keys);
    marey__names_fini(&calls->signature_keys);
    marey__names_fini(&calls->thread_keys);
    marey__arena_fini(&calls->texts);
    *calls = (struct marey__calls){0};
}

/* ---- texts ---- */

/*
 * The number of a key, and of its element in `array`, which is grown if needed. `*kept` is the stored text of a new
 * key, else NULL. MAREY__NO_CALL on out of memory.
 */
static uint32_t number_key(struct marey__calls *calls, struct marey__names *keys,
                           const struct marey__buf *key, void *array, size_t *cap, size_t size,
                           const char **kept)
{
    const size_t n = keys->n;
    if (key->failed || !marey__grow(array, cap, n + 1, size))
        return MAREY__NO_CALL;
    const uint32_t number = marey__names_keep(keys, &calls->texts, key->data, key->len);
    *kept = keys->n > n ? keys->names[number].text : NULL;
    return number;
}
#define NUMBER_KEY(calls, of, key, kept)                                                           \
    number_key((calls), &(calls)->of##_keys, (key), &(calls)->of##s, &(calls)->of##s_cap,          \
               sizeof *(calls)->of##s, (kept))

/* A text and its NUL; the texts of a key follow one another. */
static void put_text(struct marey__buf *key, const char *text)
{
    marey__buf_put(key, text, strlen(text) + 1);
}

static const char *next_text(const char **at)
{
    const char *const text = *at;
    *at += strlen(text) + 1;
    return text;
}

uint32_t marey__calls_function(struct marey__calls *calls, const struct marey__call_function *function)
{
    struct marey__buf key MAREY__FINALLY(marey__buf_fini) = {0};
    const char *kept = NULL;
    put_text(&key, function->name);
    put_text(&key, function->qualified);
    put_text(&key, function->file);
    put_text(&key, function->module);
    marey__buf_put(&key, &function->line, sizeof function->line);
    marey__buf_put(&key, &function->kind, sizeof function->kind);
    const uint32_t number = NUMBER_KEY(calls, function, &key, &kept);
    if (kept == NULL)
        return number;
    struct marey__call_function *const made = &calls->functions[calls->n_functions++];
    *made = (struct marey__call_function){.line = function->line, .kind = function->kind};
    made->name = next_text(&kept);
    made->qualified = next_text(&kept);
    made->file = next_text(&kept);
    made->module = next_text(&kept);
    return number;
}

uint32_t marey__calls_signature(struct marey__calls *calls,
                                const struct marey__call_signature *signature)
{
    struct marey__buf key MAREY__FINALLY(marey__buf_fini) = {0};
    const char *kept = NULL;
    put_text(&key, signature->text);
    marey__buf_put(&key, &signature->function, sizeof signature->function);
    const uint32_t number = NUMBER_KEY(calls, signature, &key, &kept);
    if (kept != NULL)
        calls->signatures[calls->n_signatures++] = (struct marey__call_signature){
            .function = signature->function, .text = kept, .elements = signature->elements};
    return number;
}

uint32_t marey__calls_thread(struct marey__calls *calls, const struct marey__call_thread *thread,
                             uint64_t process)
{
    struct marey__buf key MAREY__FINALLY(marey__buf_fini) = {0};
    const char *kept = NULL;
    marey__buf_put(&key, &process, sizeof process);
    marey__buf_put(&key, &thread->tid, sizeof thread->tid);
    const uint32_t number = NUMBER_KEY(calls, thread, &key, &kept);
    if (number == MAREY__NO_CALL)
        return number;
    struct marey__call_thread *const made = &calls->threads[number];
    if (kept != NULL) {
        calls->n_threads++;
        *made = *thread;
        made->name = "";
    }
    /* Of several profiles of a thread, not all may have its name. */
    if (made->name[0] == '\0' && thread->name[0] != '\0')
        made->name = marey__arena_text(&calls->texts, thread->name, strlen(thread->name));
    if (made->name == NULL) {
        made->name = "";
        return MAREY__NO_CALL;
    }
    return number;
}

/* ---- paths ---- */

uint32_t marey__calls_node(struct marey__calls *calls, uint32_t parent, uint32_t function,
                           uint32_t signature, uint32_t thread)
{
    const uint32_t key[] = {parent, function, signature, thread};
    const uint32_t number = calls->n_nodes < UINT32_MAX - 1
                                ? MAREY__MAP_NUMBER(&calls->nodes_by_key, calls->nodes,
                                                    calls->n_nodes, calls->nodes_cap, key)
                                : 0;
    return number != 0 ? number - 1 : 0;
}

void marey__call_node_add(struct marey__call_node *into, const struct marey__call_node *from)
{
    into->calls += from->calls;
    into->resumes += from->resumes;
    into->self_ns += from->self_ns;
    into->total_ns += from->total_ns;
    into->gpu_ns += from->gpu_ns;
    into->max_ns = MAREY__MAX(into->max_ns, from->max_ns);
}

/* ---- views ---- */

static uint64_t take_away(uint64_t *from, double ns)
{
    const uint64_t part = ns < (double)*from ? (uint64_t)ns : *from;
    *from -= part;
    return part;
}

uint64_t marey__calls_subtract(struct marey__calls *calls)
{
    const double cost_ns = (double)calls->cost_ps / 1000;
    uint64_t taken_ns = 0;
    for (size_t i = calls->n_nodes; i-- > 1;) {
        struct marey__call_node *const node = &calls->nodes[i], *const parent =
                                                                    &calls->nodes[node->parent];
        taken_ns += take_away(&node->self_ns, (double)node->calls * cost_ns / 2);
        if (node->parent != 0)
            taken_ns += take_away(&parent->self_ns, (double)node->calls * cost_ns / 2);
        node->max_ns -= MAREY__MIN(node->max_ns, (uint64_t)(cost_ns / 2));
    }
    for (size_t i = 1; i < calls->n_nodes; i++)
        calls->nodes[i].total_ns = calls->nodes[i].self_ns;
    for (size_t i = calls->n_nodes; i-- > 1;)
        if (calls->nodes[i].parent != 0)
            calls->nodes[calls->nodes[i].parent].total_ns += calls->nodes[i].total_ns;
    return taken_ns;
}

/*
 * Parents come first, so one forward pass marks everything below an import and subtracts its time from its ancestors.
 */
bool marey__calls_drop_startup(struct marey__calls *calls)
{
    if (calls->from_ranges) /* files of other profilers are not changed */
        return true;
    uint8_t *const flags MAREY__FREED = marey__calloc(calls->n_nodes, sizeof *flags);
    uint32_t *const map MAREY__FREED = marey__calloc(calls->n_nodes, sizeof *map);
    if (flags == NULL || map == NULL)
        return false;
    for (size_t i = 1; i < calls->n_nodes; i++) {
        const struct marey__call_node *const node = &calls->nodes[i];
        const struct marey__call_function *const f = &calls->functions[node->function];
        flags[i] = marey__import_flags(flags[node->parent], f->kind == MAREY__CALL_PYTHON, f->name,
                                       f->file);
        if ((flags[i] & MAREY__IN_STARTUP) == 0 || (flags[node->parent] & MAREY__IN_STARTUP) != 0)
            continue;
        calls->startup_ns += node->total_ns;
        for (uint32_t at = node->parent; at != 0; at = calls->nodes[at].parent)
            calls->nodes[at].total_ns -= MAREY__MIN(calls->nodes[at].total_ns, node->total_ns);
    }
    size_t n = 1;
    for (size_t i = 1; i < calls->n_nodes; i++) {
        if ((flags[i] & MAREY__IN_STARTUP) != 0)
            continue;
        map[i] = (uint32_t)n;
        calls->nodes[n] = calls->nodes[i];
        calls->nodes[n].parent = map[calls->nodes[i].parent];
        n++;
    }
    calls->n_nodes = n;
    return true;
}
