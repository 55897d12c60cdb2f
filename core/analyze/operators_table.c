/* The rows in the order that is asked for, and as a table. */
#include <string.h>

#include "analyze/operators_internal.h"

/* ---- keys to sort by ---- */

enum sort_key {
    CPU_TIME,
    CPU_TIME_TOTAL,
    SELF_CPU_TIME_TOTAL,
    DEVICE_TIME,
    DEVICE_TIME_TOTAL,
    SELF_DEVICE_TIME_TOTAL,
    CPU_MEMORY_USAGE,
    SELF_CPU_MEMORY_USAGE,
    DEVICE_MEMORY_USAGE,
    SELF_DEVICE_MEMORY_USAGE,
    COUNT,
    FLOPS,
    N_SORT_KEYS,
};

static const char *const sort_keys[N_SORT_KEYS] = {
    [CPU_TIME] = "cpu_time",
    [CPU_TIME_TOTAL] = "cpu_time_total",
    [SELF_CPU_TIME_TOTAL] = "self_cpu_time_total",
    [DEVICE_TIME] = "device_time",
    [DEVICE_TIME_TOTAL] = "device_time_total",
    [SELF_DEVICE_TIME_TOTAL] = "self_device_time_total",
    [CPU_MEMORY_USAGE] = "cpu_memory_usage",
    [SELF_CPU_MEMORY_USAGE] = "self_cpu_memory_usage",
    [DEVICE_MEMORY_USAGE] = "device_memory_usage",
    [SELF_DEVICE_MEMORY_USAGE] = "self_device_memory_usage",
    [COUNT] = "count",
    [FLOPS] = "flops",
};

/* Whether `key` is `known`, with one of the words for a device in place of "device". */
static bool is_key(const char *key, const char *known)
{
    static const char *const words[] = {"device", "cuda", "xpu", "privateuse1"};
    const char *device = strstr(known, words[0]);
    if (device == NULL)
        return strcmp(key, known) == 0;
    const size_t before = (size_t)(device - known);
    for (size_t i = 0; i < KYMO__COUNT_OF(words); i++)
        if (strncmp(key, known, before) == 0 &&
            strncmp(key + before, words[i], strlen(words[i])) == 0 &&
            strcmp(key + before + strlen(words[i]), device + strlen(words[0])) == 0)
            return true;
    return false;
}

static enum sort_key find_key(const char *key)
{
    unsigned i = 0;
    while (i < N_SORT_KEYS && !is_key(key, sort_keys[i]))
        i++;
    return (enum sort_key)i;
}

kymo_status kymo_operators_check_sort(const char *key)
{
    if (find_key(key) != N_SORT_KEYS)
        return KYMO_OK;
    return kymo__fail(KYMO_EINVAL,
                      "operators cannot be sorted by '%s': there are self_cpu_time_total, "
                      "cpu_time_total, cpu_time, self_cpu_memory_usage, cpu_memory_usage, the same "
                      "with cuda or device in place of cpu, count and flops",
                      key);
}

static double key_of(const struct kymo__operator *row, enum sort_key key)
{
    const double n = row->n_calls > 0 ? (double)row->n_calls : 1;
    const double values[N_SORT_KEYS] = {
        [CPU_TIME] = (double)row->cpu_ns / n,
        [CPU_TIME_TOTAL] = (double)row->cpu_ns,
        [SELF_CPU_TIME_TOTAL] = (double)row->self_cpu_ns,
        [DEVICE_TIME] = (double)row->device_ns / n,
        [DEVICE_TIME_TOTAL] = (double)row->device_ns,
        [SELF_DEVICE_TIME_TOTAL] = (double)row->self_device_ns,
        [CPU_MEMORY_USAGE] = (double)row->cpu_bytes,
        [SELF_CPU_MEMORY_USAGE] = (double)row->self_cpu_bytes,
        [DEVICE_MEMORY_USAGE] = (double)row->device_bytes,
        [SELF_DEVICE_MEMORY_USAGE] = (double)row->self_device_bytes,
        [COUNT] = (double)row->n_calls,
        [FLOPS] = (double)row->flops,
    };
    return values[key];
}

/* ---- sorting ---- */

struct sorted {
    double value;
    int64_t first_ns, first_end_ns;
    uint32_t first_order, row;
};

/* The larger value first; of equal ones the one that was called first, as the longer of two at once. */
static bool comes_before(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value;
    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns;
    return x->first_end_ns != y->first_end_ns ? x->first_end_ns > y->first_end_ns
                                              : x->first_order < y->first_order;
}

kymo_status kymo__operators_sort(struct kymo_operators *operators, const char *word)
{
    const enum sort_key key =
        word != NULL ? find_key(word)
                     : (operators->has_device_time ? SELF_DEVICE_TIME_TOTAL : SELF_CPU_TIME_TOTAL);
    const size_t n = operators->n_rows;
    if (key == N_SORT_KEYS)
        return kymo_operators_check_sort(word);
    struct sorted *order = kymo__alloc((n + 1) * sizeof *order);
    struct kymo__operator *rows = kymo__alloc((n + 1) * sizeof *rows);
    bool is_done = order != NULL && rows != NULL;
    for (size_t i = 0; is_done && i < n; i++) {
        const struct kymo__operator *row = &operators->rows[i];
        order[i] = (struct sorted){key_of(row, key), row->first_ns, row->first_end_ns,
                                   row->first_order, (uint32_t)i};
    }
    is_done = is_done && kymo__sort_runs(order, n, sizeof *order, comes_before);
    for (size_t i = 0; is_done && i < n; i++)
        rows[i] = operators->rows[order[i].row];
    kymo__free(order);
    if (!is_done) {
        kymo__free(rows);
        return kymo__fail(KYMO_ENOMEM, "no memory to sort operators");
    }
    kymo__free(operators->rows);
    operators->rows = rows;
    return KYMO_OK;
}

