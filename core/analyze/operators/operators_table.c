/* The rows in the selected order, and as a table. */
#include "analyze/operators/internal.h"

#define FIELD(name) offsetof(struct marey__operator, name)

/* ---- keys to sort by ---- */

enum key_type { TIME_OR_BYTES, TIME_PER_CALL, COUNTED };

static const struct sort_key {
    const char *name;
    size_t field; /* offset in struct marey__operator */
    enum key_type type;
} sort_keys[] = {
    {"cpu_time", FIELD(cpu_ns), TIME_PER_CALL},
    {"cpu_time_total", FIELD(cpu_ns), TIME_OR_BYTES},
    {"self_cpu_time_total", FIELD(self_cpu_ns), TIME_OR_BYTES},
    {"device_time", FIELD(device_ns), TIME_PER_CALL},
    {"device_time_total", FIELD(device_ns), TIME_OR_BYTES},
    {"self_device_time_total", FIELD(self_device_ns), TIME_OR_BYTES},
    {"cpu_memory_usage", FIELD(cpu_bytes), TIME_OR_BYTES},
    {"self_cpu_memory_usage", FIELD(self_cpu_bytes), TIME_OR_BYTES},
    {"device_memory_usage", FIELD(device_bytes), TIME_OR_BYTES},
    {"self_device_memory_usage", FIELD(self_device_bytes), TIME_OR_BYTES},
    {"count", FIELD(n_calls), COUNTED},
    {"flops", FIELD(flops), COUNTED},
};

/* Whether `key` is `known`, with the name of a device instead of "device". */
static bool is_key(const char *key, const char *known)
{
    static const char *const words[] = {"device", "cuda", "xpu", "privateuse1"};
    const char *device = strstr(known, words[0]);
    if (device == NULL)
        return strcmp(key, known) == 0;
    const size_t before = (size_t)(device - known);
    for (size_t i = 0; i < MAREY__COUNT_OF(words); i++)
        if (strncmp(key, known, before) == 0 &&
            strncmp(key + before, words[i], strlen(words[i])) == 0 &&
            strcmp(key + before + strlen(words[i]), device + strlen(words[0])) == 0)
            return true;
    return false;
}

static const struct sort_key *find_key(const char *key)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(sort_keys); i++)
        if (is_key(key, sort_keys[i].name))
            return &sort_keys[i];
    return NULL;
}

marey_status marey__operators_check_sort(const char *key)
{
    if (find_key(key) != NULL)
        return MAREY_OK;
    return marey__fail(
        MAREY_EINVAL,
        "operators cannot be sorted by '%s': there are self_cpu_time_total, "
        "cpu_time_total, cpu_time, self_cpu_memory_usage, cpu_memory_usage, the same "
        "with cuda or device in place of cpu, count and flops",
        key);
}

static double key_of(const struct marey__operator *row, const struct sort_key *key)
{
    uint64_t bits;
    memcpy(&bits, (const char *)row + key->field, sizeof bits);
    if (key->type == COUNTED)
        return (double)bits;
    const double value = (double)(int64_t)bits;
    return key->type == TIME_PER_CALL && row->n_calls > 0 ? value / (double)row->n_calls : value;
}

/* ---- sorting ---- */

struct sorted {
    double value;
    int64_t first_ns, first_end_ns;
    uint32_t first_order, row;
};

/* The larger value first; of equal ones the earlier first call, or the longer if both begin together. */
MAREY__ORDER_RUNS(comes_before, struct sorted,
                  MAREY__DOWN(value) MAREY__UP(first_ns) MAREY__DOWN(first_end_ns)
                      MAREY__UP(first_order))

