/* Which samples count: by what the thread did, who it is, and what its process was at. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/samples_spans.h"

enum mode { MODE_WALL, MODE_CPU, MODE_GIL, MODE_EXCEPTION };
enum during { DURING_ITERATIONS, DURING_EPOCHS, DURING_PHASE, N_DURING };
enum { IS_CHOSEN = 1, IS_MAIN = 2 };

struct kymo__samples_chosen {
    enum mode mode;
    bool is_idle, drops_idle, shows_imports;
    uint8_t *threads;                     /* by thread */
    struct kymo__spans *ranges;           /* by thread; NULL: no range is asked for */
    struct kymo__spans *during[N_DURING]; /* by process; NULL: the same */
    uint32_t *spans_of[N_DURING];         /* by process: whose spans hold for it; 0: nobody's */
    uint32_t n_threads, n_processes;
    uint8_t *flags;     /* by stack; NULL: the choice is complete */
    uint64_t *first_ns; /* by process: its first step begins; 0: it has none */
    bool *has_steps;    /* by process */
    struct kymo__buf what;
};

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory to choose samples");
}

/* ---- what was asked for ---- */

static kymo_status parse_mode(const char *text, enum mode *mode)
{
    static const char *const names[] = {"wall", "cpu", "gil", "exception"};
    *mode = MODE_WALL;
    for (size_t i = 0; text != NULL && i < KYMO__COUNT_OF(names); i++)
        if (strcmp(names[i], text) == 0) {
            *mode = (enum mode)i;
            return KYMO_OK;
        }
    if (text == NULL)
        return KYMO_OK;
    return kymo__fail(KYMO_EINVAL, "no mode '%s' of samples: wall, cpu, gil or exception", text);
}

static bool parse_number(const char *text, size_t len, uint64_t *number)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return len != 0 && kymo__parse_number(text, len, number);
}

static kymo_status parse_numbers(const char *text, const char *of, bool may_be_slow,
                                 struct kymo__numbers *out)
{
    const char *const dots = strstr(text, "..");
    const size_t len = strlen(text), before = dots != NULL ? (size_t)(dots - text) : len;
    *out = (struct kymo__numbers){.last = UINT64_MAX};
    if (may_be_slow && strcmp(text, "slow") == 0) {
        out->is_slow = true;
        return KYMO_OK;
    }
    bool ok = before == 0 ? dots != NULL : parse_number(text, before, &out->first);
    if (ok && dots == NULL)
        out->last = out->first;
    else if (ok && before + 2 < len)
        ok = parse_number(dots + 2, len - before - 2, &out->last);
    ok = ok && len > 2 * (size_t)(dots != NULL) && out->first <= out->last;
    return ok ? KYMO_OK
              : kymo__fail(KYMO_EINVAL, "'%s' are no %s: a number, or two as in 10..20%s", text, of,
                           may_be_slow ? ", or slow" : "");
}

/* ---- threads ---- */

static kymo_status choose_threads(struct kymo__samples_chosen *c, const struct kymo__samples_set *set,
                                  const struct kymo_samples_filter *filter)
{
    uint64_t rank = 0;
    bool any = c->n_threads == 0;
    if (filter->rank != NULL && !parse_number(filter->rank, strlen(filter->rank), &rank))
        return kymo__fail(KYMO_EINVAL, "'%s' is no rank: a number from 0 on", filter->rank);
    for (uint32_t i = 1; i <= c->n_threads; i++) {
        const struct kymo_samples_thread *const t = kymo_samples_get_thread(set->samples, i);
        const struct kymo_samples_process *const p =
            kymo_samples_get_process(set->samples, t->process);
        const bool is_of_rank = filter->rank == NULL || (p->rank >= 0 && (uint64_t)p->rank == rank);
        if (is_of_rank && kymo__process_matches(filter->process, p->pid, p->worker, p->command) &&
            kymo__name_matches(filter->thread, t->name, strlen(t->name)))
            c->threads[i] = IS_CHOSEN | (t->is_main ? IS_MAIN : 0);
        any = any || c->threads[i] != 0;
    }
    if (any)
        return KYMO_OK;
    if (filter->process != NULL && filter->thread == NULL && filter->rank == NULL)
        return kymo__fail(
            KYMO_EINVAL,
            "no process '%s' was sampled: a PID, main, worker, worker0, or a part of a "
            "command; 'kymo report --samples --by process' lists them",
            filter->process);
    return filter->thread != NULL
               ? kymo__fail(KYMO_EINVAL, "no thread called '%s'%s%s was sampled", filter->thread,
                            filter->rank != NULL ? " of rank " : "",
                            filter->rank != NULL ? filter->rank : "")
               : kymo__fail(KYMO_EINVAL, "no process of rank %s was sampled", filter->rank);
}

