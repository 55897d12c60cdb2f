/* Why devices were idle, as tables. */
#include "analyze/device/internal.h"

#define DEVICE_COLUMN                                                                              \
    {                                                                                              \
        "device", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE                                            \
    }
#define REASON_COLUMN                                                                              \
    {                                                                                              \
        "reason", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE                                           \
    }

const struct marey_column marey__idle_columns[MAREY__N_IDLE_COLUMNS] = {
    MAREY__RANK_COLUMN,
    MAREY__PID_COLUMN,
    DEVICE_COLUMN,
    REASON_COLUMN,
    MAREY__COUNT_COLUMN,
    MAREY__NS_COLUMN("ns", "time"),
    MAREY__SHARE_COLUMN("of idle"),
};

const struct marey_column marey__idle_operator_columns[MAREY__N_IDLE_OPERATOR_COLUMNS] = {
    MAREY__RANK_COLUMN,
    MAREY__PID_COLUMN,
    DEVICE_COLUMN,
    REASON_COLUMN,
    {"operator", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    MAREY__COUNT_COLUMN,
    MAREY__NS_COLUMN("ns", "time"),
};

const struct marey_column marey__idle_step_columns[MAREY__N_IDLE_STEP_COLUMNS] = {
    MAREY__RANK_COLUMN, MAREY__PID_COLUMN,
    DEVICE_COLUMN,      {"step", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    REASON_COLUMN,      MAREY__NS_COLUMN("ns", "time"),
};

static void put_device(marey_table *table, const struct marey_process *process,
                       const struct marey__idle_device *device)
{
    marey__put_process(table, process);
    marey_table_i64(table, device->device);
}

/* The reasons of a device, the longest first. */
static void sort_reasons(const uint64_t ns[MAREY__N_IDLE_REASONS],
                         enum marey__idle_reason order[MAREY__N_IDLE_REASONS])
{
    for (size_t i = 0; i < MAREY__N_IDLE_REASONS; i++) {
        size_t at = i;
        for (; at > 0 && ns[order[at - 1]] < ns[i]; at--)
            order[at] = order[at - 1];
        order[at] = (enum marey__idle_reason)i;
    }
}

void marey__idle_put(marey_table *table, const struct marey__work_set *set,
                     const struct marey__idle *idle)
{
    for (size_t d = 0; d < idle->n_devices; d++) {
        const struct marey__idle_device *device = &idle->devices[d];
        enum marey__idle_reason order[MAREY__N_IDLE_REASONS] = {0};
        uint64_t sum = 0;
        sort_reasons(device->ns, order);
        for (size_t i = 0; i < MAREY__N_IDLE_REASONS; i++)
            sum += device->ns[i];
        for (size_t i = 0; i < MAREY__N_IDLE_REASONS && device->ns[order[i]] != 0; i++) {
            put_device(table, set->process, device);
            marey__put_string(table, marey__idle_words[order[i]].id);
            marey_table_u64(table, device->count[order[i]]);
            marey_table_u64(table, device->ns[order[i]]);
            marey__put_share(table, device->ns[order[i]], sum);
        }
    }
}

void marey__idle_put_operators(marey_table *table, const struct marey__work_set *set,
                               const struct marey__idle *idle)
{
    for (size_t d = 0; d < idle->n_devices; d++)
        for (size_t i = 0; i < idle->devices[d].n_rows; i++) {
            const struct marey__idle_row *row = &idle->devices[d].rows[i];
            put_device(table, set->process, &idle->devices[d]);
            marey__put_string(table, marey__idle_words[row->reason].id);
            if (row->name == MAREY__NO_NAME)
                marey_table_null(table);
            else
                marey_table_text(table, idle->names.names[row->name].text,
                                 idle->names.names[row->name].len);
            marey_table_u64(table, row->count);
            marey_table_u64(table, row->ns);
        }
}

void marey__idle_put_steps(marey_table *table, const struct marey__work_set *set,
                           const struct marey__idle *idle)
{
    for (size_t d = 0; d < idle->n_devices; d++)
        for (size_t s = 0; s < idle->n_steps; s++)
            for (size_t i = 0; i < MAREY__N_IDLE_REASONS; i++) {
                const uint64_t ns = idle->devices[d].step_ns[s * MAREY__N_IDLE_REASONS + i];
                if (ns == 0)
                    continue;
                put_device(table, set->process, &idle->devices[d]);
                marey_table_u64(table, set->steps[s].number);
                marey__put_string(table, marey__idle_words[i].id);
                marey_table_u64(table, ns);
            }
}
