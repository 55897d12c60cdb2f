/* The last seconds as tables: by function, line, thread, process. Made in the sampler's thread. */
#include <math.h>

#include "sampler/loop/internal.h"

enum { MOST_ROWS = 200 };

struct making {
    struct marey_live *live;
    const marey_samples *samples;
    struct marey__buf text;
    bool has_ranks, has_workers;
};

static void put_text(marey_table *table, const char *text)
{
    marey_table_text(table, text, strlen(text));
}

static void put_made(struct making *making, marey_table *table)
{
    marey_table_text(table, making->text.data, making->text.failed ? 0 : making->text.len);
    making->text.len = 0;
}

static void put_share(marey_table *table, uint64_t part_ns, uint64_t whole_ns)
{
    MAREY__PUT_REALS(table, whole_ns != 0 ? (double)part_ns / (double)whole_ns : NAN);
}
/* ---- call sites ---- */

/* A path relative to the folder that packages are installed in; else its last component. */
static const char *short_path(const char *path)
{
    static const char *const homes[] = {"/site-packages/", "/dist-packages/", "/lib/python3"};
    for (size_t i = 0; i < MAREY__COUNT_OF(homes); i++) {
        const char *home = strstr(path, homes[i]);
        if (home == NULL)
            continue;
        const char *rest = strchr(home + strlen(homes[i]) - 1, '/');
        if (rest != NULL && rest[1] != '\0')
            return rest + 1;
    }
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

void marey__live_place(struct marey__buf *buf, const struct marey_samples_function *function,
                       uint32_t line)
{
    marey__buf_puts(buf, short_path(function->file[0] != '\0' ? function->file : function->module));
    if (line != 0)
        marey__buf_printf(buf, ":%u", line);
}

/* ---- by function and by line ---- */

struct place {
    uint32_t number;
    uint64_t self_ns, total_ns;
    uint64_t last_stack; /* the last counted stack, so that recursion counts once */
};

struct places {
    struct place *list; /* by number in the store */
    size_t n;
    uint64_t all_ns, n_stacks;
};

static void count_stack(const struct making *making, struct places *places,
                        const struct marey__live_sum *sum)
{
    const struct marey_live *const live = making->live;
    const bool is_main = sum->thread < live->n_threads && live->threads[sum->thread].is_main;
    /* Wall clock for main threads, else CPU time. */
    const uint64_t time_ns =
        is_main || (live->flags & MAREY_LIVE_IDLE) != 0 ? sum->wall_ns : sum->cpu_ns;
    if (time_ns == 0 || sum->stack == 0)
        return;
    places->n_stacks++;
    places->all_ns += time_ns;
    for (uint32_t stack = sum->stack; stack != 0;) {
        const struct marey_samples_stack at = marey_samples_get_stack(making->samples, stack);
        const uint32_t number =
            live->by == MAREY_LIVE_LINES
                ? at.location
                : marey_samples_get_location(making->samples, at.location).function;
        struct place *place = &places->list[number < places->n ? number : 0];
        place->self_ns += stack == sum->stack ? time_ns : 0;
        place->total_ns += place->last_stack != places->n_stacks ? time_ns : 0;
        place->last_stack = places->n_stacks;
        stack = at.parent;
    }
}

static bool count_all(const struct making *making, struct places *places)
{
    places->n = 1 + (size_t)(making->live->by == MAREY_LIVE_LINES
                                 ? marey_samples_n_locations(making->samples)
                                 : marey_samples_n_functions(making->samples));
    places->list = marey__calloc(places->n, sizeof *places->list);
    for (size_t b = 0; b < MAREY__LIVE_BUCKETS && places->list != NULL; b++) {
        const struct marey__live_bucket *bucket = &making->live->buckets[b];
        for (size_t i = 0; i < bucket->n; i++)
            count_stack(making, places, &bucket->sums[i]);
    }
    for (size_t i = 0; i < places->n && places->list != NULL; i++)
        places->list[i].number = (uint32_t)i;
    return places->list != NULL;
}

MAREY__ORDER(by_self, struct place, MAREY__DOWN(self_ns) MAREY__DOWN(total_ns))

MAREY__ORDER(by_total, struct place, MAREY__DOWN(total_ns) MAREY__DOWN(self_ns))

static void put_places(struct making *making, struct places *places, marey_table *table)
{
    const bool is_lines = making->live->by == MAREY_LIVE_LINES;
    qsort(places->list, places->n, sizeof *places->list,
          (making->live->flags & MAREY_LIVE_BY_TOTAL) != 0 ? by_total : by_self);
    for (size_t i = 0; i < places->n && i < MOST_ROWS && places->list[i].total_ns != 0; i++) {
        const struct place *place = &places->list[i];
        struct marey_samples_location at = {.function = place->number};
        if (is_lines)
            at = marey_samples_get_location(making->samples, place->number);
        const struct marey_samples_function *function =
            marey_samples_get_function(making->samples, at.function);
        put_share(table, place->self_ns, places->all_ns);
        put_share(table, place->total_ns, places->all_ns);
        put_text(table, function->name);
        marey__live_place(&making->text, function, is_lines ? at.line : function->first_line);
        put_made(making, table);
    }
}

static marey_table *make_places(struct making *making)
{
    static const struct marey_column columns[] = {
        {"self", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
        {"total", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
        {"function", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
        {"place", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    };
    struct places places = {0};
    marey_table *table = NULL;
    if (count_all(making, &places) &&
        marey_table_create(making->live->by == MAREY_LIVE_LINES ? "lines" : "functions", columns,
                           MAREY__COUNT_OF(columns), &table) == MAREY_OK)
        put_places(making, &places, table);
    marey__free(places.list);
    return table;
}

/* ---- by thread and by process ---- */

struct use {
    uint32_t number; /* of the thread or the process */
    uint64_t wall_ns, cpu_ns, gil_ns;
};

MAREY__ORDER(by_use, struct use, MAREY__DOWN(cpu_ns) MAREY__UP(number))

/* Time by thread or by process, for numbers up to `n`. The caller zeroes `uses`. */
static void count_uses(const struct marey_live *live, struct use *uses, size_t n)
{
    const bool is_threads = live->by == MAREY_LIVE_THREADS;
    for (size_t b = 0; b < MAREY__LIVE_BUCKETS; b++)
        for (size_t i = 0; i < live->buckets[b].n; i++) {
            const struct marey__live_sum *sum = &live->buckets[b].sums[i];
            if (sum->thread >= live->n_threads)
                continue;
            const struct marey__live_thread *thread = &live->threads[sum->thread];
            const uint32_t number = is_threads ? sum->thread : thread->process;
            if (number >= n)
                continue;
            /* A process lived as long as its main thread; other threads come and go. */
            uses[number].wall_ns += is_threads || thread->is_main ? sum->wall_ns : 0;
            uses[number].cpu_ns += sum->cpu_ns;
            uses[number].gil_ns += sum->gil_ns;
        }
    for (size_t i = 0; i < n; i++)
        uses[i].number = (uint32_t)i;
}

static void put_number(marey_table *table, int64_t number)
{
    if (number < 0)
        marey_table_null(table);
    else
        marey_table_i64(table, number);
}

static void put_identity(const struct making *making, marey_table *table,
                         const struct marey_samples_process *process)
{
    if (making->has_ranks)
        put_number(table, process->rank);
    if (making->has_workers)
        put_number(table, process->worker);
    put_number(table, process->pid);
}

/* Adds two cells: the innermost function and its line; what it waits for. */
static void put_now(struct making *making, marey_table *table, const struct marey__live_thread *thread)
{
    char text[64];
    if (thread == NULL || thread->stack == 0) {
        marey_table_null(table);
    } else {
        const struct marey_samples_location at = marey_samples_get_location(
            making->samples, marey_samples_get_stack(making->samples, thread->stack).location);
        const struct marey_samples_function *function =
            marey_samples_get_function(making->samples, at.function);
        marey__buf_printf(&making->text, "%s ", function->name);
        marey__live_place(&making->text, function, at.line);
        put_made(making, table);
    }
    const bool is_off = thread != NULL && (thread->flags & MAREY_SAMPLE_OFF_CPU) != 0;
    const uint32_t wait = !is_off ? 0
                          : marey__is_stopped(making->live->processes[thread->process].pid)
                              ? marey__wait_stopped()
                              : thread->wait;
    put_text(table, is_off ? marey_sampler_wait_text(wait, text, sizeof text) : "");
}

static const struct marey__live_thread *main_thread_of(const struct marey_live *live,
                                                       uint32_t process, size_t *n_threads)
{
    const struct marey__live_thread *found = NULL;
    *n_threads = 0;
    for (size_t i = 0; i < live->n_threads; i++) {
        const struct marey__live_thread *thread = &live->threads[i];
        if (thread->process != process || !marey__live_is_recent(live, thread->seen_ns))
            continue;
        ++*n_threads;
        found = thread->is_main || found == NULL ? thread : found;
    }
    return found;
}

static void put_use(struct making *making, marey_table *table, const struct use *use)
{
    const struct marey_live *const live = making->live;
    const bool is_threads = live->by == MAREY_LIVE_THREADS;
    const uint32_t process = is_threads ? live->threads[use->number].process : use->number;
    if (!marey__live_is_recent(live, is_threads ? live->threads[use->number].seen_ns
                                                : live->processes[process].seen_ns))
        return;
    size_t n_threads = 0;
    const struct marey__live_thread *const thread =
        is_threads ? &live->threads[use->number] : main_thread_of(live, process, &n_threads);
    put_share(table, use->cpu_ns, use->wall_ns);
    put_share(table, use->gil_ns, use->wall_ns);
    put_identity(making, table, marey_samples_get_process(making->samples, process));
    if (is_threads)
        put_text(table, marey_samples_get_thread(making->samples, use->number)->name);
    else
        marey_table_u64(table, n_threads);
    put_now(making, table, thread);
}

/* Includes columns for ranks and workers if there are any. */
static size_t choose_columns(const struct making *making, struct marey_column columns[8])
{
    static const struct marey_column all[] = {
        {"cpu", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
        {"gil", "GIL", MAREY_TYPE_F64, MAREY_UNIT_SHARE},
        {"rank", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
        {"worker", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
        {"pid", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
        {"thread", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
        {"threads", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},
        {"now", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
        {"wait", "waits for", MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    };
    const bool is_threads = making->live->by == MAREY_LIVE_THREADS;
    size_t n = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(all); i++)
        if ((making->has_ranks || i != 2) && (making->has_workers || i != 3) &&
            i != (is_threads ? 6 : 5))
            columns[n++] = all[i];
    return n;
}

static bool put_uses(struct making *making, marey_table *table)
{
    const size_t n = making->live->by == MAREY_LIVE_THREADS ? making->live->n_threads
                                                            : making->live->n_processes;
    struct use *const uses MAREY__FREED = marey__calloc(n != 0 ? n : 1, sizeof *uses);
    if (uses == NULL)
        return false;
    count_uses(making->live, uses, n);
    qsort(uses, n, sizeof *uses, by_use);
    for (size_t i = 0; i < n && marey_table_n_rows(table) < MOST_ROWS; i++)
        put_use(making, table, &uses[i]);
    return true;
}

static marey_table *make_uses(struct making *making)
{
    struct marey_column columns[8];
    marey_table *table;
    for (uint32_t i = 1; i <= marey_samples_n_processes(making->samples); i++) {
        const struct marey_samples_process *process = marey_samples_get_process(making->samples, i);
        making->has_ranks |= process->rank >= 0;
        making->has_workers |= process->worker >= 0;
    }
    const size_t n = choose_columns(making, columns);
    if (marey_table_create(making->live->by == MAREY_LIVE_THREADS ? "threads" : "ranks", columns, n,
                           &table) != MAREY_OK)
        return NULL;
    if (put_uses(making, table))
        return table;
    marey_table_destroy(table);
    return NULL;
}

marey_table *marey__live_make(struct marey_live *live, const marey_samples *samples)
{
    struct making making = {.live = live, .samples = samples};
    const bool is_places = live->by == MAREY_LIVE_FUNCTIONS || live->by == MAREY_LIVE_LINES;
    marey_table *table = is_places ? make_places(&making) : make_uses(&making);
    if (table != NULL && (making.text.failed || marey_table_status(table) != MAREY_OK)) {
        marey_table_destroy(table);
        table = NULL;
    }
    marey__buf_fini(&making.text);
    return table;
}