/* ---- spans ---- */

static bool has_log(const struct kymo__samples_set *set)
{
    for (uint32_t i = 1; i <= kymo_samples_n_processes(set->samples); i++)
        if (set->targets[i].log != KYMO__NO_LOG)
            return true;
    return false;
}

/* A worker of a loader has no iterations of its own: those of the process that made it are. */
static void find_spans_of(const struct kymo__samples_set *set, const struct kymo__spans *spans,
                          uint32_t *spans_of)
{
    enum { GENERATIONS = 16 };
    for (uint32_t i = 1; i <= kymo_samples_n_processes(set->samples); i++) {
        uint32_t at = i;
        for (int steps = 0; at != 0 && spans[at].n == 0; steps++)
            at = steps < GENERATIONS ? set->targets[at].parent : 0;
        spans_of[i] = at;
    }
}

static bool has_spans(const struct kymo__spans *spans, uint32_t n)
{
    for (uint32_t i = 0; i <= n; i++)
        if (spans[i].n != 0)
            return true;
    return false;
}

static kymo_status join_range(struct kymo__samples_chosen *c, struct kymo__samples_set *set,
                              const char *name)
{
    bool is_there;
    c->ranges = kymo__calloc((size_t)c->n_threads + 1, sizeof *c->ranges);
    if (c->ranges == NULL)
        return no_memory();
    KYMO_TRY(kymo__samples_join_ranges(set, name, c->ranges, &is_there));
    if (!is_there)
        return kymo__fail(KYMO_EINVAL, "no process that was sampled has a range '%s'", name);
    kymo__buf_printf(&c->what, ", in the range %s", name);
    return KYMO_OK;
}

static void say_slow(struct kymo__samples_chosen *c, const struct kymo__slow_found *slow)
{
    kymo__buf_printf(&c->what, ", in %" PRIu64 " of %" PRIu64 " iterations, the slow ones (%s)",
                     slow->n_slow, slow->n_iterations,
                     slow->is_by_rank ? "none was 1.5 times the median: the slowest 5 %"
                                      : "more than 1.5 times the median");
}

static kymo_status join_during(struct kymo__samples_chosen *c, struct kymo__samples_set *set,
                               const struct kymo_samples_filter *filter, enum during what)
{
    static const char *const names[] = {"iterations", "epochs", "phase"};
    const char *const asked = what == DURING_ITERATIONS ? filter->iterations
                              : what == DURING_EPOCHS   ? filter->epochs
                                                        : filter->phase;
    struct kymo__numbers numbers = {0};
    struct kymo__slow_found slow = {0};
    if (asked == NULL)
        return KYMO_OK;
    if (what != DURING_PHASE)
        KYMO_TRY(parse_numbers(asked, names[what], what == DURING_ITERATIONS, &numbers));
    struct kymo__spans *const spans = kymo__calloc((size_t)c->n_processes + 1, sizeof *spans);
    c->during[what] = spans;
    c->spans_of[what] = kymo__calloc((size_t)c->n_processes + 1, sizeof *c->spans_of[what]);
    if (spans == NULL || c->spans_of[what] == NULL)
        return no_memory();
    KYMO_TRY(what == DURING_ITERATIONS ? kymo__samples_join_iterations(set, &numbers, spans, &slow)
             : what == DURING_EPOCHS   ? kymo__samples_join_epochs(set, &numbers, spans)
                                       : kymo__samples_join_phases(set, asked, spans));
    if (!has_spans(spans, c->n_processes))
        return kymo__fail(KYMO_EINVAL, "no process that was sampled has %s '%s'",
                          what == DURING_PHASE ? "a phase" : names[what], asked);
    find_spans_of(set, spans, c->spans_of[what]);
    if (numbers.is_slow)
        say_slow(c, &slow);
    else
        kymo__buf_printf(&c->what, ", in %s%s %s", what == DURING_PHASE ? "the " : "", names[what],
                         asked);
    return KYMO_OK;
}

