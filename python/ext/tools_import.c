/*
 * tools_import.c: files of other tools into a recording.
 */
#include "tools.h"

#include <marey/import.h>

static PyObject *import_files(const struct tools_state *state, const char *const *paths, size_t n,
                              const char *into, const char *format)
{
    const struct marey_import_options wants = {.from = format, .keep_arguments = 1};
    struct marey_import_result result;
    PyThreadState *thread = PyEval_SaveThread();
    const marey_status status = marey_import(paths, n, into, &wants, &result);
    PyEval_RestoreThread(thread);
    if (status != MAREY_OK)
        return tools_raise(state, status);
    return Py_BuildValue("KKKs", (unsigned long long)result.n_files,
                         (unsigned long long)result.n_events, (unsigned long long)result.n_bytes,
                         result.format);
}

PyObject *tools_import_trace(PyObject *module, PyObject *args)
{
    PyObject *paths, *into = NULL, *encoded = NULL, *answer = NULL;
    const char *format;
    if (!PyArg_ParseTuple(args, "O!O&z:import_trace", &PyTuple_Type, &paths, PyUnicode_FSConverter,
                          &into, &format))
        return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(paths);
    const char **texts = PyMem_Calloc((size_t)n + 1, sizeof *texts);
    encoded = PyTuple_New(n);
    if (texts == NULL || encoded == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *path = NULL;
        if (!PyUnicode_FSConverter(PyTuple_GET_ITEM(paths, i), &path))
            goto out;
        PyTuple_SET_ITEM(encoded, i, path);
        texts[i] = PyBytes_AS_STRING(path);
    }
    answer =
        import_files(PyModule_GetState(module), texts, (size_t)n, PyBytes_AS_STRING(into), format);
out:
    PyMem_Free((void *)texts);
    Py_XDECREF(encoded);
    Py_DECREF(into);
    return answer;
}
