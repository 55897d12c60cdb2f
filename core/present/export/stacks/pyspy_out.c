/*
 * Samples in the format of `py-spy record --format raw`:
 *
 *   main (/home/user/train.py:3);Model.forward (/home/user/model.py:9) 53
 *
 * A line is a stack with line numbers, and its number of samples. With several processes each stack
 * begins with its processes, as with --subprocesses; if the option `by` is "thread" the thread follows, as with --threads.
 */
#include "analyze/samples/internal.h"
#include "present/export/stacks/internal.h"

/* Samples of a stack, and of a process or thread if these are written. */
struct line {
    uint32_t owner, stack; /* the key */
    uint64_t n;
};

struct writing {
    struct marey__export *x;
    struct marey__samples_set set;
    bool by_thread, has_processes;
    struct line *lines;
    size_t n_lines, lines_cap;
    struct marey__key_map by_key;
    uint32_t *path; /* stacks, the innermost first */
    size_t path_cap;
};

/* ---- lines ---- */

static bool count(struct writing *w, uint32_t owner, uint32_t stack, uint64_t n)
{
    const uint64_t key = marey__pair_key(owner, stack);
    const uint32_t number = MAREY__MAP_NUMBER(&w->by_key, w->lines, w->n_lines, w->lines_cap, key);
    if (number != 0)
        w->lines[number - 1].n += n;
    return number != 0;
}

static marey_status take_round(void *ctx, const struct marey_samples_round *round)
{
    struct writing *const w = ctx;
    for (size_t i = 0; i < round->n_seen; i++) {
        const uint32_t owner = w->by_thread       ? round->seen[i].thread
                               : w->has_processes ? round->process
                                                  : 0;
        MAREY__TRY_MEMORY(count(w, owner, round->seen[i].stack, MAREY__MAX(round->n_same, 1)));
    }
    return MAREY_OK;
}

/* ---- text ---- */

static void put_text(struct marey__buf *text, const char *bytes)
{
    marey__collapsed_text(text, bytes, strlen(bytes));
}

/* Sampled ancestors come first. */
static void put_process(const struct writing *w, struct marey__buf *text, uint32_t process,
                        unsigned depth)
{
    enum { MAX_DEPTH = 32 };
    const struct marey_samples_process *const p = marey_samples_get_process(w->set.samples, process);
    if (w->set.targets[process].parent != 0 && depth < MAX_DEPTH)
        put_process(w, text, w->set.targets[process].parent, depth + 1);
    marey__buf_printf(text, "process %lld:\"", (long long)p->pid);
    put_text(text, p->command);
    marey__buf_puts(text, "\";");
}

static void put_owner(const struct writing *w, struct marey__buf *text, uint32_t owner)
{
    if (owner == 0)
        return;
    const struct marey_samples_thread *const t = marey_samples_get_thread(w->set.samples, owner);
    if (w->has_processes)
        put_process(w, text, w->by_thread ? t->process : owner, 0);
    if (!w->by_thread)
        return;
    marey__buf_printf(text, "thread (%lld)", (long long)t->tid);
    if (t->name[0] != '\0') {
        marey__buf_puts(text, ": ");
        put_text(text, t->name);
    }
    marey__buf_puts(text, ";");
}

static void put_frame(const struct writing *w, struct marey__buf *text, uint32_t stack)
{
    const marey_samples *const samples = w->set.samples;
    const struct marey_samples_location at =
        marey_samples_get_location(samples, marey_samples_get_stack(samples, stack).location);
    const struct marey_samples_function *const f = marey_samples_get_function(samples, at.function);
    const char *const place = f->file[0] != '\0' ? f->file : f->module;
    put_text(text, f->name);
    if (place[0] == '\0')
        return;
    marey__buf_puts(text, " (");
    put_text(text, place);
    if (at.line != 0)
        marey__buf_printf(text, ":%u", at.line);
    marey__buf_puts(text, ")");
}

static bool put_line(struct writing *w, struct marey__buf *text, const struct line *line)
{
    size_t n = 0;
    text->len = 0;
    put_owner(w, text, line->owner);
    for (uint32_t at = line->stack; at != 0; at = marey_samples_get_stack(w->set.samples, at).parent) {
        if (!MAREY__PUSH(w->path, n, w->path_cap, at))
            return false;
    }
    if (n == 0)
        marey__buf_puts(text, "(no Python frames)");
    while (n > 0) {
        put_frame(w, text, w->path[--n]);
        marey__buf_puts(text, n > 0 ? ";" : "");
    }
    marey__buf_printf(text, " %llu\n", (unsigned long long)line->n);
    if (!text->failed)
        marey__out_put(&w->x->out, text->data, text->len);
    return !text->failed;
}

/* The heaviest first. */
MAREY__ORDER(by_count, struct line, MAREY__DOWN(n) MAREY__UP(owner) MAREY__UP(stack))

static marey_status write_lines(struct writing *w)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    bool done = true;
    if (w->n_lines != 0)
        qsort(w->lines, w->n_lines, sizeof *w->lines, by_count);
    for (size_t i = 0; done && i < w->n_lines; i++)
        done = put_line(w, &text, &w->lines[i]);
    return done ? MAREY_OK : marey__no_memory();
}

static marey_status write_set(struct writing *w)
{
    struct marey__samples_chosen *chosen = NULL;
    struct marey__samples_filter filter;
    w->has_processes = marey_samples_n_processes(w->set.samples) > 1;
    MAREY_TRY(marey__samples_filter_parse(w->x->options->samples, &filter));
    MAREY_TRY(marey__samples_choose(&w->set, &filter, true, &chosen));
    const marey_status status = marey__samples_visit(&w->set, chosen, take_round, w);
    marey__samples_chosen_destroy(chosen);
    return status == MAREY_OK ? write_lines(w) : status;
}

static marey_status export_whole(struct marey__export *x, marey_recording *const *recordings, size_t n)
{
    const char *const by = x->options->by;
    struct writing w = {.x = x, .by_thread = by != NULL && strcmp(by, "thread") == 0};
    if (by != NULL && !w.by_thread)
        return marey__fail(MAREY_EINVAL, "py-spy's format has threads apart, and no %s", by);
    if (!marey__samples_are_there(recordings, n) && !marey__samples_are_imported(recordings, n))
        return marey__fail(MAREY_EINVAL,
                           "nothing was sampled; sample with marey attach or marey run "
                           "--sample, or export to collapsed");
    MAREY_TRY(marey__samples_open(&w.set, recordings, n));
    const marey_status status = write_set(&w);
    marey__free(w.lines);
    marey__key_map_fini(&w.by_key);
    marey__free(w.path);
    marey__samples_fini(&w.set);
    return status;
}

const struct marey__export_format marey__export_pyspy = {
    .info =
        {
            .name = "pyspy",
            .extensions = ".raw",
            .brief = "sampled stacks with lines, as py-spy record -f raw writes them",
            .details = "Samples only. `by` may be \"thread\".",
            .next = "stacks and how many samples had them, as py-spy record -f raw writes them",
            .content = MAREY_EXPORT_PATHS,
            .takes = MAREY_EXPORT_BY,
        },
    .whole = export_whole,
    .reads_profiles = true,
};
