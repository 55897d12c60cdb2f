/* Groups calls by name, input shapes and stack, as torch's key_averages() does. */
#include <sys/stat.h>

#include "analyze/operators/internal.h"

/* ---- rows ---- */

/* torch also distinguishes devices and annotations. */
enum place { ON_HOST, HOST_ANNOTATION, ON_DEVICE, DEVICE_ANNOTATION };

static uint32_t place_of(unsigned kind)
{
    if (kind == MAREY__TORCH_ANNOTATION)
        return HOST_ANNOTATION;
    if (kind == MAREY__TORCH_GPU_ANNOTATION)
        return DEVICE_ANNOTATION;
    return marey__torch_on_device(kind) && kind < MAREY__TORCH_N_KINDS ? ON_DEVICE : ON_HOST;
}

/* The row of a key, created if needed; NULL on out of memory. */
static struct marey__operator *row_of(struct marey__operators *operators,
                                      const struct marey__operator_key *key)
{
    const size_t n_before = operators->n_rows;
    const uint32_t number = MAREY__MAP_NUMBER(&operators->keys, operators->rows, operators->n_rows,
                                              operators->rows_cap, *key);
    if (operators->n_rows != n_before)
        operators->rows[n_before].first_ns = INT64_MAX;
    return number != 0 ? &operators->rows[number - 1] : NULL;
}

/* Track the first call: rows with equal sort keys keep this order. */
static void note_first(struct marey__operator *row, int64_t begin, int64_t end, uint32_t order)
{
    if (begin > row->first_ns ||
        (begin == row->first_ns &&
         (end < row->first_end_ns || (end == row->first_end_ns && order > row->first_order))))
        return;
    row->first_ns = begin;
    row->first_end_ns = end;
    row->first_order = order;
}

/* The number of shapes; false on out of memory. */
static bool shapes_of(struct marey__operators *operators, marey__torch_id id, uint32_t *number)
{
    if (operators->by_name_alone)
        id = 0;
    if (operators->shapes_of[id] == 0) {
        size_t len;
        const char *text = marey__torch_text(operators->trace, id, &len);
        struct marey__buf shapes = {0};
        marey__shapes_put(&shapes, text, len);
        const uint32_t made =
            shapes.failed
                ? MAREY__NO_NAME
                : marey__names_keep(&operators->texts, &operators->arena, shapes.data, shapes.len);
        marey__buf_fini(&shapes);
        if (made == MAREY__NO_NAME)
            return false;
        operators->shapes_of[id] = made + 1;
    }
    *number = operators->shapes_of[id] - 1;
    return true;
}

/* ---- calls, work, allocations ---- */

static struct marey__operator *row_of_event(struct marey__operators *operators,
                                            const struct marey__torch_event *event, uint32_t stack,
                                            marey__torch_id *step)
{
    struct marey__operator_key key = {
        .name = event->name, .top = operators->stacks[stack].top, .place = place_of(event->kind)};
    const bool is_step = marey__torch_is_step(operators->trace, event);
    if (is_step)
        key.name = *step = *step != 0 ? *step : event->name;
    if (!shapes_of(operators, event->shapes, &key.shapes))
        return NULL;
    struct marey__operator *row = row_of(operators, &key);
    if (row == NULL)
        return NULL;
    if (row->n_calls++ == 0) {
        row->kind = event->kind;
        row->is_step = is_step;
        row->stack = stack;
    }
    note_first(row, event->begin_ns, event->end_ns, event->order);
    return row;
}

static void add_call(struct marey__operator *row, const struct marey__torch_call *call,
                     const struct marey__torch_event *event)
{
    marey__sum(&row->cpu_ns, event->end_ns - event->begin_ns);
    marey__sum(&row->self_cpu_ns, call->self_cpu_ns);
    marey__sum(&row->device_ns, call->device_ns);
    marey__sum(&row->self_device_ns, call->self_device_ns);
    marey__sum(&row->cpu_bytes, call->cpu_bytes);
    marey__sum(&row->self_cpu_bytes, call->self_cpu_bytes);
    marey__sum(&row->device_bytes, call->device_bytes);
    marey__sum(&row->self_device_bytes, call->self_device_bytes);
}

