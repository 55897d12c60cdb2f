/*
 * native_module.c: the module `marey._native`: its state, exceptions, and sorting of arguments.
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

PyObject *native_result(const struct native_state *state, marey_status status)
{
    return status == MAREY_OK ? Py_NewRef(Py_None) : native_raise(state, status);
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
    if (nargs > max)
        return EXT_FAIL(PyExc_TypeError, "%s() takes at most %zd arguments (%zd given)", function,
                        max, nargs);
    for (Py_ssize_t i = 0; i < nargs; i++)
        values[i] = args[i];
    const Py_ssize_t n_keywords = kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t i = 0; i < n_keywords; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        const Py_ssize_t position = position_of(names, name);
        if (position < 0 || values[position] != NULL)
            return EXT_FAIL(PyExc_TypeError, "%s() got %s argument %R", function,
                            position < 0 ? "an unexpected keyword" : "two values for", name);
        values[position] = args[nargs + i];
    }
    for (Py_ssize_t i = 0; i < required; i++) {
        if (values[i] == NULL)
            return EXT_FAIL(PyExc_TypeError, "%s() needs the argument '%s'", function, names[i]);
    }
    return 0;
}

int native_count(PyObject *value, long long least, const char *rule, uint64_t *out)
{
    const long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred())
        return -1;
    if (number < least)
        return EXT_FAIL(PyExc_ValueError, "%s, not %R", rule, value);
    *out = (uint64_t)number;
    return 0;
}

int native_truth(PyObject *value, uint32_t *out)
{
    const int truth = value != NULL ? PyObject_IsTrue(value) : 0;
    *out = truth > 0;
    return truth < 0 ? -1 : 0;
}

/* ---- types with one instance ---- */

static PyObject *single_of(PyTypeObject *type)
{
    const struct native_state *const state = PyType_GetModuleState(type);
    size_t i = 0;
    while (i + 1 < NATIVE_N_SINGLES && state->single_types[i] != type)
        i++;
    return state->singles[i];
}

static PyObject *single_call(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *const single = single_of((PyTypeObject *)type);
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (MAREY_UNLIKELY(nargs != 0 || (kwnames != NULL && PyTuple_GET_SIZE(kwnames) != 0))) {
        PyObject *enabled EXT_OWNED =
            ((struct native_single *)single)->enable(single, args, nargs, kwnames);
        if (enabled == NULL)
            return NULL;
    }
    return Py_NewRef(single);
}

/* Reached only by Type.__new__(); arguments are handled by the call. */
PyObject *native_single_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
                            PyObject *Py_UNUSED(kwargs))
{
    return Py_NewRef(single_of(type));
}

PyObject *native_single_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return Py_BuildValue("O()", Py_TYPE(self));
}

int native_single_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return 0;
}

int native_single_make(PyObject *module, enum native_single_type number, PyType_Spec *spec,
                       PyTypeObject *base, native_fastcall *enable, vectorcallfunc call)
{
    struct native_state *const state = native_state_of(module);
    PyTypeObject *const type =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, (PyObject *)base);
    state->single_types[number] = type;
    struct native_single *const single =
        type != NULL ? (struct native_single *)type->tp_alloc(type, 0) : NULL;
    state->singles[number] = (PyObject *)single;
    if (single == NULL)
        return -1;
    type->tp_vectorcall = single_call;
    single->state = state;
    single->enable = enable;
    single->vectorcall = call;
    return 0;
}

/* ---- the module ---- */

static int check_library(void)
{
    if (marey_abi() == MAREY_ABI)
        return 0;
    return EXT_FAIL(
        PyExc_ImportError,
        "this package was built for libmarey with interface %d, but %s, version %s, has "
        "interface %d; reinstall marey, or remove that library from the search path",
        MAREY_ABI, marey_library_path(), marey_version(), marey_abi());
}

/* An exception that is also a RuntimeError and an AssertionError, which programs written for asserting tools catch. */
static PyObject *exception_create(const struct native_state *state, const char *name, const char *doc)
{
    PyObject *bases EXT_OWNED =
        PyTuple_Pack(3, state->error, PyExc_RuntimeError, PyExc_AssertionError);
    return bases != NULL ? PyErr_NewExceptionWithDoc(name, doc, bases, NULL) : NULL;
}

static int make_exceptions(struct native_state *state)
{
    state->error =
        PyErr_NewExceptionWithDoc("marey.MareyError", "An operation of marey failed.", NULL, NULL);
    if (state->error == NULL)
        return -1;
    state->range_error =
        exception_create(state, "marey.RangeError",
                         "Ranges do not nest, while nesting is checked; nothing was popped.");
    state->state_error =
        exception_create(state, "marey.StateError", "The call is not valid in the current state.");
    return state->range_error != NULL && state->state_error != NULL ? 0 : -1;
}

