/*
 * native_dump_put.c: functions of <marey/dump.h> for marey/_dumper.py, one value at a time.
 *
 * A put copies, and may wait for memory; a flush passes data to writer threads: both release the GIL.
 */
#include "native.h"

#include <marey/dump.h>
#include <marey/tensor.h>

#include <stdlib.h>
#include <string.h>

/* ---- tensors whose ownership was passed ---- */

/*
 * The dumper's threads release objects without the GIL, possibly during interpreter shutdown: they put them here, and
 * the next holder of the GIL releases them.
 */
struct handed {
    PyObject *object;
    PyInterpreterState *owner;
    struct handed *next;
};
/* Lock-free, because a forked child could inherit a held lock. Writers push one, readers take all. */
static struct handed *let_go;

static void handed_release(void *owner)
{
    struct handed *const handed = owner;
    handed->next = __atomic_load_n(&let_go, __ATOMIC_RELAXED);
    /* Release: pairs with the acquire in take_away(), so that its fields are visible with the pointer. */
    while (!__atomic_compare_exchange_n(&let_go, &handed->next, handed, 1, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

/* Releases those of this interpreter; others have their own GIL, so theirs are put back. */
static void take_away(void)
{
    if (MAREY_LIKELY(__atomic_load_n(&let_go, __ATOMIC_RELAXED) == NULL))
        return;
    PyInterpreterState *const here = PyInterpreterState_Get();
    struct handed *at = __atomic_exchange_n(&let_go, NULL, __ATOMIC_ACQUIRE);
    while (at != NULL) {
        struct handed *const next = at->next;
        if (at->owner != here) {
            handed_release(at);
        } else {
            Py_DECREF(at->object);
            PyMem_RawFree(at);
        }
        at = next;
    }
}

/* Finishes a library call that was made without the GIL. */
static PyObject *come_back(PyObject *module, marey_status status)
{
    take_away();
    return native_result(native_state_of(module), status);
}

/* The result of such a call. */
#define UNLOCKED(module, call) come_back(module, EXT_STATUS_UNLOCKED(call))

/* ---- arguments ---- */

enum { MAX_PARTS = 128 };

/* A path: a tuple of keys (str) and positions (int). */
struct parts {
    struct marey_dump_part part[MAX_PARTS];
    size_t n;
    PyObject *kept; /* encoded copies of keys that are not UTF-8, in a list, or NULL */
};

/* Lone surrogates, such as in a file name, are encoded as Python does for files. */
static int key_part(struct parts *parts, PyObject *key, struct marey_dump_part *out)
{
    Py_ssize_t len;
    const char *text = PyUnicode_AsUTF8AndSize(key, &len);
    if (text == NULL) {
        PyErr_Clear();
        PyObject *bytes EXT_OWNED = ext_bytes(key);
        if (parts->kept == NULL)
            parts->kept = PyList_New(0);
        const int rc = bytes != NULL && parts->kept != NULL ? PyList_Append(parts->kept, bytes) : -1;
        if (rc < 0)
            return -1;
        text = PyBytes_AS_STRING(bytes);
        len = PyBytes_GET_SIZE(bytes);
    }
    *out = (struct marey_dump_part){.key = text, .key_len = (size_t)len};
    return 0;
}

static int parts_init(struct parts *parts, PyObject *path)
{
    parts->n = 0;
    parts->kept = NULL;
    if (!PyTuple_Check(path) || PyTuple_GET_SIZE(path) > MAX_PARTS)
        return EXT_FAIL(PyExc_ValueError, "a path has up to %d levels", MAX_PARTS);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(path); i++) {
        PyObject *part = PyTuple_GET_ITEM(path, i);
        struct marey_dump_part *const out = &parts->part[parts->n++];
        *out = (struct marey_dump_part){0};
        if (PyUnicode_Check(part)) {
            if (key_part(parts, part, out) < 0)
                return -1;
        } else {
            out->index = PyLong_AsUnsignedLongLong(part);
            if (PyErr_Occurred())
                return -1;
        }
    }
    return 0;
}

/* Axes in the form of torch.permute(): negative ones count from the end. */
static int permutation_of(PyObject *given, uint32_t rank, uint32_t *out, const uint32_t **permutation)
{
    *permutation = NULL;
    if (given == Py_None)
        return 0;
    PyObject *fast EXT_OWNED = PySequence_Fast(given, "a permutation is a sequence of axes");
    if (fast == NULL)
        return -1;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    int rc = 0;
    if (n != (Py_ssize_t)rank) {
        PyErr_Format(PyExc_ValueError, "a permutation of %zd axes does not fit a tensor of %u", n,
                     rank);
        rc = -1;
    }
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++) {
        const long axis = PyLong_AsLong(PySequence_Fast_GET_ITEM(fast, i));
        if (axis == -1 && PyErr_Occurred())
            rc = -1;
        out[i] = (uint32_t)(axis < 0 ? axis + (long)rank : axis);
    }
    *permutation = out;
    return rc;
}

static int tree_of(PyObject *value, enum marey_dump_tree *tree)
{
    const long number = PyLong_AsLong(value);
    *tree = number == MAREY_DUMP_GRADIENTS ? MAREY_DUMP_GRADIENTS : MAREY_DUMP_TENSORS;
    return number == -1 && PyErr_Occurred() ? -1 : 0;
}

/* ---- putting ---- */

static PyObject *put(struct native_state *state, enum marey_dump_tree tree,
                     const struct parts *parts, struct marey_dump_value *value)
{
    value->file = native_dump_place.file != NULL ? PyBytes_AS_STRING(native_dump_place.file) : NULL;
    value->line = native_dump_place.line;
    take_away();
    const marey_status status =
        EXT_STATUS_UNLOCKED(marey_dump_put(tree, parts->part, parts->n, value));
    if (status != MAREY_OK)
        return native_raise(state, status);
    Py_RETURN_TRUE;
}

/* Host memory that the caller keeps alive and unchanged need not be copied. */
static int hand_over(struct marey_dump_value *value, PyObject *object,
                     const struct native_tensor *tensor)
{
    if (value->tensor.memory == MAREY_MEMORY_CUDA)
        return 0;
    struct handed *handed = PyMem_RawMalloc(sizeof *handed);
    if (handed == NULL)
        return EXT_NO_MEMORY();
    handed->object = Py_NewRef(tensor->owner != NULL ? tensor->owner : object);
    handed->owner = PyInterpreterState_Get();
    value->release = handed_release;
    value->owner = handed;
    return 0;
}

enum {
    PUT_TREE,
    PUT_PARTS,
    PUT_DATA,
    PUT_TYPE,
    PUT_PERMUTATION,
    PUT_PHASE,
    PUT_IMAGE,
    PUT_HAND_OVER,
    PUT_N
};

static int details(PyObject *const *args, struct marey_dump_value *value)
{
    const long type = PyLong_AsLong(args[PUT_TYPE]);
    if (type == -1 && PyErr_Occurred())
        return -1;
    value->type = (enum marey_dump_type)type;
    if (args[PUT_PHASE] != Py_None && (value->phase = PyUnicode_AsUTF8(args[PUT_PHASE])) == NULL)
        return -1;
    return 0;
}

static PyObject *put_tensor(struct native_state *state, PyObject *const *args,
                            const struct parts *parts, struct native_tensor *tensor)
{
    uint32_t axes[MAREY_MAX_RANK];
    enum marey_dump_tree tree;
    struct native_image image;
    struct marey_dump_value value = {.kind = MAREY_DUMP_TENSOR, .tensor = tensor->tensor};
    const int hands_over = PyObject_IsTrue(args[PUT_HAND_OVER]);
    const int has_image = args[PUT_IMAGE] != Py_None;
    if (hands_over < 0 || tree_of(args[PUT_TREE], &tree) < 0 || details(args, &value) < 0 ||
        permutation_of(args[PUT_PERMUTATION], value.tensor.rank, axes, &value.permutation) < 0 ||
        (has_image && native_image_init(state, args[PUT_IMAGE], &image) < 0))
        return NULL;
    PyObject *result = NULL;
    if (has_image)
        value.image = &image.options;
    if (!hands_over || hand_over(&value, args[PUT_DATA], tensor) == 0)
        result = put(state, tree, parts, &value);
    if (has_image)
        native_image_fini(&image);
    return result;
}

/* True, or False for an object that is not a tensor. */
static PyObject *dump_put(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != PUT_N)
        return PyErr_Format(PyExc_TypeError, "dump_put() takes %d arguments", PUT_N);
    struct native_state *state = native_state_of(module);
    struct native_tensor tensor;
    struct parts parts;
    PyObject *result = NULL;
    if (parts_init(&parts, args[PUT_PARTS]) == 0) {
        const int is_tensor = native_tensor_init(state, args[PUT_DATA], &tensor);
        if (is_tensor > 0) {
            result = put_tensor(state, args, &parts, &tensor);
            native_tensor_fini(&tensor);
        } else if (is_tensor == 0)
            result = Py_NewRef(Py_False);
    }
    Py_XDECREF(parts.kept);
    return result;
}