/* ---- the table ---- */

struct kymo__operator_text kymo__operator_name(const struct kymo_operators *operators,
                                               const struct kymo__operator *row)
{
    static const char memory[] = "[memory]", steps[] = "ProfilerStep*";
    struct kymo__operator_text name;
    if (row->kind == KYMO__TORCH_N_KINDS)
        return (struct kymo__operator_text){memory, strlen(memory)};
    if (row->is_step)
        return (struct kymo__operator_text){steps, strlen(steps)};
    name.text = kymo__torch_text(operators->trace, row->key.name, &name.len);
    return name;
}

struct kymo__operator_text kymo__operator_shapes(const struct kymo_operators *operators,
                                                 const struct kymo__operator *row)
{
    const struct kymo__name *shapes = &operators->texts.names[row->key.shapes];
    return (struct kymo__operator_text){shapes->text, shapes->len};
}

#define OPERATOR_NS(name, title)                                                                   \
    {                                                                                              \
        name, title, KYMO_TYPE_I64, KYMO_UNIT_NS                                                   \
    }
#define OPERATOR_BYTES(name, title)                                                                \
    {                                                                                              \
        name, title, KYMO_TYPE_I64, KYMO_UNIT_BYTES                                                \
    }

static const struct kymo_column columns[] = {
    {"name", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"kind", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"calls", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    OPERATOR_NS("cpu_ns", "CPU total"),
    OPERATOR_NS("self_cpu_ns", "self CPU"),
    OPERATOR_NS("device_ns", "device total"),
    OPERATOR_NS("self_device_ns", "self device"),
    OPERATOR_BYTES("cpu_bytes", "CPU memory"),
    OPERATOR_BYTES("self_cpu_bytes", "self CPU memory"),
    OPERATOR_BYTES("device_bytes", "device memory"),
    OPERATOR_BYTES("self_device_bytes", "self device memory"),
    {"flops", "FLOPs", KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"shapes", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"stack", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"cpu_share", "self CPU %", KYMO_TYPE_F64, KYMO_UNIT_SHARE},
    {"device_share", "self device %", KYMO_TYPE_F64, KYMO_UNIT_SHARE},
};

static void put_share(kymo_table *table, int64_t part, int64_t whole)
{
    if (whole <= 0)
        kymo_table_null(table);
    else
        kymo_table_f64(table, (double)part / (double)whole);
}

static void put_row(const struct kymo_operators *operators, const struct kymo__operator *row)
{
    static const char *const kinds[] = {
        [KYMO__TORCH_OP] = "operator",       [KYMO__TORCH_ANNOTATION] = "annotation",
        [KYMO__TORCH_PYTHON] = "python",     [KYMO__TORCH_RUNTIME] = "runtime",
        [KYMO__TORCH_OVERHEAD] = "overhead", [KYMO__TORCH_KERNEL] = "kernel",
        [KYMO__TORCH_MEMCPY] = "copy",       [KYMO__TORCH_MEMSET] = "set",
        [KYMO__TORCH_SYNC] = "wait",         [KYMO__TORCH_GPU_ANNOTATION] = "device_annotation",
        [KYMO__TORCH_N_KINDS] = "memory",
    };
    kymo_table *table = operators->table;
    const struct kymo__operator_text name = kymo__operator_name(operators, row),
                                     shapes = kymo__operator_shapes(operators, row);
    const struct kymo__name *top = &operators->texts.names[row->key.top];
    kymo_table_text(table, name.text, name.len);
    kymo_table_text(table, kinds[row->kind], strlen(kinds[row->kind]));
    kymo_table_u64(table, row->n_calls);
    const int64_t numbers[] = {row->cpu_ns,         row->self_cpu_ns,      row->device_ns,
                               row->self_device_ns, row->cpu_bytes,        row->self_cpu_bytes,
                               row->device_bytes,   row->self_device_bytes};
    for (size_t i = 0; i < KYMO__COUNT_OF(numbers); i++)
        kymo_table_i64(table, numbers[i]);
    kymo_table_u64(table, row->flops);
    if (operators->has_shapes)
        kymo_table_text(table, shapes.text, shapes.len);
    else
        kymo_table_null(table);
    if (top->len > 0)
        kymo_table_text(table, top->text, top->len);
    else
        kymo_table_null(table);
    put_share(table, row->self_cpu_ns, operators->sum_cpu_ns);
    put_share(table, row->self_device_ns, operators->sum_device_ns);
}

kymo_status kymo__operators_fill(struct kymo_operators *operators)
{
    KYMO_TRY(kymo_table_create("operators", columns, KYMO__COUNT_OF(columns), &operators->table));
    for (size_t i = 0; i < operators->n_rows; i++)
        put_row(operators, &operators->rows[i]);
    return kymo_table_status(operators->table);
}

kymo_table *kymo_operators_table(kymo_operators *operators)
{
    return operators->table;
}
