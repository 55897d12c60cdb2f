/*
 * Questions to recordings. Each has a teller, which runs the analysis, prints what the command prints, and puts the
 * answer into a line; where the first line of the print is the answer already, it leaves that line empty.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "present/answers_internal.h"
#include "present/present_internal.h"
#include <kymo/breakdown.h>
#include <kymo/calls_report.h>
#include <kymo/energy_report.h>
#include <kymo/epochs.h>
#include <kymo/gpu_report.h>
#include <kymo/memory_report.h>
#include <kymo/samples_report.h>

enum { ROWS = 12 }; /* of each table in the details; the command shows all */

struct asked {
    kymo_recording *const *recordings;
    size_t n;
    bool is_named; /* the question was asked by its name: an answer is wanted, also a dull one */
    struct kymo__buf line; /* the answer */
    FILE *out;             /* what the command prints */
};

typedef kymo_status teller(struct asked *asked);

/* ---- pieces of sentences ---- */

static void put_cell_text(struct kymo__buf *line, const kymo_table *table, size_t row,
                          const char *column)
{
    const struct kymo_cell cell = kymo__cell_of(table, row, column);
    kymo__buf_put(line, cell.as.text, cell.len);
}

static void put_cell_time(struct kymo__buf *line, const kymo_table *table, size_t row,
                          const char *column)
{
    kymo__text_duration(line, (double)kymo__cell_of(table, row, column).as.u64, NULL);
}

static double cell_number(const kymo_table *table, size_t row, const char *column)
{
    return kymo__cell_of(table, row, column).as.f64;
}

/* "augment (slow_input.py:23)" */
static void put_function(struct kymo__buf *line, const kymo_table *table, size_t row)
{
    const struct kymo_cell file = kymo__cell_of(table, row, "file");
    put_cell_text(line, table, row, "function");
    if (file.is_null || file.len == 0)
        return;
    const char *slash = memrchr(file.as.text, '/', file.len);
    const char *name = slash != NULL ? slash + 1 : file.as.text;
    const size_t len = file.len - (size_t)(name - file.as.text);
    kymo__buf_printf(line, " (%.*s", (int)len, name);
    const struct kymo_cell at = kymo__cell_of(table, row, "line");
    if (!at.is_null && at.as.u64 != 0)
        kymo__buf_printf(line, ":%" PRIu64, at.as.u64);
    kymo__buf_puts(line, ")");
}

/* ---- where the time goes ---- */

static kymo_status put_longest(struct asked *asked, kymo_summary *summary)
{
    const kymo_table *ranges = kymo_summary_table(summary, "ranges");
    struct kymo_cost cost;
    size_t longest = 0;
    if (kymo_table_n_rows(ranges) == 0)
        return kymo__fail(KYMO_EFORMAT,
                          "there are no ranges: kymo.range names the parts of a program");
    for (size_t row = 1; row < kymo_table_n_rows(ranges); row++)
        if (kymo__cell_of(ranges, row, "self_ns").as.u64 >
            kymo__cell_of(ranges, longest, "self_ns").as.u64)
            longest = row;
    kymo_summary_cost(summary, &cost);
    const uint64_t self_ns = kymo__cell_of(ranges, longest, "self_ns").as.u64;
    put_cell_text(&asked->line, ranges, longest, "name");
    kymo__buf_puts(&asked->line, " takes most time of its own: ");
    kymo__text_duration(&asked->line, (double)self_ns, NULL);
    kymo__buf_puts(&asked->line, " in ");
    kymo__text_count_of(&asked->line, kymo__cell_of(ranges, longest, "count").as.u64, "call");
    if (cost.program_ns != 0)
        kymo__buf_printf(&asked->line, ", %.1f %% of all",
                         100 * (double)self_ns / (double)cost.program_ns);
    const struct kymo_report_options options = {.limit = ROWS};
    return kymo_report_text(summary, &options, asked->out);
}

static kymo_status tell_time(struct asked *asked)
{
    kymo_summary *summary = NULL;
    KYMO_TRY(kymo_summary_create(asked->recordings, asked->n, NULL, &summary));
    const kymo_status status = put_longest(asked, summary);
    kymo_summary_destroy(summary);
    return status;
}

