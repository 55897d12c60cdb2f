/*
 * native_stopwatch.c: Stopwatch, the stopwatch of <marey/stopwatch.h>.
 *
 * There is one instance, whose switch, options and results are process-wide, in libmarey: a method that was looked up
 * before enable() works after it, and a measurement may start in C and end here. Only `strict` belongs to Python:
 * misuse, which libmarey counts and reports once, then raises.
 *
 * Due reports go where print() writes, which is not C's stdout: libmarey passes them to printer(), and finish prints
 * them after libmarey returns. Output to files, pandas and other ranks is in marey/_stopwatch.py.
 */
#include "native.h"

#include <marey/stopwatch.h>

#include <string.h>
#include <structmember.h>

/* Where printer() stores a report on this thread: a new reference; NULL outside native_stopwatch_finish(). */
static _Thread_local PyObject **report_here;

/* ---- measurements ---- */

/* The id of the single argument `name`. -1 and an exception on failure. */
static inline int id_argument(PyObject *self, const char *method, PyObject *const *args,
                              Py_ssize_t nargs, PyObject *kwnames, marey_id *id)
{
    PyObject *name = NULL;
    if (MAREY_LIKELY(nargs == 1 && kwnames == NULL))
        name = args[0];
    else if (NATIVE_ARGUMENTS(method, 1, &name, "name") < 0)
        return -1;
    return native_id(native_single_state(self), name, id);
}

#define METHOD_BY_NAME(function, method, call)                                                     \
    static PyObject *function(PyObject *self, PyObject *const *args, Py_ssize_t nargs,             \
                              PyObject *kwnames)                                                   \
    {                                                                                              \
        marey_id id;                                                                               \
        if (MAREY_UNLIKELY(id_argument(self, method, args, nargs, kwnames, &id) < 0))              \
            return NULL;                                                                           \
        const uint32_t on = marey_on();                                                            \
        if ((on & MAREY_ON_STOPWATCH) == 0)                                                        \
            Py_RETURN_NONE;                                                                        \
        return native_stopwatch_call_on(native_single_state(self), on, call, id);                  \
    }

static marey_status cancel(marey_id id)
{
    marey_stopwatch_cancel(id);
    return MAREY_OK;
}

METHOD_BY_NAME(stopwatch_start_meas, "start_meas", marey_stopwatch_start_on)
METHOD_BY_NAME(stopwatch_end_meas, "end_meas", marey_stopwatch_stop_on)
METHOD_BY_NAME(stopwatch_cancel_meas, "cancel_meas", cancel)
METHOD_BY_NAME(stopwatch_start_once, "start_one_time_measurement", marey_stopwatch_once_start)
METHOD_BY_NAME(stopwatch_end_once, "end_one_time_measurement", marey_stopwatch_once_stop)

/* sw("forward") */
static PyObject *stopwatch_measure(PyObject *self, PyObject *const *args, size_t nargsf,
                                   PyObject *kwnames)
{
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *name = NULL;
    if (MAREY_LIKELY(nargs == 1 && kwnames == NULL)) {
        const struct native_slot *slot =
            &native_single_state(self)->slots[NATIVE_MEASURED_SLOTS][native_slot_of(args[0])];
        if (MAREY_LIKELY(slot->key == args[0]))
            return Py_NewRef(slot->range);
    }
    if (NATIVE_ARGUMENTS("Stopwatch", 1, &name, "name") < 0)
        return NULL;
    return native_measured(native_single_state(self), name);
}

/* ---- iterations ---- */

static PyObject *report_text(const char *data, size_t len)
{
    return PyUnicode_DecodeUTF8(data, (Py_ssize_t)len, "backslashreplace");
}

/* The program's C code may end iterations too, without the GIL: then C's stdout is used. */
static void printer(void *Py_UNUSED(ctx), const char *text, size_t len)
{
    if (report_here == NULL) {
        fwrite(text, 1, len, stdout);
        fflush(stdout);
    } else if (*report_here == NULL) {
        *report_here = report_text(text, len);
    }
}

