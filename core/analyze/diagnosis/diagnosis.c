/*
 * The diagnosis: reads facts, applies rules, sorts findings; its entry in the registry of analyses.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

/* In order of precedence: a rule may use the findings of earlier ones. */
static marey__finding_rule *const rules[] = {
    marey__find_memory_leak,     marey__find_cpu_oversubscribed, marey__find_memory_near_limit,
    marey__find_throttled,       marey__find_straggler,          marey__find_exposed_communication,
    marey__find_input_bound,     marey__find_sync_bound,         marey__find_host_bound,
    marey__find_recompilation,   marey__find_logging_in_step,    marey__find_gil_contention,
    marey__find_slow_steps,      marey__find_gc_pauses,          marey__find_hot_function,
    marey__find_lock_contention, marey__find_io_bound,           marey__find_startup_dominates};

/* ---- findings ---- */

static double gain_without(double share)
{
    return 1 / (1 - fmin(fmax(share, 0), 0.999));
}

/*
 * The rest of a step may also become faster: it gets more of the cores, caches and memory
 * bandwidth.
 */
static double leeway(double share)
{
    return 1 / (1 - share / 3 - pow(share, 4) / 3);
}

void marey__finding_set_between(struct marey__finding *f, double least, double most, double error)
{
    f->statement.share = most;
    f->gain_low = gain_without(least - 1.96 * error);
    f->gain_high = f->at_most = gain_without(most + 1.96 * error);
}

void marey__finding_set_share(struct marey__finding *f, double share, double error)
{
    marey__finding_set_between(f, share, share, error);
    f->at_most = f->gain_high = f->at_most * leeway(fmin(share, 1));
}

void marey__finding_set_measured(struct marey__finding *f, double share, double error)
{
    marey__finding_set_share(f, share, error);
    f->at_most = f->gain_high = fmin(f->at_most, 1.1 * gain_without(share) * leeway(fmin(share, 1)));
}

static bool is_worth_it(const struct marey__finding *f)
{
    return f->is_risk || (gain_without(f->statement.share) >= MAREY__GAIN_LEAST &&
                          f->gain_low >= MAREY__GAIN_LOW_LEAST);
}

/* Severe risks, then time, then other risks; by the expected gain, since the upper end is high where little is known. */
static bool is_before(const struct marey__finding *a, const struct marey__finding *b)
{
    if (a->is_risk || b->is_risk)
        return a->is_risk != b->is_risk ? (a->is_risk ? a->is_severe : !b->is_severe)
                                        : a->is_severe && !b->is_severe;
    return a->statement.share > b->statement.share;
}

static void add_finding(struct marey__diagnosis *d, const struct marey__finding *finding)
{
    size_t at = d->n_findings;
    while (at > 0 && is_before(finding, &d->findings[at - 1]))
        at--;
    if (at == MAREY__MAX_FINDINGS)
        return;
    const size_t n = MAREY__MIN(d->n_findings, (size_t)MAREY__MAX_FINDINGS - 1) - at;
    memmove(&d->findings[at + 1], &d->findings[at], n * sizeof *finding);
    d->findings[at] = *finding;
    d->n_findings = at + n + 1;
}

const struct marey__finding *marey__diagnosis_find(const struct marey__diagnosis *d, const char *id)
{
    for (size_t i = 0; i < d->n_findings; i++)
        if (strcmp(d->findings[i].statement.id, id) == 0)
            return &d->findings[i];
    return NULL;
}

static void ask_rules(struct marey__diagnosis *d, bool with_experimental)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(rules); i++) {
        struct marey__finding finding = {.statement.share = -1};
        for (size_t k = 0; k < MAREY__MAX_CAUSES; k++)
            finding.because[k].share = -1;
        if (!rules[i](d, &finding) || !is_worth_it(&finding) ||
            (finding.is_experimental && !with_experimental))
            continue;
        add_finding(d, &finding);
        d->facts.claimed |= finding.claims;
    }
}

/* ---- the verdict ---- */

static const char *time_text(uint64_t ns, char into[32])
{
    return marey_text_number((double)ns, MAREY_UNIT_NS, into, 32);
}