static kymo_status join(struct kymo__samples_chosen *c, struct kymo__samples_set *set,
                        const struct kymo_samples_filter *filter)
{
    const char *const asked = filter->range != NULL        ? "range"
                              : filter->iterations != NULL ? "iterations"
                              : filter->epochs != NULL     ? "epochs"
                              : filter->phase != NULL      ? "phase"
                                                           : NULL;
    if (asked == NULL)
        return KYMO_OK;
    if (!has_log(set))
        return kymo__fail(
            KYMO_EINVAL,
            "no process that was sampled has a log of its own, by which samples could "
            "be chosen for --%s: let the program record into the same directory, as "
            "kymo run --sample does",
            asked);
    if (filter->range != NULL)
        KYMO_TRY(join_range(c, set, filter->range));
    for (int i = 0; i < N_DURING; i++)
        KYMO_TRY(join_during(c, set, filter, (enum during)i));
    return KYMO_OK;
}

/* ---- all of it ---- */

static void say_mode(struct kymo__samples_chosen *c, const struct kymo_samples_filter *filter)
{
    static const char *const says[] = {"main thread: wall clock; other threads: on-CPU only",
                                       "threads on CPU", "threads that hold the GIL",
                                       "threads that handle an exception"};
    kymo__buf_puts(&c->what,
                   c->mode == MODE_WALL && c->is_idle ? "all threads all the time" : says[c->mode]);
    if (filter->thread != NULL)
        kymo__buf_printf(&c->what, ", called %s", filter->thread);
    if (filter->rank != NULL)
        kymo__buf_printf(&c->what, ", of rank %s", filter->rank);
    if (filter->process != NULL)
        kymo__buf_printf(&c->what, ", of process %s", filter->process);
}

/* ---- start-up ---- */

static void free_spans(struct kymo__spans *spans, uint32_t n)
{
    for (uint32_t i = 0; spans != NULL && i <= n; i++)
        kymo__spans_fini(&spans[i]);
    kymo__free(spans);
}

static kymo_status find_steps(struct kymo__samples_chosen *c, struct kymo__samples_set *set)
{
    const struct kymo__numbers all = {.last = UINT64_MAX};
    struct kymo__slow_found slow;
    struct kymo__spans *const spans = kymo__calloc((size_t)c->n_processes + 1, sizeof *spans);
    uint32_t *const spans_of = kymo__calloc((size_t)c->n_processes + 1, sizeof *spans_of);
    c->first_ns = kymo__calloc((size_t)c->n_processes + 1, sizeof *c->first_ns);
    c->has_steps = kymo__calloc((size_t)c->n_processes + 1, sizeof *c->has_steps);
    kymo_status status =
        spans != NULL && spans_of != NULL && c->first_ns != NULL && c->has_steps != NULL
            ? KYMO_OK
            : no_memory();
    if (status == KYMO_OK)
        status = kymo__samples_join_iterations(set, &all, spans, &slow);
    if (status == KYMO_OK)
        find_spans_of(set, spans, spans_of);
    for (uint32_t i = 1; status == KYMO_OK && i <= c->n_processes; i++)
        c->has_steps[i] = spans[i].n != 0;
    for (uint32_t i = 1; status == KYMO_OK && i <= c->n_processes; i++)
        c->first_ns[i] = spans_of[i] != 0 ? spans[spans_of[i]].items[0].begin_ns : 0;
    free_spans(spans, c->n_processes);
    kymo__free(spans_of);
    return status;
}

bool kymo__samples_is_startup(const struct kymo__samples_chosen *c, uint32_t process,
                              uint64_t at_ns, uint32_t stack)
{
    if (c->flags == NULL || (c->flags[stack] & KYMO__IN_IMPORT) == 0)
        return false;
    if (c->first_ns[process] != 0)
        return at_ns < c->first_ns[process];
    return (c->flags[stack] & KYMO__IN_STARTUP) != 0;
}

bool kymo__samples_shows_imports(const struct kymo__samples_chosen *c)
{
    return c->flags == NULL || c->shows_imports;
}

bool kymo__samples_is_task_wait(const struct kymo__samples_chosen *c, uint32_t stack)
{
    return c->drops_idle && (c->flags[stack] & KYMO__IN_TASK_WAIT) != 0;
}