bool marey__operators_sort(struct marey__operators *operators, const char *word)
{
    const struct sort_key *const key =
        find_key(word != NULL                 ? word
                 : operators->has_device_time ? "self_device_time_total"
                                              : "self_cpu_time_total");
    MAREY_ASSERT(key != NULL);
    const size_t n = operators->n_rows;
    struct sorted *const order MAREY__FREED = marey__alloc((n + 1) * sizeof *order);
    if (order == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct marey__operator *row = &operators->rows[i];
        order[i] = (struct sorted){key_of(row, key), row->first_ns, row->first_end_ns,
                                   row->first_order, (uint32_t)i};
    }
    struct marey__operator *const rows = marey__alloc((n + 1) * sizeof *rows);
    if (rows == NULL || !marey__sort_runs(order, n, sizeof *order, comes_before)) {
        marey__free(rows);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        rows[i] = operators->rows[order[i].row];
    marey__free(operators->rows);
    operators->rows = rows;
    return true;
}

/* ---- the table ---- */

struct marey__operator_text marey__operator_name(const struct marey__operators *operators,
                                                 const struct marey__operator *row)
{
    static const char memory[] = "[memory]", steps[] = "ProfilerStep*";
    struct marey__operator_text name;
    if (row->kind == MAREY__TORCH_N_KINDS)
        return (struct marey__operator_text){memory, strlen(memory)};
    if (row->is_step)
        return (struct marey__operator_text){steps, strlen(steps)};
    name.text = marey__torch_text(operators->trace, row->key.name, &name.len);
    return name;
}

struct marey__operator_text marey__operator_shapes(const struct marey__operators *operators,
                                                   const struct marey__operator *row)
{
    const struct marey__name *shapes = &operators->texts.names[row->key.shapes];
    return (struct marey__operator_text){shapes->text, shapes->len};
}

#define OPERATOR_NS(name, title) COLUMN(name, title, MAREY_TYPE_I64, MAREY_UNIT_NS)
#define OPERATOR_BYTES(name, title) COLUMN(name, title, MAREY_TYPE_I64, MAREY_UNIT_BYTES)

const struct marey_column marey__operator_columns[MAREY__N_OPERATOR_COLUMNS] = {
    TEXT("name"),
    TEXT("kind"),
    COUNT("calls", NULL),
    OPERATOR_NS("cpu_ns", "CPU total"),
    OPERATOR_NS("self_cpu_ns", "self CPU"),
    OPERATOR_NS("device_ns", "device total"),
    OPERATOR_NS("self_device_ns", "self device"),
    OPERATOR_BYTES("cpu_bytes", "CPU memory"),
    OPERATOR_BYTES("self_cpu_bytes", "self CPU memory"),
    OPERATOR_BYTES("device_bytes", "device memory"),
    OPERATOR_BYTES("self_device_bytes", "self device memory"),
    COUNT("flops", "FLOPs"),
    TEXT("shapes"),
    TEXT("stack"),
    SHARE("cpu_share", "self CPU %"),
    SHARE("device_share", "self device %"),
};

static void put_text(marey_table *table, const char *text, size_t len, bool is_known)
{
    if (is_known)
        marey_table_text(table, text, len);
    else
        marey_table_null(table);
}

static void put_share(marey_table *table, int64_t part, int64_t whole)
{
    marey__put_real(table, (double)part / (double)whole, whole > 0);
}

static void put_row(const struct marey__operators *operators, const struct marey__operator *row,
                    marey_table *table)
{
    static const char *const kinds[] = {
        [MAREY__TORCH_OP] = "operator",       [MAREY__TORCH_ANNOTATION] = "annotation",
        [MAREY__TORCH_PYTHON] = "python",     [MAREY__TORCH_RUNTIME] = "runtime",
        [MAREY__TORCH_OVERHEAD] = "overhead", [MAREY__TORCH_KERNEL] = "kernel",
        [MAREY__TORCH_MEMCPY] = "copy",       [MAREY__TORCH_MEMSET] = "set",
        [MAREY__TORCH_SYNC] = "wait",         [MAREY__TORCH_GPU_ANNOTATION] = "device_annotation",
        [MAREY__TORCH_N_KINDS] = "memory",
    };
    const struct marey__operator_text name = marey__operator_name(operators, row),
                                      shapes = marey__operator_shapes(operators, row);
    const struct marey__name *top = &operators->texts.names[row->key.top];
    MAREY__PUT_ROW(table, STRING_N(name.text, name.len),
                   STRING_N(kinds[row->kind], strlen(kinds[row->kind])), U64(row->n_calls));
    const int64_t numbers[] = {row->cpu_ns,         row->self_cpu_ns,      row->device_ns,
                               row->self_device_ns, row->cpu_bytes,        row->self_cpu_bytes,
                               row->device_bytes,   row->self_device_bytes};
    for (size_t i = 0; i < MAREY__COUNT_OF(numbers); i++)
        marey_table_i64(table, numbers[i]);
    marey_table_u64(table, row->flops);
    put_text(table, shapes.text, shapes.len, operators->has_shapes);
    put_text(table, top->text, top->len, top->len > 0);
    put_share(table, row->self_cpu_ns, operators->sum_cpu_ns);
    put_share(table, row->self_device_ns, operators->sum_device_ns);
}

void marey__operators_fill(const struct marey__operators *operators, marey_table *table)
{
    for (size_t i = 0; i < operators->n_rows; i++)
        put_row(operators, &operators->rows[i], table);
}
