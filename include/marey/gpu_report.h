/*
 * marey/gpu_report.h: what GPUs did by kernel, who launched it, and where they waited for the host (libmarey-tools).
 *
 *     marey_gpu_report *gpu;
 *     marey_gpu_report_create(&recording, 1, NULL, &gpu);
 *     marey_present_text(marey_gpu_report_table(gpu, "launch_bound"), NULL, stdout);
 *
 * Takes recordings with work of GPUs: those of `marey run --gpu`, and imported traces. The summary of <marey/report.h> has
 * kernels and ranges as well, from one pass over the log; this one keeps all work of a process in memory at a time (some
 * 64 bytes for each piece) and so knows what ran side by side, what waited, and how kernels were launched.
 *
 * A piece of work is a kernel, a copy or a memory set. It belongs to the ranges that were open on the thread that
 * launched it, at that moment; the work of a CUDA graph to those around the launch of the graph. A call of the CUDA
 * runtime or driver is no range here.
 */
#ifndef MAREY_GPU_REPORT_H
#define MAREY_GPU_REPORT_H

#include <marey/report.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_gpu_report marey_gpu_report;

struct marey_gpu_report_options {
    const char *filter; /* of kernels and ranges by name, as in the summary */
    uint32_t n_gaps;    /* how many of the longest gaps; 0: 20 */
    uint32_t n_jobs;    /* processes read at the same time; 0: as many as there are cores */
    marey_progress *progress;
    void *progress_ctx;
};

/* Read `n` recordings as one. Without GPU work all tables are empty. */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_gpu_report_create(marey_recording *const *recordings, size_t n,
                        const struct marey_gpu_report_options *options, marey_gpu_report **out);
MAREY_API void marey_gpu_report_destroy(marey_gpu_report *report);

/*
 * Its tables, lent until it goes; NULL for a name it does not have. Times are whole nanoseconds.
 *   devices    rank pid device span_ns busy_ns busy_share kernels copies sets launches launches_per_ms launch_ns
 *              delay_p50_ns launch_wait_ns launch_wait_share host_wait_ns host_wait_share other_idle_ns
 *   kernels    name kind count total_ns mean_ns min_ns p50_ns p99_ns max_ns share bytes bytes_per_s
 *   shapes     name grid block registers shared_bytes count total_ns mean_ns min_ns p50_ns max_ns share     (kernels)
 *   copies     name direction count bytes total_ns mean_ns min_ns max_ns bytes_per_s               (copies and sets)
 *   streams    rank pid device stream name kernels copies sets busy_ns busy_share bytes
 *   ranges     name category calls launches work gpu_ns self_gpu_ns share launch_ns self_launch_ns
 *              delay_mean_ns delay_p50_ns delay_p99_ns delay_max_ns
 *   launch_bound
 *              name verdict span_ns launch_wait_ns launch_wait_share host_wait_ns host_wait_share launches
 *              launches_per_ms work_mean_ns
 *   iterations rank pid device iteration span_ns busy_ns busy_share launches work gpu_ns launch_ns launch_wait_ns
 *              launch_wait_share host_wait_ns
 *   gaps       rank pid device begin_ns duration_ns reason reason_share before after range iteration
 *   warnings   text
 *
 * span_ns of a device: from the begin of its first work to the end of its last; busy_ns: in which any ran. `share` of
 * kernels and shapes: of the busy time of all devices; work side by side counts each for itself, so they may add up to
 * more than one. A launch is a call on the host that launched work which is in the recording. launch_ns: how long those
 * calls took on the host. delay: from the begin of the call to the begin of the first work it launched; while the
 * device is busy that is the time in its queue.
 *
 * A device waits for the host where it has nothing to do and what comes next is launched only then: the call began after
 * all earlier work had ended. Such a wait counts as launch_wait_ns up to 100 microseconds, which is what launching takes
 * and a program does between two launches, and as host_wait_ns when longer. All other idle time is other_idle_ns. In
 * `ranges` and `launch_bound` a name's numbers are of all work launched in it and in ranges within it, once where it is
 * open several times; self_ without ranges within it. A name's span: from its begin to its end, or to the end of the last
 * work launched in it, ranges of one name united, times the devices it launches to. A wait counts there as far as it
 * lies behind the begin of the range. Work launched in no range is in the row "(no range)", which has no span. `verdict`
 * is that of the larger wait, launch-bound or host-bound, where it is a tenth of the span or more, else null.
 *
 * Gaps: times in which no stream of a device was busy, the longest first, from the process's first event on; `before`
 * and `after` are the work around it, `range` the ranges around the launch of the latter, the outermost first. Reasons
 * are those of <marey/breakdown.h>, the one that takes most of the gap.
 */
MAREY_API marey_table *marey_gpu_report_table(marey_gpu_report *report, const char *name);

/* A JSON object with all tables. */
MAREY_API marey_status marey_gpu_report_json(marey_gpu_report *report, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
