/* Selects samples by thread state, thread, process and time; finds idle processes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/samples/internal.h"
#include "analyze/walk/internal.h"
#include "read/internal.h"

enum mode { MODE_WALL, MODE_CPU, MODE_GIL, MODE_EXCEPTION };
enum during { DURING_ITERATIONS, DURING_EPOCHS, DURING_PHASE, N_DURING };
enum { IS_CHOSEN = 1, IS_MAIN = 2 };

struct marey__samples_chosen {
    enum mode mode;
    bool is_idle, drops_idle, shows_imports;
    uint8_t *threads;                      /* by thread */
    struct marey__spans *ranges;           /* by thread; NULL: no filter by range */
    struct marey__spans *during[N_DURING]; /* by process; NULL: likewise */
    uint32_t *spans_of[N_DURING];          /* by process: the process whose spans apply; 0: none */
    uint32_t n_threads, n_processes;
    uint8_t *flags;     /* by stack; NULL: the choice is complete */
    uint64_t *first_ns; /* by process: begin of its first step; 0: none */
    bool *has_steps;    /* by process */
    struct marey__buf what;
};

/* ---- parsing the filter ---- */

static marey_status parse_mode(const char *text, enum mode *mode)
{
    static const char *const names[] = {"wall", "cpu", "gil", "exception"};
    *mode = MODE_WALL;
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        if (text == NULL || strcmp(names[i], text) == 0) {
            *mode = (enum mode)i;
            return MAREY_OK;
        }
    return marey__fail(MAREY_EINVAL, "no mode '%s' of samples: wall, cpu, gil or exception", text);
}

/* Parse `len` bytes, which must all be digits. */
static bool parse_number(const char *text, size_t len, uint64_t *number)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return len != 0 && marey__parse_number(text, len, number);
}

static marey_status parse_numbers(const char *text, const char *of, bool may_be_slow,
                                  struct marey__spans_choice *out)
{
    const char *const dots = strstr(text, "..");
    const size_t len = strlen(text), before = dots != NULL ? (size_t)(dots - text) : len;
    *out = (struct marey__spans_choice){.last = UINT64_MAX};
    if (may_be_slow && strcmp(text, "slow") == 0) {
        out->is_slow = true;
        return MAREY_OK;
    }
    bool ok = before == 0 ? dots != NULL : parse_number(text, before, &out->first);
    if (ok && dots == NULL)
        out->last = out->first;
    else if (ok && before + 2 < len)
        ok = parse_number(dots + 2, len - before - 2, &out->last);
    ok = ok && len > 2 * (size_t)(dots != NULL) && out->first <= out->last;
    return ok ? MAREY_OK
              : marey__fail(MAREY_EINVAL,
                            "'%s' does not select %s: give a number, or two as in 10..20%s", text,
                            of, may_be_slow ? ", or slow" : "");
}

marey_status marey__samples_check(const struct marey__samples_filter *filter)
{
    struct marey__spans_choice choice;
    enum mode mode;
    MAREY_TRY(parse_mode(filter->mode, &mode));
    if (filter->iterations != NULL)
        MAREY_TRY(parse_numbers(filter->iterations, "iterations", true, &choice));
    return filter->epochs != NULL ? parse_numbers(filter->epochs, "epochs", false, &choice)
                                  : MAREY_OK;
}

/* ---- threads ---- */

