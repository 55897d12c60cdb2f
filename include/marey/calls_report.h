/*
 * marey/calls_report.h: which functions ran, how often and how long, from where and with what arguments
 * (libmarey-tools).
 *
 *     marey_calls_report *c;
 *     marey_calls_report_create(&recording, 1, NULL, &c);
 *     marey_calls_report_text(c, NULL, stdout);
 *
 * Read from what `marey run --calls`, marey.start(calls=True) or a marey.Profile left in a recording; from its ranges where there
 * is nothing of the kind, which is what an imported profile of cProfile has. Processes and ranks are added up. From samples
 * where only those were recorded: these have times and no call counts, so that columns of calls and times per call are null.
 */
#ifndef MAREY_CALLS_REPORT_H
#define MAREY_CALLS_REPORT_H

#include <stdio.h>

#include <marey/recording.h>
#include <marey/report.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_calls_report marey_calls_report;

struct marey_calls_report_options {
    const char *filter; /* of functions by their name, as in the summary; NULL: all. Sums do not change by it */
    const char *sort; /* self, total, calls, percall, name; "-" before it turns round; NULL: self */
    int by_signature; /* `callers`, `callees`: a function with other arguments is another one */
    int subtract;     /* take what measuring the calls cost out of the times */
    int startup; /* imports at module level count; else they are left out, and a note says how long they took */
};

/*
 * Read `n` recordings; lent until this returns. MAREY_EINVAL for a sort that there is none of, MAREY_EFORMAT when there is
 * neither a call nor a range in them, with how to record some.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_calls_report_create(
    marey_recording *const *recordings, size_t n, const struct marey_calls_report_options *options,
    marey_calls_report **out);
MAREY_API void marey_calls_report_destroy(marey_calls_report *report);
/* 1 when a process of these was profiled: there is more than ranges. */
MAREY_API int marey_calls_are_there(marey_recording *const *recordings, size_t n);

/*
 * Its tables, lent until it goes; NULL for a name it does not have.
 *   functions   function file line module kind calls primitive_calls resumes self_ns self_per_call_ns total_ns
 *               total_per_call_ns max_ns share gpu_ns
 *   signatures  the same with signature and elements behind function
 *   callers     function file line caller caller_file caller_line calls primitive_calls self_ns total_ns share
 *   callees     function file line callee callee_file callee_line calls primitive_calls self_ns total_ns share
 *   paths       node parent depth function signature file line thread calls self_ns total_ns share gpu_ns
 *   shapes      function file line signature calls per_call_ns elements ns_per_element times_best share
 *   threads     rank pid tid thread calls functions self_ns
 *   totals      calls primitive_calls functions signatures paths threads self_ns other_paths widened cost_per_call_ns
 *               subtracted_ns timer source
 *   notes       text
 *
 * Calls are counted as cProfile does: a generator or coroutine that goes on is one (`resumes`). Primitive ones have no other
 * call of the same function below them on the stack; total times count these alone, so that recursion is not counted twice.
 * By signatures, only calls with the same arguments are recursion. Of callers and callees, times are those of the callee when it
 * was called from there. Per call: self by all calls, total by primitive ones.
 *
 * `shapes` has functions that were called with several signatures. `share` is of the function's time; `ns_per_element` is total
 * time for each element of all arrays among the arguments, and `times_best` how often the best of the function fits into it.
 *
 * `paths` is depth first, the heaviest first; node numbers are those of this report. gpu_ns is the time of GPU work that was
 * launched in a call, those it made included; null where nothing of a GPU was traced.
 */
MAREY_API marey_table *marey_calls_report_table(marey_calls_report *report, const char *name);

struct marey_calls_text_options {
    struct marey_text_options text;
    const char *table; /* which of the first seven; NULL: functions */
    uint32_t limit;    /* rows at most; 0: all */
};
/* For people; as JSON an object with all tables. MAREY_EIO when the stream refuses, MAREY_EINVAL for a table there is none of. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_calls_report_text(
    marey_calls_report *report, const struct marey_calls_text_options *options, FILE *out);
MAREY_API MAREY_WARN_UNUSED marey_status marey_calls_report_json(marey_calls_report *report,
                                                                 FILE *out);

#ifdef __cplusplus
}
#endif
#endif
