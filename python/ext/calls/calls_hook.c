/* calls_hook.c: the enabled profiles, and the calling thread in each of them. */
#include "calls/calls_hook.h"

struct calls_hook calls_hook;
static _Thread_local struct calls_here slots_here[CALLS_PROFILES];

static _Thread_local uint64_t thread_id; /* of this thread, assigned at its first call; never reused */
static _Thread_local bool is_in_timer; /* the user's clock is running: its calls are not counted */
static uint64_t last_thread_id;        /* guarded by the GIL, like the rest */

/* ---- this thread in a profile ---- */

static struct marey_calls_thread *known_thread(const struct calls_profile *profile)
{
    for (size_t i = profile->n_threads; i > 0; i--)
        if (profile->threads[i - 1].thread == thread_id)
            return profile->threads[i - 1].calls;
    return NULL;
}

/* threading's Thread object for this thread, a new reference; NULL without an exception if there is none. */
static PyObject *active_thread(void)
{
    PyObject *const active = calls_imported("threading", "_active"); /* borrowed */
    PyObject *const ident EXT_OWNED = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    PyObject *const object = active != NULL && PyDict_CheckExact(active) && ident != NULL
                                 ? PyDict_GetItemWithError(active, ident)
                                 : NULL;
    PyErr_Clear();
    return Py_XNewRef(object);
}

#if CALLS_MONITORING
/* The same while the thread starts, before threading registers it: `self` of its first function. */
static PyObject *starting_thread(void)
{
    PyFrameObject *const frame = PyEval_GetFrame(); /* borrowed */
    PyCodeObject *const code EXT_OWNED = frame != NULL ? PyFrame_GetCode(frame) : NULL;
    const bool begins =
        code != NULL && PyUnicode_CompareWithASCIIString(code->co_name, "_bootstrap") == 0;
    PyObject *const object = begins ? PyFrame_GetVarString(frame, "self") : NULL;
    PyErr_Clear();
    return object;
}
#else
/* The hook reaches a new thread after threading has registered it. */
static PyObject *starting_thread(void)
{
    return NULL;
}
#endif

/* Passes the program's name of the thread. */
static void name_thread(struct marey_calls_thread *thread)
{
    PyObject *const active = active_thread();
    PyObject *const object EXT_OWNED = active != NULL ? active : starting_thread();
    PyObject **const dict = object != NULL ? _PyObject_GetDictPtr(object) : NULL;
    PyObject *const name =
        dict != NULL && *dict != NULL ? PyDict_GetItemString(*dict, "_name") : NULL;
    const char *const text = name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (text != NULL)
        marey_calls_name_thread(thread, text);
    PyErr_Clear();
}

static struct marey_calls_thread *new_thread(struct calls_profile *profile)
{
    struct calls_known *const threads =
        PyMem_Realloc(profile->threads, (profile->n_threads + 1) * sizeof *threads);
    if (threads == NULL)
        return NULL;
    profile->threads = threads;
    struct marey_calls_thread *const thread = marey_calls_thread_create(profile->calls);
    if (thread == NULL)
        return NULL;
    threads[profile->n_threads++] = (struct calls_known){thread_id, thread};
    EXT_KEEP_ERROR();
    name_thread(thread);
    return thread;
}

/* NULL on out of memory: the call is not counted. */
static struct marey_calls_thread *thread_in(struct calls_profile *profile)
{
    struct calls_here *const here = &slots_here[profile->slot];
    if (MAREY_LIKELY(here->id == profile->id))
        return here->thread;
    struct marey_calls_thread *thread = NULL;
    if (thread_id != 0)
        thread = known_thread(profile);
    else
        thread_id = ++last_thread_id;
    if (thread == NULL)
        thread = new_thread(profile);
    if (thread != NULL)
        *here = (struct calls_here){profile->id, thread};
    marey_calls_own = slots_here;
    return thread;
}

/* ---- the user's clock ---- */