static marey_status choose_threads(struct marey__samples_chosen *c,
                                   const struct marey__samples_set *set,
                                   const struct marey__samples_filter *filter)
{
    uint64_t rank = 0;
    bool any = c->n_threads == 0;
    if (filter->rank != NULL && !parse_number(filter->rank, strlen(filter->rank), &rank))
        return marey__fail(MAREY_EINVAL, "'%s' is not a rank: a number from 0 on", filter->rank);
    for (uint32_t i = 1; i <= c->n_threads; i++) {
        const struct marey_samples_thread *const t = marey_samples_get_thread(set->samples, i);
        const struct marey_samples_process *const p =
            marey_samples_get_process(set->samples, t->process);
        const bool is_of_rank = filter->rank == NULL || (p->rank >= 0 && (uint64_t)p->rank == rank);
        if (is_of_rank && marey__process_matches(filter->process, p->pid, p->worker, p->command) &&
            marey__name_matches(filter->thread, t->name, strlen(t->name)))
            c->threads[i] = IS_CHOSEN | (t->is_main ? IS_MAIN : 0);
        any = any || c->threads[i] != 0;
    }
    if (any)
        return MAREY_OK;
    if (filter->process != NULL && filter->thread == NULL && filter->rank == NULL)
        return marey__fail(
            MAREY_EINVAL,
            "no process '%s' was sampled: a PID, main, worker, worker0, or a part of a "
            "command; 'marey report --samples --by process' lists them",
            filter->process);
    return filter->thread != NULL
               ? marey__fail(MAREY_EINVAL, "no thread called '%s'%s%s was sampled", filter->thread,
                             filter->rank != NULL ? " of rank " : "",
                             filter->rank != NULL ? filter->rank : "")
               : marey__fail(MAREY_EINVAL, "no process of rank %s was sampled", filter->rank);
}

/* ---- spans ---- */

static bool has_log(const struct marey__samples_set *set)
{
    for (uint32_t i = 1; i <= marey_samples_n_processes(set->samples); i++)
        if (set->targets[i].log != MAREY__NO_LOG)
            return true;
    return false;
}

/* A loader worker has no iterations: use those of the process that started it. */
static void find_spans_of(const struct marey__samples_set *set, const struct marey__spans *spans,
                          uint32_t *spans_of)
{
    enum { GENERATIONS = 16 };
    for (uint32_t i = 1; i <= marey_samples_n_processes(set->samples); i++) {
        uint32_t at = i;
        for (int steps = 0; at != 0 && spans[at].n == 0; steps++)
            at = steps < GENERATIONS ? set->targets[at].parent : 0;
        spans_of[i] = at;
    }
}

static bool has_spans(const struct marey__spans *spans, uint32_t n)
{
    for (uint32_t i = 0; i <= n; i++)
        if (spans[i].n != 0)
            return true;
    return false;
}

static marey_status join_range(struct marey__samples_chosen *c, struct marey__samples_set *set,
                               const char *name)
{
    bool is_there;
    c->ranges = marey__calloc((size_t)c->n_threads + 1, sizeof *c->ranges);
    MAREY__TRY_MEMORY(c->ranges != NULL);
    MAREY_TRY(marey__samples_join_ranges(set, name, c->ranges, &is_there));
    if (!is_there)
        return marey__fail(MAREY_EINVAL, "no process that was sampled has a range '%s'", name);
    marey__buf_printf(&c->what, ", in the range %s", name);
    return MAREY_OK;
}

/* Spans by process, and the process whose spans apply to each. The caller frees both, also on failure. */
static marey_status read_spans(const struct marey__samples_chosen *c, struct marey__samples_set *set,
                               const struct marey__spans_choice *choice, struct marey__spans **spans,
                               uint32_t **spans_of, struct marey__slow_found *slow)
{
    *spans = marey__calloc((size_t)c->n_processes + 1, sizeof **spans);
    *spans_of = marey__calloc((size_t)c->n_processes + 1, sizeof **spans_of);
    MAREY__TRY_MEMORY(*spans != NULL && *spans_of != NULL);
    MAREY_TRY(marey__samples_join_spans(set, choice, *spans, slow));
    find_spans_of(set, *spans, *spans_of);
    return MAREY_OK;
}