/* ---- the fast path ---- */

/* Splits a path into its levels without copying. False if there are too many. */
static int split_path(const char *path, Py_ssize_t len, struct parts *parts)
{
    const char *const end = path + len;
    parts->n = 0;
    parts->kept = NULL;
    for (const char *at = path; parts->n < MAX_PARTS;) {
        const char *const dot = memchr(at, '.', (size_t)(end - at));
        const char *const stop = dot != NULL ? dot : end;
        parts->part[parts->n++] = (struct marey_dump_part){.key = at, .key_len = (size_t)(stop - at)};
        if (dot == NULL)
            return 1;
        at = dot + 1;
    }
    return 0;
}

/* The number of a form; -1 if it is invalid, or is written in Python. */
static int plain_type(PyObject *given)
{
    if (given == NULL || given == Py_None)
        return MAREY_DUMP_CONTAINER;
    const long number = PyLong_Check(given) ? PyLong_AsLong(given) + 1 : -1;
    PyErr_Clear();
    return number > 0 && number < MAREY_N_DUMP_TYPES && number != MAREY_DUMP_PICKLE ? (int)number
                                                                                    : -1;
}

PyObject *native_dump_add(struct native_state *state, PyObject *const *args, Py_ssize_t nargs)
{
    Py_ssize_t len = 0;
    struct native_tensor tensor;
    struct parts parts;
    const int type = plain_type(nargs > 2 ? args[2] : NULL);
    const char *path =
        type >= 0 && PyUnicode_Check(args[0]) ? PyUnicode_AsUTF8AndSize(args[0], &len) : NULL;
    PyErr_Clear();
    if (!marey_dump_is_wanted())
        Py_RETURN_NONE;
    if (path == NULL || !split_path(path, len, &parts))
        return Py_NewRef(Py_NotImplemented);
    const int is_plain = native_tensor_init_plain(state, args[1], &tensor);
    if (is_plain <= 0)
        return is_plain < 0 ? NULL : Py_NewRef(Py_NotImplemented);
    struct marey_dump_value value = {
        .kind = MAREY_DUMP_TENSOR, .tensor = tensor.tensor, .type = (enum marey_dump_type)type};
    const struct native_place outer = native_dump_place;
    native_place_of_caller(&native_dump_place);
    PyObject *result EXT_OWNED = put(state, MAREY_DUMP_TENSORS, &parts, &value);
    Py_XDECREF(native_dump_place.file);
    native_dump_place = outer;
    native_tensor_fini(&tensor);
    if (result == NULL)
        return NULL;
    Py_RETURN_NONE;
}

