/*
 * native_signature.c: user formatters, and signatures without a profile, for marey.profiler.signature().
 */
#include "native.h"

#include "calls/calls_sign.h"

/* ---- formatters ---- */

/* {address: (type, formatter)}: by address, because a type may override hash and equality. */
static PyObject *register_formatter(PyObject *module, PyObject *args)
{
    PyObject *type, *formatter;
    PyObject *const formatters = native_state_of(module)->formatters;
    if (!PyArg_ParseTuple(args, "O!O:register", &PyType_Type, &type, &formatter))
        return NULL;
    if (formatter != Py_None && !PyCallable_Check(formatter))
        return PyErr_Format(PyExc_TypeError,
                            "register() takes a type and a function of a value that "
                            "returns a str, or None to remove it");
    PyObject *key EXT_OWNED = PyLong_FromVoidPtr(type);
    PyObject *pair EXT_OWNED = key != NULL ? PyTuple_Pack(2, type, formatter) : NULL;
    int rc = -1;
    if (pair != NULL && formatter != Py_None)
        rc = PyDict_SetItem(formatters, key, pair);
    else if (pair != NULL)
        rc = PyDict_Contains(formatters, key) == 1 ? PyDict_DelItem(formatters, key) : 0;
    calls_sign_registered++;
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- Signer ---- */

struct signer {
    PyObject ob_base;
    struct calls_signer *signer;
    PyObject *texts;  /* a list of (text, elements); number 1 is the first */
    uint64_t widened; /* calls */
};

/* The signer is passed in place of a profile: its callbacks need nothing else. */
static uint32_t define(struct marey_calls *calls, uint32_t function, const char *text,
                       size_t length, double elements)
{
    struct signer *const self = (struct signer *)calls;
    PyObject *pair EXT_OWNED = Py_BuildValue("(s#d)", text, (Py_ssize_t)length, elements);
    (void)function;
    const int rc = pair != NULL ? PyList_Append(self->texts, pair) : -1;
    PyErr_Clear();
    return rc == 0 ? (uint32_t)PyList_GET_SIZE(self->texts) : 0;
}

static void count_widened(struct marey_calls *calls)
{
    ((struct signer *)calls)->widened++;
}

static PyObject *signer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    int level, requires_grad;
    unsigned depth, most;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "iIIp:Signer", &level, &depth, &most, &requires_grad))
        return NULL;
    struct native_state *const state = PyType_GetModuleState(type);
    struct signer *self = state != NULL ? (struct signer *)type->tp_alloc(type, 0) : NULL;
    if (self == NULL)
        return NULL;
    const struct calls_sign_options options = {
        .level = (enum calls_level)level,
        .depth = depth,
        .most = most,
        .requires_grad = requires_grad != 0,
        .formatters = state->formatters,
        .define = define,
        .count_widened = count_widened,
    };
    self->texts = PyList_New(0);
    self->signer = self->texts != NULL ? calls_signer_create(&options) : NULL;
    if (self->signer != NULL)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static void signer_finalize(PyObject *object)
{
    struct signer *const self = (struct signer *)object;
    calls_signer_destroy(self->signer);
    Py_XDECREF(self->texts);
}

/* The signature's number for a call with these values. */
static PyObject *signer_sign(PyObject *object, PyObject *args)
{
    enum { MAX_PARAMETERS = 1024 };
    struct signer *const self = (struct signer *)object;
    unsigned function;
    PyObject *code, *values, *locals[MAX_PARAMETERS];
    uint64_t words[CALLS_SIGN_WORDS];
    if (!PyArg_ParseTuple(args, "IO!O!:sign", &function, &PyCode_Type, &code, &PyDict_Type, &values))
        return NULL;
    if (function > UINT16_MAX ||
        !calls_sign_locals((PyCodeObject *)code, values, locals, MAX_PARAMETERS))
        return PyErr_Format(
            PyExc_ValueError,
            "sign() takes the number of a function, up to 65535, its code and a value for "
            "each parameter, up to 1024");
    const size_t n = calls_sign_frame(self->signer, (PyCodeObject *)code, locals, words);
    return PyLong_FromUnsignedLong(calls_sign_number(self->signer, (struct marey_calls *)self,
                                                     function, (PyCodeObject *)code, words, n));
}

EXT_FUNCTION(signer_texts, PySequence_List(((struct signer *)self)->texts))
EXT_FUNCTION(signer_widened, PyLong_FromUnsignedLongLong(((struct signer *)self)->widened))

static PyMethodDef signer_methods[] = {
    {"sign", signer_sign, METH_VARARGS, NULL},
    {"texts", signer_texts, METH_NOARGS, NULL},
    {"widened", signer_widened, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
EXT_TYPE(native_signer_spec, "marey._native.Signer", struct signer,
         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, {Py_tp_new, signer_new},
         {Py_tp_finalize, signer_finalize}, {Py_tp_methods, signer_methods})

static PyObject *display(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *name, *text;
    if (!PyArg_ParseTuple(args, "ss:signature_display", &name, &text))
        return NULL;
    return calls_sign_display(name, text);
}

PyMethodDef native_signature_functions[] = {
    {"register", register_formatter, METH_VARARGS, NULL},
    {"signature_display", display, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