static marey_status join_during(struct marey__samples_chosen *c, struct marey__samples_set *set,
                                const struct marey__samples_filter *filter, enum during what)
{
    static const char *const names[] = {"iterations", "epochs", "phase"};
    static const enum marey__span_kind kinds[] = {MAREY__SPAN_ITERATION, MAREY__SPAN_EPOCH,
                                                  MAREY__SPAN_PHASE};
    const char *const asked = what == DURING_ITERATIONS ? filter->iterations
                              : what == DURING_EPOCHS   ? filter->epochs
                                                        : filter->phase;
    struct marey__spans_choice choice = {.last = UINT64_MAX, .name = asked};
    struct marey__slow_found slow;
    if (asked == NULL)
        return MAREY_OK;
    if (what != DURING_PHASE)
        MAREY_TRY(parse_numbers(asked, names[what], what == DURING_ITERATIONS, &choice));
    choice.kind = kinds[what];
    MAREY_TRY(read_spans(c, set, &choice, &c->during[what], &c->spans_of[what], &slow));
    if (!has_spans(c->during[what], c->n_processes))
        return marey__fail(MAREY_EINVAL, "no process that was sampled has %s '%s'",
                           what == DURING_PHASE ? "a phase" : names[what], asked);
    if (choice.is_slow)
        marey__buf_printf(&c->what, ", in %" PRIu64 " of %" PRIu64 " iterations, the slow ones (%s)",
                          slow.n_slow, slow.n_iterations,
                          slow.is_by_rank ? "none was 1.5 times the median: the slowest 5 %"
                                          : "more than 1.5 times the median");
    else
        marey__buf_printf(&c->what, ", in %s%s %s", what == DURING_PHASE ? "the " : "", names[what],
                          asked);
    return MAREY_OK;
}

static marey_status join(struct marey__samples_chosen *c, struct marey__samples_set *set,
                         const struct marey__samples_filter *filter)
{
    const char *const asked = filter->range != NULL        ? "range"
                              : filter->iterations != NULL ? "iterations"
                              : filter->epochs != NULL     ? "epochs"
                              : filter->phase != NULL      ? "phase"
                                                           : NULL;
    if (asked == NULL)
        return MAREY_OK;
    if (!has_log(set))
        return marey__fail(MAREY_EINVAL,
                           "no sampled process has its own log, which --%s needs: record the "
                           "program into the same directory, as marey run --sample does",
                           asked);
    if (filter->range != NULL)
        MAREY_TRY(join_range(c, set, filter->range));
    for (int i = 0; i < N_DURING; i++)
        MAREY_TRY(join_during(c, set, filter, (enum during)i));
    return MAREY_OK;
}

static void say_mode(struct marey__samples_chosen *c, const struct marey__samples_filter *filter)
{
    static const char *const says[] = {"main thread: wall clock; other threads: on-CPU only",
                                       "threads on CPU", "threads that hold the GIL",
                                       "threads that handle an exception"};
    marey__buf_puts(&c->what, c->mode == MODE_WALL && c->is_idle ? "all threads all the time"
                                                                 : says[c->mode]);
    if (filter->thread != NULL)
        marey__buf_printf(&c->what, ", called %s", filter->thread);
    if (filter->rank != NULL)
        marey__buf_printf(&c->what, ", of rank %s", filter->rank);
    if (filter->process != NULL)
        marey__buf_printf(&c->what, ", of process %s", filter->process);
}

/* ---- start-up ---- */

static void free_spans(struct marey__spans *spans, uint32_t n)
{
    for (uint32_t i = 0; spans != NULL && i <= n; i++)
        marey__spans_fini(&spans[i]);
    marey__free(spans);
}

