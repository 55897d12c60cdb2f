/* One run of a recording, by what the analyses say of it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/compare/internal.h"
#include "analyze/scaling/internal.h"
#include "analyze/walk/internal.h"

/* Missing ranks that are named one by one. */
enum { MAX_NAMED = 8 };

/* What is made for a run besides plain numbers. */
struct values {
    double *epoch_s, *epoch_j, *step_s;
    uint64_t *epoch_number;
    size_t n_epochs;
    struct marey__scaling_steps steps; /* of all ranks */
};

static double number_at(const marey_table *table, size_t row, const char *column)
{
    const int at = marey_table_find(table, column);
    const struct marey_cell cell = marey_table_cell(table, row, (size_t)at);
    if (cell.is_null)
        return NAN;
    return marey_table_column(table, (size_t)at)->type == MAREY_TYPE_F64 ? cell.as.f64
                                                                         : (double)cell.as.u64;
}

static bool text_is(const marey_table *table, size_t row, const char *column, const char *text)
{
    const struct marey_cell cell =
        marey_table_cell(table, row, (size_t)marey_table_find(table, column));
    return cell.len == strlen(text) && memcmp(cell.as.text, text, cell.len) == 0;
}

/* ---- epochs ---- */

/* Whole epochs, of as many ranks as any epoch has. */
static bool take_epochs(const marey_table *table, struct values *values,
                        struct marey__scaling_run *run)
{
    const size_t n = marey_table_n_rows(table);
    double most = 0, *samples = marey__calloc(n + 1, sizeof *samples);
    size_t n_samples = 0;
    values->epoch_s = marey__calloc(n + 1, sizeof(double));
    values->epoch_j = marey__calloc(n + 1, sizeof(double));
    values->epoch_number = marey__calloc(n + 1, sizeof(uint64_t));
    if (samples == NULL || values->epoch_s == NULL || values->epoch_j == NULL ||
        values->epoch_number == NULL) {
        marey__free(samples);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        most = fmax(most, number_at(table, i, "ranks"));
    for (size_t i = 0; i < n; i++) {
        const double ns = number_at(table, i, "duration_ns"), of = number_at(table, i, "samples");
        if (number_at(table, i, "counted") == 0 || number_at(table, i, "ranks") < most || !(ns > 0)) {
            run->first_epoch_counts |= i == 0; /* the one that warmed up is not among them */
            continue;
        }
        values->epoch_j[values->n_epochs] = NAN;
        values->epoch_number[values->n_epochs] = (uint64_t)number_at(table, i, "epoch");
        values->epoch_s[values->n_epochs++] = ns * 1e-9;
        if (of > 0)
            samples[n_samples++] = of;
    }
    run->samples_per_epoch = n_samples != 0 ? marey__median(samples, n_samples) : NAN;
    marey__free(samples);
    return true;
}

static marey_status add_epochs(const struct marey__scaling_source *source, struct values *values,
                               struct marey__scaling_run *run)
{
    static const char *const settings[] = {"first", NULL};
    const struct marey_report_options options = {.settings = settings};
    marey_report *report = NULL;
    bool any = false;
    for (size_t i = 0; i < source->n; i++)
        any |= source->workers[i]->steps.n_epochs != 0;
    if (!any)
        return MAREY_OK;
    MAREY_TRY(marey_report_create("epochs", &source->recording, 1, &options, &report));
    const bool is_done = take_epochs(marey_report_table(report, "epochs"), values, run);
    marey_report_destroy(report);
    return is_done ? MAREY_OK : marey__no_memory();
}

/* ---- energy ---- */

/* Of all kinds of devices where several were measured; GPUs are how busy they were. */
static void take_energy(const marey_report *report, const struct values *values,
                        struct marey__scaling_run *run)
{
    const marey_table *runs = marey_report_table(report, "runs"),
                      *epochs = marey_report_table(report, "epochs");
    for (size_t i = 0; i < marey_table_n_rows(runs); i++) {
        run->joules = number_at(runs, i, "joules"); /* the row of all comes last */
        if (text_is(runs, i, "kind", "gpu"))
            run->utilization = number_at(runs, i, "utilization");
    }
    for (size_t i = 0, e = 0; i < marey_table_n_rows(epochs) && e < values->n_epochs; i++) {
        const uint64_t number = (uint64_t)number_at(epochs, i, "epoch");
        while (e < values->n_epochs && values->epoch_number[e] < number)
            e++;
        if (e < values->n_epochs && values->epoch_number[e] == number)
            values->epoch_j[e] = number_at(epochs, i, "joules");
    }
    for (size_t e = 0; e < values->n_epochs; e++)
        if (!isnan(values->epoch_j[e]))
            run->epoch_j = values->epoch_j;
}

/* A recording without readings has no energy, which is nothing to tell. */
static marey_status add_energy(const struct marey__scaling_source *source,
                               const struct values *values, struct marey__scaling_run *run)
{
    marey_report *report = NULL;
    if (!marey_report_is_there("energy", &source->recording, 1))
        return MAREY_OK;
    const marey_status status = marey_report_create("energy", &source->recording, 1, NULL, &report);
    if (status == MAREY_OK)
        take_energy(report, values, run);
    marey_report_destroy(report);
    return status == MAREY_EFORMAT ? MAREY_OK : status;
}

/* ---- steps ---- */

/* Of those that all ranks took: their times, of many an even sample, and how many samples one has. */
static bool take_steps(struct values *values, struct marey__scaling_run *run)
{
    const struct marey__scaling_steps *steps = &values->steps;
    double *samples = marey__calloc(steps->n + 1, sizeof *samples);
    uint32_t most = 0;
    size_t n = 0, n_samples = 0;
    values->step_s = marey__calloc(steps->n + 1, sizeof *values->step_s);
    if (samples == NULL || values->step_s == NULL) {
        marey__free(samples);
        return false;
    }
    for (size_t i = 0; i < steps->n; i++)
        most = MAREY__MAX(most, steps->list[i].n);
    for (size_t i = 0; i < steps->n; i++) {
        if (steps->list[i].n < most)
            continue;
        values->step_s[n++] = steps->list[i].s;
        if (steps->list[i].samples > 0)
            samples[n_samples++] = steps->list[i].samples;
    }
    run->n_steps = MAREY__MIN(n, (size_t)MAREY__SCALING_STEPS);
    for (size_t i = 0; i < run->n_steps; i++)
        values->step_s[i] = values->step_s[i * n / run->n_steps];
    run->batch = n_samples != 0 ? marey__median(samples, n_samples) : NAN;
    marey__free(samples);
    return true;
}

static marey_status add_steps(const struct marey__scaling_source *source, struct values *values,
                              struct marey__scaling_run *run)
{
    for (size_t i = 0; i < source->n; i++)
        MAREY__TRY_MEMORY(marey__scaling_steps_join(&values->steps, &source->workers[i]->steps));
    return take_steps(values, run) ? MAREY_OK : marey__no_memory();
}

/* ---- what a step is made of ---- */

struct breaking {
    const struct marey__scaling_source *source;
    struct marey__rules rules;
    struct marey__scaling_parts *parts; /* by worker */
};

static marey_status break_nth(void *ctx, size_t i)
{
    const struct breaking *b = ctx;
    const struct marey__scaling_source *source = b->source;
    if (source->workers[i]->steps.n_seen == 0)
        return MAREY_OK;
    return marey__scaling_parts_read(&b->parts[i], source->recording, source->indices[i], &b->rules,
                                     source->workers[i]->steps.n_warmup);
}

/* Where some have GPUs, what those did is the step. */
static void take_parts(const struct breaking *b, struct marey__scaling_run *run)
{
    struct marey__scaling_parts sum = {0};
    for (size_t i = 0; i < b->source->n; i++)
        sum.has_device |= b->parts[i].has_device;
    for (size_t i = 0; i < b->source->n; i++) {
        const struct marey__scaling_parts *part = &b->parts[i];
        if (part->has_device != sum.has_device)
            continue;
        sum.compute_ns += part->compute_ns;
        sum.communication_ns += part->communication_ns;
        sum.memory_ns += part->memory_ns;
        sum.idle_ns += part->idle_ns;
        sum.n_steps += part->n_steps;
    }
    if (sum.n_steps == 0)
        return;
    const double scale = 1e-9 / (double)sum.n_steps;
    run->compute_s = sum.compute_ns * scale;
    run->communication_s = sum.communication_ns * scale;
    run->memory_s = sum.memory_ns * scale;
    run->idle_s = sum.idle_ns * scale;
}

static marey_status add_parts(const struct marey__scaling_source *source,
                              struct marey__scaling_run *run)
{
    struct breaking b = {.source = source, .parts = marey__calloc(source->n + 1, sizeof *b.parts)};
    const struct marey__tasks tasks = {
        .run = break_nth, .ctx = &b, .n = source->n, .n_jobs = source->reading->n_jobs};
    MAREY__TRY_MEMORY(b.parts != NULL);
    marey_status status = marey__rules_load(&b.rules, NULL);
    if (status == MAREY_OK)
        status = marey__tasks_run(&tasks);
    if (status == MAREY_OK)
        take_parts(&b, run);
    marey__rules_fini(&b.rules);
    marey__free(b.parts);
    return status;
}

/* ---- who ---- */

/* How many ranks there are here; processes without a rank count one each. */
static uint32_t count_ranks(const struct marey__scaling_source *source)
{
    uint32_t n = 0;
    for (size_t i = 0; i < source->n; i++)
        n += i == 0 || source->workers[i]->process->rank < 0 ||
             source->workers[i]->process->rank != source->workers[i - 1]->process->rank;
    return n;
}

static bool count_hosts(const struct marey__scaling_source *source, uint32_t *out)
{
    struct marey__names names = {0};
    bool is_done = true;
    for (size_t i = 0; is_done && i < source->n; i++) {
        const char *host = source->workers[i]->process->host;
        is_done =
            host[0] == '\0' || marey__names_number(&names, host, strlen(host)) != MAREY__NO_NAME;
    }
    *out = (uint32_t)names.n;
    marey__names_fini(&names);
    return is_done;
}

/* The ranks from 0 on that are not here, the first few by number. */
static void put_missing(const struct marey__scaling_source *source, uint32_t n_workers,
                        uint32_t n_missing, struct marey__buf *out)
{
    size_t at = 0;
    uint32_t n_named = 0;
    if (source->workers[0]->process->rank < 0)
        return; /* nobody knows which */
    for (int64_t rank = 0; rank < n_workers && n_named < MAX_NAMED; rank++) {
        while (at < source->n && source->workers[at]->process->rank >= 0 &&
               source->workers[at]->process->rank < rank)
            at++;
        if (at == source->n || source->workers[at]->process->rank != rank)
            marey__buf_printf(out, "%s%" PRId64, n_named++ == 0 ? " (" : ", ", rank);
    }
    if (n_named != 0)
        marey__buf_puts(out, n_missing > n_named ? ", ...)" : ")");
}

static marey_status note_missing(const struct marey__scaling_source *source,
                                 struct marey__scaling_run *run, uint32_t n_ranks)
{
    struct marey__buf names = {0};
    const uint32_t n_missing = run->workers - n_ranks;
    put_missing(source, run->workers, n_missing, &names);
    marey__buf_put(&names, "", 1);
    marey_status status = names.failed ? marey__no_memory() : MAREY_OK;
    if (status == MAREY_OK && !source->is_checked)
        status = marey__scaling_read_note(source->reading, "%s: %u of %u ranks are missing%s.",
                                          run->name, (unsigned)n_missing, (unsigned)run->workers,
                                          names.data);
    if (status == MAREY_OK && (run->samples_per_epoch > 0 || run->batch > 0))
        status = marey__scaling_read_note(source->reading,
                                          "%s: ranks that are missing are taken to have as many "
                                          "samples as the others.",
                                          run->name);
    run->samples_per_epoch *= (double)run->workers / n_ranks;
    run->batch *= (double)run->workers / n_ranks;
    marey__buf_fini(&names);
    return status;
}

/* Who still records, or stopped within an epoch, or without epochs was killed. */
static marey_status note_ends(const struct marey__scaling_source *source,
                              struct marey__scaling_run *run)
{
    size_t n_running = 0, n_open = 0;
    for (size_t i = 0; i < source->n; i++) {
        const struct marey__scaling_worker *worker = source->workers[i];
        const bool is_over = worker->process->source[0] != '\0' ||
                             strcmp(worker->process->end, "stop") == 0 ||
                             strcmp(worker->process->end, "exit") == 0;
        n_running += strcmp(worker->process->end, "running") == 0;
        n_open += worker->steps.has_open_epoch || (!is_over && worker->steps.n_epochs == 0);
    }
    run->is_partial = n_running != 0 || n_open != 0;
    if (n_running == 0 || (source->is_checked && marey_recording_n_logs(source->recording) > 1))
        return MAREY_OK;
    return marey__scaling_read_note(
        source->reading, "%s is still being written; what is there so far counts.", run->name);
}

static marey_status add_identity(const struct marey__scaling_source *source,
                                 struct marey__scaling_run *run)
{
    const uint32_t n_ranks = count_ranks(source);
    int32_t world_size = 0;
    for (size_t i = 0; i < source->n; i++) {
        const struct marey_process *p = source->workers[i]->process;
        world_size = MAREY__MAX(world_size, p->world_size);
        run->strategy = run->strategy[0] == '\0' ? p->strategy : run->strategy;
        run->experiment = run->experiment[0] == '\0' ? p->experiment : run->experiment;
    }
    run->workers = MAREY__MAX((uint32_t)world_size, n_ranks);
    MAREY__TRY_MEMORY(count_hosts(source, &run->nodes));
    if (n_ranks < run->workers)
        MAREY_TRY(note_missing(source, run, n_ranks));
    return note_ends(source, run);
}

/* ---- all ---- */

static marey_status fill(const struct marey__scaling_source *source, struct values *values,
                         struct marey__scaling_run *run)
{
    MAREY_TRY(add_epochs(source, values, run));
    MAREY_TRY(add_steps(source, values, run));
    MAREY_TRY(add_energy(source, values, run));
    MAREY_TRY(add_parts(source, run));
    run->epoch_s = values->epoch_s;
    run->n_epochs = values->n_epochs;
    run->step_s = values->step_s;
    return add_identity(source, run);
}

static void free_values(struct values *values)
{
    marey__free(values->epoch_s);
    marey__free(values->epoch_j);
    marey__free(values->epoch_number);
    marey__free(values->step_s);
    marey__scaling_steps_fini(&values->steps);
}

marey_status marey__scaling_read_run(const struct marey__scaling_source *source)
{
    struct values values = {0};
    struct marey__buf name = {0};
    marey__buf_puts(&name, source->path);
    if (!source->is_alone)
        marey__buf_printf(&name, " (%s)", source->workers[0]->process->run_id);
    marey__buf_put(&name, "", 1);
    struct marey__scaling_run run = marey__scaling_run_unknown(name.data);
    marey_status status = name.failed ? marey__no_memory() : fill(source, &values, &run);
    if (status == MAREY_OK)
        status = marey__scaling_read_add(source->reading, &run);
    free_values(&values);
    marey__buf_fini(&name);
    return status;
}
