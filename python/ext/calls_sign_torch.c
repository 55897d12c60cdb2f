/*
 * Tensors of torch: exactly torch.Tensor and torch.nn.Parameter. Their getters are C++ functions of torch._C.TensorBase,
 * called from that type, so that nothing in between can be overridden. Two things of torch would still make them more than
 * a look, and both are asked of the library first, by functions that it exports:
 *
 *   a mode of __torch_function__ (torch.set_default_device() is one) makes getters call Python. It is switched
 *   off on this thread for that time, as torch._C.DisableTorchFunction does.
 *   torch.jit.trace writes what is asked of a tensor into its graph. Then tensors are described by their type only.
 *
 * Where one of these functions is missing, tensors are described by their type only as well.
 */
#include "calls_signer.h"

#include <dlfcn.h>

static struct {
    bool is_looked_for, is_whole;
    bool (*has_mode)(void);
    int8_t (*disabled)(void);
    void (*disable)(int8_t);
    void *const *(*tracing)(void); /* a reference to a std::shared_ptr, whose first word is the pointer */
} torch;

enum { TORCH_ALL_DISABLED = 2 };

static bool find(void *library, const char *name, void *place)
{
    void *const symbol = dlsym(library, name);
    memcpy(place, &symbol, sizeof symbol); /* ISO C has no way from an object to a function */
    return symbol != NULL;
}

/* With the GIL. */
static bool know_library(void)
{
    if (torch.is_looked_for)
        return torch.is_whole;
    void *const library = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
    torch.is_looked_for = true;
    torch.is_whole =
        library != NULL &&
        find(library, "_ZN2at4impl27torch_function_mode_enabledEv", &torch.has_mode) &&
        find(library, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv", &torch.disabled) &&
        find(library, "_ZN2at4impl22PythonTorchFunctionTLS18set_disabled_stateENS0_26TorchFunctionDisabledStateE",
             &torch.disable) &&
        find(library, "_ZN5torch3jit6tracer15getTracingStateEv", &torch.tracing);
    return torch.is_whole;
}

static PyTypeObject *tensor_base(PyTypeObject *type)
{
    PyTypeObject *const base = calls_base_in_c(type, "torch._C.TensorBase");
    return base != NULL ? base : calls_base_in_c(type, "torch._C._TensorBase");
}

bool calls_is_torch(PyTypeObject *type)
{
    return tensor_base(type) != NULL &&
           (calls_imported("torch._tensor", "Tensor") == (PyObject *)type ||
            calls_imported("torch.nn.parameter", "Parameter") == (PyObject *)type) &&
           know_library();
}

/* "float32" of torch.float32, whose type is C's. */
static uint32_t make_dtype_text(struct calls_signer *signer, PyObject *dtype)
{
    static const char prefix[] = "torch.";
    PyObject *repr =
        calls_base_in_c(Py_TYPE(dtype), "torch.dtype") != NULL ? PyObject_Repr(dtype) : NULL;
    const char *text = repr != NULL ? PyUnicode_AsUTF8(repr) : NULL;
    PyErr_Clear();
    if (text != NULL && strncmp(text, prefix, sizeof prefix - 1) == 0)
        text += sizeof prefix - 1;
    const uint32_t number = text != NULL ? calls_text(signer, text, strlen(text)) : 0;
    Py_XDECREF(repr);
    return number;
}

/* The text of "cuda:0", or 0. */
static uint16_t device_of(struct calls_signer *signer, PyTypeObject *base, PyObject *value)
{
    PyObject *device = calls_get(signer, base, NAME_DEVICE, value);
    PyObject *str = device != NULL && calls_base_in_c(Py_TYPE(device), "torch.device") != NULL
                        ? PyObject_Str(device)
                        : NULL;
    const char *const text = str != NULL ? PyUnicode_AsUTF8(str) : NULL;
    const uint32_t number = text != NULL ? calls_text(signer, text, strlen(text)) : 0;
    Py_XDECREF(str);
    Py_XDECREF(device);
    PyErr_Clear();
    return (uint16_t)number;
}

static bool is_contiguous(struct calls_signer *signer, PyTypeObject *base, PyObject *value)
{
    PyObject *const method =
        PyDict_GetItemWithError(base->tp_dict, signer->names[NAME_IS_CONTIGUOUS]);
    PyObject *answer = method != NULL && Py_TYPE(method) == &PyMethodDescr_Type
                           ? PyObject_CallFunctionObjArgs(method, value, NULL)
                           : NULL;
    Py_XDECREF(answer); /* True and False stay */
    PyErr_Clear();
    return answer == Py_True;
}

static bool put_tensor(struct calls_put *put, PyTypeObject *base, PyObject *value)
{
    struct calls_signer *const signer = put->signer;
    struct calls_array_word word = {0};
    PyObject *dtype = calls_get(signer, base, NAME_DTYPE, value);
    if (dtype != NULL)
        word.dtype = calls_dtype_by_object(signer, dtype, make_dtype_text);
    Py_XDECREF(dtype);
    if (word.dtype == 0)
        return false;
    if (signer->options.level >= CALLS_LAYOUT) {
        word.device = device_of(signer, base, value);
        word.flags = (uint8_t)(ARRAY_LAYOUT | (is_contiguous(signer, base, value) ? ARRAY_C : 0));
    }
    if (signer->options.requires_grad) {
        PyObject *requires = calls_get(signer, base, NAME_REQUIRES_GRAD, value);
        word.flags |= requires == Py_True ? ARRAY_GRAD : 0;
        Py_XDECREF(requires);
    }
    PyObject *shape =
        signer->options.level >= CALLS_SHAPE ? calls_get(signer, base, NAME_SHAPE, value) : NULL;
    const bool is_put = calls_put_shape(put, word, shape);
    Py_XDECREF(shape);
    return is_put;
}

bool calls_put_torch(struct calls_put *put, PyObject *value)
{
    PyTypeObject *const base = tensor_base(Py_TYPE(value));
    if (base == NULL || *torch.tracing() != NULL)
        return false;
    PyObject *error, *error_value, *trace;
    PyErr_Fetch(&error, &error_value, &trace);
    const bool has_mode = torch.has_mode();
    const int8_t before = has_mode ? torch.disabled() : 0;
    if (has_mode)
        torch.disable(TORCH_ALL_DISABLED);
    const bool is_put = put_tensor(put, base, value);
    if (has_mode)
        torch.disable(before);
    PyErr_Restore(error, error_value, trace);
    return is_put;
}
