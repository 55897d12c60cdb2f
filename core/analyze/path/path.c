/* The report of the critical path: reads processes in parallel, merges their segments by name, fills the tables. */
#include <inttypes.h>

#include "analyze/path/internal.h"
#include "present/draw/internal.h"

enum table { CLASSES, PARTS, STEPS, NOTES, N_TABLES };

struct path {
    struct marey__rules rules;
    struct marey__path_process *processes;
    size_t n_processes;
    struct marey__path_parts parts;
    struct marey__path_step sum; /* of all steps: `number` is how many */
};

/* ---- sums of segments ---- */

bool marey__path_add(struct marey__path_parts *parts, const struct marey__path_key *key,
                     uint64_t count, uint64_t ns)
{
    const struct marey__path_key k = *key;
    const uint32_t number = MAREY__MAP_NUMBER(&parts->by_key, parts->list, parts->n, parts->cap, k);
    if (number == 0)
        return false;
    parts->list[number - 1].count += count;
    parts->list[number - 1].ns += ns;
    return true;
}

static void free_parts(struct marey__path_parts *parts)
{
    marey__free(parts->list);
    marey__key_map_fini(&parts->by_key);
    marey__names_fini(&parts->names);
}

uint32_t marey__path_name(struct marey__path_process *p, uint32_t site)
{
    static const char step[] = "ProfilerStep#"; /* of torch, with the number of the step */
    site = site <= p->set.process->n_sites ? site : 0;
    if (p->site_names[site] == 0) {
        const struct marey_site_info *info = marey__work_site(&p->set, site);
        const bool is_step = strncmp(info->name, step, sizeof step - 1) == 0;
        p->site_names[site] = marey__names_number(&p->parts.names, info->name,
                                                  is_step ? sizeof step - 2 : info->name_len) +
                              1;
    }
    return p->site_names[site] - 1;
}

/* ---- one process ---- */

/* Threads by id, streams by device and number. */
struct identity {
    uint64_t id, kind;
    uint32_t first, last; /* lanes */
};

static bool find_lanes(struct marey__path_process *p)
{
    const struct marey__work_set *set = &p->set;
    struct identity *list MAREY__FREED = NULL;
    struct marey__key_map by_key MAREY__FINALLY(marey__key_map_fini) = {0};
    size_t n = 0, cap = 0;
    for (uint32_t i = 0; i < set->process->n_lanes; i++) {
        const struct marey_lane_info *lane =
            marey_recording_lane(set->recording, set->process->index, i);
        const bool is_thread = lane->kind == MAREY_LANE_THREAD;
        const uint64_t key[2] = {is_thread ? (uint64_t)lane->tid
                                           : marey__pair_key(lane->stream, (uint32_t)lane->device),
                                 (uint64_t)lane->kind};
        const size_t n_before = n;
        const uint32_t number = MAREY__MAP_NUMBER(&by_key, list, n, cap, key);
        if (number == 0 || list == NULL)
            return false;
        struct identity *identity = &list[number - 1];
        if (n != n_before)
            identity->first = i;
        else
            p->next_lanes[identity->last] = i + 1;
        identity->last = i;
        p->first_lanes[i] = identity->first;
    }
    return true;
}

/* The thread of the steps; without steps the main thread if it launched something, else the first that did. */
static void find_main_lane(struct marey__path_process *p)
{
    const struct marey__work_set *set = &p->set;
    const uint32_t first = set->n_launches != 0 ? set->launches[0].lane : MAREY__NO_INDEX;
    p->main_lane = set->n_steps != 0 ? set->step_lane : first;
    for (size_t i = 0; set->n_steps == 0 && i < set->n_launches; i++) {
        const uint32_t lane = set->launches[i].lane;
        if (marey_recording_lane(set->recording, set->process->index, lane)->tid ==
            set->process->pid) {
            p->main_lane = lane;
            break;
        }
    }
    if (p->main_lane != MAREY__NO_INDEX)
        p->main_lane = p->first_lanes[p->main_lane];
}

static bool is_traced(const struct marey__path_process *p, const struct marey__step *step)
{
    size_t n; /* windows that begin before the step */
    MAREY__BISECT(n, 0, p->n_traced, p->traced[n].begin_ns <= step->begin_ns);
    return n > 0 && step->end_ns <= p->traced[n - 1].end_ns;
}

