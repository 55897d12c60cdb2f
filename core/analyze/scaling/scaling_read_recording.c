/*
 * Groups the processes of a recording into runs, by run id and world size. If a rank has several training processes,
 * they ran one after another, as repeats or restarts, and each belongs to its own run. Ranks started by hand have
 * separate ids: ids with only one rank are parts of one run. Traces have a process for each profiler window: those with
 * one rank and pid belong to one run.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/compare/internal.h"
#include "analyze/scaling/internal.h"
#include "analyze/walk/internal.h"
#include "import/internal.h"
#include "read/internal.h"

/* Limit on forwarded warnings of a recording; limit on missing ranks listed. */
enum { MAX_WARNINGS = 4, MAX_NAMED = 8 };

/* A process of the recording. */
struct worker {
    const struct marey_process *process;
    const char *run_id; /* of its run; not always its own */
    struct marey__scaling_steps steps;
    uint32_t group;
    bool trains; /* it records steps or epochs */
};

/* One run of the recording. */
struct group {
    const char *run_id;
    int32_t world_size;
    uint32_t repeat; /* from 0, for groups with this id; processes of one rank are in different groups */
    uint64_t start_unix_ns;
    bool is_read;
};

struct runs {
    const struct marey__scaling_reading *reading;
    const char *path;
    marey_recording *recording;
    bool is_checked;        /* its reader has reported missing ranks and running processes */
    struct worker *workers; /* by process */
    size_t n;
    struct group *groups;
    size_t n_groups, groups_cap;
};

/* One run of the recording, as a recording. */
struct source {
    const struct runs *runs;
    marey_recording *recording;
    const struct worker **workers; /* training ones, in the recording's order */
    size_t *indices;               /* their indexes in the recording */
    size_t n;
};

/* ---- one run ---- */

/* Arrays of a run. */
struct values {
    double *epoch_s, *epoch_j, *epoch_number; /* one allocation */
    double *step_s;
    size_t n_epochs;
    struct marey__scaling_steps steps; /* of all ranks */
};

/* ---- epochs ---- */

/* Complete epochs, with as many ranks as any epoch has. */
static bool take_epochs(const marey_table *table, struct values *values,
                        struct marey__scaling_run *run)
{
    const size_t n = marey_table_n_rows(table);
    double most = 0;
    size_t n_samples = 0;
    values->epoch_s = marey__calloc(4 * n + 1, sizeof *values->epoch_s);
    if (values->epoch_s == NULL)
        return false;
    values->epoch_j = values->epoch_s + n;
    values->epoch_number = values->epoch_j + n;
    double *const samples = values->epoch_number + n;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, marey__scaling_number(table, i, "ranks"));
    for (size_t i = 0; i < n; i++) {
        const double ns = marey__scaling_number(table, i, "duration_ns"),
                     of = marey__scaling_number(table, i, "samples");
        if (marey__scaling_number(table, i, "counted") == 0 ||
            marey__scaling_number(table, i, "ranks") < most || !(ns > 0)) {
            run->first_epoch_counts |= i == 0; /* the warm-up epoch is not among them */
            continue;
        }
        values->epoch_j[values->n_epochs] = NAN;
        values->epoch_number[values->n_epochs] = marey__scaling_number(table, i, "epoch");
        values->epoch_s[values->n_epochs++] = ns * 1e-9;
        if (of > 0)
            samples[n_samples++] = of;
    }
    run->numbers.samples_per_epoch = n_samples != 0 ? marey__median(samples, n_samples) : NAN;
    return true;
}