static int make_types(PyObject *module, struct native_state *state)
{
    static PyType_Spec *const specs[NATIVE_N_TYPES] = {
        [NATIVE_RANGE] = &native_range_spec,     [NATIVE_WRAPPER] = &native_wrapper_spec,
        [NATIVE_READY] = &native_ready_spec,     [NATIVE_MEASURED] = &native_measured_spec,
        [NATIVE_LAZY] = &native_lazy_spec,       [NATIVE_SIGNER] = &native_signer_spec,
        [NATIVE_PROFILER] = &calls_profiler_spec};
    for (size_t i = 0; i < NATIVE_N_TYPES; i++) {
        state->types[i] = (PyTypeObject *)PyType_FromModuleAndSpec(module, specs[i], NULL);
        /* The others are created only by functions. */
        const int is_named = i != NATIVE_WRAPPER && i != NATIVE_READY && i != NATIVE_LAZY;
        if (state->types[i] == NULL || (is_named && PyModule_AddType(module, state->types[i]) < 0))
            return -1;
    }
    if (native_nvtx_make(module) < 0 || native_stopwatch_make(module) < 0 ||
        native_dump_make(module) < 0 || calls_make(module) < 0)
        return -1;
    native_cuda_make();
    state->ready = native_new(state, NATIVE_READY);
    state->handles = PyContextVar_New("marey.async_ranges", NULL);
    state->ranges = PyDict_New();
    state->ids = PyDict_New();
    state->measured = PyDict_New();
    state->formatters = PyDict_New();
    return PyErr_Occurred() ? -1 : 0;
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
    const struct {
        const char *name;
        PyObject *object;
    } objects[] = {
        {"MareyError", state->error},
        {"RangeError", state->range_error},
        {"StateError", state->state_error},
        {"NVTXRangeWrapper", (PyObject *)state->single_types[NATIVE_NVTX]},
        {"Stopwatch", (PyObject *)state->single_types[NATIVE_STOPWATCH]},
        {"TensorDumper", (PyObject *)state->single_types[NATIVE_DUMPER]},
        {"AccvlabTensorDumper", (PyObject *)state->single_types[NATIVE_ACCVLAB]},
    };
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        if (PyModule_AddObjectRef(module, objects[i].name, objects[i].object) < 0)
            return -1;
    native_memory_watch(); /* if the environment requests it */
    calls_watch();
    return PyModule_AddStringConstant(module, "version", marey_version());
}

/* Objects of the state, in clearing order. */
#define OBJECTS(X) X(ranges) X(ids) X(formatters) X(handles) X(ready) X(measured)
#define ERRORS(X) X(state_error) X(range_error) X(error)
#define VISIT(name) Py_VISIT((PyObject *)state->name);
#define CLEAR(name) Py_CLEAR(state->name);

static int native_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct native_state *state = native_state_of(module);
    OBJECTS(VISIT)
    ERRORS(VISIT)
    for (size_t i = 0; i < NATIVE_N_TYPES; i++)
        Py_VISIT((PyObject *)state->types[i]);
    for (size_t i = 0; i < NATIVE_N_SINGLES; i++) {
        Py_VISIT(state->singles[i]);
        Py_VISIT((PyObject *)state->single_types[i]);
    }
    for (size_t i = 0; i < NATIVE_N_CACHES * NATIVE_SLOTS; i++) {
        const struct native_slot *const slot = &state->slots[i / NATIVE_SLOTS][i % NATIVE_SLOTS];
        Py_VISIT(slot->key);
        Py_VISIT(slot->range);
    }
    const int rc = native_dump_traverse(&state->dump, visit, arg);
    return rc != 0 ? rc : native_phases_traverse(&state->phases, visit, arg);
}

static int native_clear(PyObject *module)
{
    struct native_state *state = native_state_of(module);
    for (size_t i = 0; i < NATIVE_N_CACHES * NATIVE_SLOTS; i++) {
        struct native_slot *const slot = &state->slots[i / NATIVE_SLOTS][i % NATIVE_SLOTS];
        Py_CLEAR(slot->key);
        Py_CLEAR(slot->range);
    }
    native_dump_clear(&state->dump);
    native_phases_clear(&state->phases);
    OBJECTS(CLEAR)
    for (size_t i = 0; i < NATIVE_N_TYPES; i++)
        Py_CLEAR(state->types[i]);
    for (size_t i = NATIVE_N_SINGLES; i-- > 0;) { /* a type may derive from the previous one */
        Py_CLEAR(state->singles[i]);
        Py_CLEAR(state->single_types[i]);
    }
    ERRORS(CLEAR)
    return 0;
}

EXT_MODULE(native, "marey._native",
           "Ranges, marks, counters and the switchboard: libmarey for Python.")
