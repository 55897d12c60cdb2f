/*
 * native_module.c: the module `marey._native`: its state, its exceptions, and how arguments are sorted.
 */
#include "native.h"

PyObject *native_raise(const struct native_state *state, marey_status status)
{
    if (status == MAREY_EINVAL)
        PyErr_SetString(PyExc_ValueError, marey_last_error());
    else if (status == MAREY_EMISMATCH)
        PyErr_SetString(state->range_error, marey_last_error());
    else
        PyErr_Format(status == MAREY_ESTATE ? state->state_error : state->error, "%s: %s",
                     marey_status_name(status), marey_last_error());
    return NULL;
}

PyObject *native_raise_for(PyTypeObject *type, marey_status status)
{
    return native_raise(PyType_GetModuleState(type), status);
}

static Py_ssize_t position_of(const char *const *names, PyObject *name)
{
    for (Py_ssize_t i = 0; names[i] != NULL; i++)
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
            return i;
    return -1;
}

int native_arguments(const char *function, const char *const *names, Py_ssize_t required,
                     PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **values)
{
    Py_ssize_t max = 0;
    while (names[max] != NULL)
        max++;
    if (nargs > max) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments (%zd given)", function, max,
                     nargs);
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++)
        values[i] = args[i];
    const Py_ssize_t n_keywords = kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t i = 0; i < n_keywords; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        const Py_ssize_t position = position_of(names, name);
        if (position < 0 || values[position] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got %s argument %R", function,
                         position < 0 ? "an unexpected keyword" : "two values for", name);
            return -1;
        }
        values[position] = args[nargs + i];
    }
    for (Py_ssize_t i = 0; i < required; i++) {
        if (values[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", function, names[i]);
            return -1;
        }
    }
    return 0;
}

static int check_library(void)
{
    if (marey_abi() == MAREY_ABI)
        return 0;
    PyErr_Format(PyExc_ImportError,
                 "this package was built for libmarey with interface %d, but %s, version %s, has "
                 "interface %d; "
                 "reinstall marey, or remove that library from the search path",
                 MAREY_ABI, marey_library_path(), marey_version(), marey_abi());
    return -1;
}

/* An exception of ours that is also one of Python's. `bases` is stolen and may be NULL. */
static PyObject *exception_create(const char *name, const char *doc, PyObject *bases)
{
    PyObject *type = bases != NULL ? PyErr_NewExceptionWithDoc(name, doc, bases, NULL) : NULL;
    Py_XDECREF(bases);
    return type;
}

/* AssertionError among the bases: programs written for tools that assert catch that. */
static int make_exceptions(struct native_state *state)
{
    state->error = PyErr_NewExceptionWithDoc(
        "marey.MareyError", "What marey could not do, in one sentence.", NULL, NULL);
    if (state->error == NULL)
        return -1;
    state->range_error = exception_create(
        "marey.RangeError", "Ranges do not nest, and nesting is checked; nothing was popped.",
        PyTuple_Pack(3, state->error, PyExc_RuntimeError, PyExc_AssertionError));
    state->state_error =
        exception_create("marey.StateError", "What was asked for does not fit what is on already.",
                         PyTuple_Pack(3, state->error, PyExc_RuntimeError, PyExc_AssertionError));
    return state->range_error != NULL && state->state_error != NULL ? 0 : -1;
}

static int make_types(PyObject *module, struct native_state *state)
{
    state->range_type = native_range_type(module);
    state->wrapper_type = state->range_type != NULL ? native_wrapper_type(module) : NULL;
    state->ready_type = state->wrapper_type != NULL ? native_ready_type(module) : NULL;
    if (state->ready_type == NULL || native_nvtx_make(module) < 0 ||
        native_stopwatch_make(module) < 0 || native_dump_make(module) < 0 ||
        native_signature_make(module) < 0 || calls_make(module) < 0)
        return -1;
    native_stream_make();
    state->ready = state->ready_type->tp_alloc(state->ready_type, 0);
    state->handles = PyContextVar_New("marey.async_ranges", NULL);
    state->ranges = PyDict_New();
    state->ids = PyDict_New();
    return state->ready != NULL && state->handles != NULL && state->ranges != NULL && state->ids != NULL
               ? 0
               : -1;
}

static int add(PyObject *module, const char *name, PyObject *object)
{
    if (PyModule_AddObject(module, name, Py_NewRef(object)) == 0)
        return 0;
    Py_DECREF(object);
    return -1;
}

