/* The diagnosis as JSON, docs/formats/diagnosis.md. Shares are 0 to 1; unknown values are null. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"
#include "present/draw/internal.h"

static void put_text(struct marey__buf *b, const char *key, const char *text)
{
    marey__buf_printf(b, "\"%s\":", key);
    if (text != NULL)
        marey__json_put(b, text, strlen(text));
    else
        marey__buf_puts(b, "null");
}

static void put_real(struct marey__buf *b, const char *key, double value, bool is_known)
{
    if (is_known && isfinite(value))
        marey__buf_printf(b, "\"%s\":%.6g", key, value);
    else
        marey__buf_printf(b, "\"%s\":null", key);
}

static void put_steps(struct marey__buf *b, const struct marey__facts *f)
{
    if (f->n_steps == 0) {
        marey__buf_puts(b, "\"steps\":null,\"startup_ns\":null,");
        return;
    }
    marey__buf_printf(b,
                      "\"steps\":{\"n\":%" PRIu64 ",\"warmup\":%" PRIu64 ",\"median_ns\":%" PRIu64
                      ",\"mean_ns\":%" PRIu64 ",",
                      f->n_steps, f->n_warmup, f->median_ns, f->mean_ns);
    put_real(b, "samples_per_s", f->samples_per_s, f->samples_per_s > 0);
    marey__buf_puts(b, ",");
    put_text(b, "detected_by", f->detected_by);
    if (f->is_imported)
        marey__buf_puts(b, "},\"startup_ns\":null,");
    else
        marey__buf_printf(b, "},\"startup_ns\":%" PRIu64 ",", f->startup_ns);
}

static void put_startup(struct marey__buf *b, const marey_table *table)
{
    marey__buf_puts(b, "\"startup\":[");
    for (size_t i = 0; i < marey_table_n_rows(table); i++) {
        marey__buf_puts(b, i > 0 ? ",{" : "{");
        put_text(b, "what", marey_table_cell(table, i, 0).as.text);
        marey__buf_printf(b, ",\"ns\":%" PRIu64 ",\"share\":%.6g}",
                          marey_table_cell(table, i, 1).as.u64, marey_table_cell(table, i, 2).as.f64);
    }
    marey__buf_puts(b, "],");
}

/* Shares of the traced steps. */
static void put_device(struct marey__buf *b, const struct marey__fact_device *d)
{
    const double whole = (double)d->traced_ns;
    if (d->traced_ns == 0) {
        marey__buf_puts(b, "\"device\":null,");
        return;
    }
    marey__buf_printf(
        b, "\"device\":{\"compute\":%.6g,\"communication\":%.6g,\"copy\":%.6g,\"idle\":%.6g,\"mfu\":null},",
        (double)d->computing_ns / whole, (double)d->communication_ns / whole,
        (double)d->copy_ns / whole, (double)d->idle_ns / whole);
}

static void put_cost(struct marey__buf *b, const struct marey__facts *f)
{
    marey__buf_puts(b, "\"cost\":{");
    put_real(b, "share", f->cost_share, true);
    marey__buf_puts(b, ",");
    put_real(b, "low", f->cost_low, f->is_cost_measured);
    marey__buf_puts(b, ",");
    put_real(b, "high", f->cost_high, f->is_cost_measured);
    marey__buf_printf(b, ",\"measured\":%s},", f->is_cost_measured ? "true" : "false");
}

/* `process` of the samples; 0: unknown. */
static void put_place(struct marey__buf *b, const struct marey__facts *facts, uint32_t function,
                      uint32_t line, uint32_t process)
{
    const struct marey_samples_function *const f =
        marey_samples_get_function(facts->set.samples, function);
    const struct marey_samples_process *const info =
        process != 0 ? marey_samples_get_process(facts->set.samples, process) : NULL;
    marey__buf_puts(b, "{");
    put_text(b, "function", f->name);
    marey__buf_puts(b, ",");
    put_text(b, "file", f->file);
    marey__buf_printf(b, ",\"line\":%u,", line);
    put_real(b, "process", info != NULL ? (double)info->pid : 0, info != NULL);
    marey__buf_puts(b, ",");
    put_real(b, "rank", info != NULL ? info->rank : 0, info != NULL && info->rank >= 0);
    marey__buf_puts(b, "}");
}