/* Keep the steps in which the GPU was traced. Without windows of tracing, those in which something was launched. */
static bool find_steps(struct marey__path_process *p)
{
    const struct marey__work_set *set = &p->set;
    const bool is_on_gpu = marey__path_is_on_gpu(set) && set->n_launches != 0;
    uint8_t *const launches MAREY__FREED = marey__calloc(set->n_steps + 1, 1);
    if (launches == NULL)
        return false;
    for (size_t i = 0; i < set->n_launches; i++) {
        const uint32_t step = marey__step_at(set, set->launches[i].begin_ns);
        launches[step != MAREY__NO_INDEX ? step : set->n_steps] = 1;
    }
    for (size_t i = 0; i < set->n_steps; i++) {
        const struct marey__step *step = &set->steps[i];
        if (is_on_gpu && !(p->n_traced != 0 ? is_traced(p, step) : launches[i] != 0))
            p->n_untraced++;
        else if (!MAREY__PUSH(
                     p->steps, p->n_steps, p->steps_cap,
                     (struct marey__path_step){step->begin_ns, step->end_ns, step->number, {0}}))
            return false;
    }
    return true;
}

/* The traced time as one step: it ends with the last event or work. */
static bool add_window(struct marey__path_process *p)
{
    const struct marey__work_set *set = &p->set;
    struct marey__path_step window = {.begin_ns = set->first_ns, .end_ns = set->last_ns};
    for (size_t d = 0; d < set->n_devices; d++)
        for (size_t i = 0; i < set->devices[d].n_work; i++)
            if (set->devices[d].work[i].class != MAREY__IGNORED)
                window.end_ns = MAREY__MAX(window.end_ns, set->devices[d].work[i].end_ns);
    p->is_window = true;
    return MAREY__PUSH(p->steps, p->n_steps, p->steps_cap, window);
}

static marey_status find_path(struct marey__path_process *p, const struct marey__rules *rules)
{
    const struct marey__work_options options = {.rules = rules};
    MAREY_TRY(marey__work_set_read(&p->set, p->recording, p->process, &options));
    const size_t n_lanes = p->set.process->n_lanes;
    if (p->set.n_steps == 0 && !marey__path_is_on_gpu(&p->set))
        return MAREY_OK;
    p->first_lanes = marey__calloc(n_lanes + 1, sizeof *p->first_lanes);
    p->next_lanes = marey__calloc(n_lanes + 1, sizeof *p->next_lanes);
    p->is_autograd = marey__calloc(n_lanes + 1, 1);
    p->site_names = marey__calloc((size_t)p->set.process->n_sites + 1, sizeof *p->site_names);
    MAREY__TRY_MEMORY(p->first_lanes != NULL && p->next_lanes != NULL && p->is_autograd != NULL &&
                      p->site_names != NULL && find_lanes(p));
    find_main_lane(p);
    MAREY_TRY(marey__path_read_host(p));
    MAREY__TRY_MEMORY((p->set.n_steps != 0 ? find_steps(p) : add_window(p)) && marey__path_walk(p));
    return marey__path_divide_host(p);
}

/* What the report does not need. */
static void drop_process(struct marey__path_process *p)
{
    marey__work_set_drop_work(&p->set);
    MAREY__FREE_ALL(p->site_names, p->first_lanes, p->next_lanes, p->is_autograd, p->waits.list,
                    p->busy.list, p->traced, p->stretches);
}

static marey_status find_nth(void *ctx, size_t i)
{
    const struct path *const path = ctx;
    const marey_status status = find_path(&path->processes[i], &path->rules);
    drop_process(&path->processes[i]);
    return status;
}

static void fini(struct path *path)
{
    for (size_t i = 0; i < path->n_processes; i++) {
        marey__work_set_fini(&path->processes[i].set);
        marey__free(path->processes[i].steps);
        free_parts(&path->processes[i].parts);
    }
    marey__free(path->processes);
    free_parts(&path->parts);
    marey__rules_fini(&path->rules);
}

/* ---- all processes ---- */

