/*
 * native_gpu.c: GPU tracing, <marey/gpu.h>. marey/gpu.py is the public interface.
 *
 * Starting opens libraries and stopping waits for the GPU, so both release the GIL. The asynchronous variants do not:
 * reacquiring the GIL might take longer than the call.
 */
#include "native.h"

#include <marey/gpu.h>

static PyObject *gpu_start(PyObject *module, PyObject *args)
{
    struct marey_gpu_options options = {0};
    int is_later;
    if (!PyArg_ParseTuple(args, "IIIIp:gpu_start", &options.wait, &options.warmup, &options.active,
                          &options.repeat, &is_later))
        return NULL;
    if (is_later)
        return native_result(native_state_of(module), marey_gpu_start_later(&options));
    return NATIVE_UNLOCKED(native_state_of(module), marey_gpu_start(&options));
}

EXT_FUNCTION(gpu_stop_later, PyLong_FromUnsignedLongLong(marey_gpu_stop_later()))
EXT_ACTION(gpu_settle, EXT_UNLOCKED(marey_gpu_settle()))
EXT_FUNCTION(gpu_is_settled, PyBool_FromLong(marey_gpu_is_settled()))
EXT_ACTION(gpu_stop, EXT_UNLOCKED(marey_gpu_stop()))

static PyObject *gpu_pause(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *why = NULL;
    if (!PyArg_ParseTuple(args, "z:gpu_pause", &why))
        return NULL;
    EXT_UNLOCKED(marey_gpu_pause(why));
    Py_RETURN_NONE;
}

EXT_FUNCTION(gpu_resume, NATIVE_UNLOCKED(native_state_of(self), marey_gpu_resume()))
EXT_FUNCTION(gpu_is_on, PyBool_FromLong(marey_gpu_is_on()))

static PyObject *gpu_capture(PyObject *Py_UNUSED(module), PyObject *arg)
{
    const int begins = PyObject_IsTrue(arg);
    if (begins < 0)
        return NULL;
    EXT_UNLOCKED(marey_gpu_capture(begins));
    Py_RETURN_NONE;
}

static PyObject *gpu_counts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    struct marey_gpu_counts c;
    marey_gpu_counts_get(&c);
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsKsK}", "kernels", (unsigned long long)c.kernels, "copies",
        (unsigned long long)c.copies, "sets", (unsigned long long)c.sets, "syncs",
        (unsigned long long)c.syncs, "memory_operations", (unsigned long long)c.memory_operations,
        "calls", (unsigned long long)c.calls, "dropped", (unsigned long long)c.dropped,
        "incomplete", (unsigned long long)c.incomplete, "lost", (unsigned long long)c.lost);
}

PyMethodDef native_gpu_functions[] = {
    {"gpu_start", gpu_start, METH_VARARGS, NULL},
    {"gpu_stop", gpu_stop, METH_NOARGS, NULL},
    {"gpu_stop_later", gpu_stop_later, METH_NOARGS, NULL},
    {"gpu_settle", gpu_settle, METH_NOARGS, NULL},
    {"gpu_is_settled", gpu_is_settled, METH_NOARGS, NULL},
    {"gpu_pause", gpu_pause, METH_VARARGS, NULL},
    {"gpu_resume", gpu_resume, METH_NOARGS, NULL},
    {"gpu_capture", gpu_capture, METH_O, NULL},
    {"gpu_is_on", gpu_is_on, METH_NOARGS, NULL},
    {"gpu_counts", gpu_counts, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
