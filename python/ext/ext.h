/* ext.h: Python API helpers for both extensions, `_native` and `_tools`. */
#ifndef MAREY_PYTHON_EXT_H
#define MAREY_PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Evaluates `statement` without the GIL: it must not use Python objects. */
#define EXT_UNLOCKED(statement)                                                                    \
    do {                                                                                           \
        PyThreadState *const thread_ = PyEval_SaveThread();                                        \
        statement;                                                                                 \
        PyEval_RestoreThread(thread_);                                                             \
    } while (0)

/* The status of a libmarey call made without the GIL. */
#define EXT_STATUS_UNLOCKED(call)                                                                  \
    (__extension__({                                                                               \
        marey_status status_;                                                                      \
        EXT_UNLOCKED(status_ = (call));                                                            \
        status_;                                                                                   \
    }))

/* Raise like PyErr_Format() and PyErr_NoMemory(), and return -1. */
#define EXT_FAIL(...) (PyErr_Format(__VA_ARGS__), -1)
#define EXT_NO_MEMORY() (PyErr_NoMemory(), -1)

/* Define a function without arguments from an expression; one that returns None; a property. */
#define EXT_FUNCTION(name, result)                                                                 \
    static PyObject *name(__attribute__((unused)) PyObject *self, PyObject *Py_UNUSED(unused))     \
    {                                                                                              \
        return (result);                                                                           \
    }
#define EXT_ACTION(name, statement)                                                                \
    static PyObject *name(__attribute__((unused)) PyObject *self, PyObject *Py_UNUSED(unused))     \
    {                                                                                              \
        statement;                                                                                 \
        Py_RETURN_NONE;                                                                            \
    }
#define EXT_PROPERTY(name, result)                                                                 \
    static PyObject *name(__attribute__((unused)) PyObject *self, void *Py_UNUSED(closure))        \
    {                                                                                              \
        return (result);                                                                           \
    }

/* Defines the spec of a type (EXT_LOCAL_TYPE: static): its name, instance struct, flags, slots. */
#define EXT_TYPE(spec, ...) EXT_TYPE_OF(, spec, __VA_ARGS__)
#define EXT_LOCAL_TYPE(spec, ...) EXT_TYPE_OF(static, spec, __VA_ARGS__)
#define EXT_TYPE_OF(linkage, spec, name_, type, flags_, ...)                                       \
    static PyType_Slot spec##_slots[] = {__VA_ARGS__, {0, NULL}};                                  \
    linkage PyType_Spec spec = {                                                                   \
        .name = (name_), .basicsize = sizeof(type), .flags = (flags_), .slots = spec##_slots};

/*
 * Defines the module `name` with prefix##_exec(), prefix##_traverse() and prefix##_clear(), and its init function.
 * Everything holds the GIL.
 */
#if PY_VERSION_HEX >= 0x030d0000
#define EXT_MODULE_SLOTS                                                                           \
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},                          \
        {Py_mod_gil, Py_MOD_GIL_USED},
#elif PY_VERSION_HEX >= 0x030c0000
#define EXT_MODULE_SLOTS {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#else
#define EXT_MODULE_SLOTS
#endif
#define EXT_MODULE(prefix, name, doc)                                                              \
    static void prefix##_free(void *module)                                                        \
    {                                                                                              \
        prefix##_clear(module);                                                                    \
    }                                                                                              \
    static PyModuleDef_Slot prefix##_slots[] = {{Py_mod_exec, prefix##_exec},                      \
                                                EXT_MODULE_SLOTS{0, NULL}};                        \
    static struct PyModuleDef prefix##_module = {PyModuleDef_HEAD_INIT,                            \
                                                 .m_name = (name),                                 \
                                                 .m_doc = (doc),                                   \
                                                 .m_size = sizeof(struct prefix##_state),          \
                                                 .m_slots = prefix##_slots,                        \
                                                 .m_traverse = prefix##_traverse,                  \
                                                 .m_clear = prefix##_clear,                        \
                                                 .m_free = prefix##_free};                         \
    PyMODINIT_FUNC PyInit__##prefix(void);                                                         \
    PyMODINIT_FUNC PyInit__##prefix(void)                                                          \
    {                                                                                              \
        return PyModuleDef_Init(&prefix##_module);                                                 \
    }

/* Saves a pending exception until the end of the block; drops exceptions raised meanwhile. */
#define EXT_KEEP_ERROR()                                                                           \
    __attribute__((cleanup(ext_error_restore), unused)) struct ext_error error_ = ext_error_take()
struct ext_error {
    PyObject *type, *value, *traceback;
};
static inline struct ext_error ext_error_take(void)
{
    struct ext_error error;
    PyErr_Fetch(&error.type, &error.value, &error.traceback);
    return error;
}
static inline void ext_error_restore(struct ext_error *error)
{
    PyErr_Restore(error->type, error->value, error->traceback);
}

/* Put after the name of a local reference: releases it at the end of the block; may be NULL. */
#define EXT_OWNED __attribute__((cleanup(ext_release), unused))
static inline void ext_release(const void *reference)
{
    PyObject *object;
    memcpy(&object, reference, sizeof object);
    Py_XDECREF(object);
}

/* The same for memory from PyMem_Malloc() and similar. */
#define EXT_FREED __attribute__((cleanup(ext_free)))
static inline void ext_free(const void *pointer)
{
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    PyMem_Free(memory);
}

/* Appends `item`, which it takes. Returns `list`; NULL and an exception on failure, or if `item` is NULL. */
static inline PyObject *ext_append(PyObject *list, PyObject *item)
{
    if (item == NULL || PyList_Append(list, item) < 0)
        Py_CLEAR(list);
    Py_XDECREF(item);
    return list;
}

/* The bytes of a str (lone surrogates in three bytes each) or of bytes: a new reference. NULL and an exception on failure. */
static inline PyObject *ext_bytes(PyObject *text)
{
    return PyBytes_Check(text) ? Py_NewRef(text)
                               : PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
}

/* Stores `value` in a dictionary; takes both references, which may be NULL with an exception. -1 on failure. */
static inline int ext_put(PyObject *dict, PyObject *key, PyObject *value)
{
    const int rc = key != NULL && value != NULL ? PyDict_SetItem(dict, key, value) : -1;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return rc;
}

/* Calls a module's function with arguments as for Py_BuildValue(): a new reference. NULL and an exception on failure. */
static inline PyObject *ext_call(const char *module, const char *function, const char *format, ...)
{
    va_list args;
    PyObject *result = NULL;
    va_start(args, format);
    PyObject *const imported = PyImport_ImportModule(module);
    PyObject *const callee = imported != NULL ? PyObject_GetAttrString(imported, function) : NULL;
    PyObject *const given = callee != NULL ? Py_VaBuildValue(format, args) : NULL;
    if (given != NULL)
        result = PyObject_CallObject(callee, given);
    Py_XDECREF(given);
    Py_XDECREF(callee);
    Py_XDECREF(imported);
    va_end(args);
    return result;
}

#endif
