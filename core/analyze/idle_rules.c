/* The words for reasons, and which ranges tell one: by rules of the class "idle:" and a reason. */
#include <string.h>

#include "analyze/idle.h"

const struct kymo__idle_words kymo__idle_words[KYMO__N_IDLE_REASONS] = {
    [KYMO__IDLE_HOST] = {"host_bound", "host-bound"},
    [KYMO__IDLE_DATA] = {"data_loading", "data loading"},
    [KYMO__IDLE_SYNCHRONISE] = {"synchronise", "synchronise"},
    [KYMO__IDLE_ALLOCATE] = {"allocation", "allocation"},
    [KYMO__IDLE_OPTIMIZER] = {"optimizer", "optimizer"},
    [KYMO__IDLE_COMMUNICATE] = {"host_communication", "communication of the host"},
    [KYMO__IDLE_LOAD] = {"code_loading", "loading code"},
    [KYMO__IDLE_PROFILER] = {"profiler", "the profiler itself"},
    [KYMO__IDLE_WAIT] = {"wait", "waiting"},
    [KYMO__IDLE_LATENCY] = {"launch_latency", "launch latency"},
    [KYMO__IDLE_LAUNCH_CALL] = {"launch_call", "in a long launch call"},
    [KYMO__IDLE_KERNEL_GAP] = {"kernel_gap", "between kernels"},
    [KYMO__IDLE_QUEUED] = {"queued", "queued behind something"},
    [KYMO__IDLE_QUEUE_FULL] = {"queue_full", "launch queue full"},
    [KYMO__IDLE_UNKNOWN] = {"unknown", "not known"},
};

uint16_t kymo__idle_rule_of(const struct kymo__rules *rules, const struct kymo_site_info *site)
{
    for (size_t i = 0; i < rules->n_idle; i++) {
        const struct kymo__rule *rule = &rules->idle[i];
        if (rule->look == KYMO__LOOK_RANGE
                ? kymo__pattern_fits(rule->pattern, site->name, site->name_len)
                : kymo__pattern_fits(rule->pattern, site->category, strlen(site->category)))
            return (uint16_t)i;
    }
    return KYMO__NO_IDLE_RULE;
}

bool kymo__is_operator(const struct kymo_site_info *site)
{
    return !kymo__is_runtime_call(site) && strncmp(site->name, "ProfilerStep", 12) != 0;
}