/* If some processes have GPU streams, the others are helpers. */
static bool list_processes(struct path *path, const struct marey__request *request)
{
    size_t n = 0;
    bool any = false;
    for (size_t r = 0; r < request->n; r++)
        n += marey_recording_n_processes(request->recordings[r]);
    path->processes = marey__calloc(n + 1, sizeof *path->processes);
    for (size_t r = 0; r < request->n; r++)
        for (size_t i = 0; i < marey_recording_n_processes(request->recordings[r]); i++)
            any |= marey__has_streams(request->recordings[r], i);
    for (size_t r = 0; path->processes != NULL && r < request->n; r++)
        for (size_t i = 0; i < marey_recording_n_processes(request->recordings[r]); i++)
            if (!any || marey__has_streams(request->recordings[r], i))
                path->processes[path->n_processes++] =
                    (struct marey__path_process){.recording = request->recordings[r], .process = i};
    return path->processes != NULL;
}

/* Without it, or beside processes with steps, the traced time of a process says nothing about a step. */
static bool has_steps(const struct path *path)
{
    for (size_t i = 0; i < path->n_processes; i++)
        if (path->processes[i].n_steps != 0 && !path->processes[i].is_window)
            return true;
    return false;
}

static bool merge(struct path *path, const struct marey__path_process *p)
{
    for (size_t i = 0; i < p->parts.n; i++) {
        const struct marey__path_part *part = &p->parts.list[i];
        struct marey__path_key key = part->key;
        uint32_t *const names[] = {&key.name, &key.around};
        for (size_t k = 0; k < 2; k++) {
            if (*names[k] == MAREY__NO_NAME)
                continue;
            const struct marey__name *name = &p->parts.names.names[*names[k]];
            *names[k] = marey__names_number(&path->parts.names, name->text, name->len);
            if (*names[k] == MAREY__NO_NAME)
                return false;
        }
        if (!marey__path_add(&path->parts, &key, part->count, part->ns))
            return false;
    }
    for (size_t i = 0; i < p->n_steps; i++) {
        path->sum.end_ns += p->steps[i].end_ns - p->steps[i].begin_ns;
        path->sum.number++;
        for (size_t side = 0; side < MAREY__N_PATH_SIDES; side++)
            path->sum.ns[side] += p->steps[i].ns[side];
    }
    return true;
}

/* ---- tables ---- */

static const struct {
    const char *name, *where;
} classes[MAREY__N_PATH_CLASSES] = {
    [MAREY__PATH_COMPUTE] = {"compute", "device"},
    [MAREY__PATH_COMMUNICATION] = {"communication", "device"},
    [MAREY__PATH_COPY] = {"copy", "device"},
    [MAREY__PATH_PYTHON] = {"python", "host"},
    [MAREY__PATH_OPERATOR] = {"operator", "host"},
    [MAREY__PATH_CALL] = {"runtime call", "host"},
    [MAREY__PATH_OTHER] = {"other host", "host"},
    [MAREY__PATH_LATENCY] = {"launch latency", "between"},
    [MAREY__PATH_GAP] = {"stream gap", "between"},
    [MAREY__PATH_WAKE_UP] = {"wake-up", "between"},
    [MAREY__PATH_UNEXPLAINED] = {"unexplained", "unknown"},
};
static const char *const places[] = {"step thread", "other thread", "stream"};

#define TIMES                                                                                      \
    COUNT("count", NULL), NS("ns", "time"), MEAN("step_ns", "per step"), SHARE("share", NULL)
static const struct marey_column class_columns[] = {TEXT("class"), TEXT("where"), TIMES};
static const struct marey_column part_columns[] = {TEXT("name"), TEXT("class"), TEXT("where"),
                                                   TEXT("operator"), TIMES};
static const struct marey_column step_columns[] = {NUMBER("rank"),
                                                   NUMBER("pid"),
                                                   WHOLE("step"),
                                                   NS("length_ns", "length"),
                                                   NS("device_ns", "device"),
                                                   NS("host_ns", "host"),
                                                   NS("between_ns", "between"),
                                                   NS("unexplained_ns", "unexplained")};
static const struct marey_table_definition tables[N_TABLES] = {
    [CLASSES] = TABLE_OF("classes", class_columns, "classes of time on the critical path"),
    [PARTS] = TABLE_OF("parts", part_columns, "what is on the critical path, by name"),
    [STEPS] = TABLE_OF("steps", step_columns, "each step: the sides add up to its length"),
    [NOTES] = TABLE_OF("notes", marey__warning_columns, "notes on the figures"),
};

