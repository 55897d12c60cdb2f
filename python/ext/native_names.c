/*
 * native_names.c: from Python objects to what libkymo takes: names as bytes, places, colours, payloads.
 *
 * A name may be any str: lone surrogates are passed on in their own three bytes, and NULs are bytes like any other.
 * Sites live as long as the process, in libkymo's table; the dictionaries here only save the way there, and stop
 * growing at a bound so that a program with endless names pays with time, not with memory.
 */
#include "native.h"

#include <string.h>

PyObject *native_name(PyObject *name)
{
    if (PyUnicode_CheckExact(name) || PyBytes_CheckExact(name))
        return Py_NewRef(name);
    /* A subclass may bring its own hash and equality; the plain value has none of that. */
    if (PyUnicode_Check(name))
        return PyUnicode_FromObject(name);
    if (PyBytes_Check(name))
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name));
    PyErr_Format(PyExc_TypeError, "a name is a str or bytes, not %.200s", Py_TYPE(name)->tp_name);
    return NULL;
}

/* The bytes of a str or bytes. `owner` is a new reference that keeps them. */
static int bytes_of(PyObject *text, PyObject **owner, const char **data, Py_ssize_t *len)
{
    if (PyBytes_Check(text)) {
        *owner = Py_NewRef(text);
    } else if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "a str or bytes is needed, not %.200s", Py_TYPE(text)->tp_name);
        return -1;
    } else {
        *owner = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
    }
    if (*owner == NULL)
        return -1;
    *data = PyBytes_AS_STRING(*owner);
    *len = PyBytes_GET_SIZE(*owner);
    return 0;
}

int native_site(PyObject *name, PyObject *category, unsigned color,
                const struct native_place *place, kymo_id *id)
{
    PyObject *owner = NULL, *category_owner = NULL;
    const char *data, *category_data = NULL;
    Py_ssize_t len, category_len;
    if (bytes_of(name, &owner, &data, &len) < 0)
        return -1;
    if (category != NULL && category != Py_None &&
        bytes_of(category, &category_owner, &category_data, &category_len) < 0) {
        Py_DECREF(owner);
        return -1;
    }
    const char *file = place != NULL && place->file != NULL ? PyBytes_AS_STRING(place->file) : NULL;
    *id = kymo_site_intern(data, (size_t)len, category_data, color, file,
                           place != NULL ? place->line : 0);
    Py_XDECREF(category_owner);
    Py_DECREF(owner);
    return 0;
}

static void place_of_code(struct native_place *place, PyObject *code, int line)
{
    PyObject *file = code != NULL ? PyObject_GetAttrString(code, "co_filename") : NULL;
    place->file = file != NULL && PyUnicode_Check(file) ? PyUnicode_EncodeFSDefault(file) : NULL;
    place->line = line > 0 ? (unsigned)line : 0;
    Py_XDECREF(file);
    PyErr_Clear(); /* a place is a comfort: without one the site is as good */
}

void native_place_of_caller(struct native_place *place)
{
    PyFrameObject *frame = PyEval_GetFrame();
    if (frame == NULL) {
        *place = (struct native_place){0};
        return;
    }
    PyCodeObject *code = PyFrame_GetCode(frame);
    place_of_code(place, (PyObject *)code, PyFrame_GetLineNumber(frame));
    Py_DECREF(code);
}

void native_place_of_function(struct native_place *place, PyObject *function)
{
    if (!PyFunction_Check(function)) {
        native_place_of_caller(place);
        return;
    }
    PyObject *code = PyFunction_GET_CODE(function);
    place_of_code(place, code, ((PyCodeObject *)code)->co_firstlineno);
}

static const struct {
    const char *name;
    unsigned color;
} named_colors[] = {
    {"red", 0xffe53935},    {"green", 0xff43a047},  {"blue", 0xff1e88e5},
    {"orange", 0xfffb8c00}, {"purple", 0xff8e24aa}, {"yellow", 0xfffdd835},
    {"cyan", 0xff00acc1},   {"grey", 0xff757575},   {"gray", 0xff757575},
};

static int color_of_text(PyObject *color, unsigned *out)
{
    const char *text = PyUnicode_AsUTF8(color);
    if (text == NULL)
        return -1;
    for (size_t i = 0; i < sizeof named_colors / sizeof *named_colors; i++) {
        if (strcmp(text, named_colors[i].name) == 0) {
            *out = named_colors[i].color;
            return 0;
        }
    }
    const size_t digits = text[0] == '#' ? strspn(text + 1, "0123456789abcdefABCDEF") : 0;
    if ((digits != 6 && digits != 8) || text[1 + digits] != '\0') {
        PyErr_Format(PyExc_ValueError,
                     "%R is no colour: give 0xAARRGGBB, \"#rrggbb\", \"#aarrggbb\", or one of red, "
                     "green, blue, "
                     "orange, purple, yellow, cyan, grey",
                     color);
        return -1;
    }
    *out = (unsigned)strtoul(text + 1, NULL, 16) | (digits == 6 ? 0xff000000u : 0);
    return 0;
}

