/* The Python side: buffers of doubles in and out. Ranges cannot fail, so marey needs no error
 * handling. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <marey/marey.h>

#include "smooth.h"

typedef const char *smooth_function(const double *in, double *out, size_t n, size_t width);

static const char *on_cpu(const double *in, double *out, size_t n, size_t width)
{
    smooth_cpu(in, out, n, width);
    return NULL;
}

static PyObject *apply(PyObject *args, smooth_function *function)
{
    MAREY_SCOPE("smooth", .domain = "smooth"); /* ends on every return below */
    Py_buffer in, out;
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "y*w*n", &in, &out, &width))
        return NULL;
    const char *error = NULL;
    if (width < 0 || in.len != out.len || in.len % (Py_ssize_t)sizeof(double) != 0)
        error = "in and out must be of one size, in doubles, and the width not negative";
    if (error == NULL) {
        Py_BEGIN_ALLOW_THREADS error =
            function(in.buf, out.buf, (size_t)in.len / sizeof(double), (size_t)width);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&in);
    PyBuffer_Release(&out);
    if (error != NULL) {
        PyErr_SetString(PyExc_ValueError, error);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *cpu(PyObject *Py_UNUSED(self), PyObject *args)
{
    return apply(args, on_cpu);
}

#ifdef SMOOTH_CUDA
static PyObject *cuda(PyObject *Py_UNUSED(self), PyObject *args)
{
    return apply(args, smooth_cuda);
}
#endif

static PyMethodDef methods[] = {
    {"cpu", cpu, METH_VARARGS, "cpu(values, out, width): the running mean of doubles, into out."},
#ifdef SMOOTH_CUDA
    {"cuda", cuda, METH_VARARGS, "cuda(values, out, width): the same on the GPU."},
#endif
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_smooth",
                                    .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit__smooth(void)
{
    return PyModuleDef_Init(&module);
}
