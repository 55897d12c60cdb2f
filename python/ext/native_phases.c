/*
 * native_phases.c: the stack of training phases. marey/_phases.py has the vocabulary and is the public interface.
 *
 * Between two phases a model runs and evicts our data from the caches. Python frames and objects are then ten times
 * slower than in a tight loop, so entering and leaving are implemented here, with one call each.
 */
#include "native.h"

#include <marey/iteration.h>

/* A phase between enter and leave, with what leave must undo. */
struct native_entered {
    struct native_range *range; /* from the vocabulary; NULL: this phase does nothing */
    PyObject *before;           /* the enclosing phase, or NULL */
    PyObject *annotation;       /* its context manager, or NULL */
    int is_recorded;
};

static struct native_phases *phases_of(PyObject *module)
{
    return &native_state_of(module)->phases;
}

/* Sets the current phase, None for none; returns the previous one, a reference owned by the caller, or NULL. */
static PyObject *exchange(struct native_phases *phases, PyObject *name)
{
    PyObject *before = phases->now;
    phases->now = name != NULL && name != Py_None ? Py_NewRef(name) : NULL;
    return before;
}

static int tell(struct native_state *state, PyObject *name)
{
    marey_id id = 0;
    if (name != NULL && name != Py_None && native_id(state, name, &id) < 0)
        return -1;
    marey_phase(id);
    return 0;
}

static PyObject *phase(PyObject *module, PyObject *name)
{
    if (tell(native_state_of(module), name) < 0)
        return NULL;
    PyObject *before = exchange(phases_of(module), name);
    return before != NULL ? before : Py_NewRef(Py_None);
}

/* ---- the stack ---- */

static struct native_entered *push(struct native_phases *phases)
{
    if (phases->depth == phases->room) {
        const size_t room = phases->room * 2 + 16;
        struct native_entered *stack = PyMem_Realloc(phases->stack, room * sizeof *stack);
        if (stack == NULL)
            return (struct native_entered *)PyErr_NoMemory();
        phases->stack = stack;
        phases->room = room;
    }
    struct native_entered *entered = &phases->stack[phases->depth++];
    *entered = (struct native_entered){0};
    return entered;
}

static void end_annotation(PyObject *annotation)
{
    PyObject *done EXT_OWNED =
        PyObject_CallMethod(annotation, "__exit__", "OOO", Py_None, Py_None, Py_None);
    if (done == NULL)
        PyErr_WriteUnraisable(annotation); /* continue undoing the rest */
}

/* A new reference to the entered result of annotation(text). NULL and an exception on failure. */
static PyObject *begin_annotation(PyObject *make, PyObject *text)
{
    PyObject *annotation = PyObject_CallFunctionObjArgs(make, text, NULL);
    PyObject *done EXT_OWNED =
        annotation != NULL ? PyObject_CallMethod(annotation, "__enter__", NULL) : NULL;
    if (done == NULL)
        Py_CLEAR(annotation);
    return annotation;
}

static int is_now(const struct native_phases *phases, PyObject *name)
{
    PyObject *now = phases->now;
    return now == name || (now != NULL && PyUnicode_Check(now) && PyUnicode_Check(name) &&
                           PyUnicode_Compare(now, name) == 0);
}

/* Creates the pair for a name on first use: phases that never occur get no site. */
static int make_pair(struct native_state *state, PyObject *name)
{
    PyObject *range, *text;
    PyObject *pair EXT_OWNED = PyObject_CallFunctionObjArgs(state->phases.make, name, NULL);
    if (pair == NULL)
        return -1;
    const int is_pair =
        PyArg_ParseTuple(pair, "O!U:phase", state->types[NATIVE_RANGE], &range, &text);
    return is_pair ? PyDict_SetItem(state->phases.vocabulary, name, pair) : -1;
}

/* The pair (range, text) of a name, borrowed. NULL and an exception for a name that is not a phase. */
static PyObject *find(struct native_state *state, PyObject *name)
{
    PyObject *vocabulary = state->phases.vocabulary;
    if (vocabulary == NULL)
        return PyErr_Format(PyExc_RuntimeError, "no phases are configured");
    PyObject *pair = PyDict_GetItemWithError(vocabulary, name);
    if (pair != NULL || PyErr_Occurred())
        return pair;
    return make_pair(state, name) == 0 ? PyDict_GetItemWithError(vocabulary, name) : NULL;
}