/* dump_simple(yes): whether no options require checks of plain tensors. */
static PyObject *dump_simple(PyObject *module, PyObject *yes)
{
    const int truth = PyObject_IsTrue(yes);
    if (truth < 0)
        return NULL;
    native_state_of(module)->dump.is_simple = truth;
    Py_RETURN_NONE;
}

static PyObject *dump_put_value(PyObject *module, PyObject *args)
{
    PyObject *number, *path;
    int kind;
    Py_buffer text = {0};
    enum marey_dump_tree tree;
    struct parts parts = {0};
    if (!PyArg_ParseTuple(args, "OOis*:dump_put_value", &number, &path, &kind, &text))
        return NULL;
    PyObject *result = NULL;
    if (tree_of(number, &tree) == 0 && parts_init(&parts, path) == 0) {
        struct marey_dump_value value = {
            .kind = (enum marey_dump_kind)kind, .text = text.buf, .text_len = (size_t)text.len};
        if (kind == MAREY_DUMP_BYTES)
            value.type = MAREY_DUMP_PICKLE;
        result = put(native_state_of(module), tree, &parts, &value);
    }
    Py_XDECREF(parts.kept);
    PyBuffer_Release(&text);
    return result;
}

/* ---- pending values ---- */

struct search {
    int nan, inf;
    double over;
    char name[512];
    const char *what; /* NULL: nothing found */
};

