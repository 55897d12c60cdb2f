/* Every iteration and every range in it, as CSV, written while the recording is read. */
#include "analyze/analyze_internal.h"
#include "present/export_internal.h"
#include "present/present_internal.h"

struct writing {
    struct kymo__process_walk walk; /* of the process at hand */
    const char *filter;
    struct kymo__buf process; /* "RANK,PID,", the same in each line of the process */
    struct kymo__buf lines;
    FILE *out;
    kymo_status status;
};

static void put_u64(struct kymo__buf *buf, uint64_t value)
{
    char digits[40];
    kymo__buf_put(buf, digits, (size_t)(kymo__put_u64(digits, value) - digits));
}

/* "RANK,PID,ITERATION,WARMUP,CUT," */
static void put_head(struct writing *writing, const struct kymo__span *span)
{
    struct kymo__buf *lines = &writing->lines;
    kymo__buf_put(lines, writing->process.data, writing->process.len);
    put_u64(lines, span->number);
    kymo__buf_puts(lines, (span->flags & KYMO__ITERATION_WARMUP) != 0 ? ",1," : ",0,");
    kymo__buf_puts(lines, (span->flags & KYMO__ITERATION_CUT) != 0 ? "1," : "0,");
}

static void put_whole(struct writing *writing, const struct kymo__span *span)
{
    char number[40];
    struct kymo__buf *lines = &writing->lines;
    put_head(writing, span);
    kymo__buf_puts(lines, KYMO__WHOLE_ITERATION ",");
    put_u64(lines, span->end_ns - span->begin_ns);
    kymo__buf_puts(lines, ",");
    if (span->samples > 0)
        kymo__buf_put(lines, number, (size_t)(kymo__put_f64_csv(number, span->samples) - number));
    kymo__buf_puts(lines, "\r\n");
}

static bool take_span(void *ctx, const struct kymo__span *span,
                      const struct kymo__iteration *iteration)
{
    struct writing *writing = ctx;
    if (iteration == NULL)
        return true;
    put_whole(writing, span);
    for (size_t i = 0; i < iteration->n_ran; i++) {
        const struct kymo__name *name = &writing->walk.names.names[iteration->ran[i]];
        if (!kymo__name_matches(writing->filter, name->text, name->len))
            continue;
        put_head(writing, span);
        kymo__csv_put(&writing->lines, name->text, name->len);
        kymo__buf_puts(&writing->lines, ",");
        put_u64(&writing->lines, iteration->times[iteration->ran[i]].ns);
        kymo__buf_puts(&writing->lines, ",\r\n");
    }
    writing->status = kymo__buf_to_stream(&writing->lines, writing->out);
    return writing->status == KYMO_OK;
}

static kymo_status write_process(struct writing *writing, kymo_recording *recording, size_t process)
{
    struct kymo__process_walk *const walk = &writing->walk;
    kymo_status status = kymo__process_walk_init(walk, recording, process);
    walk->iterations.visitor = take_span;
    walk->iterations.visitor_ctx = writing;
    writing->process.len = 0;
    if (walk->info->rank >= 0)
        kymo__buf_printf(&writing->process, "%d", walk->info->rank);
    kymo__buf_printf(&writing->process, ",%lld,", (long long)walk->info->pid);
    if (status == KYMO_OK)
        status = kymo__process_walk_run(walk);
    kymo__process_walk_fini(walk);
    return writing->status != KYMO_OK ? writing->status : status;
}

kymo_status kymo_report_per_iteration(kymo_recording *const *recordings, size_t n,
                                      const char *filter, FILE *out)
{
    struct writing writing = {.filter = filter, .out = out};
    kymo__buf_puts(&writing.lines, "rank,pid,iteration,warmup,cut,name,ns,samples\r\n");
    kymo_status status = kymo__buf_to_stream(&writing.lines, out);
    for (size_t r = 0; r < n && status == KYMO_OK; r++)
        for (size_t p = 0; p < kymo_recording_n_processes(recordings[r]) && status == KYMO_OK; p++)
            status = write_process(&writing, recordings[r], p);
    kymo__buf_fini(&writing.lines);
    kymo__buf_fini(&writing.process);
    if (status == KYMO_OK && fflush(out) != 0)
        status = kymo__fail_errno("write the series");
    return status;
}