static kymo_status put_iterations(struct asked *asked, kymo_summary *summary)
{
    const kymo_table *iterations = kymo_summary_table(summary, "iterations");
    const kymo_table *rates = kymo_summary_table(summary, "throughput");
    if (kymo_table_n_rows(iterations) == 0)
        return kymo__fail(KYMO_EFORMAT,
                          "the program told of no iterations: kymo.iteration() is one");
    kymo__buf_puts(&asked->line, "an iteration takes ");
    put_cell_time(&asked->line, iterations, 0, "mean_ns");
    kymo__buf_printf(&asked->line, " (mean of %" PRIu64 "; p99 ",
                     kymo__cell_of(iterations, 0, "count").as.u64);
    put_cell_time(&asked->line, iterations, 0, "p99_ns");
    kymo__buf_puts(&asked->line, ")");
    if (kymo_table_n_rows(rates) != 0 && !kymo__cell_of(rates, 0, "samples_per_s").is_null)
        kymo__buf_printf(&asked->line, ", %.4g samples/s", cell_number(rates, 0, "samples_per_s"));
    const struct kymo_report_options options = {.tables = "iterations", .limit = ROWS};
    return kymo_report_text(summary, &options, asked->out);
}

static kymo_status tell_iterations(struct asked *asked)
{
    kymo_summary *summary = NULL;
    KYMO_TRY(kymo_summary_create(asked->recordings, asked->n, NULL, &summary));
    const kymo_status status = put_iterations(asked, summary);
    kymo_summary_destroy(summary);
    return status;
}

/* ---- reports that begin with their answer ---- */

static kymo_status tell_epochs(struct asked *asked)
{
    const struct kymo_epoch_text_options options = {.limit = ROWS};
    kymo_epoch_report *report = NULL;
    KYMO_TRY(kymo_epoch_report_create(asked->recordings, asked->n, NULL, &report));
    const kymo_status status = kymo_epoch_report_text(report, &options, asked->out);
    kymo_epoch_report_destroy(report);
    return status;
}

/* A program that neither communicates nor has a GPU computes all the time, which says nothing. */
static bool is_worth_telling(kymo_breakdown *breakdown)
{
    const kymo_table *devices = kymo_breakdown_table(breakdown, "devices");
    for (size_t row = 0; row < kymo_table_n_rows(devices); row++)
        if (kymo__cell_of(devices, row, "device").as.i64 >= 0 ||
            kymo__cell_of(devices, row, "comm_total_ns").as.u64 != 0)
            return true;
    return false;
}

static kymo_status tell_breakdown(struct asked *asked)
{
    kymo_breakdown *breakdown = NULL;
    KYMO_TRY(kymo_breakdown_create(asked->recordings, asked->n, NULL, &breakdown));
    const kymo_status status = asked->is_named || is_worth_telling(breakdown)
                                   ? kymo_breakdown_text(breakdown, NULL, asked->out)
                                   : kymo__fail(KYMO_EFORMAT, "nothing in it communicates");
    kymo_breakdown_destroy(breakdown);
    return status;
}

static kymo_status tell_energy(struct asked *asked)
{
    const struct kymo_energy_text_options options = {.limit = ROWS};
    kymo_energy_report *report = NULL;
    KYMO_TRY(kymo_energy_report_create(asked->recordings, asked->n, NULL, &report));
    const kymo_status status = kymo_energy_report_text(report, &options, asked->out);
    kymo_energy_report_destroy(report);
    return status;
}

/* ---- samples and calls ---- */

static kymo_status put_samples(struct asked *asked, kymo_samples_report *report)
{
    const kymo_table *functions = kymo_samples_report_table(report, "functions");
    const struct kymo_samples_text_options options = {.limit = ROWS};
    if (kymo_table_n_rows(functions) == 0)
        return kymo__fail(KYMO_EFORMAT, "the sampler saw no function");
    put_function(&asked->line, functions, 0);
    kymo__buf_printf(&asked->line, " has %.1f %% (± %.1f %%) of the samples",
                     100 * cell_number(functions, 0, "share"),
                     100 * cell_number(functions, 0, "error"));
    return kymo_samples_report_text(report, &options, asked->out);
}

static kymo_status tell_samples(struct asked *asked)
{
    kymo_samples_report *report = NULL;
    KYMO_TRY(kymo_samples_report_create(asked->recordings, asked->n, NULL, &report));
    const kymo_status status = put_samples(asked, report);
    kymo_samples_report_destroy(report);
    return status;
}

/* "dot(a:list[float](len=16)) takes 697 ns for each element, 6.9 times as long as with its best arguments; ..." */
static void put_shape(struct kymo__buf *line, const kymo_table *shapes)
{
    put_cell_text(line, shapes, 0, "function");
    kymo__buf_puts(line, "(");
    put_cell_text(line, shapes, 0, "signature");
    kymo__buf_puts(line, ") takes ");
    kymo__text_duration(line, cell_number(shapes, 0, "ns_per_element"), NULL);
    kymo__buf_printf(line,
                     " for each element, %.1f times as long as with its best arguments; %.1f %% "
                     "of the time",
                     cell_number(shapes, 0, "times_best"), 100 * cell_number(shapes, 0, "share"));
}

