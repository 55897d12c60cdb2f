/*
 * native_names.c: converts names to bytes, and places, colors, payloads.
 *
 * A name may be any str: lone surrogates are encoded in three bytes, and NULs are ordinary bytes. Sites are permanent,
 * in libmarey's table; the dictionaries here are only caches, limited in size, so that a program with endless names
 * costs time rather than memory.
 */
#include "native.h"

#include <string.h>

PyObject *native_name(PyObject *name)
{
    if (PyUnicode_CheckExact(name) || PyBytes_CheckExact(name))
        return Py_NewRef(name);
    /* A subclass may override hash and equality; the plain value does not. */
    if (PyUnicode_Check(name))
        return PyUnicode_FromObject(name);
    if (PyBytes_Check(name))
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name));
    return PyErr_Format(PyExc_TypeError, "a name is a str or bytes, not %.200s",
                        Py_TYPE(name)->tp_name);
}

int native_optional_name(PyObject **name)
{
    if (*name == Py_None)
        *name = NULL;
    if (*name == NULL || PyUnicode_Check(*name) || PyBytes_Check(*name))
        return 0;
    return EXT_FAIL(PyExc_TypeError, "a name is a str or bytes, not %.200s", Py_TYPE(*name)->tp_name);
}

/* The bytes of a str or bytes. `owner` is a new reference that keeps them alive. */
static int bytes_of(PyObject *text, PyObject **owner, const char **data, Py_ssize_t *len)
{
    *owner = NULL;
    if (!PyBytes_Check(text) && !PyUnicode_Check(text))
        PyErr_Format(PyExc_TypeError, "a str or bytes is needed, not %.200s", Py_TYPE(text)->tp_name);
    else
        *owner = ext_bytes(text);
    if (*owner == NULL)
        return -1;
    *data = PyBytes_AS_STRING(*owner);
    *len = PyBytes_GET_SIZE(*owner);
    return 0;
}

/* The text of an optional str, or NULL. `owner` as above, or NULL. */
static int optional_text(PyObject *given, PyObject **owner, const char **text)
{
    Py_ssize_t len;
    *owner = NULL;
    *text = NULL;
    return given == NULL || given == Py_None ? 0 : bytes_of(given, owner, text, &len);
}

int native_site(const struct native_site_key *key, const struct native_place *place, marey_id *id)
{
    PyObject *name EXT_OWNED = NULL;
    PyObject *category EXT_OWNED = NULL;
    PyObject *domain EXT_OWNED = NULL;
    struct marey_site site = {.color = key->color};
    Py_ssize_t len = 0;
    if (bytes_of(key->name, &name, &site.name, &len) < 0 ||
        optional_text(key->category, &category, &site.category) < 0 ||
        optional_text(key->domain, &domain, &site.domain) < 0)
        return -1;
    if (place != NULL) {
        site.file = place->file != NULL ? PyBytes_AS_STRING(place->file) : NULL;
        site.line = place->line;
    }
    *id = marey_site_intern_whole(&site, (size_t)len);
    return 0;
}

PyObject *native_site_dict_key(const struct native_site_key *key)
{
    if (key->category == Py_None && key->domain == Py_None && key->color == 0)
        return Py_NewRef(key->name);
    return Py_BuildValue("(OOIO)", key->name, key->category, key->color, key->domain);
}

static void place_of_code(struct native_place *place, PyObject *code, int line)
{
    PyObject *file EXT_OWNED = code != NULL ? PyObject_GetAttrString(code, "co_filename") : NULL;
    place->file = file != NULL && PyUnicode_Check(file) ? PyUnicode_EncodeFSDefault(file) : NULL;
    place->line = line > 0 ? (unsigned)line : 0;
    PyErr_Clear(); /* the place is optional */
}

void native_place_of_caller(struct native_place *place)
{
    PyFrameObject *frame = PyEval_GetFrame();
    if (frame == NULL) {
        *place = (struct native_place){0};
        return;
    }
    PyCodeObject *code EXT_OWNED = PyFrame_GetCode(frame);
    place_of_code(place, (PyObject *)code, PyFrame_GetLineNumber(frame));
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
    if ((digits != 6 && digits != 8) || text[1 + digits] != '\0')
        return EXT_FAIL(
            PyExc_ValueError,
            "%R is not a colour: give 0xAARRGGBB, \"#rrggbb\", \"#aarrggbb\", or one of red, "
            "green, blue, orange, purple, yellow, cyan, grey",
            color);
    *out = (unsigned)strtoul(text + 1, NULL, 16) | (digits == 6 ? 0xff000000u : 0);
    return 0;
}