static void put_shares(const struct marey__facts *facts, char *text, size_t size, size_t *len)
{
    bool any = false;
    for (int p = 0; p < MAREY__FACT_PHASES && facts->steady_ns != 0; p++) {
        const double share = (double)facts->phase_ns[p] / (double)facts->steady_ns;
        if (share < 0.005 || (p == MAREY__FACT_OTHER && !any && share > 0.995))
            continue;
        marey__append(text, size, len, "%s%s %.0f %%",
                      any ? ", " : " Of each step: ", marey__fact_phase_names[p], share * 100);
        any = true;
    }
    if (any)
        marey__append(text, size, len, ".");
}

/* A row of the table has a kind of activity and its share. */
static void put_device(const marey_table *device, char *text, size_t size, size_t *len)
{
    const char *before = " GPU: ";
    for (size_t i = 0; i < marey_table_n_rows(device); i++) {
        const double share = marey_table_cell(device, i, 1).as.f64;
        if (share < 0.005)
            continue;
        marey__append(text, size, len, "%s%s %.0f %%", before,
                      marey_table_cell(device, i, 0).as.text, share * 100);
        before = ", ";
    }
    if (marey_table_n_rows(device) != 0)
        marey__append(text, size, len, ".");
}

static void make_verdict(struct marey__diagnosis *d, const marey_table *device)
{
    const struct marey__facts *const f = &d->facts;
    char *const text = d->verdict, a[32], b[32];
    const size_t size = sizeof d->verdict;
    size_t len = 0;
    if (f->n_steps == 0) {
        const struct marey__trainer *const t = &f->trainers[0];
        const struct marey_process *const run =
            t->recording != NULL ? marey_recording_run(t->recording, 0) : NULL;
        const uint64_t imports_ns = marey__facts_sum(f, MAREY__FACT_ONLY(MAREY__FACT_STARTUP)).ns;
        uint64_t run_ns = MAREY__MAX(t->end_ns - t->start_ns, imports_ns);
        if (run != NULL) /* samples start late in a short program */
            run_ns = MAREY__MAX(run_ns, run->wall_ns);
        marey__append(text, size, &len, "No training steps were found in a run of %s.",
                      time_text(run_ns, a));
        if ((double)imports_ns > 0.05 * (double)run_ns)
            marey__append(text, size, &len, " Imports took %s.", time_text(imports_ns, a));
        marey__native_append_hottest(f, text, size, &len);
        return;
    }
    uint64_t n_all = 0;
    for (size_t i = 0; i < f->n_trainers; i++)
        n_all = MAREY__MAX(n_all, f->trainers[i].n_steps);
    /* If the CPU runs ahead of a device, most steps are short and the median is not representative. */
    const uint64_t step_ns = (uint64_t)marey__facts_step_ns(f);
    const bool is_skewed = step_ns != f->median_ns;
    marey__append(text, size, &len, "%" PRIu64 " training step%s%s: %s/step", n_all,
                  n_all == 1 ? "" : "s", f->n_trainers > 1 ? " per rank" : "", time_text(step_ns, a));
    if (is_skewed)
        marey__append(text, size, &len, " on average (median %s)", time_text(f->median_ns, a));
    if (f->samples_per_s > 0)
        marey__append(text, size, &len, ", %s samples/s",
                      marey_text_number(f->samples_per_s, MAREY_UNIT_NONE, b, sizeof b));
    marey__append(text, size, &len, ".");
    put_shares(f, text, size, &len);
    put_device(device, text, size, &len);
    if (f->device.is_untypical)
        marey__append(text, size, &len,
                      " GPU activity is unknown: the few steps that were traced are not typical.");
    else if (f->has_device && f->device.traced_ns == 0)
        marey__append(text, size, &len, " GPU activity is unknown: no step was traced.");
    if (!f->is_imported)
        marey__append(text, size, &len, " Start-up took %s.", time_text(f->startup_ns, a));
}

/* What the trace of another tool lacks, and how to record it. */
static void find_missing(struct marey__diagnosis *d)
{
    const struct marey__facts *const f = &d->facts;
    const bool has_few_steps = f->n_steps < 3; /* Intervals of two are as wide as the step. */
    size_t len = 0;
    if (f->is_imported)
        marey__append(
            d->missing, sizeof d->missing, &len,
            "This trace has %s%s%s. 'marey run python train.py' records them.",
            has_few_steps ? "too few steps for findings (schedule(active=5) and prof.step() in "
                            "torch.profiler record more), "
                          : "",
            f->has_device || has_few_steps ? "" : "no GPU activity, ",
            f->phase_ns[MAREY__FACT_DATA] != 0
                ? "no stacks to name functions, no start-up and no forward phase"
                : "no stacks to name functions, no start-up, no data loader and no forward phase");
}