static kymo_status put_calls(struct asked *asked, kymo_calls_report *report)
{
    const kymo_table *shapes = kymo_calls_report_table(report, "shapes");
    const kymo_table *functions = kymo_calls_report_table(report, "functions");
    const bool has_shapes = kymo_table_n_rows(shapes) != 0;
    if (kymo_table_n_rows(functions) == 0)
        return kymo__fail(KYMO_EFORMAT, "no call was counted");
    if (has_shapes) {
        put_shape(&asked->line, shapes);
    } else {
        put_function(&asked->line, functions, 0);
        kymo__buf_puts(&asked->line, " takes most time of its own: ");
        put_cell_time(&asked->line, functions, 0, "self_ns");
        kymo__buf_puts(&asked->line, " in ");
        kymo__text_count_of(&asked->line, kymo__cell_of(functions, 0, "calls").as.u64, "call");
    }
    const struct kymo_calls_text_options by_shape = {.table = "shapes", .limit = ROWS},
                                         by_signature = {.table = "signatures", .limit = ROWS};
    if (has_shapes) {
        KYMO_TRY(kymo_calls_report_text(report, &by_shape, asked->out));
        fputc('\n', asked->out);
    }
    return kymo_calls_report_text(report, &by_signature, asked->out);
}

static kymo_status tell_calls(struct asked *asked)
{
    kymo_calls_report *report = NULL;
    if (!asked->is_named && !kymo_calls_are_there(asked->recordings, asked->n))
        return kymo__fail(KYMO_EFORMAT, "no calls were profiled");
    KYMO_TRY(kymo_calls_report_create(asked->recordings, asked->n, NULL, &report));
    const kymo_status status = put_calls(asked, report);
    kymo_calls_report_destroy(report);
    return status;
}

/* ---- memory ---- */

/* What grows from iteration to iteration, where the stack is known; else the peak, which the text begins with. */
static void put_growth(struct kymo__buf *line, const kymo_table *growth)
{
    for (size_t row = 0; row < kymo_table_n_rows(growth); row++) {
        const struct kymo_cell where = kymo__cell_of(growth, row, "where");
        if (kymo__cell_of(growth, row, "is_suspected").as.i64 == 0 || where.is_null || where.len == 0)
            continue;
        /* Callers follow behind a " < "; the details have them. */
        const char *callers = memmem(where.as.text, where.len, " < ", 3);
        kymo__buf_puts(line, "a leak is suspected: what ");
        kymo__buf_put(line, where.as.text,
                      callers != NULL ? (size_t)(callers - where.as.text) : where.len);
        kymo__buf_puts(line, " allocates grows by ");
        kymo__text_bytes(line, cell_number(growth, row, "slope_bytes"));
        kymo__buf_puts(line, " each ");
        put_cell_text(line, growth, row, "per");
        return;
    }
}

static kymo_status tell_memory(struct asked *asked)
{
    const struct kymo_memory_text_options options = {.limit = ROWS};
    kymo_memory_report *report = NULL;
    KYMO_TRY(kymo_memory_report_create(asked->recordings, asked->n, NULL, &report));
    put_growth(&asked->line, kymo_memory_report_table(report, "growth"));
    const kymo_status status = kymo_memory_report_text(report, &options, asked->out);
    kymo_memory_report_destroy(report);
    return status;
}

/* ---- GPUs ---- */

static void put_launches(struct kymo__buf *line, const kymo_table *ranges)
{
    if (kymo_table_n_rows(ranges) == 0 || kymo__cell_of(ranges, 0, "verdict").is_null) {
        kymo__buf_puts(line, "no range is bound by launching its work");
        return;
    }
    put_cell_text(line, ranges, 0, "name");
    kymo__buf_puts(line, " is ");
    put_cell_text(line, ranges, 0, "verdict");
    kymo__buf_printf(line, ": the GPU waits for launches in %.1f %% of its time",
                     100 * cell_number(ranges, 0, "launch_wait_share"));
}

static kymo_status print_gpu(struct asked *asked, kymo_gpu_report *report)
{
    static const char *const tables[] = {"devices", "launch_bound", "kernels", "copies"};
    for (size_t i = 0; i < KYMO__COUNT_OF(tables); i++) {
        kymo_table *table = kymo_gpu_report_table(report, tables[i]);
        if (kymo_table_n_rows(table) == 0)
            continue;
        kymo_table_truncate(table, ROWS);
        fprintf(asked->out, "%s%s\n", i == 0 ? "" : "\n", tables[i]);
        KYMO_TRY(kymo_present_text(table, NULL, asked->out));
    }
    return KYMO_OK;
}

