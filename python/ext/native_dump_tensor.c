/*
 * native_dump_tensor.c: Python tensors in the format of <marey/tensor.h>.
 *
 * torch, numpy, JAX and CuPy are neither linked nor imported: a torch tensor provides its address, type, sizes and
 * strides through its methods; all others support one of Python's protocols. Data are never copied here; the result
 * holds the reference that keeps them alive.
 */
#include "native.h"

#include <string.h>

/* ---- attributes ---- */

int native_tensor_make(struct native_dump *dump)
{
    static const char *const names[NATIVE_N_TENSOR_NAMES] = {
        [NATIVE_LAYOUT] = "layout",         [NATIVE_IS_CPU] = "is_cpu",
        [NATIVE_IS_CUDA] = "is_cuda",       [NATIVE_IS_NESTED] = "is_nested",
        [NATIVE_IS_CONJ] = "is_conj",       [NATIVE_IS_NEG] = "is_neg",
        [NATIVE_DTYPE] = "dtype",           [NATIVE_DATA_PTR] = "data_ptr",
        [NATIVE_SHAPE] = "shape",           [NATIVE_STRIDE] = "stride",
        [NATIVE_GET_DEVICE] = "get_device",
    };
    for (size_t i = 0; i < NATIVE_N_TENSOR_NAMES; i++)
        if ((dump->names[i] = PyUnicode_InternFromString(names[i])) == NULL)
            return -1;
    return 0;
}

/* The truth value of an object, which is released; -1 and an exception on failure. */
static int truth(PyObject *value)
{
    const int is_true = value != NULL ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return is_true;
}

/* A tuple or list of ints; each divided by `unit`. -1 and an exception for invalid ones. */
static int read_axes(PyObject *axes, int64_t unit, int64_t *out, uint32_t *rank)
{
    PyObject *fast EXT_OWNED = PySequence_Fast(axes, "sizes and strides of a tensor are sequences");
    if (fast == NULL)
        return -1;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    int rc = 0;
    if (n > MAREY_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "a tensor of %zd axes has too many; %d are the most", n,
                     MAREY_MAX_RANK);
        rc = -1;
    }
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++) {
        const long long value = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast, i));
        if (value == -1 && PyErr_Occurred())
            rc = -1;
        else if (value % unit != 0) {
            PyErr_SetString(PyExc_ValueError, "the strides of an array are not multiples of its "
                                              "element size; copy it first");
            rc = -1;
        } else
            out[i] = value / unit;
    }
    *rank = (uint32_t)n;
    return rc;
}

static int no_such_type(PyObject *object, PyObject *name)
{
    return EXT_FAIL(PyExc_TypeError, "marey has no type for elements of %S (in a %.200s)", name,
                    Py_TYPE(object)->tp_name);
}

/* ---- torch ---- */

/* Stores torch's classes once it is imported. 0 before that. */
static int know_torch(struct native_dump *dump)
{
    if (MAREY_LIKELY(dump->torch_strided != NULL))
        return 1;
    PyObject *torch EXT_OWNED = native_imported("torch");
    if (torch == NULL)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *nn EXT_OWNED = PyObject_GetAttrString(torch, "nn");
    Py_XSETREF(dump->torch_parameter, nn != NULL ? PyObject_GetAttrString(nn, "Parameter") : NULL);
    Py_XSETREF(dump->torch_tensor,
               dump->torch_parameter != NULL ? PyObject_GetAttrString(torch, "Tensor") : NULL);
    dump->torch_strided =
        dump->torch_tensor != NULL ? PyObject_GetAttrString(torch, "strided") : NULL;
    PyErr_Clear(); /* it is being imported, or is another module with that name */
    return dump->torch_strided != NULL;
}

/* The number of a type by its Python name: "torch.float32", or a plain name. 0: none; -1 and an exception. */
static int dtype_of(struct native_dump *dump, PyObject *dtype)
{
    PyObject *known = PyDict_GetItemWithError(dump->dtypes, dtype);
    if (known != NULL)
        return (int)PyLong_AsLong(known);
    PyObject *text EXT_OWNED = PyErr_Occurred() ? NULL : PyObject_Str(dtype);
    const char *name = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
    const int number = name != NULL ? (int)marey_dtype_find(name) : -1;
    PyObject *value EXT_OWNED = number >= 0 ? PyLong_FromLong(number) : NULL;
    const int rc = value != NULL ? PyDict_SetItem(dump->dtypes, dtype, value) : -1;
    return rc < 0 ? -1 : number;
}

