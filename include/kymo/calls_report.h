/*
 * kymo/calls_report.h: which functions ran, how often and how long, from where and with what arguments (libkymo-tools).
 *
 *     kymo_calls_report *c;
 *     kymo_calls_report_create(&recording, 1, NULL, &c);
 *     kymo_calls_report_text(c, NULL, stdout);
 *
 * Read from what `kymo run --calls`, kymo.start(calls=True) or a kymo.Profile left in a recording; from its ranges where there
 * is nothing of the kind, which is what an imported profile of cProfile has. Processes and ranks are added up. From samples
 * where only those were recorded: these have times and no call counts, so that columns of calls and times per call are null.
 */
#ifndef KYMO_CALLS_REPORT_H
#define KYMO_CALLS_REPORT_H

#include <stdio.h>

#include <kymo/recording.h>
#include <kymo/report.h>
#include <kymo/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kymo_calls_report kymo_calls_report;

struct kymo_calls_report_options {
    const char *filter; /* of functions by their name, as in the summary; NULL: all. Sums do not change by it */
    const char *sort; /* self, total, calls, percall, name; "-" before it turns round; NULL: self */
    int by_signature; /* `callers`, `callees`: a function with other arguments is another one */
    int subtract;     /* take what measuring the calls cost out of the times */
    int startup; /* imports at module level count; else they are left out, and a note says how long they took */
};

/*
 * Read `n` recordings; lent until this returns. KYMO_EINVAL for a sort that there is none of, KYMO_EFORMAT when there is
 * neither a call nor a range in them, with how to record some.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status
kymo_calls_report_create(kymo_recording *const *recordings, size_t n,
                         const struct kymo_calls_report_options *options, kymo_calls_report **out);
KYMO_API void kymo_calls_report_destroy(kymo_calls_report *report);
/* 1 when a process of these was profiled: there is more than ranges. */
KYMO_API int kymo_calls_are_there(kymo_recording *const *recordings, size_t n);

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
KYMO_API kymo_table *kymo_calls_report_table(kymo_calls_report *report, const char *name);

struct kymo_calls_text_options {
    struct kymo_text_options text;
    const char *table; /* which of the first seven; NULL: functions */
    uint32_t limit;    /* rows at most; 0: all */
};
/* For people; as JSON an object with all tables. KYMO_EIO when the stream refuses, KYMO_EINVAL for a table there is none of. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_calls_report_text(
    kymo_calls_report *report, const struct kymo_calls_text_options *options, FILE *out);
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_calls_report_json(kymo_calls_report *report, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
