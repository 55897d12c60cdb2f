/* The report of energy: reads recordings, prepares meters, assigns devices to ranks, and makes tables. */
#include "analyze/energy/internal.h"

/* ---- availability ---- */

static bool has_meter(const marey_recording *recording, size_t process)
{
    const struct marey_process *info = marey_recording_process(recording, process);
    for (uint32_t site = 1; site <= info->n_sites; site++) {
        const struct marey_site_info *s = marey_recording_site(recording, process, site);
        const char *bar = strcmp(s->category, "energy") == 0 ? strchr(s->domain, '|') : NULL;
        if (bar != NULL && (marey__quantity_find(bar + 1) == MAREY__POWER ||
                            marey__quantity_find(bar + 1) == MAREY__ENERGY))
            return true;
    }
    return false;
}

static bool is_there(marey_recording *const *recordings, size_t n, const marey_report *ranges)
{
    (void)ranges;
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < marey_recording_n_logs(recordings[r]); p++)
            if (has_meter(recordings[r], p))
                return true;
    return false;
}

/* ---- making ---- */

static double number_of(const struct marey__request *request, const char *setting, double otherwise)
{
    const char *const value = marey__setting(request, setting);
    return value != NULL ? strtod(value, NULL) : otherwise;
}

static marey_status check(const struct marey__request *request)
{
    return number_of(request, "pue", 1) >= 1
               ? MAREY_OK
               : marey__fail(MAREY_EINVAL, "pue takes a number of 1 or more, not '%s'",
                             marey__setting(request, "pue"));
}

/* A process that measured for its host may end before the others, and another one continues. */
static bool join_meters(struct marey__energy_report *report)
{
    for (size_t i = 0; i < report->n_meters; i++)
        for (size_t j = 0; j < report->n_meters; j++)
            if (i != j && marey__meter_is_later(&report->meters[i], &report->meters[j]) &&
                !marey__meter_append(&report->meters[i], &report->meters[j]))
                return false;
    return true;
}

static marey_status read_all(struct marey__energy_report *report, const struct marey__request *request)
{
    for (size_t i = 0; i < request->n; i++) {
        MAREY_TRY(marey__energy_read(report, request->recordings[i]));
        marey__report_progress(request, (double)(i + 1) / (double)request->n);
    }
    MAREY__TRY_MEMORY(join_meters(report));
    for (size_t i = 0; i < report->n_meters; i++)
        MAREY__TRY_MEMORY(marey__meter_prepare(&report->meters[i]));
    return MAREY_OK;
}

static bool has_readings(const struct marey__energy_report *report)
{
    for (size_t i = 0; i < report->n_meters; i++)
        if (report->meters[i].of[MAREY__POWER].n != 0 || report->meters[i].of[MAREY__ENERGY].n != 0)
            return true;
    return false;
}

/* Add a member's time outside all phases as another phase. */
static bool add_no_phase(struct marey__energy_report *report, uint32_t member, uint32_t key,
                         struct marey__time_set *phases)
{
    if (phases->n == 0)
        return true;
    if (!marey__time_set_settle(phases) ||
        marey__energy_window(report, member, MAREY__ENERGY_PHASE, key) == NULL)
        return false;
    /* Create both before taking pointers, because creating moves them. */
    struct marey__energy_window *none =
                                    marey__energy_window(report, member, MAREY__ENERGY_PHASE, key),
                                *run = marey__energy_window(report, member, MAREY__ENERGY_RUN, 0);
    return none != NULL && run != NULL && marey__time_set_add_between(&none->set, &run->set, phases);
}

static bool add_no_phases(struct marey__energy_report *report)
{
    struct marey__time_set *const sets = marey__calloc(report->n_members + 1, sizeof *sets);
    static const char name[] = "(no phase)";
    const uint32_t key = marey__names_number(&report->names, name, sizeof name - 1);
    bool is_done = sets != NULL && key != MAREY__NO_NAME, is_too_many = false;
    for (size_t i = 0; is_done && i < report->n_windows; i++)
        if (report->windows[i].by == MAREY__ENERGY_PHASE)
            is_done =
                marey__time_set_unite(&sets[report->windows[i].member], &report->windows[i].set);
    for (uint32_t i = 0; is_done && i < report->n_members; i++)
        is_done = add_no_phase(report, i, key, &sets[i]);
    for (size_t i = 0; is_done && i < report->n_windows; i++)
        is_too_many |= report->windows[i].by == MAREY__ENERGY_PHASE && report->windows[i].is_too_many;
    for (size_t i = 0; is_done && i < report->n_windows; i++)
        report->windows[i].is_too_many |= is_too_many &&
                                          report->windows[i].by == MAREY__ENERGY_PHASE &&
                                          report->windows[i].key == key;
    for (size_t i = 0; sets != NULL && i < report->n_members; i++)
        marey__time_set_fini(&sets[i]);
    marey__free(sets);
    return is_done;
}