static marey_status find_steps(struct marey__samples_chosen *c, struct marey__samples_set *set)
{
    const struct marey__spans_choice all = {.kind = MAREY__SPAN_ITERATION, .last = UINT64_MAX};
    struct marey__slow_found slow;
    struct marey__spans *spans = NULL;
    uint32_t *spans_of MAREY__FREED = NULL;
    marey_status status = read_spans(c, set, &all, &spans, &spans_of, &slow);
    c->first_ns = marey__calloc((size_t)c->n_processes + 1, sizeof *c->first_ns);
    c->has_steps = marey__calloc((size_t)c->n_processes + 1, sizeof *c->has_steps);
    if (status == MAREY_OK && (c->first_ns == NULL || c->has_steps == NULL))
        status = marey__no_memory();
    for (uint32_t i = 1; status == MAREY_OK && i <= c->n_processes; i++) {
        c->has_steps[i] = spans[i].n != 0;
        c->first_ns[i] = spans_of[i] != 0 ? spans[spans_of[i]].items[0].begin_ns : 0;
    }
    free_spans(spans, c->n_processes);
    return status;
}

bool marey__samples_is_startup(const struct marey__samples_chosen *c, uint32_t process,
                               uint64_t at_ns, uint32_t stack)
{
    if (c->flags == NULL || (c->flags[stack] & MAREY__IN_IMPORT) == 0)
        return false;
    if (c->first_ns[process] != 0)
        return at_ns < c->first_ns[process];
    return (c->flags[stack] & MAREY__IN_STARTUP) != 0;
}

bool marey__samples_shows_imports(const struct marey__samples_chosen *c)
{
    return c->flags == NULL || c->shows_imports;
}

bool marey__samples_is_task_wait(const struct marey__samples_chosen *c, uint32_t stack)
{
    return c->drops_idle && (c->flags[stack] & MAREY__IN_TASK_WAIT) != 0;
}

/* Whether the process itself counts steps; known only if idle processes are excluded. */
static bool has_steps(const struct marey__samples_chosen *c, uint32_t process)
{
    return c->has_steps != NULL && c->has_steps[process];
}

static marey_status fill(struct marey__samples_chosen *c, struct marey__samples_set *set,
                         const struct marey__samples_filter *filter, bool is_complete)
{
    c->n_threads = marey_samples_n_threads(set->samples);
    c->n_processes = marey_samples_n_processes(set->samples);
    c->is_idle = filter->idle != 0;
    c->threads = marey__calloc((size_t)c->n_threads + 1, sizeof *c->threads);
    MAREY__TRY_MEMORY(c->threads != NULL);
    MAREY_TRY(parse_mode(filter->mode, &c->mode));
    say_mode(c, filter);
    MAREY_TRY(choose_threads(c, set, filter));
    MAREY_TRY(join(c, set, filter));
    /* Files of other samplers are not changed. */
    const bool may_drop = !is_complete && set->n_sources != 0;
    c->drops_idle = may_drop && c->mode == MODE_WALL && !c->is_idle && filter->thread == NULL &&
                    filter->process == NULL && filter->rank == NULL;
    c->shows_imports = filter->startup != 0;
    if (may_drop) {
        c->flags = marey__samples_stack_flags(set->samples);
        MAREY__TRY_MEMORY(c->flags != NULL);
        MAREY_TRY(find_steps(c, set));
    }
    marey__buf_put(&c->what, "", 1);
    return c->what.failed ? marey__no_memory() : MAREY_OK;
}

marey_status marey__samples_choose(struct marey__samples_set *set,
                                   const struct marey__samples_filter *filter, bool is_complete,
                                   struct marey__samples_chosen **out)
{
    static const struct marey__samples_filter none;
    struct marey__samples_chosen *const c = marey__calloc(1, sizeof *c);
    MAREY__TRY_MEMORY(c != NULL);
    const marey_status status = fill(c, set, filter != NULL ? filter : &none, is_complete);
    if (status == MAREY_OK)
        *out = c;
    else
        marey__samples_chosen_destroy(c);
    return status;
}