static void put_where(struct marey__buf *b, const struct marey__facts *facts,
                      const struct marey__fact_place *place, const struct marey__trainer *trainer)
{
    uint32_t process = place->process == MAREY__FACT_SEVERAL ? 0 : place->process;
    if (place->process == 0 && (trainer != NULL || facts->n_trainers == 1))
        process = trainer != NULL ? trainer->target : facts->trainers[0].target;
    marey__buf_puts(b, "\"where\":[");
    if (place->function != 0)
        put_place(b, facts, place->function, place->line, process);
    if (place->caller != 0) {
        marey__buf_puts(b, ",");
        put_place(b, facts, place->caller, place->caller_line, process);
    }
    marey__buf_puts(b, "],");
}

static const char *severity(const struct marey__finding *f)
{
    if (f->is_risk)
        return f->is_severe ? "high" : "medium";
    return f->at_most >= 1.3 ? "high" : f->at_most >= 1.1 ? "medium" : "low";
}

/* The place, and the longest times at which the finding was observed, from the table. */
static void put_evidence(struct marey__buf *b, const struct marey__facts *facts,
                         const struct marey__cause *cause, const marey_table *table)
{
    enum { MOST = 10 };
    const char *before = "";
    size_t n = 0;
    marey__buf_puts(b, ",\"evidence\":[");
    if (cause->place.function != 0) {
        const struct marey_samples_function *const f =
            marey_samples_get_function(facts->set.samples, cause->place.function);
        marey__json_printf(b, "{'table':'lines','rows':[{'function':%s,'file':%s,'line':%u,'ns':%lu,",
                           f->name, f->file, cause->place.line, (unsigned long)cause->place.ns);
        put_real(b, "share", cause->place.share, true);
        marey__buf_puts(b, "}]}");
        before = ",";
    }
    for (size_t row = 0; row < marey_table_n_rows(table) && n < MOST; row++) {
        if (strcmp(marey_table_cell(table, row, 0).as.text, cause->id) != 0)
            continue;
        const struct marey_cell rank = marey_table_cell(table, row, 1);
        marey__buf_printf(
            b, "%s{\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64 ",\"process\":%" PRId64 ",", before,
            marey_table_cell(table, row, 3).as.u64, marey_table_cell(table, row, 4).as.u64,
            marey_table_cell(table, row, 2).as.i64);
        put_real(b, "rank", (double)rank.as.i64, !rank.is_null);
        marey__buf_puts(b, ",\"lane\":null}");
        before = ",";
        n++;
    }
    marey__buf_puts(b, "]");
}

/*
 * Records the program again and compares; RUN.marey gives RUN-fixed.marey. Null where each rank of a launcher had a `marey
 * run`: the command of the launcher is not recorded.
 */
static void put_verify(struct marey__buf *b, const marey_recording *recording)
{
    const bool is_one = recording != NULL && marey_recording_n_runs(recording) == 1;
    const struct marey_process *const run = is_one ? marey_recording_run(recording, 0) : NULL;
    const char *const slash = is_one ? strrchr(run->log_path, '/') : NULL;
    char text[8192];
    if (slash == NULL || run->world_size > 1 || run->command[0] == '\0' ||
        memchr(run->log_path, '\'', (size_t)(slash - run->log_path)) != NULL) {
        put_text(b, "verify", NULL);
        return;
    }
    const int len = (int)(slash - run->log_path),
              stem = len > 6 && strncmp(slash - 6, ".marey", 6) == 0 ? len - 6 : len;
    const bool is_plain = strcspn(run->log_path, " $`\"\\*?[]#~=%!&|;<>(){}\n\t") >= (size_t)len;
    const char *const quote = is_plain ? "" : "'";
    const int n = snprintf(
        text, sizeof text,
        "marey run -o %s%.*s-fixed.marey%s %s && marey compare %s%.*s%s %s%.*s-fixed.marey%s",
        quote, stem, run->log_path, quote, run->command, quote, len, run->log_path, quote, quote,
        stem, run->log_path, quote);
    put_text(b, "verify", n < (int)sizeof text ? text : NULL);
}

