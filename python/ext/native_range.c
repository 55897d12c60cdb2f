/*
 * native_range.c: range() and the Range objects behind `with`.
 *
 * `with r:` looks up __enter__ and __exit__ on the type of r and binds them. A C method is a descriptor, so binding
 * creates an object each time, which costs more than the range itself. A built-in function is not a descriptor and is
 * used directly. So each Range gets its own small heap type, whose dictionary has two built-in functions already bound
 * to that Range:
 *
 *     type of r ── __dict__ ── "__enter__": built-in function, self = r
 *                              "__exit__":  built-in function, self = r
 *
 * A type takes some 7 µs and 0.9 KB, and thousands of them overload CPython's method cache, so only the first OWN_TYPES
 * sites get one; the others share the type Range, which has ordinary methods.
 *
 * A Range is cached for the life of the module, once per site, so that `with marey.range("literal")` allocates nothing.
 */
#include <opcode.h>

#include "native.h"

#include <structmember.h>

enum { OWN_TYPES = 256 };

static PyObject *range_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const uint32_t on = marey_on();
    if (MAREY_UNLIKELY(on))
        native_begin((const struct native_range *)self, on);
    Py_RETURN_NONE;
}

static PyObject *range_exit(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    const struct native_range *range = (const struct native_range *)self;
    if (native_end(range, marey_on(), nargs > 0 && args[0] != Py_None) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *range_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<marey.range %R>", ((struct native_range *)self)->name);
}

static PyObject *range_payload(PyObject *self, void *Py_UNUSED(closure))
{
    const struct marey_payload *payload = &((struct native_range *)self)->payload;
    switch ((int)payload->type) {
    case MAREY_PAYLOAD_I64:
        return PyLong_FromLongLong(payload->as.i64);
    case MAREY_PAYLOAD_U64:
        return PyLong_FromUnsignedLongLong(payload->as.u64);
    case MAREY_PAYLOAD_F64:
        return PyFloat_FromDouble(payload->as.f64);
    case MAREY_PAYLOAD_TEXT:
        return PyUnicode_DecodeUTF8(payload->as.text, payload->len, "backslashreplace");
    default:
        Py_RETURN_NONE;
    }
}

static PyObject *range_get_color(PyObject *self, void *Py_UNUSED(closure))
{
    const unsigned color = ((struct native_range *)self)->color;
    if (color == 0)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(color);
}

static PyObject *range_refuse_new(PyTypeObject *Py_UNUSED(type), PyObject *Py_UNUSED(args),
                                  PyObject *Py_UNUSED(kwargs))
{
    return PyErr_Format(PyExc_TypeError, "Range objects are made by marey.range(name)");
}

static int range_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct native_range *range = (struct native_range *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(range->name);
    Py_VISIT(range->category);
    Py_VISIT(range->domain);
    Py_VISIT(range->payload_owner);
    return 0;
}

/* A range's reference cycle includes its type, whose dictionary the type clears; the fields here stay valid to the end. */
static void range_dealloc(PyObject *self)
{
    struct native_range *range = (struct native_range *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(range->name);
    Py_XDECREF(range->category);
    Py_XDECREF(range->domain);
    Py_XDECREF(range->payload_owner);
    type->tp_free(self);
    Py_DECREF(type);
}

enum { N_BOUND = 2 }; /* the first methods, which an own type binds */
static PyMethodDef range_methods[] = {
    {"__enter__", range_enter, METH_NOARGS, "Begin the range."},
    {"__exit__", (PyCFunction)(void (*)(void))range_exit, METH_FASTCALL, "End the range."},
    {"__aenter__", native_aenter, METH_NOARGS, "Begin an async range."},
    {"__aexit__", (PyCFunction)(void (*)(void))native_aexit, METH_FASTCALL, "End the async range."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef range_members[] = {
    {"name", T_OBJECT, offsetof(struct native_range, name), READONLY, "The name, as it was given."},
    {"category", T_OBJECT, offsetof(struct native_range, category), READONLY,
     "The category, or None."},
    {"domain", T_OBJECT, offsetof(struct native_range, domain), READONLY,
     "The library it belongs to, or None."},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef range_getset[] = {
    {"color", range_get_color, NULL, "0xAARRGGBB, or None.", NULL},
    {"payload", range_payload, NULL, "The payload, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(range_doc,
             "A named range: a context manager, an async one, and a decorator.\n\n"
             "Made by marey.range(name). Immutable, so one object serves all threads and tasks.");

EXT_TYPE(native_range_spec, "marey.Range", struct native_range,
         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
         {Py_tp_doc, (void *)range_doc}, {Py_tp_new, range_refuse_new},
         {Py_tp_call, native_decorate_call}, {Py_tp_members, range_members},
         {Py_tp_repr, range_repr}, {Py_tp_methods, range_methods}, {Py_tp_getset, range_getset},
         {Py_tp_traverse, range_traverse}, {Py_tp_dealloc, range_dealloc})

EXT_LOCAL_TYPE(own_spec, "marey.Range", struct native_range, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
               {Py_tp_traverse, range_traverse}, {Py_tp_dealloc, range_dealloc})

/* Stores the range's two bound functions in its own type. */
static int own_type_bind(PyTypeObject *type, PyObject *range)
{
    for (PyMethodDef *def = range_methods; def < range_methods + N_BOUND; def++) {
        PyObject *bound EXT_OWNED = PyCFunction_NewEx(def, range, NULL);
        const int rc =
            bound != NULL ? PyObject_SetAttrString((PyObject *)type, def->ml_name, bound) : -1;
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* An instance of `type`, either Range or its own type; the caller keeps its reference to `type`. */
static struct native_range *range_create(PyTypeObject *type, const struct native_site_key *key,
                                         marey_id id)
{
    struct native_range *range = (struct native_range *)type->tp_alloc(type, 0);
    if (range == NULL)
        return NULL;
    range->id = id;
    range->color = key->color;
    range->name = Py_NewRef(key->name);
    range->category = Py_NewRef(key->category);
    range->domain = Py_NewRef(key->domain);
    return range;
}

static struct native_range *range_create_own(PyObject *module, PyTypeObject *base,
                                             const struct native_site_key *key, marey_id id)
{
    PyTypeObject *type EXT_OWNED =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, &own_spec, (PyObject *)base);
    if (type == NULL)
        return NULL;
    struct native_range *range = range_create(type, key, id);
    if (range != NULL && own_type_bind(type, (PyObject *)range) < 0)
        Py_CLEAR(range);
    return range;
}

static PyObject *range_make(PyObject *module, const struct native_site_key *key,
                            const struct native_place *place, PyObject *kept_as)
{
    struct native_state *state = native_state_of(module);
    marey_id id;
    if (native_site(key, place, &id) < 0)
        return NULL;
    if (kept_as == NULL || PyDict_GET_SIZE(state->ranges) >= NATIVE_MAX_NAMES)
        return (PyObject *)range_create(state->types[NATIVE_RANGE], key, id);
    struct native_range *range;
    if (state->n_own_types < OWN_TYPES) {
        state->n_own_types++;
        range = range_create_own(module, state->types[NATIVE_RANGE], key, id);
    } else {
        range = range_create(state->types[NATIVE_RANGE], key, id);
    }
    if (range != NULL && PyDict_SetItem(state->ranges, kept_as, (PyObject *)range) < 0)
        Py_CLEAR(range);
    return (PyObject *)range;
}

/* ---- misuse ---- */

/* Whether the caller's next instruction drops the result of range(): the call is a statement. */
static int is_dropped(PyFrameObject *frame)
{
    PyObject *lasti EXT_OWNED = PyObject_GetAttrString((PyObject *)frame, "f_lasti");
    PyCodeObject *code EXT_OWNED = PyFrame_GetCode(frame);
    PyObject *bytes EXT_OWNED = PyObject_GetAttrString((PyObject *)code, "co_code");
    int is_next = 0;
    if (lasti != NULL && bytes != NULL && PyBytes_Check(bytes)) {
        const Py_ssize_t n = PyBytes_GET_SIZE(bytes);
        const unsigned char *codes = (const unsigned char *)PyBytes_AS_STRING(bytes);
        Py_ssize_t at = PyLong_AsSsize_t(lasti) + 2;
        while (at >= 2 && at < n && codes[at] == 0) /* inline caches of the call */
            at += 2;
        is_next = at >= 2 && at < n && codes[at] == POP_TOP;
    }
    PyErr_Clear(); /* the warning is optional */
    return is_next;
}

/* Warns once per process, when a site is new. Ranges are cached, so it is too late when an object is freed. */
static int warn_if_dropped(struct native_state *state)
{
    PyFrameObject *frame = state->warned_of_range ? NULL : PyEval_GetFrame();
    if (frame == NULL || !is_dropped(frame))
        return 0;
    state->warned_of_range = 1;
    return PyErr_WarnEx(
        PyExc_RuntimeWarning,
        "marey.range() without 'with' records nothing: write 'with marey.range(\"name\"):' around "
        "the code, or '@marey.range(\"name\")' above a function",
        1);
}

/* The Range of a site, cached or new. `function` is being decorated and provides the place, or NULL. */
static PyObject *range_of_site(PyObject *module, const struct native_site_key *key, PyObject *function)
{
    struct native_state *state = native_state_of(module);
    PyObject *kept_as EXT_OWNED = native_site_dict_key(key);
    if (kept_as == NULL)
        return NULL;
    PyObject *range = PyDict_GetItemWithError(state->ranges, kept_as);
    if (range != NULL || PyErr_Occurred())
        return Py_XNewRef(range);
    struct native_place place;
    if (function == NULL && warn_if_dropped(state) < 0)
        return NULL;
    if (function != NULL)
        native_place_of_function(&place, function);
    else
        native_place_of_caller(&place);
    range = range_make(module, key, &place, kept_as);
    Py_XDECREF(place.file);
    return range;
}

/* A Range with a payload is used once, so it is not cached and has no own type. */
static PyObject *range_with_payload(PyObject *module, const struct native_site_key *key,
                                    PyObject *payload)
{
    struct native_range *plain EXT_OWNED = (struct native_range *)range_of_site(module, key, NULL);
    if (plain == NULL)
        return NULL;
    struct native_range *range =
        range_create(native_state_of(module)->types[NATIVE_RANGE], key, plain->id);
    if (range != NULL && native_payload(payload, &range->payload, &range->payload_owner) < 0)
        Py_CLEAR(range);
    return (PyObject *)range;
}

/* @marey.range without parentheses: uses the function's qualified name. */
static PyObject *range_of_function(PyObject *module, PyObject *function)
{
    PyObject *target = function;
    PyObject *unwrapped EXT_OWNED = NULL;
    if (PyObject_TypeCheck(function, &PyStaticMethod_Type) ||
        PyObject_TypeCheck(function, &PyClassMethod_Type))
        target = unwrapped = PyObject_GetAttrString(function, "__func__");
    PyObject *name EXT_OWNED = target != NULL ? PyObject_GetAttrString(target, "__qualname__") : NULL;
    if (name == NULL || !PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "marey.range takes a name or a function, not %.200s",
                            Py_TYPE(function)->tp_name);
    const struct native_site_key key = {.name = name, .category = Py_None, .domain = Py_None};
    PyObject *range EXT_OWNED = range_of_site(module, &key, target);
    return range != NULL ? native_decorate((struct native_range *)range, function) : NULL;
}

/* Argument order of range(): name, category, color, payload, domain. */
static PyObject *range_of_arguments(PyObject *module, PyObject *const *values)
{
    struct native_site_key key;
    if (native_site_details(&key, values[1], values[2], values[4]) < 0)
        return NULL;
    key.name = native_name(values[0]);
    if (key.name == NULL)
        return NULL;
    PyObject *range;
    if (values[3] != NULL && values[3] != Py_None)
        range = range_with_payload(module, &key, values[3]);
    else
        range = range_of_site(module, &key, NULL);
    const int is_plain = key.category == Py_None && key.domain == Py_None && key.color == 0;
    if (range != NULL && is_plain && values[3] == NULL)
        native_slot_fill(native_state_of(module)->slots[NATIVE_RANGE_SLOTS], key.name, range, 0);
    Py_DECREF(key.name);
    return range;
}

NATIVE_METHOD(range_slow)
{
    PyObject *values[5] = {NULL};
    if (NATIVE_ARGUMENTS("range", 1, values, "name", "category", "color", "payload", "domain") < 0)
        return NULL;
    const int alone = nargs == 1 && (kwnames == NULL || PyTuple_GET_SIZE(kwnames) == 0);
    if (alone && !PyUnicode_Check(values[0]) && !PyBytes_Check(values[0]))
        return range_of_function(self, values[0]);
    return range_of_arguments(self, values);
}

NATIVE_METHOD(range_function)
{
    if (MAREY_LIKELY(nargs == 1 && kwnames == NULL)) {
        const struct native_slot *slot =
            &native_state_of(self)->slots[NATIVE_RANGE_SLOTS][native_slot_of(args[0])];
        if (MAREY_LIKELY(slot->key == args[0]))
            return Py_NewRef(slot->range);
    }
    return range_slow(self, args, nargs, kwnames);
}

PyDoc_STRVAR(range_function_doc,
             "range(name, category=None, color=None, payload=None, domain=None)\n--\n\n"
             "A named range: `with marey.range(\"forward\"):`, `async with`, or a decorator.\n\n"
             "The same name gives the same object. `@marey.range` without arguments uses the "
             "function's qualified name.\n"
             "Put varying data into the payload (an int, a float or a text), not into the name. "
             "`domain` is the library it\n"
             "belongs to.");

PyMethodDef native_range_functions[] = {
    {"range", NATIVE_FASTCALL(range_function), range_function_doc},
    {NULL, NULL, 0, NULL},
};