void marey__samples_chosen_destroy(struct marey__samples_chosen *c)
{
    if (c == NULL)
        return;
    free_spans(c->ranges, c->n_threads);
    for (int i = 0; i < N_DURING; i++) {
        free_spans(c->during[i], c->n_processes);
        marey__free(c->spans_of[i]);
    }
    marey__buf_fini(&c->what);
    MAREY__FREE_ALL(c->flags, c->first_ns, c->has_steps, c->threads, c);
}

const char *marey__samples_chosen_what(const struct marey__samples_chosen *c)
{
    return c->what.data;
}

bool marey__samples_is_of_mode(const struct marey__samples_chosen *c,
                               const struct marey_samples_seen *seen)
{
    switch (c->mode) {
    case MODE_CPU:
        return (seen->flags & MAREY_SAMPLE_ON_CPU) != 0;
    case MODE_GIL:
        return (seen->flags & MAREY_SAMPLE_GIL) != 0;
    case MODE_EXCEPTION:
        return (seen->flags & MAREY_SAMPLE_EXCEPTION) != 0;
    default:
        return c->is_idle || (c->threads[seen->thread] & IS_MAIN) != 0 ||
               (seen->flags & (MAREY_SAMPLE_OFF_CPU | MAREY_SAMPLE_NO_FRAMES)) == 0;
    }
}

bool marey__samples_matches(const struct marey__samples_chosen *c, uint32_t process, uint64_t at_ns,
                            uint32_t thread)
{
    if ((c->threads[thread] & IS_CHOSEN) == 0 ||
        (c->ranges != NULL && !marey__spans_have(&c->ranges[thread], at_ns)))
        return false;
    for (int i = 0; i < N_DURING; i++)
        if (c->during[i] != NULL && !marey__spans_have(&c->during[i][c->spans_of[i][process]], at_ns))
            return false;
    return true;
}

/*
 * ---- idle processes ----
 *
 * Processes that only wait, such as launchers and workers without work: their main threads always sleep and would be
 * the first row of every table. They are excluded if another process works, and a note gives their time. A program that
 * waits for its own workers is included: that wait is a result, as with a slow data loader.
 *
 * A launcher is recognized by its ranks: torchrun is busy for seconds with imports and at exit, which in a short job
 * exceeds the limit for an idle process.
 */

/* A process is idle if it is on a CPU core for less than this fraction of the time. */
enum { IDLE_PART = 20 };

void marey__samples_note_work(struct marey__samples_set *set, const struct marey_samples_round *round,
                              const struct marey_samples_seen *seen)
{
    struct marey__samples_target *const t = &set->targets[round->process];
    const bool is_on = (seen->flags & MAREY_SAMPLE_ON_CPU) != 0,
               is_known = is_on || (seen->flags & MAREY_SAMPLE_OFF_CPU) != 0;
    if (is_known && marey_samples_get_thread(set->samples, seen->thread)->is_main)
        t->known_ns += round->weight_ns;
    t->cpu_ns += is_on ? round->weight_ns : 0;
}

/* Ranks and processes that count steps are never idle: waiting for other ranks or for a GPU is a result. */
static bool is_idle(const struct marey__samples_set *set,
                    const struct marey__samples_chosen *chosen, uint32_t i)
{
    const struct marey_samples_process *const process = marey_samples_get_process(set->samples, i);
    const struct marey__samples_target *const t = &set->targets[i];
    const bool is_rank = process->rank >= 0 && process->worker < 0;
    return t->known_ns != 0 && t->cpu_ns < t->known_ns / IDLE_PART && !is_rank &&
           !has_steps(chosen, i);
}

/* A launcher started a rank, is not a rank, and counts no steps. */
static void find_launchers(struct marey__samples_set *set,
                           const struct marey__samples_chosen *chosen, uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t at =
            marey_samples_get_process(set->samples, i)->rank >= 0 ? set->targets[i].parent : 0;
        for (uint32_t steps = 0; at != 0 && steps < n; steps++) { /* a damaged log may have a cycle */
            set->targets[at].is_launcher |=
                marey_samples_get_process(set->samples, at)->rank < 0 && !has_steps(chosen, at);
            at = set->targets[at].parent;
        }
    }
}