/* ---- tables ---- */

static const struct marey_column finding_columns[] = {
    TEXT("id"),
    TEXT("kind"),
    TEXT("claim"),
    TEXT("function"),
    TEXT("file"),
    WHOLE("line"),
    TEXT("phase"),
    SHARE("share", "of step"),
    REAL("at_most", "at most"),
    REAL("gain_low", NULL),
    REAL("gain_high", NULL),
    TEXT("action"),
    TEXT("because"),
};
static const struct marey_column step_columns[] = {TEXT("phase"), NS("per_step_ns", "per step"),
                                                   SHARE("share", "of step")};
static const struct marey_column startup_columns[] = {TEXT("what"), NS("ns", "time"),
                                                      SHARE("share", "of start-up")};
static const struct marey_column device_columns[] = {TEXT("what"),
                                                     SHARE("share", "of traced steps")};
static const struct marey_column steps_columns[] = {
    COUNT("n", "steps"),   COUNT("warmup", NULL),       NS("median_ns", "median"),
    NS("mean_ns", "mean"), REAL("samples_per_s", NULL), TEXT("detected_by")};
static const struct marey_column evidence_columns[] = {
    TEXT("finding"), NUMBER("rank"), NUMBER("pid"), WHOLE("from_ns"), WHOLE("to_ns")};
static const struct marey_table_definition tables[MAREY__DIAGNOSIS_TABLES] = {
    [MAREY__FINDINGS_TABLE] = {"findings", finding_columns, MAREY__COUNT_OF(finding_columns), NULL,
                               "what slows the program down"},
    [MAREY__STEP_TABLE] = {"step", step_columns, MAREY__COUNT_OF(step_columns), NULL,
                           "what a training step consists of"},
    [MAREY__STARTUP_TABLE] =
        {"startup", startup_columns, MAREY__COUNT_OF(startup_columns), NULL,
         "what the program does before its steps count; without steps, what it imports"},
    [MAREY__DEVICE_TABLE] = {"device", device_columns, MAREY__COUNT_OF(device_columns), NULL,
                             "what GPUs do in the training steps that were traced"},
    [MAREY__STEPS_TABLE] = {"steps", steps_columns, MAREY__COUNT_OF(steps_columns), NULL,
                            "training steps after warm-up, one row"},
    [MAREY__EVIDENCE_TABLE] =
        {"evidence", evidence_columns, MAREY__COUNT_OF(evidence_columns),
         NULL, "when each finding was seen, the longest times first, on the clock of the machine (CLOCK_MONOTONIC)"},
};

static void put_finding(marey_table *table, const struct marey__facts *facts,
                        const struct marey__finding *f)
{
    marey__put_string(table, f->statement.id);
    marey__put_string(table, f->is_risk ? "risk" : "time");
    marey__put_string(table, f->statement.claim);
    if (f->statement.place.function != 0) {
        const struct marey_samples_function *const function =
            marey_samples_get_function(facts->set.samples, f->statement.place.function);
        marey__put_string(table, function->name);
        marey__put_string(table, function->file);
        marey_table_u64(table, f->statement.place.line);
    } else {
        for (int i = 0; i < 3; i++)
            marey_table_null(table);
    }
    marey__put_string(table, marey__fact_phase_names[f->statement.phase]);
    marey__put_real(table, f->statement.share, f->statement.share >= 0);
    marey__put_real(table, f->at_most, !f->is_risk);
    marey__put_real(table, f->gain_low, !f->is_risk);
    marey__put_real(table, f->gain_high, !f->is_risk);
    marey__put_string(table, f->statement.action);
    char because[MAREY__FINDING_TEXT] = "";
    size_t len = 0;
    for (size_t i = 0; i < f->n_because; i++)
        marey__append(because, sizeof because, &len, "%s%s", i > 0 ? "," : "", f->because[i].id);
    marey__put_string(table, because);
}

static void put_step(marey_table *table, const struct marey__facts *facts)
{
    for (int p = 0; p < MAREY__FACT_PHASES && facts->steady_ns != 0; p++) {
        const double share = (double)facts->phase_ns[p] / (double)facts->steady_ns;
        marey__put_string(table, marey__fact_phase_names[p]);
        marey_table_u64(table, (uint64_t)(share * marey__facts_step_ns(facts) + 0.5));
        marey_table_f64(table, share);
    }
}

