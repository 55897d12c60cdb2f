/* Joules as a whole: recordings are read, meters made ready, devices given to ranks, and tables made. */
#include <math.h>
#include <string.h>

#include "analyze/energy/internal.h"

/* ---- whether there is anything ---- */

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

int marey_energy_is_there(marey_recording *const *recordings, size_t n)
{
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < marey_recording_n_logs(recordings[r]); p++)
            if (has_meter(recordings[r], p))
                return 1;
    return 0;
}

/* ---- making ---- */

static marey_status take_options(struct marey_energy_report *report,
                                 const struct marey_energy_report_options *options)
{
    report->options = *options;
    if (!(isfinite(options->co2_g_per_kwh) && options->co2_g_per_kwh >= 0))
        return marey__fail(MAREY_EINVAL, "grams of CO2 for a kWh must be 0 or more, and not %g",
                           options->co2_g_per_kwh);
    if (options->pue != 0 && !(isfinite(options->pue) && options->pue >= 1))
        return marey__fail(MAREY_EINVAL,
                           "a PUE is what a building takes for each watt of its machines: 1 or "
                           "more, and not %g",
                           options->pue);
    return MAREY_OK;
}

/* A process that measured for its host may end before the others, and another goes on. */
static bool join_meters(struct marey_energy_report *report)
{
    for (size_t i = 0; i < report->n_meters; i++)
        for (size_t j = 0; j < report->n_meters; j++)
            if (i != j && marey__meter_is_later(&report->meters[i], &report->meters[j]) &&
                !marey__meter_append(&report->meters[i], &report->meters[j]))
                return false;
    return true;
}

static marey_status read_all(struct marey_energy_report *report, marey_recording *const *recordings,
                             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        MAREY_TRY(marey__energy_read(report, recordings[i]));
        if (report->options.progress != NULL)
            report->options.progress(report->options.progress_ctx, (double)(i + 1) / (double)n);
    }
    MAREY__TRY_MEMORY(join_meters(report));
    for (size_t i = 0; i < report->n_meters; i++)
        MAREY__TRY_MEMORY(marey__meter_prepare(&report->meters[i]));
    return MAREY_OK;
}

static bool has_readings(const struct marey_energy_report *report)
{
    for (size_t i = 0; i < report->n_meters; i++)
        if (report->meters[i].of[MAREY__POWER].n != 0 || report->meters[i].of[MAREY__ENERGY].n != 0)
            return true;
    return false;
}

/* A member's time in no phase, as one more phase. */
static bool add_no_phase(struct marey_energy_report *report, uint32_t member, uint32_t key,
                         struct marey__time_set *phases)
{
    if (phases->n == 0)
        return true;
    if (!marey__time_set_settle(phases) ||
        marey__energy_window(report, member, MAREY__ENERGY_PHASE, key) == NULL)
        return false;
    /* Both are there now, so that neither moves. */
    struct marey__energy_window *none =
                                    marey__energy_window(report, member, MAREY__ENERGY_PHASE, key),
                                *run = marey__energy_window(report, member, MAREY__ENERGY_RUN, 0);
    return none != NULL && run != NULL && marey__time_set_add_between(&none->set, &run->set, phases);
}

static bool add_no_phases(struct marey_energy_report *report)
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

static marey_status make(struct marey_energy_report *report, marey_recording *const *recordings,
                         size_t n, const struct marey_energy_report_options *options)
{
    MAREY_TRY(take_options(report, options));
    report->title = marey__recordings_title(recordings, n);
    MAREY__TRY_MEMORY(report->title != NULL);
    if (marey_energy_is_there(recordings, n))
        MAREY_TRY(read_all(report, recordings, n));
    if (!has_readings(report))
        return marey__fail(MAREY_EFORMAT,
                           "%s has no energy in it: 'marey run --energy' records it, and 'marey "
                           "doctor' says what can be measured here",
                           report->title);
    marey__energy_order_runs(report);
    MAREY__TRY_MEMORY(marey__energy_find_users(report) && marey__energy_group_iterations(report));
    for (size_t i = 0; i < report->n_windows; i++)
        MAREY__TRY_MEMORY(marey__time_set_settle(&report->windows[i].set));
    MAREY__TRY_MEMORY(add_no_phases(report));
    MAREY_TRY(marey__energy_make_tables(report));
    return marey__energy_make_notes(report);
}

/* What was only needed to make the tables. */
static void free_making(struct marey_energy_report *report)
{
    for (size_t i = 0; i < report->n_meters; i++)
        marey__meter_fini(&report->meters[i]);
    for (size_t i = 0; i < report->n_windows; i++)
        marey__time_set_fini(&report->windows[i].set);
    for (size_t i = 0; i < report->n_targets; i++)
        marey__free(report->targets[i].users);
    marey__free(report->meters);
    marey__free(report->windows);
    marey__free(report->targets);
    marey__free(report->runs.list);
    marey__free(report->members);
    marey__free(report->iterations);
    marey__names_fini(&report->window_keys);
    marey__names_fini(&report->names);
    marey__arena_fini(&report->texts);
}

marey_status marey_energy_report_create(marey_recording *const *recordings, size_t n,
                                        const struct marey_energy_report_options *options,
                                        marey_energy_report **out)
{
    static const struct marey_energy_report_options defaults;
    marey_energy_report *report = marey__calloc(1, sizeof *report);
    MAREY__TRY_MEMORY(report != NULL);
    const marey_status status = make(report, recordings, n, options != NULL ? options : &defaults);
    free_making(report);
    if (status != MAREY_OK) {
        marey_energy_report_destroy(report);
        return status;
    }
    *out = report;
    return MAREY_OK;
}

void marey_energy_report_destroy(marey_energy_report *report)
{
    if (report == NULL)
        return;
    for (size_t i = 0; i < MAREY__N_JOULES; i++)
        marey_table_destroy(report->tables[i]);
    marey__free(report->title);
    marey__free(report);
}

marey_table *marey_energy_report_table(marey_energy_report *report, const char *name)
{
    for (size_t i = 0; i < MAREY__N_JOULES; i++)
        if (report->tables[i] != NULL && strcmp(marey_table_name(report->tables[i]), name) == 0)
            return report->tables[i];
    return NULL;
}
