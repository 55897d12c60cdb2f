/* calls_cost.c: what a call costs the program while it is profiled: an empty function, called with and without a profile. */
#include "calls_hook.h"

#include <time.h>

enum { CALLS = 500, ROUNDS = 3 };

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Nanoseconds that a call of `function` takes, the least of some; 0 and an exception otherwise. */
static uint64_t least_ns(PyObject *function)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t begin = now_ns();
        PyObject *const done = PyObject_CallNoArgs(function);
        if (done == NULL)
            return 0;
        Py_DECREF(done);
        const uint64_t took = now_ns() - begin;
        least = took < least ? took : least;
    }
    return least;
}

static PyObject *make_function(void)
{
    static const char text[] = "def f(a): pass\n"
                               "def g():\n"
                               " for i in range(500): f(i)\n";
    PyObject *const names = PyDict_New();
    PyObject *const done =
        names != NULL && PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) == 0
            ? PyRun_String(text, Py_file_input, names, names)
            : NULL;
    PyObject *const function = done != NULL ? PyDict_GetItemString(names, "g") : NULL;
    Py_XINCREF(function);
    Py_XDECREF(done);
    Py_XDECREF(names);
    return function;
}

/* Picoseconds for each call; 0 and maybe an exception when it cannot be measured. */
static uint64_t measure(PyObject *scratch)
{
    PyObject *const function = make_function();
    const uint64_t without = function != NULL ? least_ns(function) : 0;
    uint64_t with = 0;
    if (without != 0 && calls_enable((struct calls_profile *)scratch) == 0) {
        with = least_ns(function);
        if (calls_disable((struct calls_profile *)scratch) < 0)
            with = 0;
    }
    Py_XDECREF(function);
    return with > without ? (with - without) * 1000 / CALLS : 0;
}

/* On a hook that somebody else has, measuring would only disturb. */
static bool can_measure(void)
{
#if CALLS_MONITORING
    return calls_hook.n_slots == 0;
#else
    return calls_hook.n_slots == 0 && PyThreadState_Get()->c_profilefunc == NULL;
#endif
}

void calls_tell_cost(struct calls_profile *profile)
{
    static uint64_t costs[2]; /* in picoseconds, without signatures and with; 0: not measured */
    static bool is_measuring;
    uint64_t *const cost = &costs[profile->signer != NULL];
    if (is_measuring || profile->timer != NULL)
        return;
    if (*cost == 0 && can_measure()) {
        is_measuring = true;
        PyObject *const scratch =
            PyObject_CallFunction((PyObject *)calls_type(), "OdOOi", Py_None, 0.0, Py_True, Py_True,
                                  profile->signer != NULL ? CALLS_SHAPE : 0);
        *cost = scratch != NULL ? measure(scratch) : 0;
        Py_XDECREF(scratch);
        PyErr_Clear();
        is_measuring = false;
    }
    marey_calls_set_cost(profile->calls, *cost);
}