/* Fills an entry that is already on the stack, because code called here may enter phases itself. */
static int enter_at(struct native_state *state, size_t at, PyObject *name, int is_recorded)
{
    struct native_phases *phases = &state->phases;
    PyObject *pair = find(state, name), *annotation = NULL;
    if (pair == NULL)
        return -1;
    if (phases->annotate != NULL) {
        annotation = begin_annotation(phases->annotate, PyTuple_GET_ITEM(pair, 1));
        if (annotation == NULL)
            return -1;
    }
    struct native_entered *entered = &phases->stack[at];
    entered->range = (struct native_range *)PyTuple_GET_ITEM(pair, 0);
    entered->annotation = annotation;
    entered->before = exchange(phases, name);
    entered->is_recorded = is_recorded && tell(state, name) == 0;
    if (entered->is_recorded)
        native_begin(entered->range, marey_on());
    return entered->is_recorded == is_recorded ? 0 : -1;
}

static PyObject *phase_enter(PyObject *module, PyObject *name)
{
    struct native_state *state = native_state_of(module);
    struct native_phases *phases = &state->phases;
    const int is_recorded = marey_enabled() != 0;
    const size_t at = phases->depth;
    if (push(phases) == NULL)
        return NULL;
    if ((!is_recorded && phases->annotate == NULL) || is_now(phases, name))
        Py_RETURN_NONE;
    if (enter_at(state, at, name, is_recorded) == 0)
        Py_RETURN_NONE;
    if (phases->stack[at].range == NULL)
        phases->depth = at;
    return NULL;
}

static PyObject *phase_leave(PyObject *module, PyObject *Py_UNUSED(unused))
{
    struct native_state *state = native_state_of(module);
    struct native_phases *phases = &state->phases;
    if (phases->depth == 0)
        Py_RETURN_NONE;
    struct native_entered entered = phases->stack[--phases->depth];
    if (entered.range == NULL)
        Py_RETURN_NONE;
    if (entered.annotation != NULL)
        end_annotation(entered.annotation);
    int rc = 0;
    if (entered.is_recorded) {
        rc = native_end(entered.range, marey_on(), 0);
        rc = tell(state, entered.before) < 0 ? -1 : rc;
    }
    Py_XDECREF(exchange(phases, entered.before));
    Py_XDECREF(entered.before);
    Py_XDECREF(entered.annotation);
    return rc == 0 ? Py_NewRef(Py_None) : NULL;
}

EXT_FUNCTION(phase_depth, PyLong_FromSize_t(phases_of(self)->depth))
EXT_FUNCTION(phase_now, Py_NewRef(phases_of(self)->now != NULL ? phases_of(self)->now : Py_None))

static PyObject *phase_annotate(PyObject *module, PyObject *annotate)
{
    struct native_phases *phases = phases_of(module);
    Py_XSETREF(phases->annotate, annotate != Py_None ? Py_NewRef(annotate) : NULL);
    Py_RETURN_NONE;
}

static PyObject *phase_vocabulary(PyObject *module, PyObject *make)
{
    struct native_phases *phases = phases_of(module);
    if (phases->vocabulary != NULL) /* the stack may contain its ranges */
        Py_RETURN_NONE;
    phases->vocabulary = PyDict_New();
    phases->make = Py_NewRef(make);
    return phases->vocabulary != NULL ? Py_NewRef(Py_None) : NULL;
}

/* ---- with the module ---- */

void native_phases_forget(struct native_phases *phases)
{
    Py_CLEAR(phases->now);
}

#define OBJECTS(X) X(annotate) X(now) X(make) X(vocabulary)
#define VISIT(name) Py_VISIT(phases->name);
#define CLEAR(name) Py_CLEAR(phases->name);

int native_phases_traverse(struct native_phases *phases, visitproc visit, void *arg)
{
    OBJECTS(VISIT)
    for (size_t i = 0; i < phases->depth; i++) {
        Py_VISIT(phases->stack[i].before);
        Py_VISIT(phases->stack[i].annotation);
    }
    return 0;
}

void native_phases_clear(struct native_phases *phases)
{
    while (phases->depth > 0) {
        struct native_entered entered = phases->stack[--phases->depth];
        Py_XDECREF(entered.before);
        Py_XDECREF(entered.annotation);
    }
    PyMem_Free(phases->stack);
    phases->stack = NULL;
    phases->room = 0;
    OBJECTS(CLEAR)
}

PyMethodDef native_phase_functions[] = {
    {"phase", phase, METH_O, NULL},
    {"phase_enter", phase_enter, METH_O, NULL},
    {"phase_leave", phase_leave, METH_NOARGS, NULL},
    {"phase_depth", phase_depth, METH_NOARGS, NULL},
    {"phase_now", phase_now, METH_NOARGS, NULL},
    {"phase_annotate", phase_annotate, METH_O, NULL},
    {"phase_vocabulary", phase_vocabulary, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