/* "a.b[3]", truncated, for display. */
static void name_of(const struct marey_dump_entry *entry, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < entry->n_parts && len < size; i++) {
        const struct marey_dump_part *part = &entry->parts[i];
        const int n = part->key != NULL ? snprintf(out + len, size - len, "%s%.*s",
                                                   i > 0 ? "." : "", (int)part->key_len, part->key)
                                        : snprintf(out + len, size - len, "[%llu]",
                                                   (unsigned long long)part->index);
        len += n > 0 ? (size_t)n : 0;
    }
}

static int search_visit(void *ctx, const struct marey_dump_entry *entry)
{
    struct search *search = ctx;
    struct marey_tensor_stats stats;
    if (entry->value.kind != MAREY_DUMP_TENSOR ||
        marey_tensor_stats_get(&entry->value.tensor, &stats) != MAREY_OK)
        return 1;
    if (search->nan && stats.n_nan > 0)
        search->what = "has NaNs";
    else if (search->inf && stats.n_pos_inf + stats.n_neg_inf > 0)
        search->what = "has infinities";
    else if (stats.max > search->over || stats.min < -search->over)
        search->what = "has a number over the limit";
    if (search->what == NULL)
        return 1;
    name_of(entry, search->name, sizeof search->name);
    return 0;
}

/* dump_find(nan, inf, over): the first pending tensor with such a value, as a sentence, or None. */
static PyObject *dump_find(PyObject *module, PyObject *args)
{
    struct search search = {0};
    if (!PyArg_ParseTuple(args, "ppd:dump_find", &search.nan, &search.inf, &search.over))
        return NULL;
    const marey_status status = EXT_STATUS_UNLOCKED(marey_dump_visit_pending(search_visit, &search));
    if (status != MAREY_OK)
        return native_raise(native_state_of(module), status);
    if (search.what == NULL)
        Py_RETURN_NONE;
    PyObject *name EXT_OWNED =
        PyUnicode_DecodeUTF8(search.name, (Py_ssize_t)strlen(search.name), "replace");
    return name != NULL ? PyUnicode_FromFormat("%U %s", name, search.what) : NULL;
}

/* ---- steps ---- */

