/* Why devices were idle, as tables. */
#include "analyze/idle.h"

#define DEVICE_COLUMN                                                                              \
    {                                                                                              \
        "device", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE                                              \
    }
#define REASON_COLUMN                                                                              \
    {                                                                                              \
        "reason", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE                                             \
    }

const struct kymo_column kymo__idle_columns[KYMO__N_IDLE_COLUMNS] = {
    KYMO__RANK_COLUMN,
    KYMO__PID_COLUMN,
    DEVICE_COLUMN,
    REASON_COLUMN,
    KYMO__COUNT_COLUMN,
    KYMO__NS_COLUMN("ns", "time"),
    KYMO__SHARE_COLUMN("of idle"),
};

const struct kymo_column kymo__idle_operator_columns[KYMO__N_IDLE_OPERATOR_COLUMNS] = {
    KYMO__RANK_COLUMN,
    KYMO__PID_COLUMN,
    DEVICE_COLUMN,
    REASON_COLUMN,
    {"operator", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    KYMO__COUNT_COLUMN,
    KYMO__NS_COLUMN("ns", "time"),
};

const struct kymo_column kymo__idle_step_columns[KYMO__N_IDLE_STEP_COLUMNS] = {
    KYMO__RANK_COLUMN, KYMO__PID_COLUMN,
    DEVICE_COLUMN,     {"step", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    REASON_COLUMN,     KYMO__NS_COLUMN("ns", "time"),
};

static void put_device(kymo_table *table, const struct kymo_process *process,
                       const struct kymo__idle_device *device)
{
    kymo__put_process(table, process);
    kymo_table_i64(table, device->device);
}

/* The reasons of a device, the longest first. */
static void sort_reasons(const uint64_t ns[KYMO__N_IDLE_REASONS],
                         enum kymo__idle_reason order[KYMO__N_IDLE_REASONS])
{
    for (size_t i = 0; i < KYMO__N_IDLE_REASONS; i++) {
        size_t at = i;
        for (; at > 0 && ns[order[at - 1]] < ns[i]; at--)
            order[at] = order[at - 1];
        order[at] = (enum kymo__idle_reason)i;
    }
}

void kymo__idle_put(kymo_table *table, const struct kymo__work_set *set, const struct kymo__idle *idle)
{
    for (size_t d = 0; d < idle->n_devices; d++) {
        const struct kymo__idle_device *device = &idle->devices[d];
        enum kymo__idle_reason order[KYMO__N_IDLE_REASONS] = {0};
        uint64_t sum = 0;
        sort_reasons(device->ns, order);
        for (size_t i = 0; i < KYMO__N_IDLE_REASONS; i++)
            sum += device->ns[i];
        for (size_t i = 0; i < KYMO__N_IDLE_REASONS && device->ns[order[i]] != 0; i++) {
            put_device(table, set->process, device);
            kymo__put_string(table, kymo__idle_words[order[i]].id);
            kymo_table_u64(table, device->count[order[i]]);
            kymo_table_u64(table, device->ns[order[i]]);
            kymo__put_share(table, device->ns[order[i]], sum);
        }
    }
}

void kymo__idle_put_operators(kymo_table *table, const struct kymo__work_set *set,
                              const struct kymo__idle *idle)
{
    for (size_t d = 0; d < idle->n_devices; d++)
        for (size_t i = 0; i < idle->devices[d].n_rows; i++) {
            const struct kymo__idle_row *row = &idle->devices[d].rows[i];
            put_device(table, set->process, &idle->devices[d]);
            kymo__put_string(table, kymo__idle_words[row->reason].id);
            if (row->name == KYMO__NO_NAME)
                kymo_table_null(table);
            else
                kymo_table_text(table, idle->names.names[row->name].text,
                                idle->names.names[row->name].len);
            kymo_table_u64(table, row->count);
            kymo_table_u64(table, row->ns);
        }
}

void kymo__idle_put_steps(kymo_table *table, const struct kymo__work_set *set,
                          const struct kymo__idle *idle)
{
    for (size_t d = 0; d < idle->n_devices; d++)
        for (size_t s = 0; s < idle->n_steps; s++)
            for (size_t i = 0; i < KYMO__N_IDLE_REASONS; i++) {
                const uint64_t ns = idle->devices[d].step_ns[s * KYMO__N_IDLE_REASONS + i];
                if (ns == 0)
                    continue;
                put_device(table, set->process, &idle->devices[d]);
                kymo_table_u64(table, set->steps[s].number);
                kymo__put_string(table, kymo__idle_words[i].id);
                kymo_table_u64(table, ns);
            }
}