static bool group_calls(struct marey__operators *operators, marey__torch_id *step)
{
    struct marey__flops_names names;
    marey__flops_init(&names, operators->trace);
    for (size_t i = 0; i < operators->n_calls; i++) {
        const struct marey__torch_call *call = &operators->calls[i];
        const struct marey__torch_event *event = marey__call_event(operators, call);
        if (call->is_double)
            continue;
        struct marey__operator *row = row_of_event(operators, event, call->stack, step);
        if (row == NULL)
            return false;
        add_call(row, call, event);
        row->flops += marey__flops_of(&names, operators->trace, event);
    }
    return true;
}

/* Waiting for a device is not work of the device. */
static bool group_work(struct marey__operators *operators, marey__torch_id *step)
{
    for (size_t i = 0; i < operators->trace->n_events; i++) {
        const struct marey__torch_event *event = &operators->trace->events[i];
        if (!marey__torch_on_device(event->kind) || event->kind == MAREY__TORCH_SYNC)
            continue;
        struct marey__operator *row = row_of_event(operators, event, 0, step);
        if (row == NULL)
            return false;
        marey__sum(&row->device_ns, event->end_ns - event->begin_ns);
        marey__sum(&row->self_device_ns, event->end_ns - event->begin_ns);
    }
    return true;
}

/* Allocations outside all recorded calls get their own row. */
static bool group_memory(struct marey__operators *operators)
{
    const struct marey__torch_trace *trace = operators->trace;
    struct marey__operator_key key = {.top = operators->stacks[0].top};
    if (!shapes_of(operators, 0, &key.shapes))
        return false;
    for (size_t i = 0; i < trace->n_memory; i++) {
        const struct marey__torch_memory *memory = &trace->memory[i];
        if (operators->is_within[i])
            continue;
        struct marey__operator *row = row_of(operators, &key);
        if (row == NULL)
            return false;
        row->kind = MAREY__TORCH_N_KINDS;
        row->n_calls++;
        note_first(row, memory->ns, memory->ns, memory->order);
        const bool is_host =
            memory->device_type == 0 || memory->device_type == 2 || memory->device_type == 5;
        marey__sum(is_host ? &row->cpu_bytes : &row->device_bytes, memory->bytes);
        marey__sum(is_host ? &row->self_cpu_bytes : &row->self_device_bytes, memory->bytes);
    }
    return true;
}

static void sum_up(struct marey__operators *operators)
{
    for (size_t i = 0; i < operators->n_rows; i++) {
        const struct marey__operator *row = &operators->rows[i];
        marey__sum(&operators->sum_cpu_ns, row->self_cpu_ns);
        marey__sum(&operators->sum_device_ns, row->key.place == ON_DEVICE ? row->self_device_ns : 0);
        operators->has_device_time |= row->self_device_ns > 0;
        operators->has_device_memory |= row->self_device_bytes > 0;
        operators->has_stacks |= operators->texts.names[row->key.top].len > 0;
    }
    for (size_t i = 0; !operators->by_name_alone && i < operators->n_calls; i++)
        operators->has_shapes |= marey__call_event(operators, &operators->calls[i])->shapes != 0;
}

static bool group_all(struct marey__operators *operators)
{
    marey__torch_id step = 0;
    operators->shapes_of = marey__calloc(operators->trace->strings.n, sizeof *operators->shapes_of);
    if (operators->shapes_of == NULL || !group_calls(operators, &step) ||
        !group_work(operators, &step) || !group_memory(operators))
        return false;
    sum_up(operators);
    return true;
}

/* ---- the report ---- */

static void destroy(void *data)
{
    struct marey__operators *const operators = data;
    MAREY__FREE_ALL(operators->calls, operators->is_within, operators->stacks, operators->entries,
                    operators->stack_of, operators->shapes_of);
    marey__names_fini(&operators->texts);
    marey__arena_fini(&operators->arena);
    marey__free(operators->rows);
    marey__key_map_fini(&operators->keys);
    marey__torch_free(operators->owned);
    marey__free(operators);
}

