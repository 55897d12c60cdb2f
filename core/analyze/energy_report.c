/* Joules as a whole: recordings are read, meters made ready, devices given to ranks, and tables made. */
#include <math.h>
#include <string.h>

#include "analyze/energy_whole.h"

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for energy");
}

/* ---- whether there is anything ---- */

static bool has_meter(const kymo_recording *recording, size_t process)
{
    const struct kymo_process *info = kymo_recording_process(recording, process);
    for (uint32_t site = 1; site <= info->n_sites; site++) {
        const struct kymo_site_info *s = kymo_recording_site(recording, process, site);
        const char *bar = strcmp(s->category, "energy") == 0 ? strchr(s->domain, '|') : NULL;
        if (bar != NULL && (kymo__quantity_find(bar + 1) == KYMO__POWER ||
                            kymo__quantity_find(bar + 1) == KYMO__ENERGY))
            return true;
    }
    return false;
}

int kymo_energy_is_there(kymo_recording *const *recordings, size_t n)
{
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < kymo_recording_n_logs(recordings[r]); p++)
            if (has_meter(recordings[r], p))
                return 1;
    return 0;
}

/* ---- making ---- */

static kymo_status take_options(struct kymo_energy_report *report,
                                const struct kymo_energy_report_options *options)
{
    report->options = *options;
    if (!(isfinite(options->co2_g_per_kwh) && options->co2_g_per_kwh >= 0))
        return kymo__fail(KYMO_EINVAL, "grams of CO2 for a kWh must be 0 or more, and not %g",
                          options->co2_g_per_kwh);
    if (options->pue != 0 && !(isfinite(options->pue) && options->pue >= 1))
        return kymo__fail(KYMO_EINVAL,
                          "a PUE is what a building takes for each watt of its machines: 1 or "
                          "more, and not %g",
                          options->pue);
    return KYMO_OK;
}

/* A process that measured for its host may end before the others, and another goes on. */
static bool join_meters(struct kymo_energy_report *report)
{
    for (size_t i = 0; i < report->n_meters; i++)
        for (size_t j = 0; j < report->n_meters; j++)
            if (i != j && kymo__meter_is_later(&report->meters[i], &report->meters[j]) &&
                !kymo__meter_append(&report->meters[i], &report->meters[j]))
                return false;
    return true;
}

static kymo_status read_all(struct kymo_energy_report *report, kymo_recording *const *recordings,
                            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        KYMO_TRY(kymo__energy_read(report, recordings[i]));
        if (report->options.progress != NULL)
            report->options.progress(report->options.progress_ctx, (double)(i + 1) / (double)n);
    }
    if (!join_meters(report))
        return no_memory();
    for (size_t i = 0; i < report->n_meters; i++)
        if (!kymo__meter_prepare(&report->meters[i]))
            return no_memory();
    return KYMO_OK;
}

static bool has_readings(const struct kymo_energy_report *report)
{
    for (size_t i = 0; i < report->n_meters; i++)
        if (report->meters[i].of[KYMO__POWER].n != 0 || report->meters[i].of[KYMO__ENERGY].n != 0)
            return true;
    return false;
}

/* A member's time in no phase, as one more phase. */
static bool add_no_phase(struct kymo_energy_report *report, uint32_t member, uint32_t key,
                         struct kymo__time_set *phases)
{
    if (phases->n == 0)
        return true;
    if (!kymo__time_set_settle(phases) ||
        kymo__energy_window(report, member, KYMO__ENERGY_PHASE, key) == NULL)
        return false;
    /* Both are there now, so that neither moves. */
    struct kymo__energy_window *none = kymo__energy_window(report, member, KYMO__ENERGY_PHASE, key),
                               *run = kymo__energy_window(report, member, KYMO__ENERGY_RUN, 0);
    return none != NULL && run != NULL && kymo__time_set_add_between(&none->set, &run->set, phases);
}

