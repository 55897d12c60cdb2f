/* calls_profile.c: the base type of marey.Profile. */
#include "calls/calls_hook.h"

#include <time.h>

#define SELF(object) ((struct calls_profile *)(object))

/* ---- lifetime ---- */

/* Only the main interpreter has profiles: their shared state is per process. */
static bool is_main(void)
{
    return PyInterpreterState_Get() == PyInterpreterState_Main();
}

static PyObject *profile_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
                             PyObject *Py_UNUSED(kwargs))
{
    struct calls_profile *const self = SELF(type->tp_alloc(type, 0));
    if (self != NULL)
        self->slot = -1;
    return (PyObject *)self;
}

static int set_modules(struct calls_profile *self, PyObject *modules)
{
    if (modules == Py_None)
        return 0;
    PyObject *const names =
        PyUnicode_Check(modules) ? PyTuple_Pack(1, modules) : PySequence_Tuple(modules);
    if (names == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
        if (!PyUnicode_Check(PyTuple_GET_ITEM(names, i))) {
            PyErr_Format(PyExc_TypeError, "modules are names, and %R is not a name",
                         PyTuple_GET_ITEM(names, i));
            Py_DECREF(names);
            return -1;
        }
    self->modules = names;
    return 0;
}

struct arguments {
    PyObject *timer, *modules;
    double unit;
    int subcalls, builtins, cpu, level, requires_grad;
    unsigned depth, most;
    unsigned long long memory;
};

static int make_signer(struct calls_profile *self, const struct arguments *a)
{
    const struct calls_sign_options options = {.level = (enum calls_level)a->level,
                                               .depth = a->depth,
                                               .most = a->most,
                                               .requires_grad = a->requires_grad != 0,
                                               .formatters =
                                                   native_state_of(calls_module())->formatters,
                                               .define = marey_calls_signature,
                                               .count_widened = marey_calls_count_widened};
    self->signer = calls_signer_create(&options);
    return self->signer != NULL ? 0 : -1;
}

static int make(struct calls_profile *self, const struct arguments *a)
{
    static uint64_t last_id;
    const bool has_timer = a->timer != Py_None;
    const struct marey_calls_options options = {
        .flags = (a->builtins ? MAREY_CALLS_BUILTINS : 0u) | (a->cpu ? MAREY_CALLS_CPU : 0u) |
                 (has_timer ? MAREY_CALLS_USER : 0u) | (a->level > 0 ? MAREY_CALLS_SIGNATURES : 0u),
        .ns_per_tick = has_timer && a->unit > 0 ? a->unit * 1e9 : 0,
        .memory_bytes = a->memory};
    self->id = ++last_id;
    self->timer = has_timer ? Py_NewRef(a->timer) : NULL;
    self->timer_unit = a->unit;
    self->with_builtins = a->builtins;
    self->with_subcalls = a->subcalls;
    self->calls = marey_calls_create(&options);
    if (self->calls == NULL)
        return EXT_NO_MEMORY();
    if (set_modules(self, a->modules) < 0 || calls_numbers_init(self) < 0)
        return -1;
    return a->level > CALLS_NONE ? make_signer(self, a) : 0;
}

static int profile_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"timer",      "timeunit", "subcalls",      "builtins",
                                        "signatures", "modules",  "cpu",           "memory",
                                        "depth",      "most",     "requires_grad", NULL};
    struct calls_profile *const self = SELF(object);
    struct arguments a = {.timer = Py_None, .modules = Py_None, .subcalls = 1, .builtins = 1};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OdppiOpKIIp:Profiler",
                                     (char **)(uintptr_t)names, &a.timer, &a.unit, &a.subcalls,
                                     &a.builtins, &a.level, &a.modules, &a.cpu, &a.memory, &a.depth,
                                     &a.most, &a.requires_grad))
        return -1;
    const bool has_timer = a.timer != Py_None;
    if (a.level < CALLS_NONE || a.level > CALLS_LAYOUT)
        PyErr_Format(PyExc_ValueError, "%d is not a level of signatures", a.level);
    else if (!is_main())
        PyErr_SetString(PyExc_RuntimeError, "call profiles work in the main interpreter only; this "
                                            "is a sub-interpreter");
    else if (self->calls != NULL)
        PyErr_SetString(PyExc_RuntimeError, "a profile is made once");
    else if (has_timer && !PyCallable_Check(a.timer))
        PyErr_SetString(PyExc_TypeError, "timer is a function that returns the time, or None");
    else if (has_timer && a.cpu)
        PyErr_SetString(PyExc_ValueError, "timer and cpu exclude one another");
    else
        return make(self, &a);
    return -1;
}