/* Call a function of marey/_stopwatch.py. */
static PyObject *by_package(const char *function, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames)
{
    PyObject *module EXT_OWNED = PyImport_ImportModule("marey._stopwatch");
    PyObject *callee EXT_OWNED = module != NULL ? PyObject_GetAttrString(module, function) : NULL;
    PyObject *result =
        callee != NULL ? PyObject_Vectorcall(callee, args, (size_t)nargs, kwnames) : NULL;
    return result;
}

/*
 * Prints a due report. A training loop should not fail because its output cannot be written: that is printed once and
 * ignored. -1 and an exception for those that should end the program, such as KeyboardInterrupt, and for all if strict.
 */
static int print_due(struct native_state *state, PyObject *report)
{
    PyObject *printed EXT_OWNED = by_package("write_report", &report, 1, NULL);
    if (printed != NULL)
        return 0;
    if (state->strict || !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    if (state->is_print_reported)
        PyErr_Clear();
    else
        PyErr_WriteUnraisable(state->singles[NATIVE_STOPWATCH]);
    state->is_print_reported = 1;
    return 0;
}

int native_stopwatch_finish(struct native_state *state, const char *driver, double samples)
{
    const int is_on = (marey_on() & MAREY_ON_STOPWATCH) != 0;
    if (is_on && state->strict) {
        const marey_status status = marey_stopwatch_check_stopped();
        if (status != MAREY_OK) {
            native_raise(state, status);
            return -1;
        }
    }
    PyObject *report EXT_OWNED = NULL;
    report_here = &report;
    const int counts = marey_iteration_finish_by(driver, samples);
    report_here = NULL;
    if (MAREY_LIKELY(report == NULL))
        return PyErr_Occurred() ? -1 : counts;
    return print_due(state, report) < 0 ? -1 : counts;
}

NATIVE_METHOD(stopwatch_finish_iter)
{
    PyObject *samples = NULL;
    double n = 0;
    if (MAREY_UNLIKELY(nargs != 0 || kwnames != NULL) &&
        (NATIVE_ARGUMENTS("finish_iter", 0, &samples, "samples") < 0 ||
         native_samples(samples, &n) < 0))
        return NULL;
    if ((marey_on() & MAREY_ON_STOPWATCH) == 0)
        Py_RETURN_NONE;
    if (native_stopwatch_finish(native_single_state(self), "Stopwatch.finish_iter", n) < 0)
        return NULL;
    Py_RETURN_NONE;
}

EXT_FUNCTION(stopwatch_n_measured,
             PyLong_FromUnsignedLongLong(marey_stopwatch_is_enabled() ? marey_stopwatch_n_measured()
                                                                      : 0))

/* ---- the switch ---- */

static int gpu_argument(PyObject *value, uint32_t do_cuda_sync, enum marey_stopwatch_gpu *out)
{
    *out = do_cuda_sync ? MAREY_GPU_SYNC : MAREY_GPU_NONE;
    if (value == NULL || value == Py_None)
        return 0;
    const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : "";
    if (text == NULL)
        return -1;
    if (strcmp(text, "sync") == 0) {
        *out = MAREY_GPU_SYNC;
    } else if (strcmp(text, "events") == 0 && !do_cuda_sync) {
        *out = MAREY_GPU_EVENTS;
    } else {
        return EXT_FAIL(PyExc_ValueError, "gpu is None, \"sync\" or \"events\"%s, not %R",
                        do_cuda_sync ? ", and with do_cuda_sync it is \"sync\"" : "", value);
    }
    return 0;
}

static int enable_arguments(PyObject *const *values, struct marey_stopwatch_options *options,
                            uint32_t *strict)
{
    PyObject *const print_every = values[1] != Py_None ? values[1] : NULL;
    uint32_t do_cuda_sync;
    if ((values[0] != NULL &&
         native_count(values[0], 0, "num_warmup_iters is 0 or more", &options->warmup) < 0) ||
        (print_every != NULL && native_count(print_every, 1, "print_every_n_iters is 1 or more",
                                             &options->print_every) < 0) ||
        native_truth(values[2], &do_cuda_sync) < 0 ||
        gpu_argument(values[3], do_cuda_sync, &options->gpu) < 0 ||
        native_truth(values[4], strict) < 0 || native_truth(values[5], &options->sync_one_time) < 0)
        return -1;
    return 0;
}

NATIVE_METHOD(stopwatch_enable)
{
    PyObject *values[6] = {NULL};
    struct marey_stopwatch_options options = {0};
    uint32_t strict;
    if (NATIVE_ARGUMENTS("enable", 0, values, "num_warmup_iters", "print_every_n_iters",
                         "do_cuda_sync", "gpu", "strict", "sync_one_time") < 0 ||
        enable_arguments(values, &options, &strict) < 0)
        return NULL;
    const marey_status status = EXT_STATUS_UNLOCKED(marey_stopwatch_enable(&options));
    if (status != MAREY_OK)
        return native_raise(native_single_state(self), status);
    native_single_state(self)->strict = strict != 0;
    native_single_state(self)->is_print_reported = 0;
    Py_RETURN_NONE;
}

static PyObject *stopwatch_disable(PyObject *self, PyObject *Py_UNUSED(unused))
{
    marey_stopwatch_disable();
    native_single_state(self)->strict = 0;
    Py_RETURN_NONE;
}

static PyObject *stopwatch_reset(PyObject *self, PyObject *unused)
{
    marey_stopwatch_reset();
    return stopwatch_disable(self, unused);
}

EXT_ACTION(stopwatch_clear, marey_stopwatch_reset())
EXT_PROPERTY(stopwatch_is_enabled, PyBool_FromLong(marey_stopwatch_is_enabled()))

/* ---- resource usage ---- */

static const struct {
    const char *name;
    uint32_t bit;
} usages[] = {
    {"thread", MAREY_USAGE_THREAD_CPU}, {"process", MAREY_USAGE_PROCESS_CPU},
    {"tree", MAREY_USAGE_TREE_CPU},     {"machine", MAREY_USAGE_MACHINE_CPU},
    {"faults", MAREY_USAGE_FAULTS},     {"rss", MAREY_USAGE_RSS},
};
enum { N_USAGES = sizeof usages / sizeof *usages };
#define ALL_USAGES UINT32_MAX

static int usage_bit(PyObject *name, uint32_t *mask)
{
    for (size_t i = 0; PyUnicode_Check(name) && i < N_USAGES; i++) {
        if (PyUnicode_CompareWithASCIIString(name, usages[i].name) == 0) {
            *mask |= usages[i].bit;
            return 0;
        }
    }
    return EXT_FAIL(
        PyExc_ValueError,
        "usage is one or several of \"thread\", \"process\", \"tree\", \"machine\", \"faults\" and "
        "\"rss\", not %R",
        name);
}

/* A mask of the given names; ALL_USAGES if not given. */
static int usage_argument(PyObject *value, uint32_t *mask)
{
    *mask = value == NULL || value == Py_None ? ALL_USAGES : 0;
    if (*mask == ALL_USAGES)
        return 0;
    if (PyUnicode_Check(value))
        return usage_bit(value, mask);
    PyObject *names EXT_OWNED = PySequence_Fast(value, "usage is a name or several names");
    int rc = names != NULL ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PySequence_Fast_GET_SIZE(names); i++)
        rc = usage_bit(PySequence_Fast_GET_ITEM(names, i), mask);
    return rc;
}

