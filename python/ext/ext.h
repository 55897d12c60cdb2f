/* ext.h: what both extensions, `_native` and `_tools`, do with Python's API. */
#ifndef MAREY_PYTHON_EXT_H
#define MAREY_PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Evaluate `statement` while other threads run: it takes no Python objects. */
#define EXT_UNLOCKED(statement)                                                                    \
    do {                                                                                           \
        PyThreadState *const thread_ = PyEval_SaveThread();                                        \
        statement;                                                                                 \
        PyEval_RestoreThread(thread_);                                                             \
    } while (0)

/* `list` with `item` at its end, which it takes. NULL and an exception otherwise, also where the item is NULL. */
static inline PyObject *ext_append(PyObject *list, PyObject *item)
{
    if (item == NULL || PyList_Append(list, item) < 0)
        Py_CLEAR(list);
    Py_XDECREF(item);
    return list;
}

/* Put `value` into a dictionary; takes both, of which either may be NULL with an exception. -1 and an exception otherwise. */
static inline int ext_put(PyObject *dict, PyObject *key, PyObject *value)
{
    const int rc = key != NULL && value != NULL ? PyDict_SetItem(dict, key, value) : -1;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return rc;
}

/* What a function of a module returns, by the format of Py_BuildValue(): a new reference. NULL and an exception otherwise. */
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
