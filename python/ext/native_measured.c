/*
 * native_measured.c: one measurement of the stopwatch as a block or a decorator: `with sw("forward"):`.
 *
 * A Measurement has the layout of a Range, so that native_wrapper.c can decorate with either. One object per name is
 * cached and used by all threads. The state of a block is in the thread:
 *
 *   - A block within a block of the same name (recursion) measures nothing; the outermost one counts. How many such
 *     blocks are open is in the thread's dictionary, since it is rare.
 *   - A block that was entered while the stopwatch was off finds nothing running at its end and stops nothing.
 */
#include "native.h"

#include <marey/stopwatch.h>
#include <structmember.h>

/* Open blocks on this thread that measure nothing because one with their name is already running. */
static _Thread_local unsigned n_again;

static const struct native_range *range_of(PyObject *self)
{
    return (const struct native_range *)self;
}

static const struct native_state *state_of(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

PyObject *native_stopwatch_end(const struct native_state *state, marey_status status)
{
    if (MAREY_UNLIKELY(status != MAREY_OK) && state->strict)
        return native_raise(state, status);
    Py_RETURN_NONE;
}

/* The same for a call that may wait for the GPU. If torch raises, a started measurement is dropped. */
static PyObject *call_waiting(const struct native_state *state, native_stopwatch_call *call,
                              marey_id id)
{
    const enum native_wait before = native_wait_begin();
    const marey_status status = call(id);
    native_wait_end(before);
    if (PyErr_Occurred()) {
        if (call == marey_stopwatch_start_on)
            marey_stopwatch_cancel(id);
        return NULL;
    }
    return native_stopwatch_end(state, status);
}

PyObject *native_stopwatch_call_on(const struct native_state *state, uint32_t on,
                                   native_stopwatch_call *call, marey_id id)
{
    if (MAREY_UNLIKELY(on & MAREY_ON_STOPWATCH_SYNC))
        return call_waiting(state, call, id);
    return native_stopwatch_end(state, call(id));
}

/* ---- blocks ---- */

/* Adds `by` to the number of blocks of `name` here that measure nothing. Returns the previous number, -1 on error. */
static long again_add(PyObject *name, long by)
{
    PyObject *dict = PyThreadState_GetDict();
    PyObject *key EXT_OWNED = dict != NULL ? Py_BuildValue("sO", "marey.Stopwatch", name) : NULL;
    if (key == NULL)
        return -1;
    PyObject *known = PyDict_GetItemWithError(dict, key);
    const long before = known != NULL ? PyLong_AsLong(known) : 0;
    PyObject *after EXT_OWNED = PyErr_Occurred() ? NULL : PyLong_FromLong(before + by);
    int rc = -1;
    if (after != NULL && before + by > 0)
        rc = PyDict_SetItem(dict, key, after);
    else if (after != NULL)
        rc = known != NULL ? PyDict_DelItem(dict, key) : 0;
    if (rc < 0)
        return -1;
    n_again = (unsigned)((long)n_again + by);
    return before;
}

/* True if this block measures nothing; ends it. -1 on error. */
static int again_ends(PyObject *name)
{
    if (MAREY_LIKELY(n_again == 0))
        return 0;
    const long before = again_add(name, 0);
    if (before <= 0)
        return before < 0 ? -1 : 0;
    return again_add(name, -1) < 0 ? -1 : 1;
}

static PyObject *measured_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const uint32_t on = marey_on();
    if (MAREY_LIKELY((on & MAREY_ON_STOPWATCH) == 0))
        Py_RETURN_NONE;
    const marey_id id = range_of(self)->id;
    if (MAREY_UNLIKELY(marey_stopwatch_is_running(id))) {
        if (again_add(range_of(self)->name, 1) < 0)
            return NULL;
        Py_RETURN_NONE;
    }
    return native_stopwatch_call_on(state_of(self), on, marey_stopwatch_start_on, id);
}