/* Whether its memory contains its values directly, readable by us. */
static int is_plain(struct native_dump *dump, PyObject *object, int *is_cuda)
{
    PyObject *const type = (PyObject *)Py_TYPE(object);
    if (type != dump->torch_tensor && type != dump->torch_parameter)
        return 0;
    PyObject *layout EXT_OWNED = PyObject_GetAttr(object, dump->names[NATIVE_LAYOUT]);
    if (layout != dump->torch_strided)
        return layout != NULL ? 0 : -1;
    const int is_cpu = truth(PyObject_GetAttr(object, dump->names[NATIVE_IS_CPU]));
    *is_cuda = is_cpu == 0 ? truth(PyObject_GetAttr(object, dump->names[NATIVE_IS_CUDA])) : 0;
    if (is_cpu < 0 || *is_cuda < 0)
        return -1;
    if (!is_cpu && !*is_cuda)
        return 0;
    const int is_nested = truth(PyObject_GetAttr(object, dump->names[NATIVE_IS_NESTED]));
    const int is_conj = is_nested == 0
                            ? truth(PyObject_CallMethodNoArgs(object, dump->names[NATIVE_IS_CONJ]))
                            : is_nested;
    const int is_neg = is_conj == 0
                           ? truth(PyObject_CallMethodNoArgs(object, dump->names[NATIVE_IS_NEG]))
                           : is_conj;
    return is_neg < 0 ? -1 : !is_neg;
}

/* torch's current stream, where the data are produced; the default stream if unknown. */
static uintptr_t torch_stream(int32_t device)
{
    PyObject *torch EXT_OWNED = native_imported("torch._C");
    PyObject *number EXT_OWNED =
        torch != NULL ? PyObject_CallMethod(torch, "_cuda_getCurrentRawStream", "i", device) : NULL;
    void *stream = number != NULL ? PyLong_AsVoidPtr(number) : NULL;
    PyErr_Clear();
    return (uintptr_t)stream;
}

static int of_cuda(struct native_dump *dump, PyObject *object, struct marey_tensor *tensor)
{
    PyObject *device EXT_OWNED = PyObject_CallMethodNoArgs(object, dump->names[NATIVE_GET_DEVICE]);
    const long number = device != NULL ? PyLong_AsLong(device) : -1;
    if (number == -1 && PyErr_Occurred())
        return -1;
    tensor->memory = MAREY_MEMORY_CUDA;
    tensor->device = (int32_t)number;
    tensor->stream = torch_stream(tensor->device);
    return 0;
}

/* The address, sizes and strides of a plain tensor. */
static int of_plain(struct native_dump *dump, PyObject *object, int is_cuda, struct native_tensor *out)
{
    uint32_t rank;
    PyObject *address EXT_OWNED = PyObject_CallMethodNoArgs(object, dump->names[NATIVE_DATA_PTR]);
    PyObject *shape EXT_OWNED =
        address != NULL ? PyObject_GetAttr(object, dump->names[NATIVE_SHAPE]) : NULL;
    PyObject *strides EXT_OWNED =
        shape != NULL ? PyObject_CallMethodNoArgs(object, dump->names[NATIVE_STRIDE]) : NULL;
    if (strides == NULL || read_axes(shape, 1, out->sizes, &out->tensor.rank) < 0 ||
        read_axes(strides, 1, out->strides, &rank) < 0)
        return -1;
    out->tensor.data = PyLong_AsVoidPtr(address);
    if (is_cuda && !PyErr_Occurred())
        of_cuda(dump, object, &out->tensor);
    return PyErr_Occurred() ? -1 : 1;
}

/* 1 for a tensor whose memory contains its values directly, 0 for others; -1 and an exception. */
static int of_plain_torch(struct native_dump *dump, PyObject *object, struct native_tensor *out)
{
    int is_cuda = 0;
    const int plain = is_plain(dump, object, &is_cuda);
    PyObject *dtype EXT_OWNED =
        plain > 0 ? PyObject_GetAttr(object, dump->names[NATIVE_DTYPE]) : NULL;
    const int number = dtype != NULL ? dtype_of(dump, dtype) : plain > 0 ? -1 : plain;
    if (number <= 0)
        return number;
    out->tensor.dtype = (enum marey_dtype)number;
    return of_plain(dump, object, is_cuda, out);
}

