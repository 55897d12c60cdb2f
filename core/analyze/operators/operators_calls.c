/*
 * Nesting of calls. A call's parent is the innermost one on its thread that begins no later and ends no earlier; a call
 * that only overlaps others has none, as in torch.
 *
 * If a call's only child has the same name (an operator that dispatches to itself), torch counts both as one. So do we,
 * so that the numbers agree.
 */
#include "analyze/operators/internal.h"

static const char evaluate_prefix[] = "autograd::engine::evaluate_function: ";

bool marey__torch_is_step(const struct marey__torch_trace *trace,
                          const struct marey__torch_event *event)
{
    static const char prefix[] = "ProfilerStep#";
    if (event->kind != MAREY__TORCH_ANNOTATION && event->kind != MAREY__TORCH_GPU_ANNOTATION)
        return false;
    return strncmp(marey__torch_text(trace, event->name, NULL), prefix, strlen(prefix)) == 0;
}

/* ---- events that torch ignores ---- */

enum { N_LEFT_OUT = 6 };

static void find_left_out(const struct marey__torch_trace *trace, marey__torch_id ids[N_LEFT_OUT])
{
    static const char *const names[N_LEFT_OUT] = {
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    };
    for (size_t i = 0; i < N_LEFT_OUT; i++)
        ids[i] = marey__torch_find(trace, names[i], strlen(names[i]));
}

static bool is_left_out(const marey__torch_id ids[N_LEFT_OUT], marey__torch_id name)
{
    bool is_out = false;
    for (size_t i = 0; i < N_LEFT_OUT; i++)
        is_out |= ids[i] == name;
    return is_out && name != 0;
}

/* ---- nesting ---- */

/* An autograd function runs within an event of the engine named after it with a prefix. */
static bool is_autograd(const struct marey__operators *operators,
                        const struct marey__torch_event *event, uint32_t parent)
{
    if (parent == MAREY__NO_OPERATOR_CALL || event->kind != MAREY__TORCH_OP)
        return false;
    size_t len, parent_len;
    const char *name = marey__torch_text(operators->trace, event->name, &len);
    const char *around = marey__torch_text(
        operators->trace, marey__call_event(operators, &operators->calls[parent])->name, &parent_len);
    const size_t prefix_len = strlen(evaluate_prefix);
    return parent_len == prefix_len + len && memcmp(around, evaluate_prefix, prefix_len) == 0 &&
           memcmp(around + prefix_len, name, len) == 0;
}

/* Search from the thread's latest call outwards for the first one that contains the event. */
static uint32_t find_parent(const struct marey__operators *operators,
                            const struct marey__torch_event *event, uint32_t latest)
{
    while (latest != MAREY__NO_OPERATOR_CALL) {
        const struct marey__torch_event *around =
            marey__call_event(operators, &operators->calls[latest]);
        if (event->begin_ns < around->end_ns && event->end_ns <= around->end_ns)
            break;
        latest = operators->calls[latest].parent;
    }
    return latest;
}

static bool add_call(struct marey__operators *operators, size_t index, uint32_t *latest)
{
    const struct marey__torch_event *event = &operators->trace->events[index];
    if (!marey__grow(&operators->calls, &operators->calls_cap, operators->n_calls + 1,
                     sizeof *operators->calls))
        return false;
    const uint32_t parent = find_parent(operators, event, *latest);
    operators->calls[operators->n_calls] =
        (struct marey__torch_call){.event = (uint32_t)index,
                                   .parent = parent,
                                   .is_backward = is_autograd(operators, event, parent)};
    if (parent != MAREY__NO_OPERATOR_CALL)
        operators->calls[parent].n_children++;
    *latest = (uint32_t)operators->n_calls++;
    return true;
}

bool marey__operators_find_calls(struct marey__operators *operators)
{
    const struct marey__torch_trace *trace = operators->trace;
    marey__torch_id left_out[N_LEFT_OUT];
    find_left_out(trace, left_out);
    for (size_t t = 0; t < trace->n_threads; t++) {
        uint32_t latest = MAREY__NO_OPERATOR_CALL;
        for (size_t i = trace->threads[t].begin; i < trace->threads[t].end; i++) {
            const struct marey__torch_event *event = &trace->events[i];
            if (!marey__torch_on_device(event->kind) && !is_left_out(left_out, event->name) &&
                !add_call(operators, i, &latest))
                return false;
        }
    }
    return true;
}

/* ---- merged calls, and self times ---- */

static bool have_one_name(const struct marey__operators *operators,
                          const struct marey__torch_call *a, const struct marey__torch_call *b)
{
    const struct marey__torch_event *x = marey__call_event(operators, a),
                                    *y = marey__call_event(operators, b);
    return x->name == y->name ||
           (marey__torch_is_step(operators->trace, x) && marey__torch_is_step(operators->trace, y));
}

/* Parents come before their children, so one pass joins chains. */
static void join_doubles(struct marey__operators *operators)
{
    for (size_t i = 0; i < operators->n_calls; i++) {
        struct marey__torch_call *call = &operators->calls[i];
        if (call->parent == MAREY__NO_OPERATOR_CALL)
            continue;
        if (operators->calls[call->parent].is_double)
            call->parent = operators->calls[call->parent].parent;
        struct marey__torch_call *parent = &operators->calls[call->parent];
        if (parent->n_children != 1 || !have_one_name(operators, call, parent))
            continue;
        parent->n_children = call->n_children;
        marey__sum(&parent->self_device_ns, call->self_device_ns);
        call->is_double = true;
    }
}

void marey__operators_split(struct marey__operators *operators)
{
    join_doubles(operators);
    for (size_t i = 0; i < operators->n_calls; i++) {
        struct marey__torch_call *call = &operators->calls[i];
        const struct marey__torch_event *event = marey__call_event(operators, call);
        call->self_cpu_ns = event->end_ns - event->begin_ns;
        call->self_cpu_bytes = call->cpu_bytes;
        call->self_device_bytes = call->device_bytes;
        call->device_ns = call->self_device_ns;
    }
    for (size_t i = operators->n_calls; i-- > 0;) {
        const struct marey__torch_call *call = &operators->calls[i];
        if (call->is_double || call->parent == MAREY__NO_OPERATOR_CALL)
            continue;
        struct marey__torch_call *parent = &operators->calls[call->parent];
        const struct marey__torch_event *event = marey__call_event(operators, call);
        marey__sum(&parent->self_cpu_ns, event->begin_ns - event->end_ns);
        parent->self_cpu_bytes =
            (int64_t)((uint64_t)parent->self_cpu_bytes - (uint64_t)call->cpu_bytes);
        parent->self_device_bytes =
            (int64_t)((uint64_t)parent->self_device_bytes - (uint64_t)call->device_bytes);
        marey__sum(&parent->device_ns, call->device_ns);
    }
}
