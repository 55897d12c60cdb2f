/*
 * native_nvtx.c: NVTXRangeWrapper, the range wrapper of <marey/nvtx.h>.
 *
 * There is one instance, whose switch and options are process-wide, in libmarey: a method that was looked up before
 * enable() works after it. Existing programs call NVTXRangeWrapper() before each push, so the type has a vectorcall
 * that returns the instance without allocating.
 */
#include "native.h"

#include <marey/nvtx.h>

/* ---- push and pop ---- */

/* On an exception the state is as if push had not been called: the wait comes first. */
static PyObject *push_waiting(marey_id id)
{
    const enum native_wait before = native_wait_begin();
    const int rc = native_wait_first();
    if (rc == 0)
        marey_nvtx_push_on(id);
    native_wait_end(before);
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}

NATIVE_METHOD(nvtx_range_push)
{
    PyObject *name = NULL;
    if (MAREY_LIKELY(nargs == 1 && kwnames == NULL))
        name = args[0];
    else if (NATIVE_ARGUMENTS("range_push", 1, &name, "range_name") < 0)
        return NULL;
    marey_id id;
    if (MAREY_UNLIKELY(native_id(native_single_state(self), name, &id) < 0))
        return NULL;
    const uint32_t on = marey_on();
    if (MAREY_LIKELY((on & MAREY_ON_WRAPPER) == 0))
        Py_RETURN_NONE;
    if (MAREY_UNLIKELY(on & MAREY_ON_SYNC_PUSH))
        return push_waiting(id);
    marey_nvtx_push_on(id);
    Py_RETURN_NONE;
}

/* The wait happens inside. */
static PyObject *pop_waiting(PyObject *self, marey_id id)
{
    const enum native_wait before = native_wait_begin();
    const marey_status status = marey_nvtx_pop_id_on(id);
    native_wait_end(before);
    return PyErr_Occurred() ? NULL : native_result(native_single_state(self), status);
}

NATIVE_METHOD(nvtx_range_pop)
{
    PyObject *name = NULL;
    if (MAREY_LIKELY(nargs == 1 && kwnames == NULL))
        name = args[0];
    else if ((nargs != 0 || kwnames != NULL) &&
             NATIVE_ARGUMENTS("range_pop", 0, &name, "range_name") < 0)
        return NULL;
    if (name != NULL && MAREY_UNLIKELY(!PyUnicode_Check(name)) && native_optional_name(&name) < 0)
        return NULL;
    const uint32_t on = marey_on();
    if (MAREY_LIKELY((on & MAREY_ON_WRAPPER) == 0))
        Py_RETURN_NONE;
    marey_id id = 0;
    if (name != NULL && (on & MAREY_ON_ORDER) && native_id(native_single_state(self), name, &id) < 0)
        return NULL;
    if (MAREY_UNLIKELY(on & MAREY_ON_SYNC_POP))
        return pop_waiting(self, id);
    const marey_status status = marey_nvtx_pop_id_on(id);
    if (MAREY_UNLIKELY(status != MAREY_OK))
        return native_raise(native_single_state(self), status);
    Py_RETURN_NONE;
}

/* ---- the switch ---- */

NATIVE_METHOD(nvtx_enable)
{
    PyObject *values[3] = {NULL};
    struct marey_nvtx_options options;
    if (NATIVE_ARGUMENTS("enable", 3, values, "sync_on_push", "sync_on_pop",
                         "keep_track_of_range_order") < 0 ||
        native_truth(values[0], &options.sync_on_push) < 0 ||
        native_truth(values[1], &options.sync_on_pop) < 0 ||
        native_truth(values[2], &options.keep_track_of_range_order) < 0)
        return NULL;
    native_nesting_renew(); /* open blocks were entered unchecked */
    return NATIVE_UNLOCKED(native_single_state(self), marey_nvtx_enable(&options));
}

static PyObject *nvtx_disable(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    marey_nvtx_disable();
    native_nesting_renew();
    Py_RETURN_NONE;
}

EXT_PROPERTY(nvtx_is_enabled, PyBool_FromLong(marey_nvtx_is_enabled()))

/* ---- the one instance ---- */

