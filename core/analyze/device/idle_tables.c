/* Reasons of idle time: names, rules, tables. */
#include "analyze/device/internal.h"

const struct marey__idle_words marey__idle_words[MAREY__N_IDLE_REASONS] = {
    [MAREY__IDLE_HOST] = {"host_bound", "host-bound"},
    [MAREY__IDLE_DATA] = {"data_loading", "data loading"},
    [MAREY__IDLE_SYNCHRONISE] = {"synchronise", "synchronise"},
    [MAREY__IDLE_ALLOCATE] = {"allocation", "allocation"},
    [MAREY__IDLE_OPTIMIZER] = {"optimizer", "optimizer"},
    [MAREY__IDLE_COMMUNICATE] = {"host_communication", "communication of the host"},
    [MAREY__IDLE_LOAD] = {"code_loading", "loading code"},
    [MAREY__IDLE_PROFILER] = {"profiler", "the profiler itself"},
    [MAREY__IDLE_WAIT] = {"wait", "waiting"},
    [MAREY__IDLE_LATENCY] = {"launch_latency", "launch latency"},
    [MAREY__IDLE_LAUNCH_CALL] = {"launch_call", "in a long launch call"},
    [MAREY__IDLE_KERNEL_GAP] = {"kernel_gap", "between kernels"},
    [MAREY__IDLE_QUEUED] = {"queued", "queued behind something"},
    [MAREY__IDLE_QUEUE_FULL] = {"queue_full", "launch queue full"},
    [MAREY__IDLE_UNKNOWN] = {"unknown", "not known"},
};

uint16_t marey__idle_rule_of(const struct marey__rules *rules, const struct marey_site_info *site)
{
    for (size_t i = 0; i < rules->n_idle; i++) {
        const struct marey__rule *rule = &rules->idle[i];
        if (rule->look == MAREY__LOOK_RANGE
                ? marey__pattern_fits(rule->pattern, site->name, site->name_len)
                : marey__pattern_fits(rule->pattern, site->category, strlen(site->category)))
            return (uint16_t)i;
    }
    return MAREY__NO_IDLE_RULE;
}

bool marey__is_operator(const struct marey_site_info *site)
{
    return !marey__is_runtime_call(site) && strncmp(site->name, "ProfilerStep", 12) != 0;
}

/* ---- tables ---- */

#define DEVICE_COLUMNS NUMBER("rank"), NUMBER("pid"), NUMBER("device")

const struct marey_column marey__idle_columns[MAREY__N_IDLE_COLUMNS] = {
    DEVICE_COLUMNS,
    TEXT("reason"),
    COUNT("count", NULL),
    NS("ns", "time"),
    SHARE("share", "of idle"),
};

const struct marey_column marey__idle_operator_columns[MAREY__N_IDLE_OPERATOR_COLUMNS] = {
    DEVICE_COLUMNS, TEXT("reason"), TEXT("operator"), COUNT("count", NULL), NS("ns", "time"),
};

const struct marey_column marey__idle_step_columns[MAREY__N_IDLE_STEP_COLUMNS] = {
    DEVICE_COLUMNS,
    WHOLE("step"),
    TEXT("reason"),
    NS("ns", "time"),
};

#define DEVICE_OF(set, of) PROCESS_OF((set)->process), I64((of)->device)

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
            MAREY__PUT_ROW(table, DEVICE_OF(set, device), STRING(marey__idle_words[order[i]].id),
                           U64(device->count[order[i]]), U64(device->ns[order[i]]),
                           RATIO(device->ns[order[i]], sum));
        }
    }
}

void marey__idle_put_operators(marey_table *table, const struct marey__work_set *set,
                               const struct marey__idle *idle)
{
    for (size_t d = 0; d < idle->n_devices; d++)
        for (size_t i = 0; i < idle->devices[d].n_rows; i++) {
            const struct marey__idle_row *row = &idle->devices[d].rows[i];
            const struct marey__name *const name =
                row->name != MAREY__NO_NAME ? &idle->names.names[row->name] : NULL;
            MAREY__PUT_ROW(table, DEVICE_OF(set, &idle->devices[d]),
                           STRING(marey__idle_words[row->reason].id),
                           KNOWN(name != NULL, STRING_N(name->text, name->len)), U64(row->count),
                           U64(row->ns));
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
                MAREY__PUT_ROW(table, DEVICE_OF(set, &idle->devices[d]), U64(set->steps[s].number),
                               STRING(marey__idle_words[i].id), U64(ns));
            }
}
