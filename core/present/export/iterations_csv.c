/* Every iteration with the times of its ranges, as CSV, written while reading. */
#include "analyze/summary/internal.h"
#include "present/export/internal.h"

struct writing {
    struct marey__process_walk walk; /* of the current process */
    const char *filter;
    struct marey__buf process; /* "RANK,PID,", the same in each line of the process */
    struct marey__buf lines;
    FILE *out;
    marey_status status;
};

/* "RANK,PID,ITERATION,WARMUP,CUT," */
static void put_head(struct writing *writing, const struct marey__span *span)
{
    struct marey__buf *lines = &writing->lines;
    marey__buf_put(lines, writing->process.data, writing->process.len);
    marey__buf_put_u64(lines, span->number);
    marey__buf_puts(lines, (span->flags & MAREY__ITERATION_WARMUP) != 0 ? ",1," : ",0,");
    marey__buf_puts(lines, (span->flags & MAREY__ITERATION_CUT) != 0 ? "1," : "0,");
}

static void put_whole(struct writing *writing, const struct marey__span *span)
{
    char number[40];
    struct marey__buf *lines = &writing->lines;
    put_head(writing, span);
    marey__buf_puts(lines, MAREY__WHOLE_ITERATION ",");
    marey__buf_put_u64(lines, span->end_ns - span->begin_ns);
    marey__buf_puts(lines, ",");
    if (span->samples > 0)
        marey__buf_put(lines, number, (size_t)(marey__put_f64_csv(number, span->samples) - number));
    marey__buf_puts(lines, "\r\n");
}

static bool take_span(void *ctx, const struct marey__span *span,
                      const struct marey__iteration *iteration)
{
    struct writing *writing = ctx;
    if (iteration == NULL)
        return true;
    put_whole(writing, span);
    for (size_t i = 0; i < iteration->n_ran; i++) {
        const struct marey__name *name = &writing->walk.names.names[iteration->ran[i]];
        if (!marey__name_matches(writing->filter, name->text, name->len))
            continue;
        put_head(writing, span);
        marey__csv_put(&writing->lines, name->text, name->len);
        marey__buf_puts(&writing->lines, ",");
        marey__buf_put_u64(&writing->lines, iteration->times[iteration->ran[i]].ns);
        marey__buf_puts(&writing->lines, ",\r\n");
    }
    writing->status = marey__buf_to_stream(&writing->lines, writing->out);
    return writing->status == MAREY_OK;
}

static marey_status write_process(struct writing *writing, marey_recording *recording, size_t process)
{
    struct marey__process_walk *const walk = &writing->walk;
    marey_status status = marey__process_walk_init(walk, recording, process);
    walk->iterations.visitor = take_span;
    walk->iterations.visitor_ctx = writing;
    writing->process.len = 0;
    if (walk->info->rank >= 0)
        marey__buf_printf(&writing->process, "%d", walk->info->rank);
    marey__buf_printf(&writing->process, ",%lld,", (long long)walk->info->pid);
    if (status == MAREY_OK)
        status = marey__process_walk_run(walk);
    marey__process_walk_fini(walk);
    return writing->status != MAREY_OK ? writing->status : status;
}

marey_status marey_report_per_iteration(marey_recording *const *recordings, size_t n,
                                        const char *filter, FILE *out)
{
    struct writing writing = {.filter = filter, .out = out};
    marey__buf_puts(&writing.lines, "rank,pid,iteration,warmup,cut,name,ns,samples\r\n");
    marey_status status = marey__buf_to_stream(&writing.lines, out);
    for (size_t r = 0; r < n && status == MAREY_OK; r++)
        for (size_t p = 0; p < marey_recording_n_processes(recordings[r]) && status == MAREY_OK; p++)
            status = write_process(&writing, recordings[r], p);
    marey__buf_fini(&writing.lines);
    marey__buf_fini(&writing.process);
    if (status == MAREY_OK && fflush(out) != 0)
        status = marey__fail_errno("write the series");
    return status;
}