static int profile_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct calls_profile *const self = SELF(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->kept);
    Py_VISIT(self->timer);
    Py_VISIT(self->modules);
    return 0;
}

static int profile_clear_references(PyObject *object)
{
    struct calls_profile *const self = SELF(object);
    Py_CLEAR(self->kept);
    Py_CLEAR(self->timer);
    Py_CLEAR(self->modules);
    return 0;
}

/* An enabled profile is referenced by its slot, so it does not get here. */
static void profile_dealloc(PyObject *object)
{
    struct calls_profile *const self = SELF(object);
    PyTypeObject *const type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    calls_numbers_fini(self);
    calls_signer_destroy(self->signer);
    marey_calls_destroy(self->calls);
    PyMem_Free(self->threads);
    profile_clear_references(object);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- methods ---- */

static bool is_made(const struct calls_profile *self)
{
    if (self->calls == NULL)
        PyErr_SetString(PyExc_RuntimeError, "the profile's __init__ was not called");
    return self->calls != NULL;
}

static PyObject *profile_enable(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"subcalls", "builtins", NULL};
    struct calls_profile *const self = SELF(object);
    int subcalls = -1, builtins = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pp:enable", (char **)(uintptr_t)names,
                                     &subcalls, &builtins) ||
        !is_made(self))
        return NULL;
    if (self->slot < 0) { /* an enabled one is not changed */
        if (subcalls >= 0)
            self->with_subcalls = subcalls;
        if (builtins >= 0)
            self->with_builtins = builtins;
    }
    if (calls_enable(self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *profile_disable(PyObject *object, PyObject *Py_UNUSED(unused))
{
    if (!is_made(SELF(object)) || calls_disable(SELF(object)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *profile_clear(PyObject *object, PyObject *Py_UNUSED(unused))
{
    if (!is_made(SELF(object)))
        return NULL;
    marey_calls_clear(SELF(object)->calls);
    Py_RETURN_NONE;
}

EXT_FUNCTION(profile_getstats, is_made(SELF(self)) ? calls_getstats(SELF(self)) : NULL)
EXT_FUNCTION(profile_stats, is_made(SELF(self)) ? calls_stats_dict(SELF(self)) : NULL)

static PyObject *profile_write(PyObject *object, PyObject *file)
{
    struct calls_profile *const self = SELF(object);
    const int fd = is_made(self) ? PyObject_AsFileDescriptor(file) : -1;
    if (fd < 0)
        return NULL;
    const marey_status status = marey_calls_write(self->calls, fd);
    if (status != MAREY_OK)
        return PyErr_Format(status == MAREY_ENOMEM ? PyExc_MemoryError : PyExc_OSError, "%s",
                            marey_last_error());
    Py_RETURN_NONE;
}

static PyObject *profile_counts(PyObject *object, PyObject *Py_UNUSED(unused))
{
    struct marey_calls_counts c;
    if (!is_made(SELF(object)))
        return NULL;
    marey_calls_counts_get(SELF(object)->calls, &c);
    return Py_BuildValue("{sKsKsKsKsIsIsI}", "paths", (unsigned long long)c.nodes, "other_paths",
                         (unsigned long long)c.other_paths, "widened",
                         (unsigned long long)c.widened, "bytes", (unsigned long long)c.bytes,
                         "functions", c.functions, "signatures", c.signatures, "threads", c.threads);
}

static PyMethodDef profile_methods[] = {
    {"enable", (PyCFunction)(void (*)(void))profile_enable, METH_VARARGS | METH_KEYWORDS,
     "enable($self, subcalls=True, builtins=True)\n--\n\nCount calls from now on, on all threads."},
    {"disable", profile_disable, METH_NOARGS,
     "disable($self)\n--\n\n"
     "Stop counting."},
    {"clear", profile_clear, METH_NOARGS,
     "clear($self)\n--\n\n"
     "Drop the results."},
    {"getstats", profile_getstats, METH_NOARGS,
     "getstats($self)\n--\n\n"
     "A list of profiler_entry, as in cProfile."},
    {"_stats", profile_stats, METH_NOARGS, NULL},
    {"_write", profile_write, METH_O, NULL},
    {"_counts", profile_counts, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

EXT_TYPE(calls_profiler_spec, "marey._native.Profiler", struct calls_profile,
         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
         {Py_tp_doc,
          (void *)(uintptr_t) "A call profile: which function was called from where, how "
                              "often, for how long."},
         {Py_tp_new, profile_new}, {Py_tp_init, profile_init}, {Py_tp_dealloc, profile_dealloc},
         {Py_tp_traverse, profile_traverse}, {Py_tp_clear, profile_clear_references},
         {Py_tp_methods, profile_methods})

/* ---- interpreter exit, and forks ---- */

static PyObject *end_calls(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    calls_unwatch();
    calls_disable_all();
    Py_RETURN_NONE;
}

/* A child continues the recording's profile, into its own log; the program's profiles are disabled in it. */
static PyObject *calls_forked(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    for (size_t i = 0; i < CALLS_PROFILES; i++) {
        struct calls_profile *const profile = calls_hook.profiles[i];
        const bool goes_on = profile != NULL && profile->is_recorded && marey_enabled() &&
                             marey_calls_record(profile->calls) == MAREY_OK;
        if (profile != NULL && !goes_on && calls_disable(profile) < 0)
            PyErr_Clear();
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_end_calls", end_calls, METH_NOARGS, NULL},
    {"_calls_forked", calls_forked, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *the_module; /* borrowed: it lives until the interpreter ends */

PyObject *calls_module(void)
{
    return the_module;
}

static PyObject *profiler_type(void)
{
    return (PyObject *)native_state_of(the_module)->types[NATIVE_PROFILER];
}

int calls_make(PyObject *module)
{
    if (is_main())
        the_module = module;
    return PyModule_AddFunctions(module, functions) == 0
               ? PyModule_AddFunctions(module, calls_source_functions)
               : -1;
}

/* Registers callbacks for interpreter exit and forks. */
int calls_prepare(void)
{
    static bool is_done;
    if (is_done)
        return 0;
    PyObject *const at_exit = PyObject_GetAttrString(the_module, "_end_calls");
    PyObject *const registered EXT_OWNED = ext_call("atexit", "register", "(N)", at_exit);
    PyObject *const os EXT_OWNED = registered != NULL ? PyImport_ImportModule("os") : NULL;
    PyObject *const at_fork EXT_OWNED =
        os != NULL ? PyObject_GetAttrString(os, "register_at_fork") : NULL;
    PyObject *const none EXT_OWNED = PyTuple_New(0);
    PyObject *const kwargs EXT_OWNED =
        Py_BuildValue("{sN}", "after_in_child", PyObject_GetAttrString(the_module, "_calls_forked"));
    PyObject *const done EXT_OWNED = at_fork != NULL && none != NULL && kwargs != NULL
                                         ? PyObject_Call(at_fork, none, kwargs)
                                         : NULL;
    is_done = done != NULL;
    return is_done ? 0 : -1;
}

/* ---- the cost of a call: an empty function, called with and without a profile ---- */

enum { CALLS = 500, ROUNDS = 3 };

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Minimum time of a call of `function` in nanoseconds; 0 and an exception on failure. */
static uint64_t least_ns(PyObject *function)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t begin = now_ns();
        PyObject *const done EXT_OWNED = PyObject_CallNoArgs(function);
        if (done == NULL)
            return 0;
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
    PyObject *const names EXT_OWNED = PyDict_New();
    PyObject *const done EXT_OWNED =
        names != NULL && PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) == 0
            ? PyRun_String(text, Py_file_input, names, names)
            : NULL;
    return Py_XNewRef(done != NULL ? PyDict_GetItemString(names, "g") : NULL);
}

/* Picoseconds per call; 0, possibly with an exception, if it cannot be measured. */
static uint64_t measure(PyObject *scratch)
{
    PyObject *const function EXT_OWNED = make_function();
    const uint64_t without = function != NULL ? least_ns(function) : 0;
    uint64_t with = 0;
    if (without != 0 && calls_enable((struct calls_profile *)scratch) == 0) {
        with = least_ns(function);
        if (calls_disable((struct calls_profile *)scratch) < 0)
            with = 0;
    }
    return with > without ? (with - without) * 1000 / CALLS : 0;
}

/* Do not measure while another tool has the hook. */
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
    static uint64_t costs[2]; /* in picoseconds, without and with signatures; 0: not measured */
    static bool is_measuring;
    uint64_t *const cost = &costs[profile->signer != NULL];
    if (is_measuring || profile->timer != NULL)
        return;
    if (*cost == 0 && can_measure()) {
        is_measuring = true;
        PyObject *const scratch EXT_OWNED =
            PyObject_CallFunction(profiler_type(), "OdOOi", Py_None, 0.0, Py_True, Py_True,
                                  profile->signer != NULL ? CALLS_SHAPE : 0);
        *cost = scratch != NULL ? measure(scratch) : 0;
        PyErr_Clear();
        is_measuring = false;
    }
    marey_calls_set_cost(profile->calls, *cost);
}

/* ---- the profile of a recording ---- */

static struct calls_profile *watching; /* strong; NULL: none */

/* A list of names separated by ':'; None if empty. */
static PyObject *names_of(const char *text)
{
    if (text[0] == '\0')
        return Py_NewRef(Py_None);
    PyObject *const whole EXT_OWNED = PyUnicode_DecodeFSDefault(text);
    return whole != NULL ? PyObject_CallMethod(whole, "split", "s", ":") : NULL;
}

static struct calls_profile *begin_watching(const struct marey_calls_asked *asked)
{
    /* timer, timeunit, subcalls, builtins, signatures, modules, cpu, memory */
    PyObject *profile = PyObject_CallFunction(
        profiler_type(), "OdOiiNOK", Py_None, 0.0, Py_True, asked->builtins,
        asked->signatures < 0 ? CALLS_SHAPE : asked->signatures, names_of(asked->modules), Py_False,
        (unsigned long long)asked->memory_bytes);
    if (profile != NULL && marey_calls_record(SELF(profile)->calls) != MAREY_OK) {
        PyErr_SetString(PyExc_RuntimeError, marey_last_error());
        Py_CLEAR(profile);
    }
    if (profile != NULL)
        SELF(profile)->is_recorded = true;
    if (profile != NULL && calls_enable(SELF(profile)) < 0)
        Py_CLEAR(profile);
    return SELF(profile);
}

/* The program runs even if its profile cannot start. */
void calls_watch(void)
{
    struct marey_calls_asked asked;
    if (watching != NULL || !is_main() || !marey_calls_asked_get(&asked))
        return;
    watching = begin_watching(&asked);
    if (watching == NULL)
        PyErr_WriteUnraisable(NULL);
}

void calls_unwatch(void)
{
    struct calls_profile *const profile = watching;
    if (profile == NULL)
        return;
    watching = NULL;
    if (calls_disable(profile) < 0)
        PyErr_WriteUnraisable(NULL);
    marey_calls_unrecord(profile->calls);
    profile->is_recorded = false;
    Py_DECREF(profile);
}