static PyMethodDef nvtx_methods[] = {
    {"enable", NATIVE_FASTCALL(nvtx_enable),
     "enable($self, /, sync_on_push, sync_on_pop, keep_track_of_range_order)\n--\n\n"
     "Enable: wait for the GPU before each push, before each pop; check that ranges nest."},
    {"disable", nvtx_disable, METH_NOARGS,
     "disable($self, /)\n--\n\n"
     "Disable. Ends the ranges that this thread has open through it."},
    {"reset", nvtx_disable, METH_NOARGS,
     "reset($self, /)\n--\n\n"
     "Disable and drop the options, like disable()."},
    {"range_push", NATIVE_FASTCALL(nvtx_range_push),
     "range_push($self, /, range_name)\n--\n\n"
     "Wait for the GPU if enabled, then begin a range on this thread. Does nothing while "
     "disabled."},
    {"range_pop", NATIVE_FASTCALL(nvtx_range_pop),
     "range_pop($self, /, range_name=None)\n--\n\n"
     "Wait for the GPU if enabled, then end the innermost range of this thread.\n\n"
     "With keep_track_of_range_order, a name that does not match raises RangeError and "
     "pops nothing."},
    {"__reduce__", native_single_reduce, METH_NOARGS, "Pickle as the one instance."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef nvtx_getset[] = {
    {"is_enabled", nvtx_is_enabled, NULL, "Whether it is enabled.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    nvtx_doc,
    "Ranges that may wait for the GPU and may be checked; for NVTX tools and the recording.\n\n"
    "NVTXRangeWrapper() returns the one instance of this process; with arguments it is "
    "enabled as well.");

EXT_LOCAL_TYPE(nvtx_spec, "marey.NVTXRangeWrapper", struct native_single,
               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
               {Py_tp_doc, (void *)nvtx_doc}, {Py_tp_new, native_single_new},
               {Py_tp_methods, nvtx_methods}, {Py_tp_getset, nvtx_getset},
               {Py_tp_traverse, native_single_traverse})

int native_nvtx_make(PyObject *module)
{
    return native_single_make(module, NATIVE_NVTX, &nvtx_spec, NULL, nvtx_enable, NULL);
}

/* ---- ranges by handle, for marey.numba_nvtx: compiled code calls the functions of libmarey by their addresses ---- */

static PyObject *handle_register(PyObject *Py_UNUSED(module), PyObject *name)
{
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "a name is a str, not %.200s", Py_TYPE(name)->tp_name);
    PyObject *bytes EXT_OWNED = ext_bytes(name);
    if (bytes == NULL)
        return NULL;
    const uint64_t handle =
        marey_nvtx_register(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    return PyLong_FromUnsignedLongLong(handle);
}

static PyObject *handle_push(PyObject *Py_UNUSED(module), PyObject *number)
{
    const unsigned long long handle = PyLong_AsUnsignedLongLong(number);
    if (handle == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    marey_nvtx_push_handle(handle);
    Py_RETURN_NONE;
}

EXT_ACTION(handle_pop, marey_nvtx_pop_handle())

static PyObject *handle_addresses(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return Py_BuildValue(
        "{sKsK}", "marey_nvtx_push_handle", (unsigned long long)(uintptr_t)marey_nvtx_push_handle,
        "marey_nvtx_pop_handle", (unsigned long long)(uintptr_t)marey_nvtx_pop_handle);
}

PyMethodDef native_handle_functions[] = {
    {"nvtx_register", handle_register, METH_O,
     "nvtx_register($module, name, /)\n--\n\nThe handle of a name, the same in every process."},
    {"nvtx_push_handle", handle_push, METH_O,
     "nvtx_push_handle($module, handle, /)\n--\n\nBegin a range by handle."},
    {"nvtx_pop_handle", handle_pop, METH_NOARGS,
     "nvtx_pop_handle($module, /)\n--\n\n"
     "End the innermost range of this thread."},
    {"nvtx_addresses", handle_addresses, METH_NOARGS,
     "nvtx_addresses($module, /)\n--\n\nThe addresses of the C functions, by name."},
    {NULL, NULL, 0, NULL},
};