static int of_torch(struct native_dump *dump, PyObject *object, int may_convert,
                    struct native_tensor *out)
{
    const int rc = of_plain_torch(dump, object, out);
    if (rc != 0)
        return rc;
    if (!may_convert) {
        PyObject *dtype EXT_OWNED = PyObject_GetAttr(object, dump->names[NATIVE_DTYPE]);
        if (dtype != NULL)
            no_such_type(object, dtype);
        return -1;
    }
    out->owner = ext_call("marey._dump_leaves", "plain", "(O)", object);
    return out->owner != NULL ? of_torch(dump, out->owner, 0, out) : -1;
}

/* ---- the buffer protocol ---- */

static enum marey_dtype integer_of(Py_ssize_t size, int is_signed)
{
    static const enum marey_dtype types[2][9] = {
        {[1] = MAREY_U8, [2] = MAREY_U16, [4] = MAREY_U32, [8] = MAREY_U64},
        {[1] = MAREY_I8, [2] = MAREY_I16, [4] = MAREY_I32, [8] = MAREY_I64}};
    return size >= 0 && size <= 8 ? types[is_signed][size] : MAREY_DTYPE_NONE;
}

/* The type for a buffer format of the module `struct`. */
static enum marey_dtype dtype_of_format(const char *format, Py_ssize_t size)
{
    if (format == NULL)
        return MAREY_U8;
    if (*format == '@' || *format == '=' || *format == '<')
        format++;
    static const char *const others[] = {"?", "e", "f", "d", "Ze", "Zf", "Zd"};
    static const enum marey_dtype types[] = {MAREY_BOOL, MAREY_F16, MAREY_F32, MAREY_F64,
                                             MAREY_C32,  MAREY_C64, MAREY_C128};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(format, others[i]) == 0)
            return types[i];
    if (format[0] == '\0' || format[1] != '\0')
        return MAREY_DTYPE_NONE;
    if (strchr("bhilqn", format[0]) != NULL)
        return integer_of(size, 1);
    return strchr("cBHILQN", format[0]) != NULL ? integer_of(size, 0) : MAREY_DTYPE_NONE;
}

/* 0 if it has no supported buffer. */
static int of_buffer(PyObject *object, struct native_tensor *out)
{
    Py_buffer *const view = &out->view;
    if (!PyObject_CheckBuffer(object))
        return 0;
    if (PyObject_GetBuffer(object, view, PyBUF_RECORDS_RO) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError))
            return -1;
        PyErr_Clear(); /* types that Python does not have, such as bfloat16 */
        view->obj = NULL;
        return 0;
    }
    out->tensor.dtype = dtype_of_format(view->format, view->itemsize);
    if (out->tensor.dtype == MAREY_DTYPE_NONE || view->ndim > MAREY_MAX_RANK) {
        PyBuffer_Release(view);
        return 0;
    }
    out->tensor.data = view->buf;
    out->tensor.rank = (uint32_t)view->ndim;
    for (int i = 0; i < view->ndim; i++) {
        if (view->strides[i] % view->itemsize != 0) {
            PyBuffer_Release(view);
            return 0;
        }
        out->sizes[i] = view->shape[i];
        out->strides[i] = view->strides[i] / view->itemsize;
    }
    return 1;
}

/* ---- __array_interface__ and __cuda_array_interface__ ---- */

/* obj.dtype.name if the interface describes only bytes, as for bfloat16. */
static int interface_dtype(struct native_dump *dump, PyObject *object, PyObject *interface)
{
    PyObject *typestr = PyDict_GetItemString(interface, "typestr");
    const int number = typestr != NULL ? dtype_of(dump, typestr) : 0;
    if (number != 0)
        return number;
    if (typestr != NULL && PyUnicode_Check(typestr) && PyUnicode_READ_CHAR(typestr, 0) == '>')
        return no_such_type(object, typestr);
    PyObject *dtype EXT_OWNED = PyObject_GetAttrString(object, "dtype");
    PyObject *name EXT_OWNED = dtype != NULL ? PyObject_GetAttrString(dtype, "name") : NULL;
    const int by_name = name != NULL ? dtype_of(dump, name) : -1;
    if (by_name == 0)
        no_such_type(object, name);
    return by_name > 0 ? by_name : -1;
}