/* Measures everything that this kernel reports; libmarey prints what it lacks. */
static marey_status measure_all(marey_id id)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < N_USAGES; i++)
        if (marey_stopwatch_measure_usage(id, usages[i].bit) == MAREY_OK)
            mask |= usages[i].bit;
    return marey_stopwatch_measure_usage(id, mask);
}

NATIVE_METHOD(stopwatch_set_usage)
{
    PyObject *values[2] = {NULL};
    marey_id id;
    uint32_t mask;
    if (NATIVE_ARGUMENTS("set_cpu_usage_meas_name", 1, values, "name", "usage") < 0 ||
        native_id(native_single_state(self), values[0], &id) < 0 ||
        usage_argument(values[1], &mask) < 0)
        return NULL;
    if (!marey_stopwatch_is_enabled())
        Py_RETURN_NONE;
    const marey_status status =
        mask != ALL_USAGES ? marey_stopwatch_measure_usage(id, mask) : measure_all(id);
    return native_stopwatch_end(native_single_state(self), status);
}

/* ---- results ---- */

static PyObject *stopwatch_report(PyObject *self, PyObject *Py_UNUSED(unused))
{
    char *data = NULL;
    size_t len = 0;
    FILE *stream = open_memstream(&data, &len);
    if (stream == NULL)
        return PyErr_NoMemory();
    const marey_status status = marey_stopwatch_print(stream);
    PyObject *text = NULL;
    if (fclose(stream) != 0)
        PyErr_NoMemory();
    else if (status != MAREY_OK)
        native_raise(native_single_state(self), status);
    else
        text = report_text(data, len);
    free(data);
    return text;
}