static void put_parts(const struct path *path, marey_table *const *into)
{
    struct marey__path_part sums[MAREY__N_PATH_CLASSES] = {0};
    const double n_steps = (double)path->sum.number;
    for (size_t i = 0; i < path->parts.n; i++) {
        const struct marey__path_part *part = &path->parts.list[i];
        const struct marey__path_key *key = &part->key;
        const struct marey__name none = {"(no range)", 10};
        const struct marey__name *names = path->parts.names.names;
        const struct marey__name *name = key->name != MAREY__NO_NAME ? &names[key->name] : &none;
        const struct marey__name *around = key->around != MAREY__NO_NAME ? &names[key->around] : NULL;
        sums[key->class].count += part->count;
        sums[key->class].ns += part->ns;
        MAREY__PUT_ROW(into[PARTS], STRING_N(name->text, name->len),
                       STRING(classes[key->class].name), STRING(places[key->place]),
                       KNOWN(around != NULL, STRING_N(around->text, around->len)), U64(part->count),
                       U64(part->ns), F64((double)part->ns / n_steps),
                       RATIO(part->ns, path->sum.end_ns));
    }
    for (size_t i = 0; i < MAREY__N_PATH_CLASSES; i++)
        if (sums[i].count != 0)
            MAREY__PUT_ROW(into[CLASSES], STRING(classes[i].name), STRING(classes[i].where),
                           U64(sums[i].count), U64(sums[i].ns), F64((double)sums[i].ns / n_steps),
                           RATIO(sums[i].ns, path->sum.end_ns));
    MAREY__SORT_BY(into[CLASSES], "-ns", "class");
    MAREY__SORT_BY(into[PARTS], "-ns", "name", "class", "operator");
}

static void put_steps(const struct marey__path_process *p, marey_table *into)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct marey__path_step *step = &p->steps[i];
        MAREY__PUT_ROW(into, PROCESS_OF(p->set.process), KNOWN(!p->is_window, U64(step->number)),
                       U64(step->end_ns - step->begin_ns), U64(step->ns[MAREY__PATH_DEVICE]),
                       U64(step->ns[MAREY__PATH_HOST]), U64(step->ns[MAREY__PATH_BETWEEN]),
                       U64(step->ns[MAREY__PATH_UNKNOWN]));
    }
}

static void put_notes(const struct path *path, bool wants_steps, marey_table *into)
{
    enum { UNTRACED, WINDOWS, UNLINKED, INFERRED, LOST, N };
    static const char *const texts[N] = {
        [UNTRACED] = "steps without GPU tracing or a launch, excluded",
        [WINDOWS] = "processes without steps, excluded",
        [UNLINKED] = "GPU activity with an unknown launch; the path before it may be unexplained",
        [INFERRED] =
            "waits between streams, inferred from times because event waits are not recorded",
        [LOST] = "lost events, where the path may be wrong",
    };
    uint64_t counts[N] = {0};
    bool is_on_gpu = false;
    for (size_t i = 0; i < path->n_processes; i++) {
        const struct marey__path_process *p = &path->processes[i];
        counts[WINDOWS] += wants_steps && p->is_window;
        counts[UNTRACED] += p->n_untraced;
        counts[INFERRED] += p->n_inferred;
        counts[LOST] += p->set.process != NULL ? p->set.process->lost_events : 0;
        is_on_gpu |= marey__path_is_on_gpu(&p->set);
        for (size_t d = 0; d < p->set.n_devices; d++)
            counts[UNLINKED] += p->set.devices[d].device >= 0 ? p->set.devices[d].n_unlinked : 0;
    }
    for (size_t i = 0; i < N; i++)
        if (counts[i] != 0)
            marey__put_note(into, "%s: %" PRIu64, texts[i], counts[i]);
    if (is_on_gpu && path->sum.ns[MAREY__PATH_DEVICE] == 0)
        marey__put_note(into,
                        "no thread on the path waits for a GPU, so GPU activity is not on it");
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    struct path path MAREY__FINALLY(fini) = {0};
    MAREY_TRY(marey__rules_load(&path.rules, NULL));
    MAREY__TRY_MEMORY(list_processes(&path, request));
    MAREY_TRY(marey__run_for_each(request, path.n_processes, find_nth, &path));
    const bool wants_steps = has_steps(&path);
    for (size_t i = 0; i < path.n_processes; i++) {
        const struct marey__path_process *p = &path.processes[i];
        if (wants_steps && p->is_window)
            continue;
        MAREY__TRY_MEMORY(merge(&path, p));
        put_steps(p, report->tables[STEPS]);
    }
    if (path.sum.end_ns == 0)
        return marey__report_missing(report);
    put_parts(&path, report->tables);
    put_notes(&path, wants_steps, report->tables[NOTES]);
    return MAREY_OK;
}