int native_color(PyObject *color, unsigned *out)
{
    *out = 0;
    if (color == NULL || color == Py_None)
        return 0;
    if (PyUnicode_Check(color))
        return color_of_text(color, out);
    if (!PyLong_Check(color)) {
        PyErr_Format(PyExc_TypeError, "a colour is an int or a str, not %.200s",
                     Py_TYPE(color)->tp_name);
        return -1;
    }
    const unsigned long value = PyLong_AsUnsignedLong(color);
    if (value == (unsigned long)-1 && PyErr_Occurred())
        return -1;
    if (value > 0xffffffffu) {
        PyErr_SetString(PyExc_ValueError, "a colour has 32 bits: 0xAARRGGBB");
        return -1;
    }
    *out = (unsigned)value;
    return 0;
}

/* An int that fits 64 bits, signed or unsigned. 0 when it fits neither. */
static int payload_of_int(PyObject *value, struct kymo_payload *out)
{
    int overflow;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) {
        *out = (struct kymo_payload){.type = KYMO_PAYLOAD_I64, .as.i64 = number};
        return 1;
    }
    const unsigned long long large = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    *out = (struct kymo_payload){.type = KYMO_PAYLOAD_U64, .as.u64 = large};
    return 1;
}

int native_payload(PyObject *value, struct kymo_payload *out, PyObject **owner)
{
    *owner = NULL;
    *out = (struct kymo_payload){0};
    if (value == NULL || value == Py_None)
        return 0;
    if (PyLong_Check(value) && payload_of_int(value, out))
        return 0;
    if (PyFloat_Check(value)) {
        *out = (struct kymo_payload){.type = KYMO_PAYLOAD_F64, .as.f64 = PyFloat_AS_DOUBLE(value)};
        return 0;
    }
    PyObject *text = PyBytes_Check(value) ? Py_NewRef(value) : PyObject_Str(value);
    if (text == NULL)
        return -1;
    const char *data;
    Py_ssize_t len;
    const int rc = bytes_of(text, owner, &data, &len);
    Py_DECREF(text);
    if (rc < 0)
        return -1;
    const uint32_t kept = len > UINT32_MAX ? UINT32_MAX : (uint32_t)len;
    *out = (struct kymo_payload){.type = KYMO_PAYLOAD_TEXT, .len = kept, .as.text = data};
    return 0;
}

void native_slot_fill(struct native_slot *slots, PyObject *key, PyObject *range, kymo_id id)
{
    if (!PyUnicode_CheckExact(key) || PyUnicode_GET_LENGTH(key) > NATIVE_MAX_LENGTH)
        return;
    struct native_slot *slot = &slots[native_slot_of(key)];
    const struct native_slot old = *slot;
    Py_INCREF(key);
    Py_XINCREF(range);
    *slot = (struct native_slot){.key = key, .range = range, .id = id};
    Py_XDECREF(old.key);
    Py_XDECREF(old.range);
}

/* Give a new name an id and, while there is room, remember it. */
static int id_of_new_name(struct native_state *state, PyObject *name, kymo_id *id)
{
    struct native_place place;
    native_place_of_caller(&place);
    const int rc = native_site(name, NULL, 0, &place, id);
    Py_XDECREF(place.file);
    if (rc < 0)
        return -1;
    if (PyDict_GET_SIZE(state->ids) >= NATIVE_MAX_NAMES)
        return 0;
    PyObject *number = PyLong_FromUnsignedLong(*id);
    if (number == NULL || PyDict_SetItem(state->ids, name, number) < 0)
        PyErr_Clear(); /* only the shortcut is missing */
    Py_XDECREF(number);
    return 0;
}

int native_id_slow(struct native_state *state, PyObject *given, kymo_id *id)
{
    PyObject *name = native_name(given);
    if (name == NULL)
        return -1;
    int rc = 0;
    PyObject *known = PyDict_GetItemWithError(state->ids, name);
    if (known != NULL)
        *id = (kymo_id)PyLong_AsUnsignedLong(known);
    else
        rc = PyErr_Occurred() ? -1 : id_of_new_name(state, name, id);
    if (rc == 0)
        native_slot_fill(state->id_slots, name, NULL, *id);
    Py_DECREF(name);
    return rc;
}