static void fini(struct marey__energy_report *report)
{
    for (size_t i = 0; i < report->n_meters; i++)
        marey__meter_fini(&report->meters[i]);
    for (size_t i = 0; i < report->n_windows; i++)
        marey__time_set_fini(&report->windows[i].set);
    for (size_t i = 0; i < report->n_targets; i++)
        marey__free(report->targets[i].users);
    MAREY__FREE_ALL(report->meters, report->windows, report->targets, report->runs.list,
                    report->members, report->iterations);
    marey__key_map_fini(&report->by_id);
    marey__names_fini(&report->names);
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    struct marey__energy_report energy MAREY__FINALLY(fini) = {
        .tables = report->tables,
        .filter = marey__setting(request, "filter"),
        .wanted_group = marey__setting_count(request, "group"),
        .co2_g_per_kwh = number_of(request, "co2", 0),
        .pue = number_of(request, "pue", 1)};
    if (is_there(request->recordings, request->n, NULL))
        MAREY_TRY(read_all(&energy, request));
    if (!has_readings(&energy))
        return marey__report_missing(report);
    marey__energy_order_runs(&energy);
    MAREY__TRY_MEMORY(marey__energy_find_users(&energy) && marey__energy_group_iterations(&energy));
    for (size_t i = 0; i < energy.n_windows; i++)
        MAREY__TRY_MEMORY(marey__time_set_settle(&energy.windows[i].set));
    MAREY__TRY_MEMORY(add_no_phases(&energy) && marey__energy_put_tables(&energy) &&
                      marey__energy_put_notes(&energy));
    return MAREY_OK;
}

/* ---- registry entry ---- */

static const struct marey_setting settings[] = {
    {"group", MAREY_SETTING_COUNT, "N",
     "N iterations in a row (default: as many as take ten times as\n"
     "long as readings take to change)"},
    {"co2", MAREY_SETTING_NUMBER, "G_PER_KWH", "grams of CO2, at so many for a kWh"},
    {"pue", MAREY_SETTING_NUMBER, "X",
     "with --co2: power usage effectiveness of the data center\n(default: 1)"},
    {"filter", MAREY_SETTING_TEXT, "PATTERN", "only ranges whose name matches", 'f'},
    {"write-itwinai", MAREY_SETTING_TEXT, "DIR", "power and epoch times as itwinai 0.3 wrote them",
     .python = "power"},
    {"strategy", MAREY_SETTING_TEXT, "NAME",
     "with --write-itwinai: the value of its column of that name\n(default: unknown)",
     .python = "power"},
};

/* The summary has tables of the same names. */
static const struct marey__page_table page_tables[] = {{"runs", "energy of runs"},
                                                       {"devices", "energy of devices"},
                                                       {"epochs", "energy of epochs"},
                                                       {"iterations", "energy of iterations"},
                                                       {"phases", "energy of phases"},
                                                       {"ranges", "energy of ranges"},
                                                       {"repeats", "energy of repeats"},
                                                       {"notes", "energy notes"},
                                                       {0}};

const struct marey__analysis marey__analysis_energy = {
    .about = {.name = "energy",
              .help = "joules, watts and utilization of runs, devices, epochs, ranges",
              .needs = "'marey run --energy' records it, and 'marey doctor' reports what can be "
                       "measured here",
              .examples =
                  "  marey report train.marey --energy --by epoch what an epoch takes in joules\n"
                  "  marey report --energy scalability-metrics/   joules by files of itwinai 0.3",
              MAREY__SETTINGS(settings),
              MAREY__TABLES(marey__energy_tables),
              .csv = "runs",
              .option = "energy",
              .python = "energy",
              .adds_lines = 1},
    .check = check,
    .make = make,
    .text = marey__energy_text,
    .draws_tables = true,
    .is_there = is_there,
    .page = page_tables,
    .page_setting = "filter",
};