/* ---- text ---- */

/* The time of all classes at this place, or of one class, from the table; 0 if there is none. */
static double share_of(const marey_table *table, const char *column, const char *what)
{
    double share = 0;
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        if (strcmp(marey__cell_of(table, row, column).as.text, what) == 0)
            share += marey__cell_of(table, row, "share").as.f64;
    return share;
}

/* "The critical path of a step (148 ms, mean of 3 steps): compute 31.0 %, host 54.2 %; unexplained 0 %." */
static marey_status put_headline(struct marey__report_writer *writer)
{
    static const char *const parts[][2] = {{"class", "compute"},        {"class", "communication"},
                                           {"class", "copy"},           {"where", "host"},
                                           {"class", "launch latency"}, {"class", "stream gap"},
                                           {"class", "wake-up"}};
    const marey_table *table = writer->report->tables[CLASSES],
                      *steps = writer->report->tables[STEPS];
    struct marey__buf *line = &writer->lines.line;
    const size_t n = marey_table_n_rows(steps);
    const char *before = "): ";
    double sum_ns = 0;
    for (size_t row = 0; row < n; row++)
        sum_ns += (double)marey__cell_of(steps, row, "length_ns").as.u64;
    const bool is_window = n != 0 && marey__cell_of(steps, 0, "step").is_null;
    marey__buf_printf(line, "The critical path of %s (", is_window ? "the traced time" : "a step");
    marey__text_duration(line, sum_ns / (double)MAREY__MAX(n, (size_t)1), NULL);
    if (n > 1)
        marey__buf_printf(line, ", mean of %zu", n);
    for (size_t i = 0; i < MAREY__COUNT_OF(parts); i++) {
        const double share = share_of(table, parts[i][0], parts[i][1]);
        if (share == 0)
            continue;
        marey__buf_printf(line, "%s%s ", before, parts[i][1]);
        marey__text_share(line, share);
        before = ", ";
    }
    marey__buf_printf(line, "%sunexplained ", before[0] == ',' ? "; " : before);
    marey__text_share(line, share_of(table, "class", "unexplained"));
    marey__buf_puts(line, ".\n");
    return marey__lines_end(&writer->lines);
}

static bool is_hidden(const void *ctx, const marey_table *table, size_t column)
{
    const char *const name = marey_table_column(table, column)->name;
    (void)ctx;
    return strcmp(name, "ns") == 0;
}

static marey_status put_text(struct marey__report_writer *writer)
{
    MAREY_TRY(put_headline(writer));
    for (size_t i = CLASSES; i <= PARTS; i++) {
        const marey_table *table = writer->report->tables[i];
        const struct marey__report_view view = {.table = table,
                                                .title = tables[i].help,
                                                .n_rows = marey_table_n_rows(table),
                                                .options = writer->options,
                                                .hides = is_hidden};
        MAREY_TRY(marey__report_draw(&writer->lines, &view));
        MAREY_TRY(marey__lines_end(&writer->lines));
    }
    return marey__lines_put_notes(&writer->lines, writer->report->tables[NOTES]);
}

/* ---- registry entry ---- */

const struct marey__analysis marey__analysis_path = {
    .about =
        {.name = "path",
         .help = "the critical path of a step: the chain of calls, launches and GPU\n"
                 "activity that determines its length",
         .needs = "'marey run --gpu' records it, and a trace of torch.profiler has it",
         .examples =
             "  marey report train.marey --path              what determines the length of a step",
         MAREY__TABLES(tables),
         .csv = "parts"},
    .make = make,
    .text = put_text,
    .visits_again = true,
    .is_there = marey__gpu_is_there,
};