static PyObject *measured_exit(PyObject *self, PyObject *const *Py_UNUSED(args),
                               Py_ssize_t Py_UNUSED(nargs))
{
    const int is_over = again_ends(range_of(self)->name);
    if (MAREY_UNLIKELY(is_over < 0))
        return NULL;
    const uint32_t on = marey_on();
    const marey_id id = range_of(self)->id;
    if (is_over || (on & MAREY_ON_STOPWATCH) == 0 || !marey_stopwatch_is_running(id))
        Py_RETURN_NONE;
    return native_stopwatch_call_on(state_of(self), on, marey_stopwatch_stop_on, id);
}

/* ---- decorated functions ---- */

int native_measured_begin(const struct native_range *range, uint32_t on)
{
    if ((on & MAREY_ON_STOPWATCH) == 0 || marey_stopwatch_is_running(range->id))
        return 0;
    PyObject *begun EXT_OWNED = native_stopwatch_call_on(state_of((PyObject *)range), on,
                                                         marey_stopwatch_start_on, range->id);
    return begun != NULL ? 1 : -1;
}

PyObject *native_measured_finish(const struct native_range *range, PyObject *result)
{
    const uint32_t on = marey_on();
    if ((on & MAREY_ON_STOPWATCH) == 0)
        return result;
    PyObject *type, *value, *traceback; /* saves the function's exception during a wait */
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *ended EXT_OWNED = native_stopwatch_call_on(state_of((PyObject *)range), on,
                                                         marey_stopwatch_stop_on, range->id);
    if (ended == NULL && result != NULL) /* the function raised nothing, so raise this */
        Py_CLEAR(result);
    else
        PyErr_Restore(type, value, traceback);
    return result;
}

/* ---- the type ---- */

static PyObject *measured_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<marey.Stopwatch measurement %R>", range_of(self)->name);
}

static PyObject *measured_refuse_new(PyTypeObject *Py_UNUSED(type), PyObject *Py_UNUSED(args),
                                     PyObject *Py_UNUSED(kwargs))
{
    return PyErr_Format(PyExc_TypeError, "measurements are made by marey.Stopwatch()(name)");
}

static void measured_finalize(PyObject *self)
{
    Py_CLEAR(((struct native_range *)self)->name);
}

static PyMethodDef measured_methods[] = {
    {"__enter__", measured_enter, METH_NOARGS, "Start the measurement."},
    {"__exit__", (PyCFunction)(void (*)(void))measured_exit, METH_FASTCALL, "End it."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef measured_members[] = {
    {"name", T_OBJECT, offsetof(struct native_range, name), READONLY, "The name, as it was given."},
    {NULL, 0, 0, 0, NULL},
};
EXT_TYPE(native_measured_spec, "marey.Measurement", struct native_range,
         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
         {Py_tp_doc,
          (void *)"A measurement of the stopwatch: a context manager and a decorator.\n\n"
                  "Made by Stopwatch()(name). It ends with the block, by an exception too."},
         {Py_tp_new, measured_refuse_new}, {Py_tp_call, native_decorate_call},
         {Py_tp_repr, measured_repr}, {Py_tp_methods, measured_methods},
         {Py_tp_members, measured_members}, {Py_tp_finalize, measured_finalize})

/* The cached object of a name, if there is room. */
static PyObject *measured_make(struct native_state *state, PyObject *name, marey_id id)
{
    PyObject *known = PyDict_GetItemWithError(state->measured, name);
    if (known != NULL)
        return Py_NewRef(known);
    struct native_range *made = PyErr_Occurred() ? NULL : native_new(state, NATIVE_MEASURED);
    if (made == NULL)
        return NULL;
    made->id = id;
    made->name = Py_NewRef(name);
    if (PyDict_GET_SIZE(state->measured) < NATIVE_MAX_NAMES &&
        PyDict_SetItem(state->measured, name, (PyObject *)made) < 0)
        Py_CLEAR(made);
    return (PyObject *)made;
}

PyObject *native_measured(struct native_state *state, PyObject *given)
{
    marey_id id;
    PyObject *name EXT_OWNED = native_name(given);
    PyObject *made = NULL;
    if (name != NULL && native_id(state, name, &id) == 0)
        made = measured_make(state, name, id);
    if (made != NULL)
        native_slot_fill(state->slots[NATIVE_MEASURED_SLOTS], name, made, id);
    return made;
}