/* The fields that findings and their causes share; `f` is the finding. */
static void put_cause(struct marey__buf *b, const struct marey__facts *facts,
                      const struct marey__cause *cause, const struct marey__finding *f,
                      const marey_table *evidence)
{
    const bool is_finding = cause == &f->statement;
    marey__buf_puts(b, "{");
    put_text(b, "id", cause->id);
    marey__buf_puts(b, ",");
    put_text(b, "kind", f->is_risk ? "risk" : "time");
    marey__buf_puts(b, ",");
    put_text(b, "severity", severity(f));
    marey__buf_puts(b, ",\"experimental\":");
    marey__buf_puts(b, f->is_experimental ? "true," : "false,");
    put_text(b, "claim", cause->claim);
    marey__buf_puts(b, ",");
    put_where(b, facts, &cause->place, f->trainer);
    put_text(b, "phase", marey__fact_phase_names[cause->phase]);
    if (f->trainer != NULL)
        marey__buf_printf(b, ",\"ranks\":[%d],", f->trainer->info->rank);
    else
        marey__buf_puts(b, ",\"ranks\":null,");
    put_real(b, "share", cause->share, cause->share >= 0);
    if (!is_finding || f->is_risk)
        marey__buf_puts(b, ",\"gain\":null");
    else
        marey__buf_printf(b, ",\"gain\":{\"at_most\":%.4g,\"low\":%.4g,\"high\":%.4g}", f->at_most,
                          f->gain_low, f->gain_high);
    marey__buf_puts(b, ",\"because\":[");
    for (size_t i = 0; is_finding && i < f->n_because; i++) {
        marey__buf_puts(b, i > 0 ? "," : "");
        put_cause(b, facts, &f->because[i], f, evidence);
    }
    marey__buf_puts(b, "],");
    put_text(b, "action", cause->action);
    marey__buf_puts(b, ",");
    put_verify(b, is_finding ? facts->trainers[0].recording : NULL);
    marey__buf_puts(b, ",");
    put_real(b, "confidence", f->confidence, true);
    put_evidence(b, facts, cause, evidence);
    marey__buf_puts(b, "}");
}

marey_status marey__diagnosis_json(struct marey__report_writer *writer)
{
    const struct marey__diagnosis *const d = writer->report->data;
    struct marey__buf *const b = &writer->lines.line;
    marey__buf_puts(b, "{\"schema\":1,");
    put_text(b, "verdict", d->verdict);
    marey__buf_puts(b, ",");
    put_text(b, "missing", d->missing[0] != '\0' ? d->missing : NULL);
    marey__buf_puts(b, ",");
    put_steps(b, &d->facts);
    put_startup(b, writer->report->tables[MAREY__STARTUP_TABLE]);
    put_device(b, &d->facts.device);
    put_cost(b, &d->facts);
    marey__buf_puts(b, "\"findings\":[");
    for (size_t i = 0; i < d->n_findings; i++) {
        marey__buf_puts(b, i > 0 ? "," : "");
        put_cause(b, &d->facts, &d->findings[i].statement, &d->findings[i],
                  writer->report->tables[MAREY__EVIDENCE_TABLE]);
    }
    marey__buf_puts(b, "]}\n");
    return marey__buf_to_stream(b, writer->lines.out);
}
