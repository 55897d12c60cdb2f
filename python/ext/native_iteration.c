/*
 * native_iteration.c: iterations and epochs of <marey/iteration.h>. marey/_iteration.py is the public interface.
 *
 * A finished iteration may print the stopwatch's report; see native_stopwatch_finish().
 */
#include "native.h"

#include <marey/iteration.h>

/* The driver: the argument `at`, a str shown in messages, or the package's functions. NULL on exception. */
static const char *driver_of(PyObject *module, PyObject *const *args, Py_ssize_t nargs, Py_ssize_t at)
{
    marey_id id;
    size_t len;
    if (nargs <= at)
        return "marey.iteration";
    if (native_id(native_state_of(module), args[at], &id) < 0)
        return NULL;
    return marey_site_name(id, &len); /* names are permanent, as a driver must be */
}

static PyObject *iteration_begin(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    const char *driver = driver_of(module, args, nargs, 0);
    if (driver == NULL)
        return NULL;
    marey_iteration_begin_by(driver);
    Py_RETURN_NONE;
}

int native_samples(PyObject *value, double *samples)
{
    *samples = 0;
    if (value == NULL || value == Py_None)
        return 0;
    *samples = PyFloat_AsDouble(value);
    if (*samples == -1 && PyErr_Occurred())
        return -1;
    if (*samples >= 0 && *samples < HUGE_VAL)
        return 0;
    return EXT_FAIL(PyExc_ValueError, "samples is how many the iteration worked on, not %R", value);
}

static PyObject *iteration_finish(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    double n;
    const char *driver = driver_of(module, args, nargs, 1);
    if (driver == NULL || native_samples(nargs > 0 ? args[0] : NULL, &n) < 0)
        return NULL;
    const int counts = native_stopwatch_finish(native_state_of(module), driver, n);
    return counts < 0 ? NULL : PyBool_FromLong(counts);
}

/* step_hint(what, who=0, samples=0.0) */
static PyObject *step_hint(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    const long what = nargs > 0 ? PyLong_AsLong(args[0]) : 0;
    const uint64_t who = nargs > 1 ? PyLong_AsUnsignedLongLongMask(args[1]) : 0;
    const double samples = nargs > 2 ? PyFloat_AsDouble(args[2]) : 0;
    if (PyErr_Occurred())
        return NULL;
    if (what < MAREY_STEP_UPDATE || what > MAREY_STEP_BATCH)
        return PyErr_Format(PyExc_ValueError, "%ld is not a hint", what);
    marey_step_hint((enum marey_step_hint)what, who, samples);
    Py_RETURN_NONE;
}

EXT_FUNCTION(auto_is_on, PyBool_FromLong(marey_auto_is_on()))

static PyObject *iteration_set_warmup(PyObject *Py_UNUSED(module), PyObject *count)
{
    uint64_t n;
    if (native_count(count, 0, "warm-up is 0 or more iterations", &n) < 0)
        return NULL;
    marey_iteration_set_warmup(n);
    Py_RETURN_NONE;
}

/* epoch_begin(number=None) */
static PyObject *epoch_begin(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *number = Py_None;
    if (!PyArg_ParseTuple(args, "|O:epoch_begin", &number))
        return NULL;
    if (number == Py_None) {
        marey_epoch_begin();
        Py_RETURN_NONE;
    }
    uint64_t n;
    if (native_count(number, 0, "epochs are numbered from 0", &n) < 0)
        return NULL;
    marey_epoch_begin_at(n);
    Py_RETURN_NONE;
}

EXT_ACTION(epoch_end, marey_epoch_end())

/* Names for display; a name of bytes may not be valid text. */
static PyObject *phase_times(const struct marey_epoch_times *times)
{
    PyObject *phases = PyDict_New();
    for (uint32_t i = 0; phases != NULL && i < times->n_phases; i++) {
        size_t len;
        const char *name = marey_site_name(times->phases[i].name, &len);
        if (ext_put(phases, PyUnicode_DecodeUTF8(name, (Py_ssize_t)len, "replace"),
                    PyLong_FromUnsignedLongLong(times->phases[i].ns)) < 0)
            Py_CLEAR(phases);
    }
    return phases;
}

static PyObject *epoch_last(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    struct marey_epoch_times times;
    if (!marey_epoch_last(&times))
        Py_RETURN_NONE;
    PyObject *phases = phase_times(&times);
    if (phases == NULL)
        return NULL;
    return Py_BuildValue("{sKsKsKsdsKsN}", "number", (unsigned long long)times.number,
                         "duration_ns", (unsigned long long)times.duration_ns, "iterations",
                         (unsigned long long)times.iterations, "samples", times.samples, "none_ns",
                         (unsigned long long)times.none_ns, "phases", phases);
}

static PyObject *progress(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    struct marey_progress_counts counts;
    marey_iteration_counts(&counts);
    return Py_BuildValue("{sKsKsKsOsz}", "iterations", (unsigned long long)counts.iterations,
                         "warmup", (unsigned long long)counts.warmup, "epochs",
                         (unsigned long long)counts.epochs, "in_epoch",
                         counts.in_epoch ? Py_True : Py_False, "driver", counts.driver);
}

PyMethodDef native_iteration_functions[] = {
    {"iteration_begin", (PyCFunction)(void (*)(void))iteration_begin, METH_FASTCALL, NULL},
    {"iteration_finish", (PyCFunction)(void (*)(void))iteration_finish, METH_FASTCALL, NULL},
    {"step_hint", (PyCFunction)(void (*)(void))step_hint, METH_FASTCALL, NULL},
    {"auto_is_on", auto_is_on, METH_NOARGS, NULL},
    {"set_warmup", iteration_set_warmup, METH_O,
     "set_warmup($module, iterations, /)\n--\n\n"
     "Mark the first iterations of the process as warm-up. Call before or during them."},
    {"epoch_begin", epoch_begin, METH_VARARGS, NULL},
    {"epoch_last", epoch_last, METH_NOARGS, NULL},
    {"epoch_end", epoch_end, METH_NOARGS, NULL},
    {"progress", progress, METH_NOARGS,
     "progress($module, /)\n--\n\n"
     "Progress of this process: iterations (including warm-up), epochs, and the driver, "
     "as a dict."},
    {NULL, NULL, 0, NULL},
};