/* 0xAARRGGBB from an int, "#rrggbb", "#aarrggbb" or a name. -1 and an exception on failure. None gives 0. */
static int color_of(PyObject *color, unsigned *out)
{
    *out = 0;
    if (color == NULL || color == Py_None)
        return 0;
    if (PyUnicode_Check(color))
        return color_of_text(color, out);
    if (!PyLong_Check(color))
        return EXT_FAIL(PyExc_TypeError, "a colour is an int or a str, not %.200s",
                        Py_TYPE(color)->tp_name);
    const unsigned long value = PyLong_AsUnsignedLong(color);
    if (value == (unsigned long)-1 && PyErr_Occurred())
        return -1;
    if (value > 0xffffffffu)
        return EXT_FAIL(PyExc_ValueError, "a colour has 32 bits: 0xAARRGGBB");
    *out = (unsigned)value;
    return 0;
}

static int none_or_str(const char *what, PyObject *given, PyObject **out)
{
    *out = given != NULL ? given : Py_None;
    if (*out == Py_None || PyUnicode_Check(*out))
        return 0;
    return EXT_FAIL(PyExc_TypeError, "a %s is a str, not %.200s", what, Py_TYPE(*out)->tp_name);
}

int native_site_details(struct native_site_key *key, PyObject *category, PyObject *color,
                        PyObject *domain)
{
    if (none_or_str("category", category, &key->category) < 0 ||
        none_or_str("domain", domain, &key->domain) < 0)
        return -1;
    return color_of(color, &key->color);
}

/* An int that fits 64 bits, signed or unsigned. 0 if it fits neither. */
static int payload_of_int(PyObject *value, struct marey_payload *out)
{
    int overflow;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) {
        *out = (struct marey_payload){.type = MAREY_PAYLOAD_I64, .as.i64 = number};
        return 1;
    }
    const unsigned long long large = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    *out = (struct marey_payload){.type = MAREY_PAYLOAD_U64, .as.u64 = large};
    return 1;
}

int native_payload(PyObject *value, struct marey_payload *out, PyObject **owner)
{
    *owner = NULL;
    *out = (struct marey_payload){0};
    if (value == NULL || value == Py_None)
        return 0;
    if (PyLong_Check(value) && payload_of_int(value, out))
        return 0;
    if (PyFloat_Check(value)) {
        *out = (struct marey_payload){.type = MAREY_PAYLOAD_F64, .as.f64 = PyFloat_AS_DOUBLE(value)};
        return 0;
    }
    PyObject *text EXT_OWNED = PyBytes_Check(value) ? Py_NewRef(value) : PyObject_Str(value);
    if (text == NULL)
        return -1;
    const char *data;
    Py_ssize_t len;
    const int rc = bytes_of(text, owner, &data, &len);
    if (rc < 0)
        return -1;
    const uint32_t kept = len > UINT32_MAX ? UINT32_MAX : (uint32_t)len;
    *out = (struct marey_payload){.type = MAREY_PAYLOAD_TEXT, .len = kept, .as.text = data};
    return 0;
}

void native_slot_fill(struct native_slot *slots, PyObject *key, PyObject *range, marey_id id)
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

/* Assigns an id to a new site and caches it if there is room. */
static int id_of_new_site(struct native_state *state, const struct native_site_key *key,
                          PyObject *kept_as, marey_id *id)
{
    struct native_place place;
    native_place_of_caller(&place);
    const int rc = native_site(key, &place, id);
    Py_XDECREF(place.file);
    if (rc < 0)
        return -1;
    if (PyDict_GET_SIZE(state->ids) >= NATIVE_MAX_NAMES)
        return 0;
    PyObject *number EXT_OWNED = PyLong_FromUnsignedLong(*id);
    if (number == NULL || PyDict_SetItem(state->ids, kept_as, number) < 0)
        PyErr_Clear(); /* only the cache entry is missing */
    return 0;
}

int native_id_of_site(struct native_state *state, const struct native_site_key *key, marey_id *id)
{
    PyObject *kept_as EXT_OWNED = native_site_dict_key(key);
    if (kept_as == NULL)
        return -1;
    int rc = 0;
    PyObject *known = PyDict_GetItemWithError(state->ids, kept_as);
    if (known != NULL)
        *id = (marey_id)PyLong_AsUnsignedLong(known);
    else
        rc = PyErr_Occurred() ? -1 : id_of_new_site(state, key, kept_as, id);
    return rc;
}

int native_id_slow(struct native_state *state, PyObject *given, marey_id *id)
{
    const struct native_site_key key = {
        .name = native_name(given), .category = Py_None, .domain = Py_None};
    if (key.name == NULL)
        return -1;
    const int rc = native_id_of_site(state, &key, id);
    if (rc == 0)
        native_slot_fill(state->slots[NATIVE_ID_SLOTS], key.name, NULL, *id);
    Py_DECREF(key.name);
    return rc;
}