static bool add_no_phases(struct kymo_energy_report *report)
{
    struct kymo__time_set *const sets = kymo__calloc(report->n_members + 1, sizeof *sets);
    static const char name[] = "(no phase)";
    const uint32_t key = kymo__names_number(&report->names, name, sizeof name - 1);
    bool is_done = sets != NULL && key != KYMO__NO_NAME, is_too_many = false;
    for (size_t i = 0; is_done && i < report->n_windows; i++)
        if (report->windows[i].by == KYMO__ENERGY_PHASE)
            is_done = kymo__time_set_unite(&sets[report->windows[i].member], &report->windows[i].set);
    for (uint32_t i = 0; is_done && i < report->n_members; i++)
        is_done = add_no_phase(report, i, key, &sets[i]);
    for (size_t i = 0; is_done && i < report->n_windows; i++)
        is_too_many |= report->windows[i].by == KYMO__ENERGY_PHASE && report->windows[i].is_too_many;
    for (size_t i = 0; is_done && i < report->n_windows; i++)
        report->windows[i].is_too_many |= is_too_many &&
                                          report->windows[i].by == KYMO__ENERGY_PHASE &&
                                          report->windows[i].key == key;
    for (size_t i = 0; sets != NULL && i < report->n_members; i++)
        kymo__time_set_fini(&sets[i]);
    kymo__free(sets);
    return is_done;
}

static kymo_status make(struct kymo_energy_report *report, kymo_recording *const *recordings,
                        size_t n, const struct kymo_energy_report_options *options)
{
    KYMO_TRY(take_options(report, options));
    report->title = kymo__recordings_title(recordings, n);
    if (report->title == NULL)
        return no_memory();
    if (kymo_energy_is_there(recordings, n))
        KYMO_TRY(read_all(report, recordings, n));
    if (!has_readings(report))
        return kymo__fail(KYMO_EFORMAT,
                          "%s has no energy in it: 'kymo run --energy' records it, and 'kymo "
                          "doctor' says what can be measured here",
                          report->title);
    kymo__energy_order_runs(report);
    if (!kymo__energy_find_users(report) || !kymo__energy_group_iterations(report))
        return no_memory();
    for (size_t i = 0; i < report->n_windows; i++)
        if (!kymo__time_set_settle(&report->windows[i].set))
            return no_memory();
    if (!add_no_phases(report))
        return no_memory();
    KYMO_TRY(kymo__energy_make_tables(report));
    if (options->strategy != NULL)
        KYMO_TRY(kymo__energy_make_itwinai(report));
    return kymo__energy_make_notes(report);
}

/* What was only needed to make the tables. */
static void free_making(struct kymo_energy_report *report)
{
    for (size_t i = 0; i < report->n_meters; i++)
        kymo__meter_fini(&report->meters[i]);
    for (size_t i = 0; i < report->n_windows; i++)
        kymo__time_set_fini(&report->windows[i].set);
    for (size_t i = 0; i < report->n_targets; i++)
        kymo__free(report->targets[i].users);
    kymo__free(report->meters);
    kymo__free(report->windows);
    kymo__free(report->targets);
    kymo__free(report->runs.list);
    kymo__free(report->members);
    kymo__free(report->iterations);
    kymo__names_fini(&report->window_keys);
    kymo__names_fini(&report->names);
    kymo__arena_fini(&report->texts);
}

kymo_status kymo_energy_report_create(kymo_recording *const *recordings, size_t n,
                                      const struct kymo_energy_report_options *options,
                                      kymo_energy_report **out)
{
    static const struct kymo_energy_report_options defaults;
    kymo_energy_report *report = kymo__calloc(1, sizeof *report);
    if (report == NULL)
        return no_memory();
    const kymo_status status = make(report, recordings, n, options != NULL ? options : &defaults);
    free_making(report);
    if (status != KYMO_OK) {
        kymo_energy_report_destroy(report);
        return status;
    }
    *out = report;
    return KYMO_OK;
}

void kymo_energy_report_destroy(kymo_energy_report *report)
{
    if (report == NULL)
        return;
    for (size_t i = 0; i < KYMO__N_JOULES; i++)
        kymo_table_destroy(report->tables[i]);
    kymo__free(report->title);
    kymo__free(report);
}

kymo_table *kymo_energy_report_table(kymo_energy_report *report, const char *name)
{
    for (size_t i = 0; i < KYMO__N_JOULES; i++)
        if (report->tables[i] != NULL && strcmp(kymo_table_name(report->tables[i]), name) == 0)
            return report->tables[i];
    return NULL;
}