static marey_status read_trace(struct marey__operators *operators, const marey_report *report,
                               const struct marey__request *request)
{
    const struct marey__torch_options options = {.progress = request->options->progress,
                                                 .progress_ctx = request->options->progress_ctx};
    operators->trace = request->input;
    if (request->input != NULL)
        return MAREY_OK;
    if (request->paths == NULL)
        return marey__report_missing(report);
    if (request->n != 1)
        return marey__fail(MAREY_EINVAL, "operators reads one trace, not %zu", request->n);
    MAREY_TRY(marey__torch_read(request->paths[0], &options, &operators->owned));
    operators->trace = operators->owned;
    return MAREY_OK;
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    enum { STACK_DEPTH = 5 };
    struct marey__operators *const operators = marey__calloc(1, sizeof *operators);
    MAREY__TRY_MEMORY(operators != NULL);
    report->data = operators;
    MAREY_TRY(read_trace(operators, report, request));
    operators->by_name_alone = marey__setting_is_on(request, "by-name");
    operators->stack_depth = marey__setting_is_on(request, "stack-depth")
                                 ? marey__setting_count(request, "stack-depth")
                                 : STACK_DEPTH;
    MAREY__TRY_MEMORY(marey__operators_find_calls(operators) && marey__operators_link(operators));
    marey__operators_split(operators);
    MAREY__TRY_MEMORY(marey__operators_find_stacks(operators) && group_all(operators) &&
                      marey__operators_sort(operators, marey__setting(request, "sort")));
    marey__operators_fill(operators, report->tables[0]);
    if (operators->trace->damage != NULL)
        marey__put_string(report->tables[1], operators->trace->damage);
    return MAREY_OK;
}

marey_status marey_operators_report(const marey_torch_trace *trace,
                                    const struct marey_report_options *options, marey_report **out)
{
    static const struct marey_report_options defaults;
    const struct marey__request request = {.input = trace,
                                           .options = options != NULL ? options : &defaults};
    MAREY_TRY(marey_report_check("operators", request.options->settings));
    return marey__report_make("operators", &request, out);
}

/* ---- registry entry ---- */

static marey_status check(const struct marey__request *request)
{
    const char *const sort = marey__setting(request, "sort");
    return sort != NULL ? marey__operators_check_sort(sort) : MAREY_OK;
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Recordings have ranges. */
static bool is_there(marey_recording *const *recordings, size_t n, const marey_report *ranges)
{
    (void)recordings;
    (void)n;
    (void)ranges;
    return false;
}

static const struct marey_setting settings[] = {
    {"by-name", MAREY_SETTING_FLAG, NULL, "all calls of a name are one row"},
    {"stack-depth", MAREY_SETTING_COUNT, "N",
     "entries of the stack that distinguish calls, 0 for none\n(default: 5)"},
    {"sort", MAREY_SETTING_TEXT, "KEY",
     "a key of torch: self_cpu_time_total, cuda_time_total, count, ...\n"
     "(default: self_device_time_total, self_cpu_time_total without a\n"
     "GPU)",
     's'},
};

static const struct marey_table_definition tables[] = {
    {"operators", marey__operator_columns, MAREY__N_OPERATOR_COLUMNS, NULL,
     "a row for each operator, shapes of inputs and stack"},
    {"notes", marey__warning_columns, 1, NULL, "notes on the figures"},
};

const struct marey__analysis marey__analysis_operators = {
    .about =
        {.name = "operators",
         .help = "operators of a torch trace, as torch's key_averages() sums them:\n"
                 "time, memory and FLOPs by name, input shapes and stack",
         .needs =
             "torch.profiler records them; 'marey report --operators TRACE.json' reads its file",
         .examples = "  marey report --operators trace.json.gz       torch's key averages",
         MAREY__SETTINGS(settings),
         MAREY__TABLES(tables),
         .csv = "operators"},
    .check = check,
    .make = make,
    .destroy = destroy,
    .text = marey__operators_text,
    .is_file = is_file,
    .is_there = is_there,
};
