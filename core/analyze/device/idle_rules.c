/* The words for reasons, and which ranges tell one: by rules of the class "idle:" and a reason. */
#include <string.h>

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
