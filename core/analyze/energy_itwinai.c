/*
 * The rows of itwinai's files of GPU power and of epoch times. Its power is a reading each second; here it is the mean of
 * each second, so that power times interval, added up, is the energy that was measured.
 */
#include <string.h>

#include "analyze/energy_whole.h"

static const uint64_t interval_ns = 1000000000;
enum { MAX_READINGS = 100 * 24 * 3600 };

/* The first two say which file a row goes to; the rest are its columns. */
static const struct kymo_column gpu_columns[] = {
    {"run", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    {"run_id", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"sample_idx", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    KYMO__NUMBER_COLUMN("utilization", NULL),
    KYMO__NUMBER_COLUMN("power", NULL),
    {"local_rank", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    {"node_idx", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    {"num_global_gpus", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    {"strategy", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"probing_interval", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
};
static const struct kymo_column epoch_columns[] = {
    {"run", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    {"run_id", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"epoch_id", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    KYMO__NUMBER_COLUMN("time", NULL),
    {"name", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"nodes", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
};

static bool is_gpu_of(const struct kymo__energy_target *target, uint32_t run)
{
    return target->run == run && target->kind == KYMO__OF_GPU && target->n_users != 0;
}

/* A GPU's place on its host, and the host's among those of the run. */
struct place {
    uint64_t local_rank, node, n_gpus;
};

/* The hosts of a run, numbered as they come, and how many of the GPUs of each were met. */
struct hosts {
    struct kymo__names names;
    uint64_t *n_gpus;
    size_t cap;
};

static bool find_place(struct hosts *hosts, const char *host, struct place *place)
{
    const size_t n = hosts->names.n;
    const uint32_t number = kymo__names_number(&hosts->names, host, strlen(host));
    if (number == KYMO__NO_NAME ||
        !kymo__grow(&hosts->n_gpus, &hosts->cap, hosts->names.n, sizeof *hosts->n_gpus))
        return false;
    if (number == n)
        hosts->n_gpus[number] = 0;
    place->node = number;
    place->local_rank = hosts->n_gpus[number]++;
    return true;
}

static void put_whose(const struct kymo_energy_report *report, kymo_table *table, uint32_t run)
{
    kymo_table_u64(table, run + 1);
    kymo__put_string(table, report->runs.list[run].id);
}

static void put_gpu(const struct kymo_energy_report *report, kymo_table *table,
                    const struct kymo__energy_target *target, const struct kymo__interval *window,
                    const struct place *place)
{
    for (uint64_t i = 0, at = window->begin_ns; at < window->end_ns; i++, at += interval_ns) {
        struct kymo__interval part = {at, KYMO__MIN(at + interval_ns, window->end_ns)};
        const struct kymo__time_set set = {.parts = &part, .n = 1};
        struct kymo__energy_sum sum;
        kymo__meter_measure(&report->meters[target->meter], &set, &sum);
        put_whose(report, table, target->run);
        kymo_table_u64(table, i);
        if (sum.weight[KYMO__UTILIZATION] > 0)
            kymo_table_f64(table, sum.weighted[KYMO__UTILIZATION] / sum.weight[KYMO__UTILIZATION]);
        else
            kymo_table_null(table);
        kymo_table_f64(table, sum.joules / ((double)interval_ns * 1e-9));
        kymo_table_u64(table, place->local_rank);
        kymo_table_u64(table, place->node);
        kymo_table_u64(table, place->n_gpus);
        kymo__put_string(table, report->options.strategy);
        kymo_table_u64(table, interval_ns / 1000000000);
    }
}

static uint64_t count_hosts(const struct kymo_energy_report *report, uint32_t run)
{
    uint64_t n = 0;
    for (size_t i = 0; i < report->n_members; i++) {
        bool is_first = report->members[i].run == run;
        for (size_t j = 0; j < i; j++)
            is_first &= report->members[j].run != run ||
                        strcmp(report->members[j].host, report->members[i].host) != 0;
        n += is_first;
    }
    return n;
}

/* An epoch's time is that of the first rank that tells it, as upstream has it. */
static void put_epoch(const struct kymo_energy_report *report, kymo_table *table,
                      const struct kymo__energy_section *section)
{
    const struct kymo__energy_window *first = section->windows[0];
    for (size_t i = 1; i < section->n; i++)
        if ((uint32_t)report->members[section->windows[i]->member].rank <
            (uint32_t)report->members[first->member].rank)
            first = section->windows[i];
    put_whose(report, table, section->run);
    kymo_table_u64(table, section->key);
    kymo_table_f64(table, (double)kymo__intervals_length(first->set.parts, first->set.n) * 1e-9);
    kymo__put_string(table, report->options.strategy);
    kymo_table_u64(table, count_hosts(report, section->run));
}

/* From the first begin of a window whose member uses the GPU to the last end. */
static struct kymo__interval find_window(const struct kymo__energy_target *target,
                                         const struct kymo__energy_section *section)
{
    struct kymo__interval window = {UINT64_MAX, 0};
    for (size_t i = 0; i < section->n; i++) {
        const struct kymo__time_set *set = &section->windows[i]->set;
        if (set->n == 0 || !target->users[section->windows[i]->member])
            continue;
        window.begin_ns = KYMO__MIN(window.begin_ns, set->parts[0].begin_ns);
        window.end_ns = KYMO__MAX(window.end_ns, set->parts[set->n - 1].end_ns);
    }
    return window;
}

/* The GPUs of a run. False without memory. */
static bool put_gpus(const struct kymo_energy_report *report,
                     const struct kymo__energy_section *section)
{
    struct hosts hosts = {0};
    struct place place = {0};
    bool is_done = true;
    for (size_t i = 0; i < report->n_targets; i++)
        place.n_gpus += is_gpu_of(&report->targets[i], section->run);
    for (size_t i = 0; is_done && i < report->n_targets; i++) {
        const struct kymo__energy_target *target = &report->targets[i];
        if (!is_gpu_of(target, section->run))
            continue;
        const struct kymo__interval window = find_window(target, section);
        is_done = find_place(&hosts, target->host, &place);
        if (is_done)
            put_gpu(report, report->tables[KYMO__JOULES_GPU_DATA], target, &window, &place);
    }
    kymo__names_fini(&hosts.names);
    kymo__free(hosts.n_gpus);
    return is_done;
}

kymo_status kymo__energy_make_itwinai(struct kymo_energy_report *report)
{
    struct kymo__energy_sections sections = {0};
    KYMO_TRY(kymo_table_create("gpu_energy_data", gpu_columns, KYMO__COUNT_OF(gpu_columns),
                               &report->tables[KYMO__JOULES_GPU_DATA]));
    KYMO_TRY(kymo_table_create("epoch_time", epoch_columns, KYMO__COUNT_OF(epoch_columns),
                               &report->tables[KYMO__JOULES_EPOCH_TIME]));
    bool is_done = kymo__energy_sections_make(&sections, report), is_too_long = false;
    for (size_t i = 0; is_done && i < sections.n; i++)
        is_too_long |= sections.sections[i].longest_ns / interval_ns > MAX_READINGS;
    for (size_t i = 0; is_done && !is_too_long && i < sections.n; i++)
        if (sections.sections[i].by == KYMO__ENERGY_EPOCH)
            put_epoch(report, report->tables[KYMO__JOULES_EPOCH_TIME], &sections.sections[i]);
        else if (sections.sections[i].by == KYMO__ENERGY_RUN)
            is_done = put_gpus(report, &sections.sections[i]);
    kymo__energy_sections_fini(&sections);
    if (is_too_long)
        return kymo__fail(KYMO_EFORMAT,
                          "%s lasts for more than a hundred days: too long for a reading each "
                          "second, as itwinai's files have it",
                          report->title);
    if (!is_done)
        return kymo__fail(KYMO_ENOMEM, "no memory for energy");
    KYMO_TRY(kymo_table_status(report->tables[KYMO__JOULES_GPU_DATA]));
    return kymo_table_status(report->tables[KYMO__JOULES_EPOCH_TIME]);
}