static void put_steps(marey_table *table, const struct marey__facts *f)
{
    if (f->n_steps != 0)
        MAREY__PUT_ROW(table, U64(f->n_steps), U64(f->n_warmup), U64(f->median_ns), U64(f->mean_ns),
                       POSITIVE(f->samples_per_s), STRING(f->detected_by));
}

static void put_device_rows(marey_table *table, const struct marey__fact_device *d)
{
    const double whole = (double)d->traced_ns;
    if (d->traced_ns == 0)
        return;
    MAREY__PUT_ROW(table, STRING("compute"), F64((double)d->computing_ns / whole));
    MAREY__PUT_ROW(table, STRING("communication"), F64((double)d->communication_ns / whole));
    MAREY__PUT_ROW(table, STRING("copies"), F64((double)d->copy_ns / whole));
    MAREY__PUT_ROW(table, STRING("idle"), F64((double)d->idle_ns / whole));
}

/* ---- the entry ---- */

static void destroy(void *data)
{
    struct marey__diagnosis *const d = data;
    marey__facts_fini(&d->facts);
    marey__free(d);
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    struct marey__diagnosis *const d = marey__calloc(1, sizeof *d);
    MAREY__TRY_MEMORY(d != NULL);
    report->data = d;
    MAREY_TRY(marey__facts_read(&d->facts, request));
    if (d->facts.n_trainers == 0)
        return marey__report_missing(report);
    report->cost = d->facts.cost;
    ask_rules(d, marey__setting_is_on(request, "experimental"));
    put_steps(report->tables[MAREY__STEPS_TABLE], &d->facts);
    put_device_rows(report->tables[MAREY__DEVICE_TABLE], &d->facts.device);
    make_verdict(d, report->tables[MAREY__DEVICE_TABLE]);
    find_missing(d);
    for (size_t i = 0; i < d->n_findings; i++)
        put_finding(report->tables[MAREY__FINDINGS_TABLE], &d->facts, &d->findings[i]);
    put_step(report->tables[MAREY__STEP_TABLE], &d->facts);
    MAREY__TRY_MEMORY(marey__facts_put_startup(&d->facts, report->tables[MAREY__STARTUP_TABLE]) &&
                      marey__diagnosis_put_evidence(d, report->tables[MAREY__EVIDENCE_TABLE]));
    return MAREY_OK;
}

static bool is_there(marey_recording *const *recordings, size_t n, const marey_report *ranges)
{
    (void)ranges;
    if (marey__samples_are_there(recordings, n))
        return true;
    for (size_t i = 0; i < n; i++)
        for (size_t p = 0; p < marey_recording_n_processes(recordings[i]); p++)
            if (marey_recording_process(recordings[i], p)->steps[0] != '\0' ||
                marey__is_torch_trace(marey_recording_process(recordings[i], p)))
                return true;
    return false;
}

static const struct marey_setting settings[] = {
    {"experimental", MAREY_SETTING_FLAG, NULL, "also report experimental findings"},
};

static const struct marey__report_format formats[] = {{"markdown", marey__diagnosis_markdown}, {0}};

extern const struct marey__analysis marey__analysis_diagnosis;
const struct marey__analysis marey__analysis_diagnosis = {
    .about = {.name = "diagnosis",
              .help = "why the program is slow, where in the code, and what a fix can\n"
                      "gain at most",
              .needs = "marey run PROGRAM records what it needs; traces of torch.profiler need "
                       "prof.step() in the loop",
              .examples = "  marey report train.marey --diagnosis         why it is slow",
              MAREY__SETTINGS(settings),
              .tables = tables,
              .n_tables = MAREY__DIAGNOSIS_TABLES,
              .csv = "findings",
              .leads = 1},
    .visits_again = true,
    .make = make,
    .destroy = destroy,
    .text = marey__diagnosis_text,
    .json = marey__diagnosis_json,
    .formats = formats,
    .is_there = is_there,
};

extern const struct marey_finding_page marey__finding_pages[];

const struct marey_finding_page *marey_finding_page_at(size_t i)
{
    size_t n = 0;
    while (marey__finding_pages[n].id != NULL)
        n++;
    return i < n ? &marey__finding_pages[i] : NULL;
}
