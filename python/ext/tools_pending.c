/*
 * tools_pending.c: what waits in the dumper against an earlier dump: marey_diff_pending() for TensorDumper.
 */
#include "tools.h"

#include <marey/diff.h>

static PyObject *pending_text(const struct tools_state *state, marey_diff *diff)
{
    struct tools_sink sink;
    if (tools_sink_open(&sink) < 0)
        return NULL;
    return tools_sink_finish(&sink, state, marey_diff_pending_text(diff, sink.stream));
}

/* A dump that is not there is a file that is not found. */
static PyObject *raise_pending(const struct tools_state *state, marey_status status)
{
    if (status != MAREY_EIO)
        return tools_raise(state, status);
    PyErr_SetString(PyExc_FileNotFoundError, marey_last_error());
    return NULL;
}

PyObject *tools_diff_pending(PyObject *module, PyObject *args)
{
    const struct tools_state *state = PyModule_GetState(module);
    PyObject *path = NULL;
    unsigned long long step;
    int tree, allow_missing, allow_extra, allow_dtype, rank;
    struct marey_diff_pending_options options = {0};
    if (!PyArg_ParseTuple(args, "O&KidIpppi:diff_pending", PyUnicode_FSConverter, &path, &step,
                          &tree, &options.eps, &options.n_errors, &allow_missing, &allow_extra,
                          &allow_dtype, &rank))
        return NULL;
    options.tree = tree != 0 ? MAREY_DUMP_GRADIENTS : MAREY_DUMP_TENSORS;
    options.allow_missing = (uint32_t)allow_missing;
    options.allow_extra = (uint32_t)allow_extra;
    options.allow_dtype = (uint32_t)allow_dtype;
    options.has_rank = rank >= 0;
    options.rank = rank >= 0 ? (uint64_t)rank : 0;
    marey_diff *diff = NULL;
    PyThreadState *thread = PyEval_SaveThread();
    const marey_status status = marey_diff_pending(PyBytes_AS_STRING(path), step, &options, &diff);
    PyEval_RestoreThread(thread);
    Py_DECREF(path);
    if (status != MAREY_OK)
        return raise_pending(state, status);
    PyObject *result = marey_diff_is_same(diff) ? Py_NewRef(Py_None) : pending_text(state, diff);
    marey_diff_close(diff);
    return result;
}