static marey_status add_epochs(const struct source *source, struct values *values,
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

/* Energy of all measured kinds of devices; utilization of GPUs. */
static void take_energy(const marey_report *report, const struct values *values,
                        struct marey__scaling_run *run)
{
    const marey_table *runs = marey_report_table(report, "runs"),
                      *epochs = marey_report_table(report, "epochs");
    for (size_t i = 0; i < marey_table_n_rows(runs); i++) {
        run->numbers.joules =
            marey__scaling_number(runs, i, "joules"); /* the row for all kinds comes last */
        if (strcmp(marey__cell_of(runs, i, "kind").as.text, "gpu") == 0)
            run->numbers.utilization = marey__scaling_number(runs, i, "utilization");
    }
    for (size_t i = 0, e = 0; i < marey_table_n_rows(epochs) && e < values->n_epochs; i++) {
        const double number = marey__scaling_number(epochs, i, "epoch");
        while (e < values->n_epochs && values->epoch_number[e] < number)
            e++;
        if (e < values->n_epochs && values->epoch_number[e] == number)
            values->epoch_j[e] = marey__scaling_number(epochs, i, "joules");
    }
    for (size_t e = 0; e < values->n_epochs; e++)
        if (!isnan(values->epoch_j[e]))
            run->epoch_j = values->epoch_j;
}

/* A recording without readings has no energy, which needs no note. */
static marey_status add_energy(const struct source *source, const struct values *values,
                               struct marey__scaling_run *run)
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

/* For steps taken by all ranks: an evenly spaced sample of times, and samples per step. */
static bool take_steps(struct values *values, struct marey__scaling_run *run)
{
    const struct marey__scaling_steps *steps = &values->steps;
    uint32_t most = 0;
    size_t n = 0, n_samples = 0;
    values->step_s = marey__calloc(2 * steps->n + 1, sizeof *values->step_s);
    if (values->step_s == NULL)
        return false;
    double *const samples = values->step_s + steps->n;
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
    run->numbers.batch = n_samples != 0 ? marey__median(samples, n_samples) : NAN;
    return true;
}

static marey_status add_steps(const struct source *source, struct values *values,
                              struct marey__scaling_run *run)
{
    for (size_t i = 0; i < source->n; i++)
        MAREY__TRY_MEMORY(marey__scaling_steps_merge(&values->steps, &source->workers[i]->steps));
    return take_steps(values, run) ? MAREY_OK : marey__no_memory();
}

/* ---- parts of a step ---- */

struct breaking {
    const struct source *source;
    struct marey__rules rules;
    struct marey__scaling_parts *parts; /* by worker */
};

static marey_status break_nth(void *ctx, size_t i)
{
    const struct breaking *b = ctx;
    const struct source *source = b->source;
    if (source->workers[i]->steps.n_seen == 0)
        return MAREY_OK;
    return marey__scaling_parts_read(&b->parts[i], source->recording, source->indices[i], &b->rules,
                                     source->workers[i]->steps.n_warmup);
}

/* If some processes have GPUs, a step's parts are those of the GPUs. */
static void take_parts(const struct breaking *b, struct marey__scaling_run *run)
{
    struct marey__scaling_parts sum = {0};
    for (size_t i = 0; i < b->source->n; i++)
        sum.has_device |= b->parts[i].has_device;
    for (size_t i = 0; i < b->source->n; i++) {
        const struct marey__scaling_parts *part = &b->parts[i];
        if (part->has_device != sum.has_device)
            continue;
        for (size_t p = 0; p < MAREY__SCALING_PARTS; p++)
            sum.ns[p] += part->ns[p];
        sum.n_steps += part->n_steps;
    }
    if (sum.n_steps == 0)
        return;
    for (size_t p = 0; p < MAREY__SCALING_PARTS; p++)
        run->numbers.all[MAREY__SCALING_FIRST_PART + p] = sum.ns[p] * 1e-9 / (double)sum.n_steps;
}

static void breaking_fini(struct breaking *b)
{
    marey__rules_fini(&b->rules);
    marey__free(b->parts);
}

static marey_status add_parts(const struct source *source, struct marey__scaling_run *run)
{
    struct breaking b MAREY__FINALLY(breaking_fini) = {
        .source = source, .parts = marey__calloc(source->n + 1, sizeof *b.parts)};
    const struct marey__tasks tasks = {
        .run = break_nth, .ctx = &b, .n = source->n, .n_jobs = source->runs->reading->n_jobs};
    MAREY__TRY_MEMORY(b.parts != NULL);
    MAREY_TRY(marey__rules_load(&b.rules, NULL));
    MAREY_TRY(marey__tasks_run(&tasks));
    take_parts(&b, run);
    return MAREY_OK;
}

/* ---- ranks ---- */

/* The number of ranks found; processes without a rank count as one each. */
static uint32_t count_ranks(const struct source *source)
{
    uint32_t n = 0;
    for (size_t i = 0; i < source->n; i++)
        n += i == 0 || source->workers[i]->process->rank < 0 ||
             source->workers[i]->process->rank != source->workers[i - 1]->process->rank;
    return n;
}

static bool count_hosts(const struct source *source, uint32_t *out)
{
    struct marey__names names MAREY__FINALLY(marey__names_fini) = {0};
    for (size_t i = 0; i < source->n; i++) {
        const char *host = source->workers[i]->process->host;
        if (host[0] != '\0' && marey__names_number(&names, host, strlen(host)) == MAREY__NO_NAME)
            return false;
    }
    *out = (uint32_t)names.n;
    return true;
}

/* List the missing ranks from 0 on, up to a limit. */
static void put_missing(const struct source *source, uint32_t n_workers, uint32_t n_missing,
                        struct marey__buf *out)
{
    size_t at = 0;
    uint32_t n_named = 0;
    if (source->workers[0]->process->rank < 0)
        return; /* unknown which */
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

static marey_status note_missing(const struct source *source, struct marey__scaling_run *run,
                                 uint32_t n_ranks)
{
    struct marey__buf names MAREY__FINALLY(marey__buf_fini) = {0};
    const uint32_t n_missing = run->workers - n_ranks;
    put_missing(source, run->workers, n_missing, &names);
    marey__buf_put(&names, "", 1);
    MAREY__TRY_MEMORY(!names.failed);
    if (!source->runs->is_checked)
        MAREY_TRY(marey__scaling_read_note(source->runs->reading,
                                           "%s: %u of %u ranks are missing%s.", run->name,
                                           (unsigned)n_missing, (unsigned)run->workers, names.data));
    if (run->numbers.samples_per_epoch > 0 || run->numbers.batch > 0)
        MAREY_TRY(marey__scaling_read_note(
            source->runs->reading,
            "%s: missing ranks are assumed to have as many samples as the others.", run->name));
    run->numbers.samples_per_epoch *= (double)run->workers / n_ranks;
    run->numbers.batch *= (double)run->workers / n_ranks;
    return MAREY_OK;
}

/* Processes that still record, stopped within an epoch, or were killed without epochs. */
static marey_status note_ends(const struct source *source, struct marey__scaling_run *run)
{
    size_t n_running = 0, n_open = 0;
    for (size_t i = 0; i < source->n; i++) {
        const struct worker *worker = source->workers[i];
        const bool is_over = worker->process->source[0] != '\0' ||
                             strcmp(worker->process->end, "stop") == 0 ||
                             strcmp(worker->process->end, "exit") == 0;
        n_running += strcmp(worker->process->end, "running") == 0;
        n_open += worker->steps.has_open_epoch || (!is_over && worker->steps.n_epochs == 0);
    }
    run->is_partial = n_running != 0 || n_open != 0;
    if (n_running == 0 || (source->runs->is_checked && marey_recording_n_logs(source->recording) > 1))
        return MAREY_OK;
    return marey__scaling_read_note(source->runs->reading,
                                    "%s is still being written; its data so far counts.", run->name);
}

static marey_status add_identity(const struct source *source, struct marey__scaling_run *run)
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

/* ---- the run ---- */

static void values_fini(struct values *values)
{
    MAREY__FREE_ALL(values->epoch_s, values->step_s);
    marey__scaling_steps_fini(&values->steps);
}

static marey_status read_run(const struct source *source)
{
    struct values values MAREY__FINALLY(values_fini) = {0};
    struct marey__buf name MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_puts(&name, source->runs->path);
    if (source->runs->n_groups != 1)
        marey__buf_printf(&name, " (%s)", source->workers[0]->process->run_id);
    marey__buf_put(&name, "", 1);
    MAREY__TRY_MEMORY(!name.failed);
    struct marey__scaling_run run = marey__scaling_run_unknown(name.data);
    MAREY_TRY(add_epochs(source, &values, &run));
    MAREY_TRY(add_steps(source, &values, &run));
    MAREY_TRY(add_energy(source, &values, &run));
    MAREY_TRY(add_parts(source, &run));
    run.epoch_s = values.epoch_s;
    run.n_epochs = values.n_epochs;
    run.step_s = values.step_s;
    MAREY_TRY(add_identity(source, &run));
    return marey__scaling_read_add(source->runs->reading, &run);
}

/* ---- training processes ---- */

static marey_status read_nth(void *ctx, size_t i)
{
    struct runs *runs = ctx;
    struct worker *worker = &runs->workers[i];
    if (worker->process->worker >= 0)
        return MAREY_OK; /* a data loader worker */
    MAREY_TRY(marey__scaling_steps_read(&worker->steps, runs->recording, i));
    worker->trains = worker->steps.n_seen != 0 || worker->steps.n_epochs != 0;
    return MAREY_OK;
}

static marey_status read_processes(struct runs *runs)
{
    const struct marey__tasks tasks = {
        .run = read_nth, .ctx = runs, .n = runs->n, .n_jobs = runs->reading->n_jobs};
    for (size_t i = 0; i < runs->n; i++)
        runs->workers[i].process = marey_recording_process(runs->recording, i);
    return marey__tasks_run(&tasks);
}

/* ---- groups ---- */

/* The run id of a process; "" for all ids with only one rank of several. */
static const char *find_id(const struct runs *runs, size_t i)
{
    const struct marey_process *own = runs->workers[i].process;
    if (own->rank < 0 || own->world_size < 2)
        return own->run_id;
    for (size_t j = 0; j < runs->n; j++)
        if (runs->workers[j].trains && runs->workers[j].process->rank != own->rank &&
            strcmp(runs->workers[j].process->run_id, own->run_id) == 0)
            return own->run_id;
    return "";
}

static bool is_same_run(const struct worker *a, const struct worker *b)
{
    return a->process->world_size == b->process->world_size && strcmp(a->run_id, b->run_id) == 0;
}

/* How many training processes of its rank came before it in its run. Processes are ordered by rank, then start. */
static uint32_t repeat_of(const struct runs *runs, size_t i)
{
    const struct worker *worker = &runs->workers[i];
    const struct marey_process *own = worker->process;
    if (own->rank < 0)
        return 0;
    for (size_t j = i; j-- > 0 && runs->workers[j].process->rank == own->rank;) {
        const struct worker *other = &runs->workers[j];
        if (!other->trains || !is_same_run(other, worker))
            continue;
        const bool is_window = own->source[0] != '\0' && other->process->pid == own->pid &&
                               strcmp(other->process->host, own->host) == 0;
        return runs->groups[other->group].repeat + !is_window;
    }
    return 0;
}

static bool put_into_group(struct runs *runs, size_t i)
{
    struct worker *worker = &runs->workers[i];
    const struct marey_process *p = worker->process;
    worker->run_id = find_id(runs, i);
    const uint32_t repeat = repeat_of(runs, i);
    for (worker->group = 0; worker->group < runs->n_groups; worker->group++) {
        struct group *group = &runs->groups[worker->group];
        if (group->repeat != repeat || group->world_size != p->world_size ||
            strcmp(group->run_id, worker->run_id) != 0)
            continue;
        group->start_unix_ns = MAREY__MIN(group->start_unix_ns, p->start_unix_ns);
        return true;
    }
    return MAREY__PUSH(runs->groups, runs->n_groups, runs->groups_cap,
                       (struct group){.run_id = worker->run_id,
                                      .world_size = p->world_size,
                                      .repeat = repeat,
                                      .start_unix_ns = p->start_unix_ns});
}

/* ---- a group as a recording ---- */

/* Keep its training processes, the others of its run id, and the logs of measuring processes. */
static bool is_kept(const struct runs *runs, size_t group, size_t log)
{
    const struct worker *worker = &runs->workers[log];
    return log >= runs->n ||
           (worker->trains ? worker->group == group
                           : strcmp(worker->process->run_id, runs->groups[group].run_id) == 0);
}

static void source_fini(struct source *source)
{
    marey_recording_close(source->recording);
    MAREY__FREE_ALL(source->indices, (void *)(uintptr_t)source->workers);
}

static marey_status read_group(const struct runs *runs, size_t group)
{
    const size_t n_logs = marey_recording_n_logs(runs->recording);
    struct source source MAREY__FINALLY(source_fini) = {
        .runs = runs,
        .workers = marey__calloc(runs->n + 1, sizeof(void *)),
        .indices = marey__calloc(runs->n + 1, sizeof *source.indices)};
    bool *const keep MAREY__FREED = marey__calloc(n_logs + 1, sizeof *keep);
    MAREY__TRY_MEMORY(keep != NULL && source.workers != NULL && source.indices != NULL);
    for (size_t i = 0, n = 0; i < n_logs; i++) {
        keep[i] = is_kept(runs, group, i);
        if (i < runs->n && runs->workers[i].trains && keep[i]) {
            source.workers[source.n] = &runs->workers[i];
            source.indices[source.n++] = n;
        }
        n += keep[i];
    }
    MAREY_TRY(marey__recording_part(runs->recording, keep, runs->groups[group].run_id,
                                    &source.recording));
    return read_run(&source);
}

/* ---- notes ---- */

static marey_status note_warnings(const struct runs *runs)
{
    size_t n = 0;
    for (const char *text; (text = marey_recording_warning(runs->recording, n)) != NULL; n++)
        if (n < MAX_WARNINGS)
            MAREY_TRY(marey__scaling_read_note(runs->reading, "%s: %s", runs->path, text));
    if (n > MAX_WARNINGS)
        MAREY_TRY(marey__scaling_read_note(runs->reading,
                                           "%s: %zu more warnings are in `marey report`.",
                                           runs->path, n - MAX_WARNINGS));
    return MAREY_OK;
}

static marey_status note_groups(const struct runs *runs)
{
    size_t n_repeated = 0;
    for (size_t i = 0; i < runs->n_groups; i++)
        n_repeated += runs->groups[i].repeat != 0;
    if (n_repeated == 0)
        return MAREY_OK;
    return marey__scaling_read_note(
        runs->reading,
        "%s: some ranks occur several times under one run id; each is treated as a separate run.",
        runs->path);
}

/* ---- all runs ---- */

/* In order of start. */
static marey_status read_groups(struct runs *runs)
{
    for (size_t i = 0; i < runs->n_groups; i++) {
        size_t next = runs->n_groups;
        for (size_t g = 0; g < runs->n_groups; g++)
            if (!runs->groups[g].is_read &&
                (next == runs->n_groups ||
                 runs->groups[g].start_unix_ns < runs->groups[next].start_unix_ns))
                next = g;
        runs->groups[next].is_read = true;
        MAREY_TRY(read_group(runs, next));
    }
    return MAREY_OK;
}

static marey_status read_runs(struct runs *runs)
{
    runs->n = marey_recording_n_processes(runs->recording);
    runs->workers = marey__calloc(runs->n + 1, sizeof *runs->workers);
    MAREY__TRY_MEMORY(runs->workers != NULL);
    MAREY_TRY(read_processes(runs));
    for (size_t i = 0; i < runs->n; i++)
        if (runs->workers[i].trains && !put_into_group(runs, i))
            return marey__no_memory();
    if (runs->n_groups == 0)
        return marey__fail(
            MAREY_EFORMAT,
            "%s records no epochs and no steps: marey.TrainingMonitor, the callbacks of "
            "marey.hf and marey.lightning, marey.epoch() and marey.iteration() do, and "
            "step() of torch.profiler in traces",
            runs->path);
    MAREY_TRY(note_warnings(runs));
    MAREY_TRY(note_groups(runs));
    return read_groups(runs);
}

marey_status marey__scaling_read_recording(const struct marey__scaling_reading *reading,
                                           const char *path, bool is_trace)
{
    const struct marey_import_options options = {
        .from = is_trace ? marey__import_chrome.info.name : NULL, .n_jobs = reading->n_jobs};
    struct stat info;
    struct runs runs = {.reading = reading,
                        .path = path,
                        .is_checked = !is_trace && stat(path, &info) == 0 && S_ISDIR(info.st_mode)};
    MAREY_TRY(is_trace ? marey_open(path, &options, &runs.recording)
                       : marey_recording_open(path, &runs.recording));
    const marey_status status = read_runs(&runs);
    for (size_t i = 0; runs.workers != NULL && i < runs.n; i++)
        marey__scaling_steps_fini(&runs.workers[i].steps);
    MAREY__FREE_ALL(runs.workers, runs.groups);
    marey_recording_close(runs.recording);
    return status;
}
