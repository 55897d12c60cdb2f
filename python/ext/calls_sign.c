/* The arguments of a call, one after the other. */
#include "calls_signer.h"

enum { DEFAULT_DEPTH = 2, CELL_KIND = 0x40 };

struct calls_signer *calls_signer_create(const struct calls_sign_options *options)
{
    struct calls_signer *const signer = PyMem_Calloc(1, sizeof *signer);
    if (signer == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    signer->options = *options;
    if (options->depth == 0)
        signer->options.depth = DEFAULT_DEPTH;
    Py_XINCREF(options->formatters);
    if (calls_types_init(signer) == 0)
        return signer;
    calls_signer_destroy(signer);
    return NULL;
}

void calls_signer_destroy(struct calls_signer *signer)
{
    if (signer == NULL)
        return;
    calls_types_fini(signer);
    calls_functions_fini(signer);
    calls_descrs_fini(signer);
    calls_texts_fini(&signer->texts);
    Py_XDECREF(signer->options.formatters);
    PyMem_Free(signer);
}

/* ---- cells ---- */

#if PY_VERSION_HEX >= 0x030b0000
/* A cell of the frame's own, and not one that was given as an argument. */
static PyObject *value_of(PyCodeObject *code, PyObject *const *locals, uint32_t i)
{
    PyObject *const value = locals[i];
    if (value == NULL || Py_TYPE(value) != &PyCell_Type ||
        i >= PyBytes_GET_SIZE(code->co_localspluskinds) ||
        !(PyBytes_AS_STRING(code->co_localspluskinds)[i] & CELL_KIND))
        return value;
    return PyCell_GET(value);
}
#else
/* An argument that inner functions use has left its place for a cell behind the locals. */
static PyObject *value_of(PyCodeObject *code, PyObject *const *locals, uint32_t i)
{
    if (locals[i] != NULL || code->co_cell2arg == NULL)
        return locals[i];
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(code->co_cellvars); k++)
        if (code->co_cell2arg[k] == (Py_ssize_t)i) {
            PyObject *const cell = locals[code->co_nlocals + k];
            return cell != NULL && Py_TYPE(cell) == &PyCell_Type ? PyCell_GET(cell) : NULL;
        }
    return NULL;
}
#endif

/* ---- frames ---- */

/* `self` is described by its type only, which names the method. */
static bool is_self(const struct calls_signer *signer, const struct calls_parameters *parameters)
{
    return parameters->n > 0 && PyTuple_GET_ITEM(parameters->names, 0) == signer->names[NAME_SELF] &&
           parameters->args != 0 && parameters->kwargs != 0;
}

size_t calls_sign_frame(struct calls_signer *signer, PyCodeObject *code, PyObject *const *locals,
                        uint64_t words[CALLS_SIGN_WORDS])
{
    const struct calls_parameters parameters = calls_parameters(code);
    struct calls_put put = {.signer = signer, .words = words};
    if (signer->registered != calls_sign_registered)
        calls_types_forget(signer);
    uint32_t i = 0;
    if (is_self(signer, &parameters)) {
        PyObject *const self = value_of(code, locals, i++);
        calls_put(&put, self == NULL ? WORD_DELETED
                                     : calls_type(signer, Py_TYPE(self))->word | WORD_PLAIN);
    }
    for (; i < parameters.n && !put.is_cut; i++)
        calls_put_value(&put, value_of(code, locals, i), signer->options.depth);
    if (put.is_cut)
        words[put.n++] = WORD_CUT;
    return put.n;
}

bool calls_sign_locals(PyCodeObject *code, PyObject *dict, PyObject **locals, size_t room)
{
    const struct calls_parameters parameters = calls_parameters(code);
    if (!PyDict_CheckExact(dict) || parameters.n > room)
        return false;
    PyObject *error, *value, *trace;
    PyErr_Fetch(&error, &value, &trace);
    bool is_whole = true;
    for (uint32_t i = 0; i < parameters.n; i++) {
        locals[i] = PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(parameters.names, i));
        is_whole = is_whole && locals[i] != NULL;
    }
    PyErr_Restore(error, value, trace);
    return is_whole;
}