/* Whether `child` was forked from `parent` or started by its multiprocessing, and is not another program. */
static bool is_worker_of(const struct marey_samples_process *child,
                         const struct marey_samples_process *parent)
{
    return child->ppid == parent->pid && (strcmp(child->command, parent->command) == 0 ||
                                          strstr(child->command, "multiprocessing") != NULL);
}

/* Processes that wait for their own working workers are not idle. */
static void keep_parents(const struct marey__samples_set *set, uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++) {
        const struct marey_samples_process *const parent = marey_samples_get_process(set->samples, i);
        for (uint32_t k = 1; k <= n && set->targets[i].is_idle; k++)
            if (!set->targets[k].is_idle && set->targets[k].cpu_ns != 0 &&
                is_worker_of(marey_samples_get_process(set->samples, k), parent))
                set->targets[i].is_idle = false;
    }
}

void marey__samples_find_idle(struct marey__samples_set *set,
                              const struct marey__samples_chosen *chosen)
{
    const uint32_t n = marey_samples_n_processes(set->samples);
    bool is_work_there = false;
    set->idle_ns = set->n_idle = set->n_launchers = set->longest_idle = 0;
    if (!chosen->drops_idle)
        return;
    for (uint32_t i = 1; i <= n; i++) {
        set->targets[i].is_idle = is_idle(set, chosen, i);
        is_work_there |= !set->targets[i].is_idle && set->targets[i].counted_ns != 0;
    }
    keep_parents(set, n);
    find_launchers(set, chosen, n);
    for (uint32_t i = 1; i <= n; i++) {
        struct marey__samples_target *const t = &set->targets[i];
        t->is_idle = (t->is_idle || t->is_launcher) && is_work_there && t->counted_ns != 0;
        if (!t->is_idle)
            continue;
        set->n_idle++;
        set->n_launchers += t->is_launcher;
        set->idle_ns += t->counted_ns;
        if (set->longest_idle == 0 || t->counted_ns > set->targets[set->longest_idle].counted_ns)
            set->longest_idle = i;
    }
}

/* ---- processes by number, role or command: --process ---- */

bool marey__process_matches(const char *which, int64_t pid, int32_t worker, const char *command)
{
    static const char word[] = "worker";
    uint64_t number;
    if (which == NULL)
        return true;
    if (parse_number(which, strlen(which), &number))
        return (uint64_t)pid == number;
    if (strcmp(which, "main") == 0)
        return worker < 0;
    if (strcmp(which, word) == 0)
        return worker >= 0;
    if (strncmp(which, word, sizeof word - 1) == 0 &&
        parse_number(which + sizeof word - 1, strlen(which + sizeof word - 1), &number))
        return worker >= 0 && (uint64_t)worker == number;
    return marey__name_matches(which, command, strlen(command));
}

marey_status marey_recording_select(const marey_recording *whole, const char *process,
                                    marey_recording **out)
{
    const size_t n = marey_recording_n_logs(whole);
    bool *const keep MAREY__FREED = marey__calloc(n + 1, sizeof *keep);
    bool any = marey_recording_n_processes(whole) == 0;
    MAREY__TRY_MEMORY(keep != NULL);
    for (size_t i = 0; i < n; i++) {
        const struct marey_process *const p = marey_recording_process(whole, i);
        keep[i] = i >= marey_recording_n_processes(whole) ||
                  marey__process_matches(process, p->pid, p->worker, p->command);
        any = any || (keep[i] && p->role[0] == '\0');
    }
    return any ? marey__recording_part(whole, keep, NULL, out)
               : marey__fail(
                     MAREY_EINVAL,
                     "no process '%s' is in %s: a PID, main, worker, worker0, or a part of a "
                     "command; 'marey report --json' lists them as processes",
                     process, marey_recording_name(whole));
}