static int native_exec(PyObject *module)
{
    struct native_state *state = native_state_of(module);
    if (check_library() < 0 || make_exceptions(state) < 0 || make_types(module, state) < 0)
        return -1;
    PyMethodDef *const functions[] = {
        native_range_functions, native_event_functions,         native_switch_functions,
        native_async_functions, native_handle_functions,        native_iteration_functions,
        native_phase_functions, native_communication_functions, native_dump_functions,
        native_gpu_functions,   native_torch_functions,         native_signature_functions};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (PyModule_AddFunctions(module, functions[i]) < 0)
            return -1;
    if (add(module, "MareyError", state->error) < 0 ||
        add(module, "RangeError", state->range_error) < 0 ||
        add(module, "StateError", state->state_error) < 0 ||
        add(module, "NVTXRangeWrapper", (PyObject *)state->nvtx_type) < 0 ||
        add(module, "Stopwatch", (PyObject *)state->stopwatch_type) < 0 ||
        add(module, "TensorDumper", (PyObject *)state->dump.type) < 0 ||
        add(module, "AccvlabTensorDumper", (PyObject *)state->dump.accvlab_type) < 0 ||
        add(module, "Measurement", (PyObject *)state->measured_type) < 0 ||
        add(module, "Range", (PyObject *)state->range_type) < 0)
        return -1;
    native_memory_watch(); /* where the environment asks for it */
    calls_watch();
    return PyModule_AddStringConstant(module, "version", marey_version());
}

static int slots_visit(const struct native_slot *slots, visitproc visit, void *arg)
{
    for (size_t i = 0; i < NATIVE_SLOTS; i++) {
        Py_VISIT(slots[i].key);
        Py_VISIT(slots[i].range);
    }
    return 0;
}

static int native_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct native_state *state = native_state_of(module);
    Py_VISIT(state->error);
    Py_VISIT(state->range_error);
    Py_VISIT(state->state_error);
    Py_VISIT((PyObject *)state->nvtx_type);
    Py_VISIT(state->nvtx);
    Py_VISIT((PyObject *)state->stopwatch_type);
    Py_VISIT((PyObject *)state->measured_type);
    Py_VISIT(state->stopwatch);
    Py_VISIT(state->measured);
    Py_VISIT((PyObject *)state->range_type);
    Py_VISIT((PyObject *)state->wrapper_type);
    Py_VISIT((PyObject *)state->ready_type);
    Py_VISIT(state->ready);
    Py_VISIT(state->handles);
    Py_VISIT(state->ranges);
    Py_VISIT(state->ids);
    Py_VISIT(state->formatters);
    const struct native_slot *const slots[] = {state->range_slots, state->id_slots,
                                               state->measured_slots};
    int rc = native_dump_traverse(&state->dump, visit, arg);
    rc = rc == 0 ? native_phases_traverse(&state->phases, visit, arg) : rc;
    for (size_t i = 0; rc == 0 && i < sizeof slots / sizeof *slots; i++)
        rc = slots_visit(slots[i], visit, arg);
    return rc;
}

static void slots_clear(struct native_slot *slots)
{
    for (size_t i = 0; i < NATIVE_SLOTS; i++) {
        Py_CLEAR(slots[i].key);
        Py_CLEAR(slots[i].range);
    }
}

static int native_clear(PyObject *module)
{
    struct native_state *state = native_state_of(module);
    slots_clear(state->range_slots);
    slots_clear(state->id_slots);
    slots_clear(state->measured_slots);
    native_dump_clear(&state->dump);
    native_phases_clear(&state->phases);
    Py_CLEAR(state->ranges);
    Py_CLEAR(state->ids);
    Py_CLEAR(state->formatters);
    Py_CLEAR(state->handles);
    Py_CLEAR(state->ready);
    Py_CLEAR(state->ready_type);
    Py_CLEAR(state->wrapper_type);
    Py_CLEAR(state->range_type);
    Py_CLEAR(state->measured);
    Py_CLEAR(state->stopwatch);
    Py_CLEAR(state->measured_type);
    Py_CLEAR(state->stopwatch_type);
    Py_CLEAR(state->nvtx);
    Py_CLEAR(state->nvtx_type);
    Py_CLEAR(state->state_error);
    Py_CLEAR(state->range_error);
    Py_CLEAR(state->error);
    return 0;
}

static void native_free(void *module)
{
    native_clear(module);
}

static PyModuleDef_Slot native_slots[] = {
    {Py_mod_exec, native_exec},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030d0000
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL},
};

struct PyModuleDef native_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "marey._native",
    .m_doc = "Ranges, marks, counters and the switchboard: libmarey for Python.",
    .m_size = sizeof(struct native_state),
    .m_slots = native_slots,
    .m_traverse = native_traverse,
    .m_clear = native_clear,
    .m_free = native_free,
};

PyMODINIT_FUNC PyInit__native(void); /* called by the import system, which knows it by its name */

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&native_module);
}