static int interface_axes(PyObject *interface, struct native_tensor *out)
{
    const int64_t size = (int64_t)marey_dtype_size(out->tensor.dtype);
    PyObject *shape = PyDict_GetItemString(interface, "shape");
    PyObject *strides = PyDict_GetItemString(interface, "strides");
    uint32_t rank;
    if (shape == NULL || read_axes(shape, 1, out->sizes, &out->tensor.rank) < 0)
        return -1;
    if (strides == NULL || strides == Py_None)
        out->tensor.strides = NULL;
    else if (read_axes(strides, size, out->strides, &rank) < 0)
        return -1;
    return 0;
}

static int of_interface(struct native_dump *dump, PyObject *object, const char *name,
                        struct native_tensor *out)
{
    PyObject *interface EXT_OWNED = PyObject_GetAttrString(object, name);
    if (interface == NULL) {
        PyErr_Clear();
        return 0;
    }
    PyObject *data = PyDict_Check(interface) ? PyDict_GetItemString(interface, "data") : NULL;
    int rc = 0;
    if (data != NULL && PyTuple_Check(data) && PyTuple_GET_SIZE(data) == 2) {
        const int dtype = interface_dtype(dump, object, interface);
        out->tensor.dtype = dtype > 0 ? (enum marey_dtype)dtype : MAREY_DTYPE_NONE;
        out->tensor.data = dtype > 0 ? PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0)) : NULL;
        rc = dtype > 0 && !PyErr_Occurred() && interface_axes(interface, out) == 0 ? 1 : -1;
    }
    PyObject *stream = rc > 0 ? PyDict_GetItemString(interface, "stream") : NULL;
    if (stream != NULL && PyLong_Check(stream))
        out->tensor.stream = (uintptr_t)PyLong_AsVoidPtr(stream);
    return rc < 0 && PyErr_Occurred() ? -1 : rc;
}

static int of_cuda_interface(struct native_dump *dump, PyObject *object, struct native_tensor *out)
{
    const int rc = of_interface(dump, object, "__cuda_array_interface__", out);
    if (rc > 0)
        out->tensor.memory = MAREY_MEMORY_CUDA;
    return rc;
}

/* ---- DLPack ---- */

/* Layout as in its header; the managed tensor begins with the tensor. */
struct dl_tensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };

static enum marey_dtype dtype_of_dlpack(const struct dl_tensor *dl)
{
    /* By code and bytes, except integers. */
    static const enum marey_dtype types[][17] = {
        [2] = {[2] = MAREY_F16, [4] = MAREY_F32, [8] = MAREY_F64},
        [4] = {[2] = MAREY_BF16},
        [5] = {[4] = MAREY_C32, [8] = MAREY_C64, [16] = MAREY_C128},
        [6] = {[1] = MAREY_BOOL},
        [10] = {[1] = MAREY_F8_E4M3FN},
        [11] = {[1] = MAREY_F8_E4M3FNUZ},
        [12] = {[1] = MAREY_F8_E5M2},
        [13] = {[1] = MAREY_F8_E5M2FNUZ},
        [14] = {[1] = MAREY_F8_E8M0FNU},
    };
    if (dl->lanes != 1 || dl->bits % 8 != 0 || dl->bits > 128)
        return MAREY_DTYPE_NONE;
    if (dl->code < 2)
        return integer_of(dl->bits / 8, dl->code == 0);
    return dl->code < sizeof types / sizeof *types ? types[dl->code][dl->bits / 8] : MAREY_DTYPE_NONE;
}

static int dlpack_place(PyObject *object, const struct dl_tensor *dl, struct marey_tensor *tensor)
{
    if (dl->device_type == DL_CUDA || dl->device_type == DL_CUDA_MANAGED) {
        tensor->memory = MAREY_MEMORY_CUDA;
        tensor->device = dl->device_id;
    } else if (dl->device_type != DL_CPU && dl->device_type != DL_CUDA_HOST) {
        return EXT_FAIL(
            PyExc_TypeError,
            "a %.200s on a device of DLPack's kind %d cannot be read; move it to the CPU "
            "first",
            Py_TYPE(object)->tp_name, dl->device_type);
    }
    return 0;
}

