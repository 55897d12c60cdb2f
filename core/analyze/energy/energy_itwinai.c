/*
 * The rows of itwinai's files of GPU power and of epoch times. Its power is a reading each second; here it is the mean of
 * each second, so that power times interval, added up, is the energy that was measured.
 */
#include <string.h>

#include "analyze/energy/energy_whole.h"

static const uint64_t interval_ns = 1000000000;
enum { MAX_READINGS = 100 * 24 * 3600 };

/* The first two say which file a row goes to; the rest are its columns. */
static const struct marey_column gpu_columns[] = {
    {"run", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"run_id", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"sample_idx", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    MAREY__NUMBER_COLUMN("utilization", NULL),
    MAREY__NUMBER_COLUMN("power", NULL),
    {"local_rank", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"node_idx", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"num_global_gpus", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"strategy", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"probing_interval", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
};
static const struct marey_column epoch_columns[] = {
    {"run", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"run_id", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"epoch_id", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    MAREY__NUMBER_COLUMN("time", NULL),
    {"name", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"nodes", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
};

static bool is_gpu_of(const struct marey__energy_target *target, uint32_t run)
{
    return target->run == run && target->kind == MAREY__OF_GPU && target->n_users != 0;
}

/* A GPU's place on its host, and the host's among those of the run. */
struct place {
    uint64_t local_rank, node, n_gpus;
};

/* The hosts of a run, numbered as they come, and how many of the GPUs of each were met. */
struct hosts {
    struct marey__names names;
    uint64_t *n_gpus;
    size_t cap;
};

static bool find_place(struct hosts *hosts, const char *host, struct place *place)
{
    const size_t n = hosts->names.n;
    const uint32_t number = marey__names_number(&hosts->names, host, strlen(host));
    if (number == MAREY__NO_NAME ||
        !marey__grow(&hosts->n_gpus, &hosts->cap, hosts->names.n, sizeof *hosts->n_gpus))
        return false;
    if (number == n)
        hosts->n_gpus[number] = 0;
    place->node = number;
    place->local_rank = hosts->n_gpus[number]++;
    return true;
}

static void put_whose(const struct marey_energy_report *report, marey_table *table, uint32_t run)
{
    marey_table_u64(table, run + 1);
    marey__put_string(table, report->runs.list[run].id);
}

static void put_gpu(const struct marey_energy_report *report, marey_table *table,
                    const struct marey__energy_target *target, const struct marey__interval *window,
                    const struct place *place)
{
    for (uint64_t i = 0, at = window->begin_ns; at < window->end_ns; i++, at += interval_ns) {
        struct marey__interval part = {at, MAREY__MIN(at + interval_ns, window->end_ns)};
        const struct marey__time_set set = {.parts = &part, .n = 1};
        struct marey__energy_sum sum;
        marey__meter_measure(&report->meters[target->meter], &set, &sum);
        put_whose(report, table, target->run);
        marey_table_u64(table, i);
        if (sum.weight[MAREY__UTILIZATION] > 0)
            marey_table_f64(table, sum.weighted[MAREY__UTILIZATION] / sum.weight[MAREY__UTILIZATION]);
        else
            marey_table_null(table);
        marey_table_f64(table, sum.joules / ((double)interval_ns * 1e-9));
        marey_table_u64(table, place->local_rank);
        marey_table_u64(table, place->node);
        marey_table_u64(table, place->n_gpus);
        marey__put_string(table, report->options.strategy);
        marey_table_u64(table, interval_ns / 1000000000);
    }
}

static uint64_t count_hosts(const struct marey_energy_report *report, uint32_t run)
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
static void put_epoch(const struct marey_energy_report *report, marey_table *table,
                      const struct marey__energy_section *section)
{
    const struct marey__energy_window *first = section->windows[0];
    for (size_t i = 1; i < section->n; i++)
        if ((uint32_t)report->members[section->windows[i]->member].rank <
            (uint32_t)report->members[first->member].rank)
            first = section->windows[i];
    put_whose(report, table, section->run);
    marey_table_u64(table, section->key);
    marey_table_f64(table, (double)marey__intervals_length(first->set.parts, first->set.n) * 1e-9);
    marey__put_string(table, report->options.strategy);
    marey_table_u64(table, count_hosts(report, section->run));
}

/* From the first begin of a window whose member uses the GPU to the last end. */
static struct marey__interval find_window(const struct marey__energy_target *target,
                                          const struct marey__energy_section *section)
{
    struct marey__interval window = {UINT64_MAX, 0};
    for (size_t i = 0; i < section->n; i++) {
        const struct marey__time_set *set = &section->windows[i]->set;
        if (set->n == 0 || !target->users[section->windows[i]->member])
            continue;
        window.begin_ns = MAREY__MIN(window.begin_ns, set->parts[0].begin_ns);
        window.end_ns = MAREY__MAX(window.end_ns, set->parts[set->n - 1].end_ns);
    }
    return window;
}

/* The GPUs of a run. False without memory. */
static bool put_gpus(const struct marey_energy_report *report,
                     const struct marey__energy_section *section)
{
    struct hosts hosts = {0};
    struct place place = {0};
    bool is_done = true;
    for (size_t i = 0; i < report->n_targets; i++)
        place.n_gpus += is_gpu_of(&report->targets[i], section->run);
    for (size_t i = 0; is_done && i < report->n_targets; i++) {
        const struct marey__energy_target *target = &report->targets[i];
        if (!is_gpu_of(target, section->run))
            continue;
        const struct marey__interval window = find_window(target, section);
        is_done = find_place(&hosts, target->host, &place);
        if (is_done)
            put_gpu(report, report->tables[MAREY__JOULES_GPU_DATA], target, &window, &place);
    }
    marey__names_fini(&hosts.names);
    marey__free(hosts.n_gpus);
    return is_done;
}

marey_status marey__energy_make_itwinai(struct marey_energy_report *report)
{
    struct marey__energy_sections sections = {0};
    MAREY_TRY(marey_table_create("gpu_energy_data", gpu_columns, MAREY__COUNT_OF(gpu_columns),
                                 &report->tables[MAREY__JOULES_GPU_DATA]));
    MAREY_TRY(marey_table_create("epoch_time", epoch_columns, MAREY__COUNT_OF(epoch_columns),
                                 &report->tables[MAREY__JOULES_EPOCH_TIME]));
    bool is_done = marey__energy_sections_make(&sections, report), is_too_long = false;
    for (size_t i = 0; is_done && i < sections.n; i++)
        is_too_long |= sections.sections[i].longest_ns / interval_ns > MAX_READINGS;
    for (size_t i = 0; is_done && !is_too_long && i < sections.n; i++)
        if (sections.sections[i].by == MAREY__ENERGY_EPOCH)
            put_epoch(report, report->tables[MAREY__JOULES_EPOCH_TIME], &sections.sections[i]);
        else if (sections.sections[i].by == MAREY__ENERGY_RUN)
            is_done = put_gpus(report, &sections.sections[i]);
    marey__energy_sections_fini(&sections);
    if (is_too_long)
        return marey__fail(MAREY_EFORMAT,
                           "%s lasts for more than a hundred days: too long for a reading each "
                           "second, as itwinai's files have it",
                           report->title);
    MAREY__TRY_MEMORY(is_done);
    MAREY_TRY(marey_table_status(report->tables[MAREY__JOULES_GPU_DATA]));
    return marey_table_status(report->tables[MAREY__JOULES_EPOCH_TIME]);
}