/* The user's time in ticks: units of timer_unit, or nanoseconds of a float. On failure 0, and a message once. */
static uint64_t user_time(struct calls_profile *profile)
{
    int64_t ticks = 0;
    EXT_KEEP_ERROR();
    is_in_timer = true;
    PyObject *const time EXT_OWNED = PyObject_CallNoArgs(profile->timer);
    is_in_timer = false;
    if (time != NULL && profile->timer_unit > 0) {
        ticks = PyLong_Check(time) ? PyLong_AsLongLong(time) : (int64_t)PyFloat_AsDouble(time);
    } else if (time != NULL) {
        ticks = (int64_t)(PyFloat_AsDouble(time) * 1e9);
    }
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(profile->timer);
    return ticks > 0 ? (uint64_t)ticks : 0;
}

/* Does nothing if the clock or a formatter has disabled the profile. */
static void enter(struct calls_profile *profile, uint32_t function, uint32_t signature,
                  bool is_resumed)
{
    struct marey_calls_thread *const thread = profile->slot >= 0 ? thread_in(profile) : NULL;
    if (thread == NULL || function == CALLS_IGNORED)
        return;
    if (profile->timer != NULL) {
        const uint64_t now = user_time(profile);
        if (profile->slot >= 0)
            (is_resumed ? marey_calls_resume_at : marey_calls_enter_at)(thread, function, signature,
                                                                        now);
    } else {
        (is_resumed ? marey_calls_resume : marey_calls_enter)(thread, function, signature);
    }
}

static void leave(struct calls_profile *profile, uint32_t function)
{
    struct marey_calls_thread *const thread = thread_in(profile);
    if (thread == NULL || function == CALLS_IGNORED || function == 0)
        return;
    if (profile->timer != NULL)
        marey_calls_leave_at(thread, function, user_time(profile));
    else
        marey_calls_leave(thread, function);
}

/* ---- signatures ---- */

enum { WAITS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR };

/*
 * The signature of the call; for a resumed generator that of its first call. Entries stay after it ends until its frame
 * is reused, so there are at most as many as were ever suspended at once.
 */
static uint32_t sign(struct calls_profile *profile, uint32_t function, const struct calls_frame *frame)
{
    uint64_t words[CALLS_SIGN_WORDS];
    PyCodeObject *const code = (PyCodeObject *)frame->code;
    if (frame->is_resumed)
        return calls_table_get(&profile->generators, frame->key);
    if (frame->locals == NULL)
        return 0;
    const size_t n = calls_sign_frame(profile->signer, code, frame->locals, words);
    const uint32_t signature =
        calls_sign_number(profile->signer, profile->calls, function, code, words, n);
    if ((code->co_flags & WAITS) != 0 && signature != 0)
        calls_table_set(&profile->generators, frame->key, signature);
    else if ((code->co_flags & WAITS) != 0)
        calls_table_remove(&profile->generators, frame->key); /* of one that was there before */
    return signature;
}

/* ---- called by the sources ---- */

/* The program's clock and formatters are not counted. */
static bool is_ours(void)
{
    return is_in_timer || calls_sign_is_formatting;
}

/* The caller holds a reference to the profile. */
static void begin_code(struct calls_profile *profile, const struct calls_frame *frame)
{
    const uint32_t function = calls_function_of_code(profile, frame->code, frame->globals);
    const bool is_signed = profile->signer != NULL && function != CALLS_IGNORED && function != 0;
    const uint32_t signature = is_signed ? sign(profile, function, frame) : 0;
    if (MAREY_LIKELY(profile->slot >= 0))
        enter(profile, function, signature, frame->is_resumed);
}

/* Holds a reference while signing: a formatter, or another thread meanwhile, may disable and drop the profile. */
void calls_begin_signed(struct calls_profile *one, struct marey_calls_thread *thread,
                        uint32_t function, const struct calls_frame *frame)
{
    Py_INCREF(one);
    const uint32_t signature = sign(one, function, frame);
    if (MAREY_LIKELY(one->slot >= 0))
        marey_calls_enter(thread, function, signature);
    Py_DECREF(one);
}

/* The program's clock and formatters may disable and drop the profile, so hold a reference. NULL if the slot is empty. */
static struct calls_profile *hold(size_t slot)
{
    return (struct calls_profile *)Py_XNewRef((PyObject *)calls_hook.profiles[slot]);
}

void calls_begin_code(const struct calls_frame *frame)
{
    for (size_t i = 0; i < calls_hook.n_slots && !is_ours(); i++) {
        struct calls_profile *const profile EXT_OWNED = hold(i);
        if (profile != NULL)
            begin_code(profile, frame);
    }
}