static kymo_status tell_gpu(struct asked *asked)
{
    kymo_gpu_report *report = NULL;
    KYMO_TRY(kymo_gpu_report_create(asked->recordings, asked->n, NULL, &report));
    kymo_status status =
        kymo__fail(KYMO_EFORMAT, "no GPU did anything: 'kymo run --gpu' records it");
    if (kymo_table_n_rows(kymo_gpu_report_table(report, "kernels")) != 0) {
        put_launches(&asked->line, kymo_gpu_report_table(report, "launch_bound"));
        status = print_gpu(asked, report);
    }
    kymo_gpu_report_destroy(report);
    return status;
}

/* ---- asking ---- */

static const struct question {
    const char *name, *text, *command;
    teller *tell;
} questions[] = {
    {"time", "Where does the time go?", "kymo report %s", tell_time},
    {"iterations", "How long does an iteration take?", "kymo report %s --iterations", tell_iterations},
    {"epochs", "How long does an epoch take, and in what?", "kymo report %s --epochs", tell_epochs},
    {"breakdown", "Computation, communication, other?", "kymo breakdown %s", tell_breakdown},
    {"energy", "How much energy does it take?", "kymo report %s --energy", tell_energy},
    {"samples", "What is the program doing?", "kymo report %s --samples", tell_samples},
    {"calls", "Which function, with which arguments?", "kymo report %s --calls --by shape",
     tell_calls},
    {"memory", "What takes the memory, and what leaks?", "kymo report %s --memory", tell_memory},
    {"gpu", "Is the GPU slow, or launching on it?", "kymo report %s --gpu", tell_gpu},
};

/* What recordings have nothing for: the note of theirs that says why, else the sentence of the report. */
static kymo_status tell_why_not(struct asked *asked, const char *name)
{
    struct kymo__buf why = {0};
    kymo_summary *summary = NULL;
    kymo__buf_puts(&why, kymo_last_error());
    kymo_status status = kymo_summary_create(asked->recordings, asked->n, NULL, &summary);
    const kymo_table *notes = status == KYMO_OK ? kymo_summary_table(summary, "warnings") : NULL;
    for (size_t row = 0; notes != NULL && row < kymo_table_n_rows(notes); row++) {
        const struct kymo_cell note = kymo__cell_of(notes, row, "text");
        fprintf(asked->out, "%.*s\n", (int)note.len, note.as.text);
        if (asked->line.len == 0 && memmem(note.as.text, note.len, name, strlen(name)) != NULL)
            kymo__buf_put(&asked->line, note.as.text, note.len);
    }
    if (why.failed)
        status = kymo__fail(KYMO_ENOMEM, "no memory for an answer");
    else
        fprintf(asked->out, "%.*s\n", (int)why.len, why.data);
    if (asked->line.len == 0 && !why.failed)
        kymo__buf_put(&asked->line, why.data, why.len);
    kymo__buf_fini(&why);
    kymo_summary_destroy(summary);
    return status;
}

static kymo_status ask(kymo_answers *answers, const struct question *question, struct asked *asked,
                       const char *path)
{
    struct kymo__buf details = {0}, command = {0};
    asked->out = kymo__buf_stream(&details);
    if (asked->out == NULL)
        return kymo__fail_errno("make an answer");
    kymo_status status = question->tell(asked);
    if (status == KYMO_EFORMAT && asked->is_named)
        status = tell_why_not(asked, question->name);
    fclose(asked->out);
    const char *const at = strstr(question->command, "%s");
    kymo__buf_put(&command, question->command, (size_t)(at - question->command));
    kymo__buf_puts(&command, path);
    kymo__buf_puts(&command, at + 2);
    if (status == KYMO_OK)
        status = kymo__answers_put(answers, question->text, &asked->line, &details, &command);
    kymo__buf_fini(&asked->line);
    kymo__buf_fini(&details);
    kymo__buf_fini(&command);
    return status;
}

kymo_status kymo_answers_ask(kymo_answers *answers, const char *name,
                             kymo_recording *const *recordings, size_t n, const char *path)
{
    const size_t n_before = kymo_table_n_rows(answers->table);
    for (size_t i = 0; i < KYMO__COUNT_OF(questions); i++) {
        if (name != NULL && strcmp(name, questions[i].name) != 0)
            continue;
        struct asked asked = {.recordings = recordings, .n = n, .is_named = name != NULL};
        const kymo_status status = ask(answers, &questions[i], &asked, path);
        if (status != KYMO_OK && status != KYMO_EFORMAT)
            return status;
    }
    if (kymo_table_n_rows(answers->table) != n_before)
        return KYMO_OK;
    return name != NULL ? kymo__fail(KYMO_EINVAL, "there is no question '%s'", name)
                        : kymo__fail(KYMO_EFORMAT, "%s has nothing that answers a question", path);
}
