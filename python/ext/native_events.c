/*
 * native_events.c: push, pop, mark and counter.
 *
 * push is as cheap as `with`: the name's id comes from a cache keyed by the address of the str, which for a literal is
 * always the same. Arguments are checked whether recording is on or off, so that errors show up early.
 */
#include "native.h"

static PyObject *event_push(PyObject *module, PyObject *name)
{
    struct native_state *state = native_state_of(module);
    marey_id id;
    if (MAREY_UNLIKELY(native_id(state, name, &id) < 0))
        return NULL;
    marey_begin(id);
    Py_RETURN_NONE;
}

/* By name rather than id: the push may have been made in C, at a different site. */
static PyObject *pop_checked(PyObject *module, PyObject *name)
{
    PyObject *bytes EXT_OWNED = name != NULL ? ext_bytes(name) : NULL;
    if (name != NULL && bytes == NULL)
        return NULL;
    const marey_status status = marey_pop_checked(bytes != NULL ? PyBytes_AS_STRING(bytes) : NULL);
    return native_result(native_state_of(module), status);
}

NATIVE_METHOD(event_pop)
{
    PyObject *name = NULL;
    if (MAREY_UNLIKELY(nargs != 0 || kwnames != NULL) &&
        (NATIVE_ARGUMENTS("pop", 0, &name, "name") < 0 || native_optional_name(&name) < 0))
        return NULL;
    const uint32_t on = marey_on();
    if (MAREY_UNLIKELY(on & MAREY_ON_CHECKED))
        return pop_checked(self, name);
    if (on)
        marey_end_on(0);
    Py_RETURN_NONE;
}

/* Argument order of mark(): name, payload, category, color, domain. */
static int mark_id(struct native_state *state, PyObject *const *values, marey_id *id)
{
    if (values[2] == NULL && values[3] == NULL && values[4] == NULL)
        return native_id(state, values[0], id);
    struct native_site_key key;
    if (native_site_details(&key, values[2], values[3], values[4]) < 0)
        return -1;
    key.name = native_name(values[0]);
    const int rc = key.name != NULL ? native_id_of_site(state, &key, id) : -1;
    Py_XDECREF(key.name);
    return rc;
}

NATIVE_METHOD(event_mark)
{
    PyObject *values[5] = {NULL};
    marey_id id;
    if (NATIVE_ARGUMENTS("mark", 1, values, "name", "payload", "category", "color", "domain") < 0 ||
        mark_id(native_state_of(self), values, &id) < 0)
        return NULL;
    if (!marey_on())
        Py_RETURN_NONE;
    struct marey_payload payload;
    PyObject *owner EXT_OWNED = NULL;
    if (native_payload(values[1], &payload, &owner) < 0)
        return NULL;
    if (payload.type != 0)
        marey_mark_payload(id, &payload);
    else
        marey_mark_on(id);
    Py_RETURN_NONE;
}

NATIVE_METHOD(event_counter)
{
    PyObject *values[2] = {NULL};
    marey_id id;
    if (NATIVE_ARGUMENTS("counter", 2, values, "name", "value") < 0 ||
        native_id(native_state_of(self), values[0], &id) < 0)
        return NULL;
    if (!marey_on())
        Py_RETURN_NONE; /* skipped while off, because converting may wait for a device */
    const double value = PyFloat_AsDouble(values[1]);
    if (value == -1.0 && PyErr_Occurred())
        return NULL;
    marey_counter_on(id, value);
    Py_RETURN_NONE;
}

PyMethodDef native_event_functions[] = {
    {"push", event_push, METH_O,
     "push($module, name, /)\n--\n\nBegin a range on this thread; pop() ends it."},
    {"pop", NATIVE_FASTCALL(event_pop),
     "pop($module, /, name=None)\n--\n\n"
     "End the innermost range of this thread.\n\n"
     "With nesting checked (marey.start(check=True)), a name that does not match raises "
     "RangeError and pops nothing."},
    {"mark", NATIVE_FASTCALL(event_mark),
     "mark($module, /, name, payload=None, category=None, color=None, domain=None)\n--\n\n"
     "A point in time on this thread."},
    {"counter", NATIVE_FASTCALL(event_counter),
     "counter($module, /, name, value)\n--\n\nThe value of a quantity from now on."},
    {NULL, NULL, 0, NULL},
};

/*
 * ---- ranges of `with` blocks and functions while nesting is checked ----
 *
 * marey.start(check=True), or NVTXRangeWrapper with order tracking. libmarey keeps each thread's stack and reports
 * mismatches. It does not know blocks entered before the check was enabled, whose ends would look wrong. Blocks nest,
 * so each thread counts those entered since the last switch; an end with none left belongs to an earlier block and is
 * not checked.
 */

/* Incremented whenever Python switches a recording or the range wrapper, in any interpreter. */
static _Atomic unsigned generation = 1;

static _Thread_local struct {
    unsigned generation, depth;
} entered;

void native_nesting_renew(void)
{
    generation++;
}

void native_begin_checked(const struct native_range *range)
{
    const unsigned now = generation;
    if (entered.generation != now) {
        entered.generation = now;
        entered.depth = 0;
    }
    entered.depth++;
    native_begin_now(range);
}

int native_end_checked(const struct native_range *range, int failing)
{
    if (entered.generation != generation || entered.depth == 0) {
        marey_end_unchecked(range->id);
        return 0;
    }
    entered.depth--;
    const marey_status status = marey_end_checked(range->id);
    if (status == MAREY_OK || failing)
        return 0;
    native_raise(PyType_GetModuleState(Py_TYPE((PyObject *)range)), status);
    return -1;
}