/* Profiles of selected modules count built-ins called by watched functions. */
static bool wants_builtins(const struct calls_profile *profile)
{
    return profile != NULL && profile->with_builtins;
}

void calls_begin_builtin(const PyMethodDef *key, PyObject *callable, PyObject *self)
{
    for (size_t i = 0; i < calls_hook.n_slots && !is_ours(); i++) {
        struct calls_profile *const profile EXT_OWNED = hold(i);
        if (wants_builtins(profile))
            enter(profile, calls_function_of_builtin(profile, key, callable, self), 0, false);
    }
}

void calls_end(const void *key, bool is_builtin)
{
    for (size_t i = 0; i < calls_hook.n_slots && !is_ours(); i++) {
        struct calls_profile *const profile EXT_OWNED = hold(i);
        if (is_builtin ? wants_builtins(profile) : profile != NULL)
            leave(profile, calls_table_get(&profile->functions, key));
    }
}

bool calls_is_watched(PyObject *code, PyObject *globals)
{
    for (size_t i = 0; i < calls_hook.n_slots; i++)
        if (calls_hook.profiles[i] != NULL &&
            calls_function_of_code(calls_hook.profiles[i], code, globals) != CALLS_IGNORED)
            return true;
    return false;
}

/* ---- on and off ---- */

static bool is_plain(const struct calls_profile *profile)
{
    return profile->timer == NULL && profile->modules == NULL && profile->with_builtins;
}

static void renew(void)
{
    size_t n = 0;
    calls_hook.n_slots = 0;
    for (size_t i = 0; i < CALLS_PROFILES; i++)
        if (calls_hook.profiles[i] != NULL) {
            calls_hook.n_slots = i + 1;
            n++;
        }
    struct calls_profile *const first = calls_hook.profiles[0];
    calls_hook.one = n == 1 && first != NULL && is_plain(first) ? first : NULL;
}

bool calls_is_signing(void)
{
    for (size_t i = 0; i < calls_hook.n_slots; i++)
        if (calls_hook.profiles[i] != NULL && calls_hook.profiles[i]->signer != NULL)
            return true;
    return false;
}

static int free_slot(void)
{
    for (int i = 0; i < CALLS_PROFILES; i++)
        if (calls_hook.profiles[i] == NULL)
            return i;
    return -1;
}

int calls_enable(struct calls_profile *profile)
{
    if (profile->slot >= 0)
        return 0;
    if (calls_prepare() < 0)
        return -1;
    calls_tell_cost(profile);
    const int slot = free_slot();
    if (slot < 0)
        return EXT_FAIL(PyExc_RuntimeError, "%d call profiles are enabled already; disable one",
                        CALLS_PROFILES);
    const bool is_first = calls_hook.n_slots == 0;
    profile->slot = slot;
    calls_hook.profiles[slot] = (struct calls_profile *)Py_NewRef((PyObject *)profile);
    renew();
    if ((is_first ? calls_source_start() : calls_source_change()) == 0) {
        if (profile->signer != NULL)
            calls_numba_watch();
        return 0;
    }
    profile->slot = -1;
    calls_hook.profiles[slot] = NULL;
    Py_DECREF(profile);
    renew();
    return -1;
}

int calls_disable(struct calls_profile *profile)
{
    if (profile->slot < 0)
        return 0;
    /* A clock that disables its own profile returns no time. */
    const uint64_t now = profile->timer != NULL && !is_in_timer ? user_time(profile) : 0;
    if (profile->slot < 0)
        return 0; /* the clock has disabled it */
    if (profile->timer != NULL)
        marey_calls_settle_at(profile->calls, now);
    else
        marey_calls_settle(profile->calls);
    calls_hook.profiles[profile->slot] = NULL;
    profile->slot = -1;
    renew();
    if (!calls_is_signing())
        calls_numba_leave();
    const int status = calls_hook.n_slots == 0 ? calls_source_stop() : calls_source_change();
    Py_DECREF(profile);
    return status;
}

void calls_disable_all(void)
{
    for (size_t i = 0; i < CALLS_PROFILES; i++)
        if (calls_hook.profiles[i] != NULL && calls_disable(calls_hook.profiles[i]) < 0)
            PyErr_Clear();
}