/* Requests it for the GPU's default stream, 1 in DLPack: the producer synchronizes pending work with it. */
static PyObject *dlpack_capsule(PyObject *object)
{
    PyObject *device EXT_OWNED = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    long type = DL_CPU;
    if (device != NULL && PyTuple_Check(device) && PyTuple_GET_SIZE(device) == 2)
        type = PyLong_AsLong(PyTuple_GET_ITEM(device, 0));
    if (device == NULL || PyErr_Occurred())
        return NULL;
    if (type != DL_CUDA && type != DL_CUDA_MANAGED)
        return PyObject_CallMethod(object, "__dlpack__", NULL);
    PyObject *method EXT_OWNED = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none EXT_OWNED = method != NULL ? PyTuple_New(0) : NULL;
    PyObject *stream EXT_OWNED = none != NULL ? Py_BuildValue("{si}", "stream", 1) : NULL;
    return stream != NULL ? PyObject_Call(method, none, stream) : NULL;
}

static int of_dlpack(PyObject *object, struct native_tensor *out)
{
    PyObject *method EXT_OWNED = PyObject_GetAttrString(object, "__dlpack__");
    if (method == NULL) {
        PyErr_Clear();
        return 0;
    }
    out->owner = dlpack_capsule(object);
    const struct dl_tensor *dl =
        out->owner != NULL ? PyCapsule_GetPointer(out->owner, "dltensor") : NULL;
    if (dl == NULL)
        return -1;
    out->tensor.dtype = dtype_of_dlpack(dl);
    if (out->tensor.dtype == MAREY_DTYPE_NONE || dl->ndim < 0 || dl->ndim > MAREY_MAX_RANK)
        return EXT_FAIL(PyExc_TypeError,
                        "marey has no type for elements of DLPack's code %d with %d bits", dl->code,
                        dl->bits);
    out->tensor.rank = (uint32_t)dl->ndim;
    for (int i = 0; i < dl->ndim; i++) {
        out->sizes[i] = dl->shape[i];
        out->strides[i] = dl->strides != NULL ? dl->strides[i] : 0;
    }
    if (dl->strides == NULL)
        out->tensor.strides = NULL;
    out->tensor.data = (const char *)dl->data + dl->byte_offset;
    return dlpack_place(object, dl, &out->tensor) < 0 ? -1 : 1;
}

/* ---- any ---- */

static int of_any(struct native_state *state, PyObject *object, struct native_tensor *out)
{
    struct native_dump *const dump = &state->dump;
    const int knows = know_torch(dump);
    if (knows < 0)
        return -1;
    if (knows && PyObject_TypeCheck(object, (PyTypeObject *)dump->torch_tensor))
        return of_torch(dump, object, 1, out);
    int rc = of_buffer(object, out);
    if (rc == 0)
        rc = of_interface(dump, object, "__array_interface__", out);
    if (rc == 0)
        rc = of_cuda_interface(dump, object, out);
    return rc != 0 ? rc : of_dlpack(object, out);
}

static void make_empty(struct native_tensor *out)
{
    out->owner = NULL;
    out->view.obj = NULL;
    out->tensor = (struct marey_tensor){.sizes = out->sizes, .strides = out->strides};
}

int native_tensor_init(struct native_state *state, PyObject *object, struct native_tensor *out)
{
    make_empty(out);
    const int rc = of_any(state, object, out);
    if (rc <= 0)
        native_tensor_fini(out);
    return rc;
}

int native_tensor_init_plain(struct native_state *state, PyObject *object, struct native_tensor *out)
{
    make_empty(out);
    const int knows = know_torch(&state->dump);
    return knows > 0 ? of_plain_torch(&state->dump, object, out) : knows;
}

void native_tensor_fini(struct native_tensor *tensor)
{
    if (tensor->view.obj != NULL)
        PyBuffer_Release(&tensor->view); /* sets obj to NULL */
    Py_CLEAR(tensor->owner);
}