bool kymo__samples_drops_idle(const struct kymo__samples_chosen *c)
{
    return c->drops_idle;
}

bool kymo__samples_has_steps(const struct kymo__samples_chosen *c, uint32_t process)
{
    return c->has_steps != NULL && c->has_steps[process];
}

static kymo_status fill(struct kymo__samples_chosen *c, struct kymo__samples_set *set,
                        const struct kymo_samples_filter *filter, bool is_complete)
{
    c->n_threads = kymo_samples_n_threads(set->samples);
    c->n_processes = kymo_samples_n_processes(set->samples);
    c->is_idle = filter->idle != 0;
    c->threads = kymo__calloc((size_t)c->n_threads + 1, sizeof *c->threads);
    if (c->threads == NULL)
        return no_memory();
    KYMO_TRY(parse_mode(filter->mode, &c->mode));
    say_mode(c, filter);
    KYMO_TRY(choose_threads(c, set, filter));
    KYMO_TRY(join(c, set, filter));
    /* Files of other samplers stay as they are. */
    const bool may_drop = !is_complete && set->n_sources != 0;
    c->drops_idle = may_drop && c->mode == MODE_WALL && !c->is_idle && filter->thread == NULL &&
                    filter->process == NULL && filter->rank == NULL;
    c->shows_imports = filter->startup != 0;
    if (may_drop) {
        c->flags = kymo__samples_stack_flags(set->samples);
        if (c->flags == NULL)
            return no_memory();
        KYMO_TRY(find_steps(c, set));
    }
    kymo__buf_put(&c->what, "", 1);
    return c->what.failed ? no_memory() : KYMO_OK;
}

kymo_status kymo__samples_choose(struct kymo__samples_set *set,
                                 const struct kymo_samples_filter *filter, bool is_complete,
                                 struct kymo__samples_chosen **out)
{
    static const struct kymo_samples_filter none;
    struct kymo__samples_chosen *const c = kymo__calloc(1, sizeof *c);
    if (c == NULL)
        return no_memory();
    const kymo_status status = fill(c, set, filter != NULL ? filter : &none, is_complete);
    if (status == KYMO_OK)
        *out = c;
    else
        kymo__samples_chosen_destroy(c);
    return status;
}

void kymo__samples_chosen_destroy(struct kymo__samples_chosen *c)
{
    if (c == NULL)
        return;
    free_spans(c->ranges, c->n_threads);
    for (int i = 0; i < N_DURING; i++) {
        free_spans(c->during[i], c->n_processes);
        kymo__free(c->spans_of[i]);
    }
    kymo__buf_fini(&c->what);
    kymo__free(c->flags);
    kymo__free(c->first_ns);
    kymo__free(c->has_steps);
    kymo__free(c->threads);
    kymo__free(c);
}

const char *kymo__samples_chosen_what(const struct kymo__samples_chosen *c)
{
    return c->what.data;
}

bool kymo__samples_is_of_mode(const struct kymo__samples_chosen *c,
                              const struct kymo_samples_seen *seen)
{
    switch (c->mode) {
    case MODE_CPU:
        return (seen->flags & KYMO_SAMPLE_ON_CPU) != 0;
    case MODE_GIL:
        return (seen->flags & KYMO_SAMPLE_GIL) != 0;
    case MODE_EXCEPTION:
        return (seen->flags & KYMO_SAMPLE_EXCEPTION) != 0;
    default:
        return c->is_idle || (c->threads[seen->thread] & IS_MAIN) != 0 ||
               (seen->flags & (KYMO_SAMPLE_OFF_CPU | KYMO_SAMPLE_NO_FRAMES)) == 0;
    }
}

bool kymo__samples_is_there(const struct kymo__samples_chosen *c, uint32_t process, uint64_t at_ns,
                            uint32_t thread)
{
    if ((c->threads[thread] & IS_CHOSEN) == 0 ||
        (c->ranges != NULL && !kymo__spans_have(&c->ranges[thread], at_ns)))
        return false;
    for (int i = 0; i < N_DURING; i++)
        if (c->during[i] != NULL && !kymo__spans_have(&c->during[i][c->spans_of[i][process]], at_ns))
            return false;
    return true;
}