static PyObject *dump_enable(PyObject *module, PyObject *args)
{
    PyObject *path EXT_OWNED = NULL;
    int layout, mode, policy, durable, stats;
    unsigned long long memory, disk, first, last, every, flight;
    unsigned writers;
    if (!PyArg_ParseTuple(args, "O&iiiKKIpKKKKp:dump_enable", PyUnicode_FSConverter, &path, &layout,
                          &mode, &policy, &memory, &disk, &writers, &durable, &first, &last, &every,
                          &flight, &stats))
        return NULL;
    const char *directory = PyBytes_AS_STRING(path);
    const struct marey_dump_options options = {.dir = directory[0] != '\0' ? directory : NULL,
                                               .layout = (enum marey_dump_layout)layout,
                                               .mode = (enum marey_dump_mode)mode,
                                               .policy = (enum marey_dump_policy)policy,
                                               .memory_bytes = memory,
                                               .disk_bytes = disk,
                                               .n_writers = writers,
                                               .durable = durable != 0,
                                               .first = first,
                                               .last = last,
                                               .every = every,
                                               .flight_steps = flight,
                                               .no_stats = !stats};
    return UNLOCKED(module, marey_dump_enable(&options));
}

EXT_FUNCTION(dump_disable, UNLOCKED(self, marey_dump_disable()))
EXT_FUNCTION(dump_wait, UNLOCKED(self, marey_dump_wait()))

static PyObject *dump_flush(PyObject *module, PyObject *Py_UNUSED(unused))
{
    uint64_t count = marey_dump_count();
    PyObject *result EXT_OWNED = UNLOCKED(module, marey_dump_flush(&count));
    return result != NULL ? PyLong_FromUnsignedLongLong(count) : NULL;
}

static PyObject *dump_trigger(PyObject *module, PyObject *reason)
{
    PyObject *bytes EXT_OWNED = PyUnicode_AsEncodedString(reason, "utf-8", "backslashreplace");
    if (bytes == NULL)
        return NULL;
    return UNLOCKED(module, marey_dump_trigger(PyBytes_AS_STRING(bytes)));
}

EXT_FUNCTION(dump_is_wanted, PyBool_FromLong(marey_dump_is_enabled() && marey_dump_is_wanted()))

static PyObject *dump_pending(PyObject *Py_UNUSED(module), PyObject *number)
{
    enum marey_dump_tree tree;
    return tree_of(number, &tree) == 0 ? PyLong_FromUnsignedLongLong(marey_dump_pending(tree)) : NULL;
}

static PyObject *dump_clear(PyObject *Py_UNUSED(module), PyObject *number)
{
    enum marey_dump_tree tree;
    if (tree_of(number, &tree) < 0)
        return NULL;
    marey_dump_clear(tree);
    take_away();
    Py_RETURN_NONE;
}

static PyObject *dump_retype(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *number;
    int type;
    enum marey_dump_tree tree;
    if (!PyArg_ParseTuple(args, "Oi:dump_retype", &number, &type) || tree_of(number, &tree) < 0)
        return NULL;
    marey_dump_retype(tree, (enum marey_dump_type)type);
    Py_RETURN_NONE;
}

static PyObject *dump_set_count(PyObject *Py_UNUSED(module), PyObject *number)
{
    const unsigned long long count = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred())
        return NULL;
    marey_dump_set_count(count);
    Py_RETURN_NONE;
}

PyMethodDef native_dump_functions[] = {
    {"dump_enable", dump_enable, METH_VARARGS, NULL},
    {"dump_disable", dump_disable, METH_NOARGS, NULL},
    {"dump_put", (PyCFunction)(void (*)(void))dump_put, METH_FASTCALL, NULL},
    {"dump_put_value", dump_put_value, METH_VARARGS, NULL},
    {"dump_simple", dump_simple, METH_O, NULL},
    {"dump_find", dump_find, METH_VARARGS, NULL},
    {"dump_flush", dump_flush, METH_NOARGS, NULL},
    {"dump_wait", dump_wait, METH_NOARGS, NULL},
    {"dump_trigger", dump_trigger, METH_O, NULL},
    {"dump_is_wanted", dump_is_wanted, METH_NOARGS, NULL},
    {"dump_pending", dump_pending, METH_O, NULL},
    {"dump_clear", dump_clear, METH_O, NULL},
    {"dump_retype", dump_retype, METH_VARARGS, NULL},
    {"dump_set_count", dump_set_count, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