#define METHOD_OF_PACKAGE(function)                                                                \
    static PyObject *stopwatch_##function(PyObject *Py_UNUSED(self), PyObject *const *args,        \
                                          Py_ssize_t nargs, PyObject *kwnames)                     \
    {                                                                                              \
        return by_package(#function, args, nargs, kwnames);                                        \
    }

METHOD_OF_PACKAGE(print_eval_times)
METHOD_OF_PACKAGE(stats)
METHOD_OF_PACKAGE(to_json)
METHOD_OF_PACKAGE(to_csv)
METHOD_OF_PACKAGE(to_pandas)
METHOD_OF_PACKAGE(gather)

/* ---- the one instance ---- */

static PyMethodDef stopwatch_methods[] = {
    {"enable", NATIVE_FASTCALL(stopwatch_enable),
     "enable($self, /, num_warmup_iters=0, print_every_n_iters=None, do_cuda_sync=False, "
     "gpu=None, strict=False, sync_one_time=False)\n--\n\n"
     "Enable, without results. Skips the first num_warmup_iters iterations, and prints a "
     "report every\n"
     "print_every_n_iters measured ones. gpu=\"sync\", or do_cuda_sync, waits for the GPU "
     "at both ends of a measurement;\n"
     "gpu=\"events\" uses GPU timestamps and does not wait. With strict, misuse raises "
     "instead of being printed once."},
    {"disable", stopwatch_disable, METH_NOARGS,
     "disable($self, /)\n--\n\n"
     "Disable. Results stay readable; running measurements are dropped."},
    {"reset", stopwatch_reset, METH_NOARGS,
     "reset($self, /)\n--\n\n"
     "Disable, and drop results and options."},
    {"clear", stopwatch_clear, METH_NOARGS,
     "clear($self, /)\n--\n\n"
     "Drop the results and continue."},
    {"start_meas", NATIVE_FASTCALL(stopwatch_start_meas),
     "start_meas($self, /, name)\n--\n\n"
     "Start a measurement. Does nothing while disabled."},
    {"end_meas", NATIVE_FASTCALL(stopwatch_end_meas),
     "end_meas($self, /, name)\n--\n\n"
     "End a measurement; its time counts for the current iteration."},
    {"cancel_meas", NATIVE_FASTCALL(stopwatch_cancel_meas),
     "cancel_meas($self, /, name)\n--\n\n"
     "Drop a measurement, as if not started."},
    {"finish_iter", NATIVE_FASTCALL(stopwatch_finish_iter),
     "finish_iter($self, /, samples=None)\n--\n\n"
     "Finish the iteration; samples is its number of training samples, for the throughput."},
    {"start_one_time_measurement", NATIVE_FASTCALL(stopwatch_start_once),
     "start_one_time_measurement($self, /, name)\n--\n\n"
     "Start a measurement that happens once in the process, in warm-up too."},
    {"end_one_time_measurement", NATIVE_FASTCALL(stopwatch_end_once),
     "end_one_time_measurement($self, /, name)\n--\n\n"
     "End a one-time measurement."},
    {"set_cpu_usage_meas_name", NATIVE_FASTCALL(stopwatch_set_usage),
     "set_cpu_usage_meas_name($self, /, name, usage=None)\n--\n\n"
     "Also measure CPU usage during `name`, and more, from its next start on. Any number "
     "of names.\n\n"
     "usage is one or several of thread, process, tree (the process and its living "
     "descendants), machine,\n"
     "faults (page faults and context switches) and rss; None for all."},
    {"print_eval_times", NATIVE_FASTCALL(stopwatch_print_eval_times),
     "print_eval_times($self, /, file=None)\n--\n\nPrint the report, to sys.stdout by default."},
    {"report", stopwatch_report, METH_NOARGS,
     "report($self, /)\n--\n\n"
     "The report as text, even while disabled."},
    {"get_num_nonwarmup_iters_measured", stopwatch_n_measured, METH_NOARGS,
     "get_num_nonwarmup_iters_measured($self, /)\n--\n\n"
     "Finished iterations without warm-up; 0 while off."},
    {"stats", NATIVE_FASTCALL(stopwatch_stats),
     "stats($self, /)\n--\n\nThe results so far as tables: marey.StopwatchStats."},
    {"to_json", NATIVE_FASTCALL(stopwatch_to_json),
     "to_json($self, /, path=None)\n--\n\nWrite all tables as one JSON object, or return it."},
    {"to_csv", NATIVE_FASTCALL(stopwatch_to_csv),
     "to_csv($self, /, path=None, table='iterations')\n--\n\nWrite a table as CSV, or return it."},
    {"to_pandas", NATIVE_FASTCALL(stopwatch_to_pandas),
     "to_pandas($self, /, table='iterations')\n--\n\nA table as a pandas.DataFrame."},
    {"gather", NATIVE_FASTCALL(stopwatch_gather),
     "gather($self, /, group=None)\n--\n\n"
     "Merge the results of all ranks of a torch.distributed or mpi4py job: marey.StopwatchStats on "
     "every rank.\nAll ranks call it."},
    {"__reduce__", native_single_reduce, METH_NOARGS, "Pickle as the one instance."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef stopwatch_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct native_single, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef stopwatch_getset[] = {
    {"is_enabled", stopwatch_is_enabled, NULL, "Whether the stopwatch is enabled.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    stopwatch_doc,
    "Named measurements over the iterations of a program, with statistics while it runs.\n\n"
    "Stopwatch() returns the one instance of this process; with arguments it is enabled "
    "as well. Off by default:\n"
    "then its methods do nothing. `with sw(\"forward\"):` measures a block, "
    "@sw(\"load\") a function.");

EXT_LOCAL_TYPE(stopwatch_spec, "marey.Stopwatch", struct native_single,
               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                   Py_TPFLAGS_IMMUTABLETYPE,
               {Py_tp_doc, (void *)stopwatch_doc}, {Py_tp_new, native_single_new},
               {Py_tp_call, PyVectorcall_Call}, {Py_tp_members, stopwatch_members},
               {Py_tp_methods, stopwatch_methods}, {Py_tp_getset, stopwatch_getset},
               {Py_tp_traverse, native_single_traverse})

int native_stopwatch_make(PyObject *module)
{
    marey_stopwatch_set_printer(printer, NULL);
    return native_single_make(module, NATIVE_STOPWATCH, &stopwatch_spec, NULL, stopwatch_enable,
                              stopwatch_measure);
}
