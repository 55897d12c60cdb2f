/*
 * native_switch.c: the switchboard and queries about the recording. marey/_start.py is the public interface.
 *
 * Starting and stopping create and write files, so they release the GIL.
 */
#include "native.h"

static PyObject *switch_start(PyObject *module, PyObject *args)
{
    PyObject *path EXT_OWNED = NULL;
    const char *text = NULL;
    if (!PyArg_ParseTuple(args, "O&z:start", PyUnicode_FSConverter, &path, &text))
        return NULL;
    const char *directory = PyBytes_AS_STRING(path);
    const struct marey_options options = {.path = directory[0] != '\0' ? directory : NULL,
                                          .text = text};
    if (!marey_enabled())
        native_nesting_renew();
    const marey_status status = EXT_STATUS_UNLOCKED(marey_start(&options));
    if (status != MAREY_OK)
        return native_raise(native_state_of(module), status);
    native_memory_watch();
    calls_watch();
    Py_RETURN_NONE;
}

static PyObject *switch_stop(PyObject *module, PyObject *Py_UNUSED(unused))
{
    calls_unwatch();
    const marey_status status = EXT_STATUS_UNLOCKED(marey_stop());
    native_nesting_renew();
    return native_result(native_state_of(module), status);
}

static PyObject *switch_reset(PyObject *module, PyObject *Py_UNUSED(unused))
{
    native_state_of(module)->strict = 0; /* Python's own option */
    native_phases_forget(&native_state_of(module)->phases);
    calls_unwatch();
    EXT_UNLOCKED(marey_reset());
    native_nesting_renew();
    Py_RETURN_NONE;
}

EXT_FUNCTION(switch_enabled, PyBool_FromLong(marey_enabled()))

/* Converts an int to a C int; `missing` is the default. -1 and an exception on failure. */
static int int_of(PyObject *value, int missing, int *out)
{
    const long number = value != NULL ? PyLong_AsLong(value) : missing;
    if (number == -1 && PyErr_Occurred())
        return -1;
    if (number > INT_MAX || number < INT_MIN)
        return EXT_FAIL(PyExc_OverflowError, "%R is too large", value);
    *out = (int)number;
    return 0;
}

NATIVE_METHOD(switch_set_rank)
{
    PyObject *values[2] = {NULL};
    int rank, world_size;
    if (NATIVE_ARGUMENTS("set_rank", 1, values, "rank", "world_size") < 0 ||
        int_of(values[0], -1, &rank) < 0 || int_of(values[1], -1, &world_size) < 0)
        return NULL;
    if (rank < 0)
        return PyErr_Format(PyExc_ValueError, "ranks count from 0, so %d is not a rank", rank);
    marey_set_rank(rank, world_size);
    Py_RETURN_NONE;
}

static PyObject *switch_set_worker(PyObject *Py_UNUSED(module), PyObject *number)
{
    int worker;
    if (int_of(number, -1, &worker) < 0)
        return NULL;
    marey_set_worker(worker);
    Py_RETURN_NONE;
}

NATIVE_METHOD(switch_allow_attach)
{
    PyObject *value = NULL;
    int pid = 0;
    if (NATIVE_ARGUMENTS("allow_attach", 0, &value, "pid") < 0 ||
        (value != NULL && value != Py_None && int_of(value, 0, &pid) < 0))
        return NULL;
    if (value != NULL && value != Py_None && pid <= 0)
        return PyErr_Format(PyExc_ValueError, "%d is not a process id; None allows any process", pid);
    return native_result(native_state_of(self), marey_allow_attach(pid));
}

static PyObject *switch_rank(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    int rank, world_size;
    marey_rank_get(&rank, &world_size);
    return Py_BuildValue("(ii)", rank, world_size);
}

static PyObject *switch_run_id(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    char id[64];
    if (!marey_run_id(id, sizeof id))
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(id);
}

static PyObject *switch_set_versions(PyObject *Py_UNUSED(module), PyObject *text)
{
    const char *utf8 = PyUnicode_AsUTF8(text);
    if (utf8 == NULL)
        return NULL;
    marey_set_versions(utf8);
    Py_RETURN_NONE;
}

static PyObject *switch_set_experiment(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *experiment, *strategy;
    if (!PyArg_ParseTuple(args, "zz:set_experiment", &experiment, &strategy))
        return NULL;
    marey_set_experiment(experiment, strategy);
    Py_RETURN_NONE;
}

EXT_FUNCTION(switch_recording_path, PyUnicode_DecodeFSDefault(marey_recording_path()))

static PyObject *switch_counts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    struct marey_counts counts;
    marey_counts_get(&counts);
    return Py_BuildValue("{sKsKsKsKsIsI}", "events", (unsigned long long)counts.events,
                         "lost_events", (unsigned long long)counts.lost_events, "log_bytes",
                         (unsigned long long)counts.log_bytes, "pool_bytes",
                         (unsigned long long)counts.pool_bytes, "n_threads", counts.n_threads,
                         "nesting_errors", counts.nesting_errors);
}

EXT_FUNCTION(switch_options_help, PyUnicode_FromString(marey_options_help()))
EXT_FUNCTION(switch_library_path, PyUnicode_DecodeFSDefault(marey_library_path()))

PyMethodDef native_switch_functions[] = {
    {"start", switch_start, METH_VARARGS, NULL},
    {"stop", switch_stop, METH_NOARGS, NULL},
    {"reset", switch_reset, METH_NOARGS, NULL},
    {"enabled", switch_enabled, METH_NOARGS,
     "enabled($module, /)\n--\n\nWhether a recording is open."},
    {"set_rank", NATIVE_FASTCALL(switch_set_rank),
     "set_rank($module, /, rank, world_size=-1)\n--\n\n"
     "Set the rank of this process."},
    {"set_worker", switch_set_worker, METH_O, NULL},
    {"allow_attach", NATIVE_FASTCALL(switch_allow_attach),
     "allow_attach($module, /, pid=None)\n--\n\n"
     "Allow a sampling profiler of the same user to attach to this process; pid: only that one."},
    {"run_id", switch_run_id, METH_NOARGS, NULL},
    {"rank", switch_rank, METH_NOARGS, NULL},
    {"set_versions", switch_set_versions, METH_O, NULL},
    {"set_experiment", switch_set_experiment, METH_VARARGS, NULL},
    {"recording_path", switch_recording_path, METH_NOARGS,
     "recording_path($module, /)\n--\n\n"
     "The directory of the open or last recording; \"\" before any."},
    {"counts", switch_counts, METH_NOARGS,
     "counts($module, /)\n--\n\n"
     "Counts of recorded and lost events so far, as a dict."},
    {"options_help", switch_options_help, METH_NOARGS, NULL},
    {"library_path", switch_library_path, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
